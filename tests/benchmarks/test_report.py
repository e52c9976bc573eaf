"""The report that writes the tables of speed: its words, its picture, and where it writes them."""

import xml.etree.ElementTree as ET

import pytest


@pytest.fixture(scope="module")
def report(benchmarks):
    pytest.importorskip("sklearn", reason="the benchmarks compare with scikit-learn")
    return benchmarks("report")


@pytest.fixture
def rows(report):
    return [
        report.Row("a push", 1.5e-7, 1.65e-4, "statsmodels", 700, 3e-8, "empty call"),
        report.Row("`slow`", 2.0, 1.0, "a peer", 0.4),
        report.Row("alone", 0.0123),
    ]


def test_rows_in_words(report, rows):
    push, slow, alone = map(report.line, rows)
    assert push == "| a push | 150 ns | 165 µs (statsmodels) | 1,100 | 700 | 20 % (empty call) |"
    assert slow == "| `slow` | 2 s | 1 s (a peer) | 0.5 | 0.4 |  |"
    assert alone == "| alone | 12 ms |  |  |  |  |"


def test_a_page_has_every_row(report, rows):
    limits = report.Limits(4e10, 5e10, 8e9, 4e-8)
    other = report.Tracked("memory", 56.0, "bytes", "at most 64")
    page = report.page(report.limits_in_words(limits, limits), rows, [other])
    assert [line for line in page.splitlines() if line.startswith("| a push")] == [
        report.line(rows[0])
    ]
    assert "| memory | 56 bytes | at most 64 |" in page
    assert "dgemm 40 Gflop/s, dgemv 50 GB/s" in page
    assert "call 40 ns" in page


def test_the_picture_names_every_row(report, rows, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "speed.svg"
    report.draw(rows, path)
    first = path.read_bytes()
    text = "".join(ET.fromstring(first).itertext())
    for word in ("a push", "1,100 x", "statsmodels", "0.5 x", "20 %", "empty call"):
        assert word in text
    assert "alone" not in text  # it is compared with nothing
    report.draw(rows, path)
    assert path.read_bytes() == first


def written(report, path):
    text = path.read_text(encoding="utf-8")
    return text.partition(report.BEGIN)[2].partition(report.END)[0]


def test_the_page_holds_what_was_written(report):
    text = written(report, report.PAGE)
    assert "| what | fastal | peer | times faster | asked for | share of the limit |" in text
    assert "by one run of `python -m benchmarks.report`" in text
    assert f"]({report.PICTURE.name})" in text
    assert report.PICTURE.parent == report.PAGE.parent
    assert report.PICTURE.exists()


def headline_rows(report):
    """A row for each headline, and one that is none."""
    rows = [
        report.Row(what, 1e-3 * i, 0.02, peer, 5, 1e-4, "dgemm")
        for i, (what, peer) in enumerate(report.HEADLINES, start=1)
    ]
    return [report.Row(report.HEADLINES[0][0], 7.0, 8.0, "another peer"), *rows]


def test_headlines_are_ten_rows_without_targets(report):
    text = report.headlines("Measured on a machine.", headline_rows(report))
    first, empty, head, _, *lines = text.splitlines()
    assert (first, empty) == ("Measured on a machine.", "")
    assert head == "| what | fastal | peer | times faster |"
    assert len(lines) == 10
    assert lines[0] == (
        "| one more bound decided at T = 1,000, `Stopper.push` | 1 ms | 20 ms (statsmodels) | 20 |"
    )
    assert lines[-1] == (
        "| a new process, its first `learn`, nothing compiled yet | 10 ms"
        " | 20 ms (a first fit of scikit-learn) | 2 |"
    )


def test_a_missing_headline_is_named(report):
    with pytest.raises(SystemExit, match=r"README.md is left as it was: no row for exact p-value"):
        report.headlines("", [row for row in headline_rows(report) if "exact" not in row.what])


def test_what_lies_between_the_marks_is_replaced(report, tmp_path):
    path = tmp_path / "PAGE.md"
    path.write_text(f"before\n{report.BEGIN}old\n{report.END}after\n", encoding="utf-8")
    assert report.rewritten(path, "new\n") == f"before\n{report.BEGIN}new\n{report.END}after\n"
    path.write_text(f"before\n{report.BEGIN}old\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"PAGE.md must hold"):
        report.rewritten(path, "new\n")


def test_a_report_writes_page_picture_and_readme(report, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for name, file in (("README", "README.md"), ("PAGE", "page.md"), ("PICTURE", "speed.svg")):
        monkeypatch.setattr(report, name, tmp_path / file)
    for path in (report.README, report.PAGE):
        path.write_text(f"before\n{report.BEGIN}{report.END}after\n", encoding="utf-8")
    limits = report.Limits(4e10, 5e10, 8e9, 4e-8)
    monkeypatch.setattr(report.Limits, "measured", lambda: limits)
    monkeypatch.setattr(report, "SECTIONS", [lambda limits: headline_rows(report)])
    monkeypatch.setattr(report, "tracked", lambda: [report.Tracked("memory", 56.0, "bytes", "64")])
    monkeypatch.setattr(report, "PEERS", ())
    report.main()
    page, readme = written(report, report.PAGE), written(report, report.README)
    assert page.startswith(readme.splitlines()[0] + " The machine's limits")
    assert "| memory | 56 bytes | 64 |" in page
    assert readme.count("\n| ") == 11  # ten rows and their heading
    assert report.PICTURE.exists()


def test_the_readme_has_rows_of_the_page(report):
    text, page = written(report, report.README), written(report, report.PAGE)
    measured, *lines = [line for line in text.splitlines() if line]
    assert page.startswith(measured)
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    found = {}
    for what, *rest in (row[:4] for row in rows if len(row) >= 4):
        found[what, rest[1].partition("(")[2].strip(")")] = rest
    expected = [
        report.markdown([report.ALONE.get(key[0], key[0]), *found[key]]) for key in report.HEADLINES
    ]
    assert lines[2:] == expected
    assert any(line.rsplit(" | ", 1)[1].startswith("0.") for line in lines[2:])  # losses are shown
    assert "nothing compiled yet" in text
