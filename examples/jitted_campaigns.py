"""Ten thousand labelling campaigns in one compiled loop, on all cores: no Python between labels.

Each campaign draws bounds that fall from a high level to a low one after a random number of labels,
and stops when `fastal.jit` says so.
"""

import sys
import time

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from fastal.jit import gp_kl, stopper_free, stopper_new, stopper_push


@njit(nogil=True, cache=True)
def campaign(seed: int, alpha: float, budget: int) -> tuple[int, int]:
    """Return when the learner had converged and when the campaign stopped; -1 for never."""
    np.random.seed(seed)
    converged = np.random.randint(10, 40)
    stopper = stopper_new(alpha)
    stopped_at = -1
    for label in range(budget):
        var = 1.0 if label < converged else 0.02
        y = np.random.normal() * np.sqrt(var + 0.01)
        if stopper_push(stopper, gp_kl(0.0, var, y, 0.01)):
            stopped_at = label + 1
            break
    stopper_free(stopper)
    return converged, stopped_at


@njit(nogil=True, parallel=True)
def simulate(n: int, alpha: float, budget: int) -> NDArray[np.int64]:
    """Run n campaigns; return their (converged, stopped at)."""
    out = np.empty((n, 2), dtype=np.int64)
    for i in prange(n):
        out[i] = campaign(i, alpha, budget)
    return out


def main(n: int = 10_000) -> None:
    """Simulate, and say how it went."""
    simulate(10, 1e-3, 200)  # compile
    start = time.perf_counter()
    converged, stopped_at = simulate(n, 1e-3, 200).T
    seconds = time.perf_counter() - start
    done = stopped_at > 0
    late = (stopped_at - converged)[done]
    print(f"{n} campaigns in {seconds:.2f} s, {done.mean():.1%} stopped by themselves")
    middle, most = np.quantile(late, [0.5, 0.9])
    print(f"labels after convergence: median {middle:.0f}, 90 % within {most:.0f}")
    print(f"stopped before convergence: {(late < 0).mean():.2%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
