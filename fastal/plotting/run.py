"""A run: its bounds, what is still to come and, with a test set, its errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fastal.plotting.panels import NARROW, fill, width_of
from fastal.plotting.still import Picture, draw_in_place
from fastal.plotting.stopper import draw_stopper_in_place
from fastal.plotting.style import MODEL, OUTSIDE, STOP, require_matplotlib
from fastal.stopping.combine import Combination, first_of
from fastal.stopping.still import MovementBelow
from fastal.stopping.stopper import Stopper
from fastal.stopping.verdict import loss_then

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastal.learning.run import Run


def plot_run(run: Run, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
    """Draw the bounds of a learning run, and its errors.

    Above: the bounds with the mean of the last ones, and below them the share of all movement that
    is still to come (`Run.trace`), with the share asked for if the criterion is a `MovementBelow`
    or has one among its members; see `plot_still`. A run of a `Stopper` also shows the runs and the
    p-value; see `plot_stopper`. At the bottom, if the run has a test set: the error on it after
    each label. The stop is marked everywhere; grey is what came after it.

    Parameters
    ----------
    run : Run
        It is only read.
    axes : sequence of matplotlib axes, optional
        Where to draw: one for the bounds and, if the run has errors, one for these. By default a
        new figure; it belongs to pyplot, and the caller shows or closes it.

    Returns
    -------
    tuple of matplotlib axes
        Those of the bounds and, if the run has errors, those of the error curve. The panels below
        the bounds are their ``child_axes``, the lowest first.

    Examples
    --------
    >>> from fastal import GaussianProcess, Stopper, learn
    >>> from fastal.datasets import artificial
    >>> from fastal.plotting.run import plot_run
    >>> X, y = artificial(n=50)
    >>> run = learn(X, y, gp=GaussianProcess(1.5, 0.0025), criterion=Stopper(), seed=0)
    >>> axes = plot_run(run)  # doctest: +SKIP
    """
    require_matplotlib()
    needed = 1 if run.errors is None else 2
    if axes is None:
        from matplotlib import pyplot

        return _run_in(run, pyplot.figure(figsize=_size(run), layout="constrained"))
    places = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(places) != needed:
        raise ValueError(f"`axes` must be {needed} axes for this run, got {len(places)}")
    _draw_bounds(run, places[0])
    if run.errors is not None:
        _draw_errors(run, places[1])
    return tuple(places)


def save_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the picture of `plot_run` to a file, without pyplot and without a display.

    Parameters
    ----------
    run : Run
        It is only read.
    path : path
        File to write; its ending is the format.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=_size(run), layout="constrained")
    _run_in(run, figure)
    figure.savefig(path, dpi=150)


def _size(run: Run) -> tuple[float, float]:
    height = 6.0 if isinstance(run.criterion, Stopper) else 5.0
    return (7.0, height) if run.errors is None else (7.0, height + 3.0)


def _run_in(run: Run, figure: Figure) -> tuple[Axes, ...]:
    """Draw in an empty figure."""
    if run.errors is None:
        axes: tuple[Axes, ...] = (figure.subplots(),)
    else:
        axes = tuple(figure.subplots(2, 1, height_ratios=(_size(run)[1] - 3.0, 3.0)))
    _draw_bounds(run, axes[0])
    if run.errors is not None:
        _draw_errors(run, axes[1])
    return axes


def _draw_bounds(run: Run, ax: Axes) -> None:
    """Draw the bounds, what is still to come, and for a Stopper the runs and the p-value."""
    gap = "\n" if width_of(ax) < NARROW * ax.figure.dpi else " "
    first = f"bound number{gap}(the first comes with label {run.n_initial + 1})"
    picture = _picture(run)
    if isinstance(run.criterion, Stopper):
        draw_stopper_in_place(run.criterion, picture, ax, first)
    else:
        draw_in_place(picture, ax, first)


def share_left(run: Run) -> float:
    """Return the share that the picture says is still to come at the stop, or now; or NaN."""
    return _picture(run).at_end


def _picture(run: Run) -> Picture:
    criterion = run.criterion
    verdict, (means, left) = run.verdict, run.trace()
    stop = None if run.stopped_at is None else run.stopped_at - run.n_initial
    last = len(run.bounds) if stop is None else stop
    at_end = float(left[last - 1]) if last else math.nan
    if stop is not None and not (isinstance(criterion, Combination) or math.isnan(verdict.left)):
        at_end = verdict.left  # what decided: a longer run may have another horizon
    still = None if criterion is None else first_of(criterion, MovementBelow)
    if still is None:
        return Picture(verdict, run.bounds, means, left, stop, at_end, None, None, None)
    own = still.verdict
    # Of the stop that is marked, which may be a budget's.
    scatter = (own.low, own.high) if own.n == last else None
    share = float(still.share)
    return Picture(verdict, run.bounds, means, left, stop, at_end, share, scatter, own.horizon)


def _draw_errors(run: Run, ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator, SymmetricalLogLocator

    assert run.errors is not None
    errors, count = run.errors, run.n_labels
    stop = run.stopped_at
    n = np.arange(1, count + 1)
    last = count if stop is None else stop
    single: dict[str, Any] = {"marker": "."} if count == 1 else {}
    ax.plot(n, errors, color=OUTSIDE, linewidth=1.2, gid="errors after the stop")
    ax.plot(n[:last], errors[:last], color=MODEL, linewidth=1.8, gid="errors", **single)
    # A fall by orders of magnitude would press the rest flat on a linear scale.
    if np.ptp(errors) > max(10.0, 10 * np.ptp(errors[count // 2 :])):
        ax.set_yscale("symlog", linthresh=1.0)
        ax.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=1.0, subs=(1, 3)))
        ax.yaxis.set_major_formatter("{x:g}")
    ax.margins(y=0.12)
    ax.set_xlim(0.5, max(run.n_pool if stop is not None else count, 2) + 0.5)
    ax.set_xlabel("labels")
    ax.set_ylabel("expected loss on the test set")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    then, end = float(errors[last - 1]), float(errors[-1])
    said = fill(loss_then(then, stop, end, count), ax, width_of(ax), 9.0)
    ax.set_title(said, fontsize=9, loc="left")
    if stop is not None:
        ax.axvline(stop, color=STOP, linewidth=1.4, gid="stop")
        ax.plot([stop], [then], "o", color=STOP, markersize=6, gid="error at the stop")
