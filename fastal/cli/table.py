"""Reads a table of numbers from a text file; an error names the file, the line and the column."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._options import short_repr
from fastal.cli.arguments import parse_number

if TYPE_CHECKING:
    import os

MIN_ROWS = 15


class TableError(ValueError):
    """A table that cannot be used; the message says where it fails."""


class Table(NamedTuple):
    """Columns of a file, as arrays.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Features.
    y : ndarray, shape (n,)
        Target; NaN where there is none.
    features : tuple of str
        Names of the features; "column 3" if there is none.
    target : str
        Name of the target.
    rows : ndarray of int, shape (n,)
        The line of the file that each row ends on, from 1.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    features: tuple[str, ...]
    target: str
    rows: NDArray[np.int64]


def read_table(
    path: str | os.PathLike[str],
    target: str | int,
    features: Sequence[str | int] | None = None,
    *,
    partly: bool = False,
    labelled: str | int | None = None,
) -> Table:
    r"""Read features and a target from a text file.

    Parameters
    ----------
    path : path
        UTF-8 text. The first line decides how cells are separated: by tabs, semicolons, commas or
        else white space, whichever of them it has, in this order. It is a header if one of its
        cells is neither empty nor a number. Blank lines and lines that start with # are left out.
    target : str or int
        The column to predict: its name, or its number from 1; -1 is the last one. Text that is no
        column's name is taken as a number.
    features : sequence of str or int, optional
        The columns to predict from; by default all others. Only the target and these must be
        numbers.
    partly : bool, optional
        Whether the target may be empty in some rows.
    labelled : str or int, optional
        With `partly`, a column of 1 for rows whose target counts and 0 for the others, whatever
        stands there; it is no feature.

    Returns
    -------
    Table
        The arrays and the names of the columns.

    Raises
    ------
    TableError
        A ValueError that names the file, and the line and column where it applies: a column that
        is missing or constant, a cell that is empty or no finite number, rows of different length,
        fewer than 15 rows, a file that cannot be read.

    Examples
    --------
    >>> import tempfile, os
    >>> from fastal.cli.table import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("a,b,y\n")
    ...         _ = file.writelines(f"{i},{i * i},{-i}\n" for i in range(20))
    ...     table = read_table(path, target="y")
    >>> table.X.shape, table.features, table.target
    ((20, 2), ('a', 'b'), 'y')
    """
    name = str(path)
    columns, rows = read_cells(path)
    y_column = columns.find(target)
    mark = None if labelled is None else columns.find(labelled)
    x_columns = columns.find_features(features, y_column, mark)

    used = [*x_columns, y_column]
    lines: list[int] = []
    values: list[list[float]] = []
    for line, cells in rows:
        lines.append(line)
        if partly and columns.is_unlabelled(line, cells, y_column, mark):
            values.append([*columns.numbers(line, cells, x_columns), math.nan])
        else:
            values.append(columns.numbers(line, cells, used))
    if len(values) < MIN_ROWS:
        raise TableError(f"{name}: at least {MIN_ROWS} rows are needed, got {len(values)}")
    table = np.array(values)
    for column, cells_there in zip(used, table.T, strict=True):
        there = cells_there[~np.isnan(cells_there)]
        if len(there) > 1 and (low := there.min()) == there.max():
            raise TableError(f"{name}: {columns.shown(column)} is constant ({low:g})")
    return Table(
        X=np.ascontiguousarray(table[:, :-1]),
        y=np.ascontiguousarray(table[:, -1]),
        features=tuple(columns.label(column) for column in x_columns),
        target=columns.label(y_column),
        rows=np.array(lines, dtype=np.int64),
    )


def read_cells(path: str | os.PathLike[str]) -> tuple[Columns, Iterator[tuple[int, list[str]]]]:
    """Read a text file as cells, whatever stands in them.

    Parameters
    ----------
    path : path
        As in `read_table`.

    Returns
    -------
    columns : Columns
        Their names.
    rows : iterator
        The line of the file that each row ends on, and its cells.
    """
    name = str(path)
    rows = _cells(name, _file_text(name, path))
    try:
        line, first = next(rows)
    except StopIteration:
        raise TableError(f"{name}: the file is empty") from None
    has_header = any(cell and parse_number(cell) is None for cell in first)
    if not has_header:
        rows = itertools.chain([(line, first)], rows)
    return Columns(name, first if has_header else [""] * len(first), has_header), rows


