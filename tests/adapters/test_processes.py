"""tinygp, george and celerite2, against their own predictions; they keep no labels."""

import warnings

import numpy as np
import pytest

from fastal import Stopper, gp_kl
from fastal.adapters import bounds_of

T = 25
NOISE = np.linspace(0.01, 0.2, T)


def no_labels(gp, name, **more):
    with pytest.raises(ValueError, match=rf"`model` \({name}\) keeps no labels: give `y`"):
        bounds_of(gp, **more)
    with pytest.raises(ValueError, match=rf"`y` must have one label for each of {T} inputs"):
        bounds_of(gp, y=np.zeros(T - 1), **more)
    stopper = Stopper()
    with pytest.raises(ValueError, match="`y` must be finite, got nan"):
        stopper.after_fit(gp, y=np.full(T, np.nan), **more)
    assert len(stopper) == 0


# tinygp


@pytest.fixture
def tinygp():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip("tinygp", reason="tinygp is not installed")
        import jax
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield found
    jax.config.update("jax_enable_x64", before)


def test_tinygp(loop, tinygp):
    X, y, _ = loop
    X, y = X[:T], 3 + y[:T]
    kernel = 1.5 * tinygp.kernels.ExpSquared(
        scale=0.9, distance=tinygp.kernels.distance.L2Distance()
    )

    def make(t):
        return tinygp.GaussianProcess(kernel, X[:t], diag=NOISE[:t], mean=2.5)

    gp = make(T)
    got = bounds_of(gp, X=X, y=y)
    expected, some = [], [1, 2, 7, 15, 24]  # JAX compiles for each size
    for t in some:
        # its own variance has the noise of the new point, which is sqrt(eps) by default
        mean, var = make(t).predict(y[:t], X[t : t + 1], return_var=True)
        extra = float(np.sqrt(np.finfo(float).eps))
        expected.append(gp_kl(float(mean[0]), float(var[0]) - extra, y[t], NOISE[t]))
    np.testing.assert_allclose(got[some], expected, rtol=1e-5)
    no_labels(gp, "tinygp")
    with pytest.raises(ValueError, match="was fitted to other rows than `X`: row 0"):
        bounds_of(gp, X=X + 1, y=y)
    order = np.arange(T)[::-1]
    other = tinygp.GaussianProcess(kernel, X[order], diag=NOISE[order], mean=2.5)
    np.testing.assert_allclose(
        bounds_of(gp, y=y, order=order), bounds_of(other, y=y[order]), rtol=1e-8
    )
    dense = tinygp.GaussianProcess(kernel, X, noise=tinygp.noise.Dense(np.diag(NOISE) + 0.001))
    with pytest.raises(ValueError, match=r"the noise of `model` \(tinygp\) must be independent"):
        bounds_of(dense, y=y)


def test_a_conditioned_process_of_tinygp_is_refused(loop, tinygp):
    X, y, _ = loop
    gp = tinygp.GaussianProcess(tinygp.kernels.ExpSquared(0.9), X[:20], diag=NOISE[:20])
    known = gp.condition(y[:20])
    for given in (known, known.gp):  # what it returns, or the process within
        with pytest.raises(TypeError, match="give the process before `condition`"):
            Stopper().after_fit(given, y=y[:20])


# george


@pytest.fixture
def george():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("george", reason="george is not installed")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("solver", ["BasicSolver", "HODLRSolver"])
def test_george(loop, george, solver):
    X, y, _ = loop
    X, y = X[:T], 3 + y[:T]
    yerr = np.sqrt(NOISE)

    def make(t):
        kernel = 1.5 * george.kernels.ExpSquaredKernel(0.8, ndim=2)
        gp = george.GP(kernel, mean=2.5, white_noise=np.log(0.01), solver=getattr(george, solver))
        gp.compute(X[:t], yerr[:t])
        return gp

    gp = make(T)
    got = bounds_of(gp, X=X, y=y)
    expected = []
    for t in range(1, T):
        mean, var = make(t).predict(y[:t], X[[t]], return_var=True)
        expected.append(gp_kl(float(mean[0]), float(var[0]), y[t], NOISE[t] + 0.01))
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)
    no_labels(gp, "george")
    gp.predict(y + 1, X[:1])  # what it leaves behind is not looked at
    np.testing.assert_array_equal(bounds_of(gp, y=y), got)
    with pytest.raises(ValueError, match=r"`model` \(george\) must know its inputs first"):
        bounds_of(george.GP(1.0 * george.kernels.ExpSquaredKernel(1.0)), y=y)
    # what `predict` says of a new label
    stopper = Stopper()
    mean, var = make(T - 1).predict(y[: T - 1], X[[T - 1]], return_var=True)
    stopper.push(gp_kl(mean[0], var[0], y[T - 1], NOISE[T - 1] + 0.01))
    np.testing.assert_allclose(stopper.bounds, got[-1:], rtol=1e-6)


# celerite2


@pytest.fixture
def celerite2():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("celerite2", reason="celerite2 is not installed")


def test_celerite2(loop, celerite2):
    X, y, _ = loop
    came, y = X[:T, 0], 3 + y[:T]  # in the order of the labels
    term = celerite2.terms.Matern32Term(sigma=1.2, rho=1.0)

    def make(rows):
        gp = celerite2.GaussianProcess(term, mean=2.5)
        rows = rows[np.argsort(came[rows])]
        gp.compute(came[rows], diag=NOISE[rows])
        return gp, rows

    gp, rows = make(np.arange(T))
    order = np.argsort(rows)  # label k stands in this row of the process
    np.testing.assert_array_equal(order, np.argsort(np.argsort(came)))
    got = bounds_of(gp, X=came[rows], y=y[rows], order=order)
    expected = []
    for t in range(1, T):
        prefix, seen = make(np.arange(t))
        mean, var = prefix.predict(y[seen], came[[t]], return_var=True)
        expected.append(gp_kl(float(mean[0]), float(var[0]), y[t], NOISE[t]))
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)
    no_labels(gp, "celerite2", order=order)
    with pytest.raises(ValueError, match=r"`order` must be given: `model` \(celerite2\) keeps its"):
        bounds_of(gp, y=y[rows])
    with pytest.raises(ValueError, match=r"`model` \(celerite2\) must know its inputs first"):
        bounds_of(celerite2.GaussianProcess(term), y=y, order=order)


def test_a_conditioned_process_of_celerite2(loop, celerite2):
    X, y, _ = loop
    t = 20
    rows = np.argsort(X[:t, 0])
    came, y = X[:, 0], 3 + y
    term = celerite2.terms.RealTerm(a=1.44, c=0.8)  # a exp(-c |tau|)
    gp = celerite2.GaussianProcess(term, mean=2.5)
    gp.compute(came[rows], diag=NOISE[rows])
    known = gp.condition(y[rows])
    order = np.argsort(rows)
    np.testing.assert_array_equal(
        bounds_of(known, order=order), bounds_of(gp, y=y[rows], order=order)
    )
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 0"):
        bounds_of(known, order=order, y=y[rows] + 1)
    for other in (gp.condition(y[rows], include_mean=False), gp.condition(y[rows], kernel=term)):
        with pytest.raises(ValueError, match="must be conditioned with its own kernel and mean"):
            bounds_of(other, order=order)
