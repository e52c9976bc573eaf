"""Ax: a global stopping strategy."""

from __future__ import annotations

from typing import Any

from fastal import _validation as check
from fastal.adapters.ax import surrogate_model
from fastal.adapters.loops.checks import refuse_unless_bounds


def global_stopping_strategy(
    criterion: Any, client: Any, *, initial: int = 0, min_trials: int = 0
) -> Any:
    """Return a strategy that ends an experiment when labels no longer move its model.

    Parameters
    ----------
    criterion : Stopper, MovementBelow, or a combination of criteria that take bounds
        It gets all bounds anew before each trial.
    client : AxClient
        Its generation strategy has the model: Ax shows a stopping strategy the data only.
    initial, min_trials : int
        Labels at the beginning that give no bound; complete trials without which Ax does not ask.

    Returns
    -------
    ax.global_stopping.strategies.base.BaseGlobalStoppingStrategy
        Set it as ``client.global_stopping_strategy``. Ax asks before it fits the model to the last
        label, which is therefore not among the bounds yet.

    Examples
    --------
    With an `AxClient`::

        rule = MovementBelow(0.05, horizon=95)
        client.global_stopping_strategy = global_stopping_strategy(rule, client, initial=5)
    """
    refuse_unless_bounds(criterion)
    first = check.count("initial", initial)
    from ax.global_stopping.strategies.base import BaseGlobalStoppingStrategy

    class Strategy(BaseGlobalStoppingStrategy):  # type: ignore[misc]  # of an untyped library
        def _should_stop_optimization(self, experiment: Any, **kwargs: Any) -> tuple[bool, str]:
            try:
                model, _ = surrogate_model(client, "`client` (Ax)")
            except ValueError:  # the initial trials
                return False, "there is no model yet"
            stop = bool(criterion.after_fit(model, initial=first))
            return stop, "labels no longer move the model" if stop else "labels move the model"

    return Strategy(min_trials=check.count("min_trials", min_trials))
