"""Two programs, one campaign: a learner goes on elsewhere with the same rows and decisions."""

import copy
import json
import pickle

import numpy as np
import pytest
from labelling_problem import GP, NEVER, kind, problem  # noqa: F401 (kind is a fixture)
from numba import config

from fastal import (
    ActiveLearner,
    FixedBudget,
    MovementBelow,
    Stopper,
)

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; test_campaign_by_chance has few",
)


def told(learner, y, n):
    while learner.n_labels < n:
        learner.tell(y[learner.ask()])
    return learner


def moments():
    """Yield (name, learner) at every kind of moment of a campaign."""
    X, y = problem()
    for gp in (None, GP):
        made = {"gp": gp, "criterion": MovementBelow(0.15), "initial": 5, "seed": 4}
        learner = ActiveLearner(X, **made)
        yield "new", learner
        learner = ActiveLearner(X, **made)
        learner.ask(3)
        yield "asked", learner
        yield "before the first fit", told(ActiveLearner(X, **made), y, 3)
        learner = told(ActiveLearner(X, **made), y, 14)
        rows = learner.ask(6)
        learner.tell(y[rows[1:4]], index=rows[1:4])
        yield "inside a batch", learner
        learner = told(ActiveLearner(X, **made), y, 9)
        learner.ask()
        learner.skip()
        yield "after a skip", learner
        learner = ActiveLearner(X, **made)
        learner.ask()
        learner.skip()
        yield "an initial point skipped", learner
        learner = ActiveLearner(X, **made)
        while not learner.stopped:
            learner.tell(y[learner.ask()])
        yield "after a stop", told(learner, y, learner.n_labels + 3)
        learner = told(ActiveLearner(X, **made), y, 8)
        learner.ask()
        learner.tell(y[learner.ask()], noise=0.7)
        yield "own noise", told(learner, y, 11)
        learner = told(ActiveLearner(X[:30], **made), y, 9)
        learner.extend_pool(X[30:])
        yield "a grown pool", learner
        learner = told(ActiveLearner(X, **made), y, 9)
        learner.correct(learner.run().indices[2], 7.0)
        yield "a correction", learner
        yield "known", ActiveLearner(X, known=(np.arange(12), y[:12]), **made)
        yield "random", told(ActiveLearner(X, acquisition="random", **made), y, 9)
        learner = told(ActiveLearner(X, **made | {"criterion": FixedBudget(9) | NEVER}), y, 12)
        yield "composition", learner
        yield "no seed", told(ActiveLearner(X, **made | {"seed": None}), y, 7)


