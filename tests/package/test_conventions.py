"""What people expect of an object: scikit-learn's conventions, a repr to paste, columns, no prints."""

import ast
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fastal
from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    gp_bounds,
    learn,
    runs_test,
    simulate,
    stopping_time,
)
from fastal.criteria import (
    ClassificationChange,
    ConfidenceDrop,
    ConfidenceGradient,
    CrossValidation,
    DeltaFScore,
    ErrorStability,
    GroundTruth,
    MaxUncertainty,
    MaxVariance,
    OverallUncertainty,
    PACBayes,
    StabilizingPredictions,
)
from fastal.models import LaplaceClassifier
from fastal.runs import RunsDistribution
from fastal.stopping import Combination
from fastal.stopping.criterion import Criterion, settings_of

PACKAGE = Path(fastal.__file__).parent

MODELS = [
    GaussianProcess(),
    GaussianProcess([1, 2.5], np.float32(0.1), amplitude=3, mean=-1, kernel="matern32"),
    LaplaceClassifier(1 / 3, amplitude=2, link="probit", kappa=0.1),
]
CRITERIA = [
    Stopper(),
    Stopper(np.float64(0.1) / 3, method="exact", fall=False),
    Stopper(0.01, sequential=True, horizon=np.int64(90)),
    MovementBelow(0.1, horizon=50),
    FixedBudget(np.int64(9)),
    MinLabels(3),
    CrossValidation(0.1, 4),
    GroundTruth(None, None, 0.3),
    GroundTruth([[1.0], [2.0]], [1, 2], 0.3),
    MaxVariance(0.01),
    PACBayes(0.1, 1.0),
    StabilizingPredictions(),
    ClassificationChange(),
    DeltaFScore(every=1),
    MaxUncertainty(0.2),
    OverallUncertainty(0.2),
    ErrorStability(0.1),
    ConfidenceDrop(2),
    ConfidenceGradient(0.02, 2),
    (Stopper(0.01) & MinLabels(30)) | FixedBudget(200) | MovementBelow(horizon=90),
]
ALL = [*MODELS, *CRITERIA]
ROOMS = (fastal, fastal.criteria, fastal.models, fastal.runs)
NAMES = {name: getattr(room, name) for room in ROOMS for name in room.__all__ if name[0].isupper()}


def same(a, b):
    """Compare settings: numbers, arrays, and objects by their own settings."""
    if isinstance(a, Combination):
        return type(a) is type(b) and same(a.members, b.members)
    if isinstance(a, Criterion):
        return type(a) is type(b) and same(settings_of(a), settings_of(b))
    if hasattr(a, "get_params"):
        return type(a) is type(b) and same(a.get_params(), b.get_params())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b)


def test_every_criterion_and_model_is_here():
    public = {n for n, c in NAMES.items() if isinstance(c, type) and issubclass(c, Criterion)}
    here = {type(criterion).__name__ for criterion in CRITERIA}
    assert public - here == {"Criterion"}


@pytest.mark.parametrize("thing", ALL, ids=lambda thing: repr(thing)[:40])
def test_a_repr_can_be_pasted(thing):
    again = eval(repr(thing), dict(NAMES))
    assert same(again, thing)
    assert repr(again) == repr(thing)
    assert same(eval(f"[{thing!r}]", dict(NAMES))[0], thing)


def test_a_repr_is_not_longer_than_anyone_would_paste():
    text = repr(GroundTruth(np.zeros((500, 1)), np.zeros(500), 0.1))
    assert text == (
        "GroundTruth(X_test=<array of 500 rows>, y_test=<array of 500 rows>, threshold=0.1)"
    )
    gp = GaussianProcess()
    gp.add(0.0, 1.0)
    assert str(gp) == f"{gp!r} with 1 labels"
    assert eval(repr(RunsDistribution(3, 4)), dict(NAMES)) == RunsDistribution(3, 4)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:40])
