"""Integers at the boundaries through every public argument that is a count or an index.

The arguments are found by themselves: all public functions, classes and methods are walked, and
what is an integer by its annotation or documentation is tried. `CALLS` says how to call each of
them; what it does not know fails, so that a new argument is covered on the day it appears. Numbers
and flags of the same calls get what they refuse: integers that no double holds, texts.

A call works and is right, or raises a ValueError or TypeError that names the argument and the value,
or a MemoryError that says how much is needed; afterwards nothing has changed.
"""

import argparse
import contextlib
import importlib
import inspect
import json
import pickle
import re
import signal
import sys
import warnings
from functools import cache

import numpy as np
import pytest
from saved_states import MAKERS, POOL, good_state, learner, process, pushed, reader

import fastal
from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    LaplaceClassifier,
    LookAhead,
    MinLabels,
    RunsDistribution,
    Stopper,
    StopperBatch,
    _memory,
    false_stop_probability,
    forecast,
    learn,
    simulate,
)
from fastal import _validation as check
from fastal.cli.entry import build_parser, main
from fastal.criteria.experiments import max_variances
from fastal.criteria.predictions import StabilizingPredictions
from fastal.datasets import artificial
from fastal.lookahead.gain import Forecast
from fastal.stopping.criterion import Criterion
from fastal.studies.bound_gap import tightness
from fastal.studies.label_cost import RULES, Curve, Tradeoff
from fastal.studies.protocol import Problem, campaigns, fit
from fastal.studies.table_one import Table1, outcomes

# The values --------------------------------------------------------------------------------------

HUGE = 10**400
INTEGERS = (
    2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64,
    -1, -(2**31), -(2**63), HUGE, -HUGE, 10**5000,
)  # fmt: skip
WIDTHS = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
EXTREMES = tuple(
    width(end) for width in WIDTHS for end in (np.iinfo(width).min, np.iinfo(width).max)
)
FLAGS = (True, False, np.True_, np.False_)
ALL = (*INTEGERS, *EXTREMES, *FLAGS)

# For calls that take long when they succeed: one of each kind.
FEW = (2**31, 2**62, 2**63, -1, HUGE, np.int8(-128), np.uint64(2**64 - 1), True)

# A count that all data here are small for: a larger one must act like it.
PLENTY = 10**6

# Guards, not measurements: they turn a hang and a swapping machine into failures.
SECONDS = 60
MACHINE = 8 * 10**9


