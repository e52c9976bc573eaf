"""GPy and Emukit, against GPy's own predictions."""

import warnings

import numpy as np
import pytest

from fastal import Stopper, gp_kl
from fastal.adapters import bounds_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of GPy and what it calls
    GPy = pytest.importorskip("GPy", reason="GPy is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of GPy; fastal's own are looked for by name

T = 25


def smooth():
    return GPy.kern.RBF(2, variance=1.5, lengthscale=0.9)


def constant_mean():
    return GPy.mappings.Constant(2, 1, value=3.0)


CASES = {
    "plain": {},
    "normalizer": {"normalizer": True},
    "white": {"kernel": "white", "normalizer": True},
    "mean": {"mean": True},
    "each": {"each": True},
}


def make(X, y, kernel=None, normalizer=None, mean=False, each=False, noise=0.01):
    k = smooth() + GPy.kern.White(2, variance=0.02) if kernel == "white" else smooth()
    Y = y[:, None]
    if each:
        model = GPy.models.GPHeteroscedasticRegression(X, Y, k)
        model.het_Gauss.variance = np.linspace(0.01, 0.2, T)[: len(y), None]
        return model
    if mean:
        return GPy.core.GP(
            X, Y, k, GPy.likelihoods.Gaussian(variance=noise), mean_function=constant_mean()
        )
    return GPy.models.GPRegression(X, Y, k, noise_var=noise, normalizer=normalizer)


@pytest.mark.parametrize("case", CASES)
def test_against_its_own_predictions(loop, case):
    X, y, _ = loop
    settings = CASES[case]
    model = make(X[:T], 20 + 5 * y[:T], **settings)
    got = bounds_of(model, X=X[:T], y=20 + 5 * y[:T])
    # The scale of the labels is that of all of them: prefixes get scaled labels and no normaliser.
    scaled = np.ravel(model.Y_normalized)
    white = 0.02 if settings.get("kernel") == "white" else 0.0
    noise = np.linspace(0.01, 0.2, T) if settings.get("each") else np.full(T, 0.01)
    expected = []
    for t in range(1, T):
        prefix = make(X[:t], scaled[:t], **{**settings, "normalizer": None})
        # GPy clips a variance of f to 1e-15 and counts white noise into it
        mean, var = prefix.predict_noiseless(X[[t]])
        expected.append(
            gp_kl(
                float(mean[0, 0]),
                float(var[0, 0]) - white,
                float(scaled[t]),
                float(noise[t]) + white + 1e-8,  # GPy's own
            )
        )
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)


def test_refuses(loop):
    X, y, _ = loop
    sparse = GPy.models.SparseGPRegression(X[:T], y[:T, None], num_inducing=5)
    classes = GPy.models.GPClassification(X[:T], (y[:T, None] > 0).astype(float))
    for model in (sparse, classes):
        with pytest.raises(
            TypeError,
            match=r"`model` \(GPy\) is not an exact Gaussian process with Gaussian noise",
        ):
            bounds_of(model)
    two = GPy.models.GPRegression(X[:T], np.c_[y, y][:T], smooth())
    with pytest.raises(ValueError, match="must have one output, got 2: one output is wanted"):
        bounds_of(two)
    model = make(X[:T], y[:T])
    with pytest.raises(ValueError, match="was fitted to other rows than `X`: to 25 rows"):
        bounds_of(model, X=X[: T + 1])


# Emukit


@pytest.fixture
def emukit():
    pytest.importorskip("emukit", reason="Emukit is not installed")
    from emukit.core import ContinuousParameter, ParameterSpace
    from emukit.experimental_design import ExperimentalDesignLoop
    from emukit.model_wrappers import GPyModelWrapper

    def make_loop(X, y):
        model = GPyModelWrapper(make(X, y))
        space = ParameterSpace([ContinuousParameter(name, -2, 2) for name in "xz"])
        return ExperimentalDesignLoop(space, model), model

    return make_loop


def test_emukit(loop, emukit):
    X, y, _ = loop
    design, wrapper = emukit(X[:T], y[:T])
    expected = bounds_of(wrapper.model)
    np.testing.assert_array_equal(bounds_of(wrapper), expected)
    np.testing.assert_array_equal(bounds_of(design), expected)
    stopper = Stopper()
    stopper.after_fit(design, initial=5)
    assert len(stopper) == T - 5


def test_emukit_lags_behind_inside_an_iteration(loop, emukit):
    X, y, _ = loop
    design, _ = emukit(X[:T], y[:T])
    said = []

    def look(loop_of_emukit, state):
        with pytest.raises(
            ValueError, match=r"`model` \(Emukit\) has 26 labels, and its model has seen 25"
        ):
            bounds_of(loop_of_emukit)
        said.append(len(state.X))

    design.iteration_end_event.append(look)
    design.run_loop(lambda x: np.sin(x[:, :1]), 1)
    assert said == [T + 1]
    assert len(bounds_of(design)) == T + 1


def test_emukit_refuses(loop, emukit):
    with pytest.raises(TypeError, match=r"`model` \(Emukit\) must be a loop or a wrapper"):
        bounds_of(emukit(*[v[:T] for v in loop[:2]])[0].loop_state)
