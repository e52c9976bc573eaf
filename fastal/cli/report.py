"""--report: a campaign as one page that opens everywhere, without a network and without scripts."""

from __future__ import annotations

import html
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from fastal._options import short_repr
from fastal.cli.errors import UserError
from fastal.cli.output import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from xml.etree.ElementTree import Element

    from matplotlib.axes import Axes

    from fastal._types import Array
    from fastal.learning.run import Run


class ReportTable(NamedTuple):
    """A table as it is to be read; the first cell of a row says what the row is about."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class ReportContent(NamedTuple):
    """What a page says. Texts are plain: the page escapes them."""

    title: str
    verdict: str  # what to do, in one or two sentences
    warnings: Sequence[str]
    facts: Sequence[tuple[str, str]]  # label and text
    target: str  # name of the column
    source: str  # name of the file with the table; its folder is left out
    run: Run | None  # None: there is nothing to draw yet
    next_rows: ReportTable | tuple[Sequence[str], Sequence[Sequence[str]]] | None = None
    next_caption: str = "The rows to label next"
    rules: ReportTable | None = None  # what several rules say of the same labels
    used: int | None = None  # labels that predictions are made from; None: all of the run
    label_names: Sequence[str] | None = None  # of the run's labels, in order: "line 17"
    unit: tuple[float, float] = (0.0, 1.0)  # target = unit[0] + unit[1] * label of the run


def check_report(path: str, table: str | None = None) -> None:
    """Raise now for what would make the page fail at the end, or write over the table."""
    option = "--report"
    try:
        from fastal.plotting.style import require_matplotlib

        require_matplotlib()
    except ImportError as error:
        raise UserError(f"{option}: {error}") from None
    if not path.lower().endswith((".html", ".htm")):
        raise UserError(f"{option}: {short_repr(path)} must end with .html or .htm")
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder):
        raise UserError(f"{option}: {short_repr(path)} is a directory, or in none that exists")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"{option}: {short_repr(path)} is not a regular file")
    if table is not None and os.path.exists(path) and os.path.samefile(path, table):
        raise UserError(f"{option}: {short_repr(path)} is the table itself")
    if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
        raise UserError(f"{option}: {short_repr(path)} cannot be written: Permission denied")


def write_report(path: str | os.PathLike[str], content: ReportContent) -> None:
    """Write a page over an older one, all of it or nothing.

    Parameters
    ----------
    path : path
        File to write.
    content : ReportContent
        What to say. The same content gives the same bytes.
    """
    # Names of strangers may hold what no encoding has.
    text = report_page(content).encode("utf-8", "replace")
    write_whole(path, text)


# the page ----------------------------------------------------------------------------------------


def report_page(content: ReportContent) -> str:
    """Return the page as text.

    Parameters
    ----------
    content : ReportContent
        What to say.

    Returns
    -------
    str
        HTML 5 with its style and pictures inside.
    """
    from fastal import __version__

    parts = [_verdict(content), _next_rows(content), *_sections(content)]
    source = os.path.basename(content.source)
    made = f"Made by fastal {__version__} from {source}, target {content.target}."
    body = "\n".join(part for part in parts if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{_safe(content.title)}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
<h1>{_safe(content.title)}</h1>
{body}
</main>
<footer><p>{_safe(made)}</p></footer>
</body>
</html>
"""


# Whatever a name of a column may try: nothing is loaded, nothing runs.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

