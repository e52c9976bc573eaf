"""The protocol of a selection: a pool, its labels so far, and which point comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    from fastal._core.rule import Rule
    from fastal._types import Array, Bools, Ints


class ErrorCurves(NamedTuple):
    """Errors on a test set after 1, 2, ... labels."""

    loss: Array  # expected loss
    rmse: Array  # root mean square of y minus the posterior mean


class Selection(Protocol):
    """What a learner needs of a selection; it owns labels, bounds and the compiled state.

    `order` has the points that come first, whatever is known of them; the first `n_initial` of
    these give no bound.
    """

    order: Ints
    n_initial: int

    # Whether labels given as an array need no Python in between.
    compilable: bool

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""

    @property
    def capacity(self) -> int:
        """Number of labels there is room for."""

    @property
    def labels(self) -> Ints:
        """Points in the order of their labels; a view."""

    @property
    def y(self) -> Array:
        """Their labels; a view."""

    @property
    def bounds(self) -> Array:
        """Bound of each label after the initial ones; a view."""

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""

    @property
    def unlabelled(self) -> Bools:
        """Which points have no label."""

    @property
    def model(self) -> Any:
        """A model with all labels, if the selection keeps one; else None."""

    def best(self) -> int:
        """Return the unlabelled point to label next."""

    def accept(self, index: int, y: float, noise: float | None = None) -> float:
        """Label a point, perhaps with a noise of its own; return its bound.

        After an error nothing has changed.
        """

    def skip(self, index: int) -> None:
        """Never choose a point."""

    def run(self, y: Array, target: int, rule: Rule | None, past_stop: bool, threads: int) -> None:
        """Label points up to `target`, or until the rule stops: one compiled call.

        y has the labels of all points. With `past_stop` a stop ends nothing.
        """

    def settle(self) -> None:
        """Complete what was interrupted: labels are taken wholly, or not at all."""

    def posterior(self) -> tuple[Array, Array]:
        """Return mean and variance of every point."""

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""

    def test_errors(self, X: Array, y: Array, threads: int) -> ErrorCurves:
        """Return the errors on a test set after each label."""

    def reserve(self, capacity: int) -> None:
        """Make room for so many labels."""

    def frozen(self) -> Self:
        """Return another one that later labels do not change."""
