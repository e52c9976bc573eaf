"""Tables as text and csv."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any


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
