"""How to call every public function and method that takes a count or an index, with valid arguments."""

import contextlib
from functools import cache

import numpy as np
import pytest
from saved_states import POOL, OwnRule, good_state, learner, pushed

import fastal
from fastal import (
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    Streams,
    learn,
    simulate,
)
from fastal.criteria.held_out import LeaveOneOut
from fastal.paper.protocol import Problem, campaigns
from fastal.runs import RunsDistribution

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
    from fastal.paper import bound_gap, new_parameters, protocol

    def problem(name, seed=0):
        return small_problem()._replace(name=name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "ARTIFICIAL_FIT_ROWS", 8)
        for constant in ("CLASSIFIER_FIT_ROWS", "TIGHTNESS_POOL", "TIGHTNESS_TEST"):
            patch.setattr(bound_gap, constant, 8)
        patch.setattr(protocol, "problem", problem)
        # campaigns that fit on the way
        patch.setattr(new_parameters, "ARTIFICIAL_POOL", 8)
        patch.setattr(new_parameters, "load", lambda name: (X[:12], Y[:12]))
        yield


def streams():
    streams = Streams(Stopper() | FixedBudget(90), 3)
    for value in BOUNDS:
        streams.push([value, 1.0, -value])
    return streams


@cache
def foreign_model():
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    return gaussian_process.GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(X[:5], Y[:5])


def with_horizon():
    criterion = MovementBelow()
    criterion.set_horizon(50)
    return pushed(criterion)


def small_learner():
    return learner(gp(), Stopper(), (0.5, -0.2, 0.1))


