import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from fastal import (
    ActiveLearner,
    BayesianLogistic,
    StillToCome,
    Stopper,
    learn,
    reference,
    simulate,
)
from fastal._core import softmax
from fastal.models import logistic


def data(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    F = X @ rng.normal(size=(d, k)) + 0.5 * rng.gumbel(size=(n, k))
    return X, F.argmax(axis=1)


@pytest.mark.parametrize(("d", "k", "prior"), [(2, 3, 4.0), (3, 2, 1.0), (2, 5, 0.3)])
def test_equals_the_twin_after_every_label(d, k, prior):
    X, y = data(8, d, k)
    model, twin = BayesianLogistic(d, k, prior=prior), reference.BayesianLogistic(d, k, prior=prior)
    for x, label in zip(X, y, strict=True):
        # the twin has all k weight vectors, and covariances of k d weights
        assert model.add(x, label) == pytest.approx(twin.add(x, label), abs=1e-9, rel=1e-9)
        mode, _ = twin.posterior()
        np.testing.assert_allclose(model.weights.ravel(), mode, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.weights.sum(axis=0), 0.0, atol=1e-12)
    assert model.log_marginal_likelihood() == pytest.approx(twin.log_marginal_likelihood())


def test_divergence_at_the_inputs_is_that_at_the_weights():
    X, y = data(3, 4, 3)  # fewer inputs than features: the covariances there are regular
    twin = reference.BayesianLogistic(4, 3, prior=2.0)
    for x, label in zip(X[:2], y[:2], strict=True):
        twin.add(x, label)
    before = twin.at_inputs(X)
    r = twin.add(X[2], y[2])
    assert reference.gaussian_kl(*before, *twin.at_inputs(X)) == pytest.approx(r, rel=1e-9)


def test_gradient_and_precision_are_those_of_finite_differences():
    X, y = data(6, 2, 3, seed=3)
    E, rng = softmax.contrasts(3), np.random.default_rng(1)
    V, P, h = rng.normal(size=(2, 2)), np.empty((6, 3)), 1e-5
    labels = y.astype(np.int64)

    def gradient_at(values):
        softmax.evaluate(X, labels, values, E, P)
        return softmax.gradient(X, labels, values, E, P)

    g = gradient_at(V)
    H = np.empty((4, 4))
    softmax.precision(X, P, E, H)
    H = H.copy()
    for i in range(4):
        step = np.zeros(4)
        step[i] = h
        up, down = V + step.reshape(2, 2), V - step.reshape(2, 2)
        rise = softmax.evaluate(X, labels, up, E, P) - softmax.evaluate(X, labels, down, E, P)
        assert rise / (2 * h) == pytest.approx(g.ravel()[i], abs=1e-8)
        slope = (gradient_at(up) - gradient_at(down)).ravel() / (2 * h)
        np.testing.assert_allclose(-slope, H[i], atol=1e-8)
    # and of the twin
    twin = reference.BayesianLogistic(2, 3)
    twin.X, twin.y = list(X), y.tolist()
    W = E @ V
    G, precision = twin.derivatives(W.ravel())
    np.testing.assert_allclose(E.T @ G.reshape(3, 2), g, atol=1e-12)
    lift = np.kron(E, np.eye(2))
    np.testing.assert_allclose(lift.T @ precision @ lift, H, atol=1e-12)


def test_two_classes_are_binary_logistic_regression():
    X, y = data(30, 3, 2, seed=5)
    model = BayesianLogistic(3, 2, prior=0.7)
    model.add_batch(X, y)
    # binary: w ~ N(0, 2 prior), Newton's method
    w, s = np.zeros(3), 1.4
    for _ in range(50):
        p = expit(X @ w)
        H = np.eye(3) / s + (X * (p * (1 - p))[:, None]).T @ X
        w = w + np.linalg.solve(H, X.T @ (y - p) - w / s)
    np.testing.assert_allclose(model.weights[1] - model.weights[0], w, atol=1e-10)
    # averaged over the posterior: 40 deviations of a fine sum
    z = np.linspace(-12, 12, 4801)
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    var = np.einsum("ij,jk,ik->i", X, np.linalg.inv(H), X)
    p = expit((X @ w)[:, None] + np.sqrt(var)[:, None] * z) @ density
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], p, atol=1e-12)


def test_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    X, y = data(60, 3, 4, seed=2)
    model = BayesianLogistic(3, 4, prior=2.0)
    model.add_batch(X, y)
    peer = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.weights, peer.coef_, atol=1e-6)
    assert (model.predict(X) == peer.predict(X)).all()


