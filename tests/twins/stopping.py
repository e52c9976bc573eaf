"""Slow twin of MovementBelow: exact fractions, one definition, no clever sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def window_of(t: int, window: int | None = None) -> int:
    """Return how many last bounds count after t of them: a fifth, 10 to 20, or the user's own."""
    return min(20, max(10, t // 5)) if window is None else window


def movement_left(
    bounds: Sequence[float], horizon: int, *, window: int | None = None
) -> list[float]:
    """Return the share of all movement that is still to come after each bound."""
    sums = [Fraction(0)]  # of the first t bounds, exactly
    for r in bounds:
        sums.append(sums[-1] + Fraction(float(r)))
    out = []
    for t in range(1, len(sums)):
        w = window_of(t, window)
        if t >= horizon:
            out.append(0.0)
        elif t < w:
            out.append(math.nan)
        elif sums[t] == 0:
            out.append(1.0)
        else:
            rest = (sums[t] - sums[t - w]) / w * (horizon - t)
            out.append(float(rest / (sums[t] + rest)))
    return out


def levels(bounds: Sequence[float], *, window: int | None = None) -> list[float]:
    """Return the mean of the last bounds over its largest value so far, after each bound."""
    exact = [Fraction(float(r)) for r in bounds]
    out, peak = [], Fraction(0)
    for t in range(1, len(exact) + 1):
        w = window_of(t, window)
        if t < w:
            out.append(math.nan)
            continue
        mean = sum(exact[t - w : t], Fraction(0)) / w
        peak = max(peak, mean)
        out.append(float(mean / peak) if peak else math.nan)
    return out


def still_stop(
    bounds: Sequence[float], share: float, horizon: int, *, window: int | None = None
) -> int | None:
    """Return the number of bounds at which at most `share` is still to come, or None."""
    for t, left in enumerate(movement_left(bounds, horizon, window=window), 1):
        if t >= horizon or (t > window_of(t, window) and left <= share):
            return t
    return None
