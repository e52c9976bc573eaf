"""Hyper-parameters that nobody knows: when they are fitted anew, and what came out each time."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._core.covariance import KINDS
from fastal._core.weak import LEAST_SCALE, MOST_SCALE
from fastal._state import damaged_state, state_count, state_values
from fastal._types import Array
from fastal.learning.columns import deviations, largest, units
from fastal.learning.elsewhere import PoolElsewhere
from fastal.models.gp import GaussianProcess, mark_edge
from fastal.models.weak import LEAST_LABELS, weak_fit

# How much the labels grow between two fits, unless somebody says otherwise. More often gains
# nothing.
GROWTH = 1.2

# The scale of a column that does not vary: whatever is divided by it is nothing.
IGNORED = 1e200

# Labels from here on have no variance that is a double.
LARGEST = 1e150

# Keys of saved fits.
STATE = ("growth", "kernel", "standardised", "scales", "fits")


class Refit(NamedTuple):
    """One fit of a campaign's hyper-parameters; a value.

    Attributes
    ----------
    n_labels : int
        Number of labels at that time. With more than 1,000 the fit uses a random 1,000 of them.
    lengthscale : float
        The length scale, in standard deviations of the pool's columns if no process was given, else
        in units of X.
    noise, amplitude : float
        Variances of a label's noise and of the function, in squared units of y.
    mean : float
        Prior mean.
    at_edge : bool
        Whether the fit confirms nothing: its length scale lies at an edge of the search box.
    fitted : bool
        False if no fit was possible: the values are those of the fit before, or a guess.
    """

    n_labels: int
    lengthscale: float
    noise: float
    amplitude: float
    mean: float
    at_edge: bool
    fitted: bool


def next_refit(t: int, growth: float = GROWTH) -> int:
    """Return the number of labels at which the next fit is due, after one at t labels.

    Parameters
    ----------
    t : int
        Number of labels at the last fit.
    growth : float
        How much the labels grow between two fits.

    Returns
    -------
    int
        ``max(t + 1, round(growth * t))``.

    Examples
    --------
    >>> from fastal.learning import next_refit
    >>> next_refit(8), next_refit(100)
    (10, 120)
    """
    number = check.count("t", t, 1, check.INT64_MAX)
    return max(number + 1, math.floor(check_growth(growth, "growth") * number + 0.5))


def last_refit_before(n_labels: int) -> int | None:
    """Return the last number of labels, below the present one, at which a fit was due.

    Parameters
    ----------
    n_labels : int
        Labels now.

    Returns
    -------
    int or None
        Of 5, 6, 7, 8, 10, 12, ...; None if there was no fit yet.

    Examples
    --------
    >>> from fastal.learning.refit import last_refit_before
    >>> last_refit_before(100), last_refit_before(5)
    (86, None)
    """
    before, due = None, LEAST_LABELS
    while due < n_labels:
        before, due = due, next_refit(due)
    return before


def check_growth(growth: Any, name: str = "refit") -> float:
    """Check how much labels grow between two fits."""
    value = check.real(name, growth)
    if not 1.0 < value < math.inf:
        raise ValueError(
            f"`{name}` must be above 1, how much the labels grow between two fits, got {value:g}"
        )
    return value


def fit_growth(gp: Any, refit: float | None) -> float | None:
    """Return how much labels grow between two fits; None: there are no fits."""
    growth = GROWTH if refit is None and gp is None else refit
    return None if growth is None else check_growth(growth)


def first_labels(gp: Any, initial: Any) -> Any:
    """Return how many labels come first, or which; enough for the first fit."""
    if gp is not None:
        return 1 if initial is None else initial
    if initial is None:
        return LEAST_LABELS
    count = np.size(initial) if np.ndim(initial) else check.count("initial", initial)
    if count < LEAST_LABELS:
        raise ValueError(
            f"`initial` must be at least {LEAST_LABELS} without a `gp`, for the first fit, got "
            f"{check.short_repr(initial)}"
        )
    return initial


class Refits:
    """The fits of one campaign.

    Parameters
    ----------
    gp : GaussianProcess, optional
        Its kernel is used, and the ratios of its length scales. None: the kernel is "rbf", and
        inputs count in standard deviations of the pool.
    points : array, shape (n, d)
        The pool.
    growth : float
        How much the labels grow between two fits.
    first : int
        Number of labels at the first fit.
    """

    def __init__(
        self, gp: GaussianProcess | None, points: Any, growth: float, first: int = LEAST_LABELS
    ) -> None:
        self.growth, self.first = growth, max(first, LEAST_LABELS)
        scales = column_scales(points)
        self.kernel = "rbf" if gp is None else gp.kernel
        self.standardised = gp is None
        if gp is None:
            unit = scales
        else:
            logs = np.log(np.broadcast_to(gp.lengthscale, points.shape[1]))
            unit = np.exp(logs - logs.mean())
        # Scales of the columns, with the number of fits before which they were others.
        self.scales: list[tuple[int, Array]] = [(0, unit)]
        self.features = _varying(scales)
        self.tells_apart = bool((scales < IGNORED).any())  # whether any column varies
        self.fits: tuple[Refit, ...] = ()
        self._warned = False

    @property
    def next_at(self) -> int:
        """Number of labels at which a fit is due."""
        if not self.fits:
            return self.first
        return next_refit(self.fits[-1].n_labels, self.growth)

    @property
    def search_box(self) -> tuple[float, float]:
        """The least and the largest length scale that a fit can find."""
        unit = math.sqrt(self.features)
        return LEAST_SCALE * unit, MOST_SCALE * unit

    def after(self, fit: Refit) -> int:
        """Return the number of labels at which the fit after this one is due."""
        return next_refit(fit.n_labels, self.growth)

    def extended(self, points: Any) -> tuple[list[tuple[int, Array]], int]:
        """Return `scales` and `features` of a pool that has grown, for the fits to come."""
        new = column_scales(points)
        scales = self.scales
        if self.standardised:
            before = [one for one in scales if one[0] < len(self.fits)]
            scales = [*before, (len(self.fits), new)]
        return scales, _varying(new)

    def fit(self, X: Array, y: Array) -> Refit:
        """Return the fit to the labels so far; one that fails says so once, and is no fit.

        X : (n, d), the labelled points in their own units.
        """
        scale, last = self.scales[-1][1], self.fits[-1] if self.fits else None
        start = None
        if last is not None and last.fitted:
            start = last.lengthscale, last.noise / last.amplitude
        try:
            found = weak_fit(X / scale, y, KINDS[self.kernel], start=start, features=self.features)
        except (ValueError, np.linalg.LinAlgError) as error:
            return self.failed(y, str(error))
        return Refit(
            len(y), found.lengthscale, found.noise, found.amplitude, found.mean, found.at_edge, True
        )

    def failed(self, y: Array, why: str) -> Refit:
        """Return what is used in place of a fit, and say once why there is none."""
        if self.fits:
            kept, what = self.fits[-1], "those of the fit before"
        else:
            # Equal labels have no amplitude; any will do, since bounds do not depend on it.
            middle = float(np.mean(y))
            amplitude = middle * middle if 1 / LARGEST < abs(middle) < LARGEST else 1.0
            unit = math.sqrt(self.features)
            kept = Refit(0, unit, amplitude * 0.05, amplitude, middle, True, False)
            what = "a guess"
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"hyper-parameters could not be fitted to {len(y)} labels, and are {what} until "
                f"the next fit: {why}",
                stacklevel=2,
            )
        return kept._replace(n_labels=len(y), at_edge=True, fitted=False)

    def process(self, number: int) -> GaussianProcess:
        """Return the process of a fit by its number, without labels and in units of X."""
        scale = [unit for first, unit in self.scales if first <= number][-1]
        return self._process(self.fits[number], scale)

    def new_process(self, fit: Refit) -> GaussianProcess:
        """Return the process of a fit that `fit` has just returned."""
        return self._process(fit, self.scales[-1][1])

    def _process(self, fit: Refit, scale: Array) -> GaussianProcess:
        lengthscale: Any = fit.lengthscale * scale
        if not self.standardised and (scale == 1.0).all():
            lengthscale = fit.lengthscale
        gp = GaussianProcess(
            lengthscale, fit.noise, amplitude=fit.amplitude, mean=fit.mean, kernel=self.kernel
        )
        # The next fit takes care of labels that are far off.
        return mark_edge(gp.copy(quiet=True), fit.at_edge)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain lists and numbers."""
        return {
            "growth": self.growth,
            "kernel": self.kernel,
            "standardised": self.standardised,
            "scales": [[first, unit.tolist()] for first, unit in self.scales],
            "fits": [list(fit) for fit in self.fits],
        }

    @classmethod
    def from_dict(cls, state: Any, points: Any, first: int) -> Refits:
        """Return what `to_dict` described, over the same pool."""
        growth, kernel, standardised, scales, fits = state_values(state, STATE)
        with damaged_state():
            if not isinstance(fits, list) or not isinstance(scales, list) or not scales:
                raise ValueError("`fits` and `scales` must be lists, the latter not empty")
            kernel = check.option("kernel", kernel, tuple(KINDS))
            new = cls(GaussianProcess(kernel=kernel), points, check_growth(growth), first)
            new.standardised = check.flag("standardised", standardised)
            new.fits = tuple(_saved_fit(fit) for fit in fits)
            new.scales = [_saved_scales(one, points.shape[1]) for one in scales]
            firsts = [first for first, _ in new.scales]
            if firsts[0] != 0 or sorted(set(firsts)) != firsts or firsts[-1] > len(fits):
                raise ValueError(
                    f"`scales` must begin with fit 0 and go up to at most {len(fits)}, got {firsts}"
                )
            labels = [fit.n_labels for fit in new.fits]
            if sorted(labels) != labels:
                raise ValueError(f"`fits` must be in the order of their labels, got {labels}")
        return new


