"""Adapters without their libraries: small objects that have what the libraries have.

The real libraries are run by `.ci/run --clients`; here is what can be said without them.
"""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fastal import GaussianProcess, Stopper, gp_bounds
from fastal.adapters import bounds_of

T = 20
NOISE = np.linspace(0.01, 0.2, T)


def stand_in(package, name="Model", **values):
    """An object whose class says that it comes from a package."""
    found = type(name, (), {"__module__": f"{package}.inner"})()
    vars(found).update(values)
    return found


def rbf(A, B):
    return 1.5 * np.exp(-0.5 * ((A[:, None, :] - B[None]) ** 2).sum(-1) / 0.9**2)


@pytest.fixture
def own(loop):
    """Bounds of fastal's own process on the same labels."""
    X, y, _ = loop
    gp = GaussianProcess(0.9, 0.01, amplitude=1.5, mean=2.5)
    return X[: T + 2], 3 + y[: T + 2], gp.add_batch(X[:T], 3 + y[:T], NOISE)


# Optimisers around scikit-learn's process


def regressor(X, y):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    return GaussianProcessRegressor(1.5 * RBF(0.9), alpha=0.01, optimizer=None).fit(X, y)


def skopt(X, y, seen):
    space = SimpleNamespace(transform=np.asarray)
    models = [regressor(X[:seen], y[:seen])] if seen else []
    return stand_in("skopt", "Optimizer", models=models, Xi=X.tolist(), yi=list(y), space=space)


def bayes_opt(X, y, seen):
    model = regressor(X[:seen], y[:seen]) if seen else SimpleNamespace()
    space = SimpleNamespace(params=X, target=y)
    return stand_in("bayes_opt", "BayesianOptimization", _gp=model, space=space)


@pytest.mark.parametrize("make", [skopt, bayes_opt])
def test_an_optimiser_is_unwrapped_and_a_label_it_has_not_seen_is_noticed(loop, make):
    X, y, _ = loop
    X, y = X[:T], y[:T]
    model = regressor(X, y)
    np.testing.assert_array_equal(bounds_of(make(X, y, T)), bounds_of(model))
    stopper = Stopper()
    with pytest.raises(ValueError, match="has 20 labels, and its model has seen 19 of them"):
        stopper.after_fit(make(X, y, T - 1))
    with pytest.raises(ValueError, match="has no model yet"):
        stopper.after_fit(make(X, y, 0))
    with pytest.raises(ValueError, match="was fitted to other rows than its labels: to 20 of 19"):
        bounds_of(_shorter(make(X, y, T)))
    assert len(stopper) == 0


def _shorter(optimizer):
    """Take the last label from an optimiser whose model has seen it."""
    if hasattr(optimizer, "yi"):
        optimizer.Xi, optimizer.yi = optimizer.Xi[:-1], optimizer.yi[:-1]
    else:
        space = optimizer.space
        optimizer.space = SimpleNamespace(params=space.params[:-1], target=space.target[:-1])
    return optimizer


# Processes that keep no labels


def george(X):
    kernel = SimpleNamespace(get_value=lambda x: rbf(x, x))
    return stand_in(
        "george",
        "GP",
        kernel=kernel,
        compute=None,
        computed=True,
        solver=SimpleNamespace(),
        _x=X,
        _yerr2=NOISE - 0.004,
        _call_white_noise=lambda x: np.log(np.full(len(x), 0.004)),
        _call_mean=lambda x: np.full(len(x), 2.5),
    )


def tinygp(X, factor=None):
    noise = type("Diagonal", (), {"diagonal": lambda self: NOISE})()
    return stand_in(
        "tinygp",
        "GaussianProcess",
        kernel=rbf,
        noise=noise,
        X=X,
        mean=np.full(T, 2.5),
        solver=SimpleNamespace(scale_tril=factor),
    )