class Columns:
    """The columns of one file: finds them, names them, reads their cells.

    Parameters
    ----------
    file : str
        The file, for messages.
    names : list of str
        Name of each column; empty if it has none.
    has_header : bool
        Whether names stand in the file.
    unit : str
        What a row of the file is called.
    """

    def __init__(self, file: str, names: list[str], has_header: bool, unit: str = "line") -> None:
        self._file, self._names, self._has_header = file, names, has_header
        self.unit = unit

    def __len__(self) -> int:
        return len(self._names)

    def label(self, column: int) -> str:
        """Return the name of a column; "column 3" if it has none."""
        return self._names[column] or f"column {column + 1}"

    def shown(self, column: int) -> str:
        """Return how messages call a column."""
        name = self._names[column]
        return f"column {short_repr(name)}" if name else f"column {column + 1}"

    def find(self, wanted: str | int) -> int:
        """Return the place of a column from its name or number."""
        count = len(self._names)
        if isinstance(wanted, str):
            text = wanted.strip()
            found = [i for i, name in enumerate(self._names) if name and name == text]
            if len(found) > 1:
                numbers = " and ".join(str(i + 1) for i in found)
                raise TableError(
                    f"{self._file}: columns {numbers} are both called {short_repr(text)}; "
                    "use a number instead"
                )
            if found:
                return found[0]
            if not re.fullmatch("[+-]?[0-9]{1,9}", text):
                raise TableError(f"{self._file}: no column {short_repr(text)}; {self._listed()}")
            number = int(text)
        else:
            number = wanted
        if not 1 <= abs(number) <= count:
            raise TableError(f"{self._file}: no column {number}; {self._listed()}")
        return number - 1 if number > 0 else count + number

    def find_features(
        self, wanted: Sequence[str | int] | None, target: int, mark: int | None
    ) -> list[int]:
        """Return the places of the features: those that are wanted, or all that are left."""
        if mark == target:
            raise TableError(
                f"{self._file}: {self.shown(target)} is the target and cannot say what is labelled"
            )
        if wanted is None:
            found = [i for i in range(len(self._names)) if i not in (target, mark)]
            if not found:
                raise TableError(
                    f"{self._file}: {self.shown(target)} is the only column; there is no feature"
                )
            return found
        found = [self.find(name) for name in wanted]
        if not found:
            raise TableError(f"{self._file}: the list of features is empty")
        for i, column in enumerate(found):
            if column == target:
                raise TableError(
                    f"{self._file}: {self.shown(column)} is the target and cannot be a feature"
                )
            if column == mark:
                raise TableError(
                    f"{self._file}: {self.shown(column)} says what is labelled and cannot be a "
                    "feature"
                )
            if column in found[:i]:
                raise TableError(f"{self._file}: {self.shown(column)} is given twice as a feature")
        return found

    def _listed(self) -> str:
        if not self._has_header:
            return f"the file has no header and {len(self._names)} columns"
        names = [repr(self.label(i)) for i in range(len(self._names))]
        if len(names) > 20:
            names[10:-5] = ["..."]
        return f"the columns are {', '.join(names)}"

    def is_unlabelled(self, line: int, cells: list[str], target: int, mark: int | None) -> bool:
        """Return whether one row has no target that counts."""
        self.check_length(line, cells)
        if mark is None:
            return not cells[target]
        value = self.numbers(line, cells, [mark])[0]
        if value not in (0.0, 1.0):
            raise TableError(
                f"{self._file}: line {line}, {self.shown(mark)}: must be 0 or 1, got {value:g}"
            )
        return value == 0.0

    def check_length(self, line: int, cells: list[str]) -> None:
        """Refuse a row that has more or fewer cells than the first one."""
        if len(cells) != len(self._names):
            raise TableError(
                f"{self._file}: line {line}: {_counted(len(cells), 'cell')} where the first row "
                f"has {len(self._names)}"
            )

    def numbers(self, line: int, cells: list[str], used: list[int]) -> list[float]:
        """Return the numbers of one row, or raise for its first bad cell."""
        self.check_length(line, cells)
        values = []
        for column in used:
            cell = cells[column]
            value = parse_number(cell)
            if value is None or not math.isfinite(value):
                raise self.error(line, column, cell_error(cell, value))
            values.append(value)
        return values

    def error(self, line: int, column: int, text: str) -> TableError:
        """Return the error of one cell."""
        return TableError(f"{self._file}: {self.unit} {line}, {self.shown(column)}: {text}")


DECIMAL_COMMA = "[+-]?[0-9]+,[0-9]+"


def cell_error(cell: str, value: float | None) -> str:
    """Say why a cell is not a finite number."""
    if not cell:
        return "the cell is empty"
    if value is not None:
        return f"{short_repr(cell)} is not finite"
    hint = " (use a decimal point)" if re.fullmatch(DECIMAL_COMMA, cell) else ""
    return f"{short_repr(cell)} is not a number{hint}"


def _file_text(name: str, path: str | os.PathLike[str]) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:  # a ValueError is a null character in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TableError(f"{name}: {reason}") from None
    try:
        return data.decode("utf-8-sig")  # with or without a byte-order mark
    except UnicodeDecodeError as error:
        line = len(re.findall(rb"\r\n|\r|\n", error.object[: error.start])) + 1
        raise TableError(f"{name}: line {line}: not UTF-8 text") from None


def _cells(name: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line and the cells of each row."""
    number = 0
    separator = ""

    def lines() -> Iterator[str]:
        nonlocal number
        # Not str.splitlines, which would also cut at characters that are no ends of lines.
        for number, line in enumerate(io.StringIO(text, newline=""), start=1):  # noqa: B007
            if line.strip() and not line.lstrip().startswith("#"):
                yield " ".join(line.split()) if separator == " " else line

    # Names in quotes may contain what separates cells elsewhere.
    first = re.sub('"[^"]*"', "", next(lines(), ""))
    separator = next((mark for mark in "\t;," if mark in first.strip(" \r\n")), " ")
    reader = csv.reader(lines(), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            yield number, [cell.strip() for cell in row]
    except csv.Error as error:
        raise TableError(f"{name}: line {number}: {error}") from None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
