"""The picture of a forecast. matplotlib is imported when it is drawn, and only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastal import _validation as check
from fastal.plotting.style import ABOVE, BELOW, OUTSIDE, STOP, require_matplotlib

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes

    from fastal.lookahead.gain import Forecast

_SIZE = (7.0, 4.5)  # inches

_FLOOR = 1e-3  # less than this share is not worth a picture

_HELD = 2.0  # the factor within which forecasts held


def plot_forecast(
    forecast: Forecast, ax: Axes | None = None, *, eps: float = 0.05, price: float | None = None,
    rmse: bool = False,
) -> Axes:  # fmt: skip
    """Draw what is left to be had after each label, with the stops marked.

    The share that is left of the reduction after one label, on a logarithmic scale; a factor of
    two, within which forecasts held, is shaded. Labels already there are grey.

    Parameters
    ----------
    forecast : Forecast
        It is only read.
    ax : matplotlib axes, optional
        Where to draw. By default a new figure; it belongs to pyplot, and the caller shows or closes
        it.
    eps : float, optional
        Share whose stop is marked.
    price : float, optional
        Price whose stop is marked; none by default.
    rmse : bool, optional
        Whether to draw what is left of the fall of the RMSE from five labels on, for
        hyper-parameters that come from the same labels, with the stop of `eps`.

    Returns
    -------
    matplotlib axes
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, forecast
    >>> from fastal.plotting.forecast import plot_forecast
    >>> ahead = forecast(np.linspace(0, 10, 50), GaussianProcess(1.0, 0.01))
    >>> ax = plot_forecast(ahead)  # doctest: +SKIP
    """
    require_matplotlib()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=_SIZE, layout="constrained").add_subplot()
    _draw(forecast, ax, eps, price, check.flag("rmse", rmse))
    return ax


def save_forecast(
    forecast: Forecast,
    path: str | os.PathLike[str],
    *,
    eps: float = 0.05,
    price: float | None = None,
    rmse: bool = False,
) -> None:
    """Write the picture of `plot_forecast` to a file, without pyplot and without a display.

    Parameters
    ----------
    forecast, eps, price, rmse
        As in `plot_forecast`.
    path : path
        File to write; its ending is the format.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    _draw(forecast, figure.add_subplot(), eps, price, check.flag("rmse", rmse))
    figure.savefig(path, dpi=150)


def _draw(forecast: Forecast, ax: Axes, eps: float, price: float | None, rmse: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    stops = _stops(forecast, eps, price, rmse)
    labels = np.arange(1, forecast.horizon + 1)
    left = np.maximum(forecast.rmse_share if rmse else forecast.fraction, _FLOOR / 10)
    now = forecast.n_labelled
    begin = max(now, 1) - 1
    if not rmse:  # the factor is one of the loss
        # Paler by mixing with white: PostScript knows no transparency.
        ax.fill_between(
            labels[begin:],
            left[begin:] / _HELD,
            left[begin:] * _HELD,
            color="#cfe3f1",
            linewidth=0,
            label="within a factor of two",
        )
    if now > 1:
        ax.plot(labels[:now], left[:now], color=OUTSIDE, lw=1.6, label="labelled already")
        ax.plot([now], [left[now - 1]], "o", color=BELOW, markersize=6, gid="now")
    ax.plot(labels[begin:], left[begin:], color=BELOW, lw=1.8, label="forecast", gid="forecast")
    for (text, stop), style in zip(stops, ("-", "--", ":"), strict=False):
        color = STOP if style == "-" else ABOVE
        ax.axvline(stop, color=color, lw=1.4, ls=style, label=f"{text}: {stop} labels", gid=text)
    ax.set_yscale("log")
    ax.set_ylim(_FLOOR, 1.5)
    ax.set_xlim(0.5, forecast.horizon + 0.5)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlabel("labels")
    ax.set_ylabel("left of the fall of the RMSE" if rmse else "left of the expected reduction")
    end = "the pool" if forecast.whole else "the horizon"
    ax.set_title(
        f"what labels up to the end of {end} would still buy: {now} of {forecast.n_pool} labelled",
        fontsize=9,
        loc="left",
    )
    ax.legend(
        loc="upper right", fontsize="small", facecolor="white", labelcolor=STOP, framealpha=1.0
    )


def _stops(
    forecast: Forecast, eps: float, price: float | None, rmse: bool
) -> list[tuple[str, int]]:
    """Return the stops of the rules, those that lie before the horizon."""
    text = f"at most {100 * check.probability('eps', eps):g} % left"
    found = [
        (text, forecast.labels_for_rmse(eps) if rmse else forecast.labels_for(eps)),
        ("within the noise of the final error", None if rmse else forecast.labels_as_paper()),
    ]
    if price is not None:
        found.append((f"price {price:g}", forecast.labels_at_price(price)))
    return [(text, stop) for text, stop in found if stop is not None]
