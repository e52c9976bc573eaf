"""GPflow, against its own predictions."""

import warnings

import numpy as np
import pytest

from fastal import gp_kl
from fastal.adapters import bounds_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    gpflow = pytest.importorskip("gpflow", reason="GPflow is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow; ours are looked for by name

T = 25


def make(X, y, white=0.0):
    kernel = gpflow.kernels.SquaredExponential(variance=1.5, lengthscales=[0.9, 1.1])
    if white:
        kernel = kernel + gpflow.kernels.White(variance=white)
    mean = gpflow.functions.Constant(2.5)
    return gpflow.models.GPR((X, y[:, None]), kernel, mean_function=mean, noise_variance=0.01)


@pytest.mark.parametrize("white", [0.0, 0.02])
def test_against_its_own_predictions(loop, white):
    X, y, _ = loop
    y = 3 + y
    model = make(X[:T], y[:T], white)
    got = bounds_of(model, X=X[:T], y=y[:T])
    expected = []
    for t in range(1, T):
        mean, var = (float(v[0, 0]) for v in make(X[:t], y[:t], white).predict_f(X[[t]]))
        # predict_f counts white noise in the kernel into f
        expected.append(gp_kl(mean, var - white, y[t], 0.01 + white))
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)


def test_refuses(loop):
    X, y, _ = loop
    kernel = gpflow.kernels.SquaredExponential()
    sparse = gpflow.models.SGPR((X, y[:, None]), kernel, inducing_variable=X[:5])
    with pytest.raises(
        TypeError, match=r"`model` \(GPflow\) is not an exact Gaussian process .* got a SGPR"
    ):
        bounds_of(sparse)
    two = gpflow.models.GPR((X, np.c_[y, y]), kernel)
    with pytest.raises(ValueError, match="must have one output, got 2: one output is wanted"):
        bounds_of(two)
    with pytest.raises(ValueError, match="was fitted to other rows than `X`"):
        bounds_of(make(X, y), X=X[:9])
