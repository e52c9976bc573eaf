"""Integers at the boundaries through every public argument that is a count or an index.

The arguments are found by themselves: all public functions, classes and methods are walked, and
what is an integer by its annotation or documentation is tried. `CALLS` says how to call each of
them; what it does not know fails, so that a new argument is covered on the day it appears. Numbers
and flags of the same calls get what they refuse: integers that no double holds, texts.

A call works and is right, or raises a ValueError or TypeError that names the argument and the value,
or a MemoryError that says how much is needed; afterwards nothing has changed.
"""

import importlib
import inspect
import pickle
import re
import warnings
from functools import cache

import numpy as np
import pytest
from boundary_calls import BOUNDS, CALLS, LEARN, OBJECTS, Call, X, Y, call_of, gp, snapshot
from boundary_values import ALL, FEW, HUGE, PLENTY, guarded
from boundary_values import small_machine as small_machine
from saved_states import MAKERS, learner

import fastal
from fastal import ActiveLearner, FixedBudget, Stopper, Streams, learn, simulate
from fastal import _validation as check
from fastal.criteria.experiments import max_variances
from fastal.datasets import artificial
from fastal.paper.bound_gap import tightness
from fastal.paper.protocol import Problem, campaigns, fit
from fastal.paper.table_one import Table1, outcomes
from fastal.runs import RunsDistribution, false_stop_probability
from fastal.stopping import Criterion, Measured

# What there is -----------------------------------------------------------------------------------

NOT_WALKED = {
    "plotting": "pictures of objects that were checked",
    "jit": "Numba types the arguments before any of our code runs; a handle is a pointer",
}
# Made by the library and handed out: nobody else calls their constructors.
RESULTS = {
    "Campaigns", "Cell", "Failure", "StillTrace", "Trace", "WeakFit",
    "Outcome", "Refit", "Run", "RunsTestResult", "Simulation", "Source", "Fitted",
    "Table1", "Tightness", "TwoWays", "Verdict", "Way",
}  # fmt: skip


# What the rooms offer one another, and bases that nobody makes one of.
BETWEEN_ROOMS = {
    "CampaignView", "ClassSelection", "Combination", "Criterion", "measures_in", "stop_in",
    "ErrorCurves", "Evidence", "FinishedRun", "Labels", "Measured", "Model", "Prior", "Record",
    "Selection", "check_test_set", "crossing_counts", "left_warning", "minimise_from",
    "no_stop_reason", "percent", "prior_loss", "warn_if_far",
    "first_of", "weak_fit", "window_means",
}  # fmt: skip


def public_members():
    """Yield name and value of all that the public modules offer."""
    for name in fastal._MODULES:
        if name in NOT_WALKED:
            continue
        module = importlib.import_module(f"fastal.{name}")
        offered = getattr(module, "__all__", None) or [
            own
            for own, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        for own in offered:
            value = getattr(module, own)
            if callable(value) and not own.startswith("_") and own not in BETWEEN_ROOMS:
                yield own, value


def public_methods(cls):
    for name in dir(cls):
        home = next((base for base in cls.__mro__ if name in vars(base)), None)
        own = home is not None and home.__module__.startswith("fastal")
        if own and not name.startswith("_") and callable(getattr(cls, name)):
            yield name, getattr(cls, name)


def discovered():
    """Return name -> callable of all that is public: "function", "Class", "Class.method"."""
    found = {}
    for name, value in public_members():
        if not inspect.isclass(value):
            found[name] = value
            continue
        if name not in RESULTS and not inspect.isabstract(value):
            found[name] = value
        found |= {
            f"{name}.{method}": function
            for method, function in public_methods(value)
            if function is not Measured.see  # it does not look at the bound
        }
    return found


def documented_types(documentation):
    """Return name -> type, of the section of a docstring that describes parameters."""
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n\w|\Z)", inspect.cleandoc(documentation), re.S)
    found = {}
    for line in section[1].splitlines() if section else ():
        if named := re.fullmatch(r"(\w+(?:, \w+)*) : (.+)", line):
            found |= dict.fromkeys(named[1].split(", "), named[2])
    return found


