"""What the labels that are left would buy: the forecast, and the criterion that goes by it."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.lookahead.criterion import LookAhead as LookAhead
    from fastal.lookahead.criterion import refit_shares as refit_shares
    from fastal.lookahead.gain import Forecast as Forecast
    from fastal.lookahead.gain import forecast as forecast
    from fastal.lookahead.gain import rho_of as rho_of

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "gain": "Forecast forecast rho_of",
        "criterion": "LookAhead refit_shares",
    },
)
