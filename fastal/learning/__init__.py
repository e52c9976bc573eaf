"""Active learning over a pool: learn, ActiveLearner, and the selection of the next point."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.learning.classes import ClassSelection as ClassSelection
    from fastal.learning.inputs import check_test_set as check_test_set
    from fastal.learning.learner import ActiveLearner as ActiveLearner
    from fastal.learning.refit import Refit as Refit
    from fastal.learning.refit import next_refit as next_refit
    from fastal.learning.run import Run as Run
    from fastal.learning.run import learn as learn
    from fastal.learning.selection import ErrorCurves as ErrorCurves
    from fastal.learning.selection import Selection as Selection

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "learner": "ActiveLearner",
        "run": "Run learn",
        "refit": "Refit next_refit",
        "inputs": "check_test_set",
        "selection": "ErrorCurves Selection",
        "classes": "ClassSelection",
    },
)
