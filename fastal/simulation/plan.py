"""What each run of a simulation does, and from which data and seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core import seeds
from fastal._core.numpy_seeds import run_words
from fastal._types import Array, Ints
from fastal.learning.gaussian import check_memory
from fastal.learning.inputs import budget, check_test_set, fresh_criterion
from fastal.learning.refit import first_labels, fit_growth
from fastal.models.gp import GaussianProcess, warn_if_far
from fastal.simulation.store import FORMAT
from fastal.stopping.campaigns import allow_fits, rule_of
from fastal.stopping.criterion import Criterion
from fastal.stopping.measured import Measured
from fastal.stopping.stopper import Stopper

Make = Callable[[np.random.Generator], tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class Plan:
    """What each run does: small, and sent with every chunk."""

    gp: GaussianProcess | None  # None: its hyper-parameters are learnt on the way
    refit: float | None  # growth of the labels between two fits; None: there are none
    criterion: Criterion
    criteria: tuple[Criterion, ...]
    make: Make | None
    seed: int
    pool_size: int
    initial: int
    max_labels: int
    test_on_rest: bool  # the test set is what the pool leaves
    has_test: bool  # there are test errors
    acquisition: str
    keep_bounds: bool
    raising: bool

    @property
    def known_gp(self) -> GaussianProcess:
        """The process of runs without fits."""
        assert self.gp is not None
        return self.gp

    def scaled(self, name: str, points: Array) -> Array:
        """Return inputs as workers take them, (d, n): over length scales that do not change."""
        if self.refit is None:
            return self.known_gp.prior.scale(name, points)
        return np.ascontiguousarray(points.T)

    @property
    def n_bounds(self) -> int:
        """Number of bounds of a run that does not stop."""
        return self.max_labels - self.initial

    @property
    def n_ordered(self) -> int:
        """Number of points at the beginning of a pool that are labelled in its random order."""
        return self.pool_size if self.acquisition == "random" else self.initial

    @property
    def runs_past_stop(self) -> bool:
        """Whether a run continues past its stop."""
        return self.has_test or bool(self.criteria)

    @property
    def needs_evaluation(self) -> bool:
        """Whether criteria look at runs once these are finished."""
        return bool(self.criteria) or rule_of(self.criterion) is None

    @property
    def measured(self) -> tuple[int, ...]:
        """Which of the criteria go by numbers of their own."""
        return tuple(j for j, other in enumerate(self.criteria) if isinstance(other, Measured))

    @property
    def widths(self) -> tuple[int, int, int, int]:
        """Columns of criteria, their histories, bounds and errors."""
        return (
            len(self.criteria),
            len(self.measured) if self.keep_bounds else 0,
            self.n_bounds if self.keep_bounds else 0,
            self.max_labels if self.has_test else 0,
        )


def made_data(make: Make, sequence: Any, features: int | None) -> tuple[Array, Array]:
    """Return inputs and labels that a callable made from a seed."""
    made = make(np.random.default_rng(sequence))
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise TypeError(
            f"`X` must return a pair of inputs and labels, got {check.short_repr(made)}"
        )
    points = check.points("X", made[0], features)
    return points, check.vector("y", made[1], len(points))


def run_sequence(seed: int, run: int) -> np.random.SeedSequence:
    """Return ``SeedSequence(seed).spawn(run + 1)[run]``, without making the others."""
    return np.random.SeedSequence(seed, spawn_key=(run,))


def draw_pools(plan: Plan, runs: Ints, n: int) -> Ints:
    """Return the rows of some runs' pools; the first `initial` of each are labelled first."""
    words = np.empty(len(runs), dtype=np.uint64)
    run_words(plan.seed, runs, words)
    rows = np.empty((len(words), plan.pool_size), dtype=np.int64)
    seeds.draw_rows(words, np.arange(n), np.empty(plan.pool_size, dtype=np.int64), rows)
    return rows


# The pool if none is asked for: the paper's 100, or half of the rows.
PAPER_POOL = 100

# Runs of a callable that may fail before the first one shows the size of its data.
PROBES = 10


class _Data(NamedTuple):
    """The big arrays; `digest` tells one problem from another."""

    Z: Array  # (d, n) inputs over length scales
    y: Array
    test_Z: Array  # noqa: N815 # (d, m)
    test_y: Array
    digest: str
    test_digest: str | None
    n_rows: int


