"""Settings written as code and as JSON."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

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


def plain(value: Any) -> Any:
    """Return a setting as JSON has it: numbers of NumPy and fractions as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bool | int | float):
        return value
    return float(value) if isinstance(value, Real) else value
