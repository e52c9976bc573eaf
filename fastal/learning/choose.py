"""Which selection a pool gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastal._types import Ints
from fastal.learning.classes import ClassSelection, ManyClassSelection
from fastal.learning.distributed.pool import DaskPool
from fastal.learning.eager import EagerSelection
from fastal.learning.elsewhere import StoredPool
from fastal.learning.lazy import LazySelection
from fastal.models.classifier import LaplaceClassifier
from fastal.models.gp import GaussianProcess
from fastal.models.logistic import BayesianLogistic

if TYPE_CHECKING:
    from fastal.learning.inputs import Acquisition, Model
    from fastal.learning.selection import Selection

# Below this many points the eager selection is the faster one.
EAGER_BELOW = 2048


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
    if isinstance(gp, BayesianLogistic):
        return ManyClassSelection(gp, points, order, n_initial, capacity, acquisition == "entropy")
    kind = EagerSelection if callable(acquisition) or len(points) < EAGER_BELOW else LazySelection
    scaled = (
        points.scaled(gp.prior) if isinstance(points, StoredPool) else gp.prior.scale("X", points)
    )
    return kind(gp, scaled, order, n_initial, capacity)


def _on_workers(
    gp: Model, points: DaskPool, order: Ints, n_initial: int, capacity: int
) -> Selection:
    """Return the selection for the rows of a dask array."""
    from fastal.learning.distributed.selection import DaskSelection

    assert isinstance(gp, GaussianProcess)  # others are refused before
    if len(points) < EAGER_BELOW:  # fewer than the candidates of one round
        Z = gp.prior.scale("X", points.gathered())
        return EagerSelection(gp, Z, order, n_initial, capacity)
    return DaskSelection(gp, points, order, n_initial, capacity)
