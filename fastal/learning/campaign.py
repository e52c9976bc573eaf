"""A campaign: a pool, its labels, the model and the criterion. Who asks and tells: `learner`."""

from __future__ import annotations

import warnings
from secrets import randbits
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.numpy_seeds import Shuffler
from fastal._progress import logger
from fastal._types import Array, Ints
from fastal.learning.choose import choose
from fastal.learning.elsewhere import PoolElsewhere
from fastal.learning.inputs import (
    NO_ROWS,
    Model,
    acquisition_name,
    budget,
    check_known,
    check_model,
    checksum,
    first_points,
    fresh_criterion,
    pool_points,
)
from fastal.learning.refit import Refits, check_size, first_labels, fit_growth
from fastal.learning.unfitted import Unfitted
from fastal.models.gp import GaussianProcess, warn_if_far
from fastal.models.weak import LEAST_LABELS
from fastal.stopping.campaigns import allow_fits, put_back, rule_of, see_fit
from fastal.stopping.combine import separate_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastal._core.rule import Rule
    from fastal.learning.inputs import Acquisition
    from fastal.learning.refit import Refit
    from fastal.learning.selection import Selection
    from fastal.stopping.criterion import Criterion


class Campaign:
    """What an `ActiveLearner` knows, and how labels change it.

    Methods with an underscore suppose that the caller has the turn.
    """

    _selection: Selection
    _refits: Refits | None
    _asked: tuple[int, ...]  # points asked for and not told
    gp: Any  # the model without labels; None before the first fit
    points: Any  # the pool, (n, d): an array, or the rows of a dask array

    # Whether the last label was told alone, or is the last of those that came together.
    batch_ends = True

    def _begin(
        self,
        X: ArrayLike,
        gp: Model | None,
        criterion: Criterion,
        initial: int | ArrayLike | None,
        max_labels: int | None,
        acquisition: Acquisition,
        seed: int | None,
        refit: float | None,
        known: Any,
    ) -> tuple[Ints, Array]:
        """Check all arguments and begin; return the labels that are known."""
        if gp is not None:
            check_model(gp)
        growth = fit_growth(gp, refit)
        if growth is not None and gp is not None and not isinstance(gp, GaussianProcess):
            raise TypeError(f"`refit` needs a GaussianProcess, got {check.short_repr(gp)}")
        self.criterion = fresh_criterion("criterion", criterion)
        if growth is not None:
            allow_fits(self.criterion)
        self.points = pool_points(X, gp, callable(acquisition))
        n = len(self.points)
        if n == 0:
            raise ValueError("`X` must have at least one row, got 0")
        self.names = row_names(X)
        if not callable(acquisition):
            acquisition = acquisition_name(acquisition, gp)
        self.acquisition = acquisition
        given = None if seed is None else check.seed("seed", seed)
        self._seed = randbits(128) if given is None else given
        shuffler = Shuffler(self._seed)
        if gp is None and n < LEAST_LABELS:
            raise ValueError(
                f"`X` must have at least {LEAST_LABELS} rows without a `gp`, for the first fit, "
                f"got {n}"
            )
        order, n_initial = first_points(first_labels(gp, initial), n, shuffler)
        rows, y = check_known(known, n, gp)
        if len(rows):
            order = np.r_[rows, order[~np.isin(order, rows)]][: max(n_initial, len(rows))]
        if acquisition == "random":
            rest = np.setdiff1d(np.arange(n), order)
            shuffler.shuffle(rest)
            order = np.r_[order, rest]
        self._max_labels = budget(max_labels, n_initial, n)
        if len(rows) > self.max_labels:
            raise ValueError(
                f"`known` must have at most {self.max_labels} labels (`max_labels`), got "
                f"{len(rows)}"
            )
        self._whole = max_labels is None  # the budget grows with the pool
        self._refits = None
        if growth is not None:
            assert gp is None or isinstance(gp, GaussianProcess)
            self._refits = Refits(gp, self.points, growth, n_initial)
            if not self._refits.tells_apart:
                warnings.warn(
                    f"`X`: no column varies, all {n} points are alike: labels can only tell their "
                    "mean",
                    stacklevel=3,
                )
            check_size("known", y)
        self.gp = None if gp is None else gp.copy()
        if len(y) and growth is None and isinstance(gp, GaussianProcess):
            warn_if_far(self.gp, y)
        self._skipped: list[int] = []
        self._noises: dict[int, float] = {}  # of labels that have one of their own
        # What the criterion has not seen yet, and whether the last fit has seen a wrong label:
        # Ctrl-C may come at any moment, and `_catch_up` goes on from there.
        self._untold: str | None = None  # or "correction", or "fit"
        self._stale = False
        self._threads = 1
        if self.gp is None:
            self._selection = Unfitted(n, order, n_initial)
        else:
            room = self._room(order, n_initial)
            self._selection = choose(self.gp, self.points, order, n_initial, room, acquisition)
        self._model: Any = self._selection.model
        self._tell_horizon()
        return rows, y

    def _room(self, order: Ints, n_initial: int) -> int:
        """Return for how many labels a new selection has room."""
        if self._refits is None:
            return self.max_labels
        return min(self.max_labels, max(self._refits.next_at, len(order), n_initial))

    # what is known ---------------------------------------------------------------------------

    @property
    def order(self) -> Ints:
        """Rows of the pool that come first, whatever is known of them."""
        return self._selection.order

    @property
    def n_initial(self) -> int:
        """Number of labels at the beginning that give no bound."""
        return self._selection.n_initial

    @property
    def n_pool(self) -> int:
        """Number of points in the pool."""
        return len(self.points)

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
        return self._selection.n_labels

    @property
    def max_labels(self) -> int:
        """Most labels in all; may be set, None for the whole pool. A stop stays."""
        return self._max_labels

    @max_labels.setter
    def max_labels(self, value: int | None) -> None:
        least = max(self.n_initial, self.n_labels + len(self._asked))
        most = self.n_pool if value is None else check.count("max_labels", value, 1)
        if not (least <= most <= self.n_pool):
            raise ValueError(
                f"`max_labels` must be between {least} and the size of the pool ({self.n_pool}), "
                f"got {check.short_repr(value)}"
            )
        self._max_labels, self._whole = most, value is None
        self._tell_horizon()

    @property
    def most_labels(self) -> int:
        """Number of labels there can be: `max_labels`, and no more than can be measured."""
        return min(self.max_labels, len(self.points) - len(self._skipped))

    @property
    def stopped(self) -> bool:
        """Whether the criterion has stopped."""
        return self.criterion.stopped

    @property
    def finished(self) -> bool:
        """Whether the criterion has stopped or the labels are used up."""
        return self.stopped or self.n_labels >= self.most_labels

    @property
    def initial_rows(self) -> Ints:
        """Rows of the pool that are labelled first; they give no bounds."""
        return self.order[: self.n_initial]

    @property
    def prior(self) -> Any:
        """The model without labels, not to be changed; None before the first fit."""
        return self.gp

    @property
    def last_bound(self) -> float:
        """Bound of the last label."""
        return float(self._selection.bounds[-1])

    @property
    def refits(self) -> tuple[Refit, ...]:
        """The fits of the hyper-parameters so far, in order; none if they are given."""
        return () if self._refits is None else self._refits.fits

    @property
    def search_box(self) -> tuple[float, float] | None:
        """The least and the largest length scale that a fit can find; None if it is given."""
        return None if self._refits is None else self._refits.search_box

    @property
    def labelled(self) -> Ints:
        """Rows of the pool in the order of their labels."""
        return self._selection.labels.copy()

    @property
    def skipped(self) -> Ints:
        """Rows of the pool that cannot be measured, in the order in which that was said."""
        return np.array(self._skipped, dtype=np.int64) if self._skipped else NO_ROWS.copy()

    @property
    def fitted(self) -> bool:
        """Whether there are hyper-parameters: from the beginning, or since the first fit."""
        return self.gp is not None

    @property
    def compilable(self) -> bool:
        """Whether labels given as an array need no Python in between."""
        return self._compiled_rule() is not None

    def _compiled_rule(self) -> Rule | None:
        """Return the criterion as a compiled loop sees it; None if Python is needed in between."""
        if not self._selection.compilable or callable(self.acquisition):
            return None
        return rule_of(self.criterion)

    def _built_model(self) -> Any:
        """Return the model with all labels."""
        if self.gp is None:
            assert self._refits is not None
            raise ValueError(
                f"there is no model before the first fit, at {self._refits.next_at} labels, got "
                f"{self.n_labels}"
            )
        if self._model is None:
            self._model = self.gp.copy(quiet=True)  # what is far was said already
        known, n = self._model.n_labels, self.n_labels
        if known < n:
            new = self._selection.labels[known:n]
            self._model.add_batch(
                self.points[new], self._selection.y[known:n], **self._noise_of(new)
            )
        return self._model

    def _noise_of(self, rows: Ints) -> dict[str, Array]:
        """Return the argument `noise` of some labels, if one of them has its own."""
        if not self._noises:
            return {}
        return {"noise": np.array([self._noises.get(i, self.gp.noise) for i in rows.tolist()])}

    # how it changes --------------------------------------------------------------------------

    def _tell_horizon(self) -> None:
        """Tell the criterion how many bounds there can be."""
        self.criterion.set_horizon(max(0, self.most_labels - self.n_initial))

    def _taken(self, row: int) -> None:
        """Do what is to be done once a label is taken, or a point cannot be measured."""

    def _waits(self) -> bool:
        """Whether a fit that is due has to wait."""
        return False

    def _take(self, row: int, y: float, noise: float | None = None) -> None:
        """Take the label of one point, and let the criterion see it."""
        before, order = self.n_labels, self.order
        self._make_room(before + 1)
        self._put_in_order(row)
        if noise is not None:
            self._noises[row] = noise
        try:
            self._selection.accept(row, y, noise)
            self._has_label(row)
            if self.fitted and self.n_labels > self.n_initial:
                self.criterion.see(self, self.last_bound)
        except BaseException:
            # Ctrl-C is heard when a long computation is over: the label has been taken by then
            if self._selection.n_labels > before:
                self._selection.settle()
                self._has_label(row)
                self._show_missing()
            else:
                self._noises.pop(row, None)
                self._selection.order = order
            raise

    def _has_label(self, row: int) -> None:
        """Do what is to be done once a label is taken."""
        if row in self._skipped:  # it could be measured after all
            self._skipped.remove(row)
            self._tell_horizon()
        self._taken(row)

    def _make_room(self, n: int) -> None:
        """Make room for n labels, and for those that will come if their number is known."""
        if self._refits is None:
            self._selection.reserve(max(n, min(self.max_labels, self.n_pool)))
        elif n > self._selection.capacity:  # a fit waits for the end of a batch
            self._selection.reserve(max(n, min(self.max_labels, n + n // 4)))

    def _put_in_order(self, row: int) -> None:
        """Let a point be the next one of those that come first, if there are some left."""
        t, order = self.n_labels, self.order
        if t >= len(order) or order[t] == row:
            return
        rest = order[t:]
        rest = np.r_[row, rest[rest != row]]
        if self.acquisition != "random":
            rest = rest[: len(order) - t]
        self._selection.order = np.r_[order[:t], rest]

    def _show_missing(self) -> None:
        """After an error: let each part of the criterion see the last label, if it has not."""
        if not self.fitted:
            return
        bounds = self._selection.bounds
        for part in separate_parts(self.criterion):
            if len(part) < len(bounds):
                try:
                    part.see(self, self.last_bound)
                except Exception:  # once more: it has the bound, and decides at the next one
                    put_back(part, bounds)

    def _skip(self, row: int) -> None:
        """Take note that a point cannot be measured."""
        try:
            self._leave_out(row)
        except KeyboardInterrupt:
            self._leave_out(row)  # all of it may be done once more
            raise

    def _leave_out(self, row: int) -> None:
        """Never ask for a point; find another one if it is an initial one."""
        if row not in self._skipped:
            self._skipped.append(row)
        self._selection.skip(row)
        order = self.order[self.order != row]
        missing = min(self.n_initial, self.most_labels) - len(order)
        if missing > 0:
            order = np.r_[order, self._random_rows(missing, order)]
        self._selection.order = order
        self._tell_horizon()
        self._taken(row)

    def _random_rows(self, n: int, order: Ints) -> Ints:
        """Return so many random points that are neither labelled nor in this order."""
        free = self._selection.unlabelled
        free[order] = False
        rng = np.random.default_rng([self._seed, self.n_labels, len(self._skipped)])
        rows: Ints = rng.permutation(np.flatnonzero(free))[:n]
        return rows

    def _catch_up(self) -> None:
        """Do what is due: tell the criterion its news, fit the hyper-parameters anew."""
        self._tell_horizon()
        self._tell_news()
        refits = self._refits
        if refits is None or self._waits():
            return
        if self.n_labels >= refits.next_at or (self._stale and self.fitted):
            self._refit()

    def _refit(self) -> None:
        """Fit the hyper-parameters to all labels, and take these anew."""
        refits = self._refits
        assert refits is not None
        rows, y = self._selection.labels, self._selection.y
        fit = refits.fit(self.points[rows], y)
        gp, selection = self.gp, self._selection
        if fit.fitted or not self.fitted:
            try:
                gp = refits.new_process(fit)
                room = min(self.max_labels, max(refits.after(fit), self.n_initial))
                selection = self._built(gp, self.points, rows, y, self._rest(rows), room)
            except (ValueError, np.linalg.LinAlgError) as error:
                if not self.fitted:
                    raise
                fit = refits.failed(y, str(error))
                gp, selection = self.gp, self._selection
        if selection is not self._selection:
            self._note_fit_before(fit)
        model = self._model if gp is self.gp else None
        fits = (*refits.fits, fit)
        # No call from here on, so that Ctrl-C finds all of it or nothing.
        self.gp, self._selection, self._model = gp, selection, model
        self._untold, self._stale = "fit", False
        refits.fits = fits
        logger.debug("fit %d, to %d labels: %r", len(fits), len(y), gp)
        self._tell_news()

    def _note_fit_before(self, new: Refit | None = None) -> None:
        """Take note of the bounds under a fit that is about to go, if somebody wants them."""

    def _tell_news(self) -> None:
        """Let the criterion see the last fit, or a label that was corrected."""
        if self._untold == "fit":
            # Also before the first bound: from its first fit on a campaign decides at fits only.
            if self.n_labels >= self.n_initial:
                see_fit(self.criterion, self, self._selection.bounds, self.refits[-1].at_edge)
        elif self._untold == "correction" and self.n_labels > self.n_initial:
            put_back(self.criterion, self._selection.bounds)
        self._untold = None

    def _rest(self, rows: Ints) -> Ints:
        """Return the order of a selection that is built anew: the labels, then who comes first."""
        rest = self.order[len(rows) :]
        if self._refits is not None and self.acquisition != "random":
            rest = rest[: max(0, self.n_initial - len(rows))]
        order: Ints = np.r_[rows, rest]
        return order

    def _built(
        self, gp: Any, points: Array, rows: Ints, y: Array, order: Ints, room: int
    ) -> Selection:
        """Return a selection with these labels, under a model; None: before the first fit.

        order : begins with the labels, in which order they are taken.
        """
        new: Selection
        if gp is None:
            new = Unfitted(len(points), order, self.n_initial)
        else:
            room = max(room, len(rows))
            new = choose(gp, points, order, self.n_initial, room, self.acquisition)
        for row in self._skipped:
            new.skip(row)
        if new.compilable and not self._noises:
            labels = np.zeros(len(points))
            labels[rows] = y
            new.run(labels, len(rows), None, True, self._threads)
        else:
            for row, label in zip(rows.tolist(), y.tolist(), strict=True):
                new.accept(row, label, self._noises.get(row))
        new.settle()
        new.order = order
        return new

    def _move(self, X: Any) -> None:
        """Go on with the same pool that has come from elsewhere."""
        points = pool_points(X, self.gp, callable(self.acquisition))
        elsewhere = isinstance(self.points, PoolElsewhere)  # perhaps it cannot be read any more
        before = checksum(self.points, "" if elsewhere else checksum(points))
        if checksum(points, before) != before:
            raise ValueError("`X` is another pool than the run's")
        kept, self.points = self.points, points
        if not self.fitted:
            return
        try:
            rows, y = self._selection.labels.copy(), self._selection.y.copy()
            order = self._rest(rows)
            room = self._room(order, self.n_initial)
            self._selection = self._built(self.gp, points, rows, y, order, room)
        except BaseException:
            self.points = kept
            raise

    def _correct(self, wrong: Sequence[int], y: Array) -> None:
        """Replace labels; take all of them anew."""
        rows, labels = self._selection.labels.copy(), self._selection.y.copy()
        place = np.empty(self.n_pool, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        labels[place[np.asarray(wrong)]] = y
        order = self._rest(rows)
        new = self._built(
            self.gp, self.points, rows, labels, order, self._room(order, self.n_initial)
        )
        model, stale = new.model, bool(self.refits)
        # No call from here on, so that Ctrl-C finds all of it or nothing.
        self._selection, self._model = new, model
        self._untold, self._stale = "correction", stale  # the last fit has seen the wrong labels
        self._tell_news()
        if self._stale and self.fitted:
            self._refit()
        self._stale = False

    def _extend(self, points: Array, names: list[Any] | None) -> None:
        """Add points to the pool."""
        n, refits = self.n_pool, self._refits
        rows, y = self._selection.labels.copy(), self._selection.y.copy()
        order = self._rest(rows)
        if self.acquisition == "random":
            # those to come are exchangeable
            rng = np.random.default_rng([self._seed, n, len(points)])
            t = max(self.n_labels, self.n_initial)
            more = np.r_[order[t:], np.arange(n, n + len(points))]
            order = np.r_[order[:t], rng.permutation(more)]
        points = np.ascontiguousarray(np.vstack((self.points, points)))
        most = len(points) if self._whole else self.max_labels
        room = most if refits is None else min(most, max(refits.next_at, len(order)))
        new = self._built(self.gp, points, rows, y, order, room)
        model = self._model if new.model is None else new.model
        scales = None if refits is None else refits.extended(points)
        # No call from here on, so that Ctrl-C finds all of it or nothing.
        self.points, self.names, self._max_labels = points, names, most
        self._selection, self._model = new, model
        if refits is not None and scales is not None:
            refits.scales, refits.features = scales
        self._tell_horizon()

    def _take_all(self, rows: Sequence[int], labels: Sequence[float | None], noise: Any) -> None:
        """Take labels in order; None: the point cannot be measured. No refit in between."""
        self._tell_horizon()
        self._tell_news()
        last = max((i for i, label in enumerate(labels) if label is not None), default=0)
        try:
            for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
                self.batch_ends = i == last
                if label is None:
                    self._skip(row)
                else:
                    self._take(row, label, None if noise is None else float(noise[i]))
        finally:
            self.batch_ends = True


def row_names(X: Any) -> list[Any] | None:
    """Return the row names of a pandas object, None of anything else."""
    index: Any = getattr(X, "index", None) if hasattr(X, "iloc") else None
    return None if index is None else list(index)
