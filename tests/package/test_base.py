"""The small modules that all rooms use: saved states, progress, options."""

import subprocess
import sys

import pytest

from fastal import _state
from fastal._progress import ProgressBar


def saved(**changes):
    return {"kind": "Thing", "version": 1, "a": 1, "b": 2} | changes


def test_a_state_of_one_kind():
    assert _state.state_of("Thing", saved(), ("b", "a")) == [2, 1]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([], "`state` must be a dict from `to_dict`, got"),
        (saved(kind="Car"), "`state` must describe a Thing of version 1, got 'Car', 1"),
        (saved(kind=None), "`state` must describe a Thing of version 1, got None, 1"),
        (saved(version=2), "`state` must describe a Thing of version 1, got 'Thing', 2"),
        (saved(version=True), "`state` must describe a Thing of version 1, got 'Thing', True"),
        (saved(version=1.0), "`state` must describe a Thing of version 1, got 'Thing', 1.0"),
        (saved(c=3), "`state` has the unknown 'c'"),
        ({"kind": "Thing", "version": 1, "a": 1}, "`state` lacks 'b'"),
    ],
)
def test_a_foreign_state(state, message):
    with pytest.raises(ValueError, match=message):
        _state.state_of("Thing", state, ("a", "b"))


@pytest.mark.parametrize("version", [0, 3, True, 1.0, "1", None])
def test_a_foreign_version(version):
    with pytest.raises(ValueError, match="`state` must describe a Thing of version 2, got 'Thing'"):
        _state.check_kind({"kind": "Thing", "version": version}, "Thing", 2)
    with pytest.raises(
        ValueError, match="`state` must describe an Other of version 2, got 'Thing'"
    ):
        _state.check_kind({"kind": "Thing", "version": 1}, "Other", 2)
    for state in (None, {}, {"kind": "Thing"}, {"kind": "Thing", "version": 1}):
        _state.check_kind(state, "Thing", 2)  # of what is missing `state_values` speaks


def test_a_damaged_state():
    for error in TypeError, ValueError:
        with (
            pytest.raises(ValueError, match="`state` is damaged: `a` must be"),
            _state.damaged_state(),
        ):
            raise error("`a` must be a number")
    with pytest.raises(ZeroDivisionError), _state.damaged_state():
        raise ZeroDivisionError
    with _state.damaged_state():
        pass


def test_a_bar_that_is_not_wanted_shows_and_imports_nothing():
    code = (
        "import sys; from fastal._progress import ProgressBar\n"
        "with ProgressBar(False, 3, unit='run') as bar:\n"
        "    bar.advance(); bar.advance(2, note='p = 1')\n"
        "print(bar.shown, 'tqdm' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False False False\n", "")


def test_a_bar_that_is_wanted(capsys):
    with ProgressBar(True, 5, 2, unit="label") as bar:
        assert bar.shown
        bar.advance(note="p = 0.1")
        bar.advance(2)
    shown = capsys.readouterr().err
    assert "2/5" in shown
    assert "5/5" in shown
    assert "p = 0.1" in shown
    assert "label" in shown


def test_the_options_need_the_standard_library_only():
    code = (
        "import sys, fastal._options, fastal.paper.names; "
        "print([name for name in ('numpy', 'scipy', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
