"""The gap of the bound against its bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastal.plotting.style import require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastal.paper.bound_gap import Tightness


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
