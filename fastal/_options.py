"""What arguments may be, and how messages show their values; standard library only."""

from __future__ import annotations

# Name of an option -> its number in the compiled core.
ALTERNATIVES = {"less": 0, "greater": 1, "two-sided": 2}

METHODS = {"auto": 0, "exact": 1, "normal": 2}

# More threads than this do not help, and a system may refuse to start them.
MOST_THREADS = 4096


def short_repr(value: object) -> str:
    """Return a short form of a value for an error message."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python likes to write
        text = f"<{type(value).__name__} too long to be shown>"
    return text if len(text) <= 60 else text[:57] + "..."
