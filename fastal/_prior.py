"""Prior: the covariance function over scaled inputs, which all Gaussian-process models share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastal._core.covariance import KINDS, covariance_rows
from fastal._validation import lengthscales, option, positive

Array = NDArray[np.float64]


class Prior:
    """Parameters of the covariance function, read-only, and the number of labels of a model."""

    _lengthscale: float | Array
    _amplitude: float
    _features: int | None
    _n: int

    def _set_prior(self, lengthscale: object, amplitude: object, kernel: object) -> None:
        self._kernel = option("kernel", kernel, tuple(KINDS))
        self._kind = KINDS[self._kernel]
        self._lengthscale = lengthscales(lengthscale)
        self._amplitude = positive("amplitude", amplitude)

    @property
    def lengthscale(self) -> float | Array:
        """One length scale, or a copy of those per feature."""
        scale = self._lengthscale
        return scale if isinstance(scale, float) else scale.copy()

    @property
    def amplitude(self) -> float:
        """Prior variance of the function."""
        return self._amplitude

    @property
    def kernel(self) -> str:
        """Name of the covariance function."""
        return self._kernel

    @property
    def n_labels(self) -> int:
        """Number of labels added."""
        return self._n

    def _scale_text(self) -> str:
        scale = self._lengthscale
        return f"{scale:.6g}" if isinstance(scale, float) else np.array2string(scale, precision=6)

    def _expected(self) -> int | None:
        """Return how many features an input must have, None if any will do."""
        if self._n > 0:
            return self._features
        scale = self._lengthscale
        return None if isinstance(scale, float) else scale.size

    def _scaled(self, name: str, X: Array) -> Array:
        """Return the inputs divided by the length scales, feature by feature: (d, m)."""
        with np.errstate(over="ignore"):
            scaled = np.ascontiguousarray((X * (1.0 / np.asarray(self._lengthscale))).T)
        if not np.isfinite(scaled).all():
            raise ValueError(f"`{name}` divided by the length scale is not finite")
        return scaled

    def _covariance(self, Z: Array, n: int, scaled: Array, low: int, high: int) -> Array:
        """Return prior covariances of the scaled inputs `low` to `high` with the first n of Z."""
        out = np.empty((high - low, n))
        covariance_rows(self._kind, self._amplitude, Z, n, scaled, low, out)
        return out
