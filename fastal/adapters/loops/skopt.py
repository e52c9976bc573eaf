"""scikit-optimize: a callback for `gp_minimize` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastal import _validation as check
from fastal.adapters.loops.checks import refuse_unless_bounds
from fastal.adapters.trained import all_seen


def callback(criterion: Any, *, initial: int = 0) -> Callable[[Any], bool]:
    """Return a callback that ends an optimisation when labels no longer move its model.

    Parameters
    ----------
    criterion : Stopper, MovementBelow, or a combination of criteria that take bounds
        It gets all bounds anew after each fit.
    initial : int
        Labels at the beginning that give no bound, as a rule `n_initial_points`.

    Returns
    -------
    callable
        For the argument `callback` of `skopt.gp_minimize`. It says True to stop.

    Examples
    --------
    >>> from fastal import MovementBelow
    >>> from fastal.adapters.loops.skopt import callback
    >>> stop = callback(MovementBelow(0.05, horizon=90), initial=10)

    Then ``gp_minimize(f, space, n_calls=100, n_initial_points=10, callback=stop)``.
    """
    refuse_unless_bounds(criterion)
    first = check.count("initial", initial)

    def stop(result: Any) -> bool:
        if not result.models:  # the initial points
            return False
        model = result.models[-1]
        seen, labels = len(model.X_train_), len(result.x_iters)
        all_seen(seen, labels, "the result (scikit-optimize)", "it is told after each fit")
        return bool(criterion.after_fit(model, initial=first))

    return stop
