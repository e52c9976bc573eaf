"""Saved states: the checks that all of them share."""

from __future__ import annotations

from typing import Any

from fastal._validation import MOST, shown


def state_values(state: object, expected: tuple[str, ...]) -> list[Any]:
    """Return the values of exactly these keys of a saved state; complain of any other."""
    if not isinstance(state, dict):
        raise ValueError(f"`state` must be a dict from `to_dict`, got {shown(state)}")
    missing = [key for key in expected if key not in state]
    unknown = [key for key in state if key not in expected]
    if missing or unknown:
        parts = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
        parts += [f"has the unknown {', '.join(map(repr, unknown))}"] if unknown else []
        raise ValueError(f"`state` {' and '.join(parts)}")
    return [state[key] for key in expected]


def state_count(
    name: str, value: object, minimum: int = 0, *, optional: bool = False, most: int = MOST
) -> Any:
    """Check a whole number in a saved state."""
    if optional and value is None:
        return None
    if type(value) is not int or not (minimum <= value <= most):
        beyond = f", which is above {most}" if type(value) is int and value > most else ""
        raise ValueError(
            f"`state[{name!r}]` must be an integer >= {minimum}, got {shown(value)}{beyond}"
        )
    return value


FORMAT = 1
