import os

import numpy as np
import pytest
from hypothesis import settings

# ci: the same examples on every run, so that a red run means a change. fuzz: `.ci/run --long`.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def loop():
    """A small problem on which every loop stops: inputs (60, 2), labels, and their noise."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(60)
    return X, y, 0.01
