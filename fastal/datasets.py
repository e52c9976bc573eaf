"""Data to try things on: the artificial model of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check

LOW, HIGH = -5.0, 15.0  # range of the inputs of `artificial`


def artificial_mean(x: ArrayLike) -> NDArray[np.float64]:
    """Return the noise-free curve of the artificial model.

    It is ``exp(-(x - 2)^2 / 2) + exp(-(x - 6)^2 / 10) + 1 / (x^2 + 1)``.

    Parameters
    ----------
    x : array_like
        Inputs, of any shape.

    Returns
    -------
    ndarray
        The curve, in the shape of `x`.

    Examples
    --------
    >>> from fastal.datasets import artificial_mean
    >>> artificial_mean([0.0, 2.0, 15.0]).round(4)
    array([1.1627, 1.4019, 0.0047])
    """
    x = check.finite_array("x", x)
    with np.errstate(over="ignore", under="ignore"):  # far away the curve is 0
        bump = np.exp(-((x - 2.0) ** 2) / 2.0)
        hill = np.exp(-((x - 6.0) ** 2) / 10.0)
        peak = 1.0 / (x**2 + 1.0)
        return np.asarray(bump + hill + peak)


def artificial(
    n: int = 2000, noise: float = 0.05, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw data from the artificial model of the paper.

    Inputs are uniform in [-5, 15]; labels are `artificial_mean` with Gaussian noise. The defaults
    are the one set of data that the paper's experiment resamples.

    Parameters
    ----------
    n : int
        Number of points.
    noise : float
        Standard deviation of the noise (not its variance, which `GaussianProcess` wants); may be 0.
    seed : int
        Seed of the generator.

    Returns
    -------
    X : ndarray, shape (n, 1)
        Inputs.
    y : ndarray, shape (n,)
        Labels.

    Examples
    --------
    >>> from fastal.datasets import artificial
    >>> X, y = artificial(n=100)
    >>> X.shape, y.shape
    ((100, 1), (100,))
    """
    n = check.count("n", n, 1)
    noise = check.zero_or_more("noise", noise)
    rng = np.random.default_rng(check.count("seed", seed))
    x = rng.uniform(LOW, HIGH, size=n)
    y = artificial_mean(x) + noise * rng.normal(size=n)
    return x[:, np.newaxis], y