@cache
def arguments_of(function, settings=Stopper):
    """Return name -> "count", "number" or "flag", from annotations and documentation."""
    documentation = inspect.getdoc(function) or ""
    said = documented_types(documentation)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and (
            "rguments of" in documentation or "Settings that differ" in documentation
        ):
            found |= arguments_of(settings)  # `**settings`, `**params`
        note = re.sub(r"Callable\[\[.*?\], \w+\]|dict\[.*\]", "", str(parameter.annotation))
        if re.search(r"\bint\b", f"{note} {said.get(name, '')}"):
            found[name] = "count"
        elif re.search(r"\b(float|ArrayLike)\b", note) or (
            name in UNTYPED and re.search(r"\b(dict|Any)\b", str(parameter.annotation))
        ):
            found[name] = "number"
        elif re.search(r"\bbool\b", note):
            found[name] = "flag"
    return found


def owner_of(name):
    """Return the class whose arguments ``**settings`` are: `Stopper`, or that of a `replace`."""
    home, _, method = name.partition(".")
    return FOUND[home] if method == "replace" else Stopper


# Numbers and arrays of them, annotated as anything or as a dict of them.
UNTYPED = ("x", "y", "noise", "test", "bounds", "values", "bounds_or_model")

FOUND = discovered()
ARGUMENTS = [
    (name, argument, kind)
    for name, function in FOUND.items()
    for argument, kind in arguments_of(function, owner_of(name)).items()
]


def test_all_public_names_are_walked():
    offered = {name for name, home in fastal._HOME.items() if callable(getattr(fastal, name))}
    assert offered - set(FOUND) - RESULTS - BETWEEN_ROOMS == {
        "get_include",
        "show_versions",
    }  # they take no arguments
    assert {name for name, _ in public_members()} >= RESULTS
    assert {
        name for room in fastal._MODULES for name in dir(getattr(fastal, room))
    } >= BETWEEN_ROOMS
    kinds = {(name, argument): kind for name, argument, kind in ARGUMENTS}
    # by annotation, by documentation, by way of **settings
    assert kinds["simulate", "n_runs"] == "count"
    assert kinds["Streams", "n"] == kinds["GaussianProcess.rewind", "n"] == "count"
    assert kinds["stopping_time", "horizon"] == kinds["Stopper.after_fit", "initial"] == "count"
    assert kinds["Stopper", "fall"] == kinds["Stopper.replace", "fall"] == "flag"
    assert kinds["MinLabels.replace", "n"] == kinds["AnyOf.set_horizon", "n"] == "count"
    assert kinds["learn", "y_or_oracle"] == "number"


# What comes of a call ----------------------------------------------------------------------------


def in_use(value):
    """Use what a call made; return what came of it, to be compared."""
    if isinstance(value, ActiveLearner):
        while not value.finished:
            value.tell(Y[value.ask()])
        return value.run().indices.tolist(), snapshot(value.criterion)
    if isinstance(value, Streams):
        for bound in BOUNDS * 8:
            value.push(np.full(len(value), bound))
        return value.stopped_at[:3].tolist(), repr(value.left[:3]), value.bounds(0).tolist()
    if isinstance(value, Criterion) and not isinstance(value, Measured):
        for bound in BOUNDS * 8:  # 224 of them
            value.push(bound)
        again = value.copy()
        assert again.to_dict() == value.to_dict() == pickle.loads(pickle.dumps(value)).to_dict()
        assert str(value.verdict)
        return value.stopped_at, again.push(3.0), repr(value.bounds)
    if isinstance(value, Criterion):
        return value.extend([0.5, 0.2]), value.copy().stopped, value.reset().stopped
    if isinstance(value, fastal.simulation.Simulation):
        return [snapshot(getattr(value, name)) for name in ("n_labels", "bounds", "errors", "eta")]
    if isinstance(value, fastal.learning.Run):
        return value.indices.tolist(), value.bounds.tolist(), snapshot(value.errors)
    if isinstance(value, RunsDistribution):
        return value.mean(), value.support(), value.pmf(value.support()[0])
    if isinstance(value, Problem) and len(value.y) == len(Y):
        return snapshot(campaigns(value, 2).result.n_labels)
    return snapshot(str(value) if isinstance(value, Table1) else value)


