"""Where a criterion would have stopped in a campaign that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fastal.stopping.combine import separate_parts
from fastal.stopping.measured import Measured

if TYPE_CHECKING:
    from fastal._types import Array, Ints
    from fastal.stopping.criterion import Criterion


class Fitted(NamedTuple):
    """One fit of a finished campaign; a value."""

    n_labels: int  # at the fit; 0 for hyper-parameters that were given at the beginning
    at_edge: bool  # it confirms nothing
    prior: Any  # the model without labels, in the units of the pool
    bounds: Array  # under this fit, of all labels up to the next fit


class FinishedRun(Protocol):
    """A campaign that has ended: N points, T of them labelled, in the order of the labels."""

    @property
    def prior(self) -> Any:
        """The model without labels."""

    @property
    def scaled(self) -> Array:
        """The pool over the length scales, (d, N)."""

    @property
    def order(self) -> Ints:
        """The labelled points, (T,)."""

    @property
    def y(self) -> Array:
        """Their labels, (T,)."""

    @property
    def n_initial(self) -> int:
        """Number of labels at the beginning that gave no bound."""

    @property
    def bounds(self) -> Array:
        """The bounds, (T - n_initial,)."""

    @property
    def points(self) -> Array:
        """The pool in its own units, (N, d)."""

    @property
    def refits(self) -> tuple[Fitted, ...]:
        """The fits on the way, in order; none where hyper-parameters were given."""

    @property
    def losses(self) -> Array | None:
        """Expected loss on the run's own test set after each label, (T,); None without one."""

    @property
    def prior_loss(self) -> float:
        """Expected loss on that test set before the first label."""


def measures_in(criterion: Criterion, run: FinishedRun) -> Array | None:
    """Return the measures of a finished run, one for each bound; None for what goes by bounds."""
    if isinstance(criterion, Measured):
        found: Array = criterion.measures_of_run(run)  # type: ignore[attr-defined]
        return found
    return None


def stop_in(criterion: Criterion, run: FinishedRun, measures: Array | None = None) -> int | None:
    """Return the number of bounds at the stop in a finished run; the criterion is reset.

    With fits on the way, bounds are taken as the campaign had them at each moment, never those of a
    later fit. `measures`: what `measures_in` returned.
    """
    criterion.reset()
    by_bounds, measured = [], []
    for part in separate_parts(criterion):
        if isinstance(part, Measured):
            found = measures_in(part, run) if measures is None else measures
            assert found is not None
            measured.append((part, found.tolist()))
        else:
            by_bounds.append(part)
    for n_labels, at_edge, _, bounds in run.refits or (Fitted(0, False, None, run.bounds),):
        seen = max(0, n_labels - run.n_initial)
        if n_labels > 0:
            criterion._see_fit(None, bounds[:seen], at_edge)
        for part in by_bounds:
            part.extend(bounds[seen:])
        for part, values in measured:
            for n in range(seen + 1, len(bounds) + 1):
                if n % part.every == 0:
                    part._take(values[n - 1], n)
                part._seen = n
    return criterion.stopped_at
