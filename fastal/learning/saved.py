"""A learner's state as plain lists, numbers and texts, and the learner that such a state gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fastal import _validation as check
from fastal._state import check_kind, restore_model, state_count, state_values
from fastal.learning.inputs import checksum, pool_points
from fastal.learning.refit import Refits
from fastal.learning.unfitted import Unfitted
from fastal.models.gp import GaussianProcess
from fastal.stopping.campaigns import goes_by_bounds
from fastal.stopping.combine import separate_parts
from fastal.stopping.criterion import Criterion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fastal._types import Array
    from fastal.learning.inputs import Acquisition
    from fastal.learning.learner import ActiveLearner

    Learner = TypeVar("Learner", bound=ActiveLearner)

VERSION = 3

# Keys besides kind and version.
STATE = (
    "pool", "gp", "criterion", "acquisition", "order", "n_initial", "max_labels", "indices",
    "labels", "asked", "asked_n", "batch_end", "whole", "seed", "refits", "noises", "skipped",
    "untold", "stale",
)  # fmt: skip

# Bounds of the same labels, computed in another order of operations, agree to this.
ROUNDING = 1e-6


def state_of_learner(learner: ActiveLearner) -> dict[str, Any]:
    """Return what `ActiveLearner.to_dict` returns; the caller has the lock."""
    acquisition, refits = learner.acquisition, learner._refits
    return {
        "kind": "ActiveLearner",
        "version": VERSION,
        "pool": checksum(learner.points),
        "gp": None if learner.gp is None else learner.gp.to_dict(),
        "criterion": learner.criterion.to_dict(),
        "acquisition": acquisition if isinstance(acquisition, str) else None,
        "order": learner.order.tolist(),
        "n_initial": learner.n_initial,
        "max_labels": learner.max_labels,
        "indices": learner._selection.labels.tolist(),
        "labels": learner._selection.y.tolist(),
        "asked": list(learner._asked),
        "asked_n": learner._asked_n,
        "batch_end": learner._batch_end,
        "whole": learner._whole,
        "seed": learner._seed,
        "refits": None if refits is None else refits.to_dict(),
        "noises": [[row, noise] for row, noise in learner._noises.items()],
        "skipped": list(learner._skipped),
        "untold": learner._untold,
        "stale": learner._stale,
    }


def restored_learner(
    kind: type[Learner], state: Any, X: ArrayLike, acquisition: Acquisition | None
) -> Learner:
    """Return the learner that a state describes."""
    values = _values(state)
    name = values["acquisition"]
    if name is None and not callable(acquisition):
        raise ValueError("`acquisition` must be given: the saved one was a callable")
    try:
        return _restored(kind, values, X, name or acquisition)
    except (TypeError, IndexError) as error:
        raise ValueError(f"`state` is damaged: {error}") from None


def _values(state: Any) -> dict[str, Any]:
    """Return the values of a state of this version."""
    check_kind(state, "ActiveLearner", VERSION)
    version = state.get("version") if isinstance(state, dict) else None
    if type(version) is int and version in (1, 2):
        raise ValueError(
            f"`state` is an ActiveLearner of fastal 0.{version} (version {version}), which this "
            "version cannot read: a file of labels replays, ActiveLearner(X, ..., known=(rows, y)) "
            "with `state['indices']` and `state['labels']`"
        )
    _, _, *values = state_values(state, ("kind", "version", *STATE))
    return dict(zip(STATE, values, strict=True))


def _restored(
    kind: type[Learner], values: dict[str, Any], X: ArrayLike, acquisition: Any
) -> Learner:
    points = pool_points(X, None)
    first = [state_count("order", i) for i in _list(values, "order")]
    check.indices("order", first, len(points))
    n_initial = state_count("n_initial", values["n_initial"], most=len(points))
    skipped = [state_count("skipped", row) for row in _list(values, "skipped")]
    if n_initial > len(first) and len(first) < len(points) - len(skipped):
        raise ValueError(
            f"`state['n_initial']` must be at most {len(first)}, the length of its order, got "
            f"{n_initial}"
        )
    if checksum(points, str(values["pool"])) != values["pool"]:
        raise ValueError("`X` is another pool than the saved one")
    gp, refits = _model_and_fits(values, points, n_initial)
    saved = Criterion.from_dict(values["criterion"])
    # fewer points than `n_initial`, if the others cannot be measured
    initial = np.array(first[:n_initial]) if n_initial <= len(first) else n_initial
    new = kind(
        X if isinstance(points, np.ndarray) else points,
        gp=gp,
        criterion=saved,
        initial=initial,
        max_labels=values["max_labels"],
        acquisition=acquisition,
        seed=check.seed("seed", values["seed"]),
        refit=None if refits is None else refits.growth,
    )
    new._refits, new._whole = refits, check.flag("whole", values["whole"])
    for row in skipped:
        refuse_taken(new, "skipped", row)
        new._selection.skip(row)
        new._skipped.append(row)
    _take_labels(new, values, first)
    _take_question(new, values)
    new._stale = check.flag("stale", values["stale"])
    new._untold = values["untold"]
    if new._untold not in (None, "fit", "correction"):
        raise ValueError(
            "`state['untold']` must be None, 'fit' or 'correction', got "
            f"{check.short_repr(new._untold)}"
        )
    if new._untold is None:
        _check_bounds(new, saved)
    new.criterion = saved
    new._tell_horizon()
    return new


def _model_and_fits(
    values: dict[str, Any], points: Array, n_initial: int
) -> tuple[Any, Refits | None]:
    """Return the model without labels, and the fits; None for what there is not."""
    gp = None if values["gp"] is None else restore_model(values["gp"])
    if values["refits"] is None:
        if gp is None:
            raise ValueError("`state['gp']` must be a model where there are no refits, got None")
        return gp, None
    refits = Refits.from_dict(values["refits"], points, n_initial)
    if (gp is None) != (refits.standardised and not refits.fits):
        raise ValueError(
            f"`state['gp']` must be a model after a fit, and only then, got {len(refits.fits)} "
            f"fits and {check.short_repr(gp)}"
        )
    return gp, refits


def _take_question(learner: ActiveLearner, values: dict[str, Any]) -> None:
    """Take the points that were asked for and not told."""
    asked = [state_count("asked", row) for row in _list(values, "asked")]
    n = state_count("asked_n", values["asked_n"], 1)
    for i, row in enumerate(asked):
        refuse_taken(learner, "asked", row)
        if row in asked[:i] or i >= n:
            raise ValueError(
                f"`state['asked']` must have at most {n} different rows, got "
                f"{check.short_repr(asked)}"
            )
    learner._asked, learner._asked_n = tuple(asked), n
    learner._batch_end = state_count("batch_end", values["batch_end"])


def _list(values: dict[str, Any], name: str) -> list[Any]:
    found = values[name]
    if not isinstance(found, list):
        raise ValueError(f"`state[{name!r}]` must be a list, got {check.short_repr(found)}")
    return found


def _take_labels(learner: ActiveLearner, values: dict[str, Any], order: list[int]) -> None:
    """Take all labels; the criterion does not see them."""
    indices = [state_count("indices", row) for row in _list(values, "indices")]
    y = check.vector("labels", values["labels"], len(indices))
    if len(indices) > learner.max_labels:
        raise ValueError(
            f"`state['indices']` must be at most {learner.max_labels} rows, got {len(indices)}"
        )
    for pair in _list(values, "noises"):
        if not isinstance(pair, list) or len(pair) != 2 or pair[0] not in indices:
            raise ValueError(
                "`state['noises']` must have pairs of a labelled row and a variance, got "
                f"{check.short_repr(pair)}"
            )
        learner._noises[pair[0]] = check.positive("noises", pair[1])
    selection = learner._selection
    fits = learner.refits
    if fits and fits[-1].n_labels > len(indices):
        raise ValueError(f"`state['refits']` has a fit to {fits[-1].n_labels} labels")
    selection.reserve(len(indices))
    for t, (row, label) in enumerate(zip(indices, y.tolist(), strict=True)):
        # the lazy selection then computes in the same order, to the last digit
        if t >= len(order) and not isinstance(selection, Unfitted):
            selection.best()
        refuse_taken(learner, "indices", row)
        selection.accept(row, label, learner._noises.get(row))
    if order[: len(indices)] != indices[: len(order)]:
        raise ValueError("`state['indices']` must begin with the rows of its order")
    for row in order[len(indices) :]:
        refuse_taken(learner, "order", row)
    selection.order = np.array(order, dtype=np.int64)
    selection.n_initial = state_count("n_initial", values["n_initial"])
    learner._make_room(max(len(indices), learner._room(selection.order, selection.n_initial)))
    learner._model = selection.model


def _check_bounds(learner: ActiveLearner, saved: Criterion) -> None:
    """Refuse a criterion whose bounds are not those of the labels."""
    bounds, tolerance = learner._selection.bounds, ROUNDING
    if isinstance(learner.gp, GaussianProcess):
        # where labels are nearly exact, roundings of the covariances count for more
        tolerance = min(1e-3, max(ROUNDING, 1e-12 * learner.gp.amplitude / learner.gp.noise))
    for one in separate_parts(saved):
        if goes_by_bounds(one) and not (
            len(one) == len(bounds)
            and np.allclose(one.bounds, bounds, rtol=tolerance, atol=tolerance)
        ):
            raise ValueError("`state['criterion']`: the bounds are not those of the labels")


def refuse_taken(learner: ActiveLearner, name: str, row: int) -> None:
    """Refuse a row that is out of the pool, or there twice."""
    if row >= learner.n_pool or not learner._selection.unlabelled[row]:
        raise ValueError(
            f"`state` is damaged: `{name}`: row {check.short_repr(row)} is out of the pool, or "
            "there twice"
        )
