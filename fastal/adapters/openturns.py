"""OpenTURNS: `GaussianProcessFitter`, `GaussianProcessRegression`, and their results.

::

    fitter = ot.GaussianProcessFitter(X, Y, covariance, basis)
    fitter.setNoise([0.01] * len(X))
    fitter.run()
    stopper.after_fit(fitter.getResult())

The noise is what the factor of the fit has on its diagonal beside the covariance: nugget and noise
as they acted, whatever units they were given in. The trend is taken as known, at the coefficients
of the fit; OpenTURNS' own variance of a regression includes that of the trend. The older
`KrigingResult` keeps neither noise nor factor and is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._types import Array
from fastal.adapters.trained import Asked, TrainedModel, column, inputs, same_rows, wrong_kind

LIBRARY = "OpenTURNS"

# The factor and the covariance of one fit agree beside the diagonal to this part of its largest.
SAME_COVARIANCE = 1e-8


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a fit knows of its labels."""
    fit = _result(model, name)
    X, y = np.array(fit.getInputSample()), _labels(fit)
    if asked.X is not None:
        same_rows("X", X, inputs(asked.X, X.shape[1], name), name)
    if asked.y is not None:
        same_rows("y", y, column(asked.y), name)
    return TrainedModel(_covariance(fit, X), y, _noise(fit, name), _mean(fit, X))


def _result(model: Any, name: str) -> Any:
    """Return the result of the fitter, from an algorithm or from a result."""
    kind = type(model).__name__
    if kind.startswith("Kriging"):
        raise wrong_kind(model, name, "a GaussianProcessFitter, which keeps its noise and factor")
    if kind in ("GaussianProcessFitter", "GaussianProcessRegression"):
        try:
            model = model.getResult()
        except RuntimeError as error:
            raise ValueError(f"{name} must be fitted first: call `run`") from error
    if hasattr(model, "getGaussianProcessFitterResult"):
        model = model.getGaussianProcessFitterResult()
    if not hasattr(model, "getCholeskyFactor"):
        raise wrong_kind(model, name, "a GaussianProcessFitter or its result")
    if model.getInputSample().getSize() == 0:
        raise ValueError(f"{name} must be fitted first: call `run`")
    outputs = model.getOutputSample().getDimension()
    if outputs != 1:
        raise ValueError(f"{name} must have one output, got {outputs}: one output is wanted")
    return model


def _labels(fit: Any) -> Array:
    return np.ravel(np.array(fit.getOutputSample()))


def _covariance(fit: Any, X: Array) -> Array:
    """Return the covariance of f at X: that of the model without its nugget."""
    model = fit.getCovarianceModel()
    nugget = model.getNuggetFactor() * model.getAmplitude()[0] ** 2
    cov: Array = np.array(model.discretize(X.tolist()))
    whole: Array = np.tril(cov) + np.tril(cov, -1).T - nugget * np.eye(len(X))
    return whole


def _noise(fit: Any, name: str) -> Array:
    """Return the noise of each label: what the factor has beside the covariance."""
    L = np.tril(np.array(fit.getCholeskyFactor()))
    X = np.array(fit.getInputSample())
    if L.shape != (len(X), len(X)):
        raise ValueError(f"{name} keeps no factor: call `setKeepCholeskyFactor(True)` before `run`")
    left: Array = L @ L.T - _covariance(fit, X)
    noise = np.diagonal(left).copy()
    beside = np.abs(left - np.diag(noise)).max(initial=0.0)
    if not (beside <= SAME_COVARIANCE * np.abs(L @ L.T).max()):
        raise ValueError(
            f"{name} does not agree with its own factor: beside the diagonal it differs by "
            f"{beside:g} from the covariance"
        )
    return noise


def _mean(fit: Any, X: Array) -> Array | float:
    """Return the trend at X, at the coefficients of the fit."""
    basis = fit.getBasis()
    if basis.getSize() == 0:
        return 0.0
    values = [np.ravel(np.array(basis.build(j)(X.tolist()))) for j in range(basis.getSize())]
    mean: Array = np.array(values).T @ np.ravel(np.array(fit.getTrendCoefficients()))
    return mean
