"""A criterion that we know nothing of: its bounds and the stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastal import _validation as check
from fastal.plotting.panels import (
    MANY,
    NARROW,
    PAPER,
    finish,
    marker_size,
    note,
    say,
    scale_of,
    width_of,
)
from fastal.plotting.style import BELOW, OUTSIDE, require_matplotlib
from fastal.stopping.combine import Combination, first_of
from fastal.stopping.criterion import Criterion
from fastal.stopping.measured import Measured
from fastal.stopping.still import MovementBelow
from fastal.stopping.stopper import Stopper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (7.0, 4.0)  # inches


def plot_criterion(criterion: Criterion, ax: Axes | None = None) -> Axes:
    """Draw the bounds of any criterion, or what it measures, and the stop.

    Bounds after the stop are grey. The verdict stands above.

    Parameters
    ----------
    criterion : Criterion
        It is only read.
    ax : matplotlib axes, optional
        Where to draw. By default a new figure; it belongs to pyplot, and the caller shows or closes
        it.

    Returns
    -------
    matplotlib axes
        Those of the bounds.

    Examples
    --------
    >>> from fastal import FixedBudget
    >>> from fastal.plotting import plot_criterion
    >>> criterion = FixedBudget(3)
    >>> criterion.extend([4.0, 2.0, 1.0, 0.5])
    3
    >>> ax = plot_criterion(criterion)  # doctest: +SKIP
    """
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` must be a criterion, got {check.short_repr(criterion)}")
    require_matplotlib()
    alone = ax is None
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=_SIZE, layout="constrained").add_subplot()
    _draw(criterion, ax)
    width = 0.9 * ax.figure.bbox.width if alone else width_of(ax)
    say(criterion.verdict, ax, width, size=9.0 if alone else 8.0)
    return ax


def plot_member(combination: Combination, ax: Axes | None = None) -> Axes:
    """Draw the first member that is a `MovementBelow`, else the first that is a `Stopper`.

    Parameters
    ----------
    combination : Combination
        It is only read.
    ax : matplotlib axes, optional
        Where to draw the bounds; the rest comes below. A new figure by default.

    Returns
    -------
    matplotlib axes
        Those of the bounds. The stop that is marked is that of the member; `Run.plot` marks the one
        of the combination.
    """
    member: Criterion | None = first_of(combination, MovementBelow)
    if member is None:
        member = first_of(combination, Stopper)
    if member is None:
        raise TypeError(
            f"there is no picture of {check.short_repr(combination)}: `plot` needs a MovementBelow "
            "or a Stopper among the members"
        )
    return member.plot(ax)


def _draw(criterion: Criterion, ax: Axes) -> None:
    values, stop = criterion.bounds, criterion.stopped_at
    # a criterion that measures may look at every tenth label only
    at = np.arange(1, len(values) + 1)
    subject, label, count = "bound", "bounds", len(criterion)
    if isinstance(criterion, Measured):
        subject, label, at = "measure", "labels", criterion.times
    known = np.isfinite(values)  # a measure that cannot be computed is NaN
    scale, drawable = scale_of(values[known])
    after = at > (count if stop is None else stop)
    dots: dict[str, Any] = {"linestyle": "none", "markeredgewidth": 0, "marker": "o"}
    dots |= {"markersize": 0.8 * marker_size(len(values))}
    dots["rasterized"] = len(values) > MANY  # a vector file of so many would be slow to look at
    heights = drawable(values)
    if 0 < len(values) <= MANY:
        ax.plot(at[known], heights[known], color=OUTSIDE, linewidth=0.6, gid="line", zorder=1.8)
    for chosen, colour, name in (
        (known & ~after, BELOW, subject),
        (known & after, OUTSIDE, "after the stop"),
    ):
        if chosen.any():
            ax.plot(at[chosen], heights[chosen], color=colour, label=name, gid=name, **dots)
    if known.any():
        ax.set_yscale(**scale)
    else:
        ax.set_yticks([])
    ax.set_ylabel(subject)
    finish([ax], count, stop, label)
    if count and not known.any():
        note(ax, f"no {subject} yet")
    if known.any():
        size = "xx-small" if width_of(ax) < NARROW * ax.figure.dpi else "x-small"
        # Looking for the best place takes long.
        place: Any = "best" if len(values) <= MANY else "upper right"
        ax.legend(loc=place, fontsize=size, markerscale=5.0 / marker_size(len(values)), **PAPER)