def _prepare(
    X: Any, y: Any, gp: GaussianProcess | None, refit: float | None, criterion: Criterion | None,
    criteria: Any, pool_size: int | None, initial: int | None, max_labels: int | None, test: Any,
    seed: int, acquisition: str, keep_bounds: bool, raising: bool,
) -> tuple[Plan, _Data]:  # fmt: skip
    """Check all that decides what a run computes."""
    if gp is not None and not isinstance(gp, GaussianProcess):
        raise TypeError(f"`gp` must be a GaussianProcess, got {check.short_repr(gp)}")
    if gp is not None and gp.n_labels:
        raise ValueError(f"`gp` must have no labels, got {gp.n_labels}: use a fresh one")
    growth = fit_growth(gp, refit)
    chosen = fresh_criterion("criterion", Stopper() if criterion is None else criterion)
    if isinstance(criteria, Criterion) or not isinstance(criteria, Iterable):
        raise TypeError(
            f"`criteria` must be a sequence of criteria, got {check.short_repr(criteria)}"
        )
    others = tuple(criteria)
    for other in others:
        if not isinstance(other, Criterion):
            raise TypeError(f"`criteria` must hold criteria, got {check.short_repr(other)}")
    rest = isinstance(test, str)
    if rest:
        check.option("test", test, ("rest",))
    features = None if gp is None else gp.prior.features
    make: Make | None = None
    if callable(X):
        if y is not None:
            raise ValueError("`y` must be None when `X` is a callable, which returns both")
        make = X
        points, labels, digest = _probe(make, seed, features)
    else:
        if y is None:
            raise ValueError("`y` must be given, got None")
        points = check.points("X", X, features)
        labels = check.vector("y", y, len(points))
        digest = _digest(points, labels)
    n = len(points)
    if n == 0:
        raise ValueError("`X` must have at least one row, got 0")
    if pool_size is None:
        size = max(1, min(PAPER_POOL, n // 2)) if rest else n
    else:
        size = check.count("pool_size", pool_size, 1)
    if size > n:
        raise ValueError(
            f"`pool_size` must be at most the number of rows ({n}), got {check.short_repr(size)}"
        )
    if rest and size == n:
        raise ValueError(
            f"`pool_size` must be below the number of rows ({n}), got {size}: it leaves no row for "
            "test='rest'"
        )
    first = check.count("initial", first_labels(gp, initial))
    if first > size:
        raise ValueError(
            f"`initial` must be at most the size of the pool ({size}), "
            f"got {check.short_repr(first)}"
        )
    most = budget(max_labels, first, size)
    check_memory(size, most)
    if gp is not None:
        if make is None and growth is None:
            warn_if_far(gp.copy(), labels)
        gp = gp.copy(quiet=True)  # said already

    def scaled(name: str, inputs: Array) -> Array:
        if gp is None or growth is not None:
            return np.ascontiguousarray(inputs.T)
        return gp.prior.scale(name, inputs)

    Z = scaled("X", points)
    test_Z, test_y, test_digest = Z, labels, None
    if not rest:
        test_Z, test_y = Z[:, :0].copy(), labels[:0].copy()
        if test is not None:
            test_points, test_y = check_test_set(test, points.shape[1])
            test_Z, test_digest = scaled("test", test_points), _digest(test_points, test_y)
    if make is not None:
        Z, labels = Z[:, :0].copy(), labels[:0].copy()
        if rest:
            test_Z, test_y = Z, labels
    plan = Plan(
        gp=gp,
        refit=growth,
        criterion=chosen,
        criteria=tuple(fresh_criterion("criteria", other) for other in others),
        make=make,
        seed=seed,
        pool_size=size,
        initial=first,
        max_labels=most,
        test_on_rest=rest,
        has_test=test is not None,
        acquisition=check.option("acquisition", acquisition, ("max_variance", "random")),
        keep_bounds=keep_bounds,
        raising=raising,
    )
    for criterion in (plan.criterion, *plan.criteria):
        criterion.set_horizon(plan.n_bounds)
        if growth is not None:
            allow_fits(criterion)
    return plan, _Data(Z, labels, test_Z, test_y, digest, test_digest, n)


def _digest(*arrays: Array) -> str:
    total = hashlib.sha256()
    for array in arrays:
        total.update(repr(array.shape).encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _probe(make: Make, seed: int, features: int | None) -> tuple[Array, Array, str]:
    """Return the data of the first run of a callable that does not fail, and their checksum.

    A function cannot be compared with the one that filled a store, its data can.
    """
    for run in range(PROBES):
        try:
            X, y = made_data(make, run_sequence(seed, run), features)
        except Exception:
            if run == PROBES - 1:
                raise
        else:
            return X, y, f"run {run} of a callable: {_digest(X, y)}"
    raise AssertionError  # pragma: no cover


def _settings(plan: Plan, data: _Data, keep: str) -> dict[str, Any]:
    """Return all that decides the numbers; how many runs there are does not."""
    test = "rest" if plan.test_on_rest else data.test_digest
    fits = {} if plan.refit is None else {"refit": plan.refit}
    return fits | {
        "format": FORMAT,
        "data": data.digest,
        "gp": None if plan.gp is None else plan.gp.to_dict(),
        "criterion": plan.criterion.replace().to_dict(),
        "criteria": [criterion.replace().to_dict() for criterion in plan.criteria],
        "pool_size": plan.pool_size,
        "initial": plan.initial,
        "max_labels": plan.max_labels,
        "test": test,
        "acquisition": plan.acquisition,
        "seed": plan.seed,
        "keep": keep,
    }
