"""The bound of one label, in O(1), for scalars and for arrays.

Layers: `log1p_excess` and `square_term` are scalars without a branch that would keep a loop from
being vectorised; `gp_kl_scalar` is what compiled callers use; `gp_kl_array` is the loop.
"""

from __future__ import annotations

import math

import numpy as np

from fastal._core.dots import dots
from fastal._core.jit import jit, jit_fused, jit_fused_part
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


@jit_fused_part
def log1p_excess(u: float) -> float:
    """Return ``u - log1p(u)`` for ``-1 < u < 1e300`` with full relative precision (3e-15).

    Below the cut-off ``1 + u < sqrt(2)`` (and above ``sqrt(1/2)``), where the two terms cancel,
    k is 0 and f is u, and what is left is the series of atanh; from there on the difference loses
    less than a factor of six. One formula serves both: there is no branch to mispredict.
    """
    t = np.float64(1.0 + u)
    bits = t.view(np.uint64)
    biased = (bits + ROUND) >> SHIFT
    k = np.uint64(biased | TWO52).view(np.float64) - TWO52_AND_BIAS
    # 2^-k
    down = np.uint64((TWICE_BIAS - biased) << SHIFT).view(np.float64)
    # 1 + f = (1 + u) 2^-k; the second term gives back the digits that 1 + u has lost
    f = (t * down - 1.0) + (u - (t - 1.0)) * down
    # log(1 + f) = 2 atanh(s) = 2s + s q,  s = f / (2 + f)
    s = f / (2.0 + f)
    w = s * s
    q = 2.0 * w * (P0 + w * (P1 + w * (P2 + w * (P3 + w * (P4 + w * (P5 + w * P6))))))
    # f - 2s = f s exactly, hence  u - log(1 + u) = (u - f) - k log(2) + s (f - q);  q < f
    return ((u - f) - k * LN2) + s * (f - q)


@jit_fused_part
def square_term(var: float, noise: float, d: float) -> float:
    """Return ``1/2 var d^2 / (noise (var + noise))`` where intermediate results leave the range.

    Mantissas and exponents go separate ways, so that only the result can overflow or underflow.
    """
    mv, ev = math.frexp(var)
    mn, en = math.frexp(noise)
    md, ed = math.frexp(d)
    # Of half the sum: var + noise itself may overflow.
    ms, es = math.frexp(0.5 * var + 0.5 * noise)
    if not (mv > 0.0) or d == 0.0:
        return 0.0 * d * d
    if math.isinf(md):
        return math.inf
    exponent = ev + 2 * ed - en - es - 2
    # Beyond these the result is inf or 0 whatever the mantissas are.
    if exponent > 1100:
        return math.inf
    if exponent < -1200:
        return 0.0
    half = exponent // 2
    quotient = mv * md / mn * (md / ms)
    # In two steps: ldexp takes each factor where it is a normal number.
    return quotient * math.ldexp(1.0, half) * math.ldexp(1.0, exponent - half)


@jit_fused_part
def gp_kl_fast(mean: float, var: float, y: float, noise: float) -> tuple[float, float, bool]:
    """Return r_t (Eq. 7 without C), u - log(1 + u), and whether r_t can be trusted.

    Only that of valid input can be.
    """
    # u = beta s
    u = np.float64(var / noise)
    d = y - mean
    p = np.float64(u * (d * d))
    q = np.float64(p / (var + noise))
    # r = 1/2 [ u - log(1 + u) ] + 1/2 u d^2 / (s + 1/beta)
    excess = log1p_excess(u)
    r = 0.5 * excess + 0.5 * q
    beyond = (u.view(np.uint64) - USUAL) | (p.view(np.uint64) - USUAL) | (q.view(np.uint64) - USUAL)
    return r, excess, (beyond >> USUAL_BITS) == ZERO


@jit_fused_part
def gp_kl_rare(mean: float, var: float, y: float, noise: float, excess: float) -> float:
    """Return r_t where intermediate results leave the usual range: no variance, no residual, ..."""
    u = var / noise
    return 0.5 * (u if u > 1e300 else excess) + square_term(var, noise, y - mean)


@jit_fused
def gp_kl_scalar(mean: float, var: float, y: float, noise: float) -> float:
    """Return r_t = KL(q_t || q_{t+1}) of a Gaussian process, without C (Eq. 7, Appendix B).

    `mean` and `var` are of f at the new input before its label `y` is known; `noise` is a
    variance. Nothing is checked: ``var >= 0``, ``noise > 0``, all finite.
    """
    r, excess, usual = gp_kl_fast(mean, var, y, noise)
    if usual:
        return r
    return gp_kl_rare(mean, var, y, noise, excess)


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
