"""GrowingProcess: labels and their Cholesky factor, which grow together."""

from __future__ import annotations

import math
import warnings
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.cholesky import NOISE, TARGET, WHITE, append_block, append_row
from fastal._core.covariance import covariance_rows
from fastal._types import Array
from fastal.models.buffers import (
    Buffers,
    Labels,
    Now,
    allocate,
    enlarge,
    expected_features,
    no_labels,
    solve_rows,
)
from fastal.models.prior import KernelModel, Prior

Found = TypeVar("Found")

_ARRAY, _DOUBLE = np.ndarray, np.dtype(np.float64)

# A label this many prior variances (amplitude + noise) from the mean, squared, is out of what the
# prior can explain: ten standard deviations.
FAR = 100.0

# Labels that add_batch appends by one solve of all of them and one product of matrices. The block's
# own triangle is done by plain loops, whose share is BLOCK / n.
BLOCK = 64

# Below this number of labels add_batch goes row by row: few rows hardly share a reading of the
# factor, and a block has its own product of matrices to pay for.
FEW = 8


class GrowingProcess(KernelModel):
    """The labels of a Gaussian process: adding them, forgetting them, reading those of one moment.

    Owns the buffers and turns the status of a kernel into an exception.
    """

    _now: Now
    # The weights of `_weights`, and the labels that they belong to.
    _alpha: tuple[Now, Array] | None

    _warned: bool  # whether it has warned of a label that is far off

    def _clear(
        self, lengthscale: float | Array, noise: float, amplitude: float, mean: float
    ) -> None:
        """Take parameters; forget the labels and the buffers."""
        self._alpha = None
        self._now = no_labels(lengthscale, noise, amplitude, mean)

    @property
    def _parameters(self) -> tuple[float | Array, float, float, float]:
        kept = self._now[1]
        return kept.lengthscale, kept.noise, kept.amplitude, kept.mean

    @property
    def amplitude(self) -> float:
        """Prior variance of the function."""
        return self._now[1].amplitude

    @property
    def prior(self) -> Prior:
        """The covariance function, as a value."""
        kept = self._now[1]
        return Prior(self._kernel, kept.lengthscale, kept.amplitude)

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

    def snapshot(self) -> Labels:
        """Return the labels of this moment, with the prior: copies that no later label changes.

        Returns
        -------
        Labels
            `prior`, `mean`, `scaled` (inputs over length scales, feature by feature), `y`, `noise`.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> gp = GaussianProcess(lengthscale=2.0)
        >>> _ = gp.add_batch([1.0, 3.0], [0.5, 0.6])
        >>> labels = gp.snapshot()
        >>> labels.scaled, labels.y, labels.noise
        (array([[0.5, 1.5]]), array([0.5, 0.6]), array([0.01, 0.01]))
        """
        return self._snapshot(self._now)

    def _snapshot(self, now: Now) -> Labels:
        n, kept = now
        return Labels(
            Prior(self._kernel, kept.lengthscale, kept.amplitude),
            kept.mean,
            kept.Z[:, :n].copy(),
            kept.labels[TARGET, :n].copy() if n else np.empty(0),
            kept.labels[NOISE, :n].copy() if n else np.empty(0),
        )

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

    def _expected(self) -> int | None:
        return expected_features(self._now)

    # What the process is.

    @property
    def noise(self) -> float:
        """Noise variance of a label that is added without one of its own."""
        return self._now[1].noise

    @property
    def mean(self) -> float:
        """Prior mean."""
        return self._now[1].mean

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
            y = float(y) if isinstance(y, float) else check.real("y", y)
        if noise is not None:
            noise = check.positive("noise", noise)
        if type(x) is not _ARRAY or (x.dtype is not _DOUBLE and x.dtype.kind not in "fiu"):
            x = check.point(x, self._expected())
        n, kept = self._now
        (
            _, default, amplitude, mean, shape, capacity, Z, labels, panels, row, scratch,
            per_length,
        ) = kept  # fmt: skip
        if n == 0 or n == capacity or x.shape != shape:
            x = check.point(x, expected_features(self._now))
            kept = self._allocate(x.size) if n == 0 else self._reserve(n + 1)
            Z, labels, panels, row, scratch, per_length = kept[6:]
        # An array of the right shape and type is copied unseen: the kernel notices NaN and inf.
        scratch[...] = x
        if noise is None:
            noise = default
        distance = y - mean
        if distance * distance > FAR * (amplitude + noise) and not self._warned:
            check.real("y", y)
            self._warn_far(y, noise)
        status, r = append_row(
            self._kind, amplitude, mean, scratch, per_length, y, noise, n, Z, labels, panels,
            row,
        )  # fmt: skip
        if status != 0:
            check.real("y", y)
            check.point(x, expected_features(self._now))
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
        inputs = check.points("X", X, self._expected())
        m = len(inputs)
        targets = check.vector("y", y, m)
        variances = None if noise is None else check.label_noise(noise, 0.0, m)
        if m == 0:
            return np.empty(0)
        n, kept = self._now
        if variances is None:
            variances = np.full(m, kept.noise)
        if n == 0:
            kept = self._allocate(inputs.shape[1])
        scaled = self._scaled("X", inputs, kept.lengthscale)
        if not self._warned:
            distance = targets - kept.mean
            ratio = distance / np.sqrt(kept.amplitude + variances)
            worst = int(np.abs(ratio).argmax())
            if ratio[worst] * ratio[worst] > FAR:
                self._warn_far(float(targets[worst]), float(variances[worst]))
        return self._append(scaled, targets, variances)

    def _append(self, scaled: Array, y: Array, noise: Array) -> Array:
        """Add m labels, or none of them; return their bounds.

        scaled : (d, m).  y, noise : (m,).
        """
        start, m = self._now[0], y.size
        kept = self._reserve(start + m)
        kind, amplitude, mean = self._kind, kept.amplitude, kept.mean
        Z, labels, panels = kept.Z, kept.labels, kept.panels
        Z[:, start : start + m] = scaled
        bounds = np.empty(m)
        if m < FEW:
            ones = np.ones(len(scaled))
            for i in range(m):
                x, t = scaled[:, i].copy(), start + i
                status, bounds[i] = append_row(
                    kind, amplitude, mean, x, ones, float(y[i]), float(noise[i]), t, Z, labels,
                    panels, kept.row,
                )  # fmt: skip
                if status != 0:
                    _fail(status, float(y[i]), Z)
        for low in range(0, m if m >= FEW else 0, BLOCK):
            high = min(m, low + BLOCK)
            t, b = start + low, high - low
            # Rows t to t + b of the factor, left of the block: V = K_bt L^-T; S = V V^T
            rows = np.empty((b, t + b))
            covariance_rows(kind, amplitude, Z, t, Z, t, rows)
            solve_rows(kept, t, rows)
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
                rows,
                panels,
                bounds[low:high],
            )
            if status != 0:
                _fail(status, float(y[abs(status) - 1 - start]), Z)
        self._now = start + m, kept
        return bounds

    def _allocate(self, features: int) -> Buffers:
        """Make buffers for inputs of so many features, before the first label."""
        kept = self._now[1]
        made = allocate(kept, features)
        if made is not kept:
            self._now = 0, made
        return made

    def _reserve(self, total: int) -> Buffers:
        """Make room for so many labels; the capacity at least doubles."""
        n, kept = self._now
        if total > kept.capacity:
            kept = enlarge(self._now, total)
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
        n = check.count("n", n)
        there, kept = self._now
        if n > there:
            raise ValueError(
                f"`n` must be at most the number of labels, {there}, got {check.short_repr(n)}"
            )
        if n < there:
            self._now = n, Buffers(*kept)


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
