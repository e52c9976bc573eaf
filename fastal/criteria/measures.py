"""The measures that criteria compare, as pure functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._types import Array, Ints


def first_crossing(history: ArrayLike, threshold: float, *, rises: bool = False) -> int | None:
    """Return the number of measures at the first one that is at most the threshold.

    Parameters
    ----------
    history : array_like
        Measures, one per label; NaN crosses nothing.
    threshold : float
        A finite number.
    rises : bool
        Whether to look for one that is at least the threshold instead.

    Returns
    -------
    int or None
        Counted from 1; None if there is none.

    Examples
    --------
    >>> from fastal.criteria.measures import first_crossing
    >>> first_crossing([5.0, 3.0, 4.0, 1.0], 3.5)
    2
    """
    values = check.float_array("history", history)
    if values.ndim != 1:
        raise ValueError(f"`history` must have one axis, got shape {values.shape}")
    limit = check.real("threshold", threshold)
    at = int(crossing_counts(values[None], np.array([limit]), check.flag("rises", rises))[0, 0])
    return at if at <= len(values) else None


def crossing_counts(histories: Array, thresholds: Array, rises: bool) -> Ints:
    """Return `first_crossing` of each threshold in each history: (k, m), counted from 1.

    histories : (m, n).  thresholds : (k,).  n + 1 stands where there is no crossing.
    """
    sign = -1.0 if rises else 1.0
    values = np.where(np.isnan(histories), np.inf, sign * histories)
    lowest = np.minimum.accumulate(values, axis=1)
    n = histories.shape[1]
    # `lowest` falls: so many of its values are above a threshold.
    above = [n - np.searchsorted(row[::-1], sign * thresholds, side="right") for row in lowest]
    counts: Ints = np.array(above, dtype=np.int64).T + 1
    return counts


def cohen_kappa(a: ArrayLike, b: ArrayLike) -> float:
    """Return how far two classifiers agree beyond chance.

    With the observed agreement A_o and A_e, the agreement of independent predictions that have the
    same frequencies, ``kappa = (A_o - A_e) / (1 - A_e)`` (Cohen 1960). If both predict one and the
    same class throughout, A_e is 1 and kappa is 0/0; they agree wholly, so it is 1 here.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Predicted classes of the same examples: numbers, texts or booleans.

    Returns
    -------
    float
        At most 1, which is reached only if all predictions agree.

    Examples
    --------
    >>> from fastal.criteria.measures import cohen_kappa
    >>> cohen_kappa(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    0.5
    """
    first, second = check.labels("a", a), check.labels("b", b)
    check_same_classes("b", second, first)
    n = first.size
    classes, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts_a, counts_b = (
        np.bincount(half, minlength=len(classes)) for half in np.split(codes.ravel(), 2)
    )
    # n^2 A_o and n^2 A_e are whole numbers: one rounding in all
    observed = n * int((first == second).sum())
    expected = int((counts_a * counts_b).sum())
    return 1.0 if expected == n * n else (observed - expected) / (n * n - expected)


def check_same_classes(name: str, labels: NDArray[Any], like: NDArray[Any]) -> None:
    """Raise unless predictions are as many as others, and of the same kind."""
    if labels.size != like.size:
        raise ValueError(f"`{name}` must have {like.size} elements, got {labels.size}")
    if (labels.dtype.kind == "U") != (like.dtype.kind == "U"):
        raise TypeError(f"`{name}` must be of dtype {like.dtype} as before, got {labels.dtype}")


def share_changed(a: ArrayLike, b: ArrayLike) -> float:
    """Return the share of examples of which two classifiers predict different classes.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Predicted classes of the same examples: numbers, texts or booleans.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from fastal.criteria.measures import share_changed
    >>> share_changed(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    0.25
    """
    first, second = check.labels("a", a), check.labels("b", b)
    check_same_classes("b", second, first)
    return float((first != second).mean())


def delta_f(a: ArrayLike, b: ArrayLike) -> float:
    """Return the change of the F-score that two classifiers' predictions let expect.

    With n11 examples that both classifiers predict positive, and n10 and n01 that only one does,
    ``1 - 2 n11 / (2 n11 + n10 + n01)``: one minus the F-score of one by the other.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Predicted classes of the same examples: numbers, texts or booleans. Of two classes the later
        one is positive; of more the mean over the classes is taken.

    Returns
    -------
    float
        From 0, which is reached only if all predictions agree, to 1.

    Examples
    --------
    >>> from fastal.criteria.measures import delta_f
    >>> round(delta_f([0, 0, 1, 1], [0, 1, 1, 1]), 4)
    0.2
    """
    first, second = check.labels("a", a), check.labels("b", b)
    check_same_classes("b", second, first)
    classes = np.unique(np.concatenate([first, second]))
    changes = []
    for positive in classes[1:] if len(classes) == 2 else classes:
        one, other = first == positive, second == positive
        changes.append(int((one != other).sum()) / int(one.sum() + other.sum()))
    return math.fsum(changes) / len(changes)


def entropies(p: ArrayLike) -> Array:
    """Return the entropy of each predicted distribution, ``-sum_y p(y) log p(y)``, in nats.

    Parameters
    ----------
    p : array_like, shape (n, k) or (n,)
        Class probabilities in rows, or the probability of the positive one of two classes.

    Returns
    -------
    ndarray, shape (n,)
        Between 0 and log k.

    Examples
    --------
    >>> from fastal.criteria.measures import entropies
    >>> entropies([[0.5, 0.5], [0.0, 1.0]]).round(4)
    array([0.6931, 0.    ])
    >>> entropies([0.5, 1.0]).round(4)
    array([0.6931, 0.    ])
    """
    p = check.class_probabilities("p", p)
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = np.where(p > 0, -p * np.log(p), 0.0)
        if p.ndim == 2:
            entropy: Array = surprise.sum(axis=1)
        else:  # log1p: full precision of log(1 - p) for small p
            entropy = surprise + np.where(p < 1, (p - 1) * np.log1p(-p), 0.0)
    return entropy + 0.0  # -1 log 1 is -0.0


# W0 has a branch point where a divergence is 0: below this divergence it loses digits.
_SMALL = 0.5

# x e^x - e^x + 1 = x^2 sum_k (k + 1) x^k / (k + 2)!; enough terms for x < 0.8
_EXCESS = [(k + 1) / math.factorial(k + 2) for k in range(17)]


def error_gap(kl: ArrayLike) -> Any:
    """Bound the gap of the expected errors of two posteriors by their divergence.

    ``u(KL) = exp(1 + W0((KL - 1) / e)) - 1``, with W0 the principal branch of Lambert's function;
    it is the inverse of ``(1 + u) log(1 + u) - u``. For small divergences it is about
    ``sqrt(2 KL)``.

    Parameters
    ----------
    kl : array_like
        Kullback-Leibler divergences, not negative.

    Returns
    -------
    float or ndarray
        The bound, in the shape of `kl`, for a loss whose range has length 1. For another length,
        multiply by it. Relative precision is kept down to the smallest divergences.

    Notes
    -----
    Let q and p be the posteriors after and before a label, R the risk of a model under a loss of
    range 1, and phi the deviation of R from its mean under p. By Donsker and Varadhan
    ``E_q phi <= (KL(q || p) + log E_p exp(t phi)) / t`` for every t > 0, and since phi is at most
    1, Bennett's inequality bounds the logarithm by ``v (e^t - t - 1)`` for every v that is not
    below the variance of R under p. With v = 1 the least of these bounds is at
    ``(t - 1) e^(t - 1) = (KL - 1) / e``, that is t = 1 + W0((KL - 1) / e), and it is e^t - 1. (The
    variance is at most 1/4, so that ``u(4 KL) / 4`` would be valid, too, and tighter.)

    Examples
    --------
    >>> from fastal.criteria.measures import error_gap
    >>> error_gap([0.0, 0.01, 1.0]).round(4)
    array([0.    , 0.1447, 1.7183])
    """
    divergence = check.not_negative("kl", kl)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = _exponent_of_small(np.where(divergence < _SMALL, divergence, 0.0))
    large = divergence >= _SMALL
    if large.any():
        from scipy.special import lambertw

        z = (np.where(large, divergence, 1.0) - 1.0) / math.e
        t = np.where(large, 1.0 + lambertw(z).real, t)
    bound = np.expm1(t)
    return float(bound) if bound.ndim == 0 else bound


def _exponent_of_small(kl: Array) -> Array:
    """Solve t e^t - e^t + 1 = kl for 0 <= kl < `_SMALL` by Newton's method."""
    root = np.sqrt(2.0 * kl)
    t = root - root**2 / 3.0  # 1 + W0 = root - root^2 / 3 + ...
    for _ in range(5):  # relative errors below 0.2, 2e-2, 3e-4, 1e-7, 1e-14, 1e-28
        # both sides divided by t, which keeps squares of tiny numbers away
        t = t - (t * np.polynomial.polynomial.polyval(t, _EXCESS) - kl / t) * np.exp(-t)
    return np.where(kl > 0, t, 0.0)
