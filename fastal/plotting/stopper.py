"""A stopper's bounds, runs and p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal import _validation as check
from fastal._types import Array
from fastal.plotting.panels import (
    MANY,
    PAPER,
    finish,
    halo,
    marker_size,
    say,
    scale_of,
    split,
    width_of,
)
from fastal.plotting.still import Picture as Still
from fastal.plotting.still import draw_left, draw_means
from fastal.plotting.style import ABOVE, BELOW, OUTSIDE, STOP, require_matplotlib
from fastal.stopping.stopper import Stopper

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastal.stopping.verdict import Verdict

_SIZE = (7.0, 5.0)  # inches

_SHARE = 0.3  # of the height, for the p-value

_MOST_RUNS = 500  # that can be told apart


def plot_stopper(stopper: Stopper, ax: Axes | None = None) -> Axes:
    """Draw why a stopper has stopped, or has not.

    Above: the bounds, with markers and colours for those above and below the median that the
    decision is about (at the stop, or now), a tint behind each of its runs, and the median so far.
    Below: the p-value after each bound, a dot for each that is at or below the level, and the level
    itself. Bounds after the stop are grey.

    Parameters
    ----------
    stopper : Stopper
        It is only read.
    ax : matplotlib axes, optional
        Where to draw. The picture keeps to the place of these axes: the bounds move to its upper
        part, and the p-value is an inset below them (``ax.child_axes[0]``), so that neighbours are
        not covered; a figure with a layout ("constrained" or "tight") makes room for the title.
        ``ax.clear()`` removes both, and the next picture can be drawn. By default a new figure
        with two panels of one x axis; it belongs to pyplot, and the caller shows or closes it.

    Returns
    -------
    matplotlib axes
        Those of the bounds.

    Notes
    -----
    Bounds have a log scale if all are positive, else a linear one; or one that is logarithmic away
    from zero if they differ by orders of magnitude. More than 1,000 bounds are not connected by a
    line, and the tints of more than 500 runs are mixed.

    Examples
    --------
    >>> from fastal import Stopper
    >>> stopper = Stopper()
    >>> stopper.extend([9, 8, 9, 7, 8, 9, 7, 8, 2, 1, 2, 3, 1, 2, 2, 1])
    14
    >>> ax = stopper.plot()  # doctest: +SKIP
    """
    if not isinstance(stopper, Stopper):
        raise TypeError(f"`criterion` must be a Stopper, got {check.short_repr(stopper)}")
    require_matplotlib()
    if ax is None:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=_SIZE, layout="constrained")
        return _draw_alone(_Picture.of(stopper), figure)
    draw_stopper_in_place(stopper, None, ax, "bounds")
    return ax


def draw_stopper_in_place(stopper: Stopper, still: Still | None, ax: Axes, label: str) -> None:
    """Draw in the place of axes, which become the upper panel.

    Parameters
    ----------
    stopper : Stopper
        It is only read.
    still : Picture of what is still to come, optional
        Where it is known: the mean of the last bounds is drawn among them, and the share between
        the bounds and the p-value.
    ax : matplotlib axes
        Where.
    label : str
        Of the x axis.
    """
    picture = _Picture.of(stopper)
    if still is None:
        panels = split(ax, _SHARE)
    else:
        panels = split(ax, _SHARE, 0.9 * _SHARE)
        draw_left(still, panels[0])
    _draw(picture, [ax, *panels], label)
    cramped = False
    if still is not None:
        draw_means(still, ax, scale_of(picture.bounds)[1])
        # Less than an inch for each panel: small names, few ticks, and no legend over the bounds.
        height = ax.get_position(original=True).height * ax.figure.bbox.height
        cramped = _SHARE * height < ax.figure.dpi
    if cramped:
        panels[0].set_yticks([0.1, 1.0])
        for panel in panels:
            panel.yaxis.label.set_fontsize("xx-small")
    elif len(stopper):
        # Bounds fall, as a rule: the upper right is free. Looking for the best place takes long.
        place: Any = "best" if len(stopper) <= MANY else "upper right"
        scale = 5.5 / marker_size(len(stopper))
        ax.legend(loc=place, markerscale=scale, fontsize="x-small", **PAPER)
    say(picture.verdict, ax, width_of(ax), size=8.0)


def save_stopper(stopper: Stopper, path: str | os.PathLike[str]) -> None:
    """Write the picture of `plot_stopper` to a file, without pyplot and without a display.

    Parameters
    ----------
    stopper : Stopper
        It is only read.
    path : path
        File to write; its ending is the format, see `file_formats`.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    _draw_alone(_Picture.of(stopper), figure)
    figure.savefig(path, dpi=150)


class _Picture(NamedTuple):
    """What the picture tells, as numbers."""

    criterion: Stopper
    verdict: Verdict
    bounds: Array
    last: int  # the decision is about bounds[:last]
    medians: Array  # after each bound
    p_values: Array
    levels: Array

    @classmethod
    def of(cls, stopper: Stopper) -> _Picture:
        verdict, trace = stopper.verdict, stopper.trace()
        return cls(
            stopper, verdict, stopper.bounds, verdict.n, trace.medians, trace.p_values, trace.levels
        )


def _draw_alone(picture: _Picture, figure: Figure) -> Axes:
    """Draw in an empty figure, with room for a legend that hides nothing."""
    upper: Axes
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1 - _SHARE, _SHARE))
    _draw(picture, [upper, lower])
    if len(picture.bounds):
        figure.legend(
            *upper.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=5,
            markerscale=5.5 / marker_size(len(picture.bounds)),
            fontsize="small",
            edgecolor="none",
            **PAPER,
        )
    say(picture.verdict, upper, 0.9 * figure.bbox.width, size=10.0)  # as the layout will be
    return upper


