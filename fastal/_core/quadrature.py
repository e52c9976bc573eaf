"""Means of functions of one latent value over a Gaussian."""

from __future__ import annotations

import math

import numpy as np

from fastal._core.covariance import exp_negative
from fastal._core.jit import jit
from fastal._core.links import LOGISTIC, PROBIT, SQRT_2PI, SQRT_HALF, logistic, probit
from fastal._types import Array

# Functions of the latent value whose mean over a Gaussian is taken; a link's own log likelihood
# has the number of the link.
LOG_LOGISTIC, LOG_PROBIT, PLAIN_LOGISTIC = LOGISTIC, PROBIT, 2

# A Gaussian is integrated over this many standard deviations to each side: what is left is 2e-19.
REACH = 9.0

# Trapezoidal rule over the standard normal distribution. With every fourth node, 0.45 apart, it
# errs by exp(2.8^2 / 2 - 2 pi 2.8 / 0.45) = 5e-16 for functions analytic within 2.8 of the real
# line.
APART = 0.45 / 4

STEPS = APART * np.arange(-80.0, 81.0)

DENSITIES = APART * np.exp(-0.5 * STEPS**2) / SQRT_2PI

# Gauss-Legendre rule of 16 nodes on [-1, 1], exact for polynomials of degree 31.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


@jit
def value_at(function: int, f: float) -> float:
    """Return log s(f), log Phi(f), or s(f)."""
    if function == LOG_LOGISTIC:
        return logistic(f)[0]
    if function == LOG_PROBIT:
        return probit(f)[0]
    e = exp_negative(-abs(f))
    return (1.0 if f >= 0.0 else e) / (1.0 + e)


@jit
def panel(function: int, mean: float, sd: float, low: float, high: float) -> float:
    """Return the integral of function times density over z = (f - mean) / sd from low to high."""
    half = 0.5 * (high - low)
    centre = 0.5 * (high + low)
    total = 0.0
    for k in range(NODES.size):
        z = centre + half * NODES[k]
        total += WEIGHTS[k] * exp_negative(-0.5 * z * z) * value_at(function, mean + sd * z)
    return half * total / SQRT_2PI


@jit
def gaussian_mean(function: int, mean: float, sd: float) -> float:
    """Return the mean of a function of f ~ N(mean, sd^2).

    The functions are analytic but for singularities at least 2.8 off the real line, near f = 0 (for
    log Phi also along the diagonals of the left half plane). The trapezoidal rule serves up to
    sd = 4, and far from 0. Else panels of Gauss-Legendre nodes are 2 wide near f = 0, and grow
    with the distance from there; none is wider than 4 standard deviations.
    """
    total = 0.0
    far = abs(mean) >= 17.0 * sd
    if sd <= 4.0 or far:
        # nodes half as far apart for a Gaussian twice as wide
        stride = 4 if sd <= 1.0 or far else 2 if sd <= 2.0 else 1
        for k in range(0, STEPS.size, stride):
            total += DENSITIES[k] * value_at(function, mean + sd * STEPS[k])
        return stride * total
    low, end = mean - REACH * sd, mean + REACH * sd
    while low < end:
        room = max(2.0, low if low > 0.0 else -0.5 * low)
        high = min(end, low + min(4.0 * sd, room))
        total += panel(function, mean, sd, (low - mean) / sd, (high - mean) / sd)
        low = high
    return total


@jit
def probabilities(link: int, mean: Array, var: Array, out: Array) -> None:
    """Write E p(-1 | f) and E p(1 | f) for f ~ N(mean_i, var_i) to row i of `out`, shape (m, 2)."""
    for i in range(mean.size):
        # The smaller one is computed: their sum is 1, and opposite means give opposite answers.
        m = -abs(mean[i])
        if m == 0.0:
            small = 0.5
        elif link == PROBIT:
            # E Phi(f) = Phi(m / sqrt(1 + v))
            small = 0.5 * math.erfc(-m / math.sqrt(1.0 + var[i]) * SQRT_HALF)
        else:
            small = min(gaussian_mean(PLAIN_LOGISTIC, m, math.sqrt(var[i])), 0.5)
        out[i, 0] = small if mean[i] > 0.0 else 1.0 - small
        out[i, 1] = 1.0 - small if mean[i] > 0.0 else small


@jit
def expected_losses(link: int, sign: Array, mean: Array, var: Array, out: Array) -> None:
    """Write -E log p(y | f) for f ~ N(mean_i, var_i); all arrays (m,)."""
    for i in range(mean.size):
        out[i] = -gaussian_mean(link, sign[i] * mean[i], math.sqrt(var[i]))
