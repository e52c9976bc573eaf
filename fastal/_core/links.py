"""Links of a classifier: log likelihood, slope and curvature of the latent value."""

from __future__ import annotations

import math

from fastal._core.jit import jit
from fastal._types import Array

LOGISTIC, PROBIT = 0, 1

LINKS = {"logistic": LOGISTIC, "probit": PROBIT}

SQRT_HALF = math.sqrt(0.5)

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)

SQRT_2PI = math.sqrt(2.0 * math.pi)

# From here downwards the tail of the normal distribution comes from its continued fraction, which
# at -4 has converged to the last digit after this many terms.
TAIL = -4.0

TAIL_TERMS = 36


@jit
def logistic(z: float) -> tuple[float, float, float]:
    """Return log s, d log s / dz and -d^2 log s / dz^2 of s = 1 / (1 + exp(-z))."""
    e = math.exp(-abs(z))
    large = 1.0 / (1.0 + e)
    small = e * large
    # s' / s = s(-z),  -(s' / s)' = s(z) s(-z): products of numbers that keep all their digits
    if z >= 0.0:
        return -math.log1p(e), small, small * large
    return z - math.log1p(e), large, small * large


@jit
def hazard_excess(x: float) -> float:
    """Return ``phi(x) / Phi(-x) - x`` for x >= 4: 1 / (x + 2 / (x + 3 / (x + ...)))."""
    rest = x
    for k in range(TAIL_TERMS, 1, -1):
        rest = x + k / rest
    return 1.0 / rest


@jit
def probit(z: float) -> tuple[float, float, float]:
    """Return log Phi, its slope rho = phi / Phi, and minus its second derivative rho (rho + z)."""
    if z < TAIL:
        # log Phi(z) = log phi(z) - log rho;  rho + z does not cancel
        excess = hazard_excess(-z)
        rho = excess - z
        return -0.5 * z * z - LOG_SQRT_2PI - math.log(rho), rho, rho * excess
    density = math.exp(-0.5 * z * z) / SQRT_2PI
    if z > 0.0:
        above = 0.5 * math.erfc(z * SQRT_HALF)
        rho = density / (1.0 - above)
        return math.log1p(-above), rho, rho * (rho + z)
    below = 0.5 * math.erfc(-z * SQRT_HALF)
    rho = density / below
    return math.log(below), rho, rho * (rho + z)


@jit
def differentiate(link: int, sign: Array, f: Array, n: int, slope: Array, w: Array) -> float:
    """Write first and minus second derivative of log p(y | f); return log p(y | f).

    All arrays: (>= n,); slope and w are written.
    """
    total = 0.0
    for i in range(n):
        if link == LOGISTIC:
            value, first, second = logistic(sign[i] * f[i])
        else:
            value, first, second = probit(sign[i] * f[i])
        total += value
        slope[i] = sign[i] * first
        w[i] = second
    return total
