"""A small problem to label, with hyper-parameters that are fitted on the way or given."""

import numpy as np
import pytest

from fastal import GaussianProcess, MovementBelow
from fastal.learning import choose

NEVER = MovementBelow(1e-9)
GP = GaussianProcess(1.0, 0.05)


def problem(n=50, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (n, d))
    return X, 4 + np.sin(2 * X[:, 0]) + X[:, -1] / 3 + 0.1 * rng.standard_normal(n)


@pytest.fixture(params=["eager", "lazy"])
def kind(request, monkeypatch):
    monkeypatch.setattr(choose, "EAGER_BELOW", 0 if request.param == "lazy" else 2048)
    return request.param
