"""The notebook of the documentation: it runs from top to bottom, and shows what it says then."""

import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest
from numba import config

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = DOCS / "notebook.ipynb"
CPU_SECONDS = 60  # the notebook promises less than a minute


def load(name):
    """A script of docs, as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(notebook):
    """What each cell printed, and what kinds of pictures it drew."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error"
            data = output.get("data", {})
            drawn = [kind for kind in data if kind.startswith("image/")]
            text = output.get("text", data.get("text/plain", ""))
            found.append(drawn or "".join(text))
    return found


@pytest.fixture(scope="module")
def stored():
    return json.loads(NOTEBOOK.read_text("utf-8"))


def test_it_is_stored_with_what_it_shows(stored):
    kinds = [cell["cell_type"] for cell in stored["cells"]]
    assert kinds.count("code") >= 8
    text = NOTEBOOK.read_text("utf-8")
    assert len(text) < 300_000
    # no path of the machine that ran it, and no data
    assert not re.search(r"/home/|/tmp/|/root/|/work/|Users", text)
    output = shown(stored)
    assert output.count(["image/svg+xml"]) == 2
    printed = "\n".join(piece for piece in output if isinstance(piece, str))
    for part in ("too early", "go on", "cannot be measured: [", "stop after", "report:"):
        assert part in printed
    for cell in stored["cells"]:
        if any("image/svg+xml" in one.get("data", {}) for one in cell.get("outputs", [])):
            assert len(cell["metadata"]["alt"]) > 20
    first = "".join(stored["cells"][0]["source"])
    assert "doi.org/10.24432/C5PK67" in first
    assert "FASTAL_DATA" in first


@pytest.mark.skipif(
    not os.environ.get("FASTAL_DATA"), reason="FASTAL_DATA names no folder with the data"
)
@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="300 points take minutes without the JIT")
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own, about sockets and paths
def test_it_runs_from_top_to_bottom(stored, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    resource = pytest.importorskip("resource", reason="a module of POSIX")
    # the kernel is this Python, whatever kernels the user has
    monkeypatch.setenv("JUPYTER_PATH", "")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    script = load("run_notebook")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    made = script.run(notebook, tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert shown(made) == shown(stored)
    page = (tmp_path / "campaign.html").read_text("utf-8")
    assert "2.1 %" in page
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert 1 < used < CPU_SECONDS


def test_pieces_of_a_stream_are_joined():
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat")
    piece = nbformat.v4.new_output
    pieces = [
        piece("stream", name="stdout", text="a\n"),
        piece("stream", name="stdout", text="b\n"),
        piece("stream", name="stderr", text="c\n"),
        piece("display_data", data={"text/plain": "d"}),
        piece("stream", name="stdout", text="e\n"),
    ]
    joined = load("run_notebook").joined(pieces)
    assert [one.get("text") for one in joined] == ["a\nb\n", "c\n", None, "e\n"]


def test_the_check_can_fail(stored):
    broken = {"cells": [{"outputs": [{"output_type": "error"}]}]}
    with pytest.raises(AssertionError):
        shown(broken)
    assert shown({"cells": [{"outputs": [{"output_type": "stream", "text": ["x"]}]}]}) == ["x"]
