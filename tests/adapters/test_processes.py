"""tinygp, george and celerite2, against their own predictions; they keep no labels."""

import warnings

import numpy as np
import pytest

from fastal import Stopper, gp_kl
from fastal.adapters import bounds_from, recomputed

T = 25
NOISE = np.linspace(0.01, 0.2, T)


def dense_posterior(cov, mean, y, noise):
    """Return mean and covariance of f at the inputs after those of the labels y."""
    t = len(y)
    gain = np.linalg.solve(cov[:t, :t] + np.diag(noise), cov[:t, t:]).T
    return mean + gain @ (y - mean), cov[t:, t:] - gain @ cov[:t, t:]


def expected_in_order(mean, cov, y, noise):
    """Return the bound of each label given those before it, from the joint posterior."""
    return [
        gp_kl(m[0], c[0, 0], y[i], noise[i])
        for i in range(len(y))
        for m, c in [posterior_given(mean, cov, y, noise, i)]
    ]


def posterior_given(mean, cov, y, noise, i):
    gain = np.linalg.solve(cov[:i, :i] + np.diag(noise[:i]), cov[:i, i:]).T
    return mean[i:] + gain @ (y[:i] - mean[:i]), cov[i:, i:] - gain @ cov[:i, i:]


def no_labels(gp, name, **more):
    with pytest.raises(ValueError, match=rf"`model` \({name}\) keeps no labels: give `y`"):
        recomputed(gp, **more)
    with pytest.raises(ValueError, match=rf"`y` must have one label for each of {T} inputs"):
        recomputed(gp, y=np.zeros(T - 1), **more)
    with pytest.raises(TypeError, match=rf"`model` \({name}\) keeps no labels, so that it says"):
        bounds_from(gp, 0.0, 0.0)
    stopper = Stopper()
    with pytest.raises(ValueError, match="`y` must be finite, got nan"):
        stopper.recompute_from(gp, y=np.full(T, np.nan), **more)
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
    got = recomputed(gp, X=X, y=y).bounds
    expected, some = [], [1, 2, 7, 15, 24]  # JAX compiles for each size
    for t in some:
        # its own variance has the noise of the new point, which is sqrt(eps) by default
        mean, var = make(t).predict(y[:t], X[t : t + 1], return_var=True)
        extra = float(np.sqrt(np.finfo(float).eps))
        expected.append(gp_kl(float(mean[0]), float(var[0]) - extra, y[t], NOISE[t]))
    np.testing.assert_allclose(got[some], expected, rtol=1e-5)
    no_labels(gp, "tinygp")
    with pytest.raises(ValueError, match="was fitted to other rows than `X`: row 0"):
        recomputed(gp, X=X + 1, y=y)
    order = np.arange(T)[::-1]
    other = tinygp.GaussianProcess(kernel, X[order], diag=NOISE[order], mean=2.5)
    np.testing.assert_allclose(
        recomputed(gp, y=y, order=order).bounds, recomputed(other, y=y[order]).bounds, rtol=1e-8
    )
    dense = tinygp.GaussianProcess(kernel, X, noise=tinygp.noise.Dense(np.diag(NOISE) + 0.001))
    with pytest.raises(ValueError, match=r"the noise of `model` \(tinygp\) must be independent"):
        recomputed(dense, y=y)


