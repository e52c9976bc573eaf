"""The forecast, label by label."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fastal._types import Array

if TYPE_CHECKING:
    from fastal.reference.models import GaussianProcess


def forecast(
    X: ArrayLike, gp: GaussianProcess, *, labelled: ArrayLike = ()
) -> tuple[list[int], Array, float]:
    """Twin of `fastal.forecast`: everything refitted with each point left out, O(n^6).

    Parameters
    ----------
    X : array_like, shape (n, d)
        The pool.
    gp : reference.GaussianProcess
        The parameters.
    labelled : array_like of int
        Rows labelled already, in order.

    Returns
    -------
    order : list of int
        Rows as maximum variance takes them.
    reduction : array, shape (n,)
        With every labelled point left out, not only some.
    noise_of_final : float
        From the covariance of every two points given the others.
    """
    points = np.asarray(X, dtype=float)
    n = len(points)
    K = gp.covariance(points, points)
    given = [int(i) for i in np.asarray(labelled)]

    def posterior(labels: list[int], at: list[int]) -> Array:
        A = K[np.ix_(labels, labels)] + gp.noise * np.eye(len(labels))
        cross = K[np.ix_(labels, at)]
        return np.asarray(K[np.ix_(at, at)] - cross.T @ np.linalg.solve(A, cross))

    def selected(first: list[int], candidates: list[int]) -> list[int]:
        order, left = list(first), [i for i in candidates if i not in first]
        while left:
            var = [float(posterior(order, [i])[0, 0]) for i in left]
            # of variances that agree to rounding the earlier candidate wins
            best = next(k for k, v in enumerate(var) if v >= max(var) * (1 - 1e-12))
            order.append(left.pop(best))
        return order

    order = selected(given, list(range(n)))
    reduction = np.zeros(n)
    for i in range(n):
        without = selected([j for j in given if j != i], [j for j in order if j != i])
        loo = posterior(without, [i])[0, 0]
        for t in range(1, n + 1):
            reduction[t - 1] += (posterior(without[:t], [i])[0, 0] - loo) / n
    squares = [
        posterior([k for k in range(n) if k not in pair], list(pair))[0, 1] ** 2
        for pair in itertools.combinations(range(n), 2)
    ]
    return order, reduction, math.sqrt(2 * sum(squares) / len(squares))


def forecast_rmse(
    X: ArrayLike, gp: GaussianProcess, *, labelled: ArrayLike = ()
) -> tuple[Array, float, Array]:
    """Twin of `Forecast.rmse` and `Forecast.rmse_share`: dense posteriors, point by point.

    Parameters
    ----------
    X : array_like, shape (n, d)
        The pool.
    gp : reference.GaussianProcess
        The parameters.
    labelled : array_like of int
        Rows labelled already, in order.

    Returns
    -------
    rmse : array, shape (n,)
        Expected root mean squared error at a point of the pool, predicted from the first t of the
        others, which are selected without it.
    end : float
        The same from all others.
    share : array, shape (n,)
        ``(rmse - end) / (rmse[4] - end)``; ones if the fall is less than 2 % of ``rmse[4]``.
    """
    points = np.asarray(X, dtype=float)
    n = len(points)
    given = [int(i) for i in np.asarray(labelled)]
    order = forecast(points, gp, labelled=given)[0]

    def variance(i: int, labels: list[int]) -> float:
        K = gp.covariance(points[labels], points[labels]) + gp.noise * np.eye(len(labels))
        k = gp.covariance(points[labels], points[[i]])[:, 0]
        return float(gp.amplitude - k @ np.linalg.solve(K, k))

    squares, end = np.zeros(n), 0.0
    for i in range(n):
        chosen = [j for j in given if j != i]
        candidates = [j for j in order if j != i and j not in chosen]
        while candidates:
            left = [variance(j, chosen) if chosen else gp.amplitude for j in candidates]
            best = next(k for k, v in enumerate(left) if v >= max(left) * (1 - 1e-12))
            chosen.append(candidates.pop(best))
        for t in range(1, n + 1):
            squares[t - 1] += (variance(i, chosen[:t]) + gp.noise) / n
        end += (variance(i, chosen) + gp.noise) / n
    rmse, last = np.sqrt(squares), math.sqrt(end)
    fall = float(rmse[min(5, n) - 1]) - last
    if fall < 0.02 * (fall + last):
        return rmse, last, np.ones(n)
    return rmse, last, (rmse - last) / fall


def forecast_loop(
    X: ArrayLike, gp: GaussianProcess, *, labelled: ArrayLike = (), samples: int = 32
) -> tuple[list[int], Array, float]:
    """Do what `fastal.forecast` does by plain loops, one matrix-vector product per label.

    Parameters
    ----------
    X, gp, labelled
        As in `forecast`.
    samples : int
        How many labelled points are left out; their reruns begin at their own step.

    Returns
    -------
    order, reduction, noise_of_final
        As in `forecast`.
    """
    points = np.asarray(X, dtype=float)
    n = len(points)
    K = gp.covariance(points, points)
    given = [int(i) for i in np.asarray(labelled)]

    def roll(order: list[int], V: Array, var: Array, first: list[int], barred: int) -> Array:
        """Go on from `order`, with `first` next; return the variances after each label."""
        history = [var]
        left = np.ones(n, dtype=bool)
        left[[*order, *([] if barred < 0 else [barred])]] = False
        for t in range(len(order), n - (barred >= 0)):
            free = np.where(left, var, -np.inf)
            i = first.pop(0) if first else int(np.argmax(free))
            V[t] = (K[i] - V[:t, i] @ V[:t]) / math.sqrt(max(var[i], 0.0) + gp.noise)
            var = var - V[t] ** 2
            left[i] = False
            order.append(i)
            history.append(var)
        return np.array(history)

    order: list[int] = []
    V: Array = np.empty((n, n))
    variances = roll(order, V, np.diag(K).copy(), list(given), -1)
    P = np.linalg.inv(K + gp.noise * np.eye(n))
    diagonal = np.diag(P).copy()
    loo = 1 / diagonal - gp.noise
    number = min(samples, n)
    steps = [k * n // number for k in range(number)]
    excess: dict[int, Array] = {}  # of the points left out, after j, j + 1, ... labels
    for j in steps:
        i, fixed = order[j], given[j + 1 :]
        again = V.copy()
        if j == 0 and not fixed:
            fixed = [order[1]]  # all variances are equal
        excess[j] = roll(order[:j], again, variances[j], fixed, i)[:, i] - loo[i]
    reduction = np.empty(n)
    for t in range(1, n + 1):
        rest = order[t:]
        labelled_part = np.mean([excess[j][min(t, n - 1) - j] for j in steps if j < t])
        reduction[t - 1] = ((variances[t] - loo)[rest].sum() + t * labelled_part) / n
    C = P / (np.outer(diagonal, diagonal) - P**2 + np.diag(np.full(n, np.inf)))
    return order, reduction, math.sqrt(2 * (C**2).sum() / (n * (n - 1)))
