"""Predictions against labels: each label beside what the model would have said without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastal._types import Array
from fastal.plotting.panels import MANY, PAPER, marker_size
from fastal.plotting.style import ABOVE, BELOW, OUTSIDE, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_predictions(y: Array, mean: Array, sd: Array, ax: Axes | None = None) -> Axes:
    """Draw predictions against labels, with two standard deviations up and down.

    A label further off than that is a vermilion diamond. On the line, prediction and label agree.

    Parameters
    ----------
    y : array
        Labels.
    mean, sd : array
        Mean and standard deviation of the prediction of each.
    ax : matplotlib axes, optional
        Where to draw. By default a new figure; it belongs to pyplot, and the caller shows or closes
        it.

    Returns
    -------
    matplotlib axes
        The axes.

    Examples
    --------
    >>> from fastal.criteria import leave_one_out
    >>> from fastal.plotting import plot_predictions
    >>> y, mean, var = leave_one_out(gp)  # doctest: +SKIP
    >>> ax = plot_predictions(y, mean, var**0.5)  # doctest: +SKIP
    """
    require_matplotlib()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(5.0, 5.0), layout="constrained").subplots()
    count = len(y)
    far = np.abs(y - mean) > 2 * sd
    ends = np.concatenate((y, mean))
    ax.axline((ends.min(), ends.min()), slope=1.0, color=OUTSIDE, linewidth=1.0, zorder=1.5)
    dots: dict[str, Any] = {"linestyle": "none", "markeredgewidth": 0}
    dots["rasterized"] = count > MANY  # a vector file of so many would be slow to look at
    size = marker_size(count)
    looks = (
        (~far, BELOW, "o", size, "within two standard deviations"),
        (far, ABOVE, "D", size + 0.5, "further off"),
    )
    for chosen, colour, marker, points, name in looks:
        if not chosen.any():
            continue
        told = f"{name}: {chosen.sum()} of {count}"
        if count <= MANY:
            bars: dict[str, Any] = {"color": colour, "linewidth": 0.8, "alpha": 0.45}
            low, high = (mean - 2 * sd)[chosen], (mean + 2 * sd)[chosen]
            ax.vlines(y[chosen], low, high, gid=f"range {name}", **bars)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": points}
        ax.plot(y[chosen], mean[chosen], label=told, gid=name, zorder=2.5, **look, **dots)
    ax.set_xlabel("label")
    ax.set_ylabel("prediction without it")
    ax.grid(False)
    ax.set_facecolor(PAPER["facecolor"])
    # Bars may be cut: those of predictions without a clue would press the dots together.
    least, most = float(ends.min()), float(ends.max())
    room = 0.06 * (most - least) or max(1e-3 * abs(least), 1e-300)
    ax.set_xlim(least - room, most + room)
    ax.set_ylim(least - room, most + room)
    ax.set_aspect("equal")
    ax.legend(loc="upper left", fontsize="small", edgecolor="none", markerscale=5.0 / size, **PAPER)
    return ax
