"""Where a fit lies in its search box: a model keeps it, and says when it is at an edge."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from numba import config

from fastal import GaussianProcess

many_fits = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; the kernels are tested elsewhere",
)


def test_the_edge_is_kept():
    X = np.array([12 * int(f"{i:07b}"[::-1], 2) / 128 for i in range(30)])
    y = np.sin(2 * X) + 0.1 * np.random.default_rng(0).standard_normal(30)
    edge = GaussianProcess().fit_hyperparameters(X, y, bounds={"lengthscale": (0.2, 0.3)})
    edge.add_batch(X, y)
    state = json.loads(json.dumps(edge.to_dict()))
    for same in (
        edge.copy(),
        copy.deepcopy(edge),
        pickle.loads(pickle.dumps(edge)),
        GaussianProcess.from_dict(state),
    ):
        assert same.at_edge is True
        assert same.to_dict() == state
    with pytest.raises(AttributeError):
        edge.at_edge = False
    edge.rewind(0)
    assert edge.at_edge  # the parameters are those of the fit
    edge.fit_hyperparameters(X, y)
    assert edge.at_edge is False
    assert "at_edge" not in GaussianProcess().to_dict()
    with pytest.raises(ValueError, match="`state` is damaged: `at_edge` must be True or False"):
        GaussianProcess.from_dict(state | {"at_edge": 1})


@many_fits
@pytest.mark.parametrize(
    ("settings", "edge"),
    [
        ({}, False),
        ({"prior": "weak"}, False),
        ({"bounds": {"lengthscale": (0.1, 0.3)}}, True),  # wants to be longer
        ({"bounds": {"lengthscale": (5.0, 30.0)}}, True),  # wants to be shorter
        ({"bounds": {"lengthscale": (0.3, 0.3)}}, False),  # was not searched
        ({"bounds": {"noise": (1.0, 2.0)}}, False),  # the noise has no edge
        ({"ard": True, "bounds": {"lengthscale": (0.05, 3.0)}}, False),  # one of two is long
        ({"ard": True, "bounds": {"lengthscale": (0.02, 0.1)}}, True),  # both are
        ({"ard": True, "bounds": {"lengthscale": (2.5, 30.0)}}, True),  # one is short
    ],
)
def test_the_edge_of_a_search(settings, edge):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 3, (60, 2))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.standard_normal(60)  # the second input says nothing
    assert GaussianProcess().at_edge is False
    assert GaussianProcess().fit_hyperparameters(X, y, **settings).at_edge is edge


def test_the_edge_of_the_weak_prior():
    x = np.linspace(0, 1, 120)
    gp = GaussianProcess().fit_hyperparameters(x, np.sin(40 * x), prior="weak")
    assert gp.lengthscale == pytest.approx(0.05)  # the least there is
    assert gp.at_edge
    assert math.isfinite(gp.noise)
