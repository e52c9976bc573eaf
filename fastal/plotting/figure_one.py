"""Figure 1 of the paper: errors and stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastal.plotting.style import require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastal.paper.table_one import Outcome

# Of each criterion: what the legend says, and how its line looks.
LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "ground_truth": ("ground truth", {"color": "0.45", "ls": ":"}),
    "proposed": ("proposed", {"color": "tab:red", "lw": 2.0}),
    "pac_bayes": ("PAC-Bayes", {"color": "tab:purple", "ls": "-."}),
    "cross_validation": ("cross-validation", {"color": "tab:green", "ls": "--"}),
    "max_variance": ("max. variance", {"color": "tab:orange", "ls": "--"}),
}


def plot_errors(outcome: Outcome, ax: Axes) -> None:
    """Draw a panel of Figure 1: the mean error, and the mean stop of each criterion.

    Parameters
    ----------
    outcome : Outcome
        It is only read.
    ax : matplotlib axes
        Where to draw.
    """
    result = outcome.campaign.result
    assert result.errors is not None
    assert result.t_opt is not None
    labels = np.arange(1, result.max_labels + 1)
    mean, deviation = result.errors.mean(axis=0), result.errors.std(axis=0)
    low, high = mean - deviation, mean + deviation
    ax.fill_between(labels, low, high, color="tab:blue", alpha=0.15, lw=0, label="± 1 sd")
    ax.plot(labels, mean, color="tab:blue", label="expected loss")
    ax.axvline(result.t_opt.mean(), color="black", lw=1.5, label="optimal")
    for name, stops in outcome.stops.items():
        label, style = LINES[name]
        ax.axvline(stops.mean(), label=label, **({"lw": 1.3} | style))
    # Losses fall by orders of magnitude where noise is small, and may be negative.
    spread = mean.max() - mean.min()
    if spread > 50 * abs(mean[-1]):
        ax.set_yscale("symlog", linthresh=max(1.0, abs(float(mean[-1]))))
    ax.set_title(outcome.campaign.problem.name.replace("_", " "))
    ax.set_xlim(1, result.max_labels)
    ax.set_xlabel("labels")
    ax.set_ylabel("expected loss (nats)")


def figure1(outcomes: Sequence[Outcome]) -> Figure:
    """Draw Figure 1: a panel for each data set.

    Parameters
    ----------
    outcomes : sequence of Outcome
        From `fastal.paper.outcomes`.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    columns = min(3, len(outcomes))
    rows = -(-len(outcomes) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for outcome, ax in zip(outcomes, axes, strict=False):
        plot_errors(outcome, ax)
    for ax in axes[len(outcomes) :]:
        ax.set_axis_off()
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=8, fontsize="small")
    return figure
