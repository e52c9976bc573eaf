"""What arguments may be, and how messages show their values; standard library only."""

from __future__ import annotations

# Name of an option -> its number in the compiled core.
ALTERNATIVES = {"less": 0, "greater": 1, "two-sided": 2}

# A two-sided p-value: the smaller tail twice, what is at least as far from the mean, what is at
# most as likely. Each is an alternative of its own in the core.
TWO_SIDED = {"double": 2, "distance": 3, "likelihood": 4}

# Where the runs test puts values at the cut-off.
TIES = {"above": 0, "below": 1, "drop": 2}

NAN_POLICIES = ("raise", "omit", "propagate")

# Where equal values of two samples stand in their common order.
TIES_BETWEEN = ("conservative", "average", "fewest", "most")

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
