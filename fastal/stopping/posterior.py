"""Bounds of labels from the posterior before them, without Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal import _validation as check
from fastal._core import bound_scalar
from fastal._types import Array


def bounds_of(mean: Any, var: Any, y: Any, noise: Any) -> Array:
    """Return the bound of each label, without the constant C.

    Parameters
    ----------
    mean, var, y, noise : float or array_like
        Posterior mean and variance of f at each input before its label, the label, and the noise
        variance; they are broadcast together.

    Returns
    -------
    array
        Finite bounds in order, in one dimension.
    """
    if noise is None:
        raise ValueError("`noise` must be given, here or as Stopper(noise=...), got None")
    names = ("mean", "var", "y", "noise")
    arrays = [
        check.finite_array("mean", mean),
        check.not_negative("var", var),
        check.finite_array("y", y),
        check.all_positive("noise", noise),
    ]
    shapes = [array.shape for array in arrays]
    try:
        rows = np.stack(np.broadcast_arrays(*arrays), axis=-1).reshape(-1, 4)
    except ValueError:
        listed = ", ".join(f"{n} {s}" for n, s in zip(names, shapes, strict=True))
        raise ValueError(f"`mean`, `var`, `y`, `noise` do not fit together: {listed}") from None
    bounds = np.empty(len(rows))
    bound_scalar.gp_kl_rows(np.ascontiguousarray(rows), bounds)
    if not np.isfinite(bounds).all():
        bad = int(np.argmin(np.isfinite(bounds)))
        raise ValueError(f"the bound of label {bad} overflows: `y` = {rows[bad, 2]} is too far")
    return bounds
