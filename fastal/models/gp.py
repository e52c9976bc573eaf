"""GaussianProcess: owns the buffers, turns the status of a kernel into an exception."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dtrtrs

from fastal._core.cholesky import (
    NOISE,
    TARGET,
    WHITE,
    append_block,
    append_row,
    copy_lower,
    pack_lower,
    row_variances,
    unpack_lower,
)
from fastal._core.covariance import KINDS, covariance_rows
from fastal._state import state_values
from fastal._types import Array
from fastal._validation import (
    all_positive,
    count,
    flag,
    label_noise,
    point,
    points,
    positive,
    real,
    search_bounds,
    short_repr,
    vector,
    zero_or_more,
)
from fastal._validation import seed as checked_seed
from fastal.bound import gp_prior_kl, prior_kl_of_factor
from fastal.models.prior import KernelModel, scale_text

Found = TypeVar("Found")

_ARRAY, _DOUBLE = np.ndarray, np.dtype(np.float64)

# A label this many prior variances (amplitude + noise) from the mean, squared, is out of what the
# prior can explain: ten standard deviations.
FAR = 100.0

# First capacity of the buffers; it doubles.
CAPACITY = 64

# Labels that add_batch appends by one triangular solve and one product of matrices. The block's
# own triangle is done by plain loops, whose share is BLOCK / n.
BLOCK = 64

# Below this number of labels add_batch goes row by row: the solve of BLAS packs the whole factor
# first, which costs as much as six substitutions.
FEW = 8

# Inputs that predict solves for at once: enough for the solve to run at full speed.
PANEL = 512


class Kept(NamedTuple):
    """Parameters and buffers of a process; the rows of the first n labels are only read.

    Whoever has the turn writes the rows behind them, and then says that there are more. After a
    `rewind` rows are written again: it makes a new one of these, by which a reader notices.
    """

    lengthscale: float | Array
    noise: float
    amplitude: float
    mean: float
    shape: tuple[int] | None  # of an input, None before the first label
    capacity: int
    Z: Array  # (d, capacity) inputs over length scales
    labels: Array  # (3, capacity) target, whitened target and noise
    L: Array  # (capacity, capacity)
    x: Array  # (d,) scratch: the input that is being added
    per_length: Array  # (d,) reciprocal length scales


# Number of labels, and where they are: set as one, after a complete change.
Now = tuple[int, Kept]


class GaussianProcess(KernelModel):
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

    Notes
    -----
    A label more than ten prior standard deviations off, ``(y - mean)^2 > 100 (amplitude + noise)``,
    gives one UserWarning a process: the bounds then measure the prior instead of the learning.

    A single label is one compiled call of plain loops. BLAS is used where several right-hand sides
    share the factor: in `add_batch` from 8 labels on, by blocks of 64, and in `predict`.

    A pivot that is not above four roundings of its diagonal entry raises LinAlgError: the
    label repeats what the factor already knows to the last digit.

    Threads may share a process: changes wait for one another, and none is lost. Whoever reads sees
    the labels of one moment, and waits for nobody.

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

    _now: Now
    # The weights of `_weights`, and the labels that they belong to.
    _alpha: tuple[Now, Array] | None

    def __init__(
        self,
        lengthscale: float | ArrayLike = 1.0,
        noise: float = 1e-2,
        *,
        amplitude: float = 1.0,
        mean: float = 0.0,
        kernel: str = "rbf",
    ) -> None:
        self._writing = None
        scale, variance = self._set_prior(lengthscale, amplitude, kernel)
        self._warned = False
        self._clear(scale, positive("noise", noise), variance, real("mean", mean))

    def _clear(
        self, lengthscale: float | Array, noise: float, amplitude: float, mean: float
    ) -> None:
        """Take parameters; forget the labels and the buffers."""
        none, nothing = np.empty((0, 0)), np.empty(0)
        self._alpha = None
        self._now = 0, Kept(
            lengthscale, noise, amplitude, mean, None, 0, none, none, none, nothing, nothing
        )  # fmt: skip

    @property
    def _parameters(self) -> tuple[float | Array, float, float, float]:
        kept = self._now[1]
        return kept.lengthscale, kept.noise, kept.amplitude, kept.mean

    @property
    def amplitude(self) -> float:
        """Prior variance of the function."""
        return self._now[1].amplitude

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""
        n, kept = self._now
        return kept.labels[WHITE, :n].copy() if n else np.empty(0)

    @property
    def label_noise(self) -> Array:
        """Noise variance of each label."""
        n, kept = self._now
        return kept.labels[NOISE, :n].copy() if n else np.empty(0)

    @property
    def scaled_inputs(self) -> Array:
        """Inputs of the labels, divided by the length scales: (d, n_labels)."""
        n, kept = self._now
        return kept.Z[:, :n].copy() if n else np.empty((0, 0))

    # What others read; one moment each.

    @property
    def _n(self) -> int:
        return self._now[0]

    @property
    def _features(self) -> int | None:
        shape = self._now[1].shape
        return None if shape is None else shape[0]

    @property
    def _lengthscale(self) -> float | Array:
        return self._now[1].lengthscale

    @property
    def _amplitude(self) -> float:
        return self._now[1].amplitude

    @property
    def _Z(self) -> Array:  # noqa: N802
        return self._now[1].Z

    @property
    def _labels(self) -> Array:
        return self._now[1].labels

    @property
    def _L(self) -> Array:  # noqa: N802
        return self._now[1].L

    def _expected(self) -> int | None:
        return _features(self._now)

    def _read(self, look: Callable[[Now], Found]) -> Found:
        """Return what `look` finds among the labels of one moment.

        Labels that are added leave the others as they are. Only if it was rewound meanwhile, rows
        may be new: then once more, while nobody changes it.
        """
        now = self._now
        try:
            found = look(now)
        except Exception:
            if self._now[1] is now[1]:
                raise
        else:
            if self._now[1] is now[1]:
                return found
        with self._lock():
            return look(self._now)

    # What the process is.

    @property
    def noise(self) -> float:
        """Noise variance of a label that is added without one of its own."""
        return self._now[1].noise

    @property
    def mean(self) -> float:
        """Prior mean."""
        return self._now[1].mean

    def __repr__(self) -> str:
        n, kept = self._now
        return (
            f"GaussianProcess(lengthscale={scale_text(kept.lengthscale)}, noise={kept.noise:.6g}, "
            f"amplitude={kept.amplitude:.6g}, mean={kept.mean:.6g}, kernel={self._kernel!r}; "
            f"{n} labels)"
        )

    # Growing.

    def add(self, x: ArrayLike, y: float, noise: float | None = None) -> float:
        """Add one label and return its bound ``r_t`` without the constant C.

        Parameters
        ----------
        x : array_like, shape (d,)
            The input; a number for one feature. The first label fixes d.
        y : float
            Its label.
        noise : float, optional
            Noise variance of this label, if not that of the process.

        Returns
        -------
        float
            ``gp_kl`` of the posterior at `x` before the label.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the factor breaks down at this label. As after any other error, the process is as
            it was before the call.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess(lengthscale=[1.0, 3.0], noise=0.1)
        >>> round(gp.add([0.0, 1.0], 0.3), 4)
        4.2101
        >>> gp.n_labels
        1
        """
        if type(y) is not float:
            y = float(y) if isinstance(y, float) else real("y", y)
        if noise is not None:
            noise = positive("noise", noise)
        # What is not yet an array of numbers may be anything: its own code runs before the turn.
        if type(x) is not _ARRAY or (x.dtype is not _DOUBLE and x.dtype.kind not in "fiu"):
            x = point(x, self._expected())
        writing = self._writing
        if writing is None or writing._is_owned():
            writing = self._turn()
        with writing:
            n, kept = self._now
            _, default, amplitude, mean, shape, capacity, Z, labels, L, scratch, per_length = kept
            if n == 0 or n == capacity or x.shape != shape:
                x = point(x, _features(self._now))
                kept = self._begin(x.size) if n == 0 else self._reserve(n + 1)
                Z, labels, L, scratch, per_length = kept[6:]
            # An array of the right shape and type is copied unseen: the kernel notices NaN and inf.
            scratch[...] = x
            if noise is None:
                noise = default
            distance = y - mean
            if distance * distance > FAR * (amplitude + noise) and not self._warned:
                real("y", y)
                self._warn_far(y, noise)
            status, r = append_row(
                self._kind, amplitude, mean, scratch, per_length, y, noise, n, Z, labels, L
            )
            if status != 0:
                real("y", y)
                point(x, _features(self._now))
                _fail(status, y, Z)
            self._now = n + 1, kept
        return r if type(r) is float else float(r)

    def add_batch(
        self, X: ArrayLike, y: ArrayLike, noise: float | ArrayLike | None = None
    ) -> Array:
        """Add labels in order, by blocks, and return their bounds.

        The same as calling `add` for each, at the speed of matrix multiplication.

        Parameters
        ----------
        X : array_like, shape (m, d)
            The inputs; shape (m,) for one feature.
        y : array_like, shape (m,)
            Their labels.
        noise : float or array_like, shape (m,), optional
            Noise variance of these labels, if not that of the process.

        Returns
        -------
        ndarray, shape (m,)
            ``r_t`` of each label, given all before it.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the factor breaks down at one of the labels; none of them is added then.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> gp.add_batch([0.0, 0.1, 3.0], [0.5, 0.6, -0.2]).round(4)
        array([60.0687,  0.8255, 50.053 ])
        """
        inputs = points("X", X, self._expected())
        m = len(inputs)
        targets = vector("y", y, m)
        variances = None if noise is None else label_noise(noise, 0.0, m)
        if m == 0:
            return np.empty(0)
        with self._turn():
            n, kept = self._now
            # Perhaps another thread has fixed the number of features meanwhile.
            inputs = points("X", inputs, _features(self._now))
            if variances is None:
                variances = np.full(m, kept.noise)
            if n == 0:
                kept = self._begin(inputs.shape[1])
            scaled = self._scaled("X", inputs, kept.lengthscale)
            if not self._warned:
                distance = targets - kept.mean
                ratio = distance / np.sqrt(kept.amplitude + variances)
                worst = int(np.abs(ratio).argmax())
                if ratio[worst] * ratio[worst] > FAR:
                    self._warn_far(float(targets[worst]), float(variances[worst]))
            return self._append(scaled, targets, variances)

    def _append(self, scaled: Array, y: Array, noise: Array) -> Array:
        """Add m labels, or none of them, whoever has the turn; return their bounds.

        scaled : (d, m).  y, noise : (m,).
        """
        start, m = self._now[0], y.size
        kept = self._reserve(start + m)
        kind, amplitude, mean = self._kind, kept.amplitude, kept.mean
        Z, labels, L = kept.Z, kept.labels, kept.L
        Z[:, start : start + m] = scaled
        bounds = np.empty(m)
        if m < FEW:
            ones = np.ones(len(scaled))
            for i in range(m):
                x, t = scaled[:, i].copy(), start + i
                status, bounds[i] = append_row(
                    kind, amplitude, mean, x, ones, float(y[i]), float(noise[i]), t, Z, labels, L
                )
                if status != 0:
                    _fail(status, float(y[i]), Z)
        for low in range(0, m if m >= FEW else 0, BLOCK):
            high = min(m, low + BLOCK)
            t, b = start + low, high - low
            # Rows t to t + b of the factor, left of the block: V = K_bt L^-T; S = V V^T
            rows = L[t : t + b]
            covariance_rows(kind, amplitude, Z, t, Z, t, rows)
            _solve_rows(L, rows, t)
            V = rows[:, :t]
            status = append_block(
                kind,
                amplitude,
                mean,
                y[low:high].copy(),
                noise[low:high].copy(),
                V @ V.T,
                t,
                Z,
                labels,
                L,
                bounds[low:high],
            )
            if status != 0:
                _fail(status, float(y[abs(status) - 1 - start]), Z)
        self._now = start + m, kept
        return bounds

    def _begin(self, features: int) -> Kept:
        """Make buffers for inputs of so many features, before the first label."""
        kept = self._now[1]
        if kept.shape != (features,):
            capacity = max(kept.capacity, CAPACITY)
            per_length = np.empty(features)
            per_length[:] = 1.0 / np.asarray(kept.lengthscale)
            kept = kept._replace(
                shape=(features,),
                capacity=capacity,
                Z=np.zeros((features, capacity)),
                labels=np.zeros((3, capacity)),
                L=kept.L if kept.capacity == capacity else _square(capacity),
                x=np.empty(features),
                per_length=per_length,
            )
            self._now = 0, kept
        return kept

    def _reserve(self, total: int) -> Kept:
        """Make room for so many labels; the capacity at least doubles."""
        n, kept = self._now
        if total > kept.capacity:
            # A multiple of 8: every row of L begins at the beginning of a cache line.
            capacity = -(-max(2 * kept.capacity, total) // 8) * 8
            L = _square(capacity)
            copy_lower(kept.L, L, n)
            Z, labels = np.zeros((len(kept.Z), capacity)), np.zeros((3, capacity))
            Z[:, :n] = kept.Z[:, :n]
            labels[:, :n] = kept.labels[:, :n]
            kept = kept._replace(capacity=capacity, Z=Z, labels=labels, L=L)
            self._now, self._alpha = (n, kept), None
        return kept

    def _warn_far(self, y: float, noise: float) -> None:
        kept = self._now[1]
        deviations = abs(y - kept.mean) / math.sqrt(kept.amplitude + noise)
        warnings.warn(
            f"the label {y:g} is {deviations:.3g} prior standard deviations from the prior mean "
            f"{kept.mean:g}; centre and scale the labels, or set `mean` and `amplitude` "
            "(fit_hyperparameters(..., mean=True, amplitude=True) finds both)",
            UserWarning,
            stacklevel=3,
        )
        self._warned = True

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
        return_var, return_cov = flag("return_var", return_var), flag("return_cov", return_cov)
        if return_var and return_cov:
            raise ValueError("`return_var` and `return_cov` must not both be True")
        inputs = points("X", X, self._expected())
        if return_cov:
            return self._read(lambda now: self._joint(now, inputs))
        mean, var = self._read(lambda now: self._marginals(now, inputs, return_var))
        return mean if var is None else (mean, var)

    def _joint(self, now: Now, inputs: Array) -> tuple[Array, Array]:
        """Return mean and covariance at some inputs."""
        n, kept = now
        scaled = self._scaled("X", points("X", inputs, _features(now)), kept.lengthscale)
        m = len(inputs)
        mean, cov = np.full(m, kept.mean), self._covariance(kept.amplitude, scaled, m, scaled, 0, m)
        if n > 0:
            V = self._covariance(kept.amplitude, kept.Z, n, scaled, 0, m)
            _solve_rows(kept.L, V, n)
            mean += V @ kept.labels[WHITE, :n]
            cov -= V @ V.T
            diagonal = np.einsum("ii->i", cov)
            np.maximum(diagonal, 0.0, out=diagonal)
        return mean, cov

    def _marginals(self, now: Now, inputs: Array, variances: bool) -> tuple[Array, Array | None]:
        """Return means and, if wanted, variances at some inputs, panel by panel."""
        n, kept = now
        scaled = self._scaled("X", points("X", inputs, _features(now)), kept.lengthscale)
        m = len(inputs)
        mean, var = np.full(m, kept.mean), np.full(m, kept.amplitude) if variances else None
        alpha = np.empty(0) if variances or n == 0 else self._weights(now)
        for low in range(0, m if n > 0 else 0, PANEL):
            high = min(m, low + PANEL)
            V = self._covariance(kept.amplitude, kept.Z, n, scaled, low, high)
            if var is None:
                # mu = m + k(x)^T A^-1 (y - m)
                mean[low:high] += V @ alpha
                continue
            # mu = m + v.z, s = k(x, x) - v.v, v = L^-1 k(x)
            _solve_rows(kept.L, V, n)
            mean[low:high] += V @ kept.labels[WHITE, :n]
            row_variances(kept.amplitude, V, var[low:high])
        return mean, var

    def _weights(self, now: Now) -> Array:
        """Return alpha = A^-1 (y - mean), kept until the labels change."""
        known = self._alpha
        if known is not None and known[0] is now:
            return known[1]
        n, kept = now
        # L^T alpha = z
        solved, _ = dtrtrs(kept.L[:n].T, kept.labels[WHITE, :n], lower=0)
        alpha = np.ascontiguousarray(solved).reshape(n)
        if self._now is now:  # else buffers that nobody needs would stay
            self._alpha = now, alpha
        return alpha

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
        return self._read(self._evidence)

    @staticmethod
    def _evidence(now: Now) -> float:
        n, kept = now
        if n == 0:
            return 0.0
        white = kept.labels[WHITE, :n]
        # -1/2 z.z - sum log L_ii - t/2 log(2 pi)
        logs = np.log(np.diagonal(kept.L)[:n]).sum()
        return float(-0.5 * (white @ white) - logs - 0.5 * n * math.log(2.0 * math.pi))

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
        jitter = zero_or_more("jitter", jitter)
        return self._read(lambda now: self._prior_kl(now, jitter))

    def _prior_kl(self, now: Now, jitter: float) -> float:
        n, kept = now
        if n == 0:
            return 0.0
        y, noise = kept.labels[TARGET, :n], kept.labels[NOISE, :n]
        if jitter == 0.0:
            return prior_kl_of_factor(kept.L[:n, :n], y - kept.mean, noise)
        K = self._covariance(kept.amplitude, kept.Z, n, kept.Z, 0, n)
        return gp_prior_kl(K, y, noise, mean=kept.mean, jitter=jitter)

    # Keeping.

    def rewind(self, n: int) -> None:
        """Forget all labels but the first `n`.

        Parameters
        ----------
        n : int
            Number of labels to keep, at most `n_labels`.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> _ = gp.add_batch([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])
        >>> gp.rewind(1)
        >>> gp.n_labels
        1
        """
        n = count("n", n)
        with self._turn():
            there, kept = self._now
            if n > there:
                raise ValueError(
                    f"`n` must be at most the number of labels, {there}, got {short_repr(n)}"
                )
            if n < there:
                self._now = n, Kept(*kept)

    def copy(self) -> GaussianProcess:
        """Return a process of its own with the same labels.

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
        return self._read(self._copy)

    def _copy(self, now: Now) -> GaussianProcess:
        n, old = now
        new = type(self).__new__(type(self))
        new._writing = None
        new._kernel, new._kind, new._warned = self._kernel, self._kind, self._warned
        new._clear(old.lengthscale, old.noise, old.amplitude, old.mean)
        if n > 0:
            new._begin(len(old.Z))
            kept = new._reserve(n)
            kept.Z[:, :n] = old.Z[:, :n]
            kept.labels[:, :n] = old.labels[:, :n]
            copy_lower(old.L, kept.L, n)
            new._now = n, kept
        return new

    def __copy__(self) -> GaussianProcess:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> GaussianProcess:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        return self._read(self._packed)

    def _packed(self, now: Now) -> dict[str, Any]:
        n, kept = now
        packed = np.empty(n * (n + 1) // 2)
        pack_lower(kept.L, n, packed)
        return {
            "kernel": self._kernel,
            "parameters": (kept.lengthscale, kept.noise, kept.amplitude, kept.mean),
            "warned": self._warned,
            "inputs": kept.Z[:, :n].copy(),
            "labels": kept.labels[:, :n].copy(),
            "factor": packed,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._writing = None
        self._kernel = state["kernel"]
        self._kind = KINDS[self._kernel]
        self._warned = state["warned"]
        self._clear(*state["parameters"])
        inputs, labels = state["inputs"], state["labels"]
        n = labels.shape[1]
        if n > 0:
            self._begin(len(inputs))
            kept = self._reserve(n)
            kept.Z[:, :n] = inputs
            kept.labels[:, :n] = labels
            unpack_lower(np.require(state["factor"], requirements=["C", "W"]), n, kept.L)
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
        return self._read(self._listed)

    def _listed(self, now: Now) -> dict[str, Any]:
        n, kept = now
        scale = kept.lengthscale
        return {
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
        values = state_values(state, names)
        if values[:2] != ["GaussianProcess", 1]:
            raise ValueError(
                f"`state` must describe a GaussianProcess of version 1, "
                f"got {short_repr(values[:2])}"
            )
        kernel, lengthscale, noise, amplitude, mean = values[2:7]
        try:
            new = cls(lengthscale, noise, amplitude=amplitude, mean=mean, kernel=kernel)
            targets = vector("labels", values[8])
            if targets.size:
                inputs = points("scaled_inputs", values[7], new._expected())
                variances = vector("label_noise", values[9], targets.size)
                vector("labels", values[8], len(inputs))
                new._begin(inputs.shape[1])
                for i in range(targets.size):
                    row = slice(i, i + 1)
                    new._append(inputs[row].T, targets[row], all_positive("noise", variances[row]))
        except (TypeError, ValueError) as error:
            raise ValueError(f"`state` is damaged: {error}") from None
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
        with self._turn():
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
            ``4 t eps (amplitude + noise)``; `refresh` starts anew.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess()
        >>> _ = gp.add_batch([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])
        >>> gp.drift() < 1e-14
        True
        """
        return self._read(self._drift)

    def _drift(self, now: Now) -> float:
        n, kept = now
        worst = 0.0
        for low in range(0, n, PANEL):
            high = min(n, low + PANEL)
            K = np.empty((high - low, high))
            covariance_rows(self._kind, kept.amplitude, kept.Z, high, kept.Z, low, K)
            own = np.arange(high - low)
            K[own, low + own] += kept.labels[NOISE, low:high]
            for left in range(0, high, PANEL):
                right = min(high, left + PANEL)
                # Columns of L right of the block's own are zero.
                product = kept.L[low:high, :right] @ kept.L[left:right, :right].T
                worst = max(worst, float(np.abs(product - K[:, left:right]).max()))
        return worst

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
    ) -> GaussianProcess:
        """Set the parameters by the marginal likelihood of some data.

        One length scale and the noise variance are fitted unless more is asked for. The data are
        not kept as labels.

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

        Returns
        -------
        GaussianProcess
            The process itself.

        Raises
        ------
        ValueError
            If the process has labels already: their bounds would no longer be comparable. Rewind
            it to 0, or fit a new one.

        Examples
        --------
        >>> import numpy as np
        >>> from fastal import GaussianProcess
        >>> x = np.linspace(0, 10, 60)
        >>> y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=60)
        >>> gp = GaussianProcess().fit_hyperparameters(x, y)
        >>> 1.0 < gp.lengthscale < 3.0, 0.005 < gp.noise < 0.02
        (True, True)
        """
        from fastal.models.fit import (  # only a fit needs scipy.optimize
            MOST_RESTARTS,
            POLISHED,
            SCREEN_ROWS,
            SCREEN_STEPS,
            Evidence,
            climb,
        )

        self._refuse_labels()
        scale, old_noise, old_amplitude, old_mean = self._parameters
        amplitude, ard, mean = flag("amplitude", amplitude), flag("ard", ard), flag("mean", mean)
        inputs = points("X", X, None)
        n, d = inputs.shape
        targets = vector("y", y, n)
        if n < 2:
            raise ValueError(f"`X` must have at least 2 rows, got {n}")
        restarts = count("restarts", restarts, 1, MOST_RESTARTS)
        seed = checked_seed("seed", seed)
        limits = search_bounds(bounds, ("lengthscale", "noise", "amplitude"))
        k = d if ard else 1
        present = np.asarray(scale)
        if present.size != k:
            # One for several, or several for one: the geometric mean.
            present = np.full(k, np.exp(np.log(present).mean()))

        # Units of the default bounds and of the random starts.
        ranges = np.ptp(inputs, axis=0)
        ranges = np.where(ranges > 0, ranges, 1.0) if ard else np.array([ranges.max() or 1.0])
        spread = float(targets.var()) or 1.0
        unit = spread if amplitude else 1.0
        box = np.empty((k + 1 + amplitude, 2))
        if "lengthscale" in limits:
            box[:k] = limits["lengthscale"]
        else:
            box[:k] = np.outer(ranges, [1e-3, 1e3])
        box[k] = limits.get("noise", (1e-4 * unit, 1e2 * unit))
        start = [*present.flat, old_noise]
        centre = [*(0.3 * ranges), 0.03 * spread]
        if amplitude:
            box[k + 1] = limits.get("amplitude", (1e-3 * unit, 1e3 * unit))
            start.append(old_amplitude)
            centre.append(spread)
        box = np.log(box)
        rng = np.random.default_rng(seed)
        starts = rng.uniform(-2.0, 2.0, size=(restarts, box.shape[0])) + np.log(centre)
        starts[0] = np.log(start)
        starts = np.clip(starts, box[:, 0], box[:, 1])

        def objective(rows: Any) -> Evidence:
            return Evidence(
                inputs[rows],
                targets[rows],
                self._kind,
                ard,
                None if amplitude else old_amplitude,
                None if mean else old_mean,
            )

        few = n if n < 1.5 * SCREEN_ROWS else SCREEN_ROWS
        subset: Any = np.sort(rng.choice(n, few, replace=False)) if few < n else slice(None)
        evidence = objective(subset)
        screened = [climb(evidence, place, box, SCREEN_STEPS) for place in starts]
        if ard and d > 1:
            # Never worse than one length scale for all.
            common = self.copy().fit_hyperparameters(
                inputs,
                targets,
                amplitude=amplitude,
                mean=mean,
                restarts=restarts,
                bounds=bounds,
                seed=seed,
            )
            place = np.full(len(box), common.lengthscale)
            place[k:] = [common.noise, common.amplitude][: len(box) - k]
            place = np.clip(np.log(place), box[:, 0], box[:, 1])
            screened.append((evidence(place)[0], place))
        if few < n:
            # What is best for a few rows need not be so for all: rank by all.
            evidence = objective(slice(None))
            screened = [(evidence(place)[0], place) for _, place in screened]
        screened.sort(key=lambda pair: pair[0])
        best = screened[0]
        tried: list[float] = []
        for value, place in screened:
            # The same value is the same optimum, or the same plateau.
            if all(abs(value - other) > 0.01 for other in tried) and len(tried) < POLISHED:
                tried.append(value)
                best = min(best, climb(evidence, place, box, 500), key=lambda pair: pair[0])
        value, theta = best
        if not math.isfinite(value):
            raise np.linalg.LinAlgError(
                "the covariance of the data is not positive definite at any start; raise the "
                "lower bound of the noise, bounds={'noise': (low, high)}"
            )
        found = np.exp(theta)
        with self._turn():
            self._refuse_labels()  # another thread may have added one
            self._clear(
                found[:k].copy() if ard else float(found[0]),
                float(found[k]),
                float(found[k + 1]) if amplitude else old_amplitude,
                evidence.mean_at(theta) if mean else old_mean,
            )
        return self

    def _refuse_labels(self) -> None:
        n = self._n
        if n > 0:
            raise ValueError(
                f"fit_hyperparameters needs a process without labels, this one has {n}: "
                "call rewind(0) first, or fit a new one"
            )


def _features(now: Now) -> int | None:
    """Return how many features an input must have, None if any will do."""
    n, kept = now
    if n > 0:
        return len(kept.Z)
    scale = kept.lengthscale
    return None if isinstance(scale, float) else scale.size


def _solve_rows(L: Array, B: Array, n: int) -> None:
    """Overwrite the first n entries of each row b of B by L^-1 b.

    B : (m, >= n), C-contiguous, may be rows of the factor's buffer from n on.
    """
    if n == 0 or len(B) == 0:
        return
    # L row by row is L^T column by column: the upper triangle of a (capacity, n) matrix.
    # dtrtrs takes leading dimensions as they are and works in place: nothing is copied.
    solved, _ = dtrtrs(L[:n].T, B.T, lower=0, trans=1, overwrite_b=1)
    if not np.may_share_memory(solved, B):  # pragma: no cover
        B[:] = solved.T


def _fail(status: int, y: float, Z: Array) -> NoReturn:
    if status < 0:
        raise ValueError(f"`y` is too far from the posterior mean for the bound, got {y}")
    if not np.isfinite(Z[:, status - 1]).all():
        raise ValueError("`x` divided by the length scale is not finite")
    raise np.linalg.LinAlgError(
        f"the covariance of the labels is not positive definite in double precision at row "
        f"{status - 1} (leading minor of order {status}): its input repeats earlier ones too "
        "closely for the noise; increase the noise variance, or leave the label out"
    )


def whitened(gp: GaussianProcess, scaled: Array, low: int, high: int) -> Array:
    """Return L^-1 k(x) of the inputs `low` to `high`, a row each.

    scaled : (d, m), inputs divided by the length scales.
    """
    n, kept = gp._now
    V = gp._covariance(kept.amplitude, kept.Z, n, scaled, low, high)
    _solve_rows(kept.L, V, n)
    return V


def warn_if_far(gp: GaussianProcess, y: Array) -> None:
    """Warn once of labels that the prior of a process cannot explain."""
    if gp._warned or not y.size:
        return
    worst = float(y[np.argmax(np.abs(y - gp.mean))])
    distance = worst - gp.mean
    if distance * distance > FAR * (gp.amplitude + gp.noise):
        gp._warn_far(worst, gp.noise)


def _square(capacity: int) -> Array:
    """Return a square buffer of zeros that begins at the beginning of a cache line.

    Zeros, not empty: the upper triangle of the factor stays zero, and memory that nobody touches
    costs nothing.
    """
    buffer = np.zeros(capacity * capacity + 8)
    skip = -buffer.ctypes.data // 8 % 8
    return buffer[skip : skip + capacity * capacity].reshape(capacity, capacity)
