"""Criteria of fastal in the loops of other libraries."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from fastal import GaussianProcess, MovementBelow, Stopper
from fastal.adapters.loops import ax, bofire, emukit, optuna, skopt, small_text
from fastal.criteria import StabilizingPredictions

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF


def result(X, y, fitted):
    """What scikit-optimize gives a callback."""
    models = []
    if fitted:
        kernel = RBF(0.9)
        models = [
            GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(X[:fitted], y[:fitted])
        ]
    return SimpleNamespace(models=models, x_iters=X.tolist(), func_vals=y)


def test_the_callback_of_scikit_optimize(loop):
    X, y, _ = loop
    rule = Stopper()
    stop = skopt.callback(rule, initial=5)
    assert stop(result(X[:4], y[:4], 0)) is False
    assert len(rule) == 0
    assert stop(result(X[:20], y[:20], 20)) is False
    assert len(rule) == 15
    with pytest.raises(ValueError, match=r"\(scikit-optimize\) has 21 labels, and its model has"):
        stop(result(X[:21], y[:21], 20))
    own = GaussianProcess(0.9, 0.01)
    own.add_batch(X[:20], y[:20])
    np.testing.assert_allclose(rule.bounds, own.bounds()[5:], rtol=1e-8)
    with pytest.raises(ValueError, match="`initial` must be at least 0, got -1"):
        skopt.callback(rule, initial=-1)


class Study:
    stopped = False

    def stop(self):
        self.stopped = True


def trial(x, z, value, state="COMPLETE"):
    return SimpleNamespace(params={"x": x, "z": z}, value=value, state=SimpleNamespace(name=state))


def test_the_callback_of_optuna(loop):
    X, y, _ = loop
    rule, study = Stopper(), Study()
    stop = optuna.callback(rule, GaussianProcess(0.9, 0.01), ["x", "z"])
    stop(study, trial(0.0, 0.0, None, "FAIL"))
    stop(study, trial(0.0, 0.0, 1.0, "PRUNED"))
    assert len(rule) == 0
    own, gp = Stopper(), GaussianProcess(0.9, 0.01)
    for (x, z), value in zip(X, y, strict=True):
        stop(study, trial(x, z, value))
        assert study.stopped is own.push(gp.add([x, z], value))
        if study.stopped:
            break
    assert study.stopped
    with pytest.raises(ValueError, match=r"must be parameters of the trial, \['x', 'z'\], got 'q'"):
        optuna.callback(rule, gp, ["q"])(study, trial(0.0, 0.0, 1.0))


def test_the_criterion_of_small_text():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = pytest.importorskip("small_text", reason="small-text is not installed")
    rule = small_text.stopping_criterion(StabilizingPredictions(cutoff=0.99, window=2))
    assert isinstance(rule, base.stopping_criteria.StoppingCriterion)
    rng, own = np.random.default_rng(0), StabilizingPredictions(cutoff=0.99, window=2)
    for size in (20, 20, 0, 0, 0):
        predictions = np.arange(50) % 3
        predictions[:size] = rng.integers(0, 3, size)
        own.update(predictions)
        assert rule.stop(predictions=predictions) is own.stopped
    assert own.stopped
    with pytest.raises(ValueError, match=r"`predictions` must be given to stop\(\), got None"):
        rule.stop(proba=np.ones((50, 3)) / 3)
    with pytest.raises(TypeError, match="`proba` must be True or False, got 1"):
        small_text.stopping_criterion(own, proba=1)


def test_the_condition_of_emukit(loop):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("emukit", reason="Emukit is not installed")
        from emukit.core.loop import StoppingCondition
    X, y, _ = loop
    within = GaussianProcessRegressor(RBF(0.9), alpha=0.01, optimizer=None).fit(X[:20], y[:20])
    wrapper = type("Wrapper", (), {"__module__": "emukit.model_wrappers"})()
    wrapper.model, wrapper.X = within, X[:20]
    rule = MovementBelow(0.05, horizon=100)
    stop = emukit.stopping_condition(rule, wrapper, initial=5)
    assert isinstance(stop, StoppingCondition)
    assert stop.should_stop(None) is False
    assert len(rule) == 15
    wrapper.X = X[:5]
    rule.reset()
    assert stop.should_stop(None) is False
    assert len(rule) == 0


@pytest.mark.parametrize(
    "bad",
    [None, StabilizingPredictions(), Stopper() | StabilizingPredictions(), Stopper, "Stopper()"],
)
def test_what_a_loop_cannot_use_is_refused_when_it_is_made(bad):
    """And not when the first labels are there; no library is needed for it."""
    for make in (
        skopt.callback,
        bofire.condition,
        lambda rule: emukit.stopping_condition(rule, None),
        lambda rule: optuna.callback(rule, GaussianProcess(), ["x"]),
        lambda rule: ax.global_stopping_strategy(rule, None),
    ):
        with pytest.raises(
            TypeError, match=r"`criterion` must be a Stopper, a MovementBelow or another"
        ):
            make(bad)
    with pytest.raises(TypeError, match="`gp` must be a GaussianProcess, got None"):
        optuna.callback(Stopper(), None, ["x"])
    if bad is None or bad is Stopper or isinstance(bad, str):
        with pytest.raises(TypeError, match="`criterion` must be StabilizingPredictions or one"):
            small_text.stopping_criterion(bad)


def test_names_of_parameters_for_optuna():
    rule, gp = Stopper(), GaussianProcess(0.9, 0.01)
    with pytest.raises(
        TypeError, match=r"`names` must be a list of names, got 'xz': give \['xz'\]"
    ):
        optuna.callback(rule, gp, "xz")
    with pytest.raises(TypeError, match="`z` must be a real number, got 'adam'"):
        optuna.callback(rule, gp, ["x", "z"])(Study(), trial(0.0, "adam", 1.0))
    assert len(rule) == 0


def test_nothing_of_a_library_is_imported_before_it_is_needed():
    import subprocess
    import sys

    code = (
        "import sys, fastal.adapters.loops.ax, fastal.adapters.loops.bofire,"
        "fastal.adapters.loops.emukit, fastal.adapters.loops.small_text;"
        "print([m for m in ('ax', 'bofire', 'emukit', 'small_text') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"