@pytest.mark.parametrize("features", [1, 2])
def test_new_labels_of_tinygp(loop, tinygp, features):
    X, y, _ = loop
    X, y, t = (X if features == 2 else X[:, 0]), 3 + y, 20
    kernel = 1.5 * tinygp.kernels.ExpSquared(
        scale=0.9, distance=tinygp.kernels.distance.L2Distance()
    )
    gp = tinygp.GaussianProcess(kernel, X[:t], diag=NOISE[:t], mean=2.5)
    squares = ((X[:, None] - X) ** 2).reshape(len(X), len(X), -1).sum(axis=-1)
    K = 1.5 * np.exp(-0.5 * squares[: t + 3, : t + 3] / 0.9**2)
    mean, cov = dense_posterior(K, 2.5, y[:t], NOISE[:t])
    noise = np.array([0.1, 0.2, 0.05])
    new, labels = X[t : t + 3], y[t : t + 3]
    expected = expected_in_order(mean, cov, labels, noise)
    known = gp.condition(y[:t])
    for given in (known, known.gp):  # what it returns, or the process within
        np.testing.assert_allclose(bounds_from(given, new, labels, noise), expected, rtol=1e-9)
    stopper = Stopper()
    assert not stopper.update_from(known, new[0], labels[0], 0.1)
    np.testing.assert_allclose(stopper.bounds, expected[:1], rtol=1e-9)
    # as if the process were computed with them
    more = tinygp.GaussianProcess(kernel, X[: t + 3], diag=np.r_[NOISE[:t], noise], mean=2.5)
    np.testing.assert_allclose(recomputed(more, y=y[: t + 3]).bounds[t:], expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"`noise` must be given: that of `model` \(tinygp\)"):
        stopper.update_from(known, new[0], labels[0])
    with pytest.raises(ValueError, match=r"`x` must have shape .* as the inputs of `model`"):
        stopper.update_from(known, np.zeros((1, 3)), labels[0], 0.1)
    with pytest.raises(ValueError, match="must be conditioned with its mean"):
        stopper.update_from(gp.condition(y[:t], include_mean=False), new[0], labels[0], 0.1)
    with pytest.raises(TypeError, match="give the process before `condition`"):
        stopper.recompute_from(known, y=y[:t])
    assert len(stopper) == 1


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
    got = recomputed(gp, X=X, y=y).bounds
    expected = []
    for t in range(1, T):
        mean, var = make(t).predict(y[:t], X[[t]], return_var=True)
        expected.append(gp_kl(float(mean[0]), float(var[0]), y[t], NOISE[t] + 0.01))
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)
    no_labels(gp, "george")
    gp.predict(y + 1, X[:1])  # what it leaves behind is not looked at
    np.testing.assert_array_equal(recomputed(gp, y=y).bounds, got)
    with pytest.raises(ValueError, match=r"`model` \(george\) must know its inputs first"):
        recomputed(george.GP(1.0 * george.kernels.ExpSquaredKernel(1.0)), y=y)
    # the way out that the refusal names
    with pytest.raises(TypeError, match=r"`mean, var = gp.predict\(y, x, return_var=True\)`"):
        bounds_from(gp, X[0], 0.0)
    stopper = Stopper()
    mean, var = make(T - 1).predict(y[: T - 1], X[[T - 1]], return_var=True)
    stopper.update(mean[0], var[0], y[T - 1], NOISE[T - 1] + 0.01)
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
    got = recomputed(gp, X=came[rows], y=y[rows], order=order).bounds
    expected = []
    for t in range(1, T):
        prefix, seen = make(np.arange(t))
        mean, var = prefix.predict(y[seen], came[[t]], return_var=True)
        expected.append(gp_kl(float(mean[0]), float(var[0]), y[t], NOISE[t]))
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)
    no_labels(gp, "celerite2", order=order)
    with pytest.raises(ValueError, match=r"`order` must be given: `model` \(celerite2\) keeps its"):
        recomputed(gp, y=y[rows])
    with pytest.raises(ValueError, match=r"`model` \(celerite2\) must know its inputs first"):
        recomputed(celerite2.GaussianProcess(term), y=y, order=order)


def test_new_labels_of_celerite2(loop, celerite2):
    X, y, _ = loop
    t = 20
    rows = np.argsort(X[:t, 0])
    came, y = X[:, 0], 3 + y
    term = celerite2.terms.RealTerm(a=1.44, c=0.8)  # a exp(-c |tau|)
    gp = celerite2.GaussianProcess(term, mean=2.5)
    gp.compute(came[rows], diag=NOISE[rows])
    known = gp.condition(y[rows])
    new, labels, noise = came[t : t + 3], y[t : t + 3], np.array([0.1, 0.2, 0.05])
    K = 1.44 * np.exp(-0.8 * np.abs(came[: t + 3, None] - came[: t + 3]))
    mean, cov = dense_posterior(K, 2.5, y[:t], NOISE[:t])
    expected = expected_in_order(mean, cov, labels, noise)
    np.testing.assert_allclose(bounds_from(known, new, labels, noise), expected, rtol=1e-9)
    own = [gp.predict(y[rows], new[:1], return_var=True)]
    np.testing.assert_allclose(
        bounds_from(known, new[0], labels[0], 0.1),
        [gp_kl(float(m[0]), float(v[0]), labels[0], 0.1) for m, v in own],
        rtol=1e-8,
    )
    order = np.argsort(rows)
    np.testing.assert_array_equal(
        recomputed(known, order=order).bounds, recomputed(gp, y=y[rows], order=order).bounds
    )
    # as if the process were computed with the new ones
    both = np.argsort(came[: t + 3])
    more = celerite2.GaussianProcess(term, mean=2.5)
    more.compute(came[both], diag=np.r_[NOISE[:t], noise][both])
    np.testing.assert_allclose(
        recomputed(more, y=y[both], order=np.argsort(both)).bounds[t:],
        bounds_from(known, new, labels, noise),
        rtol=1e-8,
    )
    stopper = Stopper()
    with pytest.raises(ValueError, match=r"`noise` must be given: that of `model` \(celerite2\)"):
        stopper.update_from(known, new[0], labels[0])
    gp.compute(came[rows], diag=np.full(t, 0.1))
    stopper.update_from(gp.condition(y[rows]), new[0], labels[0])  # one noise: that of new labels
    assert len(stopper) == 1
    with pytest.raises(ValueError, match="`x` must have 1 feature"):
        stopper.update_from(known, X[0], labels[0], 0.1)
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 0"):
        recomputed(known, order=order, y=y[rows] + 1)
    for other in (gp.condition(y[rows], include_mean=False), gp.condition(y[rows], kernel=term)):
        with pytest.raises(ValueError, match="must be conditioned with its own kernel and mean"):
            stopper.update_from(other, new[0], labels[0], 0.1)
    assert len(stopper) == 1
