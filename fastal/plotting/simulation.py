"""The picture of a simulation. matplotlib is imported when it is drawn, and only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastal.plotting.style import ABOVE, BELOW, require_matplotlib
from fastal.stopping.verdict import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastal.simulation.result import Simulation


def plot_simulation(simulation: Simulation, ax: Axes | None = None) -> Axes:
    """Draw how many runs stopped at each number of labels, and the errors of all runs.

    Parameters
    ----------
    simulation : Simulation
        It is only read.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default. The errors (median, and the middle 80 % of the
        runs) have an axis of their own on the right.

    Returns
    -------
    matplotlib axes
        Those of the stops.
    """
    require_matplotlib()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(layout="constrained").add_subplot()
    stops = simulation.stopped_at[simulation.stopped]
    labels = np.arange(1, simulation.max_labels + 1)
    counts = np.bincount(stops, minlength=simulation.max_labels + 1)[1:]
    ax.bar(labels, counts, width=1.0, color=BELOW, alpha=0.6, label="runs that stop")
    ax.set_xlabel("labels")
    ax.set_ylabel("runs that stop")
    share = simulation.summary()["stopped"]
    ax.set_title(f"{simulation.n_runs} runs, {percent(share)} stopped")
    if simulation.errors is not None and simulation.ok.any():
        low, middle, high = np.quantile(simulation.errors[simulation.ok], [0.1, 0.5, 0.9], axis=0)
        right = ax.twinx()
        right.plot(labels, middle, color=ABOVE, label="test error, median")
        right.fill_between(labels, low, high, color=ABOVE, alpha=0.2, lw=0, label="middle 80 %")
        if simulation.eta is not None:
            right.axhline(simulation.eta, color="black", lw=0.8, ls="--", label="converged below")
        right.set_ylabel("expected loss on the test set")
        right.legend(loc="upper right", fontsize="small")
    return ax
