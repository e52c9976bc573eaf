"""Anything at all on the ways in from outside: saved states, tables, watched streams, doubles.

Few examples as a rule, 1,000 a property with ``HYPOTHESIS_PROFILE=fuzz``; with
``--hypothesis-show-statistics`` pytest says how many were tried.
"""

import contextlib
import io
import json
import math
import sys
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from saved_states import MAKERS, good_state, places, reader
from twins import looks

from fastal import ActiveLearner
from fastal._core.rule import Rule
from fastal.cli.entry import main
from fastal.cli.table import TableError, read_table

EXAMPLES = settings().max_examples
light = settings(max_examples=EXAMPLES if EXAMPLES > 100 else 30)

# Saved states: what is damaged raises a ValueError; what is accepted can be saved again ----------

numbers = st.one_of(
    st.sampled_from([0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 10**400, -(10**400)]),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1e300, -1.7e308, math.nan, math.inf, -math.inf]),
    st.integers(-3, 20),
    st.floats(-2, 2),
)
texts = st.one_of(
    st.sampled_from(["", "Stopper", "AnyOf", "GaussianProcess", "rbf", "less", "nan", "1"]),
    st.text(max_size=5),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
junk = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def damage(draw, name):
    """A good state with one to three places changed, left out, doubled or added to."""
    state = good_state(name)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(places(state))[1:] or [(None,)]))
        holder = state
        for key in way:
            holder = holder[key]
        action = draw(st.sampled_from(["replace", "replace", "drop", "double", "add"]))
        if last is None or (action == "add" and isinstance(holder, dict)):
            holder[draw(texts)] = draw(junk)
        elif action == "drop":
            del holder[last]
        elif action == "double" and isinstance(holder, list):
            holder.insert(last, holder[last])
        elif isinstance(holder[last], dict | list):
            holder[last] = draw(junk)
        else:
            holder[last] = draw(st.one_of(numbers, scalars, junk))
    return state


@pytest.mark.parametrize("name", MAKERS)
@light
@given(data=st.data())
def test_damaged_states(name, data):
    state = data.draw(damage(name))
    read = reader(name)
    before, made, refused = repr(state), None, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a label far from the prior mean
        try:
            made = read(state)
        except ValueError as error:
            refused = str(error)
        if made is None:
            assert refused
        else:  # What was accepted is whole: it can be shown, saved and read again.
            assert repr(made)
            saved = made.to_dict()
            assert repr(read(saved).to_dict()) == repr(saved)
            if isinstance(made, ActiveLearner) and made.n_labels < made.most_labels:
                assert made.unlabelled[made.ask()]
    assert repr(state) == before


HUGE = 10**400


def settings_with(**changes):
    return lambda state: {"settings": state["settings"] | changes}


def stop_with(**changes):
    return lambda state: {"stop": state["stop"] | changes}


def test_members_of_one_compiled_rule_have_no_bounds_of_their_own():
    state = good_state("AllOf stopped")
    state["members"][0]["bounds"] = [1.0]
    with pytest.raises(ValueError, match="`members` must have no bounds of their own"):
        reader("AllOf stopped")(state)


