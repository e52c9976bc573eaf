import inspect
import warnings

import numpy as np
import pytest

from fastal import GaussianProcess, gp_kl
from fastal.adapters import bounds_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of torch, about linear_operator
    torch = pytest.importorskip("torch", reason="torch is not installed")
    botorch = pytest.importorskip("botorch", reason="BoTorch is not installed")
    import gpytorch
    from botorch.models import ModelListGP, MultiTaskGP, SingleTaskGP
    from botorch.models.transforms import Log, Normalize, Standardize

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.InputDataWarning")


# An earlier BoTorch, 0.14, conditions on inputs that its caller has transformed.
TRANSFORMS = "transform_inputs" in inspect.getsource(
    botorch.models.gpytorch.GPyTorchModel.condition_on_observations
)


def tensor(values):
    return torch.as_tensor(values, dtype=torch.double)


def kernel(lengthscale=0.9, amplitude=1.5):
    k = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2)).double()
    k.base_kernel.lengthscale = tensor(lengthscale)
    k.outputscale = tensor(amplitude)
    return k


def gp(X, y, noise=0.01, **settings):
    settings = {"covar_module": kernel(), "outcome_transform": None, **settings}
    model = SingleTaskGP(tensor(X), tensor(y).reshape(-1, 1), **settings)
    if "train_Yvar" not in settings:
        model.likelihood.noise = tensor(noise)
    with torch.no_grad():
        model.mean_module.constant.fill_(0.0)
    return model


class Plain(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = kernel()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


# All labels of a fitted model.


def step_by_step(make, X, y, noise):
    """Bounds from T predictions of the library, of the models that `make(t)` returns."""
    found = []
    for t in range(1, len(y)):
        model = make(t).eval()
        with torch.no_grad():
            f = model.posterior(X[[t]]) if hasattr(model, "posterior") else model(X[[t]])
            mean, var = float(f.mean.reshape(())), float(f.variance.reshape(()))
        found.append(gp_kl(mean, var, float(y[t]), float(noise[t])))
    return found


def plain(X, y, noise, dtype=torch.double):
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(dtype)
    likelihood.noise = torch.as_tensor(noise, dtype=dtype)
    X, y = (torch.as_tensor(values, dtype=dtype) for values in (X, y))
    return Plain(X, y, likelihood).to(dtype)


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.double, 1e-6), (torch.float, 1e-4)])
def test_bounds_of_gpytorch(loop, dtype, rtol):
    X, y, noise = loop
    X, y = X[:30], y[:30]
    model = plain(X, y, noise, dtype)
    got = bounds_of(model)
    expected = step_by_step(lambda t: plain(X[:t], y[:t], noise), tensor(X), y, [noise] * 30)
    np.testing.assert_allclose(got[1:], expected, rtol=rtol)
    assert got.dtype == np.float64
    assert got[0] == pytest.approx(gp_kl(0.0, 1.5, y[0], noise), rel=rtol)
    assert got.at_edge is False
    np.testing.assert_array_equal(bounds_of(model, X=X, y=tensor(y)), got)
    order = np.arange(30)[::-1]
    other = plain(X[order].copy(), y[order].copy(), noise, dtype)
    np.testing.assert_allclose(bounds_of(model, order=order), bounds_of(other), rtol=rtol)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("training", [True, False])