# Pictures are made for white paper, and stay on it in the dark. Tables that are too wide scroll by
# themselves, so that the page never does.
STYLE = """\
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #555; --back: #fff; --line: #ccc;
  --card: #f2f6fa; --edge: #0072b2; --warn: #fdf1e7; --warned: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #b5b5b5; --back: #16181b;
  --line: #4a4d52; --card: #1f2b36; --edge: #56b4e9; --warn: #37281c; --warned: #f0883e; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--back); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere; }
main, footer { max-width: 70rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1.2rem 0 0.8rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2rem 0 0.5rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
.verdict { background: var(--card); border-left: 0.3rem solid var(--edge); padding: 0.6rem 1rem;
  font-size: 1.1rem; max-width: none; }
.warnings { list-style: none; margin: 0.5rem 0; padding: 0.5rem 1rem; background: var(--warn);
  border-left: 0.3rem solid var(--warned); }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: 0.3rem 1rem;
  margin: 1rem 0; }
dt { color: var(--soft); }
dd { margin: 0; max-width: 46rem; }
.pair { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); }
figure { margin: 0.5rem 0 1rem; }
figure svg { display: block; width: 100%; max-width: 34rem; height: auto; background: #fff;
  border: 1px solid var(--line); border-radius: 0.3rem; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { color: var(--soft); font-size: 0.95rem; margin-top: 0.4rem; max-width: 34rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: min(100%, 24rem); overflow-wrap: normal;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: 0.4rem; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 1.2rem 0.25rem 0;
  border-bottom: 1px solid var(--line); max-width: 24rem; }
th { font-weight: 600; }
td.number, th.number { text-align: right; white-space: nowrap; }
footer { color: var(--soft); font-size: 0.9rem; padding-bottom: 2rem; margin-top: 2rem; }
@media (max-width: 32rem) { dl { display: block; } dd { margin-bottom: 0.5rem; }
  th, td { padding-right: 0.7rem; } }
@media print { :root { --ink: #000; --soft: #333; --back: #fff; --line: #999; --card: #fff;
  --edge: #000; --warn: #fff; --warned: #000; font-size: 10pt; }
  figure, tr, .verdict, .warnings { break-inside: avoid; } h2, caption { break-after: avoid; }
  .scroll { overflow: visible; } .pair { display: block; } figure svg { max-width: 12cm; } }
"""

# What is in no HTML, or turns the direction of what follows.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def _safe(text: object) -> str:
    """Return a text as HTML shows it, whatever is in it."""
    return html.escape(UNPRINTABLE.sub("\ufffd", str(text)), quote=True)


def _verdict(content: ReportContent) -> str:
    parts = [f'<p class="verdict">{_safe(_sentence(content.verdict))}</p>']
    if content.warnings:
        items = "".join(f"<li>Warning: {_safe(text)}</li>\n" for text in content.warnings)
        parts.append(f'<ul class="warnings">\n{items}</ul>')
    if content.facts:
        lines = "".join(
            f"<dt>{_safe(label)}</dt><dd>{_safe(text)}</dd>\n" for label, text in content.facts
        )
        parts.append(f"<dl>\n{lines}</dl>")
    return "\n".join(parts)


def _next_rows(content: ReportContent) -> str:
    if content.next_rows is None:
        return ""
    table = ReportTable(*content.next_rows)
    if not table.rows:
        return ""
    return f"<h2>Label next</h2>\n{_table(table, content.next_caption)}"


def _sections(content: ReportContent) -> list[str]:
    """Return what a run has to show."""
    run = content.run
    rules = ""
    if content.rules is not None:
        caption = (
            "Where each rule stops on the same labels. Error: root mean square on the rows held "
            f"out, in units of {content.target}. Unused: what the labels after the stop brought, "
            "of all that those after the first did"
        )
        rules = f"<h2>Rules side by side</h2>\n{_table(content.rules, caption)}"
    if run is None:
        return [rules]
    from matplotlib import rcParams, style

    known = {name: value for name, value in PICTURES.items() if name in rcParams}
    with style.context(["default", known]):
        moves = [*_still(run), *_refits(run)]
        return [_side_by_side(moves), rules, _side_by_side(_predictions(content, run))]


def _side_by_side(sections: list[str]) -> str:
    """Return sections in two columns where there is room, in one on a phone."""
    if not sections:
        return ""
    inside = "\n".join(f"<section>\n{section}\n</section>" for section in sections)
    return f'<div class="pair">\n{inside}\n</div>'


