"""How often a rule that looks after every label stops on mere noise, and levels that allow for it.

The tables hold for bounds that are exchangeable and free of ties: then the ranks are a uniform
permutation and the critical number of runs depends on their number alone. Many tied bounds break
this argument. ``tools/make_sequential.py`` made them by simulation, one for stoppers with
``fall=True`` and one for those with ``fall=False``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._types import Array
from fastal.runs.exact import RunsDistribution

# Up to this horizon the attained p-values are few, and their gaps matter.
_FEW_LEVELS = 200


class _Tables(NamedTuple):
    horizons: Array
    probabilities: Array
    levels: Array  # (horizon, probability): level of each look
    weighted: Array  # (probability,): the same for the mode without a horizon
    streams: Array  # (horizon,): how many simulated sequences are behind it


@cache
def _tables(fall: bool) -> _Tables:
    name = "sequential_fall.npz" if fall else "sequential.npz"
    with files("fastal.runs").joinpath(name).open("rb") as file:
        data = np.load(file)
        # what lies beyond the longest simulated stream is taken off the probability
        reached = data["probabilities"] * (1 + data["beyond"])
        # down to the least probability of the table in proportion to it
        reached, level = np.r_[0.0, reached], np.r_[0.0, data["weighted"]]
        weighted = np.interp(data["probabilities"], reached, level)
        return _Tables(
            data["horizons"], data["probabilities"], data["levels"], weighted, data["streams"]
        )


def longest_horizon() -> int:
    """Return the largest horizon in the tables, which share their horizons."""
    return int(_tables(False).horizons[-1])


def _column(horizon: int) -> int:
    """Return the column of the next larger horizon."""
    tables = _tables(False)
    if horizon > tables.horizons[-1]:
        raise ValueError(
            f"`horizon` must be at most {longest_horizon()}, got {check.short_repr(horizon)}"
        )
    return int(np.searchsorted(tables.horizons, horizon))


def look_level(alpha: float, horizon: int | None = None, *, fall: bool = True) -> float:
    """Return the level of a single look so that all looks together keep to alpha.

    Parameters
    ----------
    alpha : float
        Chance of ever stopping on a random sequence, in [0.0001, 0.75].
    horizon : int, optional
        Number of bounds after which nobody looks any more. Without it the level falls with the
        number of bounds T: this value times ``(1 + log2(T / 16))**-2`` from 16 bounds on.
    fall : bool
        Whether only looks count at which the bounds fell, as in `Stopper`.

    Returns
    -------
    float
        Level for the exact p-value of each look.

    Examples
    --------
    >>> from fastal.runs import look_level
    >>> f"{look_level(0.01, horizon=100):.1e}"
    '1.7e-03'
    >>> f"{look_level(0.01, horizon=100, fall=False):.1e}"
    '9.6e-04'
    """
    tables = _tables(check.flag("fall", fall))
    alpha = check.probability("alpha", alpha)
    lowest, highest = tables.probabilities[0], tables.probabilities[-1]
    if not (lowest <= alpha <= highest):
        raise ValueError(
            f"`alpha` of the sequential mode must be in [{lowest:g}, {highest:.2g}], got {alpha:g}"
        )
    # the next smaller probability: never more than was asked for
    row = int(np.searchsorted(tables.probabilities, alpha * (1 + 1e-9), side="right")) - 1
    if horizon is None:
        return float(tables.weighted[row])
    return float(tables.levels[_column(check.count("horizon", horizon, 2)), row])


def false_stop_probability(
    alpha: float, horizon: int, *, sequential: bool = False, fall: bool = True
) -> float:
    """Return the chance of ever stopping on a random sequence when one looks after every bound.

    Parameters
    ----------
    alpha : float
        Level of the stopper, in (0, 1).
    horizon : int
        Number of bounds that will be looked at; at most 10,000. Between the simulated horizons,
        20 a decade, the next larger one answers.
    sequential : bool
        Whether the stopper is in sequential mode with this horizon.
    fall : bool
        Whether a rejection counts only if the bounds fell, as in `Stopper`.

    Returns
    -------
    float
        Probability, for the exact one-sided test and bounds without ties; 0.0 if no number of runs
        stops within the horizon. Relative Monte-Carlo error about 1 % up to a horizon of 200 and
        3 % at 10,000, for probabilities of 1 %; the grid of the table adds up to 6 % on the safe
        side, and with `fall` up to 45 % for levels of 0.3 and more within 10 bounds. What is below
        0.0001, but not 0, is given as 0.0001.

    Examples
    --------
    >>> from fastal.runs import false_stop_probability
    >>> f"{false_stop_probability(0.001, 100):.3f}"
    '0.006'
    >>> f"{false_stop_probability(0.001, 100, fall=False):.3f}"
    '0.010'
    >>> f"{false_stop_probability(0.01, 100, sequential=True):.3f}"
    '0.010'
    """
    alpha = check.probability("alpha", alpha)
    horizon = check.count("horizon", horizon, 2)
    tables = _tables(check.flag("fall", fall))
    level = alpha
    if check.flag("sequential", sequential):
        level = look_level(alpha, horizon, fall=fall)
    column = tables.levels[_column(horizon)]
    if horizon <= _FEW_LEVELS:
        level = _attained(level, horizon)
        if level == 0:
            return 0.0
    # a level that several rows share was reached with at most the smallest of their probabilities
    rising, first = np.unique(column, return_index=True)
    probability = np.interp(
        np.log(level), np.log(rising), np.log(tables.probabilities[first]), right=0.0
    )
    return float(np.exp(probability))


def _attained(level: float, horizon: int) -> float:
    """Return the largest p-value up to the level that up to `horizon` bounds can have; 0 if none.

    Between two of them the chance of a stop does not change, but an interpolation would.
    """
    found = 0.0
    for n in range(2, horizon + 1):
        runs = RunsDistribution(n // 2, n - n // 2)
        u = runs.ppf(level)  # the first that reaches the level, perhaps exactly
        found = max(found, *(p for p in (runs.cdf(u - 1), runs.cdf(u)) if p <= level))
    return float(found)
