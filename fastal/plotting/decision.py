"""What each rule leaves unused against the labels it uses: a panel per pool and selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastal.plotting.style import ABOVE, BELOW, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastal.studies.decision import DecisionStudy

STYLES: dict[str, dict[str, Any]] = {
    "fixed fraction": {"color": "0.45", "ls": "--", "label": "fixed fraction of the pool"},
    "paper's rule": {
        "color": ABOVE,
        "marker": "s",
        "ms": 4,
        "label": "the paper's rule, over alpha",
    },
    "StillToCome, as bounds come": {
        "color": BELOW,
        "marker": "x",
        "ms": 4,
        "ls": ":",
        "label": "StillToCome, as bounds come",
    },
    "StillToCome": {"color": BELOW, "marker": "o", "ms": 5, "label": "StillToCome, over share"},
}

NAMED = (0.05, 0.1, 0.2)  # shares that are written beside their points

LOWEST, HIGHEST = 0.2, 100.0  # percent


def decision_figure(found: DecisionStudy) -> Figure:
    """Draw what each rule leaves unused against the labels it uses.

    Parameters
    ----------
    found : DecisionStudy
        From `fastal.studies.decision_study`.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    pools = list(dict.fromkeys(pool for pool, _ in found.panels))
    selections = list(dict.fromkeys(selection for _, selection in found.panels))
    size = 4.2 * len(selections) + 0.3, 3.3 * len(pools) + 0.7
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(pools), len(selections), sharex=True, sharey=True, squeeze=False)
    for pool, row in zip(pools, axes, strict=True):
        for selection, ax in zip(selections, row, strict=True):
            _draw(ax, found, pool, selection)
        row[0].set_ylabel("fall of the RMSE left unused (%)")
    for ax in axes[-1]:
        ax.set_xlabel("labels used (% of the pool)")
    axes[0, 0].set_yscale("log")
    axes[0, 0].set_ylim(LOWEST, HIGHEST)
    axes[0, 0].set_xlim(0, 100)
    axes[0, 0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=2, fontsize="small")
    return figure


def _draw(ax: Any, found: DecisionStudy, pool: int, selection: str) -> None:
    """Draw the curves of one pool and selection; shares of 5, 10 and 20 % carry their number."""
    for rule, style in STYLES.items():
        if rule not in found.rules:
            continue
        labels, unused = found.curve(pool, selection, rule)
        if len(labels):
            ax.plot(100 * labels, 100 * unused, **style)
    sets = 0
    for share in NAMED:
        one = found.outcome(pool, selection, "StillToCome", share)
        if one is None:
            continue
        sets = one.sets
        ax.plot(100 * one.labels, 100 * one.unused, "o", ms=8, mfc="white", mec=BELOW, mew=1.5)
        ax.annotate(
            f"{share:g}",
            (100 * one.labels, 100 * one.unused),
            (-5, -5),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize="small",
            color=BELOW,
        )
    ax.grid(alpha=0.25)
    how = "by variance" if selection == "max_variance" else "at random"
    ax.set_title(f"pool {pool}, labels {how}, mean of {sets} set{'' if sets == 1 else 's'}")
