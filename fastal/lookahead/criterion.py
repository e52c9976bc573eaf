"""LookAhead: stop when the labels that are left are forecast to buy too little."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from fastal import _memory
from fastal import _validation as check
from fastal._core.rule import CompiledRule, Counter
from fastal._state import damaged_state, state_count, state_values
from fastal._types import Array, Ints
from fastal.lookahead.gain import (
    NOTHING_TO_LEARN,
    PRIOR_LABELS,
    Forecast,
    _misfit,
    _percent,
    check_repeated,
    forecast,
    quiet_forecast,
    rho_of,
)
from fastal.models.gp import GaussianProcess
from fastal.stopping.criterion import Criterion, PastCampaign, replayed

if TYPE_CHECKING:
    from fastal.stopping.criterion import CampaignView, FinishedRun, FittedView

# Keys of a saved criterion of version 1, besides kind and version, and those that have joined them.
FIRST = ("eps", "price", "paper", "forecast", "given", "seen", "compared", "squares")
STATE = (*FIRST, "initial", "fits", "trouble")
FITS = ("values", "at_edge", "n_labels", "before", "after", "confirmed", "stop")


class _Fits(NamedTuple):
    """What is known of the fits of a campaign that learns its hyper-parameters on the way."""

    values: tuple[float, ...] = ()  # hyper-parameters of the last fit; none before the first
    at_edge: bool = False  # whether it confirms nothing
    n_labels: int = 0  # labels at the last fit
    before: float = math.nan  # share that was left at the fit before; NaN: unknown
    after: float = math.nan  # share left at the last fit
    confirmed: bool = False  # whether neither of the two lies at an edge
    stop: int | None = None  # number of bounds at the stop

    @property
    def left(self) -> float:
        """The larger of the two shares; NaN if one is unknown."""
        return float(np.maximum(self.before, self.after))

    @property
    def counts(self) -> float:
        """The share that decides: the larger one, NaN if the fits do not confirm each other."""
        return self.left if self.confirmed else math.nan


class _Seen(NamedTuple):
    """What a `LookAhead` knows: set as one, after a complete change."""

    forecast: Forecast | None = None
    stops_at: int | None = None
    given: bool = False  # whether the forecast came by `begin`, or is one of a learner's pool
    labels: int = 0  # that gave a bound
    compared: int = 0
    squares: float = 0.0
    initial: int = 0  # labels that gave none
    fits: _Fits | None = None  # None: hyper-parameters are given
    trouble: str = ""  # why there is no forecast where there should be one

    @property
    def before_labels(self) -> _Seen:
        """What stays when the labels are forgotten: a forecast that was given."""
        if self.forecast is None or not self.given:
            return _Seen()
        return _Seen(self.forecast, self.stops_at, True, initial=self.forecast.n_labelled)

    @property
    def needed(self) -> int | None:
        """Number of bounds at which it stops, or did; None: not foreseen."""
        if self.fits is not None:
            return self.fits.stop
        if self.forecast is None or self.stops_at is None:
            return None
        # if there are more labels than were needed, the next bound says so
        return max(self.stops_at, self.forecast.n_labelled + 1) - self.initial

    @property
    def stopped_at(self) -> int | None:
        needed = self.needed
        if self.fits is not None or needed is None:
            return needed
        return needed if self.labels >= needed else None

    @property
    def rho(self) -> float:
        if self.forecast is None:
            return 1.0
        before = self.forecast.n_residuals
        squares = self.forecast.rho * (PRIOR_LABELS + before) - PRIOR_LABELS
        return float(rho_of(squares + self.squares, before + self.compared))


class LookAhead(Criterion):
    """Stop when the labels that are left are forecast to buy too little.

    With hyper-parameters that are given, the forecast is made once, before the labels; a label then
    costs O(1). These must be ones that can be trusted (see `forecast`), and points must be selected
    by maximum variance.

    Where hyper-parameters are fitted on the way, as in ``learn(X, y, stopper=LookAhead())``, a
    forecast is made at each fit, from the labels so far, and `eps` is a share of the fall of the
    RMSE from five labels to the end of the pool (`Forecast.rmse_share`). Two fits must agree: the
    larger of what was left at the last two fits, each with its own labels, must be at most `eps`. A
    fit at an edge of its search box confirms nothing.

    Parameters
    ----------
    eps : float, optional
        Stop when at most this share of what all labels after the first buy is left, in (0, 1); 0.05
        if nothing else is given.
    price : float, optional
        Instead: stop when further labels cost more than they buy, see `Forecast.labels_at_price`.
        For hyper-parameters that are given.
    paper : bool, optional
        Instead: stop when the rest lies within the noise of the final error, which is what the
        paper's experiments call converged. For hyper-parameters that are given.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, LookAhead, forecast
    >>> X = np.random.default_rng(0).uniform(0, 10, 100)
    >>> gp = GaussianProcess(1.0, 0.01)
    >>> rule = LookAhead(eps=0.05).begin(forecast(X, gp, labelled=[0]))
    >>> rule.stops_at
    9
    >>> _ = gp.add(X[0], np.sin(X[0]))
    >>> for i in rule.forecast.order[1:]:
    ...     mean, var = gp.predict(X[[i]], return_var=True)
    ...     _ = gp.add(X[i], np.sin(X[i]))
    ...     if rule.update(mean[0], var[0], np.sin(X[i])):
    ...         break
    >>> rule.reason
    'after 9 labels 5 % of what all labels buy is left (at most 5 % was asked for)'
    """

    def __init__(
        self, eps: float | None = None, *, price: float | None = None, paper: bool = False
    ) -> None:
        paper = check.flag("paper", paper)
        if (eps is not None) + (price is not None) + paper > 1:
            raise ValueError(
                f"`eps`, `price` and `paper` exclude one another, got {eps}, {price} and {paper}"
            )
        if eps is None and price is None and not paper:
            eps = 0.05
        self.eps = None if eps is None else check.probability("eps", eps)
        self.price = None if price is None else check.positive("price", price)
        self.paper = paper
        self._seen = _Seen()

    push_takes = ""  # only the number of labels counts

    # Beside the attributes, which are the state: what a compiled loop has, if one is at work.
    __slots__ = ("_lent",)

    _lent: Counter | None

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make a criterion."""
        new = super().__new__(cls)
        new._lent = None
        return new

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return state[0] if isinstance(state, tuple) else state

    def compiled_in(self, campaign: CampaignView) -> CompiledRule:
        """Return the criterion as the compiled loop of a campaign sees it: labels are counted.

        The forecast says in advance at how many of them it stops; fits say so between loops.
        """
        seen = self._seen
        needed = seen.needed
        self._lent = Counter(check.INT64_MAX if needed is None else needed, seen.labels)
        return CompiledRule(None, self._lent)

    def has_run(self, campaign: CampaignView) -> None:
        """Count the labels of a compiled loop, and compare them with what the model expected."""
        lent, self._lent = self._lent, None
        if lent is not None and lent.seen > self._seen.labels:
            self._count(campaign, lent.seen)

    @property
    def forecast(self) -> Forecast | None:
        """The forecast that decides, if there is one yet; with fits on the way, the last one."""
        return self._seen.forecast

    @property
    def stops_at(self) -> int | None:
        """Number of labels at which it will stop, or None: not foreseen."""
        return self._seen.stops_at

    def allow_refits(self) -> None:
        """Get ready for hyper-parameters that are fitted on the way: only `eps` knows these."""
        if self.eps is None:
            name, value = ("paper", True) if self.paper else ("price", self.price)
            raise ValueError(
                f"`{name}` must not be given where hyper-parameters are fitted on the way, got "
                f"{value}: use `eps`"
            )
        if self._seen.given:
            raise ValueError(
                "LookAhead must not have a forecast where hyper-parameters are fitted on the way: "
                "it makes one at each fit, got one by `begin`"
            )
        if self._seen.fits is None:
            self._seen = _Seen(fits=_Fits())

    def start(self, campaign: CampaignView) -> None:
        """Make the forecast of a campaign's pool, before its first label.

        Where hyper-parameters are fitted on the way there is none before the first fit.
        """
        fits = self._seen.fits
        if fits is None and not isinstance(campaign.prior, GaussianProcess):
            raise TypeError(
                f"LookAhead needs a GaussianProcess, got {check.short_repr(campaign.prior)}"
            )
        if not getattr(campaign.points, "has_all", True):
            raise TypeError(
                "LookAhead labels all rows of the pool in advance: not where `X` is a dask array"
            )
        if campaign.acquisition != "max_variance":
            raise ValueError(
                "`acquisition` must be 'max_variance' with LookAhead, got "
                f"{check.short_repr(campaign.acquisition)}"
            )
        if fits is not None:
            check_repeated(campaign.points)  # now, and not at the first fit
            self._seen = self._seen._replace(initial=campaign.n_initial)
            return
        first = campaign.initial_rows
        ahead = self.forecast
        if ahead is None:
            self._begin_with(forecast(campaign.points, campaign.prior, labelled=first), False)
        elif (ahead.n_pool, ahead.n_labelled) != (campaign.n_pool, len(first)):
            raise ValueError(
                f"the forecast must be of {campaign.n_pool} points with {len(first)} labels, got "
                f"one of {ahead.n_pool} with {ahead.n_labelled}"
            )

    def after_label(self, campaign: CampaignView) -> bool:
        """Count one label, and compare it with what the model had expected."""
        return self._count(campaign, self._seen.labels + 1)

    def _count(self, campaign: CampaignView, labels: int) -> bool:
        """Have counted so many labels of a campaign."""
        squares, compared = 0.0, 0
        if self._seen.fits is None:  # else fits see to it that labels are as expected
            residuals = campaign.residuals
            squares, compared = float(residuals @ residuals), len(residuals)
        self._seen = self._seen._replace(labels=labels, compared=compared, squares=squares)
        return self.stopped

    def refitted(self, campaign: FittedView, *, at_edge: bool = False) -> bool:
        """Make a forecast under new hyper-parameters, and decide.

        Parameters
        ----------
        campaign : FittedView
            The learner, with its labels under the new hyper-parameters; or a finished run as it was
            then.
        at_edge : bool
            Whether the fit lies at an edge of its search box: then it confirms nothing.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        at_edge = check.flag("at_edge", at_edge)
        if self._seen.fits is None:
            self.allow_refits()
        seen = self._seen
        fits = seen.fits
        assert fits is not None
        if fits.stop is not None:
            return True
        if _hyperparameters(campaign.prior) == fits.values:
            return False  # the same fit once more
        made, now, trouble = _next_fit(fits, campaign, at_edge)
        bounds = max(0, now.n_labels - campaign.n_initial)
        assert self.eps is not None
        if now.counts <= self.eps:
            now = now._replace(stop=bounds)
        self._seen = _Seen(
            made, labels=bounds, initial=campaign.n_initial, fits=now, trouble=trouble
        )
        return self.stopped

    def pool_changed(self, campaign: CampaignView) -> None:
        """Make the forecast of a campaign anew: its pool has got more points, or fewer.

        A stop stays, and so does a forecast that was given by `begin`. Nothing is decided before
        the next label or fit.

        Parameters
        ----------
        campaign : CampaignView
            The learner.
        """
        seen = self._seen
        if seen.given or self.stopped or campaign.prior is None:
            return
        if seen.fits is not None and not seen.fits.values:
            return  # there is no fit yet
        rows = campaign.labelled
        if len(rows) < campaign.n_initial:
            rows = campaign.initial_rows
        made, trouble = _forecast_now(campaign, rows)
        fits, stops_at = seen.fits, None
        if fits is not None:
            fits = fits._replace(after=_share_at(made, fits.n_labels))
        elif made is not None:
            stops_at = self._stop_of(made)
        self._seen = seen._replace(forecast=made, stops_at=stops_at, fits=fits, trouble=trouble)

    def _unlatch(self) -> None:
        fits = self._seen.fits
        if fits is not None:
            self._seen = self._seen._replace(fits=fits._replace(stop=None))

    @property
    def _replays(self) -> bool:
        return True

    def stop_in(self, run: FinishedRun, measures: Array | None) -> int | None:
        """Return the number of bounds at the stop, from a forecast of the run's pool."""
        if run.refits:
            return replayed(self, run)
        ahead = quiet_forecast(run.scaled.T, run.unit_process(), run.order[: run.n_initial])
        self._seen = self._before_labels(ahead, True)._replace(labels=len(run.bounds))
        return self.stopped_at

    def begin(self, forecast: Forecast) -> Self:
        """Take the forecast of a pool, before the first bound; return the criterion itself.

        Parameters
        ----------
        forecast : Forecast
            Its labels already there are those that give no bounds. The next bound is that of the
            label after them. A new forecast, as after a change of hyper-parameters, starts again.

        Returns
        -------
        LookAhead
            Without bounds; `stops_at` is the number of labels at which it will stop, or None.
        """
        if not isinstance(forecast, Forecast):
            raise TypeError(f"`forecast` must be a Forecast, got {check.short_repr(forecast)}")
        return self._begin_with(forecast, True)

    def _begin_with(self, forecast: Forecast, given: bool) -> Self:
        seen = self._before_labels(forecast, given)
        self._seen = seen
        return self

    def _before_labels(self, forecast: Forecast, given: bool) -> _Seen:
        """Return what is known before the first bound."""
        return _Seen(forecast, self._stop_of(forecast), given, initial=forecast.n_labelled)

    def _stop_of(self, forecast: Forecast) -> int | None:
        """Return the number of labels at the stop, as a forecast has it."""
        if self.eps is not None:
            return forecast.labels_for(self.eps)
        if self.price is not None:
            return forecast.labels_at_price(self.price)
        return forecast.labels_as_paper()

    def push(self, r: float) -> bool:
        """Take the bound of one label, of which only the number counts."""
        check.real("r", r)
        if self._seen.fits is None:
            _begun(self._seen)
        self._seen = self._seen._replace(labels=self._seen.labels + 1)
        return self.stopped

    def update(self, mean: float, var: float, y: float, noise: float | None = None) -> bool:
        """Take one label, and compare it with what the model had expected.

        Parameters
        ----------
        mean, var, y : float
            Posterior before the label, and the label.
        noise : float, optional
            Noise variance; that of the forecast by default.

        Returns
        -------
        bool
            Whether there has been a stop.
        """
        own = None if noise is None else check.positive("noise", noise)
        d = check.real("y", y) - check.real("mean", mean)
        var = check.zero_or_more("var", var)
        seen = self._seen
        ahead = _begun(seen)
        # z^2 = d^2 / (s + noise)
        square = d * d / (var + (ahead.noise if own is None else own))
        if not square < math.inf:
            raise ValueError(f"`y` is too far from `mean`, got {y} and {mean}")
        self._seen = seen._replace(
            labels=seen.labels + 1,
            compared=seen.compared + 1,
            squares=seen.squares + square,
        )
        return self.stopped

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself.

        A forecast that was given by `begin` stays; one that `learn` made of its pool does not.
        """
        self._seen = self._seen.before_labels
        return self

    def copy(self) -> Self:
        """Return an independent criterion in the same state."""
        return self._twin() if self._ours else super().copy()  # what it has seen never changes

    def fresh(self) -> Self:
        """Return one with the same settings that has seen nothing."""
        if not self._ours:
            return super().fresh()
        new = self._twin()
        new._seen = self._seen.before_labels
        return new

    @property
    def history(self) -> Array:
        """What is left after each label since the first bound, as a share (see `Forecast`).

        With fits on the way, as the last one sees it; NaN if it sees nothing.
        """
        seen = self._seen
        if seen.forecast is None and seen.fits is None:
            return np.empty(0)
        _memory.check(8 * seen.labels, f"the history of {seen.labels} bounds", "`reset` it")
        if seen.forecast is None:
            return np.full(seen.labels, np.nan)
        share = seen.forecast.fraction if seen.fits is None else seen.forecast.rmse_share
        left = np.zeros(seen.labels)
        known = share[seen.initial :][: seen.labels]
        left[: len(known)] = known
        return left

    def _n_seen(self) -> int:
        return self._seen.labels

    @property
    def n_labels(self) -> int:
        """Number of labels, those before the first bound included."""
        return self._seen.labels + self._seen.initial

    @property
    def rho(self) -> float:
        """Squared residuals over what the model expects, of the labels compared so far."""
        return self._seen.rho

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._seen.stopped_at

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet, and whether the labels fit the model."""
        return self._said()[1]

    def _said(self) -> tuple[int | None, str]:
        seen = self._seen
        if seen.fits is not None:
            return seen.fits.stop, self._said_of_fits(seen, seen.fits)
        ahead, bounds = seen.forecast, seen.stopped_at
        if ahead is None:
            return None, f"there is no forecast{_because(seen.trouble)}"
        labels = seen.initial + (seen.labels if bounds is None else bounds)
        left = float(ahead.fraction[min(max(labels, 1), ahead.horizon) - 1])
        text = f"after {labels} labels {_percent(left)} of what all labels buy is left ("
        if bounds is not None:
            text += self._rule()
        elif seen.stops_at is None:
            text += f"no stop up to the horizon of {ahead.horizon} labels"
        elif seen.stops_at <= labels:
            text += "the stop will be at the next one"
        else:
            text += f"the stop will be at {seen.stops_at}"
        misfit = _misfit(seen.rho)
        return bounds, f"{text}); {misfit}" if misfit else f"{text})"

    def _said_of_fits(self, seen: _Seen, fits: _Fits) -> str:
        """Return why it stopped at a fit, or why not."""
        if not fits.values:
            return "there is no forecast before the first fit that can decide"
        n, ahead = fits.n_labels, seen.forecast
        if ahead is None:
            return f"there is no forecast from the fit to {n} labels{_because(seen.trouble)}"
        if ahead.nothing_to_learn:
            text = f"after {n} labels: {NOTHING_TO_LEARN}"
        elif math.isnan(fits.before):
            text = (
                f"after {n} labels {_percent(fits.after)} of the fall of the RMSE is left, as one "
                "fit sees it; the next one must agree"
            )
        else:
            asked = "" if self.eps is None else f" (at most {_percent(self.eps)} asked of both)"
            text = (
                f"after {n} labels {_percent(fits.after)} of the fall of the RMSE is left, and at "
                f"the fit before it was {_percent(fits.before)}{asked}"
            )
        if fits.at_edge:
            text += "; the fit lies at an edge of its search box and confirms nothing"
        elif not fits.confirmed:
            text += "; the fit before lay at an edge of its search box and confirms nothing"
        return text

    def _rule(self) -> str:
        if self.eps is not None:
            return f"at most {_percent(self.eps)} was asked for"
        if self.price is not None:
            return f"further ones cost more than they buy at the price {self.price:g}"
        return "less than the noise of the final error"

    def __repr__(self) -> str:
        if self.paper:
            return "LookAhead(paper=True)"
        name = "eps" if self.price is None else "price"
        return f"LookAhead({name}={getattr(self, name)!r})"

    _version = 2

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        seen = self._seen
        return {
            "kind": "LookAhead",
            "version": self._version,
            "eps": self.eps,
            "price": self.price,
            "paper": self.paper,
            "forecast": None if seen.forecast is None else seen.forecast.to_dict(),
            "given": seen.given,
            "seen": seen.labels,
            "compared": seen.compared,
            "squares": seen.squares,
            "initial": seen.initial,
            "fits": None if seen.fits is None else _state_of_fits(seen.fits),
            "trouble": seen.trouble,
        }

    @classmethod
    def _from_version_1(cls, state: dict[str, Any]) -> LookAhead:
        state_values(state, FIRST)
        ahead = state["forecast"]
        initial = ahead.get("n_labelled") if isinstance(ahead, dict) else 0
        return cls._from_state(state | {"initial": initial, "fits": None, "trouble": ""})

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> LookAhead:
        eps, price, paper, ahead, given, seen, compared, squares, initial, fits, trouble = (
            state_values(state, STATE)
        )
        try:
            new = cls(eps, price=price, paper=paper)
            squares, given = check.zero_or_more("squares", squares), check.flag("given", given)
        except TypeError as error:
            raise ValueError(f"`state` is damaged: {error}") from None
        if not isinstance(trouble, str):
            raise ValueError(f"`state['trouble']` must be a text, got {check.short_repr(trouble)}")
        known = _Seen() if ahead is None else new._before_labels(Forecast.from_dict(ahead), given)
        labels = state_count("seen", seen, most=check.MOST_SEEN)
        first = state_count("initial", initial, most=check.MOST_SEEN)
        if ahead is not None and known.initial < first:
            raise ValueError(
                f"`state['initial']` must be at most {known.initial}, the labels of the forecast, "
                f"got {first}"
            )
        saved = None
        if fits is not None:
            if given or eps is None:
                raise ValueError("`state` is damaged: with `fits` only `eps` decides")
            saved = _saved_fits(fits, labels)
            known = known._replace(stops_at=None)
        new._seen = known._replace(
            labels=labels,
            compared=state_count("compared", compared, most=check.MOST_SEEN),
            squares=squares,
            initial=first,
            fits=saved,
            trouble=trouble,
        )
        return new


