"""The page of --report: what it says, that it is valid and safe, and how a browser shows it."""

import html
import os
import re
import shutil
import stat
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numba
import numpy as np
import pytest

from fastal import GaussianProcess, MovementBelow, Stopper, learn
from fastal.cli import report
from fastal.cli.entry import main
from fastal.cli.errors import UserError
from fastal.cli.report import ReportContent, ReportTable, check_report, report_page, write_report
from fastal.criteria import leave_one_out

matplotlib = pytest.importorskip("matplotlib")

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="fits take minutes interpreted"
)

STRANGE = "<script>alert(\"1\")</script> & 'Zähler' \u202e\x00 $x_1$ ]]> <!-- \ud800"


@pytest.fixture(scope="module")
def learnt():
    """A campaign with refits that stopped."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (80, 2))
    y = 5 + 3 * np.sin(X[:, 0]) + 0.1 * rng.standard_normal(80)
    return learn(X, y, criterion=MovementBelow(0.2), seed=0)


@pytest.fixture(scope="module")
def tested():
    """A campaign with known hyper-parameters, errors, and the paper's rule, past its stop."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-5, 15, 150)
    y = np.exp(-((X - 2) ** 2) / 2) + 0.05 * rng.standard_normal(150)
    gp = GaussianProcess(1.5, 0.0025)
    test = X[100:], y[100:]
    return learn(X[:100], y[:100], gp=gp, criterion=Stopper(), seed=1, test=test).resume()


def content(run, **changes):
    rows = [[str(i), f"sample {i}", f"{0.1 * i:.3g}"] for i in range(1, 11)]
    given = {
        "title": "Campaign",
        "verdict": "go on: 12 % of all movement is still to come",
        "warnings": ["the fit lies at an edge"],
        "facts": [("data", "x.csv: 80 rows"), ("order", "as they stand in the file")],
        "target": "strength",
        "source": "/home/somebody/secret/x.csv",
        "run": run,
        "next_rows": (["row", "name", "sd"], rows),
        "next_caption": "The 10 rows to label next, in this order",
        "label_names": None if run is None else [f"line {i + 2}" for i in run.indices],
    }
    return ReportContent(**given | changes)


# What is checked in every page ---------------------------------------------------------------------

VOID = {"meta", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """What a page is made of; `faults` says what is wrong with it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.seen, self.ids, self.links = [], [], [], [], []
        self.captions = self.tables = 0
        self.said = []
        self.feed(text)
        self.close()
        if self.open:
            self.faults.append(f"not closed: {self.open}")
        if len(self.ids) != len(set(self.ids)):
            self.faults.append("an id is there twice")
        self.faults += [f"{link} leads nowhere" for link in self.links if link not in self.ids]
        if self.tables != self.captions:
            self.faults.append("a table without a caption")
        for needed in ("html", "head", "title", "body", "main", "h1"):
            if sum(tag == needed for tag, _ in self.seen) != 1:
                self.faults.append(f"not one {needed}")
        loads = (
            r"""@import|(?:src|srcset|action|data|poster)\s*=|url\(\s*["']?(?!#)|https?:(?!//)|//"""
        )
        without = re.sub(r"data:image/png;base64,[\w+/=\s]*", "data:image/png;base64,", text)
        self.faults += [f"may load: {found}" for found in re.findall(loads, without)]

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        found = dict(attributes)
        if len(found) != len(attributes):
            self.faults.append(f"{tag}: an attribute is there twice")
        self.seen.append((tag, found))
        self.tables += tag == "table"
        self.captions += tag == "caption"
        if tag in ("script", "iframe", "object", "embed", "link", "base", "form", "a"):
            self.faults.append(f"there is a {tag}")
        if tag == "th" and found.get("scope") not in ("col", "row"):
            self.faults.append("th without scope")
        if tag == "svg" and not (found.get("role") == "img" and found.get("aria-label")):
            self.faults.append("a picture without words")
        if tag == "html" and found.get("lang") != "en":
            self.faults.append("no language")
        for name, value in found.items():
            if name.startswith("on"):
                self.faults.append(f"{tag}: {name}")
            if name == "id":
                self.ids.append(value)
                if not value or re.search(r"\s", value):
                    self.faults.append(f"id {value!r}")
            if name.endswith("href"):
                if not value.startswith(("#", "data:image/png;base64,")):
                    self.faults.append(f"may load: {value}")
                elif value.startswith("#"):
                    self.links.append(value[1:])
            self.links += re.findall(r"url\(#([^)]*)\)", value or "")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.said.append(data)

    def tags(self, name):
        return [found for tag, found in self.seen if tag == name]

    @property
    def text(self):
        return " ".join(" ".join(self.said).split())


def read(text):
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>\n")
    assert page.faults == []
    return page


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("<h1>", "<h1><script>1</script>", "there is a script"),
        ("</main>", "", "closes nothing"),
        ("<main>", '<main id="a"><p id="a"></p>', "twice"),
        ("<main>", '<main id="a b">', "id 'a b'"),
        ("<main>", '<main><svg role="img" aria-label="x"><use href="#no"/></svg>', "nowhere"),
        ("<main>", "<main><svg></svg>", "without words"),
        ("<main>", '<main onclick="x">', "onclick"),
        ("<main>", '<main><p style="background: url(x.png)"></p>', "may load"),
        ("<style>", "<style>@import 'x';", "may load"),
        ("<main>", "<main><p>https://example.org</p>", "may load"),
        ("<main>", "<main><table></table>", "without a caption"),
        ("<main>", "<main><h1></h1>", "not one h1"),
        ('lang="en"', "", "no language"),
        ('scope="col"', "", "th without scope"),
    ],
)
def test_the_check_of_pages_finds_what_is_wrong(old, new, fault):
    page = report_page(content(None))
    assert read(page)
    assert old in page
    assert any(fault in found for found in Page(page.replace(old, new, 1)).faults)


