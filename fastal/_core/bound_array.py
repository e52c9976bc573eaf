"""The bound of one label, in O(1), for scalars and for arrays.

Layers: `log1p_excess` and `gp_kl_fast` are formulas without a branch that would keep a loop from
being vectorised; `gp_kl_scalar` is what compiled callers use; `gp_kl_array` is the loop. The rare
square term that leaves the range of doubles on its way is that of the twin, `bound_scalar`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastal._core.dots import dots
from fastal._core.formula import bits, double, formula
from fastal._core.jit import jit, jit_fused, jit_part
from fastal._core.symbols import square_term
from fastal._types import Array

# 1 + u = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2): adding ROUND to the bits of a double
# carries into the exponent exactly from sqrt(2) on.
ROUND = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)

SHIFT = np.uint64(52)

TWICE_BIAS = np.uint64(2046)

# The bits of 2^52: an integer below 2^52 put into its low bits makes the double 2^52 + integer.
TWO52 = np.uint64(0x4330000000000000)

TWO52_AND_BIAS = 4503599627370496.0 + 1023.0

LN2 = 0.6931471805599453

# atanh(s)/s = 1 + s^2 P(s^2), |s| <= (sqrt(2)-1)/(sqrt(2)+1), error below 1e-17 (relative to 1).
# P interpolates (atanh(sqrt(w))/sqrt(w) - 1)/w at the 7 Chebyshev nodes of [0, 0.02944]; made with
# 40-digit mpmath: w_k = a/2 (1 + cos(pi (2k+1)/14)), a = ((sqrt(2)-1)/(sqrt(2)+1))^2, lu_solve.
P0 = 0.3333333333333335

P1 = 0.19999999999949752

P2 = 0.14285714312987743

P3 = 0.1111110556739754

P4 = 0.09091444562630861

P5 = 0.07665860800278021

P6 = 0.07308224842521703

# Where u, u d^2 and the square term lie within 2^-256 and 2^256, no intermediate result has lost
# anything. For the bits of a double that is one comparison of unsigned integers: the difference
# from the bits of 2^-256 is below 2^61, and is not for NaN and negative numbers.
USUAL = np.uint64((1023 - 256) << 52)

USUAL_BITS = np.uint64(61)

ZERO = np.uint64(0)

# Elements of an array done in one go before the rare ones among them are done again.
BLOCK = 512


@formula
def log1p_excess(u: Any) -> Any:
    """Return ``u - log1p(u)`` for ``-1 < u < 1e300`` with full relative precision (3e-15).

    Below the cut-off ``1 + u < sqrt(2)`` (and above ``sqrt(1/2)``), where the two terms cancel,
    k is 0 and f is u, and what is left is the series of atanh; from there on the difference loses
    less than a factor of six. One formula serves both: there is no branch to mispredict.
    """
    t = 1.0 + u
    biased = (bits(t) + ROUND) >> SHIFT
    k = double(biased | TWO52) - TWO52_AND_BIAS
    # 2^-k
    down = double((TWICE_BIAS - biased) << SHIFT)
    # 1 + f = (1 + u) 2^-k; the second term gives back the digits that 1 + u has lost
    f = (t * down - 1.0) + (u - (t - 1.0)) * down
    # log(1 + f) = 2 atanh(s) = 2s + s q,  s = f / (2 + f)
    s = f / (2.0 + f)
    w = s * s
    q = 2.0 * w * (P0 + w * (P1 + w * (P2 + w * (P3 + w * (P4 + w * (P5 + w * P6))))))
    # f - 2s = f s exactly, hence  u - log(1 + u) = (u - f) - k log(2) + s (f - q);  q < f
    return ((u - f) - k * LN2) + s * (f - q)


@formula
def gp_kl_fast(mean: Any, var: Any, y: Any, noise: Any) -> Any:
    """Return r_t (Eq. 7 without C), u - log(1 + u), and whether r_t can be trusted.

    Only that of valid input can be.
    """
    # u = beta s
    u = var / noise
    d = y - mean
    p = u * (d * d)
    q = p / (var + noise)
    # r = 1/2 [ u - log(1 + u) ] + 1/2 u d^2 / (s + 1/beta)
    excess = log1p_excess.on(u)
    r = 0.5 * excess + 0.5 * q
    beyond = (bits(u) - USUAL) | (bits(p) - USUAL) | (bits(q) - USUAL)
    return r, excess, (beyond >> USUAL_BITS) == ZERO


@jit_part
def gp_kl_scalar(mean: float, var: float, y: float, noise: float) -> float:
    """Return r_t = KL(q_t || q_{t+1}) of a Gaussian process, without C (Eq. 7, Appendix B).

    `mean` and `var` are of f at the new input before its label `y` is known; `noise` is a
    variance. NaN unless ``var >= 0`` and ``noise > 0``.
    """
    r, excess, usual = gp_kl_fast(mean, var, y, noise)
    if usual:
        return r
    if not (var >= 0.0 and noise > 0.0):
        return math.nan
    # no variance, no residual, or what leaves the range of doubles on the way
    u = var / noise
    return 0.5 * (u if u > 1e300 else excess) + square_term(var, noise, y - mean)


@jit_fused
def gp_kl_array(mean: Array, var: Array, y: Array, noise: Array, out: Array) -> int:
    """Write r_t of each element to `out`; return how many elements are no valid input.

    out : (n,). The others are of shape (n,), or hold min(n, BLOCK) copies of one number. They are
    only read, some of them twice: `out` shares no memory with them.
    """
    n = out.size
    invalid = 0
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        # An argument that is one number is read from its beginning for every block.
        ms = mean[start:stop] if mean.size == n else mean
        vs = var[start:stop] if var.size == n else var
        ys = y[start:stop] if y.size == n else y
        ws = noise[start:stop] if noise.size == n else noise
        rs = out[start:stop]
        rare = 0
        for i in range(rs.size):
            r, _, usual = gp_kl_fast(ms[i], vs[i], ys[i], ws[i])
            rs[i] = r
            rare += 0 if usual else 1
        if rare > 0:
            for i in range(rs.size):
                rs[i] = gp_kl_scalar(ms[i], vs[i], ys[i], ws[i])
                d = abs(ys[i] - ms[i])
                if not (0.0 <= vs[i] < math.inf and 0.0 < ws[i] < math.inf and d < math.inf):
                    invalid += 1
    return invalid


@jit
def gaussian_kl_sum(L0: Array, L1: Array, M: Array, delta: Array) -> float:
    """Return KL(N0 || N1) from the factors of both covariances (Corollary 1).

    L0, L1 : (k, k), lower factors.  M : (k, k), L1^-1 L0.  delta : (k,), L1^-1 (mean1 - mean0).
    The arguments are only read.
    """
    k = delta.size
    total = 0.0
    for i in range(k):
        # tr(M M^T) - k - log det(M M^T) = sum_i [e_i - log(1 + e_i)] + sum_{j<i} M_ij^2,
        # e_i = M_ii^2 - 1 = (L0_ii - L1_ii)(L0_ii + L1_ii) / L1_ii^2: every term is >= 0.
        a = L0[i, i]
        b = L1[i, i]
        total += log1p_excess(((a - b) / b) * ((a + b) / b))
        total += dots((M[i],), M[i], i)[0]
        total += delta[i] * delta[i]
    return 0.5 * total
