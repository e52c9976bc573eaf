"""What labels cost and buy under each rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastal.plotting.style import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastal.studies.label_cost import Tradeoff


def tradeoff_figure(found: Tradeoff) -> Figure:
    """Draw what each rule leaves unused against the labels it uses.

    Parameters
    ----------
    found : Tradeoff
        From `fastal.studies.tradeoff`.

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
