"""Write the tables of docs/benchmarks.md, their picture, and the README's ten rows of them.

Run it as ``python -m benchmarks.report``.

Takes about ten minutes on a machine that does nothing else; needs the extras ``bench``, ``plot``
and ``scale``. ``python -m benchmarks.figures`` prints every tracked figure instead.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .selection import SECTIONS, Limits, Row, Tracked, tracked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "speed.svg"
BEGIN, END = "<!-- written by benchmarks.report -->\n", "<!-- end of what is written -->\n"

PEERS = ("statsmodels", "sklearn", "distributed", "matplotlib", "mpmath")
FASTER, SLOWER, SHARE = "#2a6f97", "#c1440e", "#8a8a8a"

# The rows that the README shows: what is measured, and against whom. Losses and the time of the
# first compilation belong to them.
HEADLINES = (
    ("one more bound decided at T = 1,000, `Stopper.push`", "statsmodels"),
    ("exact p-value of 500 + 500 values", "sum over `math.comb`"),
    ("every prefix of 10⁶ values decided", "`numpy.argsort`"),
    ("one label at t = 1,000, `GaussianProcess.add`", "scikit-learn, refit"),
    ("one label at t = 200, `LaplaceClassifier.add`", "scikit-learn, refit"),
    ("`learn`, 1,000 labels of 9,000 points", "loop of dgemv"),
    ("a run of `simulate` to its stop, 100 points, two threads", "NumPy loop"),
    ("20,000 runs on Dask, two workers", "two threads"),
    ("a new process, `import fastal` and a push", "`import numpy`"),
    ("the same, nothing compiled yet", "a first fit of scikit-learn"),
)
# Rows that need a name of their own where the row above them is missing.
ALONE = {
    "20,000 runs on Dask, two workers": "20,000 runs of `simulate` on Dask, two workers",
    "the same, nothing compiled yet": "a new process, its first `learn`, nothing compiled yet",
}


def main() -> None:
    """Measure, print, and write all three files."""
    for path in (PAGE, README):  # refuse now, not after ten minutes
        rewritten(path, "")
    missing = [name for name in PEERS if find_spec(name) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} missing: pip install -e '.[bench,plot,scale]'")
    limits = Limits.measured()
    rows = []
    for section in SECTIONS:
        for row in section(limits):
            print(line(row), flush=True)
            rows.append(row)
    others = list(tracked())
    limits_again = Limits.measured()
    written = page(f"{machine()} {limits_in_words(limits, limits_again)}", rows, others)
    print(written)
    PAGE.write_text(rewritten(PAGE, written), encoding="utf-8")
    draw(rows, PICTURE)
    README.write_text(rewritten(README, headlines(machine(), rows)), encoding="utf-8")


def rewritten(path: Path, written: str) -> str:
    """Return the text of a file with another text between its two marks."""
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{path.name} must hold {BEGIN!r} and {END!r} once")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + written + END + rest.partition(END)[2]


def machine() -> str:
    """Return what this was measured on, in words."""
    model = platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        model = found[1].strip() if found else model
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    return (
        f"Measured on {datetime.date.today():%Y-%m-%d} by one run of `python -m benchmarks.report`:"
        f" {model}, {os.cpu_count()} cores, {platform.system()},"
        f" Python {platform.python_version()}, {versions}; one thread unless said."
    )


def limits_in_words(limits: Limits, again: Limits) -> str:
    """Return what the machine can do, measured twice, in words."""

    def span(values: tuple[float, float], scale: float) -> str:
        low, high = sorted(f"{value * scale:.2g}" for value in values)
        return low if low == high else f"{low} to {high}"

    pairs = dict(zip(limits._fields, zip(limits, again, strict=True), strict=True))
    return (
        "The machine's limits, at the beginning and at the end: dgemm"
        f" {span(pairs['dgemm'], 1e-9)} Gflop/s, dgemv {span(pairs['dgemv'], 1e-9)} GB/s from the"
        f" cache, reading memory {span(pairs['read'], 1e-9)} GB/s, an empty Python call"
        f" {span(pairs['call'], 1e9)} ns."
    )


def page(machine: str, rows: list[Row], others: list[Tracked]) -> str:
    """Return the picture and both tables."""
    lines = [
        f"{machine}\n",
        f"![How many times faster than its peer each row is]({PICTURE.name})\n",
        "| what | fastal | peer | times faster | asked for | share of the limit |",
        "|---|---|---|---|---|---|",
        *map(line, rows),
        "",
        "| accuracy, memory, growth, error rates | measured | asked for |",
        "|---|---|---|",
    ]
    for other in others:
        shown = f"{other.measured:.2g}" if other.measured < 10 else f"{other.measured:.0f}"
        lines.append(f"| {other.what} | {shown} {other.unit}".rstrip() + f" | {other.asked} |")
    return "\n".join(lines) + "\n"


def headlines(machine: str, rows: list[Row]) -> str:
    """Return the README's table: the rows of `HEADLINES`, without targets and limits."""
    found = {(row.what, row.peer_name): row for row in rows}
    missing = [what for what, peer in HEADLINES if (what, peer) not in found]
    if missing:
        sys.exit(f"{README.name} is left as it was: no row for {', '.join(missing)}")
    lines = [f"{machine}\n", "| what | fastal | peer | times faster |", "|---|---|---|---|"]
    for key in HEADLINES:
        what, *times = cells(found[key])[:4]
        lines.append(markdown([ALONE.get(what, what), *times]))
    return "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """Return a row as Markdown."""
    return markdown(cells(row))


def markdown(texts: list[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(texts)} |"


def cells(row: Row) -> list[str]:
    """Return the cells of a row."""
    peer = gain = asked = share = ""
    if row.peer is not None:
        peer = f"{seconds(row.peer)} ({row.peer_name})"
        gain = digits(row.peer / row.ours)
    if row.asked is not None:
        asked = digits(row.asked)
    if row.possible is not None:
        share = f"{digits(100 * row.possible / row.ours)} % ({row.limit})"
    return [row.what, seconds(row.ours), peer, gain, asked, share]


def seconds(value: float) -> str:
    """Return a time with its unit, two digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{digits(value / size)} {unit}"
    return f"{digits(value / 1e-9)} ns"


