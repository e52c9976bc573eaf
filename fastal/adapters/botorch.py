"""BoTorch and GPyTorch: `SingleTaskGP`, `MultiTaskGP`, and any `ExactGP` with one output.

::

    model = SingleTaskGP(train_X, train_Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    stopper.after_fit(model)

Covariance, mean, noise and labels are taken as the model keeps them, after its transforms: any
outcome transform will do, and any noise that is known for each label. The model is asked in eval
mode and put back into training mode if it was. Inputs and labels may be tensors or arrays. Of a
`ModelListGP` give one of its `models`. A `MultiTaskGP` takes inputs with the column of the task,
and each task has its own noise.

Use double precision, as BoTorch recommends: single precision has no digits left for a variance
below 1e-7 of the prior's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fastal.adapters.trained import (
    Asked,
    TrainedModel,
    at_edge,
    column,
    inputs,
    same_rows,
    wrong_kind,
)

LIBRARY = "BoTorch"


def _refuse_others(model: Any, name: str) -> None:
    """Raise for models that are not exact, or have no data."""
    from gpytorch.models import ExactGP

    if any("FullyBayesian" in base.__name__ for base in type(model).__mro__):
        raise TypeError(
            f"{name} is not an exact Gaussian process with Gaussian noise: a "
            f"{type(model).__name__} is a mixture of them"
        )
    if not isinstance(model, ExactGP):
        several = hasattr(model, "models")
        wanted = "a SingleTaskGP or another ExactGP" + (
            " (one output is wanted: give `model.models[0]`)"
            if several
            else ", an exact Gaussian process with Gaussian noise"
        )
        raise wrong_kind(model, name, wanted)
    if model.train_inputs is None:
        raise ValueError(f"{name} must have training data first, got none")


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what an exact Gaussian process knows of its labels."""
    import torch

    _refuse_others(model, name)
    training = model.training
    # In eval mode the inputs that a model of BoTorch keeps are those after its transform.
    model.eval()
    try:
        with torch.no_grad():
            f = model.forward(*model.train_inputs)
            y = model.train_targets
            if f.mean.ndim != 1 or y.ndim != 1:
                raise ValueError(
                    f"{name} must have one output, got labels of shape {tuple(y.shape)}: give a "
                    "model of one output"
                )
            _refuse_other_rows(model, asked, name)
            noise = _noise_at(model, f.mean, list(model.train_inputs), name)
            cov = f.covariance_matrix
    finally:
        model.train(training)
    edge = at_edge(_searched(model))
    return TrainedModel(_array(cov), _array(y), noise, _array(f.mean), edge)


def _refuse_other_rows(model: Any, asked: Asked, name: str) -> None:
    """Raise unless a model in eval mode was fitted to the rows that the caller has."""
    import torch

    kept = model.train_inputs[0]
    if asked.X is not None:
        X = torch.as_tensor(inputs(_array(asked.X), kept.shape[-1], name)).to(kept)
        if hasattr(model, "transform_inputs"):
            X = model.transform_inputs(X)
        same_rows("X", _array(kept), _array(X), name)
    if asked.y is not None:
        y = torch.as_tensor(column(_array(asked.y))).to(model.train_targets)
        if hasattr(model, "outcome_transform"):
            y = model.outcome_transform(y.reshape(-1, 1))[0].squeeze(-1)
        same_rows("y", _array(model.train_targets), _array(y), name)


def _noise_at(model: Any, mean: Any, inputs: list[Any], name: str) -> Any:
    """Return the noise variance of each label: what the likelihood adds to a variance of zero."""
    import torch
    from gpytorch.distributions import MultivariateNormal
    from linear_operator.operators import DiagLinearOperator

    known = MultivariateNormal(mean, DiagLinearOperator(torch.zeros_like(mean)))
    added = model.likelihood(known, inputs)
    noise = _array(added.lazy_covariance_matrix.to_dense())
    variances = np.diagonal(noise)
    if (noise != np.diag(variances)).any():
        raise ValueError(f"the noise of {name} must be independent from label to label")
    return variances


def _searched(model: Any) -> Iterator[tuple[float, float, float]]:
    """Yield each length scale that a fit may move, with the bounds of its constraint."""
    for kernel in model.modules():
        raw = getattr(kernel, "raw_lengthscale", None)
        constraint = getattr(kernel, "raw_lengthscale_constraint", None)
        if raw is None or constraint is None or not raw.requires_grad:
            continue
        scales = np.ravel(_array(kernel.lengthscale))
        low = np.broadcast_to(np.ravel(_array(constraint.lower_bound)), scales.shape)
        high = np.broadcast_to(np.ravel(_array(constraint.upper_bound)), scales.shape)
        for row in zip(scales, low, high, strict=True):
            yield float(row[0]), float(row[1]), float(row[2])


def _array(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values
