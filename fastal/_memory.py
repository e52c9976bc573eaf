"""Memory: what asks for more than the machine has is refused before any work begins."""

from __future__ import annotations

import os
from functools import cache

# One request may take this share of the machine's memory.
SHARE = 0.9

# Where the platform does not tell: more than any machine has.
UNKNOWN = 2**50


@cache
def machine() -> int:
    """Return the bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this platform
        return UNKNOWN


def check(need: int, what: str, advice: str) -> None:
    """Raise a MemoryError if this many bytes are more than the machine has.

    Parameters
    ----------
    need : int
        Bytes, of any size: an argument may be larger than what a double or a counter holds.
    what : str
        What needs them, with the values of the arguments.
    advice : str
        What to do, with the names of the arguments.
    """
    there = machine()
    if need > SHARE * there:
        raise MemoryError(f"{what} needs {_size(need)}, this machine has {_size(there)}: {advice}")


def check_next(need: int, taken: int, what: str, labels: int) -> None:
    """Raise a MemoryError if the next part of a growing matrix is more than the machine has.

    Parameters
    ----------
    need : int
        Bytes of the next part.
    taken : int
        Bytes that the matrix has already.
    what : str
        What needs them.
    labels : int
        Labels of one part.
    """
    there = int(SHARE * machine())
    if need + taken > there:
        fit = there // need * labels
        raise MemoryError(
            f"{what}, needs {_size(need)} more besides {_size(taken)}; this machine has "
            f"{_size(machine())}, which is enough for about {fit} labels: lower `max_labels` or "
            "take a part of the pool"
        )


def _size(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number < 10**18 else "more than 10^9 GB"
