"""Ten thousand labelling campaigns in one compiled loop, on all cores: no Python between labels.

Each campaign draws bounds that fall from a high level to a low one after a random number of labels,
and stops when `fastal.jit` says so.
"""

import sys
import time

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from fastal import Stopper, Streams
from fastal.jit import gp_kl, push


@njit(nogil=True, cache=True)
def campaign(handle: int, i: int, budget: int) -> int:
    """Push the bounds of campaign i until it stops; return when the learner had converged."""
    np.random.seed(i)
    converged = np.random.randint(10, 40)
    for label in range(budget):
        var = 1.0 if label < converged else 0.02
        y = np.random.normal() * np.sqrt(var + 0.01)
        if push(handle, i, gp_kl(0.0, var, y, 0.01)):
            break
    return converged


@njit(nogil=True, parallel=True)
def simulate(handle: int, n: int, budget: int) -> NDArray[np.int64]:
    """Run n campaigns, one for each stream; return when their learners had converged."""
    out = np.empty(n, dtype=np.int64)
    for i in prange(n):
        out[i] = campaign(handle, i, budget)
    return out


def main(n: int = 10_000) -> None:
    """Simulate, and say how it went."""
    streams = Streams(Stopper(1e-3), 10)
    simulate(streams.handle, 10, 200)  # compile
    start = time.perf_counter()
    streams = Streams(Stopper(1e-3), n)
    converged = simulate(streams.handle, n, 200)
    stopped_at = streams.stopped_at  # -1 for never
    seconds = time.perf_counter() - start
    done = stopped_at > 0
    late = (stopped_at - converged)[done]
    print(f"{n} campaigns in {seconds:.2f} s, {done.mean():.1%} stopped by themselves")
    middle, most = np.quantile(late, [0.5, 0.9])
    print(f"labels after convergence: median {middle:.0f}, 90 % within {most:.0f}")
    print(f"stopped before convergence: {(late < 0).mean():.2%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
