"""Settings as scikit-learn has them: read, changed, cloned, and written as code."""

from __future__ import annotations

from copy import deepcopy
from numbers import Real
from typing import Any

import numpy as np

from fastal import _validation as check

# A longer array is written by its number of rows: nobody pastes it.
LONGEST = 100


def value_text(value: Any) -> str:
    """Return a value as code that makes it, without NumPy's names."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= LONGEST else f"<array of {len(value)} rows>"
    if isinstance(value, np.generic):
        return repr(value.item())
    return repr(value)


def call_text(thing: object, params: dict[str, Any]) -> str:
    """Return the call that makes an object of these settings."""
    said = ", ".join(f"{name}={value_text(value)}" for name, value in params.items())
    return f"{type(thing).__name__}({said})"


def nested(params: dict[str, Any]) -> dict[str, Any]:
    """Return settings with those of their values, as ``name__setting``."""
    found = dict(params)
    for name, value in params.items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            found |= {f"{name}__{inner}": v for inner, v in value.get_params(deep=True).items()}
    return found


def split(params: dict[str, Any], known: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part what is asked for into own settings and, by name, those of their values."""
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        head, _, rest = name.partition("__")
        if head not in known or (rest and not hasattr(known[head], "set_params")):
            check.option("params", name, tuple(known))
        if rest:
            inner.setdefault(head, {})[rest] = value
        else:
            own[name] = value
    return own, inner


def cloned(value: Any) -> Any:
    """Return a value with the same settings and nothing learnt."""
    if hasattr(value, "__sklearn_clone__") and not isinstance(value, type):
        return value.__sklearn_clone__()
    return deepcopy(value)


def plain(value: Any) -> Any:
    """Return a setting as JSON has it: numbers of NumPy and fractions as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bool | int | float):
        return value
    return float(value) if isinstance(value, Real) else value
