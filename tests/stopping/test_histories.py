"""Random histories of a criterion against a twin that keeps settings, bounds, fits and the horizon."""

import copy
import json
import math
import os
import pickle

import numpy as np
import pytest
from twins.criterion import COMBINED, Twin, movement

from fastal import Criterion, FixedBudget, MinLabels, MovementBelow, Stopper
from fastal.runs import look_level
from fastal.stopping import AllOf, AnyOf

COUNT = int(os.environ.get("FASTAL_HISTORIES", "200"))
FIRST = int(os.environ.get("FASTAL_HISTORIES_SEED", "0"))


class FewLow(Criterion):
    """Stops when some bounds in a row are below a level."""

    def __init__(self, level=0.1, n=3):
        super().__init__(level=level, n=n)

    def says_stop(self, bounds):
        return len(bounds) >= self.n and max(bounds[-self.n :]) < self.level


def drawn_single(rng):
    """Return a criterion, and the same as the twin takes it."""
    kind = rng.integers(7)
    if kind == 0:
        n = int(rng.integers(3, 90))
        return FixedBudget(n), ("budget", n)
    if kind == 1:
        n = int(rng.integers(2, 60))
        return MinLabels(n), ("least", n)
    if kind == 2:
        level, n = float(rng.choice([0.05, 0.3, 1.0])), int(rng.integers(1, 5))
        return FewLow(level, n), ("own", lambda x: len(x) >= n and max(x[-n:]) < level)
    if kind < 5:
        alpha = float(rng.choice([0.2, 0.05, 0.01, 0.001]))
        sequential = bool(rng.random() < 0.2)
        settings = {
            "method": str(rng.choice(["auto", "exact"] if sequential else ["auto", "exact", "normal"])),
            "fall": bool(rng.random() < 0.6),
            "sequential": sequential,
            "horizon": [None, 30, 100][rng.integers(3)] if sequential else None,
        }  # fmt: skip
        end, level = settings["horizon"], alpha
        if sequential:
            level = look_level(alpha, end, fall=settings["fall"])
        looks = {
            "alpha": alpha, "level": level, "method": settings["method"], "fall": settings["fall"],
            "falling": sequential and end is None, "end": end or 0,
        }  # fmt: skip
        return Stopper(alpha, **settings), ("runs", looks)
    share = float(rng.choice([0.02, 0.1, 0.3, 0.6]))
    own = int(rng.integers(5, 120)) if rng.random() < 0.3 else None
    return MovementBelow(share, horizon=own), ("movement", share, own or 0)


def drawn(rng, most=4):
    """Return a criterion of 1 to 4 members, nested or not."""
    n = int(rng.integers(1, most + 1)) if most < 4 else int(rng.choice([1, 2, 3, 3, 4, 4]))
    if n == 1:
        return drawn_single(rng)
    if n == 2 and rng.random() < 0.4:  # a budget that says how many bounds there can be
        share, end = float(rng.choice([0.1, 0.3, 0.6])), int(rng.integers(15, 60))
        rule = MovementBelow(share) | FixedBudget(end)
        return rule, ("any", ("movement", share, 0), ("budget", end))
    cut = int(rng.integers(1, n))
    (a, a_twin), (b, b_twin) = drawn(rng, cut), drawn(rng, n - cut)
    if rng.random() < 0.5:
        return a | b, ("any", a_twin, b_twin)
    return a & b, ("all", a_twin, b_twin)


def some_bounds(rng, n):
    fall = np.exp(-np.arange(n) / rng.uniform(4, 60))
    kinds = (
        lambda: fall * rng.lognormal(sigma=0.5, size=n),
        lambda: np.where(np.arange(n) < rng.integers(1, 30), 3.0, 0.01) * rng.uniform(1, 1.2, n),
        lambda: rng.integers(0, 3, n) * 1.0,
        lambda: np.where(rng.random(n) < 0.4, -1e-13, rng.random(n)),
        lambda: np.where(np.arange(n) == 2, 1e300, rng.random(n) * fall),
        lambda: rng.normal(size=n),  # what a MovementBelow refuses
    )
    return kinds[rng.choice(len(kinds), p=[0.3, 0.3, 0.12, 0.1, 0.1, 0.08])]().tolist()


