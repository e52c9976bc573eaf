"""The demo: the model at the stop with its data, above the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal.plotting.run import _draw_bounds, _draw_errors
from fastal.plotting.style import ABOVE, MODEL, STOP, TRUTH, require_matplotlib

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastal.learning.run import Run


def plot_demo(
    run: Run, X: ArrayLike, y: ArrayLike, X_grid: ArrayLike, truth: ArrayLike
) -> tuple[Axes, Axes, Axes]:
    """Draw a run on data with one feature: the model at the stop, the bounds, the error.

    Parameters
    ----------
    run : Run
        A run with a test set; better one that went on after its stop. It is only read.
    X, y : array_like
        The pool and its labels.
    X_grid : array_like
        Inputs at which to draw the model, in ascending order.
    truth : array_like
        The noise-free curve there.

    Returns
    -------
    tuple of matplotlib axes
        Those of the model, of the bounds (with what is still to come below them, and the p-value if
        the run has a Stopper), and of the error curve. The figure belongs to pyplot, and the caller
        shows or closes it.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, Stopper, learn
    >>> from fastal.datasets import artificial, artificial_mean
    >>> from fastal.plotting.demo import plot_demo
    >>> X, y = artificial(n=500)
    >>> gp, test = GaussianProcess(1.5, 0.0025), (X[50:], y[50:])
    >>> run = learn(X[:50], y[:50], gp=gp, criterion=Stopper(), test=test, seed=0)
    >>> grid = np.linspace(-5, 15, 400)
    >>> axes = plot_demo(run, X[:50], y[:50], grid, artificial_mean(grid))  # doctest: +SKIP
    """
    require_matplotlib()
    from matplotlib import pyplot

    data = _demo_data(run, X, y, X_grid, truth)
    return _demo_in(run, data, pyplot.figure(figsize=_DEMO_SIZE, layout="constrained"))


def save_demo(
    run: Run,
    X: ArrayLike,
    y: ArrayLike,
    X_grid: ArrayLike,
    truth: ArrayLike,
    path: str | os.PathLike[str],
) -> None:
    """Write the picture of `plot_demo` to a file, without pyplot and without a display.

    Parameters
    ----------
    run, X, y, X_grid, truth
        As in `plot_demo`.
    path : path
        File to write; its ending is the format.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    data = _demo_data(run, X, y, X_grid, truth)
    figure = Figure(figsize=_DEMO_SIZE, layout="constrained")
    _demo_in(run, data, figure)
    figure.savefig(path, dpi=150)


_DEMO_SIZE = (11.5, 9.0)  # inches


class _DemoData:
    """The pool, the grid and the model at the stop, as arrays."""

    def __init__(self, run: Run, X: Any, y: Any, X_grid: Any, truth: Any) -> None:
        self.x = check.points("X", X, 1)[:, 0]
        self.y = check.vector("y", y, len(self.x))
        self.grid = check.points("X_grid", X_grid, 1)[:, 0]
        self.truth = check.vector("truth", truth, len(self.grid))
        if len(self.x) != run.n_pool:
            raise ValueError(f"`X` must be the pool of {run.n_pool} points, got {len(self.x)}")
        self.used = run.n_labels if run.stopped_at is None else run.stopped_at
        self.labelled = run.indices[: self.used]
        gp = run.prior
        if not hasattr(gp, "noise"):  # a classifier has none
            raise TypeError(f"`run` must be one of a GaussianProcess, got {check.short_repr(gp)}")
        gp = gp.copy()
        gp.add_batch(self.x[self.labelled], self.y[self.labelled])
        self.mean, var = gp.predict(self.grid, return_var=True)
        self.sd = np.sqrt(var)


def _demo_data(run: Run, X: Any, y: Any, X_grid: Any, truth: Any) -> _DemoData:
    if run.errors is None:
        raise ValueError("`run` must have a test set, got run.errors = None")
    return _DemoData(run, X, y, X_grid, truth)


def _demo_in(run: Run, data: _DemoData, figure: Figure) -> tuple[Axes, Axes, Axes]:
    grid = figure.add_gridspec(2, 2, width_ratios=(7, 5), height_ratios=(3, 5))
    upper = figure.add_subplot(grid[0, :])
    left, right = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    _draw_model(run, data, upper)
    _draw_bounds(run, left)
    _draw_errors(run, right)
    return upper, left, right


def _draw_model(run: Run, data: _DemoData, ax: Axes) -> None:
    low, high = data.mean - 2 * data.sd, data.mean + 2 * data.sd
    others = np.setdiff1d(np.arange(run.n_pool), data.labelled)
    # Paler by mixing with white: PostScript knows no transparency.
    ax.fill_between(data.grid, low, high, color="#cfe3f1", linewidth=0, label="mean ± 2 sd")
    ax.plot(data.grid, data.truth, color=TRUTH, linewidth=1.2, linestyle="--", label="truth")
    ax.plot(data.grid, data.mean, color=MODEL, linewidth=1.8, label="model (posterior mean)")
    dots: dict[str, Any] = {"linestyle": "none", "markersize": 6}
    if len(others):
        dots |= {"marker": "o", "color": "0.5", "markerfacecolor": "white"}
        ax.plot(data.x[others], data.y[others], label="not labelled", gid="not labelled", **dots)
    dots |= {"marker": "o", "color": ABOVE, "markerfacecolor": ABOVE, "clip_on": False}
    used = data.labelled
    ax.plot(data.x[used], data.y[used], label="labelled", gid="labelled", zorder=3, **dots)
    ax.set_xlim(data.grid[0], data.grid[-1])
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    when = "at the stop" if run.stopped_at is not None else "at the end, without a stop"
    ax.set_title(
        f"the model {when}: {data.used} of {run.n_pool} labels", loc="left", fontsize="medium"
    )
    ax.legend(loc="upper right", fontsize="small", facecolor="white", labelcolor=STOP)
