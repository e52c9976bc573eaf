"""The course of the hyper-parameters over the labels, to see whether they still move."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fastal.plotting.panels import NARROW, PAPER, fill, halo, marker_size, width_of
from fastal.plotting.style import ABOVE, BELOW, MEAN, OUTSIDE, require_matplotlib
from fastal.stopping.verdict import scale_course

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from fastal.learning.run import Run

_SIZE = (7.0, 5.0)  # inches

# How near an edge of the search must be to the length scales to be drawn, as a factor.
NEAR = 1.5


def plot_refits(run: Run, axes: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
    """Draw the course of the hyper-parameters over the labels.

    Above: the length scale after each fit, on a log scale, with the edges of the search where they
    are near. Below: the noise and the function, as standard deviations in units of y. A fit that
    confirms nothing is hollow: a square at an edge of the search, a cross where it failed and the
    values are those of the fit before. The sentence above says whether the length scale still
    moves, by more than 20 % over the last three fits.

    Parameters
    ----------
    run : Run
        With refits; it is only read.
    axes : sequence of matplotlib axes, optional
        Two, for the length scale, and for noise and function. By default a new figure; it belongs
        to pyplot, and the caller shows or closes it.

    Returns
    -------
    tuple of matplotlib axes
        The two.

    Examples
    --------
    >>> from fastal import MovementBelow, learn
    >>> from fastal.datasets import artificial
    >>> X, y = artificial(n=50)
    >>> run = learn(X, y, criterion=MovementBelow(0.05), seed=0)
    >>> axes = run.plot_refits()  # doctest: +SKIP
    """
    _check(run)
    require_matplotlib()
    if axes is None:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=_SIZE, layout="constrained")
        places: list[Any] = list(figure.subplots(2, 1))
    else:
        places = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(places) != 2:
        raise ValueError(f"`axes` must be 2 axes, got {len(places)}")
    upper, lower = places
    _draw_scale(run, upper)
    _draw_deviations(run, lower)
    for ax in places:
        _finish(run, ax)
    lower.set_xlabel("labels")
    upper.tick_params(labelbottom=False)
    size = 9.0 if width_of(upper) >= NARROW * upper.figure.dpi else 8.0
    upper.set_title(
        fill(refits_in_words(run), upper, width_of(upper), size), fontsize=size, loc="left"
    )
    return upper, lower


def save_refits(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the picture of `plot_refits` to a file, without pyplot and without a display.

    Parameters
    ----------
    run : Run
        With refits; it is only read.
    path : path
        File to write; its ending is the format.
    """
    _check(run)
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    plot_refits(run, figure.subplots(2, 1))
    figure.savefig(path, dpi=150)


def refits_in_words(run: Run) -> str:
    """Say whether the length scale still moves.

    Parameters
    ----------
    run : Run
        With refits.

    Returns
    -------
    str
        One sentence, and another if the last fit confirms nothing.
    """
    _check(run)
    last = run.refits[-1]
    good = [fit.lengthscale for fit in run.refits if fit.fitted]
    return scale_course(good, last.lengthscale, last.n_labels, last.fitted, last.at_edge)


def _check(run: Run) -> None:
    if not run.refits:
        raise ValueError(
            "`run` has no refits: its hyper-parameters were given, or it has too few labels for a "
            "first fit"
        )


