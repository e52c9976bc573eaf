"""What the loops of all libraries ask of a criterion."""

from __future__ import annotations

from typing import Any

from fastal import _validation as check
from fastal.stopping import Criterion, Measured, first_of


def refuse_unless_bounds(criterion: Any) -> None:
    """Raise for what does not take all bounds of a model anew."""
    measured: Any = Measured  # an abstract class
    if not isinstance(criterion, Criterion) or first_of(criterion, measured) is not None:
        raise TypeError(
            "`criterion` must be a Stopper, a MovementBelow or another criterion that goes by "
            f"bounds, got {check.short_repr(criterion)}"
        )
