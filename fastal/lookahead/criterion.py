"""LookAhead: stop when the labels that are left are forecast to buy too little."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from fastal import _memory
from fastal import _validation as check
from fastal._state import FORMAT, state_count, state_values
from fastal._types import Array
from fastal.lookahead.gain import (
    PRIOR_LABELS,
    Forecast,
    _misfit,
    _percent,
    forecast,
    quiet_forecast,
    rho_of,
)
from fastal.models.gp import GaussianProcess
from fastal.stopping.criterion import Criterion

if TYPE_CHECKING:
    from fastal.stopping.criterion import CampaignView


class _Seen(NamedTuple):
    """What a `LookAhead` knows: set as one, after a complete change."""

    forecast: Forecast | None = None
    stops_at: int | None = None
    given: bool = False  # whether the forecast came by `begin`, or is one of a learner's pool
    labels: int = 0
    compared: int = 0
    squares: float = 0.0

    @property
    def stopped_at(self) -> int | None:
        if self.forecast is None or self.stops_at is None:
            return None
        # if there are more labels than were needed, the first bound says so
        needed = max(1, self.stops_at - self.forecast.n_labelled)
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

    The forecast is made once, before the labels; a label then costs O(1). The paper's criterion
    stays the default of fastal: this one needs hyper-parameters that can be trusted (see
    `forecast`), and selection by maximum variance.

    Parameters
    ----------
    eps : float, optional
        Stop when at most this share of what all labels after the first buy is left, in (0, 1); 0.05
        if nothing else is given.
    price : float, optional
        Instead: stop when further labels cost more than they buy, see `Forecast.labels_at_price`.
    paper : bool, optional
        Instead: stop when the rest lies within the noise of the final error, which is what the
        paper's experiments call converged.

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

    @property
    def forecast(self) -> Forecast | None:
        """The forecast that decides, if there is one yet."""
        return self._seen.forecast

    @property
    def stops_at(self) -> int | None:
        """Number of labels at which it will stop, or None."""
        return self._seen.stops_at

    def start(self, campaign: CampaignView) -> None:
        """Make the forecast of a campaign's pool, before its first label."""
        if not isinstance(campaign.prior, GaussianProcess):
            raise TypeError(
                f"LookAhead needs a GaussianProcess, got {check.short_repr(campaign.prior)}"
            )
        if campaign.acquisition != "max_variance":
            raise ValueError(
                "`acquisition` must be 'max_variance' with LookAhead, got "
                f"{check.short_repr(campaign.acquisition)}"
            )
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
        residuals = campaign.residuals
        squares, compared = float(residuals @ residuals), len(residuals)
        with self._turn():
            seen = self._seen
            self._seen = seen._replace(labels=seen.labels + 1, compared=compared, squares=squares)
            return self.stopped

    def stop_in(self, run: Any, measures: Array | None) -> int | None:
        """Return the number of bounds at the stop, from a forecast of the run's pool."""
        ahead = quiet_forecast(run.scaled.T, run.unit_process(), run.order[: run.n_initial])
        with self._turn():
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
        with self._turn():
            self._seen = seen
        return self

    def _before_labels(self, forecast: Forecast, given: bool) -> _Seen:
        """Return what is known before the first bound."""
        if self.eps is not None:
            return _Seen(forecast, forecast.labels_for(self.eps), given)
        if self.price is not None:
            return _Seen(forecast, forecast.labels_at_price(self.price), given)
        return _Seen(forecast, forecast.labels_as_paper(), given)

    def push(self, r: float) -> bool:
        """Take the bound of one label, of which only the number counts."""
        check.real("r", r)
        with self._turn():
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
        with self._turn():
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
        with self._turn():
            seen = self._seen
            self._seen = _Seen(seen.forecast, seen.stops_at, True) if seen.given else _Seen()
        return self

    @property
    def history(self) -> Array:
        """What is left after each label since the first bound, as a share (see `Forecast`)."""
        seen = self._seen
        if seen.forecast is None:
            return np.empty(0)
        _memory.check(8 * seen.labels, f"the history of {seen.labels} bounds", "`reset` it")
        left = np.zeros(seen.labels)
        known = seen.forecast.fraction[seen.forecast.n_labelled :][: seen.labels]
        left[: len(known)] = known
        return left

    @property
    def n_labels(self) -> int:
        """Number of labels, those before the first bound included."""
        seen = self._seen
        return seen.labels + (seen.forecast.n_labelled if seen.forecast else 0)

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
        ahead, bounds = seen.forecast, seen.stopped_at
        if ahead is None:
            return None, "there is no forecast yet"
        labels = ahead.n_labelled + (seen.labels if bounds is None else bounds)
        left = float(ahead.fraction[min(max(labels, 1), ahead.horizon) - 1])
        text = f"after {labels} labels {_percent(left)} of what all labels buy is left ("
        if bounds is not None:
            text += self._rule()
        elif seen.stops_at is None:
            text += f"no stop up to the horizon of {ahead.horizon} labels"
        else:
            text += f"the stop will be at {seen.stops_at}"
        misfit = _misfit(seen.rho)
        return bounds, f"{text}); {misfit}" if misfit else f"{text})"

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
        return f"LookAhead({name}={getattr(self, name):g})"

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        seen = self._seen
        return {
            "kind": "LookAhead",
            "version": FORMAT,
            "eps": self.eps,
            "price": self.price,
            "paper": self.paper,
            "forecast": None if seen.forecast is None else seen.forecast.to_dict(),
            "given": seen.given,
            "seen": seen.labels,
            "compared": seen.compared,
            "squares": seen.squares,
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> LookAhead:
        names = ("eps", "price", "paper", "forecast", "given", "seen", "compared", "squares")
        eps, price, paper, ahead, given, seen, compared, squares = state_values(state, names)
        try:
            new = cls(eps, price=price, paper=paper)
            squares, given = check.zero_or_more("squares", squares), check.flag("given", given)
        except TypeError as error:
            raise ValueError(f"`state` is damaged: {error}") from None
        known = _Seen() if ahead is None else new._before_labels(Forecast.from_dict(ahead), given)
        new._seen = known._replace(
            labels=state_count("seen", seen, most=check.MOST_SEEN),
            compared=state_count("compared", compared, most=check.MOST_SEEN),
            squares=squares,
        )
        return new


def _begun(seen: _Seen) -> Forecast:
    if seen.forecast is None:
        raise ValueError("LookAhead has no forecast yet: call begin(forecast(X, gp)) first")
    return seen.forecast
