import csv
import io
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastal.cli.table import TableError, read_table

ROWS = [(float(i), i * 0.5 - 3, (i * 7) % 5 + 0.25) for i in range(20)]


@pytest.fixture
def save(tmp_path):
    def write(content):
        path = tmp_path / "data.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def text(separator=",", header="a,b,c", end="\n", rows=ROWS):
    lines = [header.replace(",", separator)] if header else []
    lines += [separator.join(map(repr, row)) for row in rows]
    return end.join(lines) + end


def changed(line, new):
    """The table with one line (from 1) replaced."""
    lines = text().splitlines()
    lines[line - 1] = new
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", "   ", " , ", "; "])
@pytest.mark.parametrize("header", ["a,b,c", None])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_headers_and_line_ends(save, separator, header, end):
    table = read_table(save(text(separator, header, end)), "c" if header else 3)
    np.testing.assert_array_equal(np.column_stack((table.X, table.y)), ROWS)
    assert table.features == (("a", "b") if header else ("column 1", "column 2"))
    assert table.target == ("c" if header else "column 3")
    first = 2 if header else 1
    np.testing.assert_array_equal(table.rows, np.arange(first, first + 20))


@pytest.mark.parametrize(
    ("target", "features", "columns"),
    [
        ("a", None, (1, 2, 0)),
        (-1, None, (0, 1, 2)),
        ("-3", None, (1, 2, 0)),
        ("2", ["c"], (2, 1)),
        (2, [-1, "a"], (2, 0, 1)),
        (" b ", ["1"], (0, 1)),
    ],
)
def test_columns_by_name_and_number(save, target, features, columns):
    table = read_table(save(text()), target, features)
    got = np.column_stack((table.X, table.y))
    np.testing.assert_array_equal(got, np.array(ROWS)[:, columns])
    assert (*table.features, table.target) == tuple("abc"[i] for i in columns)


def test_a_name_goes_before_a_number(save):
    table = read_table(save(text(header="x,1,y")), "1")
    assert table.target == "1"
    np.testing.assert_array_equal(table.y, [row[1] for row in ROWS])


def test_blank_lines_comments_quotes_and_byte_order_mark(save):
    content = (
        '\ufeff# made by hand\n\n"length, mm","b ""x""", c \n' + text(header=None) + "\n# end\n"
    )
    table = read_table(save(content), "c")
    assert table.features == ("length, mm", 'b "x"')
    np.testing.assert_array_equal(table.y, [row[2] for row in ROWS])
    assert table.rows[0] == 4


def test_quoted_names_between_spaces(save):
    table = read_table(save('"wind speed"  b   c\n' + text("  ", None)), "wind speed")
    assert table.features == ("b", "c")


def test_text_in_unused_columns_is_fine(save):
    lines = [f"{i},name{i},{i * i}" for i in range(20)]
    table = read_table(save("id,name,y\n" + "\n".join(lines)), "y", ["id"])
    assert table.X.shape == (20, 1)


def test_a_path_may_be_text(save):
    assert read_table(str(save(text())), "c").X.shape == (20, 2)


