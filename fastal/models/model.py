"""Model: what a campaign needs of a model."""

from __future__ import annotations

from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from fastal._types import Array
from fastal.models.prior import Prior


class Model(Protocol):
    """A model that grows label by label; `GaussianProcess` and `LaplaceClassifier` are such.

    After an error a model is as it was before the call.
    """

    @property
    def prior(self) -> Prior:
        """The covariance function, as a value."""

    @property
    def n_labels(self) -> int:
        """Number of labels added."""

    def add(self, x: ArrayLike, y: float) -> float:
        """Add one label and return its bound."""

    def add_batch(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Add labels in order, all or none of them, and return their bounds."""

    def bounds(self) -> Array:
        """Return the bounds of all labels under the present parameters."""

    def rewind(self, n: int) -> None:
        """Forget all labels but the first n."""

    def copy(self) -> Self:
        """Return a model of its own with the same labels."""

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and labels as plain lists, numbers and texts."""