def _draw(picture: _Picture, panels: list[Axes], label: str = "bounds") -> None:
    """Draw the bounds in the first panel and the p-values in the last; finish all."""
    _draw_bounds(picture, panels[0])
    _draw_p_values(picture, panels[-1])
    stop = picture.last if picture.verdict.stop else None
    finish(panels, len(picture.bounds), stop, label)


def _draw_bounds(picture: _Picture, ax: Axes) -> None:
    bounds, last = picture.bounds, picture.last
    median = picture.verdict.median
    count = len(bounds)
    n = np.arange(1, count + 1)
    tested = n <= last
    # The upper middle value: the mean of two may be rounded to the lower one.
    cut = np.sort(bounds[:last])[last // 2] if last else median
    above = tested & (bounds >= cut)
    below = tested & (bounds < cut)
    many = count > MANY
    scale, drawable = scale_of(bounds)
    heights, middle = drawable(bounds), float(drawable(np.array(median)))
    dots: dict[str, Any] = {"linestyle": "none", "markeredgewidth": 0}
    dots["markersize"] = marker_size(count)
    dots["rasterized"] = many  # a vector file of so many points would be slow to look at

    _tint_runs(above[:last], ax)
    if count and not many:
        ax.plot(n, heights, color=OUTSIDE, linewidth=0.6, gid="line", zorder=1.8)
    if count:
        medians = drawable(picture.medians)
        (line,) = ax.step(n, medians, where="mid", color="0.25", linewidth=1.1, zorder=2.1)
        line.set(label="median so far", gid="running median")
    for chosen, colour, marker, label in (
        (above, ABOVE, "^", "at or above the median"),
        (below, BELOW, "v", "below the median"),
        (~tested, OUTSIDE, "o", "not tested"),
    ):
        if chosen.any():
            dots |= {"color": colour, "marker": marker, "label": label, "gid": label}
            ax.plot(n[chosen], heights[chosen], **dots)
    if last:
        ends = (0.5, last + 0.5)
        ax.plot(ends, (middle, middle), color=STOP, linewidth=1.0, linestyle=":", zorder=2.1)
        ax.lines[-1].set_gid("median")
    ax.set_yscale(**scale)
    ax.set_ylabel("bound")


def _tint_runs(above: NDArray[np.bool_], ax: Axes) -> None:
    """Lay a tint behind each run, of the colour of its side."""
    from matplotlib.colors import to_rgb

    if not len(above):
        return
    edges = np.concatenate(([0], np.flatnonzero(np.diff(above)) + 1, [len(above)]))
    if len(edges) > _MOST_RUNS:
        # Narrower than a pixel: mix the colours of stretches instead.
        edges = np.linspace(0, len(above), _MOST_RUNS // 2).astype(int)
    starts, widths = edges[:-1], np.diff(edges)
    share = (np.add.reduceat(above, starts, dtype=float) / widths)[:, np.newaxis]
    ax.broken_barh(
        np.column_stack((starts + 0.5, widths)).tolist(),
        (0.0, 1.0),
        transform=ax.get_xaxis_transform(),
        # Paler by mixing with white: PostScript knows no transparency.
        facecolors=1 - 0.13 * (1 - share * to_rgb(ABOVE) - (1 - share) * to_rgb(BELOW)),
        linewidth=0,
        antialiased=False,  # no seams between neighbours
        gid="runs",
        zorder=0.5,
    )


def _draw_p_values(picture: _Picture, ax: Axes) -> None:
    p, levels, last = picture.p_values, picture.levels, picture.last
    count = len(p)
    n = np.arange(1, count + 1)
    lowest = min(picture.verdict.alpha, float(levels.min(initial=1.0)))
    # A p-value may underflow, and after a stop it may keep falling: the level stays in sight.
    floor = max(lowest * 1e-12, 1e-300, min(lowest, float(p[:last].min(initial=1.0))))
    p = np.maximum(p, floor / 100)
    if count:
        single = "." if count == 1 else None  # which a line would not show
        ax.plot(n, p, color=OUTSIDE, linewidth=1.0, gid="all p-values")
        ax.plot(n[:last], p[:last], color="0.25", linewidth=1.2, marker=single, gid="p-values")
    could = n <= (picture.criterion.horizon or count)
    rejected = (p <= levels) & (n <= last) & could
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0}
    dots["markersize"] = 0.75 * marker_size(count)
    ax.plot(n[rejected], p[rejected], color=STOP, gid="rejections", **dots)
    line = np.pad(levels, 1, mode="edge") if count else np.full(2, lowest)
    ends = np.concatenate(([0.5], n, [max(count, 2) + 0.5]))
    ax.plot(ends, line, color=ABOVE, linewidth=1.0, linestyle="--", gid="level")
    ax.set_yscale("log")
    ax.set_ylim(floor / 3, 2.0)
    ax.set_ylabel("p-value")

    level = f"{'level' if picture.criterion.sequential else 'alpha'} = {picture.verdict.alpha:.3g}"
    if picture.criterion.sequential and picture.criterion.horizon is None and count:
        level += f" after {last} bounds"
    note: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small", "va": "bottom"}
    note["path_effects"] = halo()
    ax.annotate(level, (0.5, line[0]), xytext=(3, 1), color=ABOVE, **note)
    limit = picture.criterion.horizon
    if limit is not None and limit <= count:
        ax.axvline(limit, color="0.4", linewidth=0.9, linestyle=":", gid="horizon")
        where = (limit, floor / 3)
        ax.annotate("horizon", where, xytext=(-3, 2), color="0.3", ha="right", **note)
