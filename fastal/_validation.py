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

from fastal._options import MOST_THREADS as MOST_THREADS
from fastal._options import short_repr as short_repr
from fastal._types import Array

_DOUBLE = np.dtype(np.float64)

# The largest number that compiled code counts to.
INT64_MAX = 2**63 - 1

# The largest number in a saved state that goes on counting.
MOST_SEEN = 2**62


def option(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Check that a text is one of those allowed."""
    if isinstance(value, str) and value in allowed:
        return value
    listed = ", ".join(repr(a) for a in allowed)
    raise ValueError(f"`{name}` must be one of {listed}, got {short_repr(value)}")


def option_code(name: str, value: object, codes: dict[str, int]) -> int:
    """Return the number that stands for one of the texts allowed."""
    if isinstance(value, str) and value in codes:
        return codes[value]
    return codes[option(name, value, tuple(codes))]


def integer(name: str, value: object) -> int:
    """Check for a whole number."""
    if type(value) is int:  # the usual case, without a detour
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be an integer, got {short_repr(value)}")
    return int(value)


def count(name: str, value: object, minimum: int = 0, maximum: int | None = None) -> int:
    """Check for a whole number of at least `minimum`, and at most `maximum` if there is one."""
    number = integer(name, value)
    if number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {short_repr(number)}")
    if maximum is not None and number > maximum:
        raise ValueError(f"`{name}` must be at most {maximum}, got {short_repr(number)}")
    return number


def below(name: str, value: object, end: int) -> int:
    """Check for an index, a whole number in [0, end)."""
    number = integer(name, value)
    if not (0 <= number < end):
        raise ValueError(f"`{name}` must be in [0, {end}), got {short_repr(number)}")
    return number


def seed(name: str, value: object) -> int:
    """Check for the seed of a generator: any whole number that is not negative."""
    return count(name, value)


def threads(name: str, value: object) -> int:
    """Check for a number of threads."""
    return count(name, value, 1, MOST_THREADS)


def jobs(name: str, value: object) -> int | None:
    """Check for a number of threads as joblib has it: -1 is one for each core, None is joblib's."""
    if value is None:
        return None
    number = integer(name, value)
    if number == 0:
        raise ValueError(f"`{name}` must not be 0, got 0: -1 is all cores")
    if number > MOST_THREADS:
        raise ValueError(f"`{name}` must be at most {MOST_THREADS}, got {short_repr(number)}")
    return max(number, -MOST_THREADS)


def _double(name: str, value: numbers.Real | float) -> float:
    """Return a real number as a double; an integer may be too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"`{name}` must be finite as a double, got {short_repr(value)}") from None


def real(name: str, value: object) -> float:
    """Check for one finite number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a real number, got {short_repr(value)}")
    number = _double(name, value)
    if not math.isfinite(number):
        raise ValueError(f"`{name}` must be finite, got {number}")
    return number


def _accept(name: str, number: float, good: bool, wanted: str) -> float:
    """Return a number that is good, or say what it must be."""
    if not good:
        raise ValueError(f"`{name}` must {wanted}, got {number}")
    return number


def positive(name: str, value: object) -> float:
    """Check for a finite number above zero."""
    number = real(name, value)
    return _accept(name, number, number > 0, "be positive")


def probability(name: str, value: object) -> float:
    """Check for a number strictly between 0 and 1."""
    if type(value) is not float and (
        isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real)
    ):
        raise TypeError(f"`{name}` must be a real number, got {short_repr(value)}")
    number = _double(name, value)
    if not (0 < number < 1):
        raise ValueError(f"`{name}` must be in (0, 1), got {number:g}")
    return number


def _of_one_column(values: Any, array: NDArray[Any]) -> bool:
    """Return whether this is a frame or table (pandas, polars, Arrow) of one column."""
    return array.ndim == 2 and array.shape[1] == 1 and hasattr(values, "columns")


def as_array(name: str, values: Any) -> NDArray[Any]:
    """Return what NumPy makes of some values; NumPy alone would not name the argument.

    A frame with one column is its column.
    """
    try:
        array = np.asarray(values)
        return array.reshape(-1) if _of_one_column(values, array) else array
    except ValueError:
        if not isinstance(values, list | tuple):
            raise
        raise ValueError(
            f"`{name}` must have rows of equal lengths, got {short_repr(values)}"
        ) from None


