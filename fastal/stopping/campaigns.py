"""What whoever runs a campaign asks of a criterion, besides `see` and `set_horizon`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastal._core.rule import Rule
    from fastal._types import Array
    from fastal.stopping.criterion import Criterion


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
