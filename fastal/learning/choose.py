"""Which selection a pool gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastal._types import Array, Ints
from fastal.learning.classes import ClassSelection
from fastal.learning.eager import EagerSelection
from fastal.learning.lazy import LazySelection
from fastal.models.classifier import LaplaceClassifier

if TYPE_CHECKING:
    from fastal.learning.inputs import Model
    from fastal.learning.selection import Selection

# Below this many points the eager selection is the faster one.
EAGER_BELOW = 2048


def choose(
    gp: Model, points: Array, order: Ints, n_initial: int, capacity: int, all_means: bool
) -> Selection:
    """Return the selection for a model and a pool; `all_means`: somebody asks for all means."""
    if isinstance(gp, LaplaceClassifier):
        return ClassSelection(gp, points, order, n_initial, capacity)
    kind = EagerSelection if all_means or len(points) < EAGER_BELOW else LazySelection
    return kind(gp, gp.prior.scale("X", points), order, n_initial, capacity)