@pytest.mark.parametrize("name", ["Stopper stopped", "MovementBelow stopped"])
def test_numbers_of_numpy_in_a_state_are_written_again(name):
    state = good_state(name)
    numbers = state["stop"]["numbers"]
    state["stop"]["numbers"] = {
        key: np.int16(value) if isinstance(value, int) else value for key, value in numbers.items()
    }
    assert json.dumps(reader(name)(state).to_dict()) == json.dumps(good_state(name))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        # Found by fuzzing: integers that no double or no 64-bit counter holds, rows that are not there.
        ("Stopper", settings_with(alpha=HUGE), "`alpha` must be finite as a double, got 1000"),
        ("Stopper", {"bounds": [1.0, HUGE]}, "`bounds` must be finite as a double, got 1000"),
        ("Stopper", {"horizon": 2**63}, "`horizon` must be at most 9223372036854775807, got 9223"),
        ("Stopper", {"stops": [2**63]}, "`stops` must be at most 9223372036854775807, got 9223"),
        ("Stopper fits", {"fit": [HUGE, False]}, "`fit` must be at most 9223372036854775807"),
        ("FixedBudget", settings_with(n=2**63), "`n` must be at most 9223372036854775807"),
        ("MaxVariance", settings_with(threshold=HUGE), "`threshold` must be finite as a double"),
        ("MaxVariance", {"seen": 2**63}, "`seen` must be at most 4611686018427387903"),
        ("MaxVariance", {"times": [1, 2, 2**63]}, "`times` must be at most 4611686018427387903"),
        ("MaxVariance", {"history": [1, HUGE, 1]}, "`history` must be finite as a double"),
        # Found by trying each of 27 values at each place: what was taken, or came out as no ValueError.
        ("Stopper", {"version": True}, "`state` must have version 3, got True"),
        ("Stopper", {"version": 3.0}, "`state` must have version 3, got 3.0"),
        ("Stopper", {"settings": {"alpha": 0.01}}, "`state` lacks 'method', 'fall', 'sequential'"),
        ("Stopper", {"bounds": 5}, "`bounds` must be a list of numbers, got 5"),
        ("Stopper", {"bounds": [1, True]}, r"`bounds` must be a list of numbers, got \[1, True\]"),
        ("Stopper", {"stops": [2]}, r"`stops` and `stop` contradict each other, got \[2\]"),
        ("Stopper", {"stops": [2**62]}, "`stops` must be at most 3, got 4611686018427387904"),
        ("Stopper stopped", {"stops": [14]}, r"`stops` and `stop` contradict each other, got \[14"),
        ("Stopper stopped", {"stops": [0]}, r"`stops` and `stop` contradict each other, got \[0\]"),
        ("Stopper stopped", stop_with(n=14), r"`stops` and `stop` contradict each other, got \[15"),
        ("Stopper stopped", stop_with(n=1000), "`stops` must be at most 24, got 1000"),
        ("Stopper stopped", stop_with(stop=False), "`stop` must be a stop"),
        ("Stopper stopped", stop_with(warnings=[None]), "`stop` cannot be"),
        (
            "Stopper stopped",
            stop_with(numbers={"left": "x"}),
            "`left` must be a real number, got 'x'",
        ),
        ("Stopper stopped", stop_with(numbers={"left": HUGE}), "`left` must be finite as a double"),
        ("Stopper fits", {"fit": [7, False]}, "`fit` must be to at most 6 bounds, got 7"),
        ("OwnRule stopped", {"stops": [14]}, "`stops` and `stop` contradict each other"),
        ("AllOf stopped", {"stops": [15, 14, 3]}, "`stops` and `stop` contradict each other"),
        ("AnyOf own", {"bounds": []}, "`bounds` and `stops` must be those of the members"),
        ("AnyOf own", {"stops": [0, 0, 0, 0]}, "`bounds` and `stops` must be those of the members"),
        ("OwnMeasure", settings_with(every=0), "`every` must be at least 1, got 0"),
        ("OwnMeasure", settings_with(threshold=HUGE), "too large"),
        ("GaussianProcess", {"labels": [1, HUGE, 2]}, "`labels` must be finite as a double"),
        (
            "GaussianProcess",
            {"lengthscale": [1, -HUGE]},
            "`lengthscale` must be finite as a double",
        ),
        ("ActiveLearner", {"order": [2**63]}, "must be an integer >= 0, got 9223372036854775808"),
        ("ActiveLearner", {"asked": [8]}, "row 8 is out of the pool, or there twice"),
    ],
)
def test_what_was_found(name, change, message):
    state = good_state(name)
    changed = change(state) if callable(change) else change
    with pytest.raises(ValueError, match=message):
        reader(name)(state | changed)


@pytest.mark.parametrize("name", MAKERS)
@light
@given(state=junk)
def test_anything_as_a_state(name, state):
    read = reader(name)
    with pytest.raises(ValueError, match="`state`"):
        read(state)


# Tables -----------------------------------------------------------------------------------------

TABLE = ("x,second,y\n" + "".join(f"{i},{i * i % 7},{i % 5}.5\n" for i in range(18))).encode()


