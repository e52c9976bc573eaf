"""Numbers, one per line, from files, pipes and files that grow."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING

from fastal._options import short_repr
from fastal.cli.arguments import parse_number
from fastal.cli.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO


def file_name(path: str) -> str:
    """Return the name of an input for messages."""
    return "standard input" if path == "-" else path


def read_lines(path: str, follow: bool, prompt: str) -> Iterator[bytes]:
    """Yield the lines of a file, or of standard input if the path is ``-``, as they come."""
    name = file_name(path)
    try:
        if path != "-":
            with open(path, "rb") as file:
                yield from _growing(name, file) if follow else file
            return
        if sys.stdin is None:
            raise UserError("standard input is closed")
        if sys.stdin.isatty():
            print(f"{prompt}; end with an end-of-file character.", file=sys.stderr)
        yield from sys.stdin.buffer
    except OSError as error:
        raise UserError(f"{name}: {error.strerror}") from None


def _growing(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield lines without end; one without its newline is still being written."""
    import stat
    import time

    line = b""
    while True:
        line += file.readline()
        if line.endswith(b"\n"):
            yield line
            line = b""
            continue
        state = os.fstat(file.fileno())
        if stat.S_ISREG(state.st_mode) and state.st_size < file.tell():
            raise UserError(f"{name}: the file became shorter")
        time.sleep(0.05)


def numbered_texts(name: str, lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank or a comment."""
    for number, line in enumerate(lines, start=1):
        try:
            # The byte-order mark that some editors put first is no part of the number.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise UserError(f"{name}: line {number}: not UTF-8 text") from None
        if text and not text.startswith("#"):
            yield number, text


def finite_number(where: str, text: str) -> float:
    """Parse a finite number; an error says where it stands."""
    value = parse_number(text)
    if value is None:
        raise UserError(f"{where}: {short_repr(text)} is not a number")
    if not math.isfinite(value):
        raise UserError(f"{where}: {short_repr(text)} is not finite")
    return value