def shapes_of(valid, value):
    """Yield a value as it is, and in what an array of indices or a shape is made of."""
    yield value
    if isinstance(valid, list):
        yield [value]
        yield [valid[0], value]
        yield np.array([value])


def written(value):
    """Return what of a value must stand in a message."""
    if isinstance(value, bool | np.bool_):
        return str(value)
    try:
        return str(int(value))[:20]
    except ValueError:  # 5,000 digits
        return "too long to be shown"


def attempt(name, argument, value):
    """Return ("made", what it is good for), ("refused", exception), or ("bad", complaint)."""
    call = call_of(name, argument)
    arguments = call.arguments(argument) | {argument: value}
    home, _, method = name.partition(".")
    function, owner = FOUND[name], None
    if method:
        owner = OBJECTS.get(home, MAKERS.get(home))
        if inspect.ismethod(function):
            owner = None  # a class method
        else:
            owner = owner()
            if name == "GaussianProcess.fit_hyperparameters":
                owner = gp()
            function = getattr(owner, method)
    before = snapshot([owner, arguments])
    text = ""
    with warnings.catch_warnings(), call.within(), guarded():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # labels far from the prior mean, and the like
        try:
            made = function(**arguments)
            return "made", (in_use(made) if owner is None or made is not None else snapshot(owner))
        except (ValueError, TypeError, MemoryError) as error:
            text, kind = str(error), type(error)
        except Exception as error:
            return "bad", f"{type(error).__name__}: {error}"
    if snapshot([owner, arguments]) != before:
        return "bad", f"changed something before it raised {kind.__name__}: {text}"
    named = re.search(rf"`{call.called.get(argument, argument)}[`\[]", text)
    if not named or len(text) > 400:
        return "bad", f"{kind.__name__} without the name of the argument, or endless: {text[:500]}"
    if kind is MemoryError and "GB" not in text:
        return "bad", f"MemoryError that does not say how much: {text}"
    return "refused", (kind, text)


def assert_works(name, argument, valid):
    outcome, what = attempt(name, argument, valid)
    assert outcome == "made", f"CALLS[{name!r}] with `{argument}`: {what}"


def complaints_of_count(name, argument):
    call, found = call_of(name, argument), []
    valid = call.arguments(argument)[argument]
    plain = {}
    assert_works(name, argument, valid)
    for value in ("x", 2.5, 1j):
        outcome, what = attempt(name, argument, value)
        if (
            outcome != "refused"
            or what[0] is not TypeError
            or check.short_repr(value) not in what[1]
        ):
            found.append(f"{value!r}: {outcome} {what}")
    for value in FEW if argument in call.few else ALL:
        for shape in shapes_of(valid, value):
            outcome, what = attempt(name, argument, shape)
            said = f"{check.short_repr(shape)}: {outcome} {what}"
            if outcome == "bad" or (outcome == "refused" and written(value) not in what[1]):
                found.append(said)
            if isinstance(value, bool | np.bool_) and outcome != "refused":
                found.append(f"{said}: a truth value is no number")
            if outcome != "made" or isinstance(shape, list | np.ndarray):
                continue
            number = int(value)
            plain.setdefault(number, attempt(name, argument, number)[1])
            if what != plain[number]:
                found.append(f"{said}: not what {number} gives, {plain[number]}")
            if number > PLENTY and argument not in call.endless:
                plain.setdefault(PLENTY, attempt(name, argument, PLENTY)[1])
                if what != plain[PLENTY]:
                    found.append(f"{said}: not what {PLENTY} gives, {plain[PLENTY]}")
    return found


