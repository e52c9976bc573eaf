"""Deterministic test functions, as stand-ins for computer simulations that people emulate.

The labels are the values of a function, without noise; the process gets a noise of the size of a
jitter. One length scale is fitted by marginal likelihood, as for the data sets of the paper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastal import _validation as check
from fastal._threads import one_blas_thread
from fastal._types import Array
from fastal.models.gp import GaussianProcess
from fastal.paper.protocol import FIT_ROWS, POOL, Problem, standardise

SIMULATORS = ("branin", "ishigami", "friedman1")

ROWS = 2000  # as many as the artificial set of the paper has

JITTER = 1e-6  # noise of the process, as a share of the variance of the labels


def branin(X: Array) -> Array:
    """Return Branin's function of inputs in the unit square: two smooth features, three minima.

    ``(v - 5.1 u^2 / (4 pi^2) + 5 u / pi - 6)^2 + 10 (1 - 1 / (8 pi)) cos u + 10`` with
    ``u = 15 x_1 - 5`` and ``v = 15 x_2``.
    """
    u, v = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    valley = v - 5.1 * u**2 / (4 * np.pi**2) + 5.0 * u / np.pi - 6.0
    values: Array = valley**2 + 10.0 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10.0
    return values


def ishigami(X: Array) -> Array:
    """Return Ishigami's function of inputs in the unit cube: three features, strongly curved.

    ``sin u + 7 sin^2 v + 0.1 w^4 sin u``, where each of u, v, w goes from -pi to pi.
    """
    u, v, w = np.pi * (2.0 * X.T - 1.0)
    values: Array = np.sin(u) + 7.0 * np.sin(v) ** 2 + 0.1 * w**4 * np.sin(u)
    return values


def friedman1(X: Array) -> Array:
    """Return Friedman's first function of inputs in the unit cube: five features, smooth.

    ``10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5``
    """
    values: Array = (
        10.0 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20.0 * (X[:, 2] - 0.5) ** 2
        + 10.0 * X[:, 3]
        + 5.0 * X[:, 4]
    )
    return values


# Number of features, and the function.
FUNCTIONS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "branin": (2, branin),
    "ishigami": (3, ishigami),
    "friedman1": (5, friedman1),
}


def simulator(name: str, seed: int = 0) -> Problem:
    """Return a deterministic simulator at 2,000 random inputs, with its process.

    Parameters
    ----------
    name : str
        One of `SIMULATORS`.
    seed : int
        Seed of the inputs, and of the fit.

    Returns
    -------
    Problem
        Inputs and labels are standardised; the noise of the process is 1e-6.
    """
    check.option("name", name, SIMULATORS)
    rng = np.random.default_rng(check.seed("seed", seed))
    features, function = FUNCTIONS[name]
    inputs = rng.uniform(size=(ROWS, features))
    X, y = standardise(inputs), standardise(function(inputs))
    with one_blas_thread():  # the same digits on any number of cores
        fitted = GaussianProcess(noise=JITTER).fit_hyperparameters(
            X[:FIT_ROWS], y[:FIT_ROWS], bounds={"noise": (JITTER, JITTER)}, seed=seed
        )
    # the noise itself, not what its logarithm makes of it
    return Problem(name, X, y, POOL, GaussianProcess(fitted.lengthscale, JITTER))
