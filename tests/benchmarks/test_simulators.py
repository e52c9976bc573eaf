"""Deterministic test functions, with their published values."""

import math

import numpy as np
import pytest


@pytest.fixture
def simulators(benchmarks):
    return benchmarks("studies.simulators")


def test_branin(simulators):
    """Its three minima have the value 10 / (8 pi): the square and 1 + cos are 0 there."""
    minima = np.array([[-math.pi, 12.275], [math.pi, 2.275], [3 * math.pi, 2.475]])
    unit = (minima + np.array([5.0, 0.0])) / 15.0
    # 12.275 and its like are the places to three decimals, where the square is below 1e-4
    assert simulators.branin(unit) == pytest.approx(10 / (8 * math.pi), abs=1e-4)


def test_ishigami(simulators):
    places = np.array([[math.pi / 2, math.pi / 2, 0.0], [math.pi / 2, 0.0, 1.0], [0.0, 0.0, 3.0]])
    # sin u + 7 sin^2 v + 0.1 w^4 sin u, by hand
    assert simulators.ishigami((places / math.pi + 1) / 2) == pytest.approx(
        [8.0, 1.1, 0.0], abs=1e-12
    )


def test_friedman1(simulators):
    # 10 sin(pi / 4) + 0 + 5 + 2.5, and 0 + 5 + 0 + 0 in the corner
    places = np.array([np.full(5, 0.5), np.zeros(5)])
    assert simulators.friedman1(places) == pytest.approx(
        [10 * math.sqrt(0.5) + 7.5, 5.0], abs=1e-12
    )


def test_names(simulators):
    assert set(simulators.FUNCTIONS) == set(simulators.SIMULATORS)
    with pytest.raises(ValueError, match="`name` must be one of 'branin'"):
        simulators.simulator("rosenbrock")


def test_simulator(simulators, monkeypatch):
    monkeypatch.setattr(simulators, "ROWS", 60)
    one, again, other = (simulators.simulator("ishigami", seed) for seed in (5, 5, 6))
    assert one.X.shape == (60, 3)
    assert np.array_equal(one.X, again.X)
    assert not np.array_equal(one.X, other.X)
    assert one.gp.lengthscale == again.gp.lengthscale
    assert one.gp.noise == 1e-6
    assert (one.y.mean(), one.y.std()) == pytest.approx((0, 1))