def real_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array of real numbers or booleans as it is; refuse every other dtype."""
    if type(values) is np.ndarray:
        array: NDArray[Any] = values
    elif isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"`{name}` must not be a masked array: select the values first")
    else:
        array = as_array(name, values)
    if array.dtype.kind not in "fiub":
        # Objects are accepted if each is a real number (pandas, Fraction, lists of them).
        numeric = array.dtype.kind == "O" and all(
            isinstance(v, numbers.Real) and not isinstance(v, bool) for v in array.flat
        )
        if not numeric:
            raise TypeError(f"`{name}` must hold real numbers, got dtype {array.dtype}")
        for value in array.flat:
            _double(name, value)
    return array


def _missing(value: object) -> bool:
    """Return whether a value is missing: None, NaN, or NA and NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def two_symbols(name: str, values: Any) -> tuple[NDArray[Any], str | None]:
    """Return real numbers or booleans as they are, and texts or categories as 0.0 and 1.0.

    With them comes the text that is 1.0, None for numbers. A missing text or category is NaN. More
    than two texts or categories are refused.
    """
    if type(values) is np.ndarray and values.dtype.kind in "fiub":
        return values, None
    categories = getattr(getattr(values, "dtype", None), "categories", None)
    if categories is not None and hasattr(values, "__len__") and not hasattr(values, "to_arrow"):
        codes = np.asarray(values.cat.codes if hasattr(values, "cat") else values.codes)
        found = [categories[i] for i in np.unique(codes[codes >= 0])]
        if len(found) > 2:
            raise ValueError(
                f"`{name}` must hold at most two categories, got {len(found)}: "
                f"{short_repr(list(found))}; say which one counts, as in x == {found[0]!r}"
            )
        above = np.where(codes == codes.max(initial=0), 1.0, 0.0)
        return np.where(codes < 0, np.nan, above), str(found[-1]) if found else ""
    array = as_array(name, values) if not isinstance(values, np.ma.MaskedArray) else None
    if array is None or array.dtype.kind not in "OUT":
        return real_array(name, values), None
    if isinstance(values, list | tuple):  # NumPy would make texts of the numbers among them
        array = np.asarray(values, dtype=object)
    flat = [None if _missing(value) else value for value in array.reshape(-1).tolist()]
    if array.dtype.kind != "O" or any(isinstance(value, str) for value in flat):
        bad = [value for value in flat if value is not None and not isinstance(value, str)]
        if bad:
            raise TypeError(
                f"`{name}` must hold numbers or texts, not both, got {short_repr(bad[0])}"
            )
        texts = sorted({value for value in flat if value is not None})
        if len(texts) > 2:
            raise ValueError(
                f"`{name}` must hold at most two different texts, got {len(texts)}: "
                f"{short_repr(texts)}; say which one counts, as in x == {texts[0]!r}"
            )
        sides = [math.nan if v is None else float(v == texts[-1]) for v in flat]
        return np.array(sides).reshape(array.shape), texts[-1] if texts else ""
    if flat and all(isinstance(value, bool | np.bool_) for value in flat):  # pandas before 2.2
        return np.array(flat, dtype=np.bool_).reshape(array.shape), None
    return real_array(name, array), None


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


def _refuse_first(name: str, array: Array, good: NDArray[np.bool_], wanted: str) -> None:
    """Raise for the first element that is not good, with its index if there is more than one."""
    if np.count_nonzero(good) == good.size:
        return
    place = tuple(int(i) for i in np.argwhere(~good)[0])
    where = "" if not place else f" at index {place[0] if len(place) == 1 else place}"
    raise ValueError(f"`{name}` must {wanted}, got {array[place]}{where}")


def finite_array(name: str, values: ArrayLike) -> Array:
    """Convert to doubles of any shape; NaN and inf are refused, naming the first place."""
    return _finite(name, float_array(name, values))


def _finite(name: str, array: Array) -> Array:
    _refuse_first(name, array, np.isfinite(array), "be finite")
    return array


def not_negative(name: str, values: ArrayLike) -> Array:
    """Convert to doubles; NaN, inf and values below zero are refused."""
    array = finite_array(name, values)
    if array.size and not (array.min() >= 0):
        _refuse_first(name, array, array >= 0, "not be negative")
    return array


def all_positive(name: str, values: ArrayLike) -> Array:
    """Convert to doubles; NaN, inf and values that are not above zero are refused."""
    array = finite_array(name, values)
    if array.size and not (array.min() > 0):
        _refuse_first(name, array, array > 0, "be positive")
    return array


def zero_or_more(name: str, value: object) -> float:
    """Check for one finite number that is not negative."""
    number = real(name, value)
    return _accept(name, number, number >= 0, "not be negative")


def confidence(name: str, value: object) -> float:
    """Check for a number in (0, 1]."""
    number = real(name, value)
    return _accept(name, number, 0 < number <= 1, "be in (0, 1]")