# What a method is called on; the others are those of the saved states.
OBJECTS = {
    "ActiveLearner": small_learner,
    "AllOf": lambda: pushed(Stopper() & MinLabels(3)),
    "LeaveOneOut": lambda: LeaveOneOut(np.zeros(3), np.ones(3), np.ones(3)),
    "AnyOf": lambda: pushed(OwnRule() | Stopper() | FixedBudget(9)),
    "Campaigns": small_campaign,
    "Criterion": lambda: pushed(FixedBudget(5)),
    "Run": lambda: learn(X, Y, gp=gp(), criterion=FixedBudget(3), seed=0),
    "RunsDistribution": lambda: RunsDistribution(5, 7),
    "Simulation": small_simulation,
    "MovementBelow": with_horizon,
    "Stopper": lambda: pushed(Stopper()),
    "Streams": streams,
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


SEEDS = ("seed", "random_state", "rng")
TEST = (X[:3].tolist(), Y[:3].tolist())
LABELLED = {"X": X, "y": Y}
STOPPER = {"alpha": 0.01, "fall": True, "sequential": False}
STILL = {"share": 0.05, "horizon": 50}
# `horizon` needs sequential=True
MODES = {"horizon": {"sequential": True, "horizon": 50, "alpha": 0.05}}
EXPERIMENT = {"runs": 2, "seed": 0, "jobs": 1, "progress": False}
PAPER = {"few": ("runs", "seed", "jobs"), "within": small_paper}
OF_MODEL = {
    "bounds_or_model": foreign_model, "order": [4, 3, 2, 1, 0], "X": X[:5].tolist(),
    "y": Y[:5].tolist(), "pool": None,
}  # fmt: skip
UPDATE = {"mean": 0.1, "var": 0.5, "y": 0.4, "noise": 0.1}
PAC = {"loss_range": 1.0, "delta": 0.05, "kappa": 0.1}
MODEL = {"lengthscale": [1.0, 2.0], "amplitude": 1.0}
LEARN = {"gp": gp, "criterion": FixedBudget(4), "initial": 2, "max_labels": 6, "seed": 0}

# By "function", "Class", "Class.method", or "method" if all classes have it alike.
CALLS = {
    "push": Call(r=0.5),
    "see": Call(campaign=None, r=0.5),
    "get_params": Call(deep=True),
    "after_fit": Call(
        bounds_or_model=BOUNDS, pool=X, initial=1, at_edge=False, endless=("initial",),
        modes={"order": OF_MODEL, "X": OF_MODEL, "y": OF_MODEL},
        called={"bounds_or_model": "(?:bounds_or_)?model"},
    ),
    "set_horizon": Call(n=30, endless=("n",)),
    "extend": Call({"values": [0.5, 0.25]}),
    # models
    "GaussianProcess": Call(MODEL, noise=0.1, mean=0.0),
    "GaussianProcess.add": Call(x=[0.1, 0.2], y=0.5, noise=0.1),
    "GaussianProcess.add_batch": Call(X=[[0.1, 0.2], [0.3, 0.4]], y=[0.5, 0.1], noise=[0.1, 0.2]),
    "GaussianProcess.fit_hyperparameters": Call(
        LABELLED, amplitude=False, ard=False, mean=False, restarts=1, seed=0,
        bounds={"noise": (0.01, 1.0)}, prior=None, few=("restarts", "seed"),
    ),
    "GaussianProcess.copy": Call(quiet=True),
    "GaussianProcess.predict": Call(X=[[0.1, 0.2]], return_var=True, return_cov=False),
    "GaussianProcess.prior_kl": Call(jitter=0.1),
    "GaussianProcess.rewind": Call(n=2),
    "LaplaceClassifier": Call(MODEL, kappa=0.1),
    "LaplaceClassifier.add": Call(x=[0.1, 0.2], y=1),
    "LaplaceClassifier.add_batch": Call(X=[[0.1, 0.2], [0.3, 0.4]], y=[1, -1]),
    "LaplaceClassifier.averaged_probabilities": Call(mean=[0.1, 0.2], var=[0.3, 0.4]),
    "LaplaceClassifier.expected_loss": Call(X=[[0.1, 0.2], [0.3, 0.4]], y=[1, -1]),
    "LaplaceClassifier.latent": Call(X=[[0.1, 0.2]], return_var=True, return_cov=False),
    "LaplaceClassifier.predict": Call(X=[[0.1, 0.2]]),
    "LaplaceClassifier.predict_proba": Call(X=[[0.1, 0.2]]),
    "LaplaceClassifier.posterior_scaled": Call(scaled=[[0.1], [0.2]]),
    "LaplaceClassifier.replay_errors": Call(X=[[0.1, 0.2], [0.3, 0.4]], y=[1, -1]),
    "LaplaceClassifier.rewind": Call(n=2),
    # stoppers
    "MovementBelow": Call(STILL),
    "movement_left": Call(bounds=BOUNDS, horizon=50, endless=("horizon",)),
    "Stopper": Call(STOPPER, modes=MODES),
    "Streams": Call(criterion=Stopper, n=3, endless=("n",)),
    "Streams.bounds": Call(i=1),
    "Streams.push": Call({"values": [1.0, 2.0, 3.0], "where": [True, True, False]}),
    "Streams.reset": Call(where=[True, False, True]),
    "stop_warnings": Call(bounds=BOUNDS),
    "stopping_time": Call(STOPPER, modes=MODES, bounds=[BOUNDS] * 9, threads=1),
    # runs
    "RunsDistribution": Call(n_below=5, n_above=7, endless=("n_below", "n_above")),
    **{f"RunsDistribution.{name}": Call(u=5) for name in
       ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")},
    "RunsDistribution.isf": Call(q=[0.5]),
    "RunsDistribution.ppf": Call(q=[0.5]),
    "RunsDistribution.rvs": Call(
        size=3, random_state=0, modes={"rng": {"rng": 0, "random_state": None}}
    ),
    "choose_method": Call(n_below=5, n_above=7, endless=("n_below", "n_above")),
    "runs_test": Call(
        x=[BOUNDS, BOUNDS], cutoff=5.0, axis=1
    ),
    "look_level": Call(alpha=0.05, horizon=50, fall=False),
    "false_stop_probability": Call(alpha=0.05, horizon=50, sequential=False, fall=False),
    # bounds
    "alquier_bound": Call(risk=0.1, kl=1.0, n=10, loss_range=1.0, delta=0.05, endless="n"),
    "bound_constant": Call(a=0.0, b=1.0),
    "gaussian_kl": Call(mean0=[0.0], cov0=[[1.0]], mean1=[1.0], cov1=[[2.0]], jitter=0.1),
    "gp_kl": Call(UPDATE),
    "gp_bounds": Call(cov=[[1.0]], y=[0.5], noise=[0.1], mean=0.0),
    "gp_prior_kl": Call(cov=[[1.0]], y=[0.5], noise=[0.1], mean=0.0, jitter=0.1),
    "mcallester_bound": Call(risk=0.1, kl=1.0, n=10, delta=0.05, endless="n"),
    "bounds_of": Call(
        model=foreign_model, initial=1, order=[4, 3, 2, 1, 0], X=X[:5].tolist(), y=Y[:5].tolist(),
        endless=("initial",),
    ),
    # criteria
    "CrossValidation": Call(threshold=0.1, folds=3),
    "ErrorStability": Call(threshold=0.1),
    "ErrorStability.update": Call(kl=[0.5]),
    "FixedBudget": Call(n=5),
    "GroundTruth": Call(X_test=X, y_test=Y, threshold=0.1),
    "ConfidenceDrop": Call(rounds=2, every=5),
    "ConfidenceDrop.update": Call(probabilities=PROBABILITIES),
    "ConfidenceGradient": Call(threshold=0.1, window=2, every=5),
    "ConfidenceGradient.update": Call(probabilities=PROBABILITIES),
    "confidences": Call(p=PROBABILITIES),
    "MaxUncertainty": Call(threshold=0.1, every=5),
    "MaxUncertainty.update": Call(probabilities=PROBABILITIES),
    "MaxVariance": Call(threshold=0.1),
    "MaxVariance.update": Call(var=[0.5, 0.1]),
    "MinLabels": Call(n=5),
    "OverallUncertainty": Call(threshold=0.1, every=5),
    "OverallUncertainty.update": Call(probabilities=PROBABILITIES),
    "PACBayes": Call(PAC, threshold=0.1),
    "StabilizingPredictions": Call(cutoff=0.9, window=2, every=5),
    "StabilizingPredictions.update": Call(predictions=[0, 1, 1]),
    "ClassificationChange": Call(every=5),
    "ClassificationChange.update": Call(predictions=[0, 1, 1]),
    "DeltaFScore": Call(threshold=0.1, window=2, every=5),
    "DeltaFScore.update": Call(predictions=[0, 1, 1]),
    "delta_f": Call(a=[0, 1, 1], b=[0, 1, 0]),
    "share_changed": Call(a=[0, 1, 1], b=[0, 1, 0]),
    "cohen_kappa": Call(a=[0, 1, 1], b=[0, 1, 0]),
    "cross_validation_error": Call(gp=labelled_gp, folds=3),
    "entropies": Call(p=PROBABILITIES),
    "error_gap": Call(kl=[0.5]),
    "expected_loss": Call(LABELLED, gp=labelled_gp),
    "expected_losses": Call(LABELLED, gp=gp, X_test=X, y_test=Y),
    "first_crossing": Call(history=[0.5, 0.1], threshold=0.2, rises=False),
    "max_variances": Call(gp=gp, X=X, order=[0, 1]),
    "pac_bayes_bound": Call(PAC, gp=labelled_gp),
    "pac_bayes_bounds": Call(PAC | LABELLED, gp=gp),
    # learning
    "ActiveLearner": Call(LEARN, X=X, refit=1.5, known=([0, 1], [0.5, -0.2])),
    "ActiveLearner.ask": Call(n=1),
    "ActiveLearner.correct": Call(index=lambda: int(small_learner().run().indices[0]), y=0.5),
    "ActiveLearner.extend_pool": Call(X_new=[[0.1, 0.2]]),
    "ActiveLearner.from_dict": Call(state=lambda: good_state("ActiveLearner"), X=POOL),
    "ActiveLearner.run": Call(test=([[0.1, 0.2]], [0.5]), threads=1),
    "ActiveLearner.tell": Call(y=0.5, index=lambda: int(small_learner().pending[0]), noise=0.1),
    "Run.resume": Call(labels=Y, max_labels=6, test=TEST, threads=1, called={"labels": "y"}),
    "learn": Call(
        LEARN, X=X, y_or_oracle=Y, test=TEST, threads=1, progress=False, refit=1.5,
        called={"y_or_oracle": "y"},
    ),
    "next_refit": Call(t=8, growth=1.5, endless=("t",)),
    # simulations and experiments
    "Campaigns.stops": Call(criterion="max_variance", threshold=0.1),
    "Problem": Call(name="data", X=X, y=Y, pool_size=5, gp=gp),
    "Simulation.history": Call(j=0),
    "Simulation.pool": Call(run=1),
    "artificial": Call(n=5, noise=0.1, seed=0, endless="n"),
    "artificial_mean": Call(x=[0.5]),
    "campaigns": Call(
        EXPERIMENT, problem=small_problem(), others=True, few=("runs", "seed", "jobs")
    ),
    "fit": Call(X=X[:8], y=Y[:8], rows=5, seed=0, few=("rows", "seed")),
    "outcomes": Call(EXPERIMENT, datasets=["artificial"], criteria=["proposed"], **PAPER),
    "problem": Call(name="artificial", seed=0, few=("seed",), within=small_paper),
    "sign_of_sine": Call(n=5, rng=lambda: np.random.default_rng(0), endless="n"),
    "simulate": Call(
        LABELLED, gp=gp, n_runs=3, pool_size=5, initial=2, max_labels=4, test=TEST, seed=0,
        n_jobs=1, progress=False, refit=1.5, few=("n_runs", "seed", "n_jobs"),
        endless=("n_runs",),
    ),
    "LeaveOneOut.share_within": Call(deviations=1.0),
    "table1": Call(EXPERIMENT, datasets=["artificial"], criteria=["proposed"], **PAPER),
    "tightness": Call(EXPERIMENT, tasks=("regression", "classification"), **PAPER),
    "two_ways": Call(EXPERIMENT, datasets=["artificial"], **PAPER),
}  # fmt: skip


def call_of(name, argument):
    home, _, method = name.partition(".")
    call = CALLS.get(name) or CALLS.get(home if method == "replace" else method)
    if call is None:
        pytest.fail(f"add {name!r} to CALLS in {__file__}: how to call it, small and cheap")
    if argument not in call.arguments(argument):
        pytest.fail(f"add a valid `{argument}` to CALLS[{name!r}] in {__file__}")
    return call


def snapshot(value):
    """Return something that differs if the value has changed."""
    if isinstance(value, Streams):
        return repr((value.n, value.stopped_at, value.left, list(map(value.bounds, range(3)))))
    if isinstance(value, fastal.learning.Run):
        return snapshot([value.to_dict(), value._learner.to_dict(), value._learner.criterion])
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
