"""LaplaceClassifier: classification of two classes that grows label by label."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core import laplace, links, quadrature
from fastal._core.covariance import covariance_row
from fastal._state import damaged_state, state_values
from fastal._types import Array, Ints
from fastal.bound import gaussian_kl
from fastal.models.buffers import CAPACITY
from fastal.models.prior import KernelModel

# Inputs that are predicted at once: their whitened covariances with 200 labels fit into the cache.
PANEL = 128

# What a label changes of all labels before it, besides the factor.
MODE = ("a", "f", "root", "slope", "w")

# A saved mode may be this far from a stationary point of the posterior.
SAVED = 1e-6


class Now(NamedTuple):
    """The labels of one moment, set as one; what belongs to them is never written again.

    Inputs, labels and their covariances are shared with the next moment, which writes after them.
    """

    n: int
    features: int | None
    negative: int | None  # what stands for the negative class, None if there is none yet
    work: tuple[int, int]  # Newton steps and factorisations of the last label
    state: laplace.Laplace


class LaplaceClassifier(KernelModel):
    """Gaussian-process classification of two classes that grows label by label.

    The posterior of the latent function is approximated by a Gaussian at its mode (Laplace). After
    a label a new mode is found from the old one, and the bound ``r_t`` comes with it: the
    divergence of the approximations before and after the label (Corollary 1).

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,), optional
        One length scale, or one per feature.
    amplitude : float, optional
        Prior variance of the latent function, whose prior mean is 0.
    link : {"logistic", "probit"}, optional
        Probability of the positive class given the latent value: ``1 / (1 + exp(-f))``, or the
        distribution function of the normal distribution.
    kernel : {"rbf", "matern12", "matern32", "matern52"}, optional
        Covariance function, see `GaussianProcess`.
    kappa : float, optional
        Added to the diagonals of both covariances before ``r_t`` is taken; the paper's experiments
        have 0.01. The divergence without it is computed from factors that are never singular, and
        needs no such help.

    Attributes
    ----------
    lengthscale, amplitude, link, kernel, kappa
        The parameters, read-only: bounds are comparable only under common parameters.
    n_labels : int
        Number of labels added.

    Notes
    -----
    Labels are -1 and 1, or 0 and 1; the first one that is not 1 decides which.

    The mode is found by Newton's method to rounding (Rasmussen & Williams 2006, algorithm 3.1); a
    step is halved while it makes things worse. A label costs O(t^3), but only one or two
    factorisations as a rule: steps go on with the factor of the old mode while they converge. The
    absolute error of ``r_t`` is below 1e-13 times the amplitude (or 1e-13, if that is more).

    Threads may share a classifier: changes wait for one another, and none is lost. A reader sees
    the labels of one moment, and does not wait.

    Examples
    --------
    >>> from fastal.models import LaplaceClassifier
    >>> model = LaplaceClassifier(lengthscale=1.0, amplitude=4.0)
    >>> round(model.add(0.0, 1), 4), round(model.add(3.0, -1), 4)
    (0.3403, 0.3435)
    >>> model.predict_proba([0.0, 1.5, 3.0]).round(3)
    array([[0.324, 0.676],
           [0.5  , 0.5  ],
           [0.676, 0.324]])
    >>> model.predict([0.2, 2.8])
    array([ 1, -1])
    """

    _now: Now

    def __init__(
        self,
        lengthscale: float | ArrayLike = 1.0,
        *,
        amplitude: float = 1.0,
        link: str = "logistic",
        kernel: str = "rbf",
        kappa: float = 0.0,
    ) -> None:
        self._scales, self._variance = self._set_prior(lengthscale, amplitude, kernel)
        self._link = check.option_code("link", link, links.LINKS)
        self._kappa = check.zero_or_more("kappa", kappa)
        self._now = Now(0, None, None, (0, 0), laplace.new_laplace(0, 0))

    # What others read; one moment each.

    @property
    def _lengthscale(self) -> float | Array:
        return self._scales

    @property
    def _amplitude(self) -> float:
        return self._variance

    @property
    def _n(self) -> int:
        return self._now.n

    @property
    def _work(self) -> tuple[int, int]:
        return self._now.work

    @property
    def _state(self) -> laplace.Laplace:
        return self._now.state

    def _expected(self, now: Now | None = None) -> int | None:
        """Return how many features an input must have, None if any number is fine."""
        now = now or self._now
        if now.n > 0:
            return now.features
        return None if isinstance(self._scales, float) else self._scales.size

    @property
    def link(self) -> str:
        """Name of the link."""
        return list(links.LINKS)[self._link]

    @property
    def kappa(self) -> float:
        """What is added to the diagonals of both covariances of a bound."""
        return self._kappa

    @property
    def negative_class(self) -> int | None:
        """What stands for the negative class, -1 or 0; None while no label has said so."""
        return self._now.negative

    _settings = ("lengthscale", "amplitude", "link", "kernel", "kappa")

    def _take_settings(self, changed: LaplaceClassifier) -> None:
        self._kernel, self._kind = changed._kernel, changed._kind
        self._scales, self._variance = changed._scales, changed._variance
        self._link, self._kappa, self._now = changed._link, changed._kappa, changed._now

    # Growing.

    def add(self, x: ArrayLike, y: float) -> float:
        """Add one label and return its bound ``r_t`` without the constant C.

        Parameters
        ----------
        x : array_like, shape (d,)
            The input; a number for one feature. The first label fixes d.
        y : {-1, 1} or {0, 1}
            Its label.

        Returns
        -------
        float
            ``KL(q_t || q_{t+1})`` of the Gaussian posteriors at all labelled inputs, `x` among
            them.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the mode is not found. As after any other error, the classifier is as it was
            before the call.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier(lengthscale=[1.0, 3.0], link="probit")
        >>> round(model.add([0.0, 1.0], 0), 4)
        0.2429
        >>> model.n_labels
        1
        """
        label = check.real("y", y)
        check.class_labels("y", label, 1, self._now.negative)
        x = check.point(x, self._expected())
        signs, negative = check.class_labels("y", label, 1, self._now.negative)
        x = check.point(x, self._expected())
        return float(self._append(self._scaled("x", x[None, :]), signs, negative)[0])

    def add_batch(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Add labels in order and return their bounds.

        Parameters
        ----------
        X : array_like, shape (m, d)
            The inputs; shape (m,) for one feature.
        y : array_like, shape (m,)
            Their labels.

        Returns
        -------
        ndarray, shape (m,)
            ``r_t`` of each label, given all before it, as from `add`.

        Raises
        ------
        numpy.linalg.LinAlgError
            If a mode is not found; none of the labels is added then.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> model.add_batch([0.0, 0.1, 3.0], [1, 1, 0]).round(4)
        array([0.1122, 0.0608, 0.1131])
        """
        inputs = check.points("X", X, self._expected())
        labels = check.vector("y", y, len(inputs))
        inputs = check.points("X", inputs, self._expected())
        signs, negative = check.class_labels("y", labels, len(inputs), self._now.negative)
        return self._append(self._scaled("X", inputs), signs, negative)

    def _append(self, scaled: Array, signs: Array, negative: int | None) -> Array:
        """Add m labels, or none of them, inside the turn; scaled : (d, m), signs : (m,)."""
        state = self._room(len(scaled), signs.size)
        start, work = self._now.n, self._now.work
        bounds = np.empty(signs.size)
        for i in range(signs.size):
            n = start + i
            state.Z[:, n] = scaled[:, i]
            before = self._at_labels(state, n, n + 1) if self._kappa > 0.0 else None
            status, r, steps, factors = laplace.append(
                self._kind, self._amplitude, self._link, state, n, float(signs[i])
            )
            if status != 0:
                raise np.linalg.LinAlgError(
                    f"the mode of the posterior is not found at label {n + 1}; lower the amplitude "
                    f"({self._amplitude:g})"
                )
            if before is not None:
                after = self._at_labels(state, n + 1, n + 1)
                r = gaussian_kl(*before, *after, jitter=self._kappa)
            bounds[i], work = r, (steps, factors)
        self._now = Now(start + signs.size, len(scaled), negative, work, state)
        return bounds

    def _at_labels(self, state: laplace.Laplace, n: int, inputs: int) -> tuple[Array, Array]:
        """Return mean and covariance, given n labels, at the first inputs kept."""
        return self._posterior(np.ascontiguousarray(state.Z[:, :inputs]), state, n)

    def _room(self, features: int, more: int) -> laplace.Laplace:
        """Return a state for the next labels: mode and factor are copies, to be changed.

        The rest is shared, with room for the next labels; where there is none, the capacity at
        least doubles.
        """
        n, old = self._now.n, self._now.state
        T, total = old.a.size, n + more
        if self._now.features == features and total <= T:
            fresh = {name: np.zeros(T) for name in MODE}
            new = old._replace(U=np.empty((T, T)), **fresh)
        else:
            # An odd multiple of 8: rows begin at the same place of a cache line, but those of one
            # column do not all compete for the same lines.
            new = laplace.new_laplace(features, 8 * (-(-max(2 * T, total, CAPACITY) // 8) | 1))
            if n > 0:
                new.Z[:, :n], new.K[:n, :n] = old.Z[:, :n], old.K[:n, :n]
                new.sign[:n] = old.sign[:n]
        new.U[:n, :n] = old.U[:n, :n]
        for name in MODE:
            getattr(new, name)[:n] = getattr(old, name)[:n]
        return new

    # Asking.

    @overload
    def latent(
        self, X: ArrayLike, *, return_var: Literal[False] = ..., return_cov: Literal[False] = ...
    ) -> Array: ...

    @overload
    def latent(
        self, X: ArrayLike, *, return_var: bool = ..., return_cov: bool = ...
    ) -> Array | tuple[Array, Array]: ...

    def latent(
        self, X: ArrayLike, *, return_var: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Posterior mean of the latent function, with its variance or covariance on request.

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
            0 if there are no labels. At a labelled input it is the mode.
        var or cov : ndarray
            Of the Gaussian approximation.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add(0.0, 1)
        >>> mean, var = model.latent([0.0, 1.0], return_var=True)
        >>> mean.round(4), var.round(4)
        (array([0.4011, 0.2433]), array([0.8063, 0.9287]))
        """
        return_var, return_cov = (
            check.flag("return_var", return_var),
            check.flag("return_cov", return_cov),
        )
        if return_var and return_cov:
            raise ValueError("`return_var` and `return_cov` must not both be True")
        inputs = check.points("X", X, self._expected())
        now, scaled = self._look(inputs)
        if return_cov:
            return self._posterior(scaled, now.state, now.n)
        mean, var = self._marginals(scaled, now, return_var)
        return (mean, var) if return_var else mean

    def _look(self, inputs: Array) -> tuple[Now, Array]:
        """Return the labels of this moment, and inputs to predict at, scaled."""
        now = self._now
        return now, self._scaled("X", check.points("X", inputs, self._expected(now)))

    def _posterior(self, scaled: Array, state: laplace.Laplace, n: int) -> tuple[Array, Array]:
        """Return mean and covariance at scaled inputs, (d, m), given n labels."""
        m = scaled.shape[1]
        cov = self._covariance(self._amplitude, scaled, m, scaled, 0, m)
        V = np.empty((n, m))
        laplace.covariances(self._kind, self._amplitude, state, n, scaled, V)
        mean: Array = state.a[:n] @ V
        laplace.whiten(state, n, V, np.empty((4, n)))
        cov -= V.T @ V
        diagonal = np.einsum("ii->i", cov)
        np.maximum(diagonal, 0.0, out=diagonal)
        return mean, cov

    def posterior_scaled(self, scaled: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of the latent function at inputs that are scaled already.

        Parameters
        ----------
        scaled : array_like, shape (d, m)
            Inputs divided by the length scales, feature by feature, as ``prior.scale`` returns
            them: a pool that is asked about after each label is scaled once.

        Returns
        -------
        mean, var : ndarray, shape (m,)
            As from `latent`.

        Examples
        --------
        >>> import numpy as np
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier(2.0)
        >>> _ = model.add(0.0, 1)
        >>> mean, var = model.posterior_scaled(model.prior.scale("X", np.array([[0.0], [2.0]])))
        >>> mean.round(4), var.round(4)
        (array([0.4011, 0.2433]), array([0.8063, 0.9287]))
        """
        Z = check.finite_array("scaled", scaled)
        now = self._now
        features = self._expected(now)
        if Z.ndim != 2 or len(Z) != (len(Z) if features is None else features):
            wanted = "d" if features is None else features
            raise ValueError(f"`scaled` must have shape ({wanted}, m), got {Z.shape}")
        return self._marginals(np.ascontiguousarray(Z), now)

    def averaged_probabilities(self, mean: ArrayLike, var: ArrayLike) -> Array:
        """Probabilities of the two classes where the latent function has these moments.

        Parameters
        ----------
        mean, var : array_like, shape (m,)
            From `latent` or `posterior_scaled`.

        Returns
        -------
        ndarray, shape (m, 2)
            As from `predict_proba`.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> LaplaceClassifier().averaged_probabilities([0.0, 2.0], [1.0, 0.1]).round(4)
        array([[0.5   , 0.5   ],
               [0.1232, 0.8768]])
        """
        centres = check.vector("mean", mean)
        spreads = check.not_negative("var", check.vector("var", var, len(centres)))
        return self._probabilities(centres, spreads)

    def _marginals(self, scaled: Array, now: Now, variances: bool = True) -> tuple[Array, Array]:
        """Return means and, if wanted, variances at scaled inputs, (d, m), panel by panel."""
        m, n = scaled.shape[1], now.n
        mean, var = np.empty(m), np.empty(m if variances else 0)
        C = np.empty((4, n))  # not that of the state, which predictions leave alone
        for low in range(0, m, PANEL):
            panel = np.ascontiguousarray(scaled[:, low : low + PANEL])
            laplace.marginals(
                self._kind, self._amplitude, now.state, n, panel,
                np.empty((n, panel.shape[1])), C, mean[low : low + PANEL],
                var[low : low + PANEL],
            )  # fmt: skip
        return mean, var

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the two classes, averaged over the latent posterior.

        Parameters
        ----------
        X : array_like, shape (m, d)
            Inputs; shape (m,) for one feature.

        Returns
        -------
        ndarray, shape (m, 2)
            Of the negative and of the positive class.

        Notes
        -----
        The probit average has a closed form. The logistic one is an integral, by the trapezoidal
        rule or Gauss-Legendre panels; its absolute error is below 1e-14 for any mean and variance.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add_batch([0.0, 2.0], [1, 0])
        >>> model.predict_proba([0.0, 1.0]).round(4)
        array([[0.4246, 0.5754],
               [0.5   , 0.5   ]])
        """
        now, scaled = self._look(check.points("X", X, self._expected()))
        return self._probabilities(*self._marginals(scaled, now))

    def _probabilities(self, mean: Array, var: Array) -> Array:
        out = np.empty((mean.size, 2))
        quadrature.probabilities(self._link, mean, var, out)
        return out

    def predict(self, X: ArrayLike) -> Ints:
        """Return the more probable class; the positive one if both are equally so.

        Parameters
        ----------
        X : array_like, shape (m, d)
            Inputs; shape (m,) for one feature.

        Returns
        -------
        ndarray of int, shape (m,)
            1, or what stands for the negative class: -1 or 0.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add_batch([0.0, 2.0], [1, 0])
        >>> model.predict([-0.5, 0.5, 2.5])
        array([1, 1, 0])
        """
        now, scaled = self._look(check.points("X", X, self._expected()))
        mean, _ = self._marginals(scaled, now, False)
        negative = -1 if now.negative is None else now.negative
        return np.where(mean >= 0.0, 1, negative).astype(np.int64)

    def expected_loss(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the expected loss of labels under the latent posterior, ``-E log p(y | f)``.

        Parameters
        ----------
        X : array_like, shape (m, d)
            Inputs; shape (m,) for one feature.
        y : array_like, shape (m,)
            Their labels, coded as those of the classifier.

        Returns
        -------
        ndarray, shape (m,)
            In nats. This is the paper's loss, whose mean over the posterior the bound is about;
            ``-log E p(y | f)``, the log of `predict_proba`, is never larger.

        Notes
        -----
        An integral over one latent value, by the quadrature of `predict_proba`.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add_batch([0.0, 2.0], [1, 0])
        >>> model.expected_loss([0.0, 0.0], [1, 0]).round(4)
        array([0.6208, 0.9769])
        """
        inputs = check.points("X", X, self._expected())
        labels = check.vector("y", y, len(inputs))
        now, scaled = self._look(inputs)
        signs, _ = check.class_labels("y", labels, len(inputs), now.negative)
        return self._losses(scaled, signs, now)

    def _losses(self, scaled: Array, signs: Array, now: Now) -> Array:
        mean, var = self._marginals(scaled, now)
        out = np.empty(signs.size)
        quadrature.expected_losses(self._link, signs, mean, var, out)
        return out

    def replay_errors(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Return the errors on a test set after each label, all labels added once more.

        Parameters
        ----------
        X : array_like, shape (m, d)
            Inputs of the test set; shape (m,) for one feature.
        y : array_like, shape (m,)
            Their labels, coded as those of the classifier.

        Returns
        -------
        losses : ndarray, shape (n_labels,)
            Mean expected loss after each label.
        rmse : ndarray, shape (n_labels,)
            Root mean square of one minus the probability of the class that is there, the root of
            the Brier score.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add_batch([0.0, 2.0], [1, 0])
        >>> model.replay_errors([0.0, 2.0], [1, 0])[1].round(4)
        array([0.4657, 0.4246])
        """
        inputs = check.points("X", X, self._expected())
        labels = check.vector("y", y, len(inputs))
        if not len(labels):
            raise ValueError("`X` must have at least one row, got 0")
        now, scaled = self._look(inputs)
        signs, _ = check.class_labels("y", labels, len(labels), now.negative)
        model, losses, rmse = self._without_labels(), np.empty(now.n), np.empty(now.n)
        out = np.empty(signs.size)
        for t in range(now.n):
            model._append(now.state.Z[:, t, None], now.state.sign[t : t + 1], now.negative)
            mean, var = model._marginals(scaled, model._now)
            quadrature.expected_losses(self._link, signs, mean, var, out)
            losses[t] = out.mean()
            there = self._probabilities(mean, var)[np.arange(signs.size), (signs > 0).astype(int)]
            rmse[t] = np.sqrt(np.mean((1.0 - there) ** 2))
        return losses, rmse

    def log_marginal_likelihood(self) -> float:
        """Log probability of the labels under the prior, by the same approximation.

        Returns
        -------
        float
            ``log p(y_1, ..., y_t)``, 0 if there are no labels.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add(0.0, 1)
        >>> round(model.log_marginal_likelihood(), 6)
        -0.700655
        """
        now = self._now
        state, n = now.state, now.n
        fit = links.differentiate(self._link, state.sign, state.f, n, np.empty(n), np.empty(n))
        # log p(y | f) - 1/2 f^T K^-1 f - 1/2 log |B|
        logs = np.log(np.diagonal(state.U)[:n]).sum()
        return float(fit - 0.5 * (state.a[:n] @ state.f[:n]) - logs)

    def bounds(self) -> Array:
        """Return the bounds of all labels under the present parameters; they are added once more.

        Returns
        -------
        ndarray, shape (n_labels,)
            ``r_t`` of each label given those before it, as `add` returned it, in O(t^4).

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add_batch([0.0, 0.1, 3.0], [1, 1, 0])
        >>> model.bounds().round(4)
        array([0.1122, 0.0608, 0.1131])
        """
        now = self._now
        n, state = now.n, now.state
        return self._without_labels()._append(state.Z[:, :n], state.sign[:n], now.negative)

    def _without_labels(self) -> LaplaceClassifier:
        """Return a classifier with the same parameters and no labels."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        new._now = Now(0, None, None, (0, 0), laplace.new_laplace(0, 0))
        return new

    # Keeping.

    def rewind(self, n: int) -> None:
        """Forget all labels but the first `n`; their mode is computed again.

        Parameters
        ----------
        n : int
            Number of labels to keep, at most `n_labels`.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add_batch([0.0, 1.0, 2.0], [1, 1, -1])
        >>> model.rewind(1)
        >>> model.n_labels
        1
        """
        n = check.count("n", n)
        now = self._now
        if n > now.n:
            raise ValueError(
                f"`n` must be at most the number of labels, {now.n}, got {check.short_repr(n)}"
            )
        if n == now.n:
            return
        # A copy of everything: the rows after n are written again.
        state = laplace.Laplace(*(array.copy() for array in now.state))
        laplace.multiply(state.K, state.a, n, state.f)
        status, steps, factors = laplace.find_mode(self._link, state, n, False)
        if status != 0:  # pragma: no cover
            raise np.linalg.LinAlgError(f"the mode of the posterior of {n} labels is not found")
        laplace.refresh_mode(self._link, state, n)
        negative = now.negative if (state.sign[:n] < 0.0).any() else None
        self._now = Now(n, now.features, negative, (steps, factors), state)

    def copy(self) -> LaplaceClassifier:
        """Return a classifier of its own with the same labels.

        Returns
        -------
        LaplaceClassifier
            Equal to this one to the last bit.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> other = model.copy()
        >>> _ = other.add(0.0, 1)
        >>> model.n_labels, other.n_labels
        (0, 1)
        """
        new = type(self).__new__(type(self))
        now = self._now
        vars(new).update(vars(self))
        new._now = now._replace(state=laplace.Laplace(*(array.copy() for array in now.state)))
        return new

    def __copy__(self) -> LaplaceClassifier:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> LaplaceClassifier:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, labels and mode as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`. Inputs are divided by the length scales, as they are kept.

        Examples
        --------
        >>> from fastal.models import LaplaceClassifier
        >>> model = LaplaceClassifier()
        >>> _ = model.add(0.5, 1)
        >>> again = LaplaceClassifier.from_dict(model.to_dict())
        >>> again.predict_proba([0.5]) == model.predict_proba([0.5])
        array([[ True,  True]])
        """
        now, scale = self._now, self._lengthscale
        state, n = now.state, now.n
        negative = -1 if now.negative is None else now.negative
        return {
            "kind": "LaplaceClassifier",
            "version": 1,
            "kernel": self._kernel,
            "link": self.link,
            "lengthscale": scale if isinstance(scale, float) else scale.tolist(),
            "amplitude": self._amplitude,
            "kappa": self._kappa,
            "scaled_inputs": state.Z[:, :n].T.tolist() if n else [],
            "labels": np.where(state.sign[:n] > 0.0, 1, negative).tolist(),
            "weights": state.a[:n].tolist(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> LaplaceClassifier:
        """Return the classifier that `to_dict` described; its factor is computed again.

        Parameters
        ----------
        state : dict
            From `to_dict`, perhaps by way of JSON.

        Returns
        -------
        LaplaceClassifier
            A new one. What is damaged or foreign raises a ValueError that says what is wrong.
        """
        parameters = ("kernel", "link", "lengthscale", "amplitude", "kappa")
        names = ("kind", "version", *parameters, "scaled_inputs", "labels", "weights")
        kind, version, kernel, link, lengthscale, amplitude, kappa, inputs, labels, weights = (
            state_values(state, names)
        )
        if (kind, version) != ("LaplaceClassifier", 1) or type(version) is not int:
            raise ValueError(
                f"`state` must describe a LaplaceClassifier of version 1, got "
                f"{check.short_repr([kind, version])}"
            )
        with damaged_state():
            new = cls(lengthscale, amplitude=amplitude, link=link, kernel=kernel, kappa=kappa)
            signs, negative = check.class_labels("labels", labels, None, None)
            n = signs.size
            if n or inputs or weights:
                Z = check.points("scaled_inputs", inputs, new._expected())
                check.class_labels("labels", labels, len(Z), None)
                new._restore(Z.T, signs, check.vector("weights", weights, n), negative)
        return new

    def _restore(self, Z: Array, signs: Array, weights: Array, negative: int | None) -> None:
        """Take inputs, labels and the weights of their mode, into an empty classifier."""
        d, n = Z.shape
        kept = self._room(d, n)
        kept.Z[:, :n], kept.sign[:n], kept.a[:n] = Z, signs, weights
        for i in range(n):
            covariance_row(self._kind, self._amplitude, kept.Z, 0, i + 1, kept.Z, i, kept.K[i])
            kept.K[:i, i] = kept.K[i, :i]
        laplace.refresh_mode(self._link, kept, n)
        # At the mode the gradient, slope - a, is zero, but for what the rounding of f does to it.
        if not (np.abs(kept.slope[:n] - weights).max() <= SAVED * max(1.0, 1e-8 * self._amplitude)):
            raise ValueError("`weights` are not those of the mode of the labels")
        self._now = Now(n, d, negative, (0, 0), kept)
