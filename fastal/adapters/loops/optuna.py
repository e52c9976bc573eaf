"""Optuna: a callback for `Study.optimize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastal import _validation as check
from fastal.adapters.loops.checks import refuse_unless_bounds


def callback(criterion: Any, gp: Any, names: Sequence[str]) -> Callable[[Any, Any], None]:
    """Return a callback that ends a study when trials no longer move a process beside it.

    Optuna does not show the model of its sampler. The process beside it learns the value of each
    complete trial from its parameters, and the criterion gets the bound.

    Parameters
    ----------
    criterion : Stopper, MovementBelow, or a combination of criteria that take bounds
        It gets the bound of each trial.
    gp : GaussianProcess
        With one feature per name; it gets the labels.
    names : sequence of str
        Parameters of a trial that are numbers, in the order of the features of the process.

    Returns
    -------
    callable
        For the argument `callbacks` of `Study.optimize`. Trials that failed or were pruned are left
        out. It belongs to one thread: keep ``n_jobs=1``.

    Examples
    --------
    >>> from fastal import GaussianProcess, Stopper
    >>> from fastal.adapters.loops.optuna import callback
    >>> gp = GaussianProcess(lengthscale=0.7, noise=0.05**2)
    >>> stop = callback(Stopper(), gp, ["x", "z"])

    Then ``study.optimize(objective, n_trials=200, callbacks=[stop])``.
    """
    refuse_unless_bounds(criterion)
    check.able("gp", gp, "add", "a GaussianProcess")
    if isinstance(names, str):
        raise TypeError(f"`names` must be a list of names, got {names!r}: give [{names!r}]")
    names = check.sequence("names", names)

    def stop(study: Any, trial: Any) -> None:
        if trial.state.name != "COMPLETE":
            return
        missing = [name for name in names if name not in trial.params]
        if missing:
            raise ValueError(
                f"`names` must be parameters of the trial, {sorted(trial.params)}, got "
                f"{missing[0]!r}"
            )
        point = [check.real(name, trial.params[name]) for name in names]
        if criterion.push(gp.add(point, trial.value)):
            study.stop()

    return stop
