"""GaussianProcess: regression that grows label by label."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.cholesky import NOISE, RECIPROCAL, TARGET
from fastal._core.covariance import KINDS
from fastal._core.inputs import farthest
from fastal._core.panels import diagonal, pack_rows, panels_size, unpack_rows
from fastal._state import damaged_state, state_values
from fastal._types import Array
from fastal.models import posterior
from fastal.models.buffers import Now, expected_features
from fastal.models.growing import FAR, GrowingProcess


class GaussianProcess(GrowingProcess):
    """Gaussian-process regression that grows label by label.

    The Cholesky factor of the labels' covariance is extended in place: a label costs O(t^2), there
    is no refit, and the bound ``r_t`` comes with it.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,), optional
        One length scale, or one per feature.
    noise : float, optional
        Variance of the noise of a label; `add` and `add_batch` take another one per label.
    amplitude : float, optional
        Prior variance of the function.
    mean : float, optional
        Constant prior mean.
    kernel : {"rbf", "matern12", "matern32", "matern52"}, optional
        Covariance function; "rbf", ``amplitude * exp(-|x - x'|^2 / (2 lengthscale^2))``, is the
        paper's.

    Attributes
    ----------
    lengthscale, noise, amplitude, mean, kernel
        The parameters, read-only: bounds are comparable only under common parameters.
    n_labels : int
        Number of labels added.
    at_edge : bool
        Whether the parameters come from a fit that ended at an edge of its search box; read-only.

    Notes
    -----
    A label more than ten prior standard deviations off, ``(y - mean)^2 > 100 (amplitude + noise)``,
    gives one UserWarning per process: the bounds then measure the prior instead of the learning.

    A single label is one compiled call that reads the factor once, from its first number to its
    last. Several right-hand sides share one reading: in `add_batch` from 8 labels on, by blocks of
    64, and in `predict`.

    A pivot that is not above four roundings of its diagonal entry raises LinAlgError: the
    label repeats what the factor already knows to the last digit.

    Threads may share a process: changes wait for one another, and none is lost. A reader sees the
    labels of one moment, and does not wait.

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> gp = GaussianProcess(lengthscale=1.0, noise=0.01)
    >>> round(gp.add(0.0, 0.5), 4), round(gp.add(0.1, 0.6), 4)
    (60.0687, 0.8255)
    >>> mean, var = gp.predict([0.0, 2.0], return_var=True)
    >>> mean.round(4), var.round(4)
    (array([0.5306, 0.1795]), array([0.0066, 0.9493]))
    """

    _at_edge: bool

    def __init__(
        self,
        lengthscale: float | ArrayLike = 1.0,
        noise: float = 1e-2,
        *,
        amplitude: float = 1.0,
        mean: float = 0.0,
        kernel: str = "rbf",
    ) -> None:
        scale, variance = self._set_prior(lengthscale, amplitude, kernel)
        self._warned = self._at_edge = False
        self._clear(scale, check.positive("noise", noise), variance, check.real("mean", mean))

    _settings = ("lengthscale", "noise", "amplitude", "mean", "kernel")

    def _take_settings(self, changed: GaussianProcess) -> None:
        self._kernel, self._kind = changed._kernel, changed._kind
        self._at_edge = False
        self._clear(*changed._parameters)

    @property
    def at_edge(self) -> bool:
        """Whether `fit_hyperparameters` ended with the length scale at an edge of its search box.

        Within 1 % of a bound, in the logarithm; of several length scales, all at the upper bound or
        one at the lower one. Such a fit has not found its optimum, and criteria do not take it for
        a confirmation (see `Criterion.after_fit`). False without a fit.
        """
        return self._at_edge

    # Asking.

    @overload
    def predict(
        self, X: ArrayLike, *, return_var: Literal[False] = ..., return_cov: Literal[False] = ...
    ) -> Array: ...

    @overload
    def predict(
        self, X: ArrayLike, *, return_var: bool = ..., return_cov: bool = ...
    ) -> Array | tuple[Array, Array]: ...

    def predict(
        self, X: ArrayLike, *, return_var: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Posterior mean of the function, with its variance or covariance on request.

        Parameters
        ----------
        X : array_like, shape (m, d)
            Inputs; shape (m,) for one feature.
        return_var : bool, optional
            Return the variances, shape (m,), as well.
        return_cov : bool, optional
            Return the covariance, shape (m, m), as well.

        Returns
        -------
        mean : ndarray, shape (m,)
            The prior mean if there are no labels.
        var or cov : ndarray
            Of the function: without the noise of a label.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess(noise=0.01)
        >>> gp.predict([0.0, 1.0])
        array([0., 0.])
        >>> _ = gp.add(0.0, 1.0)
        >>> gp.predict([0.0, 1.0]).round(4)
        array([0.9901, 0.6005])
        """
        return_var, return_cov = (
            check.flag("return_var", return_var),
            check.flag("return_cov", return_cov),
        )
        if return_var and return_cov:
            raise ValueError("`return_var` and `return_cov` must not both be True")
        inputs = check.points("X", X, self._expected())
        if return_cov:
            now = self._now
            return posterior.joint(self._kind, now, self._scaled_for(now, inputs))
        return self._predict(self._now, inputs, return_var)

    def _scaled_for(self, now: Now, inputs: Array) -> Array:
        """Return inputs to predict at, divided by the length scales of one moment: (d, m)."""
        inputs = check.points("X", inputs, expected_features(now))
        return self._scaled("X", inputs, now[1].lengthscale)

    def _predict(self, now: Now, inputs: Array, return_var: bool) -> Array | tuple[Array, Array]:
        """Return means and, if wanted, variances at some inputs."""
        scaled = self._scaled_for(now, inputs)
        if return_var:
            return posterior.marginals(self._kind, now, scaled)
        return posterior.means(self._kind, now, scaled, self._weights(now))

    def _weights(self, now: Now) -> Array:
        """Return alpha = A^-1 (y - mean), kept until the labels change."""
        if now[0] == 0:
            return np.empty(0)
        known = self._alpha
        if known is not None and known[0] is now:
            return known[1]
        alpha = posterior.weights(now)
        if self._now is now:  # else it would keep old buffers in memory
            self._alpha = now, alpha
        return alpha

    def bounds(self) -> Array:
        """Return the bounds of all labels under the present parameters, in O(t).

        Returns
        -------
        ndarray, shape (n_labels,)
            ``r_t`` of each label given those before it, as `add` returned it, up to rounding.

        Notes
        -----
        With ``L L^T = K + N`` and ``z = L^-1 (y - mean)`` the posterior before label t has
        ``s_t + noise_t = L_tt^2`` and ``y_t - mu_t = L_tt z_t``: the factor holds every bound.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> gp.add_batch([0.0, 0.1, 3.0], [0.5, 0.6, -0.2]).round(4)
        array([60.0687,  0.8255, 50.053 ])
        >>> gp.bounds().round(4)
        array([60.0687,  0.8255, 50.053 ])
        """
        return posterior.label_bounds(self._now)

    def log_marginal_likelihood(self) -> float:
        """Log density of the labels under the prior, 0 if there are none.

        Returns
        -------
        float
            ``log p(y_1, ..., y_t)``.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess(noise=0.01)
        >>> _ = gp.add(0.0, 0.5)
        >>> round(gp.log_marginal_likelihood(), 6)
        -1.047676
        """
        return posterior.log_evidence(self._now)

    def prior_kl(self, *, jitter: float = 0.0) -> float:
        """Exact KL(q_t || p) of the posterior from the prior, for PAC-Bayesian bounds.

        Parameters
        ----------
        jitter : float, optional
            Added to the diagonals of both covariances at the labelled inputs; see
            `fastal.bound.gp_prior_kl`.

        Returns
        -------
        float
            The divergence in nats.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess(noise=0.01)
        >>> _ = gp.add(0.0, 0.5)
        >>> round(gp.prior_kl(), 4)
        1.935
        """
        jitter = check.zero_or_more("jitter", jitter)
        return posterior.divergence_from_prior(self._kind, self._now, jitter)

    # Keeping.

    def copy(self, *, quiet: bool = False) -> GaussianProcess:
        """Return a process of its own with the same labels.

        Parameters
        ----------
        quiet : bool, optional
            The copy does not warn of labels that are far off: for a caller that has warned.

        Returns
        -------
        GaussianProcess
            Equal to this one to the last bit.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> other = gp.copy()
        >>> _ = other.add(0.0, 0.5)
        >>> gp.n_labels, other.n_labels
        (0, 1)
        """
        new = self._copy(self._now)
        new._warned = new._warned or check.flag("quiet", quiet)
        return new

    def _copy(self, now: Now) -> GaussianProcess:
        n, old = now
        new = type(self).__new__(type(self))
        new._kernel, new._kind = self._kernel, self._kind
        new._warned, new._at_edge = self._warned, self._at_edge
        new._clear(old.lengthscale, old.noise, old.amplitude, old.mean)
        if n > 0:
            new._allocate(len(old.Z))
            kept = new._reserve(n)
            kept.Z[:, :n] = old.Z[:, :n]
            kept.labels[:, :n] = old.labels[:, :n]
            used = panels_size(n)
            kept.panels[:used] = old.panels[:used]
            new._now = n, kept
        return new

    def __copy__(self) -> GaussianProcess:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> GaussianProcess:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        return self._packed(self._now)

    def _packed(self, now: Now) -> dict[str, Any]:
        n, kept = now
        packed = np.empty(n * (n + 1) // 2)
        pack_rows(kept.panels, n, packed)
        return {
            "kernel": self._kernel,
            "parameters": (kept.lengthscale, kept.noise, kept.amplitude, kept.mean),
            "warned": self._warned,
            "at_edge": self._at_edge,
            "inputs": kept.Z[:, :n].copy(),
            "labels": kept.labels[:RECIPROCAL, :n].copy(),
            "factor": packed,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._kernel = state["kernel"]
        self._kind = KINDS[self._kernel]
        self._warned = state["warned"]
        self._at_edge = state.get("at_edge", False)  # none in pickles of earlier versions
        self._clear(*state["parameters"])
        inputs, labels = state["inputs"], state["labels"]
        n = labels.shape[1]
        if n > 0:
            self._allocate(len(inputs))
            kept = self._reserve(n)
            kept.Z[:, :n] = inputs
            kept.labels[:RECIPROCAL, :n] = labels
            unpack_rows(np.require(state["factor"], requirements=["C", "W"]), n, kept.panels)
            kept.labels[RECIPROCAL, :n] = 1.0 / diagonal(kept.panels, n)
            self._now = n, kept

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and labels as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`. Inputs are divided by the length scales, as they are kept.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> _ = gp.add(0.5, 1.2)
        >>> GaussianProcess.from_dict(gp.to_dict()).predict([0.5]) == gp.predict([0.5])
        array([ True])
        """
        return self._listed(self._now)

    def _listed(self, now: Now) -> dict[str, Any]:
        n, kept = now
        scale = kept.lengthscale
        state = {
            "kind": "GaussianProcess",
            "version": 1,
            "kernel": self._kernel,
            "lengthscale": scale if isinstance(scale, float) else scale.tolist(),
            "noise": kept.noise,
            "amplitude": kept.amplitude,
            "mean": kept.mean,
            "scaled_inputs": kept.Z[:, :n].T.tolist() if n else [],
            "labels": kept.labels[TARGET, :n].tolist() if n else [],
            "label_noise": kept.labels[NOISE, :n].tolist() if n else [],
        }
        # Not in every state: those of earlier versions have none.
        return state | ({"at_edge": True} if self._at_edge else {})

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> GaussianProcess:
        """Return the process that `to_dict` described; its factor is computed again, row by row.

        Parameters
        ----------
        state : dict
            From `to_dict`, perhaps by way of JSON.

        Returns
        -------
        GaussianProcess
            A new one. What is damaged or foreign raises a ValueError that says what is wrong.
        """
        parameters = ("kernel", "lengthscale", "noise", "amplitude", "mean")
        names = ("kind", "version", *parameters, "scaled_inputs", "labels", "label_noise")
        edge = False
        if isinstance(state, dict) and "at_edge" in state:
            state = state.copy()
            edge = state.pop("at_edge")
        values = state_values(state, names)
        if values[:2] != ["GaussianProcess", 1]:
            raise ValueError(
                f"`state` must describe a GaussianProcess of version 1, "
                f"got {check.short_repr(values[:2])}"
            )
        kernel, lengthscale, noise, amplitude, mean = values[2:7]
        with damaged_state():
            new = cls(lengthscale, noise, amplitude=amplitude, mean=mean, kernel=kernel)
            new._at_edge = check.flag("at_edge", edge)
            targets = check.vector("labels", values[8])
            if targets.size:
                inputs = check.points("scaled_inputs", values[7], new._expected())
                variances = check.vector("label_noise", values[9], targets.size)
                check.vector("labels", values[8], len(inputs))
                new._allocate(inputs.shape[1])
                for i in range(targets.size):
                    row = slice(i, i + 1)
                    new._append(
                        inputs[row].T, targets[row], check.all_positive("noise", variances[row])
                    )
        return new

    def refresh(self) -> None:
        """Compute the factor from scratch, from the labels kept.

        Raises
        ------
        numpy.linalg.LinAlgError
            If that fails; the process is as before then.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> _ = gp.add_batch([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])
        >>> gp.refresh()
        >>> gp.n_labels
        3
        """
        n, kept = self._now
        if n == 0:
            return
        new = self._copy(self._now)
        new.rewind(0)
        new._append(kept.Z[:, :n], kept.labels[TARGET, :n], kept.labels[NOISE, :n])
        self._now, self._alpha = new._now, None

    def drift(self) -> float:
        """Return ``max |L L^T - (K + N)|``, the backward error of the factor kept.

        Returns
        -------
        float
            0 if there are no labels. A healthy factor stays below
            ``4 t eps (amplitude + noise)``; `refresh` computes it from scratch.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> _ = gp.add_batch([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])
        >>> gp.drift() < 1e-14
        True
        """
        return posterior.backward_error(self._kind, self._now)

    # Learning the parameters.

    def fit_hyperparameters(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        amplitude: bool = False,
        ard: bool = False,
        mean: bool = False,
        restarts: int = 8,
        bounds: dict[str, tuple[float, float]] | None = None,
        seed: int = 0,
        prior: str | None = None,
    ) -> GaussianProcess:
        """Set the parameters by the marginal likelihood of some data.

        One length scale and the noise variance are fitted unless more is asked for. The data are
        not kept as labels.

        ``prior="weak"`` is for the few labels of a campaign, from five on, whose hyper-parameters
        nobody knows: it fits one length scale, noise, amplitude and mean, and labels need no
        scaling. Standardise the inputs yourself.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Inputs; shape (n,) for one feature.
        y : array_like, shape (n,)
            Labels.
        amplitude : bool, optional
            Fit the amplitude as well.
        ard : bool, optional
            Fit one length scale per feature.
        mean : bool, optional
            Fit the prior mean as well (in closed form).
        restarts : int, optional
            Starts of the search, at most 1,000,000: the present parameters and `restarts` - 1
            random ones, besides the optimum with one length scale if there are to be several. They
            are screened on 250 random rows (on all if fewer than 375); the three that are best for
            all rows, and differ, are polished on all rows.
        bounds : dict, optional
            Bounds ``(low, high)`` for "lengthscale", "noise" and "amplitude". Defaults: length
            scales from 0.001 to 1000 times the range of the inputs; noise from 1e-4 to 100
            and amplitude from 1e-3 to 1e3, both times the variance of y if the amplitude is
            fitted.
        seed : int, optional
            Seed of the random starts and rows.
        prior : {None, "weak"}, optional
            "weak": the covariance is ``a (R + g I)`` with one length scale l, and
            ``log(l / sqrt(d)) ~ N(0, 1)``, ``log(g) ~ N(-3, 2^2)``, within ``l / sqrt(d)`` from
            0.05 to 30 and g from 1e-4 to 10; d counts columns that are not constant. Mean (by
            generalised least squares) and amplitude a follow in closed form (restricted maximum
            likelihood); the noise variance is ``a g``. Not with `ard`, `amplitude` or `bounds`.
            Six starts, from a grid; ``restarts=1``: the present parameters, as a fit before left
            them, and one point of the grid. More than 1,000 rows: a random 1,000 of them.

        Returns
        -------
        GaussianProcess
            The process itself; its `at_edge` says whether the length scale ended at a bound.

        Raises
        ------
        ValueError
            If the process has labels already: their bounds would no longer be comparable. Rewind
            it to 0, or fit a new one. With ``prior="weak"`` also for fewer than five labels, and
            if all of them are equal: the amplitude would be 0.

        Examples
        --------
        >>> import numpy as np
        >>> from fastal import GaussianProcess
        >>> x = np.linspace(0, 10, 60)
        >>> y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=60)
        >>> gp = GaussianProcess().fit_hyperparameters(x, y)
        >>> 1.0 < gp.lengthscale < 3.0, 0.005 < gp.noise < 0.02
        (True, True)
        >>> gp = GaussianProcess().fit_hyperparameters(x[::5], 70 + 9 * y[::5], prior="weak")
        >>> round(gp.lengthscale, 1), round(gp.mean), gp.amplitude > 9
        (2.0, 67, True)
        """
        from fastal.models.fit import MOST_RESTARTS, Wanted, search  # it needs scipy.optimize

        self._refuse_labels()
        if not (prior is None or (isinstance(prior, str) and prior == "weak")):
            raise ValueError(f"`prior` must be 'weak' or None, got {check.short_repr(prior)}")
        weak = prior is not None
        wanted = Wanted(
            check.flag("amplitude", amplitude), check.flag("ard", ard), check.flag("mean", mean)
        )
        inputs = check.points("X", X, None)
        n = len(inputs)
        targets = check.vector("y", y, n)
        if n < 2 and not weak:  # which needs more, and says how many
            raise ValueError(f"`X` must have at least 2 rows, got {n}")
        restarts = check.count("restarts", restarts, 1, MOST_RESTARTS)
        seed = check.seed("seed", seed)
        limits = check.search_bounds(bounds, ("lengthscale", "noise", "amplitude"))
        if weak:
            given = {"ard": ard, "amplitude": amplitude, "bounds": bounds is not None}
            if any(given.values()):
                names = " and ".join(f"`{name}`" for name, is_given in given.items() if is_given)
                raise ValueError(
                    "`prior`='weak' fits one length scale and the amplitude, in a box of its own: "
                    f"leave out {names}"
                )
            found, edge = self._weakly_fitted(inputs, targets, restarts == 1, seed)
        else:
            found, edge = search(
                inputs, targets, self._kind, self._parameters, wanted, limits, restarts, seed
            )
        self._clear(*found)
        self._at_edge = edge
        return self

    def _weakly_fitted(
        self, inputs: Array, targets: Array, from_here: bool, seed: int
    ) -> tuple[tuple[float | Array, float, float, float], bool]:
        """Return the parameters of a fit with the weak prior, and whether it is at an edge."""
        from fastal.models.weak import weak_fit

        start = None
        if from_here:
            scale, noise, amplitude, _ = self._parameters
            # Several length scales: their geometric mean.
            start = float(np.exp(np.log(scale).mean())), noise / amplitude
        fit = weak_fit(inputs, targets, self._kind, start=start, seed=seed)
        return (fit.lengthscale, fit.noise, fit.amplitude, fit.mean), fit.at_edge

    def _refuse_labels(self) -> None:
        n = self._n
        if n > 0:
            raise ValueError(
                f"fit_hyperparameters needs a process without labels, this one has {n}: "
                "call rewind(0) first, or fit a new one"
            )


def mark_edge(gp: GaussianProcess, at_edge: bool) -> GaussianProcess:
    """Note whether the parameters of a process come from a fit at an edge; return the process."""
    gp._at_edge = at_edge
    return gp


def warn_if_far(gp: GaussianProcess, y: Array) -> None:
    """Warn once of labels that the prior of a process cannot explain."""
    if gp._warned or not y.size:
        return
    now = gp._now[1]
    worst = float(y[farthest(y, now.mean)])
    distance = worst - now.mean
    if distance * distance > FAR * (now.amplitude + now.noise):
        gp._warn_far(worst, now.noise)
