"""scikit-optimize: `Optimizer`, and the Gaussian processes of `skopt.learning`.

::

    optimizer = Optimizer(dimensions, "GP", n_initial_points=10)
    while True:
        x = optimizer.ask()
        optimizer.tell(x, f(x))
        if optimizer.models and stopper.after_fit(optimizer, initial=10):
            break

The last of `models` is asked. It is fitted by `tell`, once the initial points are there; before
that there is none, and after ``tell(..., fit=False)`` it lacks labels: both are errors. Inputs are
points of the search space, as `tell` takes them. A process of its own has inputs of its own, after
the space's transform.

scikit-optimize takes the noise out of the kernel after a fit and keeps it in `noise_`; it counts.
"""

from __future__ import annotations

from typing import Any

from fastal.adapters import sklearn
from fastal.adapters.trained import Asked, TrainedModel, all_seen, no_model_yet, wrong_kind

LIBRARY = "scikit-optimize"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what an optimiser's last model, or a model, knows of its labels."""
    if hasattr(model, "models"):
        within = _last(model, name)
        X = model.Xi if asked.X is None else asked.X
        y = model.yi if asked.y is None else asked.y
        asked = asked._replace(X=model.space.transform([list(x) for x in X]), y=y)
        model = within
    _refuse_others(model, name)
    return sklearn.trained(model, asked, name)


def _last(optimizer: Any, name: str) -> Any:
    """Return the model that an optimiser fitted to all of its labels."""
    if not optimizer.models:
        raise no_model_yet(name, "it is fitted by `tell` when the initial points are there")
    within = optimizer.models[-1]
    _refuse_others(within, name)
    all_seen(len(within.X_train_), len(optimizer.yi), name, "call `tell` with `fit=True` first")
    return within


def _refuse_others(model: Any, name: str) -> None:
    if hasattr(model, "estimators_") and type(model).__name__ == "MultiOutputRegressor":
        raise wrong_kind(model, name, 'one output (no `acq_func` "per second")')
    if not hasattr(model, "kernel") or not hasattr(model, "alpha"):
        raise wrong_kind(model, name, 'a Gaussian process or an Optimizer with base_estimator="GP"')
