"""What is still to come: the bounds with the mean of the last ones, and below them the share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from fastal import _validation as check
from fastal._types import Array
from fastal.plotting.panels import (
    MANY,
    NARROW,
    PAPER,
    finish,
    halo,
    marker_size,
    note,
    say,
    scale_of,
    split,
    width_of,
)
from fastal.plotting.style import ABOVE, BELOW, MEAN, OUTSIDE, STOP, require_matplotlib
from fastal.runs.movement import ROUNDING
from fastal.stopping.still import MovementBelow
from fastal.stopping.verdict import percent

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from fastal.stopping.verdict import Verdict

_SIZE = (7.0, 5.0)  # inches

_SHARE = 0.4  # of the height, for what is still to come


def plot_still(criterion: MovementBelow, ax: Axes | None = None) -> Axes:
    """Draw how much a MovementBelow expects to be still to come, and why.

    Above: the bounds on a log scale, with the mean of the last ones; bounds of 0 are triangles at
    the lower edge. Below: the share of all movement that is still to come, on a log scale, with the
    share that was asked for. A dot says what is left at the stop, or now; the upright line through
    it is the range by the scatter of the last bounds. Bounds after the stop are grey.

    Parameters
    ----------
    criterion : MovementBelow
        It is only read.
    ax : matplotlib axes, optional
        Where to draw. The picture keeps to the place of these axes, as that of `plot_stopper` does;
        what is still to come is ``ax.child_axes[0]``. By default a new figure with two panels of
        one x axis; it belongs to pyplot, and the caller shows or closes it.

    Returns
    -------
    matplotlib axes
        Those of the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import MovementBelow
    >>> criterion = MovementBelow(0.05, horizon=200)
    >>> criterion.extend(5.0 / np.arange(1, 101) ** 2)
    48
    >>> ax = criterion.plot()  # doctest: +SKIP
    """
    picture = Picture.of(criterion)
    require_matplotlib()
    if ax is None:
        from matplotlib import pyplot

        return _draw_alone(picture, pyplot.figure(figsize=_SIZE, layout="constrained"))
    draw_in_place(picture, ax)
    return ax


def save_still(criterion: MovementBelow, path: str | os.PathLike[str]) -> None:
    """Write the picture of `plot_still` to a file, without pyplot and without a display.

    Parameters
    ----------
    criterion : MovementBelow
        It is only read.
    path : path
        File to write; its ending is the format, see `file_formats`.
    """
    picture = Picture.of(criterion)
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    _draw_alone(picture, figure)
    figure.savefig(path, dpi=150)


class Picture(NamedTuple):
    """What the picture tells, as numbers."""

    verdict: Verdict
    bounds: Array
    means: Array  # of the last bounds, after each
    left: Array  # what is still to come, after each
    stop: int | None  # number of bounds at the stop
    at_end: float  # what is left at the stop, or now
    share: float | None  # that was asked for
    range: tuple[float, float] | None  # of `at_end`
    horizon: int | None

    @classmethod
    def of(cls, criterion: MovementBelow) -> Self:
        """Return the picture of a MovementBelow."""
        if not isinstance(criterion, MovementBelow):
            raise TypeError(
                f"`criterion` must be a MovementBelow, got {check.short_repr(criterion)}"
            )
        verdict, bounds, stop = criterion.verdict, criterion.bounds, criterion.stopped_at
        means, left = criterion.trace()
        return cls(
            verdict, bounds, means, left, stop, verdict.left, float(criterion.share),
            (verdict.low, verdict.high), verdict.horizon,
        )  # fmt: skip


def draw_in_place(picture: Picture, ax: Axes, label: str = "bounds") -> None:
    """Draw in the place of axes, which become the upper panel; label : of the x axis."""
    (lower,) = split(ax, _SHARE)
    _draw(picture, ax, lower, label)
    if len(picture.bounds):
        # Bounds fall, as a rule: the upper right is free. Looking for the best place takes long.
        place: Any = "best" if len(picture.bounds) <= MANY else "upper right"
        small = width_of(ax) < NARROW * ax.figure.dpi
        size = "xx-small" if small else "x-small"
        _thicken(ax.legend(loc=place, fontsize=size, **_legend(picture)))
    say(picture.verdict, ax, width_of(ax), size=8.0)


def _draw_alone(picture: Picture, figure: Figure) -> Axes:
    """Draw in an empty figure, with room for a legend that hides nothing."""
    upper: Axes
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1 - _SHARE, _SHARE))
    _draw(picture, upper, lower, "bounds")
    if len(picture.bounds):
        handles, labels = upper.get_legend_handles_labels()
        style: dict[str, Any] = {"ncols": 5, "fontsize": "small", "edgecolor": "none"}
        style |= _legend(picture)
        _thicken(figure.legend(handles, labels, loc="outside lower center", **style))
    say(picture.verdict, upper, 0.9 * figure.bbox.width, size=9.0)  # as the layout will be
    return upper


def _legend(picture: Picture) -> dict[str, Any]:
    return {"markerscale": 5.0 / marker_size(len(picture.bounds)), **PAPER}


def _thicken(legend: Legend) -> None:
    """Let lines be seen in the legend that are thin in the picture of many bounds."""
    for line in legend.get_lines():
        line.set_linewidth(max(1.4, line.get_linewidth()))


def _draw(picture: Picture, upper: Axes, lower: Axes, label: str) -> None:
    _draw_bounds(picture, upper)
    draw_left(picture, lower)
    finish([upper, lower], len(picture.bounds), picture.stop, label)


def _draw_bounds(picture: Picture, ax: Axes) -> None:
    bounds, count = picture.bounds, len(picture.bounds)
    n = np.arange(1, count + 1)
    after = n > (count if picture.stop is None else picture.stop)
    zero = np.zeros(count, dtype=bool)
    if (bounds < ROUNDING).any():
        scale, drawable = scale_of(bounds)
    else:
        zero = bounds <= 0
        scale, drawable = scale_of(bounds[~zero])
    heights = drawable(np.where(zero, np.nan, bounds))
    dots: dict[str, Any] = {"linestyle": "none", "markeredgewidth": 0, "marker": "o"}
    dots |= {"markersize": 0.8 * marker_size(count)}
    dots["rasterized"] = count > MANY  # a vector file of so many would be slow to look at

    if 0 < count <= MANY:
        ax.plot(n, heights, color=OUTSIDE, linewidth=0.6, gid="line", zorder=1.8)
    for chosen, colour, name in ((~after, BELOW, "bound"), (after, OUTSIDE, "after the stop")):
        if (chosen & ~zero).any():
            there = chosen & ~zero
            ax.plot(n[there], heights[there], color=colour, label=name, gid=name, **dots)
    ax.set_yscale(**scale)
    if not count or zero.all():
        ax.set_yticks([])
        ax.minorticks_off()
    if zero.any():
        # A log scale has no place for them: triangles on its lower edge.
        dots |= {"marker": "v", "markerfacecolor": "white", "markeredgewidth": 0.8}
        dots |= {"markersize": max(3.0, marker_size(count)), "clip_on": False, "zorder": 3}
        dots |= {"transform": ax.get_xaxis_transform(), "label": "bound of 0"}
        ax.plot(n[zero], np.zeros(zero.sum()), color=BELOW, gid="zero", **dots)
        if zero.all():
            note(ax, "all bounds are 0")
    draw_means(picture, ax, drawable)
    ax.set_ylabel("bound")


def line_width(count: int, usual: float) -> float:
    """Return a width for a line through so many values: many scatter, and would be a blot."""
    return usual if count <= MANY else max(0.3, usual * (MANY / count) ** 0.4)


def draw_means(picture: Picture, ax: Axes, drawable: Any) -> None:
    """Draw the mean of the last bounds; drawable brings extreme values to the ends of the scale."""
    means = picture.means
    if ax.get_yscale() == "log":
        means = np.where(means > 0, means, np.nan)
    if np.isnan(means).all():
        return
    n = np.arange(1, len(means) + 1)
    single = np.isfinite(means).sum() == 1  # which a line would not show
    ax.plot(
        n,
        drawable(means),
        color=MEAN,
        linewidth=line_width(len(means), 2.0),
        marker="_" if single else None,
        label="mean of the last bounds",
        gid="mean",
        zorder=2.6,
        path_effects=halo() if len(means) <= MANY else None,
    )


def draw_left(picture: Picture, ax: Axes) -> None:
    """Draw what is still to come after each bound, the share asked for, and what is left."""
    left, share = picture.left, picture.share
    count = len(left)
    n = np.arange(1, count + 1)
    last = count if picture.stop is None else picture.stop
    there = np.isfinite(left)
    floor = _floor(picture)
    low = floor / 1.15
    heights = np.maximum(left, low)
    if there.any():
        single = "." if there.sum() == 1 else None  # which a line would not show
        ax.plot(n, heights, color=OUTSIDE, linewidth=line_width(count, 1.0), gid="all left")
        line: dict[str, Any] = {"color": BELOW, "linewidth": line_width(count, 1.8), "gid": "left"}
        ax.plot(n[:last], heights[:last], marker=single, **line)
    ax.set_yscale("log")
    # A share that has not fallen yet, at the left edge: what is said of it stands above.
    early = last < 0.25 * count and picture.at_end > 0.3
    top = (1 / low) ** 0.3 if early else 1.5
    ax.set_ylim(low, top)
    ax.set_ylabel("still to come")
    _percent_ticks(ax, floor)
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small"}
    words["path_effects"] = halo()
    if share is not None:
        ax.axhline(share, color=ABOVE, linewidth=1.2, linestyle="--", gid="share")
        asked = f"{percent(share, short=True)} asked"
        # On the side where the curve is not.
        side, away, end = ("right", -4, 1.0) if last < 0.4 * count else ("left", 4, 0.0)
        place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "xytext": (away, 2)}
        ax.annotate(asked, (end, share), color=ABOVE, va="bottom", ha=side, **place, **words)
    if picture.horizon is not None and picture.horizon <= count:
        ax.axvline(picture.horizon, color="0.4", linewidth=0.9, linestyle=":", gid="horizon")
        near = picture.horizon > 0.8 * count  # the right edge
        corner: dict[str, Any] = {"xytext": (-3 if near else 3, -2), "va": "top"}
        corner["ha"] = "right" if near else "left"
        ax.annotate("horizon", (picture.horizon, top), color="0.3", **corner, **words)
    if not math.isnan(picture.at_end) and count:
        _draw_end(picture, ax, low, last, words)
    elif count and not there.any():
        note(ax, "not known" if count >= 10 else "not known before 10 bounds")


def _draw_end(picture: Picture, ax: Axes, low: float, at: int, words: dict[str, Any]) -> None:
    """Mark what is left at the stop, or now, and say it."""
    end = picture.at_end
    height = max(end, low)
    if picture.range is not None and picture.range[1] > picture.range[0]:
        ends = np.maximum(picture.range, low)
        ax.plot([at, at], ends, color=STOP, linewidth=4.0, alpha=0.35, gid="range", zorder=2.4)
    full = "white" if end < low else STOP  # hollow: it lies below the edge
    dot: dict[str, Any] = {"markersize": 6, "markerfacecolor": full, "clip_on": False, "zorder": 3}
    ax.plot([at], [height], "o", color=STOP, gid="left at the end", **dot)
    # The curve falls: there is room to the right above it, and to the left below it.
    right = at < (0.25 if end > 0.3 else 0.75) * max(len(picture.left), 2)
    under = not right and end > low
    side: dict[str, Any] = {"ha": "left" if right else "right", "va": "top" if under else "bottom"}
    side["xytext"] = (6 if right else -6, -5 if under else 5)
    if under and math.log(end / low) < 0.25 * math.log(ax.get_ylim()[1] / low):
        side |= {"va": "center", "xytext": (-8, 0)}  # else it would lie on the axis
    text = f"< {percent(0.001)}" if 0 < end < 0.001 < low else percent(end, short=True)
    ax.annotate(f"{text} left", (at, height), color=STOP, weight="bold", **side, **words)


def _floor(picture: Picture) -> float:
    """Return the least share that the scale shows."""
    share = picture.share
    positive = picture.left[picture.left > 0]
    least = float(positive.min(initial=1.0))
    if share is not None:
        # After a stop the share may fall for ever: the one asked for stays in sight.
        return max(min(share / 3, least), share / 8, 1e-300)
    return min(0.1, max(least, 0.01))


def _percent_ticks(ax: Axes, floor: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    decades = math.ceil(-math.log10(floor))
    subs = (1.0, 2.0, 5.0) if floor > 0.012 else (1.0, 3.0) if floor > 0.0012 else (1.0,)
    powers = np.arange(-decades, 1, max(1, decades // 4))
    ticks = np.multiply.outer(10.0 ** (powers - powers[-1]), subs).ravel()
    ax.yaxis.set_major_locator(FixedLocator(ticks[(ticks >= floor) & (ticks <= 1)].tolist()))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: percent(share, short=True)))
