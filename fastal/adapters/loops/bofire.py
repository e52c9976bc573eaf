"""BoFire: a condition for its strategies."""

from __future__ import annotations

from typing import Any

from fastal import _validation as check
from fastal.adapters.loops.checks import refuse_unless_bounds


def condition(criterion: Any, *, initial: int = 0) -> Any:
    """Return a condition that holds as long as labels move the model of a strategy.

    Parameters
    ----------
    criterion : Stopper, MovementBelow, or a combination of criteria that take bounds
        It gets all bounds anew after each fit.
    initial : int
        Labels at the beginning that give no bound.

    Returns
    -------
    bofire.data_models.strategies.stepwise.conditions.EvaluateableCondition
        As BoFire has it, ``evaluate(strategy, domain, experiments)`` is True as long as the
        strategy should go on. It takes a strategy with one output on BoTorch. In a
        `StepwiseStrategy` it is one of `strategy.conditions`.

    Examples
    --------
    With a strategy of BoFire::

        going_on = condition(MovementBelow(0.05, horizon=95), initial=5)
        while going_on.evaluate(strategy, strategy.domain, strategy.experiments):
            strategy.tell(measure(strategy.ask(1)))
    """
    refuse_unless_bounds(criterion)
    first = check.count("initial", initial)
    from bofire.data_models.strategies.stepwise.conditions import EvaluateableCondition

    class Condition(EvaluateableCondition):  # type: ignore[misc]  # of an untyped library
        def evaluate(self, strategy: Any, domain: Any, experiments: Any) -> bool:
            if experiments is None or len(experiments) <= first or strategy.experiments is None:
                return True
            return not criterion.after_fit(strategy, initial=first)

    return Condition()
