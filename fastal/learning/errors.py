"""Errors on a test set after each label, also when the hyper-parameters change on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastal._core.predictive import add_densities
from fastal._threads import one_blas_thread
from fastal._types import Array
from fastal.learning.eager import EagerSelection
from fastal.learning.gaussian import by_panels
from fastal.learning.selection import ErrorCurves

if TYPE_CHECKING:
    from fastal.learning.campaign import Campaign
    from fastal.models.gp import GaussianProcess


def test_errors(campaign: Campaign, X: Array, y: Array, threads: int) -> ErrorCurves:
    """Return the errors of a campaign on a test set after each label.

    With given hyper-parameters, the expected loss. With fits on the way, minus the logarithm of the
    predictive density, under the fit of each moment; NaN before the first one.
    """
    if campaign._refits is None:
        return campaign._selection.test_errors(X, y, threads)
    t = campaign.n_labels
    loss, rmse = np.full(t, np.nan), np.full(t, np.nan)
    fits = campaign.refits
    rows = campaign._selection.labels
    for number, fit in enumerate(fits):
        last = fits[number + 1].n_labels - 1 if number + 1 < len(fits) else t
        if last < fit.n_labels:
            continue  # another fit of the same labels came after it
        gp = campaign._refits.process(number)
        own = None
        if campaign._noises:
            own = [campaign._noises.get(row, gp.noise) for row in rows[:last].tolist()]
        selection = _of_labels(gp, campaign.points[rows[:last]], campaign._selection.y[:last], own)
        _write_errors(selection, gp, X, y, threads, fit.n_labels, loss, rmse)
    return ErrorCurves(loss, rmse)


def _of_labels(
    gp: GaussianProcess, X: Array, y: Array, noise: list[float] | None
) -> EagerSelection:
    """Return a selection over the labelled points alone, in order."""
    n = len(y)
    selection = EagerSelection(gp, gp.prior.scale("X", X), np.arange(n), n, n)
    if noise is None:
        selection.run(y, n, None, True, 1)
    else:
        for i in range(n):
            selection.accept(i, float(y[i]), noise[i])
    return selection


def _write_errors(
    selection: EagerSelection,
    gp: GaussianProcess,
    X: Array,
    y: Array,
    threads: int,
    first: int,
    loss: Array,
    rmse: Array,
) -> None:
    """Write the errors after `first` labels and more."""
    t, m = selection.n_labels, len(y)
    Z = gp.prior.scale("test", X)
    if by_panels(m, t):
        densities, squares = selection.error_sums(Z, y, threads, predictive=True, since=first)
    else:
        densities, squares = np.zeros(t), np.zeros(t)
        with one_blas_thread():
            add_densities(
                gp.prior.kind, gp.amplitude, gp.mean, gp.noise, Z, y, m, selection.Z,
                selection.factor_panels(), selection.state.residuals, first, t, np.empty((m, t)),
                densities, squares,
            )  # fmt: skip
    loss[first - 1 : t] = densities[first - 1 :] / m
    rmse[first - 1 : t] = np.sqrt(squares[first - 1 :] / m)