# What it says --------------------------------------------------------------------------------------


def test_everything_is_said(learnt):
    page = read(report_page(content(learnt)))
    text = page.text
    assert "Go on: 12 % of all movement is still to come." in text
    assert "Warning: the fit lies at an edge" in text
    assert "data x.csv: 80 rows" in text
    assert "The 10 rows to label next, in this order" in text
    assert "sample 10" in text
    for title in (
        "Label next", "Still to come", "Course of the hyper-parameters",
        "Predictions against labels", "Labels that surprise",
    ):  # fmt: skip
        assert title in text
    assert "Error on the rows held out" not in text
    assert "The length scale" in text
    assert text.endswith("from x.csv, target strength.")
    assert "secret" not in text
    assert len(page.tags("svg")) == 3
    assert [found["charset"] for found in page.tags("meta") if "charset" in found] == ["utf-8"]
    assert any(found.get("name") == "viewport" for found in page.tags("meta"))


def test_the_share_is_that_of_the_picture(learnt):
    share = f"{100 * learnt.verdict.left:.2g} %"
    stop = learnt.stopped_at
    text = read(report_page(content(learnt))).text
    assert (
        f"At the stop, after {stop} labels, {share} of all movement of the model is still" in text
    )


@pytest.mark.parametrize(("used", "unit"), [(None, (0.0, 1.0)), (12, (100.0, 7.0))])
def test_leave_one_out_is_in_units_of_the_target(tested, used, unit):
    gp = tested.gp.copy()
    gp.rewind(used or tested.n_labels)
    told = leave_one_out(gp)
    text = read(report_page(content(tested, used=used, unit=unit))).text
    assert f"Each of {used or tested.n_labels} labels predicted from all the others" in text
    assert f"root mean square error is {unit[1] * told.rmse:.3g} in units of strength" in text
    assert f"standard deviation of {unit[1] * told.y.std():.3g}." in text
    assert f"{100 * told.share_within():.0f} % of them lie within two" in text
    worst = np.argmax(np.abs(told.y - told.mean) / np.sqrt(told.var))
    row = (f"line {tested.indices[worst] + 2}", f"{unit[0] + unit[1] * told.y[worst]:.5g}")
    assert " off by line" in text
    assert " ".join(row) in text[text.index(" off by ") :][:60]


def test_a_run_with_errors_and_the_papers_rule(tested):
    rules = ReportTable(["rule", "labels used"], [["paper 0.001", "20 of 100"]])
    page = read(report_page(content(tested, next_rows=None, rules=rules)))
    assert "Error on the rows held out" in page.text
    assert f"at the stop ({tested.stopped_at} labels)" in page.text
    assert "Rules side by side" in page.text
    assert "Label next" not in page.text
    assert "Course of the hyper-parameters" not in page.text
    assert len(page.tags("svg")) == 3