def test_probabilities_are_near_the_average_over_draws():
    X, y = data(20, 2, 4, seed=4)
    model, twin = BayesianLogistic(2, 4, prior=3.0), reference.BayesianLogistic(2, 4, prior=3.0)
    model.add_batch(X, y)
    twin.X, twin.y = list(X), y.tolist()
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    # measured: 0.02 here, of which 0.003 are the draws'
    assert np.abs(p - twin.predict_proba(X)).max() < 0.04
    empty = BayesianLogistic(2, 4).predict_proba(X)
    np.testing.assert_allclose(empty, 0.25, atol=1e-14)


def test_many_weights_by_updates(monkeypatch):
    X, y = data(60, 6, 5, seed=1)
    exact = BayesianLogistic(6, 5)
    monkeypatch.setattr(logistic, "EXACT", 4)
    updated = BayesianLogistic(6, 5)
    assert exact._exact
    assert not updated._exact
    a, b = exact.add_batch(X, y), updated.add_batch(X, y)
    np.testing.assert_allclose(updated.weights, exact.weights, atol=1e-7)
    # a term of the second order is left out: less, and not by much
    assert 0.85 < b.sum() / a.sum() < 1.0 + 1e-9
    assert np.abs(b / a - 1)[5:].max() < 0.3
    # curvatures are at most so stale
    assert softmax.moved(updated._now.P, updated._now.Q).max() <= logistic.MOVES
    ratio = np.linalg.eigvals(np.linalg.solve(exact._now.S, updated._now.S)).real
    assert ratio.min() > 0.6
    assert ratio.max() < 1.7
    # the covariance is that of the curvatures it claims to have
    H = np.empty(updated._now.S.shape)
    softmax.precision(updated._now.Z[:60], updated._now.Q, updated._E, H)
    np.testing.assert_allclose(updated._now.S @ H, np.eye(len(H)), atol=1e-9)
    again = BayesianLogistic.from_dict(updated.to_dict())
    np.testing.assert_allclose(again.predict_proba(X), updated.predict_proba(X), atol=1e-12)
    updated.rewind(40)
    exact.rewind(40)
    np.testing.assert_allclose(updated.weights, exact.weights, atol=1e-9)


def test_few_labels_and_many_weights_start_from_the_prior(monkeypatch):
    monkeypatch.setattr(logistic, "EXACT", 4)
    monkeypatch.setattr(logistic, "MOVES", 1e-9)
    X, y = data(5, 12, 4, seed=6)
    model = BayesianLogistic(12, 4)
    model.add_batch(X, y)
    H = np.empty(model._now.S.shape)
    softmax.precision(X, model._now.P, model._E, H)
    np.testing.assert_allclose(model._now.S @ H, np.eye(len(H)), atol=1e-10)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 1e4]), st.sampled_from([1e-2, 1.0, 30.0]))
def test_any_data(seed, prior, size):
    X, y = data(12, 2, 3, seed)
    model = BayesianLogistic(2, 3, prior=prior)
    r = model.add_batch(size * X, y)
    assert (r >= 0).all()
    assert np.isfinite(r).all()
    assert np.isfinite(model.predict_proba(size * X)).all()


def test_batches_copies_and_states():
    X, y = data(12, 2, 3)
    one, all_at_once = BayesianLogistic(2, 3), BayesianLogistic(2, 3)
    r = [one.add(x, label) for x, label in zip(X, y, strict=True)]
    assert r == all_at_once.add_batch(X, y).tolist() == one.bounds().tolist()
    for again in (
        one.copy(),
        copy.copy(one),
        copy.deepcopy(one),
        pickle.loads(pickle.dumps(one)),
        BayesianLogistic.from_dict(json.loads(json.dumps(one.to_dict()))),
    ):
        assert again.to_dict() == one.to_dict()
        np.testing.assert_allclose(again.predict_proba(X), one.predict_proba(X), atol=1e-13)
        again.add(X[0], y[0])
        assert (again.n_labels, one.n_labels) == (13, 12)
    one.rewind(5)
    np.testing.assert_allclose(one.add_batch(X[5:], y[5:]), r[5:], atol=1e-10)
    one.rewind(0)
    assert one.n_labels == 0
    assert one.add(X[0], y[0]) == pytest.approx(r[0], abs=1e-12)


