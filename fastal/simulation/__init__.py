"""Many simulated labelling campaigns: planned, shared out, stored, and gathered in a table."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.simulation.campaigns import simulate as simulate
    from fastal.simulation.result import Failure as Failure
    from fastal.simulation.result import Simulation as Simulation

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "campaigns": "simulate",
        "result": "Failure Simulation",
    },
)
