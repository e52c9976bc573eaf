"""scikit-optimize: its processes and its optimiser, against its own predictions."""

import warnings

import numpy as np
import pytest

from fastal import Stopper, gp_kl
from fastal.adapters import bounds_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of scikit-optimize, about what it calls
    pytest.importorskip("skopt", reason="scikit-optimize is not installed")
    from skopt import Optimizer
    from skopt.learning import GaussianProcessRegressor
    from skopt.learning.gaussian_process.kernels import RBF, ConstantKernel, Matern
    from skopt.space import Categorical

# Old code below a newer scikit-learn and NumPy.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*close to the specified:UserWarning"),
    pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning"),  # log of a noise of 0
    pytest.mark.filterwarnings("ignore:.*takes labels as exact:UserWarning"),  # it found none
]


def objective(x):
    return float(np.sin(3 * x[0]) + 0.5 * x[1] ** 2)


def step_by_step(model, start=1):
    """Bounds from predictions of scikit-optimize, each fitted to the labels before."""
    X, y = model.X_train_, np.ravel(model.y_train_)
    noise = model.alpha + (model.noise_ or 0.0)
    found = []
    for t in range(start, len(y)):
        prefix = GaussianProcessRegressor(model.kernel_, alpha=noise, optimizer=None)
        prefix.fit(X[:t], y[:t])
        mean, std = prefix.predict(X[[t]], return_std=True)
        found.append(gp_kl(float(mean[0]), float(std[0] ** 2), y[t], noise))
    return np.array(found)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("noise", ["gaussian", 0.01])
def test_a_process(loop, noise, normalize):
    X, y, _ = loop
    kernel = ConstantKernel(1.5) * Matern([0.9, 1.1], nu=2.5)
    optimizer = "fmin_l_bfgs_b" if noise == "gaussian" else None
    model = GaussianProcessRegressor(
        kernel, alpha=1e-10, noise=noise, normalize_y=normalize, optimizer=optimizer
    ).fit(X[:25], 20 + y[:25])
    got = bounds_of(model, X=X[:25], y=20 + y[:25])
    np.testing.assert_allclose(got[1:], step_by_step(model), rtol=1e-6)
    assert got[0] < 1e6  # without its noise it would be 1e8 and more


def optimizer(points=20, fit=True, **settings):
    settings = {"n_initial_points": 5, "random_state": 0, **settings}
    found = Optimizer([(-2.0, 2.0), (-1.0, 3.0)], "GP", **settings)
    for _ in range(points):
        x = found.ask()
        found.tell(x, objective(x))
    if not fit:
        x = found.ask()
        found.tell(x, objective(x), fit=False)
    return found


def test_an_optimiser():
    opt = optimizer()
    got = bounds_of(opt)
    model = opt.models[-1]
    assert len(got) == 20
    np.testing.assert_array_equal(got, bounds_of(model))
    np.testing.assert_allclose(got[1:], step_by_step(model), rtol=1e-5)
    stopper = Stopper()
    stopper.after_fit(opt, initial=5)
    assert len(stopper) == 15


def test_a_label_that_its_model_has_not_seen_is_noticed():
    opt = optimizer(8, fit=False)
    with pytest.raises(
        ValueError,
        match=r"`model` \(scikit-optimize\) has 9 labels, and its model has seen 8 of them",
    ):
        bounds_of(opt)


def test_refuses(loop):
    X, y, _ = loop
    early = optimizer(3)
    with pytest.raises(
        ValueError, match=r"`model` \(scikit-optimize\) has no model yet: it is fitted by"
    ):
        bounds_of(early)
    forest = Optimizer([(-2.0, 2.0)], "RF", n_initial_points=2, random_state=0)
    for _ in range(3):
        x = forest.ask()
        forest.tell(x, x[0] ** 2)
    with pytest.raises(TypeError, match="must be a Gaussian process or an Optimizer with base"):
        bounds_of(forest)
    seconds = Optimizer([(-2.0, 2.0)], "GP", acq_func="EIps", n_initial_points=2, random_state=0)
    for _ in range(3):
        x = seconds.ask()
        seconds.tell(x, (x[0] ** 2, 1.0 + abs(x[0])))
    with pytest.raises(TypeError, match=r"must be one output .*, got a MultiOutputRegressor"):
        bounds_of(seconds)
    with pytest.raises(ValueError, match="must be fitted first"):
        bounds_of(GaussianProcessRegressor(RBF(1.0)))
    model = GaussianProcessRegressor(RBF(0.9), noise=0.1, optimizer=None).fit(X[:9], y[:9])
    model.noise_ = 0.2
    with pytest.raises(ValueError, match="does not agree with its own factor"):
        bounds_of(model)


def test_categories():
    opt = Optimizer([(-2.0, 2.0), Categorical("abc")], "GP", n_initial_points=4, random_state=1)
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, x[0] ** 2 + "abc".index(x[1]))
    np.testing.assert_allclose(bounds_of(opt)[1:], step_by_step(opt.models[-1]), rtol=1e-5)
