import warnings

import numpy as np
import pytest

from fastal import GaussianProcess, Stopper
from fastal.adapters import bounds_of

pytest.importorskip("skactiveml", reason="scikit-activeml is not installed")
from skactiveml.classifier import ParzenWindowClassifier
from skactiveml.pool import GreedySamplingTarget, GreedySamplingX
from skactiveml.regressor import NICKernelRegressor, SklearnNormalRegressor, SklearnRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel


def process(noise):
    return GaussianProcessRegressor(1.5 * RBF(0.9) + WhiteKernel(noise), alpha=1e-9, optimizer=None)


@pytest.mark.parametrize("wrapper", [SklearnRegressor, SklearnNormalRegressor])
@pytest.mark.parametrize("strategy", [GreedySamplingX, GreedySamplingTarget])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_loop_decides_as_fastals_own_process(loop, wrapper, strategy, batch):
    X, truth, noise = loop
    model, query = wrapper(process(noise)), strategy(random_state=0)
    y = np.full(60, np.nan)
    y[0] = truth[0]
    stopper, order = Stopper(), [0]
    while np.isnan(y).any():
        model.fit(X, y)
        if stopper.after_fit(model, order=np.argsort(np.argsort(order)), initial=1):
            break
        more = {"reg": model} if strategy is GreedySamplingTarget else {}
        chosen = query.query(X, y, batch_size=min(batch, int(np.isnan(y).sum())), **more)
        y[chosen] = truth[chosen]
        order += chosen.tolist()
    own = GaussianProcess(0.9, noise + 1e-9, amplitude=1.5).add_batch(X[order], y[order])[1:]
    np.testing.assert_allclose(stopper.bounds, own, rtol=1e-8)
    assert stopper.stopped


def test_bad_input(loop):
    X, y, noise = loop
    stopper = Stopper()
    unfitted = r"`model.estimator_` \(scikit-activeml\) must be fitted first"
    with pytest.raises(ValueError, match=unfitted):
        stopper.after_fit(SklearnRegressor(process(noise)))
    failed = SklearnRegressor(process(noise))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failed.fit(X, np.full(60, np.nan))  # no label at all
    with pytest.raises(
        ValueError, match=r"`model` \(scikit-activeml\) must be fitted first: its fit"
    ):
        stopper.after_fit(failed)
    for other in (NICKernelRegressor().fit(X, y), ParzenWindowClassifier(classes=[0, 1])):
        with pytest.raises(TypeError, match=r"`model` \(scikit-activeml\) must be a SklearnRegr"):
            stopper.after_fit(other)
    assert len(stopper) == 0


@pytest.mark.parametrize("wrapper", [SklearnRegressor, SklearnNormalRegressor])
def test_recomputed(loop, wrapper):
    X, truth, noise = loop
    rows = np.random.default_rng(0).permutation(60)[:30]  # of the pool, as they were labelled
    y = np.full(60, np.nan)
    y[rows] = truth[rows]
    model = wrapper(process(noise)).fit(X, y)
    order = np.argsort(np.argsort(rows))
    got = bounds_of(model, order=order)
    own = GaussianProcess(0.9, noise + 1e-9, amplitude=1.5).add_batch(X[rows], truth[rows])
    np.testing.assert_allclose(got, own, rtol=1e-8)
    # the whole pool, or its labelled rows in order, to compare
    np.testing.assert_array_equal(bounds_of(model, order=order, X=X, y=y), got)
    there = np.sort(rows)
    again = bounds_of(model, order=order, X=X[there], y=y[there])
    np.testing.assert_array_equal(again, got)
    # fitted in the order of the labels
    ordered = wrapper(process(noise)).fit(X[rows], y[rows])
    np.testing.assert_allclose(bounds_of(ordered, order=np.arange(30)), got, rtol=1e-9)


def test_bounds_refuses(loop):
    X, truth, noise = loop
    y = np.where(np.arange(60) < 20, truth, np.nan)
    model = SklearnRegressor(process(noise)).fit(X, y)
    with pytest.raises(
        ValueError, match=r"`order` must be given: `model` \(scikit-activeml\) keeps"
    ):
        bounds_of(model)
    with pytest.raises(ValueError, match=r"for the rows of a pool give np.argsort\(np.argsort"):
        bounds_of(model, order=np.arange(20) + 30)
    y[20] = truth[20]
    with pytest.raises(
        ValueError, match="was fitted to other rows than `X`: to 20 rows, `X` has 21"
    ):
        bounds_of(model, order=np.arange(20), X=X, y=y)
    model.estimator_.kernel_.set_params(k2__noise_level=0.5)
    with pytest.raises(
        ValueError, match=r"`model` \(scikit-activeml\) does not agree with its own fac"
    ):
        bounds_of(model, order=np.arange(20))
    inner = process(noise).fit(X[:9], truth[:9])  # fitted beforehand, in an order of its own
    np.testing.assert_array_equal(bounds_of(SklearnRegressor(inner)), bounds_of(inner))
    unfitted = r"`model.estimator_` \(scikit-activeml\) must be fitted first"
    with pytest.raises(ValueError, match=unfitted):
        bounds_of(SklearnRegressor(process(noise)))
    with pytest.raises(TypeError, match=r"`model` \(scikit-activeml\) must be a SklearnRegr"):
        bounds_of(NICKernelRegressor().fit(X, truth), order=np.arange(60))
