"""The runs test, its exact distribution, chances of a false stop, and movement still to come."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.runs.exact import RunsDistribution as RunsDistribution
    from fastal.runs.exact import RunsTestResult as RunsTestResult
    from fastal.runs.exact import choose_method as choose_method
    from fastal.runs.exact import runs_test as runs_test
    from fastal.runs.movement import ROUNDING as ROUNDING
    from fastal.runs.movement import movement_left as movement_left
    from fastal.runs.sequential import false_stop_probability as false_stop_probability
    from fastal.runs.sequential import longest_horizon as longest_horizon
    from fastal.runs.sequential import look_level as look_level

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "exact": "RunsDistribution RunsTestResult choose_method runs_test",
        "movement": "ROUNDING movement_left",
        "sequential": "false_stop_probability longest_horizon look_level",
    },
)