@contextlib.contextmanager
def guarded():
    """Raise in a call that does not come back."""

    def ring(*_):
        raise TimeoutError(f"no answer within {SECONDS} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    """The same answers on machines of any size, and no request that fills this one."""
    monkeypatch.setattr(_memory, "machine", lambda: MACHINE)
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + MACHINE
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# What there is -----------------------------------------------------------------------------------

NOT_WALKED = {
    "reference": "the slow twin checks nothing, on purpose",
    "plotting": "pictures of objects that were checked",
    "jit": "Numba types the arguments before any of our code runs; a handle is a pointer",
}
# Made by the library and handed out: nobody else calls their constructors.
RESULTS = {
    "Calibration", "Campaigns", "Cell", "Comparison", "Curve", "Distance", "Failure", "Forecast",
    "Outcome", "Row", "Run", "RunsTestResult", "Simulation", "Source", "Table1", "Tightness",
    "Tradeoff", "Verdict",
}  # fmt: skip


# What the rooms offer one another, and bases that nobody makes one of.
BETWEEN_ROOMS = {
    "AllOf", "AnyOf", "CampaignView", "ClassSelection", "Criterion", "Decision", "Evidence", "FinishedRun", "Measured", "Prior",
    "Record", "Selection", "aligned", "check_test_set", "climb",
    "no_stop_reason", "prior_loss", "warn_if_far", "whitened", "write_csv",
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
        found |= {f"{name}.{method}": function for method, function in public_methods(value)}
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
def arguments_of(function):
    """Return name -> "count", "number" or "flag", from annotations and documentation."""
    documentation = inspect.getdoc(function) or ""
    said = documented_types(documentation)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and "rguments of" in documentation:
            found |= arguments_of(Stopper)  # `**settings`, `**params`
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


# Numbers and arrays of them, annotated as anything or as a dict of them.
UNTYPED = ("x", "y", "noise", "test", "bounds", "values")

FOUND = discovered()
ARGUMENTS = [
    (name, argument, kind)
    for name, function in FOUND.items()
    for argument, kind in arguments_of(function).items()
]


def test_all_public_names_are_walked():
    offered = {name for name, home in fastal._HOME.items() if callable(getattr(fastal, name))}
    assert offered - set(FOUND) - RESULTS - BETWEEN_ROOMS == {
        "show_versions"
    }  # it takes no arguments
    assert {name for name, _ in public_members()} >= RESULTS
    kinds = {(name, argument): kind for name, argument, kind in ARGUMENTS}
    # by annotation, by documentation, by way of **settings
    assert kinds["simulate", "n_runs"] == kinds["forecast", "labelled"] == "count"
    assert kinds["StopperBatch", "window"] == kinds["GaussianProcess.rewind", "n"] == "count"
    assert kinds["runs_test", "continuity"] == "flag"
    assert kinds["learn", "y_or_oracle"] == "number"


# How to call each --------------------------------------------------------------------------------

X = np.random.default_rng(1).uniform(0, 5, (30, 1))
Y = np.sin(X[:, 0])
BOUNDS = [9.0, 8.0, 9.5, 8.5] * 4 + [1.0, 2.0, 1.5] * 4
CLASSES = np.where(Y > 0, 1, -1)
PROBABILITIES = [[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]


def gp():
    return GaussianProcess(1.0, 0.1)


def labelled_gp():
    model = gp()
    model.add_batch(X[:6], Y[:6])
    return model


@cache
def small_problem():
    return Problem("artificial", X, Y, 10, gp())


@cache
def small_simulation():
    return simulate(X, Y, gp=gp(), criteria=[FixedBudget(3)], n_runs=3, pool_size=5)


@cache
def small_campaign():
    return campaigns(small_problem(), 3)


@contextlib.contextmanager
def small_paper():
    """The experiments of the paper with data that are fitted in no time."""
    from fastal.studies import bound_gap, protocol

    def problem(name, seed=0):
        return small_problem()._replace(name=name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "ARTIFICIAL_FIT_ROWS", 8)
        for constant in ("CLASSIFIER_FIT_ROWS", "TIGHTNESS_POOL", "TIGHTNESS_TEST"):
            patch.setattr(bound_gap, constant, 8)
        patch.setattr(protocol, "problem", problem)
        yield


def batch():
    streams = StopperBatch(3)
    for value in BOUNDS:
        streams.push([value, 1.0, -value])
    return streams


def tradeoff_by_hand():
    curves = [Curve(rule, s, s, 1 - s) for rule in RULES for s in (0.2, 0.5, 0.8)]
    return Tradeoff(curves, [], [])


@cache
def foreign_model():
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    return gaussian_process.GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(X[:5], Y[:5])


# What a method is called on; the others are those of the saved states.
OBJECTS = {
    "ActiveLearner": lambda: learner(gp(), Stopper(), (0.5, -0.2, 0.1)),
    "AllOf": lambda: pushed(Stopper(noise=0.1)) & MinLabels(3),
    "AnyOf": lambda: pushed(Stopper(noise=0.1)) | FixedBudget(9),
    "Campaigns": small_campaign,
    "Criterion": lambda: pushed(FixedBudget(5)),
    "Forecast": lambda: forecast(POOL, gp(), labelled=[0]),
    "Run": lambda: learn(X, Y, gp=gp(), stopper=FixedBudget(3), seed=0),
    "RunsDistribution": lambda: RunsDistribution(5, 7),
    "Simulation": small_simulation,
    "Stopper": lambda: pushed(Stopper(noise=0.1)),
    "StopperBatch": batch,
    "Tradeoff": tradeoff_by_hand,
}


class Call:
    """Valid arguments; a function among them makes its argument anew for each call.

    modes : argument -> others that it needs beside it.
    few : arguments with which a call that succeeds takes long: only `FEW` are tried.
    endless : counts that change the answer however large they are (and seeds, always).
    called : argument -> what the message calls it, if not by its name.
    each : an argument that holds one array for each step.
    """

    def __init__(
        self, *valid, modes=None, few=(), endless=(), called=None, each=None, within=contextlib.nullcontext,
        **more,
    ):  # fmt: skip
        self.valid = (valid[0] if valid else {}) | more
        self.modes, self.few, self.endless = modes or {}, few, {*endless, *SEEDS}
        self.called, self.each, self.within = called or {}, each, within

    def arguments(self, argument):
        made = self.valid | self.modes.get(argument, {})
        return {key: value() if callable(value) else value for key, value in made.items()}


SEEDS = ("seed", "random_state")
TEST = (X[:3].tolist(), Y[:3].tolist())
LABELLED = {"X": X, "y": Y}
STOPPER = {"alpha": 0.01, "window": 20, "min_bounds": 5, "patience": 2, "fall": True, "noise": 0.1}
SEQUENTIAL = {"sequential": True, "window": None, "alpha": 0.05}
# `horizon` needs sequential=True, and that no window
MODES = {"horizon": SEQUENTIAL | {"horizon": 50}, "sequential": SEQUENTIAL}
WITHOUT_NOISE = {key: value for key, value in STOPPER.items() if key != "noise"}
EXPERIMENT = {"runs": 2, "seed": 0, "jobs": 1, "progress": False}
PAPER = {"few": ("runs", "seed", "jobs"), "within": small_paper}
UPDATE = {"mean": 0.1, "var": 0.5, "y": 0.4, "noise": 0.1}
PAC = {"loss_range": 1.0, "delta": 0.05, "kappa": 0.1}
MODEL = {"lengthscale": [1.0, 2.0], "amplitude": 1.0}
LEARN = {"gp": gp, "stopper": FixedBudget(4), "initial": 2, "max_labels": 6, "seed": 0}

# By "function", "Class", "Class.method", or "method" if all classes have it alike.
CALLS = {
    "push": Call(r=0.5),
    "extend": Call({"values": [0.5, 0.25]}),
    # models
    "GaussianProcess": Call(MODEL, noise=0.1, mean=0.0),
    "GaussianProcess.add": Call(x=[0.1, 0.2], y=0.5, noise=0.1),
    "GaussianProcess.add_batch": Call(X=[[0.1, 0.2], [0.3, 0.4]], y=[0.5, 0.1], noise=[0.1, 0.2]),
    "GaussianProcess.fit_hyperparameters": Call(
        LABELLED, amplitude=False, ard=False, mean=False, restarts=1, seed=0,
        bounds={"noise": (0.01, 1.0)}, few=("restarts", "seed"),
    ),
    "GaussianProcess.predict": Call(X=[[0.1, 0.2]], return_var=True, return_cov=False),
    "GaussianProcess.prior_kl": Call(jitter=0.1),
    "GaussianProcess.rewind": Call(n=2),
    "LaplaceClassifier": Call(MODEL, kappa=0.1),
    "LaplaceClassifier.add": Call(x=[0.1, 0.2], y=1),
    "LaplaceClassifier.add_batch": Call(X=[[0.1, 0.2], [0.3, 0.4]], y=[1, -1]),
    "LaplaceClassifier.expected_loss": Call(X=[[0.1, 0.2], [0.3, 0.4]], y=[1, -1]),
    "LaplaceClassifier.latent": Call(X=[[0.1, 0.2]], return_var=True, return_cov=False),
    "LaplaceClassifier.predict": Call(X=[[0.1, 0.2]]),
    "LaplaceClassifier.predict_proba": Call(X=[[0.1, 0.2]]),
    "LaplaceClassifier.rewind": Call(n=2),
    # stoppers
    "Stopper": Call(STOPPER, modes=MODES),
    "Stopper.get_params": Call(deep=True),
    "Stopper.observe": Call(x=[0.1, 0.2], y=0.5),
    "Stopper.recompute": Call(LABELLED, gp=gp, initial=1),
    "Stopper.set_params": Call(STOPPER, modes=MODES),
    "Stopper.update": Call(UPDATE),
    "Stopper.update_from": Call(model=foreign_model, x=[[0.3]], y=[0.5], noise=0.1),
    "StopperBatch": Call(WITHOUT_NOISE, modes=MODES, n_streams=3),
    "StopperBatch.bounds": Call(stream=1),
    "StopperBatch.push": Call({"values": [1.0, 2.0, 3.0], "where": [True, True, False]}),
    "StopperBatch.reset": Call(streams=[0, 1]),
    "stop_warnings": Call(bounds=BOUNDS),
    "stopping_time": Call(STOPPER, modes=MODES, bounds=[BOUNDS] * 9, threads=1),
    # runs
    "RunsDistribution": Call(n_below=5, n_above=7, endless=("n_below", "n_above")),
    **{f"RunsDistribution.{name}": Call(u=5) for name in
       ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")},
    "RunsDistribution.ppf": Call(q=[0.5]),
    "RunsDistribution.rvs": Call(size=3, random_state=0),
    "choose_method": Call(n_below=5, n_above=7, endless=("n_below", "n_above")),
    "runs_test": Call(x=[BOUNDS, BOUNDS], cutoff=5.0, axis=1, continuity=False),
    "look_level": Call(alpha=0.05, horizon=50, fall=False),
    "false_stop_probability": Call(alpha=0.05, horizon=50, sequential=False, fall=False),
    # bounds
    "alquier_bound": Call(risk=0.1, kl=1.0, n=10, loss_range=1.0, delta=0.05, endless="n"),
    "bound_constant": Call(a=0.0, b=1.0),
    "bounds_from": Call(model=foreign_model, x=[[0.3]], y=[0.5], noise=0.1),
    "gaussian_kl": Call(mean0=[0.0], cov0=[[1.0]], mean1=[1.0], cov1=[[2.0]], jitter=0.1),
    "gp_kl": Call(UPDATE),
    "gp_prior_kl": Call(cov=[[1.0]], y=[0.5], noise=[0.1], mean=0.0, jitter=0.1),
    "mcallester_bound": Call(risk=0.1, kl=1.0, n=10, delta=0.05, endless="n"),
    "update_from": Call(criterion=Stopper, model=foreign_model, x=[[0.3]], y=[0.5], noise=0.1),
    # criteria
    "AllOf.update": Call(UPDATE),
    "AnyOf.update": Call(UPDATE),
    "CrossValidation": Call(threshold=0.1, folds=3),
    "ErrorStability": Call(threshold=0.1),
    "ErrorStability.update": Call(kl=[0.5]),
    "FixedBudget": Call(n=5),
    "GroundTruth": Call(X_test=X, y_test=Y, threshold=0.1),
    "LookAhead": Call(
        eps=None, price=None, paper=False, modes={"eps": {"eps": 0.1}, "price": {"price": 0.1}}
    ),
    "LookAhead.update": Call(UPDATE),
    "MaxUncertainty": Call(threshold=0.1),
    "MaxUncertainty.update": Call(probabilities=PROBABILITIES),
    "MaxVariance": Call(threshold=0.1),
    "MaxVariance.update": Call(var=[0.5, 0.1]),
    "MinLabels": Call(n=5),
    "OverallUncertainty": Call(threshold=0.1),
    "OverallUncertainty.update": Call(probabilities=PROBABILITIES),
    "PACBayes": Call(PAC, threshold=0.1),
    "StabilizingPredictions": Call(cutoff=0.9, window=2),
    "StabilizingPredictions.update": Call(predictions=[0, 1, 1]),
    "cohen_kappa": Call(a=[0, 1, 1], b=[0, 1, 0]),
    "cross_validation_error": Call(gp=labelled_gp, folds=3),
    "cross_validation_errors": Call(LABELLED, gp=gp, folds=3),
    "entropies": Call(p=PROBABILITIES),
    "error_gap": Call(kl=[0.5]),
    "error_stability_stop": Call(kl=[0.5, 0.1], threshold=0.1),
    "expected_loss": Call(LABELLED, gp=labelled_gp),
    "expected_losses": Call(LABELLED, gp=gp, X_test=X, y_test=Y),
    "first_crossing": Call(history=[0.5, 0.1], threshold=0.2, rises=False),
    "max_uncertainty_stop": Call(
        probabilities=[PROBABILITIES] * 2, threshold=0.1, each="probabilities"
    ),
    "max_variances": Call(gp=gp, X=X, order=[0, 1]),
    "overall_uncertainty_stop": Call(
        probabilities=[PROBABILITIES] * 2, threshold=0.1, each="probabilities"
    ),
    "pac_bayes_bound": Call(PAC, gp=labelled_gp),
    "pac_bayes_bounds": Call(PAC | LABELLED, gp=gp),
    "stabilizing_predictions_stop": Call(
        predictions=[[0, 1, 1]] * 3, cutoff=0.9, window=2, each="predictions"
    ),
    # learning
    "ActiveLearner": Call(LEARN, X=X),
    "ActiveLearner.from_dict": Call(state=lambda: good_state("ActiveLearner"), X=POOL),
    "ActiveLearner.run": Call(test=([[0.1, 0.2]], [0.5]), threads=1),
    "ActiveLearner.tell": Call(y=0.5),
    "Run.resume": Call(labels=Y, max_labels=6, test=TEST, threads=1, called={"labels": "y"}),
    "learn": Call(
        LEARN, X=X, y_or_oracle=Y, test=TEST, threads=1, progress=False,
        called={"y_or_oracle": "y"},
    ),
    # forecasts
    "Forecast.bought_by": Call(labels=2),
    "Forecast.labels_at_price": Call(price=0.1),
    "Forecast.labels_for": Call(eps=0.1),
    "forecast": Call(
        X=POOL, gp=gp, labelled=[0], horizon=5, reference=POOL[:3].tolist(), samples=4, seed=0,
        modes={"samples": {"reference": None}},
    ),
    # simulations and experiments
    "Campaigns.stops": Call(criterion="max_variance", threshold=0.1),
    "Problem": Call(name="data", X=X, y=Y, pool_size=5, gp=gp),
    "Simulation.history": Call(j=0),
    "Simulation.pool": Call(run=1),
    "Tradeoff.unused_at": Call(rule="eps", labels=0.5),
    "artificial": Call(n=5, noise=0.1, seed=0, endless="n"),
    "artificial_mean": Call(x=[0.5]),
    "campaigns": Call(
        EXPERIMENT, problem=small_problem(), others=True, few=("runs", "seed", "jobs")
    ),
    "compare": Call(
        EXPERIMENT | LABELLED, gp=gp, pool_size=5, few=("runs", "seed", "jobs", "pool_size")
    ),
    "fit": Call(X=X[:8], y=Y[:8], rows=5, seed=0, few=("rows", "seed")),
    "first_crossings": Call(histories=np.ones((2, 3)), thresholds=np.ones(2), rises=False),
    "outcomes": Call(EXPERIMENT, datasets=["artificial"], criteria=["proposed"], **PAPER),
    "problem": Call(name="artificial", seed=0, few=("seed",), within=small_paper),
    "problems": Call(names=["artificial"], seed=0, jobs=1, **PAPER),
    "sign_of_sine": Call(n=5, rng=lambda: np.random.default_rng(0), endless="n"),
    "simulate": Call(
        LABELLED, gp=gp, n_runs=3, pool_size=5, initial=2, max_labels=4, test=TEST, seed=0,
        n_jobs=1, progress=False, few=("n_runs", "seed", "n_jobs"), endless=("n_runs",),
    ),
    "table1": Call(EXPERIMENT, datasets=["artificial"], criteria=["proposed"], **PAPER),
    "tightness": Call(EXPERIMENT, tasks=("regression", "classification"), **PAPER),
    "tradeoff": Call(EXPERIMENT, datasets=["artificial"], **PAPER),
}  # fmt: skip

# There for the sake of scikit-learn, nothing looks at it; not an argument, as is documented.
IGNORED = {("Stopper.get_params", "deep"), ("StopperBatch", "noise")}


def call_of(name, argument):
    call = CALLS.get(name) or CALLS.get(name.partition(".")[2])
    if call is None:
        pytest.fail(f"add {name!r} to CALLS in {__file__}: how to call it, small and cheap")
    if argument not in call.arguments(argument):
        pytest.fail(f"add a valid `{argument}` to CALLS[{name!r}] in {__file__}")
    return call


# What comes of a call ----------------------------------------------------------------------------


def snapshot(value):
    """Return something that differs if the value has changed."""
    if isinstance(value, StopperBatch):
        return repr((value.n, value.n_runs, value.p_value, value.stopped_at, value.median))
    if isinstance(value, fastal.Run):
        return snapshot([value.to_dict(), value._learner.to_dict(), value._learner.stopper])
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, dict):
        return [(key, snapshot(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [snapshot(inner) for inner in value]
    if isinstance(value, int):
        return hex(value)  # there is no limit to its digits
    if isinstance(value, np.generic):
        return snapshot(value.item())
    return repr(value.to_dict() if hasattr(value, "to_dict") else value)


def in_use(value):
    """Use what a call made; return what came of it, to be compared."""
    if isinstance(value, ActiveLearner):
        while not value.finished:
            value.tell(Y[value.ask()])
        return value.run().indices.tolist(), snapshot(value.stopper)
    if isinstance(value, StopperBatch):
        for bound in BOUNDS * 8:
            value.push(np.full(len(value), bound))
        return value.stopped_at[:3].tolist(), value.p_value[:3].tolist(), value.bounds(0).tolist()
    if isinstance(value, Criterion) and value.push_takes in ("", Criterion.push_takes):
        if isinstance(value, LookAhead):
            value.begin(forecast(POOL, gp()))
        for bound in BOUNDS * 8:  # 224 of them
            value.push(bound)
        again = value.copy()
        assert again.to_dict() == value.to_dict() == pickle.loads(pickle.dumps(value)).to_dict()
        assert str(value.verdict)
        return value.stopped_at, again.push(3.0), repr(value.history)
    if isinstance(value, Criterion):
        return value.extend([0.5, 0.2]), value.copy().stopped, value.reset().stopped
    if isinstance(value, fastal.Simulation):
        return [snapshot(getattr(value, name)) for name in ("n_labels", "bounds", "errors", "eta")]
    if isinstance(value, fastal.Run):
        return value.indices.tolist(), value.bounds.tolist(), snapshot(value.errors)
    if isinstance(value, RunsDistribution):
        return value.mean(), value.support(), value.pmf(value.support()[0])
    if isinstance(value, Problem) and len(value.y) == len(Y):
        return snapshot(campaigns(value, 2).result.n_labels)
    return snapshot(str(value) if isinstance(value, fastal.Comparison | Table1) else value)


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
            if name == "Stopper.observe":
                owner = Stopper(gp=process())
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
    for value in ("yes", 1, None, 0.0, [True], 2**64):
        outcome, what = attempt(name, argument, value)
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
    if (name, argument) in IGNORED:
        return
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
        (lambda: Criterion.from_dict(FixedBudget(5).to_dict() | {"seen": 2**62}).history, MemoryError, "the history of 4611686018427387904 bounds needs"),
        # indices: unsigned ones do not wrap, those beyond 64 bits are compared as they are
        (lambda: forecast(POOL, gp(), labelled=np.array([2**64 - 1], dtype=np.uint64)), ValueError, r"`labelled` must hold indices in \[0, 8\), got 18446744073709551615"),
        (lambda: forecast(POOL, gp(), labelled=[0, HUGE]), ValueError, r"`labelled` must hold indices in \[0, 8\), got 10{10,60}\.\.\."),
        (lambda: forecast(POOL, gp(), labelled=[2**63, -1]), ValueError, r"`labelled` must hold indices in \[0, 8\), got 9223372036854775808"),
        (lambda: forecast(POOL, gp(), labelled=[0, True]), TypeError, r"`labelled` must be indices, got \[0, True\]"),
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
        "np.int64(9223372036854775807): made 0x1: not what 9223372036854775807 gives, 0x3",
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


# Saved states ------------------------------------------------------------------------------------


def numbers_in(state, path=()):
    """Yield path and value of the numbers in a state."""
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        if isinstance(value, dict | list):
            yield from numbers_in(value, (*path, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key), value


def replaced(state, path, value):
    *way, last = path
    holder = state
    for key in way:
        holder = holder[key]
    holder[last] = value
    return state


def used(made):
    """Go on with what was read, and read again what comes of it."""
    if isinstance(made, ActiveLearner):
        while made.n_labels < made.max_labels:
            made.ask()
            made.tell(1.0)
        return ActiveLearner.from_dict(made.to_dict(), POOL).n_labels
    if isinstance(made, GaussianProcess | LaplaceClassifier):
        made.add(POOL[5], 1.0)
        return made.copy().predict(POOL)
    if isinstance(made, Forecast):
        return made.labels_for(0.1), made.labels_at_price(0.1), str(made), made.bought_by(1)
    if isinstance(made, Stopper) and made.gp is not None:
        made.observe(POOL[5], 1.0)
    if isinstance(made, StabilizingPredictions):
        made.update([0, 1, 0])
    for bound in BOUNDS * 8:  # 224 of them
        made.push(min(bound, 1.0))
    assert str(made.verdict)
    return type(made).from_dict(json.loads(json.dumps(made.to_dict()))).stopped_at


@pytest.mark.parametrize("name", MAKERS)
def test_saved_states(name):
    read, found = reader(name), []
    for path, old in list(numbers_in(good_state(name))):
        # Of a list of numbers one stands for all.
        if isinstance(path[-1], int) and path[-1] > 0:
            continue
        for value in ALL if isinstance(old, int) else (HUGE, -HUGE, 2**63, 10**5000):
            state = replaced(good_state(name), path, value)
            before, said = snapshot(state), f"{path} = {check.short_repr(value)}"
            keys = [part for part in path if isinstance(part, str)]
            with warnings.catch_warnings(), guarded():
                warnings.simplefilter("ignore", UserWarning)  # a label far from the prior mean
                try:
                    used(read(state))
                except ValueError as error:
                    named = any(key in str(error) for key in keys) or isinstance(old, float)
                    if not named or len(str(error)) > 400:
                        found.append(f"{said}: ValueError without the key: {str(error)[:400]}")
                except Exception as error:
                    found.append(f"{said}: {type(error).__name__}: {error}")
            if snapshot(state) != before:
                found.append(f"{said}: the state was changed")
    assert found == []


def test_integers_of_states_are_found():
    found = {path for path, old in numbers_in(good_state("ActiveLearner")) if isinstance(old, int)}
    assert {("version",), ("n_initial",), ("order", 0), ("stopper", "patience")} <= found


# The command line --------------------------------------------------------------------------------

TEXTS = (
    *(str(value) for value in INTEGERS if abs(value) <= HUGE), "9" * 5000, "0", "True", "False",
    "1.5", "1e3", "0x7", "1_000", " 7", "\u0663", "", "+7",
)  # fmt: skip
TABLE = "x,second,y\n" + "".join(f"{i},{i * i % 7},{i % 5}.5\n" for i in range(20))
PARTLY = "x,second,y\n" + "".join(f"{i},{i * i % 7},{'' if i > 15 else i % 5}\n" for i in range(20))

# Small and cheap, for each command; an option that is tried replaces its value here.
COMMANDS = {
    "demo": ["--labels=5", "--quiet"],
    "run": ["table.csv", "--target=y", "--noise=0.1", "--max-labels=5", "--quiet"],
    "forecast": ["partly.csv", "--target=y", "--lengthscale=1", "--noise=0.1"],
    "simulate": ["table.csv", "--target=y", "--runs=2", "--pool-size=5", "--jobs=1"],
    "compare": ["table.csv", "--target=y", "--runs=2", "--pool-size=5", "--jobs=1", "--quiet"],
    "reproduce table1": ["--runs=2", "--jobs=1", "--datasets=artificial", "--criteria=proposed"],
    "reproduce figure1": ["--runs=2", "--jobs=1", "--datasets=artificial", "--criteria=proposed"],
    "reproduce tightness": ["--runs=2", "--jobs=1"],
    "reproduce lookahead": ["--runs=2", "--jobs=1", "--datasets=artificial"],
    "watch": ["bounds.txt", "--sequential", "--horizon=50"],
    "runs": ["bounds.txt"],
}
# Pictures take long: these are as good as all.
SLOW_COMMANDS = {"reproduce figure1", "reproduce tightness"}
FEW_TEXTS = ("2147483648", "4611686018427387904", "-1", "True")
# Options of columns, which may be numbers.
COLUMNS = ("--target", "--features", "--labelled")
# --horizon needs --sequential, and that no --window.
NOT_BOTH = {"--window": ("--sequential", "--horizon")}


def takes_integer(action):
    if any(name in COLUMNS for name in action.option_strings):
        return True
    for text in ("1", "2", "7") if action.type else ():
        try:
            return type(action.type(text)) is int
        except argparse.ArgumentTypeError:
            continue
    return False


def options(parser, path=()):
    """Yield command and option of all that take an integer."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from options(inner, (*path, name))
        elif takes_integer(action):
            yield " ".join(path), action.option_strings[0]


OPTIONS = list(options(build_parser()))


def test_options_are_found():
    assert {("demo", "--seed"), ("watch", "--window"), ("reproduce table1", "--jobs"),
            ("run", "--target"), ("forecast", "--next")} <= set(OPTIONS)  # fmt: skip
    assert ("watch", "--alpha") not in OPTIONS


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_options(command, option, tmp_path, monkeypatch, capfd):
    if command not in COMMANDS:
        pytest.fail(f"add {command!r} to COMMANDS in {__file__}: how to run it, small and cheap")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "partly.csv").write_text(PARTLY)
    (tmp_path / "bounds.txt").write_text("\n".join(map(str, BOUNDS)))
    left_out = (option, *NOT_BOTH.get(option, ()))
    rest = [part for part in COMMANDS[command] if part.partition("=")[0] not in left_out]
    found = []
    for text in FEW_TEXTS if command in SLOW_COMMANDS else TEXTS:
        with small_paper(), guarded():
            status = main([*command.split(), *rest, f"{option}={text}"])
        err = capfd.readouterr().err
        if status == 2:
            named = option in err or (option in COLUMNS and "column" in err)
            if not (err.startswith("fastal: ") and err.count("\n") == 1 and named):
                found.append(f"{text[:40]!r}: {err[:400]}")
        elif status not in (0, 3):
            found.append(f"{text[:40]!r}: status {status}, {err[:400]}")
    assert found == []