def test_clone(model):
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    twin = base.clone(model)
    assert type(twin) is type(model)
    assert twin is not model
    assert same(twin, model)


def test_a_clone_has_seen_nothing():
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    gp = GaussianProcess(2.0)
    gp.add(0.0, 1.0)
    assert base.clone(gp).n_labels == 0
    assert gp.n_labels == 1
    assert base.clone([gp])[0].n_labels == 0


def test_parameters_of_a_model():
    gp = GaussianProcess([1.0, 2.0])
    assert gp.set_params(noise=0.5, kernel="matern12") is gp
    assert (gp.noise, gp.kernel) == (0.5, "matern12")
    twin = GaussianProcess([1.0, 2.0], 0.5, kernel="matern12")
    assert gp.add([0.1, 0.2], 1.0) == twin.add([0.1, 0.2], 1.0)
    before = gp.to_dict()
    with pytest.raises(ValueError, match=r"must not change while there are labels, got 1 .*rewind"):
        gp.set_params(noise=0.1)
    with pytest.raises(ValueError, match=r"`params` must be one of 'lengthscale', .*, got 'scale'"):
        gp.set_params(scale=1.0)
    assert gp.to_dict() == before
    gp.rewind(0)
    with pytest.raises(ValueError, match="`noise` must be positive, got -1"):
        gp.set_params(amplitude=5.0, noise=-1.0)
    assert (gp.noise, gp.amplitude) == (0.5, 1.0)
    model = LaplaceClassifier().set_params(link="probit", lengthscale=2)
    assert repr(model) == repr(LaplaceClassifier(2, link="probit"))
    other = LaplaceClassifier(2, link="probit")
    assert [model.add(x, 1) for x in (0.0, 1.0)] == [other.add(x, 1) for x in (0.0, 1.0)]
    assert model.set_params() is model


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda thing: repr(thing)[:40])
def test_settings_are_attributes_that_cannot_be_set(criterion):
    if isinstance(criterion, Combination):
        assert same(criterion.replace(), criterion)
        return
    settings = settings_of(criterion)
    assert same(criterion.replace(**settings), criterion)
    for name, value in settings.items():
        with pytest.raises(AttributeError, match=f"`{name}` cannot be set: `replace"):
            setattr(criterion, name, value)


# Columns -----------------------------------------------------------------------------------------

Y = np.round(np.random.default_rng(0).standard_normal(30), 3)
DAYS = pd.date_range("2026-01-01", periods=30)


def columns():
    """Return the same numbers in what people keep them in."""
    yield "list", Y.tolist()
    yield "series", pd.Series(Y, index=DAYS)
    yield "frame", pd.DataFrame({"y": Y})
    yield "dated frame", pd.DataFrame({"y": Y}, index=DAYS)
    yield "nullable", pd.Series(Y, dtype="Float64")


def arrow_columns(module):
    if module == "polars":
        pl = pytest.importorskip("polars", reason="polars is not installed")
        return [pl.Series("y", Y), pl.DataFrame({"y": Y})]
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return [pa.array(Y), pa.chunked_array([Y[:9], Y[9:]]), pa.table({"y": Y})]