def test_errors_leave_it_as_it_was():
    X, y = data(6, 2, 3)
    model = BayesianLogistic(2, 3)
    model.add_batch(X, y)
    before = model.to_dict()
    for call, error, match in (
        (lambda: model.add(X[0], 3), ValueError, "`y` must be a class from 0 to 2, got 3"),
        (lambda: model.add(X[0], 0.5), ValueError, "`y` must be a class from 0 to 2, got 0.5"),
        (
            lambda: model.add_batch(X[:2], ["cat", "dog"]),
            TypeError,
            r"`y` must hold classes from 0 to 2, got 'cat': np.unique\(y, return_inverse=True\)",
        ),
        (lambda: model.add(X[0], "a"), TypeError, "`y`"),
        (lambda: model.add([1.0], 0), ValueError, "`x`"),
        (lambda: model.add_batch(X, [0, 1]), ValueError, "`y` must have 6 elements, got 2"),
        (lambda: model.add_batch(X[:2], [0, -1]), ValueError, "got -1.0 at index 1"),
        (lambda: model.add([1e200, 1.0], 0), np.linalg.LinAlgError, "at label 7; lower the prior"),
        (lambda: model.rewind(7), ValueError, "`n` must be at most the number of labels, 6"),
    ):
        with pytest.raises(error, match=match):
            call()
        assert model.to_dict() == before
    model.add(X[0], y[0])
    for bad, match in (
        ((0, 3), "`n_features` must be at least 1, got 0"),
        ((2, 1), "`n_classes` must be at least 2, got 1"),
        ((30_000, 2), "must leave at most 5,000 weights"),
        ((2, 1001), "`n_classes`"),
    ):
        with pytest.raises(ValueError, match=match):
            BayesianLogistic(*bad)
    with pytest.raises(ValueError, match="`prior` must be positive"):
        BayesianLogistic(2, 3, prior=0.0)
    state = model.to_dict()
    state["contrasts"][0][0] += 1.0
    with pytest.raises(ValueError, match="not those of the mode"):
        BayesianLogistic.from_dict(state)


@pytest.mark.parametrize("acquisition", ["max_variance", "uncertainty", "margin", "entropy"])
def test_learn_asks_for_the_least_certain(acquisition):
    X, y = data(25, 2, 3)
    gp = BayesianLogistic(2, 3)
    learner = ActiveLearner(
        X, gp=gp, stopper=StillToCome(0.2), initial=3, acquisition=acquisition, seed=0
    )
    for _ in range(6):
        i = learner.ask()
        if learner.n_labels >= 3:
            p = np.sort(learner.model.predict_proba(X), axis=1)
            certain = p[:, -1] - p[:, -2]
            if acquisition == "entropy":
                certain = (p * np.log(p)).sum(axis=1)
            certain[learner.labelled] = np.inf
            assert i == certain.argmin()
        learner.tell(int(y[i]))
    again = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
    assert again.ask() == learner.ask()
    # NumPy 1 adds up in another order where an array begins elsewhere in memory
    rounding = 1e-12 if np.lib.NumpyVersion(np.__version__) < "2.0.0" else 0.0
    np.testing.assert_allclose(again.bounds, learner.bounds, rtol=rounding, atol=0.0)
    assert gp.n_labels == 0


def test_learn_with_a_test_set():
    X, y = data(40, 2, 3)
    run = learn(
        X[:25], y[:25], gp=BayesianLogistic(2, 3), stopper=StillToCome(0.3), initial=4, seed=0,
        test=(X[25:], y[25:]),
    )  # fmt: skip
    assert run.stopped
    assert len(run.bounds) == run.n_labels - 4
    p = run.gp.predict_proba(X[25:])[np.arange(15), y[25:]]
    assert run.errors[-1] == pytest.approx(-np.log(p).mean())
    assert run.rmse[-1] == pytest.approx(np.sqrt(np.mean((1 - p) ** 2)))
    model = BayesianLogistic(2, 3)
    np.testing.assert_allclose(model.add_batch(X[run.indices], y[run.indices])[4:], run.bounds)
    stopper = Stopper(gp=BayesianLogistic(2, 3))
    stopper.observe(X[0], int(y[0]))
    assert len(stopper.bounds) == 1


def test_what_learn_refuses():
    X, y = data(12, 2, 3)
    with pytest.raises(ValueError, match="`X` must have shape"):
        learn(X, y, gp=BayesianLogistic(3, 3), stopper=Stopper())
    with pytest.raises(ValueError, match="`y` must be a class from 0 to 1, got 2"):
        learn(X, y, gp=BayesianLogistic(2, 2), stopper=Stopper())
    with pytest.raises(ValueError, match="`acquisition` must be one of"):
        learn(X, y, gp=BayesianLogistic(2, 3), stopper=Stopper(), acquisition="best")
    with pytest.raises(TypeError, match="`refit` needs a GaussianProcess, got BayesianLogistic"):
        ActiveLearner(X, gp=BayesianLogistic(2, 3), refit=1.2, stopper=Stopper())
    with pytest.raises(TypeError, match="`gp` must be a GaussianProcess, got BayesianLogistic"):
        simulate(X, y, gp=BayesianLogistic(2, 3), n_runs=2)
    learner = ActiveLearner(X, gp=BayesianLogistic(2, 3), stopper=Stopper(), seed=0)
    learner.tell(1)
    with pytest.raises(ValueError, match="`n` must be 1 where the choice looks at labels"):
        learner.ask(3)
