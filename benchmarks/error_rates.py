"""Error rates of the stopping rule by simulation: ``python -m benchmarks.error_rates [STREAMS]``.

Independent of the tables that are shipped: other seeds, and the public functions only.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np

from fastal import runs_test, stopping_time
from fastal.runs import RunsDistribution

LEVELS = (0.001, 0.01, 0.05, 0.1)
LENGTHS = (14, 20, 50, 100, 200)
HORIZONS = (50, 100, 200, 1000)

# Chance of ever stopping on noise at alpha = 0.001 by so many bounds, by the letter of the paper
# (fall=False), as documented: percent.
DOCUMENTED = {"exact": (0.63, 1.0, 1.4, 2.2), "normal": (0.93, 1.4, 1.9, 2.8)}

# A drop from any to any lower level, without overlap: bounds before it, and bounds at the stop.
CLEAN_DROPS = {10: 19, 20: 32, 40: 59, 80: 105}


def blocks(streams: int, length: int, seed: int) -> Iterator[np.ndarray]:
    """Yield random sequences, some rows at a time."""
    rng = np.random.default_rng([seed, length])
    rows = max(1, 2_000_000 // length)
    for start in range(0, streams, rows):
        yield rng.standard_normal((min(rows, streams - start), length))


def attained(level: float, length: int) -> float:
    """Return the exact chance of a p-value of at most the level: the largest tail below it."""
    d = RunsDistribution(length // 2, length - length // 2)
    tails = d.cdf(np.arange(1, length + 1))
    return float(tails[tails <= level].max(initial=0.0))


def p_value_shares(streams: int, length: int) -> list[float]:
    """Return the share of random sequences with an exact p-value of at most each level."""
    below = np.zeros(len(LEVELS))
    for x in blocks(streams, length, seed=1):
        p = runs_test(x, alternative="less", method="exact", axis=1).pvalue
        below += [np.count_nonzero(p <= level) for level in LEVELS]
    return (below / streams).tolist()


def false_stops(streams: int, horizons: tuple[int, ...] = HORIZONS, **rule) -> list[float]:
    """Return the share of random sequences that stop within each horizon."""
    counts = np.zeros(len(horizons))
    for x in blocks(streams, max(horizons), seed=2):
        stops = stopping_time(x, **rule)
        counts += [np.count_nonzero((stops > 0) & (stops <= horizon)) for horizon in horizons]
    return (counts / streams).tolist()


def shift(streams: int, before: int, size: float, length: int = 300, **rule) -> tuple[float, float]:
    """Return the share that stops after a drop of `size` sd, and the median of these stops."""
    found = []
    for x in blocks(streams, length, seed=3):
        x[:, :before] += size
        found.append(stopping_time(x, **rule))
    stops = np.concatenate(found)
    stopped = stops[stops > before]
    return len(stopped) / streams, float(np.median(stopped)) if len(stopped) else math.nan


def standard_error(share: float, streams: int) -> float:
    """Return the Monte-Carlo error of a share."""
    return math.sqrt(max(share * (1 - share), 1 / streams) / streams)


def main(streams: int) -> None:
    """Print all figures."""
    print(f"{streams:,} random sequences: share with an exact p-value of at most each level")
    print("(in brackets: what the discrete distribution attains)\n")
    print("| T | " + " | ".join(f"{level:g}" for level in LEVELS) + " |")
    print("|---" * (len(LEVELS) + 1) + "|")
    for length in LENGTHS:
        shares = p_value_shares(streams, length)
        cells = (
            f"{share:.5f} ({attained(level, length):.5f})"
            for share, level in zip(shares, LEVELS, strict=True)
        )
        print(f"| {length} | " + " | ".join(cells) + " |", flush=True)

    few = max(streams // 10, 1000)
    print(f"\n{few:,} random sequences, a look after every bound: percent that ever stop\n")
    print("| rule | " + " | ".join(f"by {horizon}" for horizon in HORIZONS) + " |")
    print("|---" * (len(HORIZONS) + 1) + "|")
    for method, documented in DOCUMENTED.items():
        shares = false_stops(few, alpha=0.001, method=method, fall=False)
        cells = (f"{100 * s:.2f} ({d})" for s, d in zip(shares, documented, strict=True))
        rule = f"{method}, alpha = 0.001, fall=False (documented)"
        print(f"| {rule} | " + " | ".join(cells) + " |", flush=True)
    for method in DOCUMENTED:
        shares = false_stops(few, alpha=0.001, method=method)
        cells = (f"{100 * s:.2f}" for s in shares)
        print(f"| {method}, alpha = 0.001 | " + " | ".join(cells) + " |", flush=True)
    for fall in (False, True):
        rule = {"alpha": 0.01, "sequential": True, "fall": fall}
        name = "" if fall else ", fall=False"
        found = [false_stops(few, (h,), horizon=h, **rule)[0] for h in HORIZONS]
        cells = " | ".join(f"{100 * s:.2f}" for s in found)
        print(f"| sequential with this horizon, alpha = 0.01{name} | {cells} |", flush=True)
        cells = " | ".join(f"{100 * s:.2f}" for s in false_stops(few, **rule))
        print(f"| sequential, alpha = 0.01{name} | {cells} |", flush=True)

    few = max(streams // 50, 500)
    print(f"\n{few:,} sequences of 300 with a drop after k bounds, alpha = 0.001:")
    print("percent that stop after the drop, and the median of these stops\n")
    before = (5, *CLEAN_DROPS)
    print("| size of the drop | " + " | ".join(f"k = {k}" for k in before) + " |")
    print("|---" * (len(before) + 1) + "|")
    for size in (1.0, 2.0, 3.0, 10.0):
        found = [shift(few, k, size, alpha=0.001) for k in before]
        cells = (f"{100 * share:.1f} % at {median:.0f}" for share, median in found)
        print(f"| {size:g} sd | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
