"""The paper's figures; matplotlib is imported when one is drawn, and only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastal.plot import require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastal.paper import Outcome, Tightness
    from fastal.tradeoff import Tradeoff

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


def plot_tightness(tightness: Tightness, ax: Axes) -> None:
    """Draw the gap of the expected error at each label, and its bound.

    Parameters
    ----------
    tightness : Tightness
        It is only read.
    ax : matplotlib axes
        Where to draw.
    """
    labels = np.arange(2, tightness.gaps.shape[1] + 2)
    gap, divergence = tightness.gaps.mean(axis=0), tightness.divergences.mean(axis=0)
    constant = tightness.constants.mean()
    ax.plot(
        labels, divergence + constant, color="tab:red", label=f"bound, KL + C, C = {constant:.2f}"
    )
    ax.plot(labels, divergence, color="tab:orange", ls="--", label="KL alone")
    ax.plot(labels, gap, color="tab:blue", label="gap of the expected error")
    ax.axhline(0.0, color="0.6", lw=0.8)
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(bottom=min(-0.02, 1.2 * float(gap.min())))
    ax.set_title(f"{tightness.task}: mean of {len(tightness.gaps)} runs")
    ax.set_xlabel("labels")
    ax.set_ylabel("nats")
    ax.legend(fontsize="small")


def tightness_figure(found: Sequence[Tightness]) -> Figure:
    """Draw the tightness of the bound, a panel for each task.

    Parameters
    ----------
    found : sequence of Tightness
        From `fastal.paper.tightness`.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * len(found), 4.0), layout="constrained")
    for one, ax in zip(found, figure.subplots(1, len(found), squeeze=False).ravel(), strict=True):
        plot_tightness(one, ax)
    return figure


def tradeoff_figure(found: Tradeoff) -> Figure:
    """Draw what each rule leaves unused against the labels it uses.

    Parameters
    ----------
    found : Tradeoff
        From `fastal.tradeoff.tradeoff`.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    ax = figure.add_subplot()
    styles: dict[str, dict[str, Any]] = {
        "fixed fraction": {"color": "0.4", "ls": "--", "label": "fixed fraction of the pool"},
        "paper's rule": {"color": "tab:blue", "marker": ".", "label": "paper's rule, over alpha"},
        "eps": {"color": "tab:orange", "marker": ".", "label": "LookAhead, over eps"},
        "price": {"color": "tab:red", "label": "LookAhead, over price"},
    }
    for rule, style in styles.items():
        labels, unused = found.curve(rule)
        ax.plot(100 * labels, 100 * unused, **style)
    ax.set_yscale("log")
    ax.set_ylim(0.2, 100)
    ax.set_xlim(0, 100)
    ax.set_xlabel("labels used (% of the pool)")
    ax.set_ylabel("achievable fall of the loss\nleft unused (%)")
    ax.set_title(f"mean of {len(found.distances)} data sets")
    ax.legend(fontsize="small")
    return figure
