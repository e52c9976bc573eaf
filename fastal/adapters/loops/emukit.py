"""Emukit: a `StoppingCondition` for `run_loop`."""

from __future__ import annotations

from typing import Any

from fastal import _validation as check
from fastal.adapters.loops.checks import refuse_unless_bounds


def stopping_condition(criterion: Any, model: Any, *, initial: int = 0) -> Any:
    """Return a `StoppingCondition` that ends a loop when labels no longer move its model.

    Parameters
    ----------
    criterion : Stopper, MovementBelow, or a combination of criteria that take bounds
        It gets all bounds anew before each iteration.
    model : model wrapper of Emukit around a model of GPy or scikit-learn
        That of the loop.
    initial : int
        Labels at the beginning that give no bound, as a rule those of the initial design.

    Returns
    -------
    emukit.core.loop.StoppingCondition
        For `run_loop`; combine it with ``| FixedIterationsStoppingCondition(100)``. Emukit asks it
        before it fits the model to the last label, which is therefore not among the bounds yet.

    Examples
    --------
    With a loop of Emukit and its model wrapper::

        stop = stopping_condition(MovementBelow(0.05, horizon=95), wrapper, initial=5)
        loop.run_loop(f, stop | FixedIterationsStoppingCondition(95))
    """
    refuse_unless_bounds(criterion)
    first = check.count("initial", initial)
    from emukit.core.loop import StoppingCondition

    class Condition(StoppingCondition):  # type: ignore[misc]  # of an untyped library
        def should_stop(self, loop_state: Any) -> bool:
            if len(model.X) <= first:
                return False
            return bool(criterion.after_fit(model, initial=first))

    return Condition()