@pytest.mark.parametrize("labels", [0, 1, 3, 5, 6, 7])
def test_few_labels(labels):
    from fastal import ActiveLearner

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    learner = ActiveLearner(X, criterion=MovementBelow(0.05), seed=0)
    for _ in range(labels):
        learner.tell(y[learner.ask()])
    page = read(report_page(content(learner.run())))
    assert "Label next" in page.text
    assert ("Predictions against labels" in page.text) == (labels >= 5)
    assert ("Still to come" in page.text) == (labels >= 6)


def test_without_a_run_and_without_anything():
    page = read(report_page(content(None)))
    assert page.tags("svg") == []
    assert "Label next" in page.text
    bare = content(None, next_rows=(["row"], []), warnings=[], facts=[])
    page = read(report_page(bare))
    assert "Label next" not in page.text
    assert page.tags("table") == page.tags("dl") == page.tags("ul") == []


def test_a_covariance_without_an_inverse(learnt, monkeypatch):
    def refuse(gp):
        raise np.linalg.LinAlgError("the covariance of the labels is not positive definite")

    monkeypatch.setattr("fastal.criteria.leave_one_out", refuse, raising=False)
    page = read(report_page(content(learnt)))
    assert "Not computed: the covariance of the labels is not positive definite." in page.text
    assert len(page.tags("svg")) == 2


def test_many_labels_are_a_small_page():
    rng = np.random.default_rng(0)
    X = rng.uniform(-30, 30, 1500)
    gp = GaussianProcess(1.0, 0.01)
    run = learn(X, np.sin(X), gp=gp, criterion=MovementBelow(1e-9), seed=0, max_labels=1200)
    page = report_page(content(run))
    assert len(read(page).tags("image")) >= 2  # dots become one image
    assert len(page) < 2_000_000


def test_numbers_stand_to_the_right():
    rows = [["1", "0.5", "a1", "-3e-05", "12 %"], ["12", "-", "2", "+1", "0.5 %"]]
    header = ["row", "sd", "name", "off", "share"]
    page = read(report_page(content(None, next_rows=(header, rows))))
    heads = [found for found in page.tags("th") if found["scope"] == "col"]
    assert [found.get("class") for found in heads] == ["number", "number", None, "number", "number"]


def test_a_table_with_rows_of_other_lengths():
    with pytest.raises(ValueError, match="rows of a table must have 2 cells, as its header has"):
        report_page(content(None, next_rows=(["a", "b"], [["1", "2"], ["1"]])))


# Strangers -----------------------------------------------------------------------------------------


def test_names_of_strangers_are_text(learnt, tmp_path):
    strange = content(
        learnt,
        title=STRANGE,
        verdict=STRANGE,
        warnings=[STRANGE],
        facts=[(STRANGE, STRANGE)],
        target=STRANGE,
        source=STRANGE,
        next_rows=([STRANGE, "b"], [[STRANGE, STRANGE]]),
        label_names=[STRANGE] * learnt.n_labels,
    )
    path = tmp_path / "page.html"
    write_report(path, strange)
    raw = path.read_bytes().decode("utf-8")
    assert not re.search(r"<script|<!--|[\x00\u202e]", raw)
    page = read(raw)
    shown = "<script>alert(\"1\")</script> & 'Zähler' \ufffd\ufffd $x_1$ ]]> <!-- \ufffd"
    # title, h1, verdict, warning, dt, dd, head, row, cell, target twice, surprising labels
    assert page.text.count(shown) >= 12
    assert STRANGE.rpartition("/")[2] not in raw  # escaped wherever it stands


def test_quotes_cannot_leave_an_attribute(learnt):
    hostile = '" onload="alert(1)" x="'
    page = read(report_page(content(learnt, target=hostile)))
    assert all(not name.startswith("on") for _, found in page.seen for name in found)
    assert any(hostile in found["aria-label"] for found in page.tags("svg"))


# The same bytes, all or nothing --------------------------------------------------------------------


