"""How much of the movement of a model is still to come, after each bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.rule import Rule
from fastal._types import Array

# Bounds from our own models may be so far below 0, by rounding.
ROUNDING = -1e-12


def movement_left(bounds: ArrayLike, horizon: int) -> Array:
    """Return the share of all movement that is still to come, after each bound.

    Parameters
    ----------
    bounds : array_like
        Bounds of one campaign, or a matrix whose rows are those of several; not negative.
    horizon : int
        How many bounds there can be at most.

    Returns
    -------
    array
        One value per bound, of the shape of `bounds`; NaN where it is not defined.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal.runs import movement_left
    >>> left = movement_left(5.0 / np.arange(1, 21) ** 2, 200)
    >>> bool(np.isnan(left[:9]).all()), left[9:12].round(3)
    (True, array([0.95 , 0.871, 0.791]))
    """
    end = check.count("horizon", horizon, 1, check.INT64_MAX)
    values = check.finite_array("bounds", bounds)
    if values.ndim not in (1, 2):
        raise ValueError(f"`bounds` must have one or two axes, got shape {values.shape}")
    if (values < ROUNDING).any():
        where = np.unravel_index(int(np.argmax(values < ROUNDING)), values.shape)
        place = where[0] if len(where) == 1 else tuple(map(int, where))
        raise ValueError(f"`bounds` must not be negative, got {values[where]} at index {place}")
    out = np.empty(values.shape)
    rule = Rule(("still", 0.0, end))
    for row, left in zip(np.atleast_2d(values).tolist(), np.atleast_2d(out), strict=True):
        rule.reset()
        for i, r in enumerate(row):
            rule.push(r)
            left[i] = rule.left
    return out
