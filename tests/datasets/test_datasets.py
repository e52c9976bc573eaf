import gc
import hashlib
import http.server
import inspect
import os
import socket
import sys
import threading
import warnings

import numpy as np
import pytest

from fastal import datasets
from fastal.datasets import SETS, Source, artificial, artificial_mean, load

SMALL = b"1 2 3\n4 5 6.5\n\n"  # like the real ones, some of which end in an empty line


def test_artificial_is_the_papers_model():
    X, y = artificial(n=20_000, noise=0.05, seed=3)
    assert X.shape == (20_000, 1)
    assert y.shape == (20_000,)
    x = X[:, 0]
    assert x.min() >= -5
    assert x.max() <= 15
    # Uniform: mean 5, variance 400 / 12; six standard errors of the mean.
    assert abs(x.mean() - 5) < 6 * np.sqrt(400 / 12 / 20_000)
    curve = np.exp(-((x - 2) ** 2) / 2) + np.exp(-((x - 6) ** 2) / 10) + 1 / (x**2 + 1)
    noise = y - curve
    assert abs(noise.mean()) < 6 * 0.05 / np.sqrt(20_000)
    # A standard deviation, not a variance; its standard error is sd / sqrt(2 n).
    assert abs(noise.std() - 0.05) < 6 * 0.05 / np.sqrt(40_000)


def test_no_noise_is_the_curve():
    X, y = artificial(n=50, noise=0.0)
    np.testing.assert_array_equal(y, artificial_mean(X[:, 0]))


def test_seeds():
    first, again, other = artificial(seed=1), artificial(seed=1), artificial(seed=2)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


def test_mean_keeps_the_shape_and_survives_extremes():
    assert artificial_mean(2.0).shape == ()
    assert artificial_mean([[0.0, 1.0]]).shape == (1, 2)
    np.testing.assert_array_equal(artificial_mean([1e200, -1e308]), [0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"n": 0}, ValueError, "`n` must be at least 1, got 0"),
        ({"n": 2.0}, TypeError, "`n` must be an integer, got 2.0"),
        ({"noise": -0.1}, ValueError, "`noise`.*-0.1"),
        ({"noise": np.nan}, ValueError, "`noise`.*nan"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
    ],
)
def test_bad_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        artificial(**arguments)


def test_bad_inputs_of_the_mean():
    with pytest.raises(ValueError, match=r"`x`.*nan"):
        artificial_mean([0.0, np.nan])


# the real sets -----------------------------------------------------------------------------------

# Rows and columns with the target: the table of the data's provenance. First row and range of the
# target: `head -1` of the file, and the description of the set at UCI (dB, MPa, MW, Angstrom, -).
FACTS = {
    "airfoil": (1503, 6, [800, 0, 0.3048, 71.3, 0.00266337, 126.201], (103.38, 140.987)),
    "concrete": (1030, 9, [540, 0, 0, 162, 2.5, 1040, 676, 28, 79.99], (2.33, 82.6)),
    "power_plant": (9568, 5, [8.34, 40.77, 1010.84, 90.01, 480.48], (420.26, 495.76)),
    "protein": (45730, 10, None, (0.0, 20.999)),
    "yacht": (308, 7, [-2.3, 0.568, 4.78, 3.99, 3.17, 0.125, 0.11], (0.01, 62.42)),
}


@pytest.fixture
def no_download(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)  # to import it is an error


@pytest.mark.skipif("FASTAL_DATA" not in os.environ, reason="FASTAL_DATA names no folder of data")
@pytest.mark.parametrize("name", SETS)
def test_real_sets(name, no_download):
    rows, columns, first, (low, high) = FACTS[name]
    X, y = load(name)
    assert (X.shape, y.shape) == ((rows, columns - 1), (rows,))
    assert X.dtype == y.dtype == np.float64
    assert X.flags.c_contiguous
    assert y.flags.c_contiguous
    assert np.isfinite(X).all()
    assert (y.min(), y.max()) == (low, high)
    if first is not None:
        assert [*X[0], y[0]] == first
    again, _ = load(name)
    assert not np.shares_memory(X, again)


