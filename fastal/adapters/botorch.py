"""BoTorch and GPyTorch: `SingleTaskGP`, and any `ExactGP` with one output.

::

    model = SingleTaskGP(train_X, train_Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    ...
    stopper.update_from(model, x, y)  # before the refit, or before
    model = model.condition_on_observations(x, y)

The posterior is that of f, without observation noise, in the unit of the labels: input and outcome
transforms are applied as `posterior` does. An outcome transform that is not linear (`Log`) leaves
no Gaussian posterior and is refused. The noise is the likelihood's; a
`FixedNoiseGaussianLikelihood` that is not constant says nothing about new labels, and `noise` must
be given. The model is asked in eval mode and put back into training mode if it was. Inputs and
labels may be tensors or arrays.

Use double precision, as BoTorch recommends: single precision has no digits left for a variance
below 1e-7 of the prior's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastal.adapters.dispatch import bounds_from, update_from
from fastal.adapters.posterior import Posterior, bounds_in_order, inputs_and_labels, wrong_kind

__all__ = ["bounds_from", "update_from"]

LIBRARY = "BoTorch"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> NDArray[np.float64]:
    """Return the bounds of labels from an exact Gaussian process."""
    # Here, so that the documentation of this module can be read without torch.
    import torch
    from gpytorch.models import ExactGP

    if not isinstance(model, ExactGP):
        raise wrong_kind(model, name, "a SingleTaskGP or another ExactGP")
    if model.train_inputs is None:
        raise ValueError(f"{name} must have training data first, got none")
    x, y, noise = (_array(values) for values in (x, y, noise))
    points, labels = inputs_and_labels(x, y)
    X = torch.as_tensor(points).to(model.train_inputs[0])
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            posterior = _ask(model, X, name)
    except (RuntimeError, NotImplementedError) as error:
        raise ValueError(
            f"{name} cannot predict at `x` of shape {points.shape}: {error}"
        ) from error
    finally:
        model.train(training)
    return bounds_in_order(posterior, labels, noise, name)


def _array(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def _ask(model: Any, X: Any, name: str) -> Posterior:
    """Return the posterior of f at X, (m, d), from a model in eval mode."""
    noise = getattr(model.likelihood, "noise", None)
    if noise is not None:
        levels = noise.unique()
        noise = levels.expand(len(X)) if len(levels) == 1 else None
    if not hasattr(model, "posterior"):  # plain GPyTorch
        f, prior = model(X), model.forward(X)
        return Posterior(*map(_array, (f.mean, f.covariance_matrix, prior.variance, noise)))
    from botorch.posteriors import GPyTorchPosterior

    posterior, Z = model.posterior(X), model.transform_inputs(X)
    if not isinstance(posterior, GPyTorchPosterior):
        raise ValueError(f"{name} must have a linear outcome transform or none")
    f, prior = posterior.distribution, model.forward(Z).variance
    if hasattr(model, "outcome_transform"):

        def rescaled(variances: Any) -> Any:
            column = variances.unsqueeze(-1)
            back = model.outcome_transform.untransform(column, column, X=Z)
            return back[1].squeeze(-1)

        prior = rescaled(prior)
        noise = None if noise is None else rescaled(noise)
    return Posterior(*map(_array, (f.mean, f.covariance_matrix, prior, noise)))
