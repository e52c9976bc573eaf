"""Picture of what is still to come: the bounds, and below them the share with the stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastal.stopping.still import StillToCome


def plot_still(criterion: StillToCome, ax: Axes | None = None) -> Axes:
    """Draw a StillToCome."""
    raise AssertionError(criterion, ax)  # pragma: no cover