def fraction(name: str, value: object) -> float:
    """Check for a number in [0, 1]."""
    return between(name, value, 0, 1)


def flag(name: str, value: object) -> bool:
    """Check for a truth value."""
    if value is True or value is False:
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError(f"`{name}` must be True or False, got {short_repr(value)}")


def vector(name: str, values: ArrayLike, size: int | None = None) -> Array:
    """Check for finite numbers in one dimension; a single number is a vector of one."""
    array = finite_array(name, values)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional, got shape {array.shape}")
    if size is not None and array.size != size:
        raise ValueError(f"`{name}` must have {size} elements, got {array.size}")
    return array


def class_labels(
    name: str, values: ArrayLike, size: int | None, negative: int | None
) -> tuple[Array, int | None]:
    """Return labels of two classes as -1 and 1, and what stands for the negative class.

    That is -1 or 0: `negative` if it is known, else the first label that is not 1; None if there
    is none.
    """
    array = vector(name, values, size)
    known = (array == 1.0) | (array == 0.0) | (array == -1.0)
    _refuse_first(name, array, known, "be -1 or 1, or else 0 or 1")
    others = array[array != 1.0]
    if negative is None and others.size:
        negative = int(others[0])
    if others.size and not (others == negative).all():
        raise ValueError(
            f"`{name}` must not mix -1 and 0: the negative class is {negative}, "
            f"got {int(-1 - negative)}"  # type: ignore[operator]
        )
    return np.where(array == 1.0, 1.0, -1.0), negative


def covariance(name: str, values: ArrayLike, size: int) -> Array:
    """Check for a symmetric matrix of `size` rows; a single number is a matrix of one."""
    array = finite_array(name, values)
    if array.size == 1:
        array = array.reshape(1, 1)
    if array.shape != (size, size):
        raise ValueError(f"`{name}` must have shape ({size}, {size}), got {array.shape}")
    skew = np.abs(array - array.T)
    if skew.size and not (skew.max() <= 1e-8 * np.abs(array).max()):
        i, j = (int(k) for k in np.unravel_index(skew.argmax(), skew.shape))
        raise ValueError(
            f"`{name}` must be symmetric, got {array[i, j]} at ({i}, {j}) and {array[j, i]} "
            f"at ({j}, {i})"
        )
    return array


def lengthscales(value: object) -> float | Array:
    """Check for one positive length scale, or one per feature."""
    if isinstance(value, numbers.Real) or as_array("lengthscale", value).ndim == 0:
        return positive("lengthscale", value)
    array = all_positive("lengthscale", value)  # type: ignore[arg-type]
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"`lengthscale` must be one number or one per feature, got shape {array.shape}"
        )
    return array.copy()


def point(x: ArrayLike, features: int | None) -> Array:
    """Check one input: `features` numbers (None: any), or a single number for one feature."""
    array = float_array("x", x)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or array.size == 0 or features not in (None, array.size):
        wanted = "at least one number" if features is None else f"{features} numbers"
        raise ValueError(
            f"`x` must be one input of {wanted}, got shape {np.shape(x)}"
            + ("; for several inputs use add_batch" if array.ndim > 1 else "")
        )
    return finite_array("x", array)


def points(name: str, X: ArrayLike, features: int | None) -> Array:
    """Check inputs of shape (n, features); shape (n,) is n inputs of one feature."""
    array = float_array(name, X)
    if array.ndim == 1 and features in (None, 1):
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] == 0 or features not in (None, array.shape[1]):
        wanted = "d" if features is None else features
        raise ValueError(f"`{name}` must have shape (n, {wanted}), got {array.shape}")
    return _finite(name, array)


def sequence(name: str, values: Any) -> list[Any]:
    """Return what an iterable yields."""
    try:
        found = iter(values)
    except TypeError:
        raise TypeError(f"`{name}` must be iterable, got {short_repr(values)}") from None
    return list(found)


def column_values(name: str, values: Any) -> list[Any]:
    """Return what an iterable yields, or the numbers of an array or a column.

    A frame yields the names of its columns, an Arrow column its own scalars: NumPy reads both.
    """
    if isinstance(values, str | bytes) or not hasattr(values, "__array__"):
        return sequence(name, values)
    array = as_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must have one axis, got shape {array.shape}")
    found: list[Any] = array.tolist()
    return found