def test_bounds_of_botorch_with_transforms(loop, each, training):
    X, y, _ = loop
    X, y = X[:30], 100 + 20 * y[:30]
    noise = 400 * (np.linspace(0.01, 0.2, 30) if each else np.full(30, 0.01))
    low, high = X.min(axis=0), X.max(axis=0)
    centre, scale = y.mean(), y.std(ddof=1)

    def settings():
        return {
            "covar_module": kernel([0.2, 0.3], 1.0),
            "input_transform": Normalize(2, bounds=tensor(np.stack([low, high]))),
        }

    def fixed(t):  # the scale of the outcomes is that of all labels
        scaled = (y - centre) / scale
        more = {"train_Yvar": tensor(noise[:t, None] / scale**2)}
        return gp(X[:t], scaled[:t], **more, **settings())

    if each:
        more = {"train_Yvar": tensor(noise[:, None])}
        model = gp(X, y, outcome_transform=Standardize(1), **more, **settings())
    else:
        model = gp(X, y, 400 * 0.01 / scale**2, outcome_transform=Standardize(1), **settings())
    model.train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    inputs = model.train_inputs[0].clone()
    got = bounds_of(model)
    expected = step_by_step(fixed, tensor(X), (y - centre) / scale, noise / scale**2)
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)
    np.testing.assert_array_equal(bounds_of(model, X=X, y=y[:, None]), got)
    assert model.training is training
    assert model.likelihood.training is training
    assert torch.equal(model.train_inputs[0], inputs)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_bounds_after_labels_one_by_one(loop):
    X, y, noise = loop
    model = gp(X[:9], y[:9], noise)
    for t in range(9, 20):
        model.posterior(tensor(X[[t]]))  # BoTorch fills its caches
        model = model.condition_on_observations(tensor(X[[t]]), tensor(y[[t], None]))
    own = GaussianProcess(0.9, noise, amplitude=1.5).add_batch(X[:20], y[:20])
    np.testing.assert_allclose(bounds_of(model), own, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor:UserWarning")  # of older ones
@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch
def test_bounds_of_two_tasks(loop):
    X, y, _ = loop
    tasks, noise = np.arange(20) % 2, np.array([0.01, 0.1])
    inputs = tensor(np.c_[X[:20], tasks])

    def make(t):
        settings = {"task_feature": -1, "all_tasks": [0, 1], "outcome_transform": None}
        model = MultiTaskGP(inputs[:t], tensor(y[:t, None]), **settings)
        # an earlier BoTorch has one noise for all tasks
        model.likelihood.noise = tensor(noise[: model.likelihood.noise.numel()])
        return model

    if make(20).likelihood.noise.numel() == 1:
        noise[1] = noise[0]
    state = make(20).state_dict()

    def alike(t):
        model = make(t)
        model.load_state_dict(state)
        model.eval()
        return lambda x: gpytorch.models.ExactGP.__call__(model, x)

    expected = []
    for t in range(2, 20):  # BoTorch changes the covariance of a task without labels
        with torch.no_grad():
            f = alike(t)(inputs[[t]])
        expected.append(gp_kl(float(f.mean), float(f.variance), y[t], noise[tasks[t]]))
    model = make(20)
    model.load_state_dict(state)
    np.testing.assert_allclose(bounds_of(model)[2:], expected, rtol=1e-6)


def test_bounds_of_logarithms(loop):
    X, y, noise = loop
    X, labels = X[:20], np.exp(y[:20])
    model = gp(X, labels, noise, outcome_transform=Log())
    own = GaussianProcess(0.9, noise, amplitude=1.5).add_batch(X, y[:20])
    np.testing.assert_allclose(bounds_of(model), own, rtol=1e-6)
    np.testing.assert_allclose(bounds_of(model, X=X, y=labels), own, rtol=1e-6)


def test_bounds_at_the_edge(loop):
    X, y, noise = loop

    def edge(scales, constraint):
        base = gpytorch.kernels.RBFKernel(ard_num_dims=2, lengthscale_constraint=constraint)
        k = gpytorch.kernels.ScaleKernel(base).double()
        k.base_kernel.lengthscale = tensor(scales)
        return bounds_of(gp(X[:9], y[:9], noise, covar_module=k)).at_edge

    box, least = gpytorch.constraints.Interval(0.1, 10.0), gpytorch.constraints.GreaterThan(0.1)
    assert not edge([1.0, 1.0], box)
    assert edge([0.1005, 1.0], box)
    assert not edge([9.99, 1.0], box)
    assert edge([9.99, 9.95], box)
    assert edge([1.0, 0.1005], least)
    assert not edge([1e6, 1e6], least)
    assert not edge([1e-3, 1e-3], gpytorch.constraints.Positive())


def test_bounds_refuses(loop):
    X, y, noise = loop
    model = gp(X[:9], y[:9], noise)
    with pytest.raises(
        TypeError, match=r"must be a SingleTaskGP .* give `model.models\[0\]`\), got"
    ):
        bounds_of(ModelListGP(model))
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    with pytest.raises(ValueError, match=r"`model` \(BoTorch\) must have training data first"):
        bounds_of(Plain(None, None, likelihood))
    two = SingleTaskGP(tensor(X[:9]), tensor(np.c_[y, y * y][:9]))
    with pytest.raises(
        ValueError, match=r"`model` \(BoTorch\) must have one output, got labels of"
    ):
        bounds_of(two)
    assert two.training
    with pytest.raises(
        ValueError, match="was fitted to other rows than `X`: to 9 rows, `X` has 10"
    ):
        bounds_of(model, X=X[:10], y=y[:10])
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 0 is"):
        bounds_of(model, y=y[:9] + 1)
    with pytest.raises(ValueError, match=r"`X` must have 2 features as `model` \(BoTorch\)"):
        bounds_of(model, X=X[:9, :1])
    exact = gp(X[:9], y[:9], train_Yvar=torch.full((9, 1), 1e-6, dtype=torch.double))
    with pytest.warns(UserWarning, match=r"the noise of `model` \(BoTorch\) is about 1e-6 of"):
        bounds_of(exact)
    with torch.no_grad():
        model.mean_module.constant.fill_(float("nan"))
    with pytest.raises(
        ValueError, match=r"the mean of `model` \(BoTorch\) must be finite, got nan"
    ):
        bounds_of(model)
    assert model.training
