"""The last label of an exact Gaussian process of GPyTorch or BoTorch: the peers of one `add`."""

import contextlib
import warnings

from ._peers import peer


class LastLabel:
    """A process (RBF, mean 0, double precision) that has all labels but the last.

    Parameters
    ----------
    implementation : str
        How the last one is added: "gpytorch" makes a new model of all labels, the faster way;
        "gpytorch fantasy" calls `get_fantasy_model`, "botorch" `condition_on_observations`. Both
        keep a factor, but take its pseudo-inverse by QR.
    X, y : ndarray
        All inputs and labels, at least three.
    scale, noise : float
        Length scale and variance of the noise.
    """

    def __init__(self, implementation, X, y, scale, noise):
        self.torch, self.gpytorch = peer("torch"), peer("gpytorch")
        self.botorch = peer("botorch.models") if implementation == "botorch" else None
        self.updates = implementation != "gpytorch"
        self.X, self.y = self.torch.tensor(X), self.torch.tensor(y)
        self.scale, self.noise = self.torch.tensor([scale, noise], dtype=self.torch.double)
        if self.updates:
            # The last label but one is added as the last will be: what is kept from label to
            # label is then what it would be in a loop.
            with self._exact():
                first = self._model(self.X[:-2], self.y[:-2])
                self._predict(first, self.X[-1:])
                self.model = self._add(first, self.X[-2:-1], self.y[-2:-1])
                self._predict(self.model, self.X[-1:])

    def add_and_predict(self, x):
        """Add the last label to what is there; return mean and variance of the function at `x`."""
        with self._exact():
            if self.updates:
                model = self._add(self.model, self.X[-1:], self.y[-1:])
            else:
                model = self._model(self.X, self.y)
            return self._predict(model, self.torch.tensor(x)[None, :])

    def _exact(self):
        """Return the settings in which the answer is exact.

        Beyond 800 rows GPyTorch would iterate, to two digits, unless BoTorch was imported. An
        update needs the caches of fast_pred_var; a new model is faster without.
        """
        settings = self.gpytorch.settings
        context = contextlib.ExitStack()
        context.enter_context(self.torch.no_grad())
        context.enter_context(settings.fast_pred_var(self.updates))
        context.enter_context(settings.max_cholesky_size(len(self.X) + 1))
        return context

    def _model(self, X, y):
        gpytorch = self.gpytorch
        kernel = gpytorch.kernels.RBFKernel().double()
        kernel.lengthscale = self.scale
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        likelihood.noise = self.noise
        mean = gpytorch.means.ZeroMean()
        if self.botorch:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # BoTorch would like inputs in [0, 1]
                return self.botorch.SingleTaskGP(
                    X,
                    y[:, None],
                    likelihood=likelihood,
                    covar_module=kernel,
                    mean_module=mean,
                    outcome_transform=None,
                ).eval()

        class Plain(gpytorch.models.ExactGP):
            def __init__(self):
                super().__init__(X, y, likelihood)
                self.mean, self.kernel = mean, kernel

            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

        return Plain().eval()

    def _add(self, model, x, y):
        if self.botorch:
            return model.condition_on_observations(x, y[:, None])
        return model.get_fantasy_model(x, y)

    def _predict(self, model, x):
        answer = model.posterior(x) if self.botorch else model(x)
        return answer.mean.item(), answer.variance.item()