def _table(table: ReportTable, caption: str) -> str:
    """Return a table; columns of numbers stand to the right."""
    rows = [[str(cell) for cell in row] for row in table.rows]
    width = len(table.header)
    if any(len(row) != width for row in rows):
        raise ValueError(f"rows of a table must have {width} cells, as its header has")
    numbers = [all(NUMBER.fullmatch(row[i]) for row in rows) for i in range(width)]
    kinds = [' class="number"' if number else "" for number in numbers]
    head = "".join(
        f'<th scope="col"{kind}>{_safe(cell)}</th>'
        for cell, kind in zip(table.header, kinds, strict=True)
    )
    lines = []
    for row in rows:
        cells = [f'<th scope="row"{kinds[0]}>{_safe(row[0])}</th>'] if row else []
        cells += [
            f"<td{kind}>{_safe(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_safe(caption)}">\n<table>\n'
        f"<caption>{_safe(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{''.join(lines)}</tbody>\n</table>\n</div>"
    )


NUMBER = re.compile(r"\s*(?:[-+\u2212]?[0-9][0-9.,' \u202f]*(?:[eE][-+]?[0-9]+)?(?: ?%)?|-)\s*")


# the sections ------------------------------------------------------------------------------------


def _still(run: Run) -> list[str]:
    """Return the bounds with what is still to come and, with a test set, the errors."""
    from fastal.plotting.run import plot_run
    from fastal.stopping.stopper import Stopper

    if not len(run.bounds):
        return []
    by_runs = isinstance(run.criterion, Stopper)
    upper = _axes(5.4 if by_runs else 4.6)
    axes = [upper] if run.errors is None else [upper, _axes(3.4)]
    plot_run(run, axes)
    upper.set_title("", loc="left")  # the page has said it
    text = _left_in_words(run)
    caption = (
        "Above: how much each label moved the model (its bound), and the mean of the last ones. "
        f"{'In the middle' if by_runs else 'Below'}: how much of all movement is still to come, if "
        "labels go on as the last ones did."
    )
    caption += " Below: the p-value of the runs test." if by_runs else ""
    told = f"The bounds of {len(run.bounds)} labels, and what is still to come. {text}"
    sections = [_section("Still to come", text, _picture(upper, "still", told, caption))]
    if run.errors is not None:
        told = _sentence(axes[1].get_title(loc="left").replace("\n", " "))
        axes[1].set_title("", loc="left")
        caption = (
            "Expected loss: minus the logarithm of the density that the model gives to labels it "
            "has not seen. Less is better."
        )
        drawn = _picture(axes[1], "errors", f"The error after each label. {told}", caption)
        sections.append(_section("Error on the rows held out", told, drawn))
    return sections


def _left_in_words(run: Run) -> str:
    """Say how much is still to come, as the picture does."""
    from fastal.plotting.run import share_left
    from fastal.stopping.verdict import left_after

    return left_after(share_left(run), run.n_labels, run.stopped_at)


def _predictions(content: ReportContent, run: Run) -> list[str]:
    """Return predictions against labels, each from all other labels."""
    import numpy as np

    from fastal.criteria import leave_one_out
    from fastal.plotting.predictions import plot_predictions

    used = run.n_labels if content.used is None else content.used
    if used < 3 or run.prior is None:
        return []
    gp = run.gp
    if used < run.n_labels:
        gp = gp.copy(quiet=True)
        gp.rewind(used)
    middle, width = content.unit
    try:
        told = leave_one_out(gp)
    except np.linalg.LinAlgError as error:  # labels of the same point with hardly any noise
        return [_section("Predictions against labels", f"Not computed: {error}.", "")]
    y, mean, sd = middle + width * told.y, middle + width * told.mean, width * np.sqrt(told.var)
    within = told.share_within()
    text = (
        f"Each of {used} labels predicted from all the others: the root mean square error is "
        f"{width * told.rmse:.3g} in units of {content.target}, where the labels themselves have a "
        f"standard deviation of {width * told.y.std():.3g}. {100 * within:.0f} % of them lie "
        "within two standard deviations of their prediction; about 95 % do where the model suits. "
        "Labels are asked for where the model is least sure: those it was not asked for are easier."
    )
    ax = _axes(4.6)
    plot_predictions(y, mean, sd, ax)
    caption = (
        "On the line, prediction and label agree. Bars are two standard deviations up and down; "
        "diamonds are labels further off."
    )
    drawn = _picture(ax, "predictions", f"Predictions against labels. {text}", caption)
    sections = [_section("Predictions against labels", text, drawn)]
    if content.label_names is not None:
        far = _far_labels(content.label_names, y, mean, sd)
        caption = "The labels furthest off, in standard deviations of their predictions"
        text = "A wrong label would be among these. So is one where the target jumps."
        sections.append(_section("Labels that surprise", text, _table(far, caption)))
    return sections


