"""SMT and OpenTURNS, against their own predictions."""

import copy
import warnings

import numpy as np
import pytest

from fastal import Stopper, gp_kl
from fastal.adapters import bounds_of

pytestmark = pytest.mark.filterwarnings("ignore")  # of these libraries; ours are looked for by name

T = 25


@pytest.fixture
def smt():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("smt", reason="SMT is not installed")
        from smt.surrogate_models import KPLS, KRG

    def make(X, y, kind=KRG, **settings):
        model = kind(print_global=False, **settings)
        model.set_training_values(X, y[:, None])
        model.train()
        return model

    make.kpls = KPLS
    return make


def known_trend(model, x):
    """SMT's own mean and variance at x, in its normalised units, and without that of the trend."""
    mean = (model.predict_values(x)[0, 0] - model.y_mean[0]) / model.y_std[0]
    var = model.predict_variances(x)[0, 0] / model.y_std[0] ** 2
    # what the trend adds: sigma2 |u|^2,  G^T u = F^T R^-1 r - f
    z = (x - model.X_offset) / model.X_scale
    d = model._componentwise_distance((z[:, None, :] - model.X_norma[None]).reshape(-1, z.shape[1]))
    r = np.linalg.solve(model.optimal_par["C"], model.corr(d).reshape(-1))
    u = np.linalg.solve(model.optimal_par["G"].T, model.optimal_par["Ft"].T @ r - 1.0)
    sigma2 = float(model.optimal_par["sigma2"][0] / model.y_std[0] ** 2)
    return float(mean), float(var) - sigma2 * float(u @ u)


@pytest.mark.parametrize("settings", [{"eval_noise": True}, {"noise0": [0.01]}])
@pytest.mark.parametrize("corr", ["squar_exp", "matern52"])
def test_smt(loop, smt, corr, settings):
    X, y, _ = loop
    y = 20 + 5 * y
    model = smt(X[:T], y[:T], corr=corr, **settings)
    stopper = Stopper()
    stopper.after_fit(model, X=X[:T], y=y[:T])
    assert len(stopper) == T


def test_smt_on_prefixes(loop, smt):
    """All bounds against SMT's own mean and variance on prefixes, all but the labels kept fixed."""
    X, y, _ = loop
    X, y = X[:T], 20 + 5 * y[:T]
    whole = smt(X, y, eval_noise=True)
    got = bounds_of(whole)
    s = float(whole.optimal_par["sigma2"][0] / whole.y_std[0] ** 2)
    nugget = float(np.ravel(whole.optimal_noise)[0])
    beta = whole.optimal_par["beta"]
    labels = np.ravel(whole.y_norma)
    for t in range(2, T):
        prefix = copy.copy(whole)
        prefix.X_norma, prefix.nt = whole.X_norma[:t], t
        R = whole.optimal_par["C"] @ whole.optimal_par["C"].T
        C = np.linalg.cholesky(R[:t, :t])
        Ft = np.linalg.solve(C, np.ones((t, 1)))
        residual = labels[:t, None] - whole.F[:t] @ beta
        prefix.optimal_par = {
            **whole.optimal_par,
            "C": C,
            "Ft": Ft,
            "G": np.linalg.qr(Ft)[1],
            "gamma": np.linalg.solve(R[:t, :t], residual),
        }
        prefix.X_train = X[:t]
        mean, var = known_trend(prefix, X[[t]])
        assert got[t] == pytest.approx(gp_kl(mean, var, float(labels[t]), s * nugget), rel=1e-6)


def test_smt_refuses(loop, smt):
    X, y, _ = loop
    X, y = X[:T], y[:T]
    exact = smt(X, y)
    with pytest.warns(UserWarning, match=r"the noise of `model` \(SMT\) is about .* as exact"):
        bounds_of(exact)
    with pytest.raises(ValueError, match=r"reinterpolates .* use `eval_noise` without `is_ri`"):
        bounds_of(smt(X, y, eval_noise=True, is_ri=True))
    with pytest.raises(TypeError, match=r"`model` \(SMT\) must be a KRG, got a KPLS"):
        bounds_of(smt(X, y, smt.kpls, n_comp=1))
    model = smt(X, y, eval_noise=True)
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 3"):
        bounds_of(model, y=np.where(np.arange(T) == 3, 9.0, y))
    model.optimal_noise = 2 * model.optimal_noise
    with pytest.raises(ValueError, match="does not agree with its own factor"):
        bounds_of(model)
    untrained = type(model)(print_global=False)
    with pytest.raises(ValueError, match=r"`model` \(SMT\) must be trained first"):
        bounds_of(untrained)


# OpenTURNS


@pytest.fixture
def ot():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("openturns", reason="OpenTURNS is not installed")


def fitted(ot, X, y, noise=None, basis="constant", covariance=None, optimise=True):
    d = X.shape[1]
    covariance = covariance or ot.SquaredExponential([0.9] * d, [1.2])
    basis = {"constant": ot.ConstantBasisFactory, "linear": ot.LinearBasisFactory}[basis](d).build()
    fitter = ot.GaussianProcessFitter(X.tolist(), y[:, None].tolist(), covariance, basis)
    fitter.setKeepCholeskyFactor(True)
    fitter.setOptimizeParameters(optimise)
    if noise is not None:
        fitter.setNoise(np.broadcast_to(noise, len(y)).tolist())
    fitter.run()
    return fitter


