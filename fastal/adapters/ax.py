"""Ax: `Client` and `AxClient`, with one metric.

::

    trials = client.get_next_trials(max_trials=1)  # fits the model to all data so far
    stopper.after_fit(client, initial=5)

The BoTorch model of the generation strategy is asked: `fastal.adapters.botorch` says how. It is
fitted when Ax generates a trial, so that after `complete_trial` it lacks a label until the next
one: that is an error. So is the initial phase, in which there is no model. Ax scales
inputs and labels before the model, so that they cannot be compared with yours.

All of this is private to Ax; a version that moves it is refused in words.
"""

from __future__ import annotations

from typing import Any

from fastal.adapters.dispatch import ask_trained
from fastal.adapters.trained import Asked, TrainedModel, all_seen, no_model_yet, wrong_kind

LIBRARY = "Ax"
WITHIN = "the BoTorch model of `model` (Ax)"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what the model of a client knows of its labels."""
    if asked.X is not None or asked.y is not None:
        raise ValueError(f"`X` and `y` cannot be compared with {name}: it scales them; leave them")
    within, labels = surrogate_model(model, name)
    seen = len(within.train_targets) if hasattr(within, "train_targets") else labels
    all_seen(min(seen, labels), labels, name, "ask after the next trial is generated")
    return ask_trained(within, asked, WITHIN)[0]


def surrogate_model(client: Any, name: str) -> tuple[Any, int]:
    """Return the model of a client, and the number of its complete trials."""
    strategy = getattr(client, "generation_strategy", None)
    if strategy is None:
        strategy = getattr(client, "_generation_strategy", None)
    experiment = getattr(client, "experiment", None)
    if experiment is None:
        experiment = getattr(client, "_experiment", None)
    if strategy is None or experiment is None:
        raise wrong_kind(client, name, "a Client")
    generator = getattr(getattr(strategy, "adapter", None), "generator", None)
    surrogate = getattr(generator, "surrogate", None)
    if surrogate is None:
        raise no_model_yet(name, "the initial trials are not drawn from a model")
    done = sum(trial.status.is_completed for trial in experiment.trials.values())
    return surrogate.model, done