def by_json(rule):
    return Criterion.from_dict(json.loads(json.dumps(rule.to_dict())))


KEPT = {
    "JSON": by_json,
    "copy": lambda rule: rule.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda rule: pickle.loads(pickle.dumps(rule)),
}


def close(a, b):
    if a is None or b is None:
        return a is b
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-11, abs_tol=1e-300)


def at_the_line(twin):
    """Whether what is left meets a share to the last digit, which rounding may decide."""
    shares = [
        (leaf.rule[1], leaf.horizon) for leaf in twin.whole.leaves() if leaf.kind == "movement"
    ]
    return any(
        math.isclose(movement(twin.bounds, n)[0], share, rel_tol=1e-11) for share, n in shares
    )


def check(rule, twin, ask):
    """Compare all that can be seen; the verdict, which is kept once it was asked for, if `ask`."""
    assert rule.stopped_at == (twin.stopped_at or None)
    assert rule.stopped is (twin.stopped_at > 0)
    assert (len(rule), rule.bounds.tolist()) == (len(twin.bounds), twin.bounds)
    verdict, numbers = (rule if ask else rule.copy()).verdict, twin.numbers()
    assert (verdict.stop is True) == rule.stopped
    assert verdict.n == (twin.stopped_at or len(twin.bounds))
    for name, value in numbers.items():
        assert close(getattr(verdict, name), value), (name, getattr(verdict, name), value)
    assert set(verdict.numbers) - {"low", "high"} == set(numbers)
    if isinstance(rule, Stopper | MovementBelow):
        for name, value in twin.whole.numbers(twin.bounds).items():
            if name not in ("alpha", "horizon"):
                assert close(getattr(rule, name), value), name
    if not twin.stopped_at and twin.whole.kind in COMBINED:
        stops = [member.stopped_at for member in rule.members]
        assert stops == [part.stopped_at() or None for part in twin.whole.members]
        for member, part in zip(rule.members if ask else (), twin.whole.members, strict=False):
            for name, value in () if member.stopped else part.numbers(twin.bounds).items():
                assert close(getattr(member.verdict, name), value), (repr(member), name)


def refused(rule, twin, rng):
    """Give it bounds that it must refuse, in every way; nothing may change."""
    before = json.dumps(rule.to_dict())
    bad = [math.nan, math.inf, -math.inf, -1.0 if twin.refuses([-1.0]) else math.nan]
    values = [0.5, 0.25, float(rng.choice(bad)), 0.5]
    for call in (
        lambda: rule.push(values[2]),
        lambda: rule.extend(values),
        lambda: rule.after_fit(values, at_edge=False),
    ):
        with pytest.raises(ValueError, match=r"must (not be negative|be finite|be given|be False)"):
            call()
    assert json.dumps(rule.to_dict()) == before