def step_by_step(fit, X, y):
    """Bounds from a dense solve on prefixes with OpenTURNS' own covariance and trend functions."""
    covariance, basis = fit.getCovarianceModel(), fit.getBasis()
    beta = np.ravel(np.array(fit.getTrendCoefficients()))
    L = np.tril(np.array(fit.getCholeskyFactor()))

    def k(a, b):  # two points: without nugget unless they are the same point object
        return covariance(a.tolist(), b.tolist())[0, 0]

    nugget = covariance.getNuggetFactor() * covariance.getAmplitude()[0] ** 2
    n = len(y)
    K = np.array([[k(a, b) for b in X] for a in X]) - nugget * np.eye(n)
    F = np.array([[basis.build(j)(x.tolist())[0] for j in range(basis.getSize())] for x in X])
    m = F @ beta
    noise = np.diag(L @ L.T) - np.diag(K)
    found = [gp_kl(m[0], K[0, 0], y[0], noise[0])]
    for t in range(1, n):
        A = K[:t, :t] + np.diag(noise[:t])
        mean = m[t] + K[t, :t] @ np.linalg.solve(A, y[:t] - m[:t])
        var = K[t, t] - K[t, :t] @ np.linalg.solve(A, K[:t, t])
        found.append(gp_kl(float(mean), float(var), y[t], noise[t]))
    return np.array(found)


@pytest.mark.parametrize("basis", ["constant", "linear"])
@pytest.mark.parametrize("each", [False, True])
def test_openturns(loop, ot, basis, each):
    X, y, _ = loop
    X, y = X[: T + 1], 20 + 5 * y[: T + 1]
    noise = np.linspace(0.01, 0.2, T) if each else np.full(T, 0.01)
    fitter = fitted(ot, X[:T], y[:T], noise, basis)
    fit = fitter.getResult()
    got = bounds_of(fit, X=X[:T], y=y[:T])
    np.testing.assert_allclose(got, step_by_step(fit, X[:T], y[:T]), rtol=1e-6)
    np.testing.assert_array_equal(bounds_of(fitter), got)
    regression = ot.GaussianProcessRegression(fit)
    regression.run()
    result = regression.getResult()
    np.testing.assert_array_equal(bounds_of(result), got)


@pytest.mark.parametrize("each", [False, True])
def test_openturns_on_prefixes(loop, ot, each):
    """Against OpenTURNS' own mean and variance, with parameters and trend of the whole fit."""
    X, y, _ = loop
    X, y = X[:T], 20 + 5 * y[:T]
    fit = fitted(ot, X, y, np.linspace(0.01, 0.2, T) if each else 0.01).getResult()
    got = bounds_of(fit)
    covariance = fit.getCovarianceModel()
    trend = float(np.ravel(np.array(fit.getTrendCoefficients()))[0])
    L = np.tril(np.array(fit.getCholeskyFactor()))
    amplitude = covariance.getAmplitude()
    noise = np.diag(L @ L.T) - amplitude[0] ** 2
    for t in range(1, T):
        same = ot.SquaredExponential(covariance.getScale(), amplitude)
        centred = (y[:t, None] - trend).tolist()
        prefix = ot.GaussianProcessFitter(X[:t].tolist(), centred, same, ot.Basis())
        prefix.setOptimizeParameters(False)  # then the noise counts at its face value
        prefix.setNoise(noise[:t].tolist())
        prefix.run()
        regression = ot.GaussianProcessRegression(prefix.getResult())
        regression.run()
        result, x = regression.getResult(), X[t].tolist()
        var = ot.GaussianProcessConditionalCovariance(result).getConditionalMarginalVariance(x)
        mean = result.getMetaModel()(x)[0]
        expected = gp_kl(mean, float(np.ravel(np.array(var))[0]), y[t] - trend, float(noise[t]))
        assert got[t] == pytest.approx(expected, rel=1e-6)


def test_openturns_with_a_nugget(loop, ot):
    X, y, _ = loop
    X, y = X[:T], y[:T]
    covariance = ot.SquaredExponential([0.9, 0.9], [1.2])
    covariance.setNuggetFactor(0.05)
    fit = fitted(ot, X, y, covariance=covariance).getResult()
    got = bounds_of(fit)
    np.testing.assert_allclose(got, step_by_step(fit, X, y), rtol=1e-6)
    assert got.max() < 1e4  # the nugget is noise


def test_openturns_refuses(loop, ot):
    X, y, _ = loop
    X, y = X[:T], y[:T]
    fit = fitted(ot, X, y, 0.01).getResult()
    with pytest.raises(ValueError, match="was fitted to other rows than `X`: to 25 rows"):
        bounds_of(fit, X=X[:9])
    if hasattr(ot, "KrigingAlgorithm"):
        old = ot.KrigingAlgorithm(
            X.tolist(), y[:, None].tolist(), ot.SquaredExponential([0.9] * 2, [1.2])
        )
        with pytest.raises(TypeError, match="must be a GaussianProcessFitter, which keeps its"):
            bounds_of(old)
    with pytest.raises(TypeError, match="must be a GaussianProcessFitter or its result"):
        bounds_of(ot.SquaredExponential())