def with_huge(value, huge):
    """Return the value with its first number replaced."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        key = next(iter(value))
        return value | {key: with_huge(value[key], huge)}
    if isinstance(value, list | tuple):
        return type(value)([with_huge(value[0], huge), *value[1:]])
    return huge


def complaints_of_number(name, argument):
    valid, found = call_of(name, argument).arguments(argument)[argument], []
    assert_works(name, argument, valid)
    for value in (with_huge(valid, HUGE), with_huge(valid, -HUGE)):
        outcome, what = attempt(name, argument, value)
        if outcome != "refused" or what[0] is not ValueError or "10000000" not in what[1]:
            found.append(f"{check.short_repr(value)}: {outcome} {what}")
    array = isinstance(valid, list | np.ndarray) and call_of(name, argument).each != argument
    ragged = [[[1.0], [1.0, 2.0]]] if array else []
    for value in ("x", 1j, {"a": 1}, *ragged):
        outcome, what = attempt(name, argument, value)
        if outcome != "refused":
            found.append(f"{check.short_repr(value)}: {outcome} {what}")
    return found


def complaints_of_flag(name, argument):
    valid, found = call_of(name, argument).arguments(argument)[argument], []
    for value in (np.bool_(valid), valid):
        outcome, what = attempt(name, argument, value)
        if outcome != "made":
            found.append(f"{value!r}: {outcome} {what}")
    annotation = inspect.signature(FOUND[name]).parameters.get(argument)
    optional = annotation is not None and annotation.annotation == "bool | None"
    for value in ("yes", 1, None, 0.0, [True], 2**64):
        outcome, what = attempt(name, argument, value)
        if value is None and optional and outcome == "made":
            continue
        if (
            outcome != "refused"
            or what[0] is not TypeError
            or check.short_repr(value) not in what[1]
        ):
            found.append(f"{value!r}: {outcome} {what}")
    return found


COMPLAINTS = {
    "count": complaints_of_count,
    "number": complaints_of_number,
    "flag": complaints_of_flag,
}


@pytest.mark.parametrize(
    ("name", "argument", "kind"), ARGUMENTS, ids=[f"{name}-{arg}" for name, arg, _ in ARGUMENTS]
)
def test_boundary_values(name, argument, kind):
    assert COMPLAINTS[kind](name, argument) == []


# Some of the words, to be read here ----------------------------------------------------------------


def fitted(**settings):
    return gp().fit_hyperparameters(X, Y, **settings)


def simulated(**settings):
    return simulate(X, Y, gp=gp(), pool_size=5, **settings)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        # seeds: any integer that is not negative, of any size
        (lambda: ActiveLearner(X, **LEARN | {"gp": gp(), "seed": -1}), ValueError, "`seed` must be at least 0, got -1"),
        (lambda: ActiveLearner(X, **LEARN | {"gp": gp(), "seed": "x"}), TypeError, "`seed` must be an integer, got 'x'"),
        (lambda: learn(X, Y, **LEARN | {"gp": gp(), "seed": True}), TypeError, "`seed` must be an integer, got True"),
        (lambda: fit(X, Y, seed=-HUGE), ValueError, r"`seed` must be at least 0, got -10{10,60}\.\.\."),
        (lambda: tightness(2, seed="x"), TypeError, "`seed` must be an integer, got 'x'"),
        (lambda: fitted(seed=1.0), TypeError, "`seed` must be an integer, got 1.0"),
        # more than a machine has, and more than makes sense
        (lambda: simulated(n_runs=2**62), MemoryError, r"with `n_runs` = 4611686018427387904 needs more than 10\^9 GB, this machine has 8.0 GB: lower `n_runs`"),
        (lambda: simulated(n_runs=2**31), MemoryError, r"needs \d+\.\d GB"),
        (lambda: artificial(2**40), MemoryError, r"`n` = 1099511627776 points needs 52776.6 GB"),
        (lambda: outcomes(["yacht"], runs=2**53), MemoryError, "with `runs` = 9007199254740992 needs more"),
        (lambda: fitted(restarts=2**31), ValueError, "`restarts` must be at most 1000000, got 2147483648"),
        (lambda: simulated(n_jobs=2**31), ValueError, "`n_jobs` must be at most 4096, got 2147483648"),
        (lambda: simulated(n_jobs=0), ValueError, "`n_jobs` must not be 0, got 0: -1 is all cores"),
        (lambda: learn(X, Y, **LEARN | {"gp": gp()}, threads=5000), ValueError, "`threads` must be at most 4096, got 5000"),
        (lambda: learner(gp(), Stopper(), []).run(threads=0), ValueError, "`threads` must be at least 1, got 0"),
        # indices: unsigned ones do not wrap, those beyond 64 bits are compared as they are
        (lambda: max_variances(gp(), X, [0.5]), TypeError, r"`order` must be row numbers, got \[0\.5\]"),
        # integers that no double holds, rows of different lengths, what is no flag
        (lambda: fitted(bounds={"noise": (1, HUGE)}), ValueError, r"`bounds\['noise'\]` must be a pair of numbers, got \(1, 10"),
        (lambda: gp().predict([[1.0], [1.0, 2.0]]), ValueError, r"`X` must have rows of equal lengths, got \[\[1"),
        (lambda: false_stop_probability(0.01, 50, sequential="yes"), TypeError, "`sequential` must be True or False, got 'yes'"),
        (lambda: FixedBudget(3).extend(5), TypeError, "`values` must be iterable, got 5"),
        (lambda: FixedBudget(-HUGE), ValueError, r"`n` must be at least 1, got -10{10,60}\.\.\."),
        (lambda: FixedBudget(10**5000), ValueError, "`n` must be at most 9223372036854775807, got <int too long to be shown>"),
    ],
)  # fmt: skip
def test_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_seeds_of_any_size():
    small, large = (learn(X, Y, **LEARN | {"gp": gp(), "seed": seed}) for seed in (1, HUGE))
    assert small.n_labels == large.n_labels
    assert simulated(n_runs=2, seed=HUGE).seed == HUGE


def test_a_run_is_resumed_after_wrong_arguments():
    run = OBJECTS["Run"]()
    for wrong in ({"threads": 0}, {"test": 3}, {"labels": [1.0]}, {"labels": ["x"] * len(X)}):
        with pytest.raises((ValueError, TypeError)):
            run.resume(max_labels=7, **wrong)
    assert run.resume().n_labels == len(X)  # and not 7


# The check itself --------------------------------------------------------------------------------


def planted(n: int, flag: bool = False):
    """Go wrong in a way of its own for some values."""
    if n == 2**31:
        raise OverflowError("Python int too large to convert to C long")
    if n == 2**32:
        raise ValueError("negative dimensions are not allowed")
    if n == 2**61:
        raise MemoryError("no memory for `n` = 2305843009213693952")
    if n == 2**63:
        raise ValueError("`n` must be smaller, got 7")
    if n == HUGE:
        raise ValueError(f"`n` must be smaller, got {n}")
    if isinstance(n, np.int64):
        return 1
    return {2**64: 2}.get(n, 3)


def test_a_planted_failure_is_found(monkeypatch):
    monkeypatch.setitem(FOUND, "planted", planted)
    with pytest.raises(pytest.fail.Exception, match="add 'planted' to CALLS"):
        complaints_of_count("planted", "n")
    monkeypatch.setitem(CALLS, "planted", Call(flag=False))
    with pytest.raises(pytest.fail.Exception, match=r"add a valid `n` to CALLS\['planted'\]"):
        complaints_of_count("planted", "n")
    monkeypatch.setitem(CALLS, "planted", Call(n=3, flag=False))
    said = "\n".join(complaints_of_count("planted", "n"))
    for part in (
        "2147483648: bad OverflowError",
        "4294967296: bad ValueError without the name of the argument",
        "2305843009213693952: bad MemoryError that does not say how much",
        "9223372036854775808: refused",  # with the wrong value
        "bad ValueError without the name of the argument, or endless: `n` must be smaller, got 1000",
        f"{np.int64(2**63 - 1)!r}: made 0x1: not what 9223372036854775807 gives, 0x3",
        "18446744073709551616: made 0x2: not what 1000000 gives, 0x3",
        "True: made 0x3: a truth value is no number",
    ):
        assert part in said
    assert "-1: " not in said
    assert len(complaints_of_flag("planted", "flag")) == 6


def test_a_change_before_an_exception_is_found(monkeypatch):
    class Planted:
        def __init__(self):
            self.n = 0

        def rewind(self, n: int):
            self.n = n
            raise ValueError(f"`n` must be smaller, got {n}")

        def __repr__(self):
            return f"Planted({self.n})"

    monkeypatch.setitem(FOUND, "Planted.rewind", Planted.rewind)
    monkeypatch.setitem(OBJECTS, "Planted", Planted)
    monkeypatch.setitem(CALLS, "Planted.rewind", Call(n=1))
    assert attempt("Planted.rewind", "n", 5)[1].startswith("changed something before it raised")
