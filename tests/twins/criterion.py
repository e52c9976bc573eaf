"""Slow twin of a criterion: settings, bounds, fits and the horizon; all else is computed anew.

A rule is a tuple: ``("runs", settings)``, ``("movement", share, own horizon)``, ``("budget", n)``,
``("least", n)``, ``("own", says_stop)``, ``("any", *rules)`` or ``("all", *rules)``. The settings of
a runs test: alpha, level (of a look), method, falling (whether it falls), fall, end (0: none).
"""

import math
from fractions import Fraction

from twins import looks
from twins.runs import runs_p_value

COMBINED = ("any", "all")
COUNTS = ("budget", "least")


def movement(bounds, horizon):
    """Return the share still to come, and M_t over its largest value so far."""
    if any(r < -1e-12 for r in bounds):
        return math.nan, math.nan
    exact = [Fraction(max(r, 0.0)) for r in bounds]
    t, means = len(exact), []
    for n in range(1, t + 1):
        width = min(20, max(10, n // 5))
        means += [sum(exact[n - width : n]) / width] if n >= width else []
    level = float(means[-1] / max(means)) if means and max(means) else math.nan
    if not horizon or t == 0:
        return math.nan, level
    if t >= horizon:
        return 0.0, level
    if not means:
        return math.nan, level
    if sum(exact) == 0:
        return 1.0, level
    rest = means[-1] * (horizon - t)
    return float(rest / (sum(exact) + rest)), level


def runs_numbers(bounds, rule):
    """Return what the runs test finds in some bounds."""
    n, alpha = len(bounds), looks.level_at(rule["level"], len(bounds), rule["falling"])
    if n == 0:
        return {"p_value": 1.0, "n_runs": 0, "n_below": 0, "n_above": 0, "median": math.nan,
                "alpha": alpha}  # fmt: skip
    ordered = sorted(bounds)
    runs, below, above, _ = looks.counts(bounds)
    method = "normal" if rule["method"] == "normal" else "exact"
    median = float((Fraction(ordered[(n - 1) // 2]) + Fraction(ordered[n // 2])) / 2)
    p = runs_p_value(runs, below, above, alternative="less", method=method) if n > 1 else 1.0
    return {"p_value": p, "n_runs": runs, "n_below": below, "n_above": above, "median": median,
            "alpha": alpha}  # fmt: skip


def flat(rule):
    """Return the rule with (a | b) | c as a | b | c."""
    if rule[0] not in COMBINED:
        return rule
    members = [flat(member) for member in rule[1:]]
    out = []
    for member in members:
        out += member[1:] if member[0] == rule[0] else (member,)
    return rule[0], *out


class Part:
    """One rule of the tree, with the horizon that counts for it and the stop that it said."""

    def __init__(self, rule):
        self.rule, self.kind, self.horizon, self.stop = rule, rule[0], 0, 0
        self.members = [Part(member) for member in rule[1:]] if self.kind in COMBINED else []

    def leaves(self):
        return [leaf for one in self.members for leaf in one.leaves()] or [self]

    def tell(self, horizon):
        """A budget beside others says how many bounds there can be."""
        if self.kind == "any":
            ends = [one.rule[1] for one in self.members if one.kind == "budget"]
            horizon = min((n for n in (horizon, *ends) if n), default=0)
        own = self.rule[2] if self.kind == "movement" else 0
        self.horizon = own or horizon
        for member in self.members:
            member.tell(horizon)

    def says(self, bounds):
        n = len(bounds)
        if self.kind == "runs":
            one = self.rule[1]
            return looks.says_stop(
                bounds, one["level"], method=one["method"], falling=one["falling"],
                fall=one["fall"], horizon=one["end"],
            )  # fmt: skip
        if self.kind == "movement":
            if n and n >= self.horizon:
                return True
            return (
                n > min(20, max(10, n // 5)) and movement(bounds, self.horizon)[0] <= self.rule[1]
            )
        if self.kind == "own":
            return n > 0 and self.rule[1](bounds)
        return n >= self.rule[1]

    def stopped_at(self):
        if not self.members:
            return self.stop
        found = [member.stopped_at() for member in self.members]
        if self.kind == "all":
            return max(found) if all(found) else 0
        return min((at for at in found if at), default=0)

    def first(self, kind):
        return next((leaf for leaf in self.leaves() if leaf.kind == kind), None)

    def numbers(self, bounds):
        """Return the numbers of a verdict on these bounds."""
        if self.members:
            told = self.first("movement") or self.first("runs")
            return (
                {}
                if told is None
                else dict(zip(("left", "level"), told.moved(bounds), strict=True))
            )
        if self.kind == "runs":
            left, level = self.moved(bounds)
            return runs_numbers(bounds, self.rule[1]) | {"left": left, "level": level}
        if self.kind == "movement":
            left, level = self.moved(bounds)
            return {"left": left, "level": level, "share": self.rule[1],
                    "horizon": self.horizon or None}  # fmt: skip
        return {}

    def moved(self, bounds):
        return movement(bounds, self.horizon)


class Twin:
    """A criterion in so many words."""

    def __init__(self, rule):
        self.whole = Part(flat(rule))
        self.horizon = 0
        self.whole.tell(0)
        self.reset()

    def reset(self):
        self.bounds, self.fits, self.stopped_at, self.told = [], [], 0, None
        for leaf in self.whole.leaves():
            leaf.stop = 0

    def refuses(self, values):
        """Whether there is a reason not to take any of these bounds."""
        moved = [leaf for leaf in self.whole.leaves() if leaf.kind == "movement"]
        return (
            not all(math.isfinite(r) for r in values)
            or bool(moved and any(r < -1e-12 for r in values))
            or bool(values and any(not leaf.horizon for leaf in moved))
        )

    def push(self, r):
        self.bounds.append(r)
        if not self.stopped_at:
            for leaf in self.whole.leaves():
                counts = leaf.kind in COUNTS
                if not leaf.stop and (counts or not self.fits) and leaf.says(self.bounds):
                    leaf.stop = len(self.bounds)
            self.conclude()

    def after_fit(self, bounds, at_edge):
        """Take all bounds anew: two fits must agree."""
        if self.fits and bounds == self.bounds:
            return
        agree = bool(self.fits) and not at_edge and not self.fits[-1][1]
        agree = agree and len(bounds) >= self.fits[-1][0]
        before = [leaf.says(self.bounds) for leaf in self.whole.leaves()]
        self.bounds = list(bounds)
        self.fits.append((len(bounds), at_edge))
        if self.stopped_at:
            return
        for leaf, said in zip(self.whole.leaves(), before, strict=True):
            n, says = len(bounds), leaf.says(bounds)
            if leaf.kind in COUNTS:
                leaf.stop = leaf.rule[1] if says else 0
            else:
                ended = leaf.kind == "movement" and n and n >= leaf.horizon
                leaf.stop = n if says and ((said and agree) or ended) else 0
        self.conclude()

    def set_horizon(self, n):
        if n != self.horizon:
            self.horizon = n or int(bool(self.bounds))  # the end is here
            self.whole.tell(self.horizon)

    def conclude(self):
        self.stopped_at = self.whole.stopped_at()
        if self.stopped_at:
            self.told = self.whole.numbers(self.bounds[: self.stopped_at])

    def numbers(self):
        """Return the numbers of the verdict: at the stop, or now."""
        return self.told if self.stopped_at else self.whole.numbers(self.bounds)
