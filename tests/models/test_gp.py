"""The Gaussian process after every change, against a dense twin and scikit-learn."""

import copy
import json
import math
import pickle
import warnings

import numpy as np
import pytest
import twins
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numba import config, njit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from fastal._core import covariance as core
from fastal._core.cholesky import forward_substitute
from fastal.models.buffers import CAPACITY
from fastal.models.gp import GaussianProcess
from fastal.models.growing import BLOCK, FEW

EPS = np.finfo(float).eps
KERNELS = ["rbf", "matern12", "matern32", "matern52"]
SIZE = 40 if config.DISABLE_JIT else 300  # interpreted loops take their time


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


def state(gp):
    """All that a user can see of a process, to the last bit."""
    probe = np.linspace(-1, 1, 5 * (gp._expected() or 1)).reshape(5, -1)
    mean, cov = gp.predict(probe, return_cov=True)
    return [gp.n_labels, gp.log_marginal_likelihood(), gp.drift(), *mean, *cov.ravel()]


def assert_healthy(gp):
    """L L^T = K to 4 n eps max|K|."""
    noises = gp._labels[2, : gp.n_labels] if gp.n_labels else [0.0]
    scale = gp.amplitude + max(noises)
    assert gp.drift() <= 4 * max(gp.n_labels, 1) * EPS * scale


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scales", [1.3, [0.7, 1.3, 2.0]])
def test_equals_scikit_learn(kernel, scales):
    X, y = data(SIZE, 3)
    T, _ = data(50, 3, seed=1)
    nu = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
    shape = RBF(scales) if kernel == "rbf" else Matern(scales, nu=nu[kernel])
    peer = GaussianProcessRegressor(ConstantKernel(2.0) * shape, alpha=0.05, optimizer=None)
    peer.fit(X, y - 0.3)
    want_mean, want_cov = peer.predict(T, return_cov=True)
    gp = GaussianProcess(scales, 0.05, amplitude=2.0, mean=0.3, kernel=kernel)
    for row, label in zip(X[: SIZE // 2], y, strict=False):
        gp.add(row, label)
    gp.add_batch(X[SIZE // 2 :], y[SIZE // 2 :])
    mean, cov = gp.predict(T, return_cov=True)
    np.testing.assert_allclose(mean, want_mean + 0.3, atol=1e-8)
    np.testing.assert_allclose(cov, want_cov, atol=1e-8)
    mean, var = gp.predict(T, return_var=True)
    np.testing.assert_allclose(mean, want_mean + 0.3, atol=1e-8)
    np.testing.assert_allclose(var, np.diag(want_cov), atol=1e-8)
    np.testing.assert_allclose(gp.predict(T), want_mean + 0.3, atol=1e-8)
    assert gp.log_marginal_likelihood() == pytest.approx(peer.log_marginal_likelihood_value_)


@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_the_twin_after_every_label(kernel):
    X, y = data(60, 2, seed=2)
    T, _ = data(7, 2, seed=3)
    noise = np.linspace(0.01, 0.1, 60)
    arguments = ([0.9, 1.4], 0.02)
    gp = GaussianProcess(*arguments, amplitude=1.5, mean=-0.2, kernel=kernel)
    twin = twins.GaussianProcess(*arguments, amplitude=1.5, mean=-0.2, kernel=kernel)
    for i in range(60):
        assert gp.add(X[i], y[i], noise=noise[i]) == pytest.approx(
            twin.add(X[i], y[i], noise=noise[i]), rel=1e-9, abs=1e-12
        )
        for got, want in zip(
            gp.predict(T, return_cov=True), twin.predict(T, return_cov=True), strict=True
        ):
            np.testing.assert_allclose(got, want, atol=1e-10)
        np.testing.assert_allclose(gp.predict(T), twin.predict(T), atol=1e-10)
        assert gp.log_marginal_likelihood() == pytest.approx(
            twin.log_marginal_likelihood(), rel=1e-9
        )
    assert_healthy(gp)
    assert gp.prior_kl() == pytest.approx(twin.prior_kl(), rel=1e-6)
    assert gp.prior_kl(jitter=0.01) == pytest.approx(twin.prior_kl(jitter=0.01), rel=1e-8)


@pytest.mark.parametrize("first", [0, 1, 50, 200])
@pytest.mark.parametrize("m", [1, FEW - 1, FEW, BLOCK, BLOCK + 1, 150])
def test_a_batch_is_its_labels_one_by_one(first, m):
    if config.DISABLE_JIT and first + m > 120:
        first, m = first // 5, m // 3
    X, y = data(first + m, 3, seed=4)
    noise = np.linspace(0.01, 0.1, m)
    one, many = GaussianProcess(1.2), GaussianProcess(1.2)
    for gp in (one, many):
        for i in range(first):
            gp.add(X[i], y[i])
    want = [one.add(X[first + i], y[first + i], noise=noise[i]) for i in range(m)]
    got = many.add_batch(X[first:], y[first:], noise=noise)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(many.predict(X), one.predict(X), atol=1e-10)
    assert many.n_labels == first + m
    assert_healthy(many)
    # The next label sees the same process.
    assert many.add(X[0] + 0.5, 0.1) == pytest.approx(one.add(X[0] + 0.5, 0.1), rel=1e-9)


def test_without_labels_the_prior():
    gp = GaussianProcess([1.0, 2.0], 0.1, amplitude=3.0, mean=0.5, kernel="matern32")
    T = np.array([[0.0, 0.0], [1.0, 0.0]])
    mean, cov = gp.predict(T, return_cov=True)
    np.testing.assert_array_equal(mean, [0.5, 0.5])
    expected = 3.0 * (1 + math.sqrt(3)) * math.exp(-math.sqrt(3))
    np.testing.assert_allclose(cov, [[3.0, expected], [expected, 3.0]], rtol=1e-14)
    mean, var = gp.predict(T, return_var=True)
    np.testing.assert_array_equal(var, [3.0, 3.0])
    assert gp.log_marginal_likelihood() == 0.0
    assert gp.drift() == 0.0
    assert gp.prior_kl() == 0.0
    assert gp.add_batch(np.empty((0, 2)), []).shape == (0,)
    assert gp.predict(np.empty((0, 2))).shape == (0,)
    gp.refresh()
    assert gp.n_labels == 0


class Machine(RuleBasedStateMachine):
    """Any order of changes keeps the process equal to the dense twin."""

    def __init__(self):
        super().__init__()
        self.gp = GaussianProcess(0.8, 0.05, amplitude=1.4, mean=0.1, kernel="matern52")
        self.twin = twins.GaussianProcess(0.8, 0.05, amplitude=1.4, mean=0.1, kernel="matern52")
        self.other = None

    inputs = st.tuples(st.integers(-8, 8), st.integers(-8, 8)).map(lambda p: [p[0] / 4, p[1] / 4])
    labels = st.integers(-30, 30).map(lambda k: k / 10)

    @rule(x=inputs, y=labels, noise=st.none() | st.sampled_from([0.01, 0.3]))
    def add(self, x, y, noise):
        got, want = self.gp.add(x, y, noise), self.twin.add(x, y, noise)
        assert got == pytest.approx(want, rel=1e-8, abs=1e-10)

    @rule(batch=st.lists(st.tuples(inputs, labels), max_size=FEW + 3))
    def add_batch(self, batch):
        X = np.array([x for x, _ in batch]).reshape(-1, 2)
        y = [label for _, label in batch]
        np.testing.assert_allclose(
            self.gp.add_batch(X, y), self.twin.add_batch(X, y), rtol=1e-8, atol=1e-10
        )

    @precondition(lambda self: self.gp.n_labels > 0)
    @rule(share=st.floats(0, 1))
    def rewind(self, share):
        n = int(share * self.gp.n_labels)
        self.gp.rewind(n)
        self.twin.rewind(n)

    @rule()
    def refresh(self):
        self.gp.refresh()

    @rule(way=st.sampled_from(["copy", "deepcopy", "pickle"]))
    def copy(self, way):
        if self.other is not None:
            # What happened to the copy's origin since has not touched the copy.
            gp, seen = self.other
            assert state(gp) == seen
        old = self.gp
        new = {
            "copy": lambda: old.copy(),
            "deepcopy": lambda: copy.deepcopy(old),
            "pickle": lambda: pickle.loads(pickle.dumps(old)),
        }[way]()
        self.other = (new, state(old))
        assert state(new) == state(old)

    @invariant()
    def equal(self):
        assert self.gp.n_labels == self.twin.n_labels
        T = np.array([[0.0, 0.1], [1.3, -0.7]])
        for got, want in zip(
            self.gp.predict(T, return_cov=True), self.twin.predict(T, return_cov=True), strict=True
        ):
            np.testing.assert_allclose(got, want, atol=1e-9)
        np.testing.assert_allclose(self.gp.predict(T), self.twin.predict(T), atol=1e-9)
        assert_healthy(self.gp)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=10 if config.DISABLE_JIT else 50, stateful_step_count=25, deadline=None
)


def test_growing_beyond_the_capacity_and_back():
    n = 2 * CAPACITY + 3
    X, y = data(n, 1, seed=6)
    gp = GaussianProcess(0.5, 0.1)
    bounds = [gp.add(x, label) for x, label in zip(X, y, strict=True)]
    before = state(gp)
    gp.rewind(CAPACITY)
    again = gp.add_batch(X[CAPACITY:], y[CAPACITY:])
    np.testing.assert_allclose(again, bounds[CAPACITY:], rtol=1e-9)
    np.testing.assert_allclose(state(gp)[3:], before[3:], atol=1e-10)
    gp.rewind(0)
    # Empty again: another number of features is welcome.
    gp.add([1.0, 2.0, 3.0], 0.5)
    assert gp.n_labels == 1


@pytest.mark.parametrize(
    "layout", ["strided", "reversed", "fortran", "readonly", "float32", "list"]
)
def test_inputs_in_any_layout(layout):
    X, y = data(12, 2, seed=7)
    X, y = X.astype(np.float32).astype(float), y.astype(np.float32).astype(float)
    shaped = {
        "strided": np.repeat(X, 2, axis=0)[::2],
        "reversed": X[::-1].copy()[::-1],
        "fortran": np.asfortranarray(X),
        "readonly": X.copy(),
        "float32": X.astype(np.float32),
        "list": X.tolist(),
    }[layout]
    if layout == "readonly":
        shaped.flags.writeable = False
    before = np.array(shaped)
    want, got, single = GaussianProcess(), GaussianProcess(), GaussianProcess()
    want.add_batch(X, y)
    got.add_batch(shaped, y.tolist())
    for row, label in zip(shaped, y, strict=True):
        single.add(row, label)
    assert state(got) == state(want)
    np.testing.assert_allclose(state(single)[3:], state(want)[3:], atol=1e-12)
    np.testing.assert_array_equal(want.predict(X), got.predict(shaped))
    np.testing.assert_array_equal(before, shaped)


def test_one_feature_takes_numbers():
    a, b = GaussianProcess(), GaussianProcess()
    assert a.add(1, 0.5) == b.add([1.0], 0.5)
    assert a.add(np.float64(2.0), 1) == b.add(np.array([2.0]), 1.0)
    assert a.add(np.array(3), 1) == b.add(3.0, 1.0)
    np.testing.assert_array_equal(a.predict([0.0, 1.0]), b.predict([[0.0], [1.0]]))


def test_integer_arrays_are_numbers():
    a, b = GaussianProcess(), GaussianProcess()
    for x in ([1, 2], [3, 5]):
        assert a.add(np.array(x), 1) == b.add(np.array(x, dtype=float), 1.0)


def test_pickle_keeps_every_bit_and_goes_on():
    X, y = data(100 if not config.DISABLE_JIT else 20, 2, seed=8)
    gp = GaussianProcess([1.0, 2.0], 0.05, kernel="matern12")
    gp.add_batch(X, y)
    new = pickle.loads(pickle.dumps(gp))
    assert state(new) == state(gp)
    assert new.add([0.5, 0.5], 1.0) == gp.add([0.5, 0.5], 1.0)
    assert repr(new) == repr(gp)
    empty = pickle.loads(pickle.dumps(GaussianProcess(2.0)))
    assert (empty.n_labels, empty.lengthscale) == (0, 2.0)


def test_parameters_are_read_only():
    gp = GaussianProcess([1.0, 2.0], 0.1)
    gp.lengthscale[0] = 5.0
    np.testing.assert_array_equal(gp.lengthscale, [1.0, 2.0])
    for name in ("lengthscale", "noise", "amplitude", "mean", "kernel", "n_labels"):
        with pytest.raises(AttributeError):
            setattr(gp, name, 1.0)
    assert "lengthscale=[1.0, 2.0]" in repr(gp)
    assert "0 labels" in str(gp)


# What must be refused, and leave no trace.


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda g: g.add([math.nan, 0.0], 1.0),
            ValueError,
            "`x` must be finite, got nan at index 0",
        ),
        (
            lambda g: g.add(np.array([0.0, math.inf]), 1.0),
            ValueError,
            "`x` must be finite, got inf",
        ),
        (
            lambda g: g.add(np.array([0.0, math.nan]), 1.0),
            ValueError,
            "`x` must be finite, got nan",
        ),
        (lambda g: g.add([0.0, 1.0], math.nan), ValueError, "`y` must be finite, got nan"),
        (lambda g: g.add([0.0, 1.0], "a"), TypeError, "`y` must be a real number, got 'a'"),
        (lambda g: g.add("a", 1.0), TypeError, "`x` must hold real numbers"),
        (
            lambda g: g.add([0.0], 1.0),
            ValueError,
            r"`x` must be one input of 2 numbers, got shape \(1,\)",
        ),
        (
            lambda g: g.add(0.0, 1.0),
            ValueError,
            r"`x` must be one input of 2 numbers, got shape \(\)",
        ),
        (lambda g: g.add([[0.0, 1.0]], 1.0), ValueError, "for several inputs use add_batch"),
        (
            lambda g: g.add([0.0, 1.0], 1.0, noise=0.0),
            ValueError,
            "`noise` must be positive, got 0.0",
        ),
        (lambda g: g.add([0.0, 1.0], 1.0, noise=math.nan), ValueError, "`noise` must be finite"),
        (lambda g: g.add([1e308, 0.0], 1.0), ValueError, "`x` divided by the length scale"),
        (
            lambda g: g.add_batch([[0.0, 1.0], [math.nan, 0.0]], [1.0, 2.0]),
            ValueError,
            r"`X` must be finite, got nan at index \(1, 0\)",
        ),
        (
            lambda g: g.add_batch([[0.0, 1.0]], [math.inf]),
            ValueError,
            "`y` must be finite, got inf",
        ),
        (
            lambda g: g.add_batch([[0.0, 1.0]], [1.0, 2.0]),
            ValueError,
            "`y` must have 1 elements, got 2",
        ),
        (
            lambda g: g.add_batch([0.0, 1.0], [1.0, 2.0]),
            ValueError,
            r"`X` must have shape \(n, 2\), got \(2,\)",
        ),
        (
            lambda g: g.add_batch([[0.0]], [1.0]),
            ValueError,
            r"`X` must have shape \(n, 2\), got \(1, 1\)",
        ),
        (
            lambda g: g.add_batch([[0.0, 1.0]] * 2, [1.0, 2.0], noise=[0.1, -1.0]),
            ValueError,
            "`noise` must be positive, got -1.0 at index 1",
        ),
        (
            lambda g: g.add_batch([[0.0, 1.0]] * 2, [1.0, 2.0], noise=[0.1] * 3),
            ValueError,
            r"`noise` must be one number or one per label \(2\)",
        ),
        (
            lambda g: g.add_batch([[1e308, 1.0]], [1.0]),
            ValueError,
            "`X` divided by the length scale",
        ),
        (lambda g: g.predict([[0.0]]), ValueError, r"`X` must have shape \(n, 2\), got \(1, 1\)"),
        (lambda g: g.predict([[0.0, math.nan]]), ValueError, "`X` must be finite, got nan"),
        (
            lambda g: g.predict([[0.0, 0.0]], return_var=True, return_cov=True),
            ValueError,
            "`return_var` and `return_cov` must not both be True",
        ),
        (
            lambda g: g.predict([[0.0, 0.0]], return_var=1),
            TypeError,
            "`return_var` must be True or False",
        ),
        (lambda g: g.rewind(9), ValueError, "`n` must be at most the number of labels, 3, got 9"),
        (lambda g: g.rewind(-1), ValueError, "`n` must be at least 0, got -1"),
        (lambda g: g.rewind(1.5), TypeError, "`n` must be an integer, got 1.5"),
        (lambda g: g.prior_kl(jitter=-1.0), ValueError, "`jitter` must not be negative"),
        (
            lambda g: g.fit_hyperparameters([[0.0, 1.0]] * 3, [0, 1, 2]),
            ValueError,
            "without labels, this one has 3",
        ),
    ],
)
def test_refusals_change_nothing(call, error, match):
    gp = GaussianProcess(0.5, 0.1)
    gp.add_batch([[0.0, 0.0], [1.0, 1.0], [0.5, 2.0]], [0.1, 0.2, 0.3])
    before = state(gp)
    with pytest.raises(error, match=match):
        call(gp)
    assert state(gp) == before


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"lengthscale": 0.0}, ValueError, "`lengthscale` must be positive, got 0.0"),
        (
            {"lengthscale": [1.0, -1.0]},
            ValueError,
            "`lengthscale` must be positive, got -1.0 at index 1",
        ),
        ({"lengthscale": [[1.0]]}, ValueError, "one per feature"),
        ({"lengthscale": math.nan}, ValueError, "`lengthscale` must be finite, got nan"),
        ({"lengthscale": "a"}, TypeError, "`lengthscale` must be a real number, got 'a'"),
        ({"noise": 0.0}, ValueError, "`noise` must be positive, got 0.0"),
        ({"noise": [0.1, 0.2]}, TypeError, "`noise` must be a real number"),
        ({"amplitude": -1.0}, ValueError, "`amplitude` must be positive, got -1.0"),
        ({"mean": math.inf}, ValueError, "`mean` must be finite, got inf"),
        (
            {"kernel": "cubic"},
            ValueError,
            "`kernel` must be one of 'rbf', 'matern12', .*got 'cubic'",
        ),
    ],
)
def test_constructor_refuses(arguments, error, match):
    with pytest.raises(error, match=match):
        GaussianProcess(**arguments)