def test_sources_are_pinned():
    for source in SETS.values():
        assert source.url.startswith("https://raw.githubusercontent.com/")
        assert len(source.url.split("/")[5]) == 40  # a commit, not a branch
        assert len(bytes.fromhex(source.sha256)) == 32
    text = inspect.getdoc(load)  # Python 3.13 takes the indentation away itself
    for name in SETS:  # each is documented
        assert f"\n{name} " in text
    assert text.count("https://doi.org/10.24432/") == len(SETS)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves SMALL at /good, other bytes at /changed, half an answer at /half, else 404."""

    asked: list

    def do_GET(self):
        self.asked.append(self.path)
        if self.path not in ("/good", "/changed", "/half"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(SMALL)))
        self.end_headers()
        self.wfile.write(
            {"/good": SMALL, "/changed": b"<html>" + SMALL[6:], "/half": SMALL[:5]}[self.path]
        )

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(Handler, "asked", [], raising=False)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    path = tmp_path / "data"
    monkeypatch.setenv("FASTAL_DATA", str(path))
    return path


def pretend(monkeypatch, url):
    """Let SMALL at this address be the yacht set."""
    monkeypatch.setitem(SETS, "yacht", Source(url, hashlib.sha256(SMALL).hexdigest()))


def failure(error, text):
    """What load says when it fails."""
    with warnings.catch_warnings():
        # pooch leaves it to the garbage collector to close a connection that failed.
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(error, match=text) as caught:
            load("yacht")
        said = str(caught.value)
        del caught
        gc.collect()
    return said


def test_downloads_once(monkeypatch, server, folder):
    pretend(monkeypatch, f"{server}/good")
    for _ in range(2):
        X, y = load("yacht")
        assert X.tolist() == [[1.0, 2.0], [4.0, 5.0]]
        assert y.tolist() == [3.0, 6.5]
    assert Handler.asked == ["/good"]
    assert [file.name for file in folder.iterdir()] == ["yacht.txt"]
    assert (folder / "yacht.txt").read_bytes() == SMALL


def test_the_cache_folder_is_the_default(monkeypatch, server, tmp_path):
    monkeypatch.setenv("FASTAL_DATA", "")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    pretend(monkeypatch, f"{server}/good")
    load("yacht")
    assert (tmp_path / "fastal" / "yacht.txt").is_file()


@pytest.mark.parametrize(
    ("path", "error", "text"),
    [
        ("/changed", ValueError, "what .*/changed returned does not have the sha256 [0-9a-f]{64}"),
        ("/half", (OSError, ValueError), "/half"),
        ("/nowhere", OSError, "cannot download .*/nowhere to the folder .*data: 404"),
    ],
)
def test_failed_downloads_leave_nothing(monkeypatch, server, folder, path, error, text):
    pretend(monkeypatch, server + path)
    said = failure(error, text)
    for part in (f"Save {server}{path} as {folder / 'yacht.txt'}", "FASTAL_DATA"):
        assert part in said
    assert list(folder.iterdir()) == []


def test_offline(monkeypatch, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # never listens: connections are refused
        address = f"http://127.0.0.1:{free.getsockname()[1]}/good"
        monkeypatch.setenv("NO_PROXY", "*")
        pretend(monkeypatch, address)
        said = failure(OSError, "cannot download http")
    for part in (address, str(folder), "FASTAL_DATA"):
        assert part in said
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made(monkeypatch, server, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FASTAL_DATA", str(tmp_path / "file" / "data"))
    pretend(monkeypatch, f"{server}/good")
    failure(OSError, "cannot download .* to the folder .*data: .*FASTAL_DATA")


def test_a_wrong_file_is_not_touched(monkeypatch, server, folder):
    pretend(monkeypatch, f"{server}/good")
    folder.mkdir()
    (folder / "yacht.txt").write_bytes(SMALL + b"7 8 9\n")
    with pytest.raises(ValueError, match=r"yacht.txt is not the data set 'yacht'.*Delete it"):
        load("yacht")
    assert (folder / "yacht.txt").read_bytes() == SMALL + b"7 8 9\n"
    assert Handler.asked == []


def test_a_read_only_folder(monkeypatch, folder, no_download):
    pretend(monkeypatch, "http://nowhere.invalid/")
    folder.mkdir()
    (folder / "yacht.txt").write_bytes(SMALL)
    (folder / "yacht.txt").chmod(0o444)
    folder.chmod(0o555)
    assert load("yacht")[1].tolist() == [3.0, 6.5]
    assert [file.name for file in folder.iterdir()] == ["yacht.txt"]
    folder.chmod(0o755)


def test_home_is_known(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("FASTAL_DATA", "~/data")
    assert datasets._folder() == tmp_path / "data"


@pytest.mark.parametrize("name", ["boston", "", "../yacht", None, 3])
def test_unknown_names(name):
    wanted = "`name` must be one of 'airfoil', 'concrete', 'power_plant', 'protein', 'yacht', got"
    with pytest.raises(ValueError, match=wanted):
        load(name)
