"""What is still to come: what a bound costs beside the runs test, alone and in whole campaigns."""

import numpy as np
import twins

from fastal import (
    FixedBudget,
    GaussianProcess,
    MinLabels,
    Stopper,
    learn,
    simulate,
    stopping_time,
)

from ._inside import inside
from ._timing import ratio, ratio_of_pairs

# since 0.3 under these names
MovementBelow = inside("MovementBelow", "fastal")
movement_left = inside("movement_left", "fastal.runs")

BLOCK = 1000

NEVER = 1e-12  # a share, or a level, that nothing here reaches


def _bounds(n, seed=0):
    return np.random.default_rng(seed).exponential(size=n)


def _pushes(criterion):
    """Return a call that pushes a thousand bounds, of which there can be any number."""
    values, push = _bounds(BLOCK).tolist(), criterion.push

    def call():
        for value in values:
            push(value)

    return call


def track_push_over_a_push_of_a_stopper():
    """At most 1.2."""
    return ratio(_pushes(MovementBelow(NEVER, horizon=2**40)), _pushes(Stopper(NEVER)))


track_push_over_a_push_of_a_stopper.unit = "ratio"


class Push:
    """A thousand bounds one by one."""

    params = (["MovementBelow", "Stopper", "reference"],)
    param_names = ("implementation",)
    number = 1  # a push changes the state
    warmup_time = 0

    def setup(self, implementation):
        self.body = {
            "MovementBelow": _pushes(MovementBelow(NEVER, horizon=2**40)),
            "Stopper": _pushes(Stopper(NEVER)),
            "reference": lambda: twins.movement_left(_bounds(30), 1000),
        }[implementation]

    def time_push(self, implementation):
        self.body()


class Histories:
    """Ten thousand streams of 100 bounds in one call, on one thread."""

    params = (["MovementBelow", "movement_left", "Stopper"],)
    param_names = ("implementation",)

    def setup(self, implementation):
        bounds = _bounds(10_000 * 100).reshape(10_000, 100)
        still = MovementBelow(0.05, horizon=400)
        self.body = {
            "MovementBelow": lambda: stopping_time(bounds, criterion=still, threads=1),
            "movement_left": lambda: movement_left(bounds, 400),
            "Stopper": lambda: stopping_time(bounds, threads=1),
        }[implementation]
        self.body()

    def time_histories(self, implementation):
        self.body()


CRITERIA = {
    "MovementBelow": lambda: MovementBelow(NEVER),
    "MovementBelow | FixedBudget": lambda: MovementBelow(NEVER) | FixedBudget(10**6),
    "MovementBelow & MinLabels": lambda: MovementBelow(NEVER) & MinLabels(50),
}


class Campaigns:
    """Whole campaigns beside those of a Stopper that never stops."""

    params = (list(CRITERIA),)
    param_names = ("criterion",)

    def setup(self, criterion):
        rng = np.random.default_rng(0)
        self.X, self.y = rng.standard_normal((1000, 4)), rng.standard_normal(1000)
        self.gp = GaussianProcess(1.0, 0.1)
        self.criterion = CRITERIA[criterion]()
        self._learn(self.criterion)
        self._simulate(self.criterion)

    def _learn(self, criterion):
        return learn(self.X[:400], self.y[:400], gp=self.gp, criterion=criterion, seed=0)

    def _simulate(self, criterion):
        settings = {"n_runs": 200, "pool_size": 100, "test": None}
        return simulate(self.X, self.y, gp=self.gp, criterion=criterion, **settings)

    def track_learn_over_a_stopper(self, criterion):
        """At most 1.1."""
        return ratio(lambda: self._learn(self.criterion), lambda: self._learn(Stopper(NEVER)))

    def track_simulate_over_a_stopper(self, criterion):
        """At most 1.1."""
        return ratio_of_pairs(
            lambda: self._simulate(self.criterion), lambda: self._simulate(Stopper(NEVER))
        )


Campaigns.track_learn_over_a_stopper.unit = "ratio"
Campaigns.track_simulate_over_a_stopper.unit = "ratio"