def check_column(column):
    assert runs_test(column) == runs_test(Y)
    assert stopping_time(column) == stopping_time(Y)
    stopper = Stopper()
    stopper.extend(column)
    np.testing.assert_array_equal(stopper.bounds, Y)
    gp = GaussianProcess()
    twin = GaussianProcess()
    x = np.linspace(0, 3, 30)
    np.testing.assert_array_equal(gp.add_batch(x, column), twin.add_batch(x, Y))
    np.testing.assert_array_equal(gp.predict(column), twin.predict(Y))
    run = learn(column, column, gp=GaussianProcess(), criterion=Stopper(), seed=0, max_labels=9)
    assert run.indices.tolist() == learn(
        Y, Y, gp=GaussianProcess(), criterion=Stopper(), seed=0, max_labels=9
    ).indices.tolist()  # fmt: skip
    rule, budget, error = Stopper() & MinLabels(5), FixedBudget(7), CrossValidation(-1.0)
    for criterion in (rule, budget, error):
        criterion.extend(column)
    np.testing.assert_array_equal(rule.bounds, Y)
    assert budget.stopped_at == 7
    np.testing.assert_array_equal(error.history, Y)
    learner = ActiveLearner(x, gp=GaussianProcess(), criterion=Stopper(), seed=0)
    asked = learner.ask(30)
    learner.tell(column)
    twin = GaussianProcess()
    np.testing.assert_allclose(learner.bounds, twin.add_batch(x[asked], Y)[1:], rtol=1e-9)
    K = np.exp(-0.5 * (x[:, None] - x) ** 2)
    np.testing.assert_array_equal(gp_bounds(K, column, 0.1), gp_bounds(K, Y, 0.1))
    settings = {"gp": GaussianProcess(), "n_runs": 2, "pool_size": 12, "seed": 0, "n_jobs": 1}
    np.testing.assert_array_equal(
        simulate(column, column, **settings).rmse, simulate(Y, Y, **settings).rmse
    )


@pytest.mark.parametrize(
    "criterion", [FixedBudget(7), CrossValidation(0.1), Stopper() | MinLabels(3)]
)
def test_tables_are_no_sequence_of_numbers(criterion):
    with pytest.raises(ValueError, match=r"`values` must have one axis, got shape \(30, 2\)"):
        criterion.extend(pd.DataFrame({"a": Y, "b": Y}))
    members = getattr(criterion, "members", [criterion])
    assert all(len(member) == 0 for member in members)


@pytest.mark.parametrize(("name", "column"), list(columns()))
def test_columns(name, column):
    check_column(column)


@pytest.mark.parametrize("module", ["polars", "pyarrow"])
def test_columns_of_polars_and_arrow(module):
    for column in arrow_columns(module):
        check_column(column)


def test_frames_of_several_columns_are_inputs():
    X = pd.DataFrame({"a": Y, "b": Y**2}, index=DAYS)
    gp, twin = GaussianProcess(), GaussianProcess()
    assert gp.add_batch(X, pd.Series(Y, index=DAYS)).tolist() == (
        twin.add_batch(X.to_numpy(), Y).tolist()
    )
    assert runs_test(X, axis=0).n_runs.tolist() == [runs_test(X[c]).n_runs for c in X]
    with pytest.raises(ValueError, match=r"`y` must be one-dimensional, got shape \(30, 2\)"):
        GaussianProcess().add_batch(Y, X)
    with pytest.raises(TypeError, match="must hold real numbers, got dtype"):
        runs_test(pd.DataFrame({"day": DAYS}))


# Prints and messages -----------------------------------------------------------------------------

# The command line, and a function whose work it is.
PRINTING = {"_versions.py"}


def prints(text):
    """Return the lines of a module that print."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    ]


def test_the_library_prints_nothing():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("cli/") or name in PRINTING:
            continue
        if lines := prints(path.read_text(encoding="utf-8")):
            found[name] = lines
    for path in PACKAGE.rglob("*.pyx"):
        if "print(" in path.read_text(encoding="utf-8"):
            found[path.name] = []
    assert found == {}
    assert prints("def f():\n    print(1)\n    sys.stdout.write('')") == [2, 3]  # it can fail


def test_messages_go_to_the_logger(caplog, capsys):
    with caplog.at_level(logging.DEBUG, logger="fastal"):
        run = learn(Y, Y, criterion=MovementBelow(), seed=0, max_labels=12)
    texts = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert ("INFO", f"12 of 30 labels; {run.verdict}") in texts
    fits = [text for level, text in texts if level == "DEBUG"]
    assert len(fits) == len(run.refits)
    assert fits[0].startswith("fit 1, to 5 labels: GaussianProcess(lengthscale=")
    assert {record.name for record in caplog.records} == {"fastal"}
    assert capsys.readouterr() == ("", "")
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("fastal").handlers)
