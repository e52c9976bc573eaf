"""Tables as text and csv, means with their errors, and messages of progress."""

from __future__ import annotations

import warnings
from collections.abc import Callable


def aligned(rows: list[list[str]]) -> str:
    """Return rows of texts as a table with straight columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def plus_minus(mean: float, error: float) -> str:
    """Return mean ± error to one decimal."""
    return f"{mean:.1f} ± {error:.1f}"


def reporter(
    report: Callable[[str], object] | None, tell: Callable[[str], object] | None
) -> Callable[[str], object]:
    """Return what to call with messages of progress; `tell` is the old name of `report`."""
    if tell is not None:
        warnings.warn(
            "`tell` is called `report` now; the old name is removed in 0.3",
            DeprecationWarning,
            stacklevel=3,
        )
    return report or tell or (lambda text: None)
