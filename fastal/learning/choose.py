"""Which selection a pool gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastal._types import Ints
from fastal.learning.classes import ClassSelection
from fastal.learning.distributed.pool import DaskPool
from fastal.learning.eager import EagerSelection
from fastal.learning.elsewhere import StoredPool
from fastal.learning.lazy import LazySelection
from fastal.learning.staged import StagedSelection, early_labels
from fastal.models.classifier import LaplaceClassifier
from fastal.models.gp import GaussianProcess

if TYPE_CHECKING:
    from fastal.learning.inputs import Acquisition, Model
    from fastal.learning.selection import Selection

# From this many points on the lazy selection is the faster one, and with this many entries of the
# factor (points times labels) also in pools that are not small.
EAGER_BELOW = 2048
LAZY_POINTS, LAZY_ENTRIES = 1000, 250_000


def lazy_selection(n: int) -> type[LazySelection]:
    """Return the lazy selection for a pool of n points, with an eager stage where that pays."""
    return StagedSelection if n >= LAZY_POINTS and early_labels(n) > 0 else LazySelection


def is_lazy(n: int, labels: int) -> bool:
    """Whether a pool of n points gets the lazy selection for up to so many labels."""
    return n >= EAGER_BELOW or (n >= LAZY_POINTS and n * labels >= LAZY_ENTRIES)


def choose(
    gp: Model, points: Any, order: Ints, n_initial: int, capacity: int, acquisition: Acquisition
) -> Selection:
    """Return the selection for a model and a pool; a callable acquisition asks for all means.

    points : array, shape (n, d), or the rows of a dask array.
    """
    if isinstance(points, DaskPool):
        return _on_workers(gp, points, order, n_initial, capacity)
    if isinstance(gp, LaplaceClassifier):
        return ClassSelection(gp, points, order, n_initial, capacity)
    scaled = (
        points.scaled(gp.prior) if isinstance(points, StoredPool) else gp.prior.scale("X", points)
    )
    if callable(acquisition):
        return EagerSelection(gp, scaled, order, n_initial, capacity, all_means=True)
    lazy = is_lazy(len(points), capacity)
    kind = lazy_selection(len(points)) if lazy else EagerSelection
    return kind(gp, scaled, order, n_initial, capacity)


def _on_workers(
    gp: Model, points: DaskPool, order: Ints, n_initial: int, capacity: int
) -> Selection:
    """Return the selection for the rows of a dask array."""
    from fastal.learning.distributed.selection import DaskSelection

    assert isinstance(gp, GaussianProcess)  # others are refused before
    if len(points) < EAGER_BELOW:  # fewer than the candidates of one round
        Z = gp.prior.scale("X", points.gathered())
        lazy = is_lazy(len(points), capacity)
        kind = lazy_selection(len(points)) if lazy else EagerSelection
        return kind(gp, Z, order, n_initial, capacity)
    return DaskSelection(gp, points, order, n_initial, capacity)
