"""The report that writes the README's tables of speed: its words and its picture."""

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
    page = report.page(report.machine(limits, limits), rows, [other])
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


def test_the_readme_holds_what_was_written(report):
    text = report.README.read_text(encoding="utf-8")
    written = text.partition(report.BEGIN)[2].partition(report.END)[0]
    assert "| what | fastal | peer | times faster | asked for | share of the limit |" in written
    assert "by one run of `python -m benchmarks.report`" in written
    assert report.PICTURE.exists()
