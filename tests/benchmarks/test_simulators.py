"""Deterministic test functions, with their published values."""

import math

import numpy as np
import pytest
from fastal.studies import SIMULATORS, simulator
from fastal.studies.simulators import FUNCTIONS, branin, friedman1, ishigami


def test_branin():
    """Its three minima have the value 10 / (8 pi): the square and 1 + cos are 0 there."""
    minima = np.array([[-math.pi, 12.275], [math.pi, 2.275], [3 * math.pi, 2.475]])
    unit = (minima + np.array([5.0, 0.0])) / 15.0
    # 12.275 and its like are the places to three decimals, where the square is below 1e-4
    assert branin(unit) == pytest.approx(10 / (8 * math.pi), abs=1e-4)


def test_ishigami():
    places = np.array([[math.pi / 2, math.pi / 2, 0.0], [math.pi / 2, 0.0, 1.0], [0.0, 0.0, 3.0]])
    # sin u + 7 sin^2 v + 0.1 w^4 sin u, by hand
    assert ishigami((places / math.pi + 1) / 2) == pytest.approx([8.0, 1.1, 0.0], abs=1e-12)


def test_friedman1():
    # 10 sin(pi / 4) + 0 + 5 + 2.5, and 0 + 5 + 0 + 0 in the corner
    places = np.array([np.full(5, 0.5), np.zeros(5)])
    assert friedman1(places) == pytest.approx([10 * math.sqrt(0.5) + 7.5, 5.0], abs=1e-12)


def test_names():
    assert set(FUNCTIONS) == set(SIMULATORS)
    with pytest.raises(ValueError, match="`name` must be one of 'branin'"):
        simulator("rosenbrock")


def test_simulator(monkeypatch):
    monkeypatch.setattr("fastal.studies.simulators.ROWS", 60)
    one, again, other = simulator("ishigami", 5), simulator("ishigami", 5), simulator("ishigami", 6)
    assert one.X.shape == (60, 3)
    assert np.array_equal(one.X, again.X)
    assert not np.array_equal(one.X, other.X)
    assert one.gp.lengthscale == again.gp.lengthscale
    assert one.gp.noise == 1e-6
    assert (one.y.mean(), one.y.std()) == pytest.approx((0, 1))