@st.composite
def damaged_bytes(draw, good):
    """Good content with some stretches replaced."""
    content = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.sampled_from([0, 1, 2, 10]))
        content[at : at + length] = draw(
            st.one_of(
                st.binary(max_size=4),
                st.sampled_from(
                    [b",", b";", b"\n", b"\r\n", b'"', b"#", b"nan", b"1e999", b"-", b"\0"]
                ),
                st.sampled_from([b"\xef\xbb\xbf", b"\xff\xfe", b"9" * 400, "\u0663".encode()]),
            )
        )
    return bytes(content)


@settings(max_examples=EXAMPLES)
@given(content=damaged_bytes(TABLE), target=st.sampled_from(["y", "x", -1, 1, 3]))
def test_damaged_tables(tmp_path_factory, content, target):
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    path.write_bytes(content)
    table, refused = None, ""
    try:
        table = read_table(path, target)
    except TableError as error:
        refused = str(error)
    if table is None:
        assert refused.startswith(f"{path}: ")
    else:
        assert np.isfinite(table.X).all()
        assert np.isfinite(table.y).all()
        assert table.X.shape == (len(table.y), len(table.features))


# watch ------------------------------------------------------------------------------------------

BOUNDS = b"".join(b"%d.5\n" % (i * 7 % 5 + 20 * (i < 15)) for i in range(40))
POSTERIORS = b"".join(b"0.5,0.%d,1.%d,0.1\n" % (i % 9 + 1, i % 7) for i in range(20))


@settings(max_examples=EXAMPLES)
@given(
    content=st.one_of(
        damaged_bytes(BOUNDS),
        damaged_bytes(POSTERIORS),
        st.binary(max_size=60),
        st.lists(numbers, max_size=30).map(lambda v: "".join(f"{x}\n" for x in v).encode()),
    ),
    options=st.sampled_from([[], ["--json"], ["--noise", "0.1"], ["--no-such"]]),
)
def test_watch(content, options):
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(content))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(["watch", *options])
            except SystemExit as end:
                status = end.code
    finally:
        sys.stdin = stdin
    assert status in (0, 2, 3)
    if status == 2:
        assert err.getvalue().startswith("fastal: ")
        assert err.getvalue().count("\n") == 1
    if "--json" in options:
        for line in out.getvalue().splitlines():
            assert math.isfinite(json.loads(line)["bound"])


# Doubles ----------------------------------------------------------------------------------------

EXTREMES = (
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53,
    1.7976931348623157e308, -1.7976931348623157e308, 1.7e308, 1e-300, 2.0**53, 2.0**53 + 2,
)  # fmt: skip


@st.composite
def adversarial(draw):
    """Sequences that are equal, alternating, sorted, near one another or of any doubles."""
    few = draw(st.lists(st.sampled_from(EXTREMES), min_size=1, max_size=4))
    n = draw(st.integers(1, 40))
    kind = draw(st.sampled_from(["cycle", "choice", "neighbours", "any", "sorted"]))
    if kind == "cycle":
        return [few[i % len(few)] for i in range(n)]
    if kind == "choice":
        return draw(st.lists(st.sampled_from(few), min_size=1, max_size=40))
    if kind == "neighbours":
        start = draw(st.floats(-1e300, 1e300))
        steps = draw(st.lists(st.integers(0, 3), min_size=1, max_size=40))
        ladder = [start]
        for _ in range(3):
            ladder.append(math.nextafter(ladder[-1], math.inf))
        return [ladder[i] for i in steps]
    values = draw(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40)
    )
    return sorted(values) if kind == "sorted" else values


@settings(max_examples=EXAMPLES)
@given(values=adversarial(), fall=st.booleans())
@example(values=[1.7976931348623157e308] * 3, fall=False)
@example(values=[-1.7976931348623157e308, 1.7976931348623157e308] * 8, fall=False)
@example(values=[5e-324, 0.0, -0.0, -5e-324] * 5, fall=False)
def test_looks_at_adversarial_doubles(values, fall):
    rule = Rule(("runs", 0.05, 0, False, fall, 0))
    stops = [rule.push(value) for value in values]
    at = looks.first_stop(values, 0.05, fall=fall)
    assert stops == [0 < at <= n for n in range(1, len(values) + 1)]
    again = Rule(rule.spec)
    assert again.extend(np.array(values)) == max(at, 0)