def ways():
    X, _ = problem()
    return {
        "dict": lambda learner: ActiveLearner.from_dict(learner.to_dict(), X),
        "json": lambda learner: ActiveLearner.from_dict(
            json.loads(json.dumps(learner.to_dict())), X
        ),
        "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("way", list(ways()))
def test_the_same_campaign_elsewhere(way):
    _, y = problem()
    for name, learner in moments():
        again = ways()[way](learner)
        assert again.to_dict() == learner.to_dict(), name
        assert str(again.criterion.verdict) == str(learner.criterion.verdict), name
        assert again.pending.tolist() == learner.pending.tolist()
        assert again.refits == learner.refits
        rows = learner.pending
        for _ in range(4):
            if len(rows):
                for one in (learner, again):
                    one.tell(y[rows], index=rows)
            for one in (learner, again):
                rows = one.ask(3)
            assert learner.pending.tolist() == again.pending.tolist(), name
        assert again.criterion.stopped_at == learner.criterion.stopped_at
        np.testing.assert_allclose(again.bounds, learner.bounds, rtol=1e-9, atol=1e-12)
        assert [fit.n_labels for fit in again.refits] == [fit.n_labels for fit in learner.refits]


@pytest.mark.parametrize("version", [1, 2])
def test_states_of_earlier_versions(version):
    X, y = problem(30)
    learner = told(ActiveLearner(X, gp=GP, criterion=Stopper(), seed=0), y, 8)
    with pytest.raises(ValueError, match=rf"of fastal 0\.{version} .*a file of labels replays"):
        ActiveLearner.from_dict(learner.to_dict() | {"version": version}, X)
    again = ActiveLearner(
        X, gp=GP, criterion=Stopper(), seed=0, known=(learner.labelled, learner.run().labels)
    )
    assert again.bounds == pytest.approx(learner.bounds, rel=1e-9)


def test_damaged_states():
    X, y = problem(30)
    learner = told(ActiveLearner(X, criterion=NEVER, seed=0), y, 12)
    learner.tell(y[learner.ask()], noise=0.3)
    learner.ask()
    learner.skip()
    learner.ask(3)
    good = learner.to_dict()
    refits, rows = good["refits"], good["indices"]
    fits = refits["fits"]
    free = next(i for i in range(30) if i not in rows + good["asked"] + good["skipped"])
    for change, message in [
        ({"asked": [rows[0]]}, "`asked`: row .* is out of the pool, or there twice"),
        ({"asked": [free, free]}, "`state.'asked'.` must have at most 3 different rows"),
        ({"asked": [free], "asked_n": 0}, "`state.'asked_n'.` must be an integer >= 1"),
        ({"asked": 5}, "`state.'asked'.` must be a list"),
        ({"batch_end": -1}, "`state.'batch_end'.`"),
        ({"whole": 1}, "`whole` must be"),
        ({"stale": 1}, "`stale` must be"),
        ({"untold": "news"}, "`state.'untold'.` must be None, 'fit' or 'correction', got 'news'"),
        ({"seed": -1}, "`seed`"),
        ({"skipped": [rows[0]]}, "`indices`: row|`order`: row"),
        ({"skipped": [99]}, "`skipped`: row 99 is out of the pool"),
        ({"skipped": {}}, "`state.'skipped'.` must be a list"),
        ({"noises": [[free, 0.1]]}, "`state.'noises'.` must have pairs of a labelled row"),
        ({"noises": [[rows[0], -1.0]]}, "`noises` must be"),
        ({"noises": [3]}, "`state.'noises'.` must have pairs"),
        ({"gp": None}, "`state.'gp'.` must be a model after a fit"),
        ({"refits": None, "gp": None}, "`state.'gp'.` must be a model where there are no refits"),
        ({"refits": refits | {"fits": []}}, "`state.'gp'.` must be a model after a fit"),
        ({"refits": refits | {"fits": fits[::-1]}}, "`fits` must be in the order of their labels"),
        ({"refits": refits | {"fits": [[1, 2]]}}, "a fit must have 7 values"),
        ({"refits": refits | {"fits": [[*fits[0][:6], 1]]}}, "`fitted` must be"),
        ({"refits": refits | {"fits": [[99, *fits[0][1:]]]}}, "a fit to 99 labels"),
        ({"refits": refits | {"growth": 1.0}}, "`refit` must be above 1"),
        ({"refits": refits | {"kernel": "sinc"}}, "`kernel` must be one of"),
        ({"refits": refits | {"scales": []}}, "`fits` and `scales` must be lists"),
        ({"refits": refits | {"scales": [[1, [1.0]]]}}, "`scales` must begin with fit 0"),
        ({"refits": refits | {"scales": [[0, [0.0]]]}}, "`scales` must be"),
        ({"refits": refits | {"scales": [[0, [1.0]], [99, [1.0]]]}}, "go up to at most"),
        ({"refits": []}, "`state` must be a dict"),
        ({"labels": [0.0, *good["labels"][1:]]}, "the bounds are not those of the labels"),
        ({"order": [*good["order"][:-1], free]}, "must begin with the rows of its order"),
        ({"order": good["order"][::-1]}, "must begin with the rows of its order"),
        ({"order": "abc"}, "`state.'order'.` must be a list"),
        ({"n_initial": 14}, "`state.'n_initial'.` must be at most"),
        ({"max_labels": 3}, "`max_labels` must be between|must be at most 3 rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            ActiveLearner.from_dict(good | change, X)
    assert ActiveLearner.from_dict(good, X).to_dict() == good