def run(seed, said):
    rng = np.random.default_rng([seed, 35])
    rule, form = drawn(rng)
    twin = Twin(form)
    said.append(repr(rule))
    fitted = all(not leaf.rule[1]["falling"] and not leaf.rule[1]["end"]
                 for leaf in twin.whole.leaves() if leaf.kind == "runs")  # fmt: skip
    fitted = fitted and rng.random() < 0.75
    if rng.random() < 0.8:
        horizon = int(rng.integers(5, 200))
        said.append(f"set_horizon({horizon})")
        rule.set_horizon(horizon)
        twin.set_horizon(horizon)
    ahead = some_bounds(rng, 1000)
    steps = ["push", "extend", "fit", "same", "horizon", "keep", "reset", "bad"]
    while len(said) < 45 and len(twin.bounds) < 90:
        step = str(rng.choice(steps, p=[0.4, 0.2, 0.16, 0.03, 0.05, 0.1, 0.01, 0.05]))
        if step in ("push", "extend"):
            n = int(rng.integers(0, 12)) if step == "extend" else 1
            values = [ahead.pop(0) for _ in range(n)]
            call, given = (rule.extend, values) if step == "extend" else (rule.push, values[0])
            said.append(f"{step}({values})")
            if twin.refuses(values):
                before = json.dumps(rule.to_dict())
                with pytest.raises(ValueError, match="must"):
                    call(given)
                assert json.dumps(rule.to_dict()) == before
                ahead = [abs(r) for r in ahead]
                continue
            found = call(given)
            for r in values:
                twin.push(r)
                if at_the_line(twin):
                    return
            wanted = twin.stopped_at or None
            assert found == (wanted if step == "extend" else wanted is not None)
        elif step in ("fit", "same") and fitted:
            n = max(0, len(twin.bounds) + int(rng.choice([-20, -3, -1, 0, 0, 0, 0, 0, 1, 2, 5])))
            bounds = some_bounds(rng, n) if step == "fit" and rng.random() < 0.5 else twin.bounds
            if step == "fit" and bounds is twin.bounds:
                bounds = [1.01 * r for r in (bounds + ahead)[:n]]
            edge = bool(rng.random() < 0.15)
            call = {"at_edge": edge}
            if rng.random() < 0.2:  # the first label gave no bound
                call |= {"pool": range(1 + n + int(rng.integers(0, 60))), "initial": 1}
            said.append(f"after_fit({list(bounds)}, **{call})")
            given, old = [9.0] * call.get("initial", 0) + bounds, twin.horizon
            twin.set_horizon(len(call["pool"]) - 1 if "pool" in call else old)
            if twin.refuses(bounds):
                twin.horizon = old
                twin.whole.tell(old)
                before = json.dumps(rule.to_dict())
                with pytest.raises(ValueError, match="must"):
                    rule.after_fit(given, **call)
                assert json.dumps(rule.to_dict()) == before
                continue
            if at_the_line(twin):
                return
            twin.after_fit(list(bounds), edge)
            if at_the_line(twin):
                return
            assert rule.after_fit(given, **call) is (twin.stopped_at > 0)
        elif step == "horizon":
            horizon = max(0, len(twin.bounds) + int(rng.integers(-5, 120)))
            said.append(f"set_horizon({horizon})")
            rule.set_horizon(horizon)
            twin.set_horizon(horizon)
        elif step == "keep":
            how = str(rng.choice(list(KEPT)))
            said.append(how)
            old, rule = rule, KEPT[how](rule)
            if rng.random() < 0.5:  # the old one shares nothing
                old.reset()
        elif step == "reset":
            said.append("reset()")
            assert rule.reset() is rule
            twin.reset()
        elif step == "bad":
            refused(rule, twin, rng)
        check(rule, twin, ask=rng.random() < 0.3)
    again = rule.replace()
    assert (len(again), again.stopped_at, repr(again)) == (0, None, repr(rule))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_history(seed):
    said = []
    try:
        run(seed, said)
    except Exception as error:
        error.add_note(f"seed {seed}:\n    " + "\n    ".join(said))
        raise


def test_the_histories_hold_what_they_should():
    # stops of every kind, nested and mixed ones, before and after fits
    found = set()
    for seed in range(300):
        rule, form = drawn(np.random.default_rng([seed, 35]))
        found |= {type(rule), form[0]}
        members = getattr(rule, "members", ())
        found.add((type(rule), len(members), any(hasattr(m, "members") for m in members)))
    assert {Stopper, MovementBelow, FixedBudget, MinLabels, FewLow, AnyOf, AllOf} <= found
    assert {(AnyOf, 2, True), (AllOf, 3, False), (AnyOf, 4, False), (AllOf, 2, True)} <= found