def test_far_data_warn_once():
    gp = GaussianProcess()
    with pytest.warns(UserWarning, match="centre and scale the labels, or set `mean`") as caught:
        gp.add(0.0, 124.0)
    assert caught[0].filename == __file__
    gp.add(1.0, 126.0)  # warnings are errors here
    gp.copy().add(2.0, 125.0)
    batch = GaussianProcess()
    with pytest.warns(UserWarning, match="the label 126 is 125 prior standard deviations"):
        batch.add_batch([0.0, 1.0], [120.0, 126.0])
    batch.add(2.0, 125.0)
    GaussianProcess(mean=124.0, amplitude=20.0).add(0.0, 126.0)
    GaussianProcess().add(0.0, 10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp = GaussianProcess()
        with pytest.raises(UserWarning, match="prior standard deviations"):
            gp.add(0.0, 124.0)
        assert gp.n_labels == 0


@pytest.mark.filterwarnings("ignore:the label")
def test_labels_beyond_doubles_are_refused():
    gp = GaussianProcess()
    gp.add(0.0, 0.5)
    before = state(gp)
    for call in (lambda: gp.add(1.0, 1e200), lambda: gp.add_batch([1.0] * 9, [0.0] * 8 + [1e200])):
        with pytest.raises(ValueError, match=r"`y` is too far .* got 1e\+200"):
            call()
        assert state(gp) == before


# Honest numbers.


@pytest.mark.parametrize("noise", [1e-12, 1e-6, 1.0])
@pytest.mark.parametrize("batch", [False, True])
def test_duplicates(noise, batch):
    # k labels at one input are one label: their mean, with noise/k.
    gp = GaussianProcess(1.0, noise)
    y = np.array([0.3, 0.30000001, 0.3, 0.29999999] * 3)
    if batch:
        gp.add_batch(np.zeros(12), y)
    else:
        for label in y:
            gp.add(0.0, label)
    assert_healthy(gp)
    mean, var = gp.predict([0.0], return_var=True)
    weight = 1 / (1 + noise / 12)
    assert mean[0] == pytest.approx(weight * y.mean(), rel=1e-3 if noise == 1e-12 else 1e-9)
    assert var[0] == pytest.approx(weight * noise / 12, rel=1e-6, abs=1e-14)


def test_near_duplicates_stay_honest():
    # Whatever the factor does at 1e-12, its backward error stays at rounding.
    gp = GaussianProcess(1.0, 1e-12)
    x = np.linspace(0.0, 1.0, 40)
    added = 0
    for value in x:
        try:
            r = gp.add(value, math.sin(value))
        except np.linalg.LinAlgError:
            continue
        added += 1
        assert math.isfinite(r)
        assert r >= 0
    assert added >= 10
    assert_healthy(gp)
    assert abs(gp.predict(x) - np.sin(x)).max() < 1e-3


@pytest.mark.parametrize("batch", [False, True])
def test_breakdown_names_the_row_and_changes_nothing(batch):
    gp = GaussianProcess(1.0, 1e-18)
    gp.add_batch([0.0, 1.0, 3.0], [0.1, 0.2, 0.3])
    before = state(gp)
    match = r"at row 3 \(leading minor of order 4\).*increase the noise variance"
    if batch:
        with pytest.raises(np.linalg.LinAlgError, match=match):
            gp.add_batch([1.0, *range(10, 20)], np.zeros(11))
    else:
        with pytest.raises(np.linalg.LinAlgError, match=match):
            gp.add(1.0, 0.2)
    assert state(gp) == before
    # The remedy works, and the process goes on.
    gp.add(1.0, 0.2, noise=1e-6)
    gp.add(5.0, 0.1)
    assert gp.n_labels == 5


def test_bounds_are_not_what_is_left_of_the_pivot():
    # Far below the noise the variance keeps its digits: s is a difference of its own, not
    # L_tt^2 - noise, which would be 0 to 16 digits of the noise.
    gp = GaussianProcess(1.0, 1e6, amplitude=1e-6)
    twin = twins.GaussianProcess(1.0, 1e6, amplitude=1e-6)
    for x in (0.0, 0.1, 0.2):
        assert gp.add(x, 1.0) == pytest.approx(twin.add(x, 1.0), rel=1e-12)
    got = gp.add_batch(np.linspace(1, 2, 10), np.ones(10))
    np.testing.assert_allclose(
        got, twin.add_batch(np.linspace(1, 2, 10)[:, None], np.ones(10)), rtol=1e-12
    )


def test_drift_sees_a_damaged_factor():
    gp = GaussianProcess()
    gp.add_batch([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])
    healthy = state(gp)
    gp._now[1].panels[8 * 1 + 2] += 1e-6  # row 2, column 1 of the first panel
    assert gp.drift() > 1e-7
    gp.refresh()
    assert_healthy(gp)
    np.testing.assert_allclose(state(gp)[3:], healthy[3:], atol=1e-14)


def test_distant_inputs_are_uncorrelated():
    for kernel in KERNELS:
        gp = GaussianProcess(1.0, 0.1, kernel=kernel)
        assert gp.add(0.0, 0.5) == gp.add(1e200, 0.5)


@njit
def exp_negative(x):
    return core.exp_negative(x)


def test_exp_is_good_to_the_last_places():
    x = -np.concatenate([np.logspace(-20, 2.85, 400), [0.0, 708.0]])
    got = np.array([exp_negative(v) for v in x])
    np.testing.assert_allclose(got, np.exp(x), rtol=5e-16)
    assert exp_negative(-709.0) == 0.0
    assert exp_negative(-math.inf) == 0.0
    assert math.isnan(exp_negative(math.nan))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("start", [0, 3])
def test_forward_substitution_of_any_size(n, start):
    rng = np.random.default_rng(n)
    L = np.tril(rng.normal(size=(16, 16))) + 4 * np.eye(16)
    k = rng.normal(size=16)
    v = k.copy()
    forward_substitute(L[start:], start, start + n, v)
    block = slice(start, start + n)
    np.testing.assert_allclose(L[block, block] @ v[block], k[block], atol=1e-13)
    np.testing.assert_array_equal(
        np.delete(v, np.arange(16)[block]), np.delete(k, np.arange(16)[block])
    )


@pytest.mark.long
def test_ten_thousand_labels():
    n = 10_000
    X, y = data(n, 3, seed=9)
    gp = GaussianProcess(1.0, 1e-2, kernel="matern32")
    bounds = gp.add_batch(X, y)
    assert np.isfinite(bounds).all()
    assert (bounds >= 0).all()
    assert_healthy(gp)
    # The last label by the factor of the others, from the posterior itself.
    last = float(bounds[-1])
    gp.rewind(n - 1)
    assert gp.add(X[-1], y[-1]) == pytest.approx(last, rel=1e-6)


def test_to_dict_and_back():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    gp = GaussianProcess([0.7, 2.0], 0.05, amplitude=1.5, mean=0.2, kernel="matern32")
    assert GaussianProcess.from_dict(json.loads(json.dumps(gp.to_dict()))).n_labels == 0
    for x, label in zip(X, y, strict=True):
        gp.add(x, label, noise=0.1 if label > 0 else None)
    twin = GaussianProcess.from_dict(json.loads(json.dumps(gp.to_dict())))
    # rows are appended as they were: the same to the last digit
    np.testing.assert_array_equal(twin.predict(X), gp.predict(X))
    assert twin.add(X[0] + 1, 0.3) == gp.add(X[0] + 1, 0.3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Car"}, "`state` must describe a GaussianProcess of version 1"),
        ({"version": 7}, "`state` must describe a GaussianProcess of version 1"),
        ({"noise": -1.0}, "`state` is damaged: `noise` must be positive"),
        ({"kernel": "poly"}, "`state` is damaged: `kernel` must be one of"),
        ({"labels": [1.0]}, "`state` is damaged: `"),
        ({"labels": [1.0, None]}, "`state` is damaged: `labels` must hold real numbers"),
        ({"label_noise": [0.1, 0.0]}, "`state` is damaged: `noise` must be positive"),
        ({"scaled_inputs": [[1.0, 2.0], [1.0]]}, "`state` is damaged"),
        ({"extra": 1}, "`state` has the unknown 'extra'"),
    ],
)
def test_damaged_states(change, message):
    gp = GaussianProcess()
    gp.add_batch([[0.0, 1.0], [1.0, 2.0]], [0.1, 0.2])
    with pytest.raises(ValueError, match=message):
        GaussianProcess.from_dict(gp.to_dict() | change)
    with pytest.raises(ValueError, match="`state` must be a dict"):
        GaussianProcess.from_dict(None)


