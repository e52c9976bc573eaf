"""Forecast: what the labels that are left would buy."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._state import check_kind, damaged_state, state_count, state_values
from fastal._threads import one_blas_thread
from fastal._types import Array, Ints
from fastal.lookahead.rollout import FAR_AHEAD, _large_order, _on_pool, _on_reference, _small_order
from fastal.models.gp import GaussianProcess

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to so many points the whole pool is rolled out and every point is its own test; above, other
# inputs are needed to test on, and the roll ends at the horizon.
WHOLE_POOL = 2048

# Of a larger pool without `reference`, one row in HELD_OUT, at most MOST_HELD_OUT, is held out.
HELD_OUT = 10

MOST_HELD_OUT = 1000

# rho starts as 1 with the weight of so many labels.
PRIOR_LABELS = 5

# When to warn: rho outside of these (on the paper's six sets forecasts held within them), a noise
# variance at the lower bound of `fit_hyperparameters`, a share of rows that repeat others.
TOO_NEAR, TOO_FAR = 1 / 3, 2.0

TINY_NOISE = 1.001e-4

MANY_REPEATED = 0.05

# The fall of the RMSE is counted from so many labels on, and must be at least this share of what it
# falls from: a fit to few labels can find that these say nothing about each other, and then nearly
# nothing would be left of a fall of nearly nothing.
FALL_FROM = 5

LEAST_FALL = 0.02

NOTHING_TO_LEARN = "the model finds nothing to learn in these labels"


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What the labels of a pool are expected to buy, one after the other.

    Made by `forecast`. Entry ``t - 1`` of an array belongs to t labels.

    Attributes
    ----------
    order : array of int, shape (horizon,)
        Rows of the pool as maximum variance takes them, those labelled already first.
    reduction : array, shape (horizon,)
        By how much the mean squared error is still expected to fall from t labels on, in squared
        units of the labels. Below `n_labelled` it is for the labels as they came.
    fraction : array, shape (horizon,)
        The same over its first entry, that of one label.
    loss_fall : array, shape (horizon,)
        The same as a fall of the expected loss in nats, corrected by `rho`:
        ``(1 + rho) / (2 noise)`` times `reduction`.
    rmse : array, shape (horizon,)
        Root mean squared error that is expected at new inputs after t labels, noise included:
        ``sqrt(final_error + reduction)``, in units of the labels.
    rmse_share : array, shape (horizon,)
        What is left of its fall: ``(rmse - end) / (rmse[4] - end)``, with ``end =
        sqrt(final_error)``; 1 throughout if there is `nothing_to_learn`. It is what counts where
        hyper-parameters come from the same labels.
    nothing_to_learn : bool
        Whether the RMSE falls by less than 2 % from five labels to the end: the model takes the
        labels for noise, or for values that say nothing about each other.
    noise_of_final : float
        The model's own standard deviation of the final error, in the unit of `reduction`.
    final_error : float
        Mean squared error expected at the end, noise included, in the unit of `reduction`; NaN in a
        forecast that was saved by version 0.1.
    noise : float
        Noise variance of the process.
    rho : float
        ``(5 + sum z^2) / (5 + t)`` over the t labels of `gp`, z their distance from the prediction
        before it in standard deviations: about 1 if the model fits, and 1 without labels.
    n_residuals : int
        Number of labels that `rho` is computed from.
    n_pool, n_labelled, horizon : int
        Number of points, of labels already there, and of labels up to which the forecast goes.
    whole : bool
        Whether `reduction` refers to labelling the whole pool, or (False) up to the horizon.
    warnings : tuple of str
        Why to trust it less.
    """

    order: Ints
    reduction: Array
    noise_of_final: float
    noise: float
    rho: float
    n_residuals: int
    n_pool: int
    n_labelled: int
    whole: bool
    warnings: tuple[str, ...]
    final_error: float = math.nan

    def __post_init__(self) -> None:
        for array in (self.order, self.reduction):
            array.flags.writeable = False  # criteria share a forecast

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    @property
    def horizon(self) -> int:
        """Number of labels up to which the forecast goes."""
        return len(self.reduction)

    @property
    def fraction(self) -> Array:
        """What is left of the reduction after one label."""
        first = self.reduction[0]
        return self.reduction / first if first > 0 else np.zeros(self.horizon)

    @property
    def loss_fall(self) -> Array:
        """Fall of the expected loss still to come, in nats."""
        return (1.0 + self.rho) / (2.0 * self.noise) * self.reduction

    @property
    def rmse(self) -> Array:
        """Root mean squared error expected after each label."""
        return np.sqrt(self.final_error + self.reduction)

    @property
    def nothing_to_learn(self) -> bool:
        """Whether the RMSE hardly falls after the first five labels."""
        first, end = self._fall()
        return first - end < LEAST_FALL * first

    @property
    def rmse_share(self) -> Array:
        """What is left of the fall of the RMSE after five labels."""
        first, end = self._fall()
        if self.nothing_to_learn:
            return np.ones(self.horizon)
        return (self.rmse - end) / (first - end)

    def _fall(self) -> tuple[float, float]:
        """Return the RMSE at five labels, or at the horizon, and at the end."""
        # sqrt(e^2 + r) - sqrt(e^2) is 0 where r is: both are rounded alike
        first = self.reduction[min(FALL_FROM, self.horizon) - 1]
        return math.sqrt(self.final_error + first), math.sqrt(self.final_error)

    def labels_for(self, eps: float = 0.05) -> int | None:
        """Return how many labels leave at most a share `eps` of the reduction unused.

        Parameters
        ----------
        eps : float
            Share of what is to be had after the first label, in (0, 1).

        Returns
        -------
        int or None
            Number of labels, those already there included; None if the horizon is too near.
        """
        eps = check.probability("eps", eps)
        enough = np.flatnonzero(self.fraction <= eps)
        return int(enough[0]) + 1 if enough.size else None

    def labels_for_rmse(self, eps: float = 0.05) -> int | None:
        """Return how many labels leave at most a share `eps` of the fall of the RMSE.

        Parameters
        ----------
        eps : float
            Share of the fall from five labels to the end, in (0, 1).

        Returns
        -------
        int or None
            Number of labels, those already there included; None if the horizon is too near, or if
            there is `nothing_to_learn`.
        """
        eps = check.probability("eps", eps)
        enough = np.flatnonzero(self.rmse_share <= eps)
        return int(enough[0]) + 1 if enough.size else None

    def labels_at_price(self, price: float) -> int:
        """Return after how many labels further ones cost more than they buy.

        Parameters
        ----------
        price : float
            What labelling the whole pool costs, over what all labels after the first are worth;
            positive. With 0.2 a tenth of the pool must buy 2 % of the reduction.

        Returns
        -------
        int
            The t that minimises ``fraction + price * t / n_pool``.
        """
        price = check.positive("price", price)
        labels = np.arange(1, self.horizon + 1)
        return int(np.argmin(self.fraction + price * labels / self.n_pool)) + 1

    def labels_as_paper(self) -> int | None:
        """Return after how many labels the rest lies within the noise of the final error.

        Returns
        -------
        int or None
            First t with ``reduction <= noise_of_final``: what the paper's experiments call
            converged, foreseen; None if the horizon is too near.
        """
        enough = np.flatnonzero(self.reduction <= self.noise_of_final)
        return int(enough[0]) + 1 if enough.size else None

    def bought_by(self, labels: int) -> float:
        """Return the share of the remaining reduction that so many more labels buy.

        Parameters
        ----------
        labels : int
            Number of labels beyond those already there.

        Returns
        -------
        float
            In [0, 1]; 0 if nothing remains.
        """
        now = max(self.n_labelled, 1)
        then = now + check.count("labels", labels)
        if then > self.horizon:
            raise ValueError(
                f"`labels` must be at most {self.horizon - now}, up to the horizon, got "
                f"{check.short_repr(labels)}"
            )
        left = self.reduction[now - 1]
        return float(1.0 - self.reduction[then - 1] / left) if left > 0 else 0.0

    def plot(self, ax: Axes | None = None, **rules: Any) -> Axes:
        """Draw what is left after each label, with the stops marked.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.
        **rules
            As in `fastal.plotting.plot_forecast`: `eps`, `price`, `rmse`.

        Returns
        -------
        matplotlib axes
            Where it was drawn.
        """
        from fastal.plotting.forecast import plot_forecast

        return plot_forecast(self, ax, **rules)

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`.
        """
        return {
            "kind": "Forecast",
            "version": 2,
            "order": self.order.tolist(),
            "reduction": self.reduction.tolist(),
            "noise_of_final": self.noise_of_final,
            "noise": self.noise,
            "rho": self.rho,
            "n_residuals": self.n_residuals,
            "n_pool": self.n_pool,
            "n_labelled": self.n_labelled,
            "whole": self.whole,
            "warnings": list(self.warnings),
            "final_error": None if math.isnan(self.final_error) else self.final_error,
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Forecast:
        """Return the forecast that `to_dict` described.

        Parameters
        ----------
        state : dict
            From `to_dict`, perhaps by way of JSON.

        Returns
        -------
        Forecast
            An equal one. What is damaged or foreign raises a ValueError that says what is wrong.
        """
        names = ("kind", "version", "order", "reduction", "noise_of_final", "noise", "rho",
                 "n_residuals", "n_pool", "n_labelled", "whole", "warnings",
                 "final_error")  # fmt: skip
        check_kind(state, "Forecast", 2)
        if isinstance(state, dict) and state.get("version") == 1:
            state = {"final_error": None} | state | {"version": 2}
        _, _, order, reduction, final, noise, rho, residuals, n, t, whole, said, error = (
            state_values(state, names)
        )
        with damaged_state():
            n, t = state_count("n_pool", n, 2), state_count("n_labelled", t)
            values = check.not_negative("reduction", reduction)
            rows = np.array([state_count("order", i) for i in order], dtype=np.int64)
            if values.ndim != 1 or not (max(t, 1) <= len(values) == len(rows) <= n):
                raise ValueError(
                    "its arrays do not fit the numbers of labels, `n_labelled` and `n_pool`"
                )
            return cls(
                check.indices("order", rows, n),
                values,
                check.zero_or_more("noise_of_final", final),
                noise=check.positive("noise", noise),
                rho=check.positive("rho", rho),
                n_residuals=state_count("n_residuals", residuals),
                n_pool=n,
                n_labelled=t,
                whole=check.flag("whole", whole),
                warnings=tuple(map(str, said)),
                final_error=math.nan if error is None else check.positive("final_error", error),
            )

    @property
    def summary(self) -> str:
        """What the labels up to the horizon would buy, and when most of it is bought, in words."""
        now, end = self.n_labelled, self.horizon
        labels = f"{end - now} more labels" if now else f"{end} labels"
        if now > 1:
            gained = self.reduction[0] - self.reduction[now - 1]
            share = self.reduction[now - 1] / gained if gained > 0 else math.inf
            size = f"{_percent(share)} of" if share < 1 else f"{share:.2g} times"
            bought = f"about {size} what was gained so far"
        else:
            bought = f"about {self.loss_fall[0]:.2g} nats, from the first one on"
        text = f"{labels} would lower the expected loss by {bought} (within a factor of two); "
        stop = self.labels_for(0.05)
        if stop is None:
            return text + f"the last 5 % of all that can be bought lie beyond {end} labels"
        end_of = "the pool" if self.whole else "the horizon"
        when = "already, after" if stop <= now else "after"
        return text + f"95 % of what labels up to the end of {end_of} buy is bought {when} {stop}"

    def __str__(self) -> str:
        return "; ".join((self.summary, *self.warnings))

    def __repr__(self) -> str:
        return (
            f"Forecast({self.n_labelled} of {self.n_pool} labelled, up to {self.horizon}: "
            f"5 % is left after {self.labels_for(0.05)})"
        )


def forecast(
    X: ArrayLike,
    gp: GaussianProcess,
    *,
    labelled: ArrayLike | None = None,
    horizon: int | None = None,
    reference: ArrayLike | None = None,
    samples: int = 32,
    seed: int = 0,
) -> Forecast:
    """Say what the remaining labels of a pool would buy, before they are bought.

    Selection by maximum variance is rolled forward over the pool without labels, and the mean
    squared error after each label is predicted.

    Parameters
    ----------
    X : array_like, shape (n, d)
        The pool, labelled rows included; shape (n,) for one feature.
    gp : GaussianProcess
        The model, with or without labels; it is only read. Its labels must be of rows of `X`, with
        the noise of the process.
    labelled : array_like of int, optional
        Rows that are labelled already, in order. By default the rows of the labels of `gp`.
    horizon : int, optional
        Number of labels, those already there included, up to which to look. By default all of a
        pool of at most 2,048 points, and 1,000 more labels in a larger one.
    reference : array_like, shape (m, d), optional
        Other inputs of the same population to predict the error on. By default the points of the
        pool are their own test, by leaving out one at a time; of a pool of more than 2,048 points a
        random tenth of the unlabelled rows, at most 1,000, is held out for it, and not in `order`.
    samples : int, optional
        Of the points selected, how many are left out and the selection run again without them:
        every so many-th. More are slower and more precise. Not used with `reference`.
    seed : int, optional
        Draws the rows held out.

    Returns
    -------
    Forecast
        What is left after each label, and where to stop.

    Warns
    -----
    UserWarning
        If many rows repeat others, if the noise is at the lower bound of a fit, or if the labels
        do not fit the model. The texts are in `Forecast.warnings` as well.

    Notes
    -----
    With P the inverse of K + noise I over the pool, ``loo_i = 1 / P_ii - noise`` is the variance of
    point i given all others. A point i without a label after t labels has the variance
    ``var_i(t)``; for a labelled one that would be too small, so the selection is run again without
    it, which gives ``v_i(t)``. Then

    ``reduction_t = (sum over unlabelled i of (var_i(t) - loo_i) + t * mean over sampled labelled i
    of (v_i(t) - loo_i)) / n``.

    With `reference` it is the mean of ``var_ref(t) - var_ref(end)``. The end is the exhausted pool
    for pools of at most 2,048 points, whatever the horizon; for larger ones it is the horizon, and
    what labels beyond it would buy is left out.

    `noise_of_final` is ``sqrt(2 G)``, G the mean over pairs i != j of ``C_ij^2``, where
    ``C_ij = -P_ij / (P_ii P_jj - P_ij^2)`` is the covariance of two points given all others; with
    `reference`, the covariance of two of the first 500 of these at the end.

    The mean squared error after t labels is ``final_error + reduction_t``, with ``final_error``
    the mean of ``loo_i`` plus the noise: that of a point which is not among the labels. (The
    variances of labelled points themselves are smaller; with those in the mean, the error would
    seem to fall for the mere reason that more of the points tested have a label.)

    **Limits.** The hyper-parameters must not come from a handful of the same labels: with those of
    100 to 200 earlier points it is clearly better than a fixed budget, with those of the labels
    bought so far `fraction` is not. `rmse_share` of two fits in a row is what can be trusted then:
    that is what `LookAhead` goes by where a learner fits hyper-parameters on the way. Where they
    come from cannot be seen from `gp`, so it is not warned of. Selection by
    maximum variance is assumed, or another one that does not look at labels and does about as well.
    Repeated rows and a noise of nearly zero break it. There are no calibrated intervals: within a
    factor of two is what held.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, forecast
    >>> X = np.random.default_rng(0).uniform(0, 10, 100)
    >>> ahead = forecast(X, GaussianProcess(1.0, 0.01), labelled=[0])
    >>> ahead.labels_for(0.05), ahead.labels_at_price(0.2)
    (9, 13)
    >>> ahead.fraction[[0, 4, 9, 14, 19]].round(3)
    array([1.   , 0.354, 0.034, 0.008, 0.006])
    """
    made = quiet_forecast(X, gp, labelled, horizon, reference, samples, seed)
    for text in made.warnings:
        warnings.warn(text, UserWarning, stacklevel=2)
    return made


def quiet_forecast(
    X: ArrayLike, gp: GaussianProcess, labelled: ArrayLike | None, horizon: int | None = None,
    reference: ArrayLike | None = None, samples: int = 32, seed: int = 0, *,
    skipped: ArrayLike = (), least: int = 2,
) -> Forecast:  # fmt: skip
    """Return the forecast; its warnings are only in it.

    skipped : rows that are not in the pool any more.  least : unlabelled points there must be.
    """
    rows = np.asarray(skipped, dtype=np.int64)
    if len(rows):
        points = np.asarray(X)
        kept = np.delete(np.arange(len(points)), rows)
        place = np.full(len(points), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        there = None if labelled is None else place[np.asarray(labelled, dtype=np.int64)]
        made = quiet_forecast(
            points[kept], gp, there, horizon, reference, samples, seed, least=least
        )
        return replace(made, order=kept[made.order], n_pool=len(points))
    if not isinstance(gp, GaussianProcess):
        raise TypeError(f"`gp` must be a GaussianProcess, got {check.short_repr(gp)}")
    gp = gp.copy()  # another thread may add labels meanwhile
    points = check.points("X", X, gp.prior.features)
    n = len(points)
    Z = gp.prior.scale("X", points)
    done = _labelled(labelled, gp, Z)
    if n - len(done) < least or n < 2:
        raise ValueError(
            f"`X` must have at least two unlabelled points, got {n - len(done)} of {n}"
        )
    n_samples, seed = check.count("samples", samples, 1), check.seed("seed", seed)
    repeated = check_repeated(points)
    others = None
    if reference is not None:
        others = check.points("reference", reference, points.shape[1])
        if len(others) < 2:
            raise ValueError(f"`reference` must have at least two rows, got {len(others)}")
    last = _horizon(horizon, n, len(done))
    with one_blas_thread():
        if n > WHOLE_POOL:
            rest = np.setdiff1d(np.arange(n), done)
            if others is None:
                count = min(MOST_HELD_OUT, len(rest) // HELD_OUT)
                if count < 2:
                    raise ValueError(
                        f"`reference` must be given: {len(rest)} of {n} points are unlabelled, too "
                        "few to hold some of them out"
                    )
                held = np.random.default_rng(seed).choice(rest, count, replace=False)
                others, rest = points[held], np.setdiff1d(rest, held)
                last = min(last, len(done) + len(rest))
            order = _large_order(gp, Z, done, rest, last)
            reduction, final, variance = _on_reference(gp, points[order], others)
        else:
            order, V = _small_order(gp, Z, done)
            if others is None:
                reduction, final, variance = _on_pool(gp, V, len(done), last, n_samples)
            else:
                reduction, final, variance = _on_reference(gp, points[order], others)
    white = gp.residuals
    rho = rho_of(float(white @ white), len(white))
    said = tuple(_doubts(gp, repeated, n, rho))
    return Forecast(
        order[:last],
        np.maximum(reduction[:last], 0.0),
        final,
        noise=gp.noise,
        rho=rho,
        n_residuals=gp.n_labels,
        n_pool=n,
        n_labelled=len(done),
        whole=n <= WHOLE_POOL,
        warnings=said,
        final_error=max(variance, 0.0) + gp.noise,
    )


def check_repeated(points: Array) -> int:
    """Return how many rows repeat others; refuse more of them than distinct ones."""
    n = len(points)
    repeated = n - len(np.unique(points + 0.0, axis=0))
    if repeated > n - repeated:
        raise ValueError(
            f"`X` must not have more repeated rows than distinct ones, got {repeated} of {n}: "
            "leave out duplicates"
        )
    return repeated


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _labelled(labelled: ArrayLike | None, gp: GaussianProcess, Z: Array) -> Ints:
    """Return the rows of the pool that are labelled, in order."""
    n, t = Z.shape[1], gp.n_labels
    found = _rows_of_labels(gp, Z) if t else np.empty(0, dtype=np.int64)
    if labelled is None:
        return found
    chosen = check.indices("labelled", labelled, n)
    if t and not (len(chosen) == t and np.array_equal(Z[:, chosen], Z[:, found])):
        raise ValueError(
            f"`labelled` must be the rows of the {t} labels of `gp`, in order, got "
            f"{check.short_repr(labelled)}: leave it out, or use a process without labels"
        )
    return chosen


def _rows_of_labels(gp: GaussianProcess, Z: Array) -> Ints:
    """Return the row of the pool that each label of the process belongs to."""
    t = gp.n_labels
    inputs, own = gp.scaled_inputs, gp.label_noise
    if len(inputs) != Z.shape[0]:
        raise ValueError(f"`gp` has labels of {len(inputs)} features, `X` has {Z.shape[0]}")
    if (own != gp.noise).any():
        bad = int(np.flatnonzero(own != gp.noise)[0])
        raise ValueError(
            f"`gp` must have labels of its own noise {gp.noise:g} only, got {own[bad]:g} at label "
            f"{bad}"
        )
    rows: dict[bytes, list[int]] = {}
    for i in range(Z.shape[1] - 1, -1, -1):
        rows.setdefault((Z[:, i] + 0.0).tobytes(), []).append(i)
    found = np.empty(t, dtype=np.int64)
    for label in range(t):
        same = rows.get((inputs[:, label] + 0.0).tobytes())
        if not same:
            raise ValueError(
                f"`gp` must have labels of rows of `X` only, got label {label}, which is of no row "
                "of `X`, or one more than there are of its row"
            )
        found[label] = same.pop()
    return found


def _horizon(horizon: int | None, n: int, labels: int) -> int:
    if horizon is None:
        return n if n <= WHOLE_POOL else min(n, labels + FAR_AHEAD)
    last = check.integer("horizon", horizon)
    if not (max(labels + 1, 2) <= last <= n):
        raise ValueError(
            f"`horizon` must be between {max(labels + 1, 2)} and the size of the pool ({n}), "
            f"got {check.short_repr(last)}"
        )
    return last


def rho_of(squares: Any, labels: Any) -> Any:
    """Return rho = (5 + sum z^2) / (5 + t), of numbers or arrays."""
    return (PRIOR_LABELS + squares) / (PRIOR_LABELS + labels)


def _doubts(gp: GaussianProcess, repeated: int, n: int, rho: float) -> list[str]:
    """Return reasons to distrust the forecast."""
    said = []
    if repeated > MANY_REPEATED * n:
        said.append(
            f"{repeated} of {n} rows repeat others: the forecast takes them for new information "
            "about other inputs; leave out duplicates"
        )
    if gp.noise <= TINY_NOISE * gp.amplitude:
        said.append(
            f"the noise variance {gp.noise:.2g} is nearly zero next to the amplitude "
            f"{gp.amplitude:.2g}: the forecast then hangs on the kernel being exactly right; fit "
            "the noise on more data, or set it to what labels really vary by"
        )
    text = _misfit(rho)
    return [*said, text] if text else said


def _misfit(rho: float) -> str:
    """Return what a rho far from 1 means, or nothing."""
    if rho > TOO_FAR:
        return (
            f"labels are {math.sqrt(rho):.2g} times as far from their predictions as the model "
            "expects: fit the hyper-parameters again (with amplitude=True), or give the process "
            "more noise"
        )
    if rho < TOO_NEAR:
        return (
            f"labels are {math.sqrt(1 / rho):.2g} times as near to their predictions as the model "
            "expects: fit the hyper-parameters again (with amplitude=True), or scale the labels"
        )
    return ""
