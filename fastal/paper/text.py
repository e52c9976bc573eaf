"""Tables and sentences as text."""

from __future__ import annotations

import textwrap

WIDTH = 100  # of what is printed


def aligned(rows: list[list[str]]) -> str:
    """Return rows of texts as a table with straight columns.

    Columns that do not fit beside the others go below them, again with the first column.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    blocks, taken = [[0]], widths[0]
    for place, width in enumerate(widths[1:], start=1):
        if taken + 2 + width > WIDTH and len(blocks[-1]) > 1:
            blocks.append([0])
            taken = widths[0]
        blocks[-1].append(place)
        taken += 2 + width
    return "\n\n".join(
        "\n".join("  ".join(row[i].ljust(widths[i]) for i in block).rstrip() for row in rows)
        for block in blocks
    )


def wrapped(text: str) -> str:
    """Return a text in lines that fit, no line of which begins with a percent sign."""
    unbroken = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.fill(unbroken, WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\N{NO-BREAK SPACE}", " ")