def test_the_same_content_gives_the_same_bytes(learnt):
    first = report_page(content(learnt))
    with matplotlib.style.context("dark_background"), matplotlib.rc_context({"font.size": 20}):
        assert report_page(content(learnt)) == first
    assert matplotlib.rcParams["svg.hashsalt"] is None  # nothing stays changed


def test_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def refuse(*names):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match="No space"):
            write_report(path, content(None))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]
    write_report(path, content(None))
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links")
def test_permissions_and_links(tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text("")
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    write_report(page, content(None))
    assert stat.S_IMODE(page.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    page.chmod(0o640)
    link.symlink_to(page)
    before = page.read_bytes()
    write_report(link, content(None, title="another"))
    assert link.is_symlink()
    assert page.read_bytes() != before
    assert stat.S_IMODE(page.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page", "must end with .html or .htm"),
        ("page.pdf", "must end with .html or .htm"),
        ("no/page.html", "is a directory, or in none that exists"),
        ("folder.html", "is a directory, or in none that exists"),
        ("table.html", "is the table itself"),
    ],
)
def test_pages_that_cannot_be_written(tmp_path, name, text):
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "table.html").write_text("a,b\n")
    with pytest.raises(UserError, match=f"^--report: .*{text}"):
        check_report(str(tmp_path / name), str(tmp_path / "table.html"))
    check_report(str(tmp_path / "fine.HTM"), str(tmp_path / "table.html"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(UserError, match="is not a regular file"):
        check_report(str(tmp_path / "pipe.html"))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r'^--report: pictures need .*"fastal\[plot\]"'):
        check_report("page.html")


# fastal run ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(120, 2))
    y = 50 + 10 * np.sin(X[:, 0]) * np.cos(X[:, 1]) + rng.normal(size=120)
    path = tmp_path_factory.mktemp("secret") / "smooth & <b>.csv"
    lines = [f"{a!r},{b!r},{c!r}" for a, b, c in np.column_stack((X, y)).tolist()]
    path.write_text("a,b,strength\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("rule", ["still", "paper"])
def test_fastal_run_writes_it(table, tmp_path, capsys, rule):
    path = tmp_path / "campaign.html"
    command = ["run", str(table), "--target", "strength", "--rule", rule, "--report", str(path)]
    assert main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"written {path}: the answer as a page, with its pictures" in printed
    first = path.read_bytes()
    page = read(first.decode())
    answer = re.search(r"answer (.*?) why", printed)[1]
    said = page.text.lower()
    assert answer.rstrip(".").lower() in said
    assert "When could labelling smooth & <b>.csv have stopped?" in page.text
    assert "data smooth & <b>.csv: 120 rows" in page.text
    assert "secret" not in first.decode()
    assert "Error on the rows held out" in page.text
    assert re.search(r"line \d+", page.text)
    for name in ("still 0.05", "paper 0.001"):
        assert name in page.text
    assert os.listdir(tmp_path) == ["campaign.html"]

    again = tmp_path / "again.html"
    command[-1] = str(again)
    if rule == "still":  # in another process
        subprocess.run(
            [sys.executable, "-m", "fastal", *command],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONHASHSEED": "7"},
        )  # fmt: skip
    else:
        assert main(command) == 0
    assert again.read_bytes() == first


def test_run_says_at_once_what_is_wrong(table, tmp_path, capsys):
    assert main(["run", str(table), "--target", "strength", "--report", "page.pdf"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "fastal: --report: 'page.pdf' must end with .html or .htm\n"


# A real browser ------------------------------------------------------------------------------------

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)

needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH")


def browse(folder, *options):
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--force-device-scale-factor=1", f"--user-data-dir={folder / 'profile'}", *options,
        ],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return done.stdout.decode()


WIDTHS = 320, 400, 1200


def framed(page, widths, height):
    """The page in frames of given widths: a browser's window has a least one."""
    measure = """
    function measure(frame) {
      const page = frame.contentDocument, root = page.documentElement;
      const right = [...page.querySelectorAll("svg")].map(s => s.getBoundingClientRect().right);
      const told = document.createElement("p");
      told.textContent = [root.clientWidth, root.scrollWidth, Math.ceil(Math.max(0, ...right)),
        page.body.scrollHeight, right.length].join(" ");
      document.body.append(told);
    }"""
    frames = "".join(
        f'<iframe style="display: block; border: 0; width: {width}px; height: {height}px" '
        f'onload="measure(this)" srcdoc="{html.escape(page)}"></iframe>'
        for width in widths
    )
    return (
        f'<!DOCTYPE html><meta charset="utf-8"><script>{measure}</script>'
        f'<body style="margin: 0">{frames}'
    )


@pytest.fixture(scope="module")
def pages(learnt, tested):
    long = [["7", "one-word-" * 40, "0.1"], ["8", "many words " * 40, "0.2"]]
    wide = ([f"column {i}" for i in range(30)], [[f"{i}.125" for i in range(30)]])
    header = ["row", "name", "sd"]
    made = {
        "learnt": content(learnt),
        "tested": content(tested, next_rows=None, used=20),
        "strange": content(learnt, title=STRANGE * 3, target=STRANGE, verdict="word" * 100),
        "long": content(None, next_rows=(header, long)),
        "wide": content(None, next_rows=wide),
    }
    return {name: report_page(one) for name, one in made.items()}


@needs_browser
@pytest.mark.parametrize("name", ["learnt", "tested", "strange", "long", "wide"])
def test_nothing_sticks_out(pages, tmp_path, name):
    path = tmp_path / "frame.html"
    path.write_text(framed(pages[name], WIDTHS, 900), encoding="utf-8")
    found = browse(tmp_path, "--window-size=1300,1000", "--dump-dom", path.as_uri())
    told = [[int(n) for n in one.split()] for one in re.findall(r"<p>([\d ]+)</p>", found)]
    assert sorted(row[0] for row in told) == sorted(WIDTHS)
    for width, scroll, right, height, pictures in told:
        assert scroll == width
        assert right < width
        assert height > 400
        assert pictures == (0 if name in ("long", "wide") else 3)


@needs_browser
def test_the_measurement_finds_what_sticks_out(pages, tmp_path):
    path = tmp_path / "frame.html"
    page = pages["long"].replace("<main>", '<main><div style="width: 500px">x</div>')
    path.write_text(framed(page, (400,), 900), encoding="utf-8")
    found = browse(tmp_path, "--dump-dom", path.as_uri())
    assert int(re.search(r"<p>400 (\d+)", found)[1]) > 500


@needs_browser
def test_a_browser_reads_it(pages, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(pages["learnt"], encoding="utf-8")
    dom = browse(tmp_path, "--dump-dom", path.as_uri())
    assert "Go on: 12 % of all movement is still to come." in dom
    assert "<title>Campaign</title>" in dom
    # what the browser makes of it has the same elements: nothing had to be repaired
    ours, its = Page(pages["learnt"]), Page(dom)
    assert [tag for tag, _ in ours.seen] == [tag for tag, _ in its.seen]
    assert its.faults == []


@needs_browser
@pytest.mark.parametrize("width", [400, 1200])
def test_a_picture_of_it(pages, tmp_path, width):
    image = pytest.importorskip("PIL.Image")
    path, shot = tmp_path / "frame.html", tmp_path / "shot.png"
    path.write_text(framed(pages["learnt"], (width,), 3000), encoding="utf-8")
    browse(tmp_path, f"--window-size={width},3000", f"--screenshot={shot}", path.as_uri())
    with image.open(shot) as opened:
        pixels = np.asarray(opened.convert("L"), dtype=float)
    assert pixels.shape == (3000, width)
    # neither blank nor a blot, on the first three screens
    shares = [(part < 128).mean() for part in np.array_split(pixels[:1500], 3)]
    assert all(0.003 < share < 0.3 for share in shares), shares


@needs_browser
def test_on_paper(pages, tmp_path):
    path, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    path.write_text(pages["learnt"], encoding="utf-8")
    browse(tmp_path, f"--print-to-pdf={paper}", path.as_uri())
    written = paper.read_bytes()
    assert written.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", written)) <= 6


def test_all_parts_of_the_style_are_used():
    """A rule for a class that nothing has would be forgotten."""
    source = Path(report.__file__).read_text(encoding="utf-8")
    classes = set(re.findall(r"\.([a-z]+)[ ,:{]", report.STYLE))
    assert classes == {name for name in classes if f'class="{name}"' in source}
