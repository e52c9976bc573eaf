"""When to stop: criteria, Stopper, budgets and their combinations; needs no Numba, no SciPy."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.stopping.batch import Streams as Streams
    from fastal.stopping.batch import stopping_time as stopping_time
    from fastal.stopping.campaigns import CampaignView as CampaignView
    from fastal.stopping.combine import AllOf as AllOf
    from fastal.stopping.combine import AnyOf as AnyOf
    from fastal.stopping.combine import Combination as Combination
    from fastal.stopping.combine import first_of as first_of
    from fastal.stopping.count import FixedBudget as FixedBudget
    from fastal.stopping.count import MinLabels as MinLabels
    from fastal.stopping.criterion import Criterion as Criterion
    from fastal.stopping.measured import Measured as Measured
    from fastal.stopping.replay import FinishedRun as FinishedRun
    from fastal.stopping.replay import Fitted as Fitted
    from fastal.stopping.replay import measures_in as measures_in
    from fastal.stopping.replay import stop_in as stop_in
    from fastal.stopping.still import MovementBelow as MovementBelow
    from fastal.stopping.still import StillTrace as StillTrace
    from fastal.stopping.still import window_means as window_means
    from fastal.stopping.stopper import Stopper as Stopper
    from fastal.stopping.stopper import Trace as Trace
    from fastal.stopping.verdict import NO_STOP as NO_STOP
    from fastal.stopping.verdict import ROSE as ROSE
    from fastal.stopping.verdict import Verdict as Verdict
    from fastal.stopping.verdict import left_warning as left_warning
    from fastal.stopping.verdict import no_stop_reason as no_stop_reason
    from fastal.stopping.verdict import percent as percent
    from fastal.stopping.verdict import stop_warnings as stop_warnings

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "criterion": "Criterion",
        "campaigns": "CampaignView",
        "measured": "Measured",
        "replay": "FinishedRun Fitted measures_in stop_in",
        "combine": "AllOf AnyOf Combination first_of",
        "verdict": "Verdict stop_warnings left_warning no_stop_reason percent NO_STOP ROSE",
        "stopper": "Stopper Trace",
        "still": "MovementBelow StillTrace window_means",
        "batch": "Streams stopping_time",
        "count": "FixedBudget MinLabels",
    },
)
