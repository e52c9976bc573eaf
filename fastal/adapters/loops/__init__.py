"""Criteria of fastal as the stopping rules of other libraries' loops; one small file per library.

=================  ==========================================================
scikit-optimize    `fastal.adapters.loops.skopt.callback`
Optuna             `fastal.adapters.loops.optuna.callback`
small-text         `fastal.adapters.loops.small_text.stopping_criterion`
Emukit             `fastal.adapters.loops.emukit.stopping_condition`
BoFire             `fastal.adapters.loops.bofire.condition`
Ax                 `fastal.adapters.loops.ax.global_stopping_strategy`
=================  ==========================================================

In an optimisation loop a stop says that **labels no longer move the model** of the objective. It
does not say that **the optimum is found**: an optimiser that stays in one corner learns nothing new
there either, and a model that is wrong about the objective is not moved for that reason.

Nothing of fastal imports this folder, and it imports no library before one of its functions is
called.
"""