@pytest.mark.parametrize(
    ("content", "target", "features", "message"),
    [
        (text(), "d", None, "no column 'd'; the columns are 'a', 'b', 'c'"),
        (text(), 4, None, "no column 4; the columns are 'a', 'b', 'c'"),
        (text(), "0", None, "no column 0; the columns are"),
        (text(), "a", ["b", "z"], "no column 'z'; the columns are"),
        (text(header=None), "y", None, "no column 'y'; the file has no header and 3 columns"),
        (text(header="a,a,c"), "a", None, "columns 1 and 2 are both called 'a'; use a number"),
        (text(), "a", ["a"], "column 'a' is the target and cannot be a feature"),
        (text(), "a", ["b", 2], "column 'b' is given twice"),
        (text(), "a", [], "the list of features is empty"),
        (changed(5, "1,two,3"), "c", None, "line 5, column 'b': 'two' is not a number"),
        (changed(5, "1,2,NA"), "c", None, "line 5, column 'c': 'NA' is not a number"),
        (changed(7, "1,,3"), "c", None, "line 7, column 'b': the cell is empty"),
        (changed(7, "1,nan,3"), "c", None, "line 7, column 'b': 'nan' is not finite"),
        (changed(7, "1,2,-inf"), "c", None, "line 7, column 'c': '-inf' is not finite"),
        (changed(7, "1,1e999,3"), "c", None, "line 7, column 'b': '1e999' is not finite"),
        (changed(7, "1,1_0,3"), "c", None, "line 7, column 'b': '1_0' is not a number"),
        (changed(7, "1,٣,3"), "c", None, "line 7, column 'b': '٣' is not a number"),
        (changed(9, "1,2"), "c", None, "line 9: 2 cells where the first row has 3"),
        (changed(9, "1,2,3,4"), "c", None, "line 9: 4 cells where the first row has 3"),
        (changed(9, "1"), "c", None, "line 9: 1 cell where the first row has 3"),
        (changed(9, '1,2,"3'), "c", None, "line 21: unexpected end of data"),
        ("1,,3\n" + text(header=None), 1, None, "line 1, column 2: the cell is empty"),
        (text(";").replace(".", ","), "c", None, "'0,0' is not a number (use a decimal point)"),
        (text(rows=ROWS[:14]), "c", None, "at least 15 rows are needed, got 14"),
        ("a,b,c\n", "c", None, "at least 15 rows are needed, got 0"),
        ("", "c", None, "the file is empty"),
        ("# nothing\n\n", "c", None, "the file is empty"),
        (text(rows=[(a, b, 4.5) for a, b, _ in ROWS]), "c", None, "column 'c' is constant (4.5)"),
        (text(rows=[(a, 0.0, c) for a, _, c in ROWS]), "c", None, "column 'b' is constant (0)"),
        (
            text(header=None, rows=[(1.0, b, c) for _, b, c in ROWS]),
            3,
            None,
            "column 1 is constant",
        ),
        ("y\n" + "\n".join(map(str, range(20))), "y", None, "column 'y' is the only column"),
        (text().encode() + b"1,\xff,3\n", "c", None, "line 22: not UTF-8 text"),
        (text().encode("utf-16"), "c", None, "line 1: not UTF-8 text"),
    ],
)
def test_errors_say_where(save, content, target, features, message):
    path = save(content)
    with pytest.raises(TableError, match=re.escape(f"{path}: ") + ".*" + re.escape(message)):
        read_table(path, target, features)


def test_many_columns_are_not_all_listed(save):
    header = ",".join(f"x{i}" for i in range(200))
    rows = "\n".join(",".join(str(i * j % 7) for j in range(200)) for i in range(20))
    with pytest.raises(TableError, match=r"'x9', \.\.\., 'x195'.*'x199'$"):
        read_table(save(f"{header}\n{rows}\n"), "y")


def test_long_cells_are_shortened(save):
    with pytest.raises(TableError) as caught:
        read_table(save(changed(3, "x" * 5000 + ",1,2")), "c")
    assert len(str(caught.value)) < 400


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(TableError, match=r"nothing\.csv: No such file or directory"):
        read_table(tmp_path / "nothing.csv", 1)
    with pytest.raises(TableError, match="Is a directory"):
        read_table(tmp_path, 1)
    with pytest.raises(TableError, match="null"):
        read_table("a\0b", 1)


def test_an_error_is_a_value_error(save):
    # An error of the table is a ValueError, so that callers need not know its name.
    with pytest.raises(ValueError, match="no column"):
        read_table(save(text()), "99999999999999")


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    rows=st.lists(st.tuples(finite, finite, finite), min_size=15, max_size=30),
    separator=st.sampled_from([",", ";", "\t", " "]),
    header=st.booleans(),
)
def test_what_was_written_is_read(tmp_path_factory, rows, separator, header):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text(text(separator, "a,b,c" if header else None, rows=rows))
    constant = any(len(set(column)) == 1 for column in zip(*rows, strict=True))
    if constant:
        with pytest.raises(TableError, match="is constant"):
            read_table(path, 3)
        return
    table = read_table(path, 3)
    np.testing.assert_array_equal(np.column_stack((table.X, table.y)), rows)