def _begun(seen: _Seen) -> Forecast:
    if seen.forecast is None:
        raise ValueError("LookAhead has no forecast yet: call begin(forecast(X, gp)) first")
    return seen.forecast


def _because(trouble: str) -> str:
    return f": {trouble}" if trouble else " yet"


def _hyperparameters(gp: Any) -> tuple[float, ...]:
    """Return all of them, to tell one fit from another."""
    if not isinstance(gp, GaussianProcess):
        raise TypeError(f"LookAhead needs a GaussianProcess, got {check.short_repr(gp)}")
    scales = np.atleast_1d(np.asarray(gp.lengthscale, dtype=np.float64)).tolist()
    return (float(gp.noise), float(gp.amplitude), float(gp.mean), *scales)


def _share_at(ahead: Forecast | None, labels: int) -> float:
    """Return what is left of the fall of the RMSE; NaN where a forecast does not say."""
    if ahead is None or labels > ahead.horizon:
        return math.nan
    return float(ahead.rmse_share[labels - 1])


def _forecast_now(campaign: FittedView, rows: Ints) -> tuple[Forecast | None, str]:
    """Return the forecast from these labels under the present hyper-parameters, or why not."""
    # Criteria that differ in `eps` only look at the same finished run.
    kept = campaign.kept if isinstance(campaign, PastCampaign) else {}
    if "forecast" not in kept:
        try:
            made = quiet_forecast(
                campaign.points, campaign.prior, rows, skipped=campaign.skipped, least=0
            )
            kept["forecast"] = made, ""
        except (ValueError, np.linalg.LinAlgError) as error:
            kept["forecast"] = None, str(error)
    found: tuple[Forecast | None, str] = kept["forecast"]
    return found