# Bounds of all labels, from the factor -----------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_bounds_are_those_that_add_returned(kernel):
    rng = np.random.default_rng(5)
    gp = GaussianProcess([1.0, 2.0], 0.1, amplitude=2.0, mean=0.3, kernel=kernel)
    assert gp.bounds().shape == (0,)
    told = []
    for t in range(CAPACITY + 5):
        # a noise of its own for every other label
        noise = None if t % 2 else float(rng.uniform(0.01, 1.0))
        told.append(gp.add(rng.uniform(0, 3, 2), rng.normal(), noise))
        if t % 10 == 0:
            np.testing.assert_allclose(gp.bounds(), told, rtol=1e-9, atol=1e-13)
    told += gp.add_batch(rng.uniform(0, 3, (70, 2)), rng.normal(size=70), 0.02).tolist()
    # s = L_tt^2 - noise loses what is small beside the noise: eps noise / s of it
    np.testing.assert_allclose(gp.bounds(), told, rtol=1e-9, atol=1e-13)
    gp.rewind(20)
    np.testing.assert_allclose(gp.bounds(), told[:20], rtol=1e-9, atol=1e-13)


def test_bounds_of_a_repeated_input_are_not_negative():
    gp = GaussianProcess(1.0, 1e6)
    gp.add_batch(np.zeros(50), np.zeros(50))
    assert (gp.bounds() >= 0).all()


def test_bounds_under_other_parameters_are_those_of_another_process():
    x, y = np.linspace(0, 5, 30), np.sin(np.linspace(0, 5, 30))
    one, other = GaussianProcess(1.0, 0.1), GaussianProcess(2.0, 0.05)
    one.add_batch(x, y)
    expected = other.add_batch(x, y)
    np.testing.assert_allclose(other.bounds(), expected, rtol=1e-9, atol=1e-13)
    assert not np.allclose(one.bounds(), expected, rtol=1e-2)


def test_a_quiet_copy_does_not_warn_of_labels_that_are_far_off():
    gp = GaussianProcess(1.0, 0.1)
    gp.copy(quiet=True).add(0.0, 1e3)
    with pytest.warns(UserWarning, match="prior standard deviations"):
        gp.copy().add(0.0, 1e3)
    with pytest.raises(TypeError, match="`quiet` must be"):
        gp.copy(quiet="yes")
