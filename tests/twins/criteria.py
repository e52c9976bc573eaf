"""The measures of criteria, by refitting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from twins.bound import gaussian_kl

if TYPE_CHECKING:
    from twins.models import GaussianProcess


def expected_loss(gp: GaussianProcess, X: ArrayLike, y: ArrayLike) -> float:
    """Twin of `fastal.criteria.expected_loss`."""
    mean, var = gp.predict(X, return_var=True)
    square = float(np.mean((np.asarray(y, dtype=float) - mean) ** 2 + var))
    return square / (2 * gp.noise) + 0.5 * math.log(2 * math.pi * gp.noise)


def cross_validation_error(gp: GaussianProcess, folds: int = 5) -> float:
    """Twin of `fastal.criteria.cross_validation_error`: a refit without each fold."""
    X, y = np.array(gp.X), np.array(gp.y)
    total = 0.0
    for first in range(folds):
        held = np.arange(len(y)) % folds == first
        rest = gp.empty()
        rest.X, rest.y = list(X[~held]), list(y[~held])
        rest.noises = [gp.noise] * len(rest.y)
        total += expected_loss(rest, X[held], y[held]) * held.sum()
    return float(total / len(y))


def pac_bayes_bound(
    gp: GaussianProcess, loss_range: float, delta: float = 0.01, kappa: float = 0.01
) -> float:
    """Twin of `fastal.criteria.pac_bayes_bound`: a dense KL of posterior and prior."""
    X, y = np.array(gp.X), np.array(gp.y)
    mean, cov = gp.predict(X, return_cov=True)
    prior = gp.covariance(X, X)
    divergence = gaussian_kl(mean, cov, np.full(len(y), gp.mean), prior, jitter=kappa)
    risk = expected_loss(gp, X, y)
    return risk + (divergence - math.log(delta)) / len(y) + loss_range**2 / 2


def stabilizing_predictions_stop(agreements: list[float], cutoff: float, window: int) -> int | None:
    """Stop of `fastal.criteria.StabilizingPredictions`, from the kappas of neighbours.

    The n-th kappa is there with the n-th classifier after the first.
    """
    for n in range(window, len(agreements) + 1):
        if math.fsum(agreements[n - window : n]) / window > cutoff:
            return n + 1
    return None


def overall_uncertainty_stop(entropies: list[ArrayLike], threshold: float) -> int | None:
    """Stop of `fastal.criteria.OverallUncertainty`, from the entropies of each step."""
    for n, step in enumerate(entropies, start=1):
        if float(np.asarray(step).mean()) < threshold:
            return n
    return None


def max_uncertainty_stop(entropies: list[ArrayLike], threshold: float) -> int | None:
    """Stop of `fastal.criteria.MaxUncertainty`, from the entropies of each step."""
    for n, step in enumerate(entropies, start=1):
        if all(h < threshold for h in np.asarray(step)):
            return n
    return None


def error_stability_stop(gaps: ArrayLike, threshold: float) -> int | None:
    """Stop of `fastal.criteria.ErrorStability`, from the bounds on the gaps of errors."""
    first = 0.0
    for n, gap in enumerate(np.asarray(gaps).tolist(), start=1):
        first = first or gap
        if first and gap / first <= threshold:
            return n
    return None


def confidence_gradient_stop(confidences: list[float], threshold: float, window: int) -> int | None:
    """Stop of `fastal.criteria.ConfidenceGradient`, from the least ones of steps."""
    for n in range(window + 1, len(confidences) + 1):
        now = float(np.median(confidences[n - window : n]))
        before = float(np.median(confidences[n - window - 1 : n - 1]))
        if confidences[n - 1] > max(confidences[: n - 1]) and 0 < now - before < threshold:
            return n
    return None


def confidence_drop_stop(confidences: list[float], rounds: int) -> int | None:
    """Stop of `fastal.criteria.ConfidenceDrop`, from the mean confidence of each step."""
    for n in range(rounds + 1, len(confidences) + 1):
        if (np.diff(confidences[n - rounds - 1 : n]) < 0).all():
            return n
    return None
