"""Tables as text and csv, means with their errors, and messages of progress."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def aligned(rows: list[list[str]]) -> str:
    """Return rows of texts as a table with straight columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def write_csv(path: str | os.PathLike[str], head: Sequence[str], rows: Sequence[Any]) -> None:
    """Write a table; numbers are written to their last digit."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean and its standard error, NaN for a single value."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)


def plus_minus(mean: float, error: float) -> str:
    """Return mean ± error to one decimal."""
    return f"{mean:.1f} ± {error:.1f}"


def reporter(
    report: Callable[[str], object] | None, tell: Callable[[str], object] | None
) -> Callable[[str], object]:
    """Return what to call with messages of progress; `tell` is the old name of `report`."""
    if tell is not None:
        warnings.warn("`tell` is called `report` now", DeprecationWarning, stacklevel=3)
    return report or tell or (lambda text: None)