@pytest.mark.parametrize("make", [george, tinygp])
def test_processes_without_labels(own, make):
    X, y, expected = own
    gp = make(X[:T])
    np.testing.assert_allclose(bounds_of(gp, y=y[:T], X=X[:T]), expected, rtol=1e-8)
    with pytest.raises(ValueError, match="keeps no labels: give `y`"):
        bounds_of(gp)


def test_a_factor_that_does_not_agree_is_refused(own):
    X, y, expected = own
    factor = np.linalg.cholesky(rbf(X[:T], X[:T]) + np.diag(NOISE))
    got = bounds_of(tinygp(X[:T], factor), y=y[:T])
    np.testing.assert_allclose(got, expected, rtol=1e-8)
    factor = np.linalg.cholesky(rbf(X[:T], X[:T]) + np.diag(NOISE + 0.001))
    with pytest.raises(ValueError, match="does not agree with its own factor"):
        bounds_of(tinygp(X[:T], factor), y=y[:T])


def test_a_sorted_process_needs_an_order(own):
    X, y, _ = own
    t, labels = X[:T, 0], y[:T]
    rows = np.argsort(t)

    def k(gaps):
        return 1.5 * np.exp(-np.abs(gaps))

    cov = k(t[rows][:, None] - t[rows])
    factor = np.linalg.cholesky(cov + np.diag(NOISE[rows]))
    gp = stand_in(
        "celerite2",
        "GaussianProcess",
        kernel=SimpleNamespace(get_value=k),
        _t=t[rows],
        _diag=NOISE[rows],
        _mean_value=2.5,
        _d=np.diagonal(factor) ** 2,
    )
    with pytest.raises(ValueError, match="`order` must be given"):
        bounds_of(gp, y=labels[rows])
    expected = gp_bounds(k(t[:, None] - t), labels, NOISE, mean=2.5)
    got = bounds_of(gp, y=labels[rows], order=np.argsort(np.argsort(t)))
    np.testing.assert_allclose(got, expected, rtol=1e-8)


def test_a_model_without_a_hash_is_warned_of(loop):
    X, y, _ = loop
    gp = tinygp(X[:T])
    gp.noise = type("Diagonal", (), {"diagonal": lambda self: np.full(T, 1e-7)})()
    type(gp).__hash__ = None
    with pytest.warns(UserWarning, match=r"the noise of `model` \(tinygp\) is about 1e-7 of"):
        bounds_of(gp, y=y[:T])


# Ax and BoFire before there is a model


def test_loops_around_botorch_before_there_is_a_model():
    strategy = SimpleNamespace(adapter=SimpleNamespace(generator=SimpleNamespace()))
    client = stand_in("ax", "Client", generation_strategy=strategy, experiment=SimpleNamespace())
    with pytest.raises(ValueError, match=r"`model` \(Ax\) has no model yet"):
        bounds_of(client)
    with pytest.raises(TypeError, match=r"`model` \(Ax\) must be a Client, got a Experiment"):
        bounds_of(stand_in("ax", "Experiment"))
    two = SimpleNamespace(surrogates=[None, None])
    with pytest.raises(ValueError, match=r"one output is wanted, give `strategy.surrogates"):
        bounds_of(stand_in("bofire", "MoboStrategy", surrogates=two, experiments=[]))
    with pytest.raises(ValueError, match=r"`model` \(BoFire\) has no model yet"):
        bounds_of(stand_in("bofire", "SingleTaskGPSurrogate", model=None))
    with pytest.raises(TypeError, match="must be a surrogate or a strategy"):
        bounds_of(stand_in("bofire", "Domain"))


def test_adapters_import_no_library():
    names = [
        "ax", "bayes_opt", "bofire", "celerite2", "emukit", "george", "gpflow", "gpy", "openturns",
        "smt", "tinygp", "botorch",
    ]  # fmt: skip
    code = (
        f"import importlib, sys; [importlib.import_module('fastal.adapters.' + n) for n in {names}];"
        "print([m for m in ('sklearn', 'torch', 'GPy', 'jax', 'smt', 'ax') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"
