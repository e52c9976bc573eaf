"""Pictures of a learning run; matplotlib is imported when one is drawn, and only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal.classifier import LaplaceClassifier
from fastal.plot import ABOVE, BELOW, OUTSIDE, STOP, plot_stopper, require_matplotlib
from fastal.stopper import Stopper

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastal.gp import GaussianProcess
    from fastal.learner import Run

Array = check.Array
TRUTH = "0.25"
MODEL = BELOW


def plot_run(run: Run, axes: Sequence[Axes] | None = None) -> tuple[Axes, ...]:
    """Draw what came of a learning run.

    Above: the bounds with their runs and the p-value, see `plot_stopper`. Below, if the run has a
    test set: the error on it after each label, with the stop marked; grey after the stop.

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
        Those of the bounds and, if the run has errors, those of the error curve.

    Examples
    --------
    >>> from fastal import GaussianProcess, Stopper, learn
    >>> from fastal.datasets import artificial
    >>> from fastal.plot_run import plot_run
    >>> X, y = artificial(n=50)
    >>> run = learn(X, y, gp=GaussianProcess(1.5, 0.0025), stopper=Stopper(), seed=0)
    >>> axes = plot_run(run)  # doctest: +SKIP
    """
    require_matplotlib()
    needed = 1 if run.errors is None else 2
    if axes is None:
        from matplotlib import pyplot

        return _run_in(run, pyplot.figure(figsize=_size(needed), layout="constrained"))
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

    figure = Figure(figsize=_size(1 if run.errors is None else 2), layout="constrained")
    _run_in(run, figure)
    figure.savefig(path, dpi=150)


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
        Those of the model, of the bounds with runs and p-value, and of the error curve. The figure
        belongs to pyplot, and the caller shows or closes it.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, Stopper, learn
    >>> from fastal.datasets import artificial, artificial_mean
    >>> from fastal.plot_run import plot_demo
    >>> X, y = artificial(n=500)
    >>> gp, test = GaussianProcess(1.5, 0.0025), (X[50:], y[50:])
    >>> run = learn(X[:50], y[:50], gp=gp, stopper=Stopper(), test=test, seed=0)
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


_DEMO_SIZE = (11.5, 8.0)  # inches; wide enough for the verdict in one line


def _size(panels: int) -> tuple[float, float]:
    return (7.0, 5.0) if panels == 1 else (7.0, 8.0)


def _run_in(run: Run, figure: Figure) -> tuple[Axes, ...]:
    """Draw in an empty figure."""
    if run.errors is None:
        axes: tuple[Axes, ...] = (figure.subplots(),)
    else:
        axes = tuple(figure.subplots(2, 1, height_ratios=(5, 3)))
    _draw_bounds(run, axes[0])
    if run.errors is not None:
        _draw_errors(run, axes[1])
    return axes


def _draw_bounds(run: Run, ax: Axes) -> None:
    first = f"bound number (the first comes with label {run.n_initial + 1})"
    if isinstance(run.stopper, Stopper):
        plot_stopper(run.stopper, ax)
        ax.child_axes[-1].set_xlabel(first)
        return
    # Another criterion has no runs to show.
    n = np.arange(1, len(run.bounds) + 1)
    ax.plot(n, run.bounds, color=MODEL, marker="o", markersize=3, linewidth=0.8)
    if run.stopped_at is not None:
        ax.axvline(run.stopped_at - run.n_initial, color=STOP, linewidth=1.4)
    if len(run.bounds) and run.bounds.min() > 0:
        ax.set_yscale("log")
    ax.set_title(str(run.verdict), fontsize=8, loc="left", wrap=True)
    ax.set_ylabel("bound")
    ax.set_xlabel(first)


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
    if stop is None:
        ax.set_title(f"no stop: expected loss {_end(run)}", fontsize=9, loc="left")
        return
    ax.axvline(stop, color=STOP, linewidth=1.4, gid="stop")
    ax.plot([stop], [errors[stop - 1]], "o", color=STOP, markersize=6, gid="error at the stop")
    title = f"expected loss {errors[stop - 1]:.3g} at the stop ({stop} labels)"
    if count > stop:
        title += f", {_end(run)}"
    ax.set_title(title, fontsize=9, loc="left")


def _end(run: Run) -> str:
    assert run.errors is not None
    return f"{run.errors[-1]:.3g} after {run.n_labels}"


def dense_posterior(gp: GaussianProcess, X: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Return posterior mean and variance for few labels, without anything compiled.

    A first use of ``run.gp`` compiles for seconds; for some dozen labels a dense solve does.

    Parameters
    ----------
    gp : GaussianProcess
        The parameters; its labels do not count.
    X, y : array, shapes (n, d) and (n,)
        The labels.
    at : array, shape (m, d)
        Inputs.

    Returns
    -------
    mean, var : array, shape (m,)
        Posterior mean and variance of f (without noise).
    """
    from fastal import reference

    twin = reference.GaussianProcess(gp.lengthscale, amplitude=gp.amplitude, kernel=gp.kernel)
    cross = twin.covariance(at, X)
    A = twin.covariance(X, X) + gp.noise * np.eye(len(X))
    solved = np.linalg.solve(A, np.column_stack((y - gp.mean, cross.T)))
    mean = gp.mean + cross @ solved[:, 0]
    var = gp.amplitude - np.einsum("ij,ji->i", cross, solved[:, 1:])
    return mean, np.maximum(var, 0.0)


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
        labelled = self.x[self.labelled, np.newaxis], self.y[self.labelled]
        # The process of the learner has the parameters and no labels.
        gp = run._learner.gp
        if isinstance(gp, LaplaceClassifier):
            raise TypeError(f"`run` must be one of a GaussianProcess, got {check.shown(gp)}")
        self.mean, var = dense_posterior(gp, *labelled, self.grid[:, np.newaxis])
        self.sd = np.sqrt(var)


def _demo_data(run: Run, X: Any, y: Any, X_grid: Any, truth: Any) -> _DemoData:
    if run.errors is None:
        raise ValueError("`run` must have a test set, got run.errors = None")
    return _DemoData(run, X, y, X_grid, truth)


def _demo_in(run: Run, data: _DemoData, figure: Figure) -> tuple[Axes, Axes, Axes]:
    grid = figure.add_gridspec(2, 2, width_ratios=(7, 5))
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