FAR_LABELS = 8


def _far_labels(names: Sequence[str], y: Array, mean: Array, sd: Array) -> ReportTable:
    import numpy as np

    off = (y - mean) / sd
    rows = [
        [str(names[i]), f"{y[i]:.5g}", f"{mean[i]:.5g}", f"{sd[i]:.2g}", f"{off[i]:+.1f}"]
        for i in np.argsort(-np.abs(off), kind="stable")[:FAR_LABELS].tolist()
    ]
    return ReportTable(["row", "label", "prediction", "its sd", "off by"], rows)


def _refits(run: Run) -> list[str]:
    """Return the course of the hyper-parameters."""
    if not run.refits:
        return []
    from fastal.plotting.refits import plot_refits, refits_in_words

    axes = _axes(4.6, rows=2)
    plot_refits(run, axes)
    axes[0].set_title("", loc="left")
    text = _sentence(refits_in_words(run))
    caption = (
        "Above: the length scale of each fit, the distance over which the model takes inputs for "
        "alike. Below: noise and function as standard deviations, in units of the target."
    )
    drawn = _picture(axes[0], "refits", f"The course of the hyper-parameters. {text}", caption)
    return [_section("Course of the hyper-parameters", text, drawn)]


def _section(title: str, text: str, inside: str) -> str:
    said = f"<p>{_safe(text)}</p>\n" if text else ""
    return f"<h2>{title}</h2>\n{said}{inside}"


def _sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


# pictures ----------------------------------------------------------------------------------------

# Letters as outlines: they look the same wherever the page is opened. Older releases of Matplotlib
# do not know all of them.
PICTURES: dict[str, Any] = {"svg.fonttype": "path", "svg.hashsalt": "fastal", "svg.id": None}

WIDTH = 4.6  # inches: on a phone's screen letters are then as large as in print


def _axes(height: float, rows: int = 1) -> Any:
    """Return the axes of a new figure that no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained").subplots(rows, 1)


def _picture(ax: Axes, name: str, told: str, caption: str) -> str:
    """Return a figure as part of the page; `told` is for those who do not see it."""
    import io
    from xml.etree import ElementTree

    if (legend := ax.get_legend()) is not None:
        for text in legend.get_texts():
            text.set_fontsize("small")
    file = io.BytesIO()
    nothing = {"Date": None, "Creator": None, "Type": None, "Format": None}
    ax.figure.savefig(file, format="svg", metadata=nothing)  # type: ignore[union-attr]
    root = ElementTree.fromstring(file.getvalue())
    _inline(root, name)
    root.attrib = {"viewBox": root.get("viewBox", ""), "role": "img"}
    root.set("aria-label", UNPRINTABLE.sub("\ufffd", told))
    drawn = ElementTree.tostring(root, encoding="unicode")
    return f"<figure>\n{drawn}\n<figcaption>{_safe(caption)}</figcaption>\n</figure>"


REFERENCE = re.compile(r"url\(#([^)]*)\)")


def _inline(root: Element, name: str) -> None:
    """Make an SVG file part of a page: no name spaces, no style of its own, ids of its own."""
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
    named: set[str] = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "href" and value.startswith("#"):
                named.add(value[1:])
            named.update(REFERENCE.findall(value))
    rename: Callable[[re.Match[str]], str] = lambda found: f"url(#{name}-{found[1]})"  # noqa: E731
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                if value in named:
                    element.set(key, f"{name}-{value}")
                else:
                    del element.attrib[key]
            elif key == "href" and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            else:
                element.set(key, REFERENCE.sub(rename, value))


def _local(name: str) -> str:
    return name.rpartition("}")[2]