def _draw_scale(run: Run, ax: Axes) -> None:
    fits = run.refits
    n = [fit.n_labels for fit in fits]
    scales = np.array([fit.lengthscale for fit in fits])
    ax.set_yscale("log")
    _draw_course(run, ax, n, scales, BELOW, "length scale")
    low, high = scales.min(), scales.max()
    # At least a factor of two: small changes are to look small.
    room = max(1.15, math.sqrt(2.0 / (high / low)) if high < 2 * low else 1.15)
    shown = [low / room, high * room]
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small", "color": "0.3"}
    for edge, lower in zip(run.search_box or (), (True, False), strict=False):
        if not low / NEAR <= edge <= high * NEAR:
            continue
        ax.axhline(edge, color=OUTSIDE, linewidth=1.2, linestyle="--", gid="edge", zorder=1.5)
        where: dict[str, Any] = {"xytext": (-4, 3 if lower else -3), "ha": "right"}
        where["va"] = "bottom" if lower else "top"
        place: Any = ax.get_yaxis_transform()
        ax.annotate(
            "edge of the search", (1.0, edge), xycoords=place, path_effects=halo(), **where, **words
        )
        shown = [min(shown[0], edge / 1.1), max(shown[1], edge * 1.1)]
    ax.set_ylim(*shown)
    _plain_ticks(ax)
    ax.set_ylabel("length scale")
    if any(fit.at_edge for fit in fits):  # else the marks need no key
        ax.legend(*_marks(ax), loc="best", fontsize="small", edgecolor="none", ncols=3, **PAPER)


def _marks(ax: Axes) -> tuple[list[Any], list[str]]:
    handles, labels = ax.get_legend_handles_labels()
    return handles[1:], labels[1:]  # without the line


def _draw_deviations(run: Run, ax: Axes) -> None:
    fits = run.refits
    n = [fit.n_labels for fit in fits]
    courses = (
        (np.sqrt([fit.amplitude for fit in fits]), MEAN, "function"),
        (np.sqrt([fit.noise for fit in fits]), ABOVE, "noise"),
    )
    ax.set_yscale("log")
    for values, colour, name in courses:
        _draw_course(run, ax, n, values, colour, name)
    everything = np.concatenate([values for values, _, _ in courses])
    low, high = everything.min(), everything.max()
    room = max(1.3, math.sqrt(2.0 / (high / low)) if high < 2 * low else 1.3)
    ax.set_ylim(low / room, high * room)
    _plain_ticks(ax)
    ax.set_ylabel("sd, units of y")
    legend: dict[str, Any] = {"fontsize": "small", "edgecolor": "none", "ncols": 2, **PAPER}
    ax.legend(loc="best", **legend)


def _draw_course(run: Run, ax: Axes, n: Any, values: Any, colour: str, name: str) -> None:
    """Draw one line with a marker per fit: full, hollow square at an edge, cross if it failed."""
    size = marker_size(len(n))
    n, values = np.asarray(n), np.asarray(values)
    failed = np.array([not fit.fitted for fit in run.refits])
    edge = np.array([fit.at_edge for fit in run.refits]) & ~failed
    ax.plot(n, values, color=colour, linewidth=1.6, label=name, gid=name, zorder=2.0)
    dots: dict[str, Any] = {"linestyle": "none", "color": colour, "zorder": 2.5, "markersize": size}
    looks: tuple[tuple[Any, str, dict[str, Any]], ...] = (
        (~failed & ~edge, "fit", {"marker": "o", "markeredgewidth": 0}),
        (edge, "at the edge", {"marker": "s", "markerfacecolor": "white", "markeredgewidth": 1.2}),
        (failed, "failed", {"marker": "x", "markeredgewidth": 1.5}),
    )
    for chosen, what, look in looks:
        if chosen.any():
            look["label"] = f"_{name}" if colour != BELOW else what  # said once, above
            ax.plot(n[chosen], values[chosen], gid=f"{name}: {what}", **dots, **look)


def _finish(run: Run, ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    n = [fit.n_labels for fit in run.refits]
    ax.set_xlim(0, max(run.n_labels, n[-1]) * 1.03 + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    ax.grid(False)
    ax.set_facecolor(PAPER["facecolor"])


def _plain_ticks(ax: Axes) -> None:
    """Write 0.2, 0.5 and 1 at the axis, not powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = ax.get_ylim()
    decades = math.log10(high / low)
    if decades > 4:
        return
    subs = (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    ax.yaxis.set_major_locator(LogLocator(subs=subs))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
