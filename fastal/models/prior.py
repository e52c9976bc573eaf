"""Prior: the covariance function over scaled inputs; KernelModel: what all models share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._core.covariance import KINDS, covariance_rows
from fastal._core.inputs import scale_rows
from fastal._types import Array
from fastal.models.settings import ModelSettings

# Rows of a mapped file that are scaled at a time.
BLOCK = 16384


class Prior(NamedTuple):
    """The covariance function of a model, a value: it does not change with the model's labels."""

    kernel: str
    lengthscale: float | Array
    amplitude: float

    @property
    def kind(self) -> int:
        """The number by which compiled code knows the kernel."""
        return KINDS[self.kernel]

    @property
    def features(self) -> int | None:
        """Number of features that the length scales fix, or None."""
        return None if isinstance(self.lengthscale, float) else len(self.lengthscale)

    def scale(self, name: str, X: Array) -> Array:
        """Return the inputs divided by the length scales, feature by feature: (d, m)."""
        return scaled_inputs(name, X, self.lengthscale)


def scaled_inputs(name: str, X: Any, lengthscale: float | Array) -> Array:
    """Return inputs divided by length scales, feature by feature: (d, m).

    A pool that is mapped from a file is not in memory a second time.
    """
    with np.errstate(over="ignore"):  # what is not finite then is refused below
        per_length = 1.0 / lengthscale
    scaled = np.empty((X.shape[1], len(X)))
    if isinstance(X, np.ndarray):
        finite = scale_rows(X, per_length, scaled)
    else:  # its rows are read and converted, some at a time
        finite = True
        for low in range(0, len(X), BLOCK):
            rows = np.asarray(X[low : low + BLOCK], dtype=np.float64)
            block = np.empty((X.shape[1], len(rows)))
            finite &= scale_rows(rows, per_length, block)
            scaled[:, low : low + BLOCK] = block
    if not finite:
        raise ValueError(f"`{name}` divided by the length scale is not finite")
    return scaled


class KernelModel(ModelSettings):
    """Parameters of the covariance function, read-only, and the number of labels of a model."""

    _kernel: str
    _kind: int

    def _set_prior(
        self, lengthscale: object, amplitude: object, kernel: object
    ) -> tuple[float | Array, float]:
        """Set the kernel; return the length scale and the amplitude, checked."""
        self._kernel = check.option("kernel", kernel, tuple(KINDS))
        self._kind = KINDS[self._kernel]
        return check.lengthscales(lengthscale), check.positive("amplitude", amplitude)

    # What a model has at this moment.

    @property
    @abstractmethod
    def _lengthscale(self) -> float | Array: ...

    @property
    @abstractmethod
    def _amplitude(self) -> float: ...

    @property
    @abstractmethod
    def _n(self) -> int: ...

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
    def prior(self) -> Prior:
        """The covariance function, as a value."""
        return Prior(self._kernel, self._lengthscale, self._amplitude)

    @property
    def n_labels(self) -> int:
        """Number of labels added."""
        return self._n

    def _scaled(self, name: str, X: Array, lengthscale: float | Array | None = None) -> Array:
        """Return the inputs divided by the length scales, feature by feature: (d, m)."""
        scale = self._lengthscale if lengthscale is None else lengthscale
        return scaled_inputs(name, X, scale)

    def _covariance(
        self, amplitude: float, Z: Array, n: int, scaled: Array, low: int, high: int
    ) -> Array:
        """Return prior covariances of the scaled inputs `low` to `high` with the first n of Z."""
        out = np.empty((high - low, n))
        covariance_rows(self._kind, amplitude, Z, n, scaled, low, out)
        return out
