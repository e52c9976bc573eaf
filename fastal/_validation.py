"""Every check of an argument, and every text of a ValueError or TypeError.

A message names the argument and the value. A comparison is written so that NaN fails it:
``not (x > 0)``, never ``x <= 0``.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_DOUBLE = np.dtype(np.float64)


def shown(value: object) -> str:
    """Return a short form of a value for an error message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def option(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Check that a text is one of those allowed."""
    if isinstance(value, str) and value in allowed:
        return value
    listed = ", ".join(repr(a) for a in allowed)
    raise ValueError(f"`{name}` must be one of {listed}, got {shown(value)}")


def code(name: str, value: object, codes: dict[str, int]) -> int:
    """Return the number that stands for one of the texts allowed."""
    if isinstance(value, str) and value in codes:
        return codes[value]
    return codes[option(name, value, tuple(codes))]


def whole(name: str, value: object) -> int:
    """Check for a whole number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be an integer, got {shown(value)}")
    return int(value)


def count(name: str, value: object, minimum: int = 0) -> int:
    """Check for a whole number of at least `minimum`."""
    number = whole(name, value)
    if number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {number}")
    return number


def real(name: str, value: object) -> float:
    """Check for one finite number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a real number, got {shown(value)}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"`{name}` must be finite, got {number}")
    return number


def positive(name: str, value: object) -> float:
    """Check for a finite number above zero."""
    number = real(name, value)
    if not (number > 0):
        raise ValueError(f"`{name}` must be positive, got {number}")
    return number


def probability(name: str, value: object) -> float:
    """Check for a number strictly between 0 and 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a real number, got {shown(value)}")
    number = float(value)
    if not (0 < number < 1):
        raise ValueError(f"`{name}` must be in (0, 1), got {number:g}")
    return number


def real_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array of real numbers or booleans as it is; refuse every other dtype."""
    if type(values) is np.ndarray:
        array: NDArray[Any] = values
    elif isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"`{name}` must not be a masked array: select the values first")
    else:
        array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        # Objects are accepted if each is a real number (pandas, Fraction, lists of them).
        numeric = array.dtype.kind == "O" and all(
            isinstance(v, numbers.Real) and not isinstance(v, bool) for v in array.flat
        )
        if not numeric:
            raise TypeError(f"`{name}` must hold real numbers, got dtype {array.dtype}")
    return array


def doubles(array: NDArray[Any]) -> Array:
    """Return an array in C order with elements of type double; a copy only if need be."""
    if array.dtype is _DOUBLE and array.flags.c_contiguous:
        return array
    return np.asarray(array, dtype=_DOUBLE, order="C")


def float_array(name: str, values: ArrayLike) -> Array:
    """Convert real numbers to an array of doubles in C order; refuse every other dtype."""
    array = real_array(name, values)
    if array.dtype.kind == "b":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {array.dtype}")
    return doubles(array)


def finite_array(name: str, values: ArrayLike) -> Array:
    """Convert to doubles and refuse NaN and inf, naming the first place."""
    array = float_array(name, values)
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        where = place[0] if len(place) == 1 else place
        raise ValueError(f"`{name}` must be finite, got {array[place]} at index {where}")
    return array
