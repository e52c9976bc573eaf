"""Length scale and noise ratio under a weak prior, from few labels: the fit of a campaign."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastal._core.weak import (
    FORM,
    HIGH,
    LEAST_RATIO,
    LEAST_SCALE,
    LOW,
    MEAN,
    MOST_RATIO,
    MOST_SCALE,
    PLACE,
    VALUE,
    WIDTHS,
    U,
    V,
    pair_squares,
    search,
)
from fastal._threads import one_blas_thread
from fastal._types import Array

# Fewer labels say nothing about four parameters.
LEAST_LABELS = 5

# Rows of a fit: a factor of more would take longer than choosing the labels did.
MAX_ROWS = 1000

# A length scale so near to a bound of the box, in the logarithm, is at its edge.
EDGE = 0.01


class WeakFit(NamedTuple):
    """What `weak_fit` found; a value."""

    lengthscale: float
    ratio: float  # g: the noise variance is amplitude * ratio
    amplitude: float
    mean: float
    log_posterior: float  # with estimator="plain" the restricted likelihood alone
    at_edge: bool  # the length scale is at a bound of the box
    n_evaluations: int

    @property
    def noise(self) -> float:
        """Noise variance."""
        return self.amplitude * self.ratio


def weak_fit(
    scaled_X: Array,
    y: Array,
    kind: int,
    *,
    start: tuple[float, float] | None = None,
    estimator: str = "weak",
    max_rows: int = MAX_ROWS,
    seed: int = 0,
    features: int | None = None,
) -> WeakFit:
    """Return one length scale, noise, amplitude and mean for labels of standardised inputs.

    The covariance of the labels is ``a (R + g I)`` with one length scale l. The restricted
    likelihood, the integral over the mean (flat) and over a (da / a), times the prior
    ``log(l / sqrt(d)) ~ N(0, 1)``, ``log(g) ~ N(-3, 2^2)``, has its maximum over ``l / sqrt(d)`` in
    [0.05, 30] and g in [1e-4, 10] at the values returned; the mean is that of generalised least
    squares, ``a = (y - mean)^T (R + g I)^-1 (y - mean) / (n - 1)``. Labels need no scaling.

    Nothing is checked but what labels alone can tell: callers have checked their arrays.

    Parameters
    ----------
    scaled_X : ndarray, shape (n, d)
        Inputs, standardised by the caller; finite doubles.
    y : ndarray, shape (n,)
        Labels; finite doubles.
    kind : int
        The kernel, a value of `fastal._core.covariance.KINDS`.
    start : (float, float), optional
        Length scale and ratio of the fit before. The search begins there, and once more at the
        best point of a coarse grid that is not near where that ended: a fit cannot stay in an
        optimum that new labels have made a bad one. Without it there are six searches, from the
        grid's lowest points and then from the best ones that are far from those and their ends.
    estimator : {"weak", "plain"}, optional
        "plain" leaves the prior out: the restricted likelihood alone, in the same box.
    max_rows : int, optional
        With more labels than this the fit uses a random subset of so many, which depends on `seed`
        and n only; the amplitude and the mean are those of the subset.
    seed : int, optional
        Seed of that subset.
    features : int, optional
        The d in the unit of the length scale. Default: the number of columns that are not constant
        (all, if every one is). A campaign passes that of its pool, so that d stays the same.

    Returns
    -------
    WeakFit
        Length scale (in units of the inputs), ratio, amplitude, mean, the logarithm of the
        posterior density of ``(log(l / sqrt(d)), log(g))`` up to that of the labels, whether the
        length scale is within 1 % of a bound of the box, and how often the density was computed.

    Raises
    ------
    ValueError
        If there are fewer than 5 labels, if all are equal (there is no amplitude then), or if
        their variance is no positive double.
    numpy.linalg.LinAlgError
        If no start could be factored.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal._core.covariance import RBF
    >>> from fastal.models import weak_fit
    >>> x = np.linspace(-1.7, 1.7, 30)[:, None]
    >>> fit = weak_fit(x, 7 + 2 * np.sin(3 * x[:, 0]), RBF)
    >>> round(fit.lengthscale, 2), fit.at_edge
    (0.55, False)
    >>> again = weak_fit(x, 7 + 2 * np.sin(3 * x[:, 0]), RBF, start=(fit.lengthscale, fit.ratio))
    >>> again.n_evaluations < fit.n_evaluations
    True
    """
    n, d = scaled_X.shape
    if n < LEAST_LABELS:
        raise ValueError(
            f"`y`: a fit with a weak prior needs at least {LEAST_LABELS} labels, got {n}: "
            f"{LEAST_LABELS - n} missing"
        )
    if features is None:
        features = int((scaled_X != scaled_X[0]).any(axis=0).sum()) or d
    root = math.sqrt(features)
    if n > max_rows:
        rows = np.sort(np.random.default_rng(seed).choice(n, max_rows, replace=False))
        scaled_X, y, n = scaled_X[rows], y[rows], max_rows
    labels, centre, unit = _standardised(y)
    squares = np.empty((n, n))
    pair_squares(np.ascontiguousarray(scaled_X.T), float(features), squares)
    before = np.full(2, math.nan)
    if start is not None:
        # Clipped before the logarithm: any positive numbers are a start.
        before[U] = math.log(min(max(start[0] / root, LEAST_SCALE), MOST_SCALE))
        before[V] = math.log(min(max(start[1], LEAST_RATIO), MOST_RATIO))
    best = np.empty(PLACE)
    weak = estimator == "weak"
    with one_blas_thread():  # the same digits on any number of cores
        count = search(kind, squares, labels, weak, before, best)
    if not best[VALUE] < math.inf:
        raise np.linalg.LinAlgError("the covariance of the labels is not positive definite")
    # exp(log(bound)) may be a digit outside of the box.
    scale = min(max(math.exp(best[U]), LEAST_SCALE), MOST_SCALE) * root
    ratio = min(max(math.exp(best[V]), LEAST_RATIO), MOST_RATIO)
    amplitude = float(best[FORM]) / (n - 1) * unit * unit
    mean = centre + unit * float(best[MEAN])
    if not (amplitude * min(ratio, 1.0) > 0.0 and amplitude * max(ratio, 1.0) < math.inf):
        raise ValueError(f"`y` must have a variance that is a positive double, got {unit:g}^2")
    constant = math.lgamma(0.5 * (n - 1)) - 0.5 * (n - 1) * math.log(math.pi)
    log_posterior = constant - float(best[VALUE]) - (n - 1) * math.log(unit)
    if weak:
        log_posterior -= math.log(2.0 * math.pi) + math.log(WIDTHS[0] * WIDTHS[1])
    at_edge = best[U] <= LOW[0] + EDGE or best[U] >= HIGH[0] - EDGE
    return WeakFit(scale, ratio, amplitude, mean, log_posterior, bool(at_edge), int(count))


def at_edge(lengthscale: float, features: int) -> bool:
    """Return whether a length scale lies at an edge of the box, or outside of it.

    Parameters
    ----------
    lengthscale : float
        In standard deviations of the inputs.
    features : int
        Number of features.

    Returns
    -------
    bool
        Whether a fit with it confirms nothing.

    Examples
    --------
    >>> from fastal.models.weak import at_edge
    >>> at_edge(2.0, 3), at_edge(1000.0, 3)
    (False, True)
    """
    place = math.log(lengthscale / math.sqrt(features))
    return not LOW[0] + EDGE < place < HIGH[0] - EDGE


def _standardised(y: Array) -> tuple[Array, float, float]:
    """Return labels of mean 0 and standard deviation 1, and both as they were."""
    # A power of two changes no digit, and keeps squares and differences among the doubles.
    _, exponent = math.frexp(float(np.abs(y).max()))
    labels = np.ldexp(y, -exponent)
    # All are below 1: their rounding is, too.
    if not np.ptp(labels) > 4.0 * np.finfo(np.float64).eps:
        raise ValueError(
            f"`y` must have different labels, got {y.size} times {float(y[0]):g}: "
            "equal labels have no amplitude"
        )
    centre = float(labels.mean())
    labels -= centre
    deviation = math.sqrt(float(labels @ labels) / y.size)
    labels /= deviation
    return labels, math.ldexp(centre, exponent), math.ldexp(deviation, exponent)
