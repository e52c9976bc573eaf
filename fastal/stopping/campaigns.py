"""What a criterion may see of a campaign, and what a campaign asks of it besides `see`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fastal._core.rule import Rule
    from fastal._types import Array, Bools, Ints
    from fastal.stopping.criterion import Criterion


class CampaignView(Protocol):
    """What a criterion may see of a campaign, not change; an `ActiveLearner` is one."""

    @property
    def points(self) -> Array:
        """The pool, (n, d)."""

    @property
    def n_pool(self) -> int:
        """Number of points in the pool."""

    @property
    def n_initial(self) -> int:
        """Number of labels at the beginning that give no bound."""

    @property
    def prior(self) -> Any:
        """The model without labels; None before the first fit."""

    @property
    def model(self) -> Any:
        """The model with the labels so far; it may have to be computed."""

    @property
    def bounds(self) -> Array:
        """Bounds of all labels after the initial ones, under the present hyper-parameters."""

    @property
    def last_bound(self) -> float:
        """Bound of the last label."""

    @property
    def labelled(self) -> Ints:
        """Rows of the pool in the order of their labels."""

    @property
    def skipped(self) -> Ints:
        """Rows of the pool that cannot be measured."""

    @property
    def unlabelled(self) -> Bools:
        """Which points have no label, and can be measured."""

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""

    @property
    def largest_variance(self) -> float:
        """Largest variance of an unlabelled point; 0.0 if there is none."""

    @property
    def batch_ends(self) -> bool:
        """Whether the last label was told alone, or is the last of those that came together."""


def rule_of(criterion: Criterion) -> Rule | None:
    """Return the rule of a criterion for compiled loops; None if it is in Python."""
    return criterion._compiled()


def goes_by_bounds(criterion: Criterion) -> bool:
    """Whether a criterion goes by bounds, not by measures of its own."""
    return not criterion._measures


def allow_fits(criterion: Criterion) -> None:
    """Refuse settings with which fits of hyper-parameters on the way make no sense."""
    criterion._allow_fits()


def see_fit(criterion: Criterion, campaign: Any, bounds: Array, at_edge: bool) -> None:
    """Let a criterion look at a campaign right after a fit: it decides."""
    criterion._see_fit(campaign, bounds, at_edge)


def put_back(criterion: Criterion, bounds: Array) -> None:
    """Give a criterion the bounds of labels that were corrected: nothing is decided."""
    criterion._put_back(bounds)