def _saved_scales(values: Any, features: int) -> tuple[int, Array]:
    if not isinstance(values, list) or len(values) != 2:
        raise ValueError(f"`scales` must have pairs, got {check.short_repr(values)}")
    first, unit = values
    scale = check.all_positive("scales", check.vector("scales", unit, features))
    return state_count("scales", first), scale


def _saved_fit(values: Any) -> Refit:
    if not isinstance(values, list) or len(values) != len(Refit._fields):
        raise ValueError(
            f"a fit must have {len(Refit._fields)} values, got {check.short_repr(values)}"
        )
    n_labels, lengthscale, noise, amplitude, mean, at_edge, fitted = values
    return Refit(
        state_count("n_labels", n_labels, LEAST_LABELS),
        check.positive("lengthscale", lengthscale),
        check.positive("noise", noise),
        check.positive("amplitude", amplitude),
        check.real("mean", mean),
        check.flag("at_edge", at_edge),
        check.flag("fitted", fitted),
    )


def _varying(scales: Array) -> int:
    """Return the number of columns that vary; all of them, if none does."""
    return int((scales < IGNORED).sum()) or len(scales)


def check_size(name: str, y: Array) -> None:
    """Refuse labels whose squares, which the amplitude is made of, are no doubles."""
    large = np.abs(y) >= LARGEST
    if large.any():
        raise ValueError(
            f"`{name}` must be below {LARGEST:g} where hyper-parameters are fitted, got "
            f"{float(y[large][0]):g}"
        )


def column_scales(points: Any) -> Array:
    """Return the standard deviation of each column; `IGNORED` for one that does not vary."""
    if isinstance(points, PoolElsewhere):
        unit, deviation = points.column_scales()
    else:
        unit = units(largest(points))
        deviation = deviations(points, unit)
    constant = deviation <= 4.0 * np.finfo(np.float64).eps
    if not isinstance(points, PoolElsewhere):  # sums of many equal values are not exact
        constant |= (points == points[:1]).all(axis=0)
    scale: Array = np.where(constant, IGNORED, deviation * unit)
    return scale
