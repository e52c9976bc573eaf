"""When to stop: criteria, Stopper, budgets and their combinations; needs no Numba, no SciPy."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.stopping.batch import StopperBatch as StopperBatch
    from fastal.stopping.batch import stopping_time as stopping_time
    from fastal.stopping.budget import FixedBudget as FixedBudget
    from fastal.stopping.budget import MinLabels as MinLabels
    from fastal.stopping.by_bounds import ByBounds as ByBounds
    from fastal.stopping.compose import AllOf as AllOf
    from fastal.stopping.compose import AnyOf as AnyOf
    from fastal.stopping.compose import first_of as first_of
    from fastal.stopping.criterion import CampaignView as CampaignView
    from fastal.stopping.criterion import Criterion as Criterion
    from fastal.stopping.criterion import FinishedRun as FinishedRun
    from fastal.stopping.measured import Measured as Measured
    from fastal.stopping.sequential import false_stop_probability as false_stop_probability
    from fastal.stopping.sequential import longest_horizon as longest_horizon
    from fastal.stopping.sequential import look_level as look_level
    from fastal.stopping.still import MovementBelow as MovementBelow
    from fastal.stopping.still import StillTrace as StillTrace
    from fastal.stopping.still import StillVerdict as StillVerdict
    from fastal.stopping.still import movement_left as movement_left
    from fastal.stopping.still import window_means as window_means
    from fastal.stopping.stopper import Stopper as Stopper
    from fastal.stopping.stopper import Trace as Trace
    from fastal.stopping.verdict import NO_STOP as NO_STOP
    from fastal.stopping.verdict import Decision as Decision
    from fastal.stopping.verdict import Verdict as Verdict
    from fastal.stopping.verdict import left_warning as left_warning
    from fastal.stopping.verdict import no_stop_reason as no_stop_reason
    from fastal.stopping.verdict import percent as percent
    from fastal.stopping.verdict import stop_warnings as stop_warnings

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "criterion": "CampaignView Criterion FinishedRun",
        "measured": "Measured",
        "compose": "AllOf AnyOf first_of",
        "verdict": "Decision Verdict stop_warnings left_warning no_stop_reason percent NO_STOP",
        "by_bounds": "ByBounds",
        "criterion": "Stopper Trace",
        "still": "MovementBelow StillTrace StillVerdict movement_left window_means",
        "batch": "StopperBatch stopping_time",
        "budget": "FixedBudget MinLabels",
        "sequential": "false_stop_probability look_level longest_horizon",
    },
)