def digits(value: float) -> str:
    """Return a number with two digits, or all those before the point."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def draw(rows: list[Row], path: Path) -> None:
    """Draw how many times faster each row is, and its share of the limit."""
    import matplotlib
    from matplotlib import pyplot

    compared = [row for row in rows if row.peer is not None]
    # the same numbers give the same file, and the text stays text
    settings = {"svg.hashsalt": "fastal", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(settings):
        figure, (left, right) = pyplot.subplots(
            1, 2, sharey=True, width_ratios=[2, 1], layout="constrained",
            figsize=(9.5, 0.5 + 0.27 * len(compared)),
        )  # fmt: skip
        _draw_gains(left, compared)
        _draw_shares(right, compared)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _draw_gains(ax: Axes, rows: list[Row]) -> None:
    for i, row in enumerate(rows):
        assert row.peer is not None
        gain = row.peer / row.ours
        colour = FASTER if gain >= 1 else SLOWER
        ax.barh(i, gain - 1, left=1, color=colour, height=0.6)
        ax.annotate(
            f"{digits(gain)} x  {row.peer_name}".replace("`", ""),
            (max(gain, row.asked or 1, 1), i), (4, 0), textcoords="offset points", va="center",
            color=colour, fontsize=8,
        )  # fmt: skip
        if row.asked is not None:
            ax.plot([row.asked] * 2, [i - 0.4, i + 0.4], color="black", linewidth=1)
    ax.set_xscale("log")
    ax.set_xlim(0.1, 1e7)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_yticks(range(len(rows)), [row.what.replace("`", "") for row in rows], fontsize=8)
    ax.invert_yaxis()
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set_xlabel("times faster than the peer named (black mark: asked for)")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_shares(ax: Axes, rows: list[Row]) -> None:
    for i, row in enumerate(rows):
        if row.possible is None:
            continue
        share = 100 * row.possible / row.ours
        ax.barh(i, share, color=SHARE, height=0.6)
        ax.annotate(
            f"{digits(share)} %  {row.limit}", (share, i), (4, 0), textcoords="offset points",
            va="center", fontsize=8,
        )  # fmt: skip
    ax.set_xlim(0, 250)
    ax.set_xticks([0, 100])
    ax.axvline(100, color="black", linewidth=0.8, linestyle=":")
    ax.set_xlabel("% of the machine's limit")
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
