"""Random programs of numbers and fits: a composition stops where its members, each alone, say."""

import copy
import json
import os
import pickle

import numpy as np
import pytest

from fastal import Criterion, FixedBudget, MinLabels, MovementBelow, Stopper

COUNT = int(os.environ.get("FASTAL_PROGRAMS", "40"))
FIRST = int(os.environ.get("FASTAL_PROGRAMS_SEED", "0"))


class Leaf:
    """A single criterion: it sees all numbers, or the last two fits and the numbers since."""

    def __init__(self, single):
        self.single, self.counts = single, isinstance(single, FixedBudget | MinLabels)

    def stop(self, history, fits):
        """Return its stop, from the numbers before the first fit, and (bounds, edge, numbers since)."""
        if self.counts:
            n = len(history) if not fits else len(fits[-1][0]) + len(fits[-1][2])
            return self.single.n if n >= self.single.n else None
        alone = self.single.fresh()
        alone.set_horizon(self.horizon)
        if not fits:
            alone.extend(history)
        for bounds, edge, since in fits[-2:]:
            alone.after_refit(bounds, at_edge=edge)
            for r in since:
                alone.push(r)
        return alone.stopped_at

    def set_horizon(self, horizon):
        self.horizon = horizon

    def make(self):
        return self.single.copy()


class Node:
    """A composition in so many words."""

    def __init__(self, word, members):
        self.word, self.members = word, members

    def set_horizon(self, horizon):
        budgets = [
            m.single.n
            for m in self.members
            if isinstance(m, Leaf) and type(m.single) is FixedBudget
        ]
        for member in self.members:
            member.set_horizon(min([horizon, *budgets]) if self.word == "any" else horizon)

    def stop(self, history, fits):
        stops = [member.stop(history, fits) for member in self.members]
        there = [stop for stop in stops if stop is not None]
        if self.word == "any":
            return min(there, default=None)
        return max(there) if len(there) == len(stops) else None

    def make(self):
        first, *rest = (member.make() for member in self.members)
        for one in rest:
            first = first | one if self.word == "any" else first & one
        return first


def drawn_node(rng, depth=0):
    def leaf():
        kind = rng.integers(5)
        if kind == 0:
            return Leaf(FixedBudget(int(rng.integers(5, 120))))
        if kind == 1:
            return Leaf(MinLabels(int(rng.integers(2, 60))))
        if kind == 2:
            return Leaf(
                Stopper(float(rng.choice([0.05, 0.01, 0.001])), fall=bool(rng.random() < 0.5))
            )
        return Leaf(MovementBelow(float(rng.choice([0.02, 0.1, 0.3]))))

    word = str(rng.choice(["any", "all"]))
    members = []
    for _ in range(int(rng.integers(2, 4))):
        inner = drawn_node(rng, depth + 1) if depth < 2 and rng.random() < 0.3 else leaf()
        # (a | b) | c is a | b | c
        members += inner.members if isinstance(inner, Node) and inner.word == word else [inner]
    return Node(word, members)


def fresh_bounds(rng, n):
    fall = np.exp(-np.arange(n) / rng.uniform(8, 60))
    return fall * np.exp(rng.uniform(0.1, 1) * rng.normal(size=n)) + 1e-4


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_composition(seed):
    rng = np.random.default_rng([seed, 7])
    node, horizon = drawn_node(rng), int(rng.integers(130, 400))
    rule = node.make()
    rule.set_horizon(horizon)
    node.set_horizon(horizon)
    said = [f"seed {seed}: {rule!r}, horizon {horizon}"]
    ahead = iter(fresh_bounds(rng, 1000).tolist())
    history, fits, stop = [], [], None
    with_fits = rng.random() < 0.6
    n = 0
    while n < 120:
        step = str(rng.choice(["push", "extend", "fit", "keep"], p=[0.5, 0.15, 0.2, 0.15]))
        if step == "fit" and with_fits and n:
            bounds, edge = fresh_bounds(rng, n), bool(rng.random() < 0.2)
            said.append(f"after_refit({n} bounds, at_edge={edge})")
            rule.after_refit(bounds, at_edge=edge)
            fits.append((bounds, edge, []))
        elif step == "keep":
            how = str(rng.choice(["copy", "pickle", "dict"]))
            said.append(how)
            if how == "dict":
                rule = Criterion.from_dict(json.loads(json.dumps(rule.to_dict())))
            else:
                rule = copy.copy(rule) if how == "copy" else pickle.loads(pickle.dumps(rule))
        else:
            count = int(rng.integers(1, 12)) if step == "extend" else 1
            values = [next(ahead) for _ in range(count)]
            if step == "extend":
                said.append(f"extend({count} values)")
                rule.extend(values)
            else:
                said.append("push")
                rule.push(values[0])
            # one by one: the whole may stop at each
            for value in values:
                (fits[-1][2] if fits else history).append(value)
                stop = node.stop(history, fits) if stop is None else stop
            n += count
        stop = node.stop(history, fits) if stop is None else stop
        assert rule.stopped_at == stop, "\n    ".join(said)
        assert rule.stopped == (stop is not None)