def able(name: str, value: Any, method: str, wanted: str) -> None:
    """Refuse an object, or a class, that lacks a method; `wanted` says what has it."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise TypeError(f"`{name}` must be {wanted}, got {short_repr(value)}")


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def _elements(values: Any) -> Any:
    return values.flat if isinstance(values, np.ndarray) else np.ravel(np.array(values, object))


def indices(name: str, values: Any, n: int, wanted: str = "indices") -> NDArray[np.int64]:
    """Check for different row numbers below n; `wanted` says what else might have been given."""
    array = as_array(name, values)
    if isinstance(values, list | tuple) and any(isinstance(v, bool | np.bool_) for v in values):
        raise TypeError(f"`{name}` must be {wanted}, got {short_repr(values)}")
    # Integers beyond 64 bits become objects or doubles, unsigned ones would wrap: as they were
    # given, they compare as numbers do.
    if array.dtype.kind in "fO" and all(_is_whole(value) for value in _elements(values)):
        array = np.array(values, dtype=object)
    elif array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"`{name}` must be {wanted}, got {short_repr(values)}")
    if array.ndim != 1:
        raise TypeError(f"`{name}` must be {wanted}, got {short_repr(values)}")
    bad = (array < 0) | (array >= n)
    if bad.any():
        raise ValueError(
            f"`{name}` must hold indices in [0, {n}), got {short_repr(int(array[bad][0]))}"
        )
    chosen = array.astype(np.int64)
    if len(np.unique(chosen)) != len(chosen):
        raise ValueError(f"`{name}` must not hold an index twice, got {short_repr(values)}")
    return chosen


def label_noise(noise: Any, default: float, size: int) -> Array:
    """Return one noise variance a label, from None, one number or one per label."""
    if noise is None:
        return np.full(size, default)
    return one_per_label("noise", all_positive("noise", noise), size)


def one_per_label(name: str, array: Array, size: int) -> Array:
    """Return one number per label, from one for all of them or one each."""
    if array.ndim == 0:
        return np.full(size, float(array))
    if array.shape != (size,):
        raise ValueError(
            f"`{name}` must be one number or one per label ({size}), got shape {array.shape}"
        )
    return array


def search_bounds(bounds: Any, allowed: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Check the bounds of a search: a dict from parameter to (low, high), both positive."""
    if bounds is None:
        return {}
    if not isinstance(bounds, dict):
        raise TypeError(f"`bounds` must be a dict or None, got {short_repr(bounds)}")
    checked = {}
    for key, pair in bounds.items():
        if key not in allowed:
            listed = ", ".join(repr(a) for a in allowed)
            raise ValueError(f"`bounds` may have the keys {listed}, got {short_repr(key)}")
        try:
            low, high = (float(value) for value in pair)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"`bounds[{key!r}]` must be a pair of numbers, got {short_repr(pair)}"
            ) from None
        if not (0 < low <= high < math.inf):
            raise ValueError(f"`bounds[{key!r}]` must be 0 < low <= high, got {short_repr(pair)}")
        checked[key] = (low, high)
    return checked


def between(name: str, value: object, low: float, high: float) -> float:
    """Check for one number in [low, high]."""
    number = real(name, value)
    return _accept(name, number, low <= number <= high, f"be in [{low:g}, {high:g}]")


def labels(name: str, values: ArrayLike) -> NDArray[Any]:
    """Check for classes in one dimension: texts, booleans or finite numbers, at least one."""
    array = as_array(name, values)
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array.flat):
        array = array.astype(str)
    if array.dtype.kind == "O" and all(_is_whole(value) for value in array.flat):
        raise ValueError(
            f"`{name}` must hold integers of at most 64 bits, got {short_repr(values)}"
        )
    if array.dtype.kind not in "biufU":
        raise TypeError(f"`{name}` must hold texts, booleans or numbers, got dtype {array.dtype}")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"`{name}` must have shape (n,) with n >= 1, got {array.shape}")
    if array.dtype.kind == "f":
        _refuse_first(name, array, np.isfinite(array), "be finite")
    return array


def class_probabilities(name: str, values: ArrayLike) -> Array:
    """Check for class probabilities of shape (n, k), or of one of two classes of shape (n,)."""
    array = float_array(name, values)
    if array.ndim not in (1, 2) or array.size == 0 or array.shape[1:] == (1,):
        raise ValueError(
            f"`{name}` must have shape (n, k) or (n,) with n >= 1 and k >= 2, got {array.shape}"
        )
    _refuse_first(name, array, (array >= 0) & (array <= 1), "be in [0, 1]")
    if array.ndim == 2:
        total = array.sum(axis=1)
        # single precision is welcome
        _refuse_first(name, total, np.abs(total - 1) <= 1e-4, "have rows that sum to 1")
    return array
