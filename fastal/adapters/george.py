"""george: `GP`, with the basic and the HODLR solver.

::

    gp = george.GP(kernel, mean=0.0, white_noise=np.log(0.01))
    gp.compute(x, yerr)
    stopper.after_fit(gp, y=y)

The noise is the square of `yerr` plus the white noise. A process keeps its inputs and no labels:
`y` must be given. What the last `predict` left behind is not looked at. Of a new label `predict`
says what is needed, before it::

    mean, var = gp.predict(y, x, return_var=True)
    stopper.push(gp_kl(mean[0], var[0], label, noise))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal.adapters.keeps_no_labels import compare_inputs, given_labels
from fastal.adapters.trained import Asked, TrainedModel, wrong_kind

LIBRARY = "george"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a process knows, with the labels of the caller."""
    if not (hasattr(model, "kernel") and hasattr(model, "compute")):
        raise wrong_kind(model, name, "a george.GP")
    if not model.computed:
        raise ValueError(f"{name} must know its inputs first: call `compute`")
    X = model._x
    y = given_labels(asked, len(X), name)
    compare_inputs(asked, X, name)
    noise = np.ravel(model._yerr2) + np.exp(model._call_white_noise(X))
    # The basic solver keeps a factor of SciPy; HODLR has none of this kind.
    factor = getattr(model.solver, "_factor", None)
    return TrainedModel(
        model.kernel.get_value(X),
        y,
        noise,
        model._call_mean(X),
        factor_diagonal=np.diagonal(factor[0]) if isinstance(factor, tuple) else None,
    )
