"""Reads a table as people keep it: text among the numbers, empty targets, samples that failed."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastal._options import short_repr
from fastal.cli.arguments import parse_number
from fastal.cli.table import DECIMAL_COMMA, Columns, TableError, cell_error, read_cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fastal._types import Array, Bools, Ints

# Read by pandas, where it is installed, with these packages; everything else is text.
SPREADSHEETS = {".xlsx": "openpyxl", ".xlsm": "openpyxl", ".xls": "xlrd", ".ods": "odfpy"}
PARQUET = {".parquet": "pyarrow", ".pq": "pyarrow"}

# In a column of numbers these stand for nothing, as programs write them; in one of text they may
# mean something.
MISSING = ("", "na", "n/a", "nan", "null", "none")

# In the target column: this row cannot be measured.
SKIPPED = ("skip", "skipped", "fail", "failed")

MOST_CATEGORIES = 10  # of a text column that is a feature; and fewer than half of the rows

MIN_ROWS = 5  # for the first fit

LARGEST = 1e100  # target: a fit needs its squares


class Sheet(NamedTuple):
    """A table with some labels, as arrays; a value per row.

    Attributes
    ----------
    file : str
        Where it stands.
    unit : str
        What its rows are called there: "line" of a text, "row" of a spreadsheet.
    X : ndarray, shape (n, d)
        Numbers, and a column of 0 and 1 for each category of a text column.
    y : ndarray, shape (n,)
        Target; NaN where there is none.
    skipped : ndarray of bool, shape (n,)
        Which rows cannot be measured.
    lines : ndarray of int, shape (n,)
        Number of the line or row in the file, from 1.
    names : list of str or None
        What the rows are called.
    name_column : str or None
        The column that these names stand in.
    features : tuple of str
        The columns of the file that are features.
    columns : tuple of str
        The columns of X, such as "type=steel" for a category.
    target : str
        Name of the target.
    rank : ndarray of float or None
        Place of each label in the order in which they came, if a column says it.
    keys : list of str
        What tells a row from the others, wherever it stands in the file.
    warnings : tuple of str
        What looks like a mistake.
    """

    file: str
    unit: str
    X: Array
    y: Array
    skipped: Bools
    lines: Ints
    names: list[str] | None
    name_column: str | None
    features: tuple[str, ...]
    columns: tuple[str, ...]
    target: str
    rank: Array | None
    keys: list[str]
    warnings: tuple[str, ...]

    def row_name(self, row: int) -> str:
        """Return the number of a row in the file, with its name if it has one."""
        name = self.names[row] if self.names is not None else ""
        return f"{self.lines[row]} ({name})" if name else f"{self.lines[row]}"

    @property
    def constant_columns(self) -> list[str]:
        """Columns of X in which all rows are alike."""
        first = self.X[0]
        constant = (first == self.X).all(axis=0)
        return [name for name, same in zip(self.columns, constant.tolist(), strict=True) if same]

    def listed(self, rows: Sequence[int]) -> str:
        """Return several rows in words, such as "lines 3 and 17"."""
        text = in_a_row([self.row_name(row) for row in rows], 12)
        return f"{self.unit}{'s' if len(rows) > 1 else ''} {text}"


def in_a_row(texts: Sequence[str], most: int) -> str:
    """Return some texts as one, such as "a, b and 3 others"."""
    shown = list(texts[:most])
    if len(texts) > most:
        shown.append(f"{len(texts) - most} others")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def read_sheet(
    path: str,
    target: str,
    features: Sequence[str] | None = None,
    *,
    name: str | None = None,
    order: str | None = None,
) -> Sheet:
    """Read a table of which some rows have a target.

    Parameters
    ----------
    path : str
        Text as in `read_table`; by its ending a spreadsheet or a Parquet file, if pandas is there.
    target : str
        The column to predict, by name or number.
    features : sequence of str, optional
        The columns to predict from; by default all others.
    name : str, optional
        The column with the names of the rows. By default the first column of text in which all
        values differ, if there is one.
    order : str, optional
        A column of numbers or dates that says in which order labels came.

    Returns
    -------
    Sheet
        The arrays, and what is known of the rows. What cannot be used raises a `TableError` that
        names the file, the row and the column, and says what to do.
    """
    columns, lines, cells = _read(path)
    place = columns.find(target)
    named = None if name is None else columns.find(name)
    ordered = None if order is None else columns.find(order)
    for other, what in ((named, "name the rows"), (ordered, "say the order of labels")):
        if other == place:
            raise TableError(f"{path}: {columns.shown(place)} is the target and cannot {what}")
    if len(cells) < MIN_ROWS:
        raise TableError(f"{path}: at least {MIN_ROWS} rows are needed, got {len(cells)}")
    y, skipped = _targets(columns, lines, [row[place] for row in cells], place)
    reader = _Features(path, columns, lines, cells)
    if features is None:
        others = (place, named, ordered)
        wanted = [i for i in range(len(columns)) if i not in others and not reader.is_blank(i)]
        if named is None:
            named = reader.first_with_names(wanted)
        wanted = [i for i in wanted if i != named]
        if not wanted:
            raise TableError(f"{path}: there is no feature beside {columns.shown(place)}")
    else:
        wanted = columns.find_features(features, place, None)
    read = [reader.read(column, wanted) for column in wanted]
    names = None if named is None else [row[named] for row in cells]
    said = [key for one in read for key in one.keys]
    n = len(cells)
    texts = ["" if names is None else names[i] for i in range(n)]
    return Sheet(
        file=path,
        unit=columns.unit,
        X=np.ascontiguousarray(np.column_stack([one.X for one in read])),
        y=y,
        skipped=skipped,
        lines=np.array(lines, dtype=np.int64),
        names=names,
        name_column=None if named is None else columns.label(named),
        features=tuple(columns.label(column) for column in wanted),
        columns=tuple(column for one in read for column in one.columns),
        target=columns.label(place),
        rank=None if ordered is None else _ranks(columns, lines, cells, ordered, y),
        keys=_keys(texts, [said[i : i + n] for i in range(0, len(said), n)]),
        warnings=tuple(text for one in read if (text := one.warning)),
    )


# cells -------------------------------------------------------------------------------------------


def _read(path: str) -> tuple[Columns, list[int], list[list[str]]]:
    """Return the columns, the number of each row in the file, and its cells."""
    ending = os.path.splitext(path)[1].lower()
    if ending in SPREADSHEETS | PARQUET:
        columns, rows = _read_by_pandas(path, ending)
    else:
        columns, rows = read_cells(path)
    lines, cells = [], []
    for line, row in rows:
        columns.check_length(line, row)
        if any(row):  # spreadsheets write empty rows at the end
            lines.append(line)
            cells.append(row)
    return columns, lines, cells


def _read_by_pandas(path: str, ending: str) -> tuple[Columns, Iterable[tuple[int, list[str]]]]:
    try:
        import pandas
    except ImportError:
        raise TableError(
            f"{path}: pandas is needed to read {ending} (pip install pandas): or save it as CSV"
        ) from None
    try:
        if ending in PARQUET:
            frame = pandas.read_parquet(path)
            if any(name is not None for name in frame.index.names):
                frame = frame.reset_index()
        else:
            frame = pandas.read_excel(path, header=None, dtype=object, keep_default_na=False)
    except ImportError:
        needs = (SPREADSHEETS | PARQUET)[ending]
        raise TableError(
            f"{path}: pandas needs {needs} to read {ending} (pip install -U {needs}): or save it "
            "as CSV"
        ) from None
    except OSError as error:
        raise TableError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # of zip, XML and whatever else a file may be made of
        raise TableError(f"{path}: cannot be read as {ending}: {error}") from None
    rows = [
        [_cell_text(pandas, value) for value in row]
        for row in frame.itertuples(index=False, name=None)
    ]
    if ending in PARQUET:
        names = [str(column).strip() for column in frame.columns]
        return Columns(path, names, True, "row"), enumerate(rows, start=1)
    rows = rows if any(any(row) for row in rows) else []
    if not rows:
        raise TableError(f"{path}: the file is empty")
    has_header = any(cell and parse_number(cell) is None for cell in rows[0])
    names = rows[0] if has_header else [""] * len(rows[0])
    numbered = list(enumerate(rows, start=1))
    return Columns(path, names, has_header, "row"), numbered[1 if has_header else 0 :]


def _cell_text(pandas: Any, value: Any) -> str:
    if value is None or (pandas.api.types.is_scalar(value) and pandas.isna(value)):
        return ""
    if isinstance(value, float | np.floating):
        return repr(float(value))
    return str(value).strip()


# the target, and the order of labels ----------------------------------------------------------


def _targets(
    columns: Columns, lines: list[int], cells: list[str], place: int
) -> tuple[Array, Bools]:
    y, skipped = np.full(len(cells), np.nan), np.zeros(len(cells), dtype=np.bool_)
    for i, cell in enumerate(cells):
        word = cell.lower()
        if word in MISSING:
            continue
        if word in SKIPPED:
            skipped[i] = True
            continue
        value = parse_number(cell)
        if value is None or not math.isfinite(value):
            hint = "leave the cell empty if there is no label yet, write skip or failed if there "
            raise columns.error(lines[i], place, f"{cell_error(cell, value)}; {hint}will be none")
        if abs(value) > LARGEST:
            raise columns.error(lines[i], place, f"{cell} is too large: choose another unit")
        y[i] = value
    return y, skipped


def _ranks(
    columns: Columns, lines: list[int], cells: list[list[str]], column: int, y: Array
) -> Array:
    """Return numbers that sort the labels as a column of numbers or dates does."""
    rows = np.flatnonzero(~np.isnan(y)).tolist()
    values = [_order_value(columns, lines[row], column, cells[row][column]) for row in rows]
    if len({isinstance(value, datetime) for value in values}) > 1:
        raise columns.error(lines[rows[0]], column, "--order needs numbers or dates, not both")
    rank = np.full(len(y), np.nan)
    rank[[rows[i] for i in sorted(range(len(rows)), key=values.__getitem__)]] = range(len(rows))
    return rank


def _order_value(columns: Columns, line: int, column: int, cell: str) -> Any:
    """Return a number or a date."""
    number = parse_number(cell)
    if number is not None and math.isfinite(number):
        return number
    try:
        moment = datetime.fromisoformat(cell)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        what = "is empty" if not cell else f"has {short_repr(cell)}"
        raise columns.error(
            line, column, "--order needs a number or a date such as 2024-05-31 for each label, and "
            f"the cell {what}"
        ) from None  # fmt: skip


# features ----------------------------------------------------------------------------------------


class _Feature(NamedTuple):
    X: Array  # (n,) or (n, categories)
    columns: tuple[str, ...]
    keys: list[str]  # the cells, numbers in one way of writing
    warning: str = ""


class _Features:
    """Reads columns of a file as features."""

    def __init__(
        self, file: str, columns: Columns, lines: list[int], cells: list[list[str]]
    ) -> None:
        self.file, self.columns, self.lines, self.cells = file, columns, lines, cells

    def column(self, place: int) -> list[str]:
        return [row[place] for row in self.cells]

    def is_blank(self, place: int) -> bool:
        """Return whether a column has neither a name nor a value, as at a spreadsheet's edge."""
        return self.columns.label(place) == f"column {place + 1}" and not any(self.column(place))

    def first_with_names(self, wanted: list[int]) -> int | None:
        """Return the first column of text in which all values differ."""
        for place in wanted:
            cells = self.column(place)
            if all(cells) and len(set(cells)) == len(cells) and is_text(cells):
                return place
        return None

    def read(self, place: int, wanted: list[int]) -> _Feature:
        """Return one feature."""
        cells = self.column(place)
        if is_text(cells):
            return self._categories(place, cells, wanted)
        values = np.empty(len(cells))
        for i, cell in enumerate(cells):
            if cell.lower() in MISSING:
                raise self._missing(place, i, wanted)
            value = parse_number(cell)
            if value is None or not math.isfinite(value):
                raise self.columns.error(self.lines[i], place, cell_error(cell, value))
            values[i] = value
        label = self.columns.label(place)
        warning = ""
        if len(wanted) > 1 and (np.diff(values) == 1).all():
            warning = (
                f"{self.columns.shown(place)} counts the rows, and is used as a feature: if it "
                f"only names them, say --name {_quoted(label)}"
            )
        return _Feature(values, (label,), [repr(v) for v in (values + 0.0).tolist()], warning)

    def _categories(self, place: int, cells: list[str], wanted: list[int]) -> _Feature:
        for i, cell in enumerate(cells):
            if not cell:
                raise self._missing(place, i, wanted)
        kinds = sorted(set(cells))
        shown, label = self.columns.shown(place), self.columns.label(place)
        if len(kinds) > MOST_CATEGORIES or 2 * len(kinds) >= len(cells):
            raise TableError(
                f"{self.file}: {shown} is text with {len(kinds)} different values in "
                f"{len(cells)} rows, too many for a feature (at most {MOST_CATEGORIES}, and fewer "
                f"than half of the rows): leave it out{self._without(place, wanted)}, or let it "
                f"name the rows with --name {_quoted(label)}"
            )
        X = np.array([[float(cell == kind) for kind in kinds] for cell in cells])
        return _Feature(X, tuple(f"{label}={kind}" for kind in kinds), cells)

    def _missing(self, place: int, i: int, wanted: list[int]) -> TableError:
        return self.columns.error(
            self.lines[i], place, "the cell is empty, and features must be known for every row: "
            f"fill it in, delete the row, or leave the column out{self._without(place, wanted)}"
        )  # fmt: skip

    def _without(self, place: int, wanted: list[int]) -> str:
        """Return the option that leaves a column out."""
        rest = [_quoted(self.columns.label(i), list_item=True) for i in wanted if i != place]
        if not rest or len(rest) > 12:
            return " of --features"
        return f" with --features {_quoted(','.join(rest))}"


def is_text(cells: list[str]) -> bool:
    """Return whether a column is text: fewer than half of its values are numbers.

    Numbers with a decimal comma count as numbers, so that they are refused as such.
    """
    there = [cell for cell in cells if cell.lower() not in MISSING]
    if not there:
        return any(cells)  # words such as "none" alone
    numbers = sum(
        parse_number(cell) is not None or re.fullmatch(DECIMAL_COMMA, cell) is not None
        for cell in there
    )
    return 2 * numbers < len(there)


def _quoted(text: str, *, list_item: bool = False) -> str:
    """Return text as a shell wants it, or as one name of a list of columns."""
    if list_item:
        return '"' + text.replace('"', '""') + '"' if "," in text else text
    import shlex

    return shlex.quote(text)


def _keys(names: list[str], columns: list[list[str]]) -> list[str]:
    """Return what tells rows apart: their names and features, and a number if these repeat."""
    seen: Counter[str] = Counter()
    keys = []
    for i, name in enumerate(names):
        text = "\x1f".join([name, *(column[i] for column in columns)])
        key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return keys
