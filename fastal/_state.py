"""Saved states: the kinds there are with their homes, and the checks that all of them share.

A state is a dict of plain values with its "kind" and "version". What is damaged or foreign raises a
ValueError that says what is wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastal._validation import INT64_MAX, short_repr

FORMAT = 1  # version of a state, unless its kind has one of its own

# Kind of a saved state -> the module that defines it, imported when one is to be restored.
HOMES = {
    "AllOf": "fastal.stopping.combine",
    "AnyOf": "fastal.stopping.combine",
    "AsBoundsCome": "fastal.paper.new_parameters",
    "ClassificationChange": "fastal.criteria.predictions",
    "ConfidenceDrop": "fastal.criteria.confidence",
    "ConfidenceGradient": "fastal.criteria.confidence",
    "CrossValidation": "fastal.criteria.experiments",
    "DeltaFScore": "fastal.criteria.predictions",
    "ErrorStability": "fastal.criteria.predictions",
    "FixedBudget": "fastal.stopping.count",
    "GaussianProcess": "fastal.models.gp",
    "GroundTruth": "fastal.criteria.experiments",
    "LaplaceClassifier": "fastal.models.classifier",
    "MaxUncertainty": "fastal.criteria.predictions",
    "MaxVariance": "fastal.criteria.experiments",
    "MinLabels": "fastal.stopping.count",
    "OverallUncertainty": "fastal.criteria.predictions",
    "PACBayes": "fastal.criteria.experiments",
    "StabilizingPredictions": "fastal.criteria.predictions",
    "MovementBelow": "fastal.stopping.still",
    "Stopper": "fastal.stopping.stopper",
}


def import_home(kind: str) -> None:
    """Import the module that defines a kind; a kind that is not ours is the caller's business."""
    if kind in HOMES:
        importlib.import_module(HOMES[kind])


def restore_model(state: Any) -> Any:
    """Return the model that its `to_dict` described: a Gaussian process if it does not say."""
    kind = state.get("kind") if isinstance(state, dict) else None
    name = "LaplaceClassifier" if kind == "LaplaceClassifier" else "GaussianProcess"
    return getattr(importlib.import_module(HOMES[name]), name).from_dict(state)


def check_kind(state: object, kind: str, newest: int) -> None:
    """Check kind and version before the keys, which other versions have others of.

    A state without them is left to `state_values`, which says what it lacks.
    """
    if not isinstance(state, dict) or not {"kind", "version"} <= state.keys():
        return
    found, version = state["kind"], state["version"]
    if found != kind or type(version) is not int or not 1 <= version <= newest:
        article = "an" if kind[0] in "AEIOU" else "a"
        raise ValueError(
            f"`state` must describe {article} {kind} of version {newest}, got "
            f"{short_repr(found)}, {short_repr(version)}"
        )


def state_of(kind: str, state: object, expected: tuple[str, ...]) -> list[Any]:
    """Return the values of exactly these keys of a saved state of one kind and this version."""
    found, version, *values = state_values(state, ("kind", "version", *expected))
    if found != kind or type(version) is not int or version != FORMAT:
        article = "an" if kind[0] in "AEIOU" else "a"
        raise ValueError(
            f"`state` must describe {article} {kind} of version {FORMAT}, got "
            f"{short_repr(found)}, {short_repr(version)}"
        )
    return values


@contextmanager
def damaged_state() -> Iterator[None]:
    """Say that the state is damaged when the values in it are refused."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`state` is damaged: {error}") from None


def state_values(state: object, expected: tuple[str, ...]) -> list[Any]:
    """Return the values of exactly these keys; raise if one is missing or unknown."""
    if not isinstance(state, dict):
        raise ValueError(f"`state` must be a dict from `to_dict`, got {short_repr(state)}")
    missing = [key for key in expected if key not in state]
    unknown = [key for key in state if key not in expected]
    if missing or unknown:
        parts = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
        parts += [f"has the unknown {', '.join(map(repr, unknown))}"] if unknown else []
        raise ValueError(f"`state` {' and '.join(parts)}")
    return [state[key] for key in expected]


def state_count(
    name: str, value: object, minimum: int = 0, *, optional: bool = False, most: int = INT64_MAX
) -> Any:
    """Check a whole number in a saved state."""
    if optional and value is None:
        return None
    if type(value) is not int or not (minimum <= value <= most):
        beyond = f", which is above {most}" if type(value) is int and value > most else ""
        raise ValueError(
            f"`state[{name!r}]` must be an integer >= {minimum}, got {short_repr(value)}{beyond}"
        )
    return value