@given(
    names=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1),
        min_size=2,
        max_size=4,
    )
)
def test_any_names_in_quotes(tmp_path_factory, names):
    # A header needs a name that is no number, and a first cell that is no comment.
    names = ["first", *names]
    stripped = [name.strip() for name in names]
    path = tmp_path_factory.mktemp("table") / "t.csv"
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    for i in range(15):
        out.write(",".join(str(i + j) for j in range(len(names))) + "\n")
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    table = read_table(path, 1)
    assert table.target == "first"
    assert table.features == tuple(
        name or f"column {i}" for i, name in enumerate(stripped[1:], start=2)
    )


@given(content=st.one_of(st.binary(max_size=300), st.text("1,;\t \n\r\"'#.ea-", max_size=300)))
def test_anything_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    message, table = None, None
    try:
        table = read_table(path, -1)
    except TableError as error:
        message = str(error)
    if table is None:
        assert message.startswith(f"{path}: ")
    else:
        assert len(table.y) >= 15
        assert all(map(math.isfinite, table.y))
        assert np.isfinite(table.X).all()


def partly(tmp_path, text, **more):
    path = tmp_path / "partly.csv"
    path.write_text(text, "utf-8")
    return read_table(path, "y", partly=True, **more)


def test_an_empty_target_is_nan_if_that_is_allowed(tmp_path):
    text = "a,y\n" + "".join(f"{i},{'' if i % 3 else i * i}\n" for i in range(20))
    table = partly(tmp_path, text)
    np.testing.assert_array_equal(np.isnan(table.y), np.arange(20) % 3 > 0)
    np.testing.assert_array_equal(table.y[::3], np.arange(0, 20, 3.0) ** 2)
    np.testing.assert_array_equal(table.X[:, 0], np.arange(20.0))
    with pytest.raises(TableError, match=r"line 3, column 'y': the cell is empty"):
        read_table(tmp_path / "partly.csv", "y")
    with pytest.raises(TableError, match=r"line 4, column 'a': the cell is empty"):
        partly(tmp_path, text.replace("\n2,", "\n,"))
    with pytest.raises(TableError, match=r"line 4: 1 cell where the first row has 2"):
        partly(tmp_path, text.replace("\n2,", "\n2"))


def test_a_column_says_which_targets_count(tmp_path):
    text = "a,known,y\n" + "".join(f"{i},{i % 2},{i if i % 2 else '?'}\n" for i in range(20))
    table = partly(tmp_path, text, labelled="known")
    assert table.features == ("a",)
    np.testing.assert_array_equal(np.isnan(table.y), np.arange(20) % 2 == 0)
    np.testing.assert_array_equal(table.y[1::2], np.arange(1.0, 20, 2))
    for labelled, features, message in (
        ("y", None, "column 'y' is the target and cannot say what is labelled"),
        ("known", ["a", "known"], "column 'known' says what is labelled and cannot be a feature"),
        ("a", None, "line 4, column 'a': must be 0 or 1, got 2"),
        ("nobody", None, "no column 'nobody'"),
    ):
        with pytest.raises(TableError, match=message):
            partly(tmp_path, text.replace("?", "0"), labelled=labelled, features=features)
    with pytest.raises(TableError, match="line 3, column 'y': '!' is not a number"):
        partly(tmp_path, text.replace("1,1,1\n", "1,1,!\n", 1), labelled="known")


def test_one_target_is_not_constant(tmp_path):
    text = "a,y\n" + "".join(f"{i},{'7' if i == 3 else ''}\n" for i in range(20))
    assert np.isfinite(partly(tmp_path, text).y).sum() == 1
    with pytest.raises(TableError, match=r"column 'y' is constant \(7\)"):
        partly(tmp_path, text.replace("\n4,", "\n4,7"))