def _next_fit(
    last: _Fits, campaign: FittedView, at_edge: bool
) -> tuple[Forecast | None, _Fits, str]:
    """Return the forecast under a new fit and what is known then, or why there is no forecast."""
    rows = campaign.labelled
    n = len(rows)
    made, trouble = _forecast_now(campaign, rows)
    confirmed = not (at_edge or last.at_edge)
    values = _hyperparameters(campaign.prior)
    return made, _Fits(values, at_edge, n, last.after, _share_at(made, n), confirmed), trouble


def refit_shares(run: FinishedRun) -> list[tuple[int, float]]:
    """Return what is left of the fall of the RMSE at the fits of a finished run.

    `LookAhead` with any `eps` stops at the first of these shares that is at most `eps`.

    Parameters
    ----------
    run : FinishedRun
        A campaign with fits on the way.

    Returns
    -------
    list of tuple
        For each fit after the initial labels, the number of labels and the share; NaN where two
        fits do not confirm each other.
    """
    fits, found = _Fits(), []
    for fit in run.refits:
        if fit.n_labels > run.n_initial and _hyperparameters(fit.prior) != fits.values:
            _, fits, _ = _next_fit(fits, PastCampaign(run, fit), fit.at_edge)
            found.append((fit.n_labels, fits.counts))
    return found


def _state_of_fits(fits: _Fits) -> dict[str, Any]:
    shares = {name: getattr(fits, name) for name in ("before", "after")}
    return {
        "values": list(fits.values),
        "at_edge": fits.at_edge,
        "n_labels": fits.n_labels,
        **{name: None if math.isnan(share) else share for name, share in shares.items()},
        "confirmed": fits.confirmed,
        "stop": fits.stop,
    }


def _saved_fits(state: Any, labels: int) -> _Fits:
    values, at_edge, n_labels, before, after, confirmed, stop = state_values(state, FITS)
    with damaged_state():
        return _Fits(
            tuple(check.vector("values", values).tolist()),
            check.flag("at_edge", at_edge),
            state_count("n_labels", n_labels, most=check.MOST_SEEN),
            math.nan if before is None else check.real("before", before),
            math.nan if after is None else check.real("after", after),
            check.flag("confirmed", confirmed),
            state_count("stop", stop, 1, optional=True, most=labels),
        )
