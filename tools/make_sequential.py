"""Make the tables of the sequential mode: python tools/make_sequential.py [--fall].

`calibration.pyx`, beside this script, is compiled when the script is imported; that takes Cython, a
compiler, and fastal as it is installed.

Without ``--fall`` it writes ``sequential.npz``, for a stopper with ``fall=False``; with it
``sequential_fall.npz``, for ``fall=True``, from the same random streams.

For bounds that are exchangeable and free of ties the ranks are a uniform permutation, so the least
p-value of the first H looks, M_H = min over T <= H of P(U_T <= u_T), has one distribution for all
users. With ``--fall`` only looks count at which the bounds fell. The file holds its quantiles over
a grid of horizons, and those of the weighted minimum min over T of P(U_T <= u_T) / w(T) for the
mode without a horizon.

A quantile is rounded down to a value that at most the asked share of all streams reached, so that a
level taken from it is not exceeded in the simulation. Relative Monte-Carlo error of a probability q
estimated from n streams: sqrt((1 - q) / (q n)), so at q = 0.01 it is 0.7 % up to a horizon of 200,
1.4 % up to 2,000 and 2.6 % up to 10,000.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyximport
from numpy.typing import NDArray

with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    hooks = pyximport.install(build_dir=folder, language_level=3)
    import calibration

    pyximport.uninstall(*hooks)

TABLES = Path(__file__).parents[1] / "fastal" / "runs"
LONGEST = 10_000
# Streams that are followed up to a horizon: many short ones, fewer long ones.
BATCHES = {200: 2_000_000, 2_000: 500_000, LONGEST: 150_000}
SEED = 20200

# 20 horizons a decade; below 5 bounds nothing can happen at a level worth asking for.
HORIZONS = np.unique(np.round(10 ** np.arange(0.7, 4.001, 0.05)).astype(np.int64))
# 40 probabilities a decade, and the round ones people ask for.
ROUND = [m * 10.0**e for e in range(-4, 0) for m in (1, 2, 2.5, 5)]
PROBABILITIES: NDArray[np.float64] = np.unique(
    np.round(np.r_[10 ** np.arange(-4, -0.0999, 0.025), ROUND], 12)
)
# Octaves of T at which the weighted minimum is read, to see what lies beyond the longest stream.
OCTAVES = np.array([625, 1250, 2500, 5000, LONGEST], dtype=np.int64)


def simulate(
    streams: int, weighted: bool, fall: bool, horizons: NDArray[np.int64], threads: int
) -> NDArray[np.float64]:
    """Return the least p-values of random streams, one row a stream."""
    out = np.empty((streams, len(horizons)))
    length = int(horizons[-1])
    block = max(1, 2_000_000 // length)
    starts = range(0, streams, block)
    seeds = np.random.SeedSequence([SEED, length, weighted]).spawn(len(starts))

    def work(start: int, seed: np.random.SeedSequence) -> None:
        rows = out[start : start + block]
        values = np.random.default_rng(seed).random((len(rows), length))
        if not calibration.least_p_values(values, weighted, fall, horizons, rows):
            raise MemoryError

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, starts, seeds))
    return out


def lower_quantiles(sample: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each q, a level that at most a share q of the sample reaches.

    The largest such value of the sample, or just below its least where that is too frequent.
    """
    values, counts = np.unique(sample, return_counts=True)
    share = np.cumsum(counts) / len(sample)
    place = np.searchsorted(share, q, side="right") - 1
    return np.where(place >= 0, values[place], values[0] * (1 - 1e-9))


def main() -> None:
    """Simulate, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the streams to simulate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fall", action="store_true", help="only looks count where bounds fell")
    parser.add_argument("--out", type=Path, help="the file, if not the one of fastal")
    options = parser.parse_args()
    name = "sequential_fall.npz" if options.fall else "sequential.npz"
    out = options.out or TABLES / name

    columns, sizes, first = [], [], 0
    for longest, size in BATCHES.items():
        chosen = HORIZONS[(first < HORIZONS) & (longest >= HORIZONS)]
        streams = int(size * options.scale)
        least = simulate(streams, False, options.fall, chosen, options.threads)
        columns += [lower_quantiles(column, PROBABILITIES) for column in least.T]
        sizes += [streams] * len(chosen)
        print(f"horizons up to {longest}: {streams} streams", flush=True)
        first = longest
    # a longer horizon cannot have a larger quantile, but for noise between batches
    levels = np.minimum.accumulate(np.array(columns), axis=0)

    streams = int(BATCHES[LONGEST] * options.scale)
    least = simulate(streams, True, options.fall, OCTAVES, options.threads)
    weighted = lower_quantiles(least[:, -1], PROBABILITIES)
    # The chance of a first stop in octave j falls like (1 + j)^-2: what lies beyond the last one
    # is about its increment times the remaining sum over its term.
    kappa = float(weighted[np.searchsorted(PROBABILITIES, 0.05)])
    stops = (least <= kappa).mean(axis=0)
    octave = np.log2(LONGEST / 16)
    beyond = (stops[-1] - stops[-2]) * sum((1 + octave + j) ** -2 for j in range(1, 100_000))
    beyond /= (1 + octave) ** -2 * stops[-1]
    print("P(stop) by", dict(zip(OCTAVES.tolist(), stops.tolist(), strict=True)), "beyond", beyond)
    np.savez_compressed(
        out,
        horizons=HORIZONS,
        probabilities=PROBABILITIES,
        levels=levels,
        streams=np.array(sizes),
        weighted=weighted,
        beyond=np.array(beyond),
    )


if __name__ == "__main__":
    main()
