"""Memory: what asks for more than the machine has is refused before any work begins."""

from __future__ import annotations

import os

# One request may take this share of the machine's memory.
SHARE = 0.9

# Where the platform does not tell: more than any machine has.
UNKNOWN = 2**50


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


def _size(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number < 10**18 else "more than 10^9 GB"
