"""Slow twin of a rule: settings, bounds and what was decided; everything else is computed anew."""

import math
from fractions import Fraction

from twins import looks

METHODS = ("auto", "exact", "normal")


def still(bounds, horizon):
    """Return what is left, and the level: M_t over its largest value so far."""
    exact = [Fraction(max(r, 0.0)) for r in bounds]
    means = [
        sum(exact[t - w : t]) / w if t >= w else None
        for t in range(1, len(exact) + 1)
        for w in [min(20, max(10, t // 5))]
    ]
    known = [m for m in means if m is not None]
    level = float(known[-1] / max(known)) if known and max(known) else math.nan
    t = len(exact)
    if not horizon:
        return math.nan, level
    if t >= horizon:
        return 0.0, level
    if not known:
        return math.nan, level
    if sum(exact) == 0:
        return 1.0, level
    rest = known[-1] * (horizon - t)
    return float(rest / (sum(exact) + rest)), level


class Twin:
    """A tree of rules over one sequence of bounds."""

    def __init__(self, spec):
        self.spec, self.parts = spec, list(self._preorder(spec))
        self.set_horizon(0)
        self.reset()

    def _preorder(self, spec):
        yield spec
        for member in spec[1:] if spec[0] in ("any", "all") else ():
            yield from self._preorder(member)

    def reset(self):
        self.bounds, self.held, self.stopped_at = [], False, 0
        self.stops = [0] * len(self.parts)  # of each part that is no combination

    def set_horizon(self, horizon):
        each = horizon if isinstance(horizon, tuple) else (horizon,) * len(self.parts)
        self.horizons = [
            (part[2] or n) if part[0] == "still" else 0
            for part, n in zip(self.parts, each, strict=True)
        ]

    def _says(self, i):
        part, horizon, n = self.parts[i], self.horizons[i], len(self.bounds)
        if part[0] == "runs":
            _, alpha, method, falling, fall, end = part
            return looks.says_stop(
                self.bounds, alpha, method=METHODS[method], falling=falling, fall=fall,
                horizon=end,
            )  # fmt: skip
        if part[0] == "still":
            left, _ = still(self.bounds, horizon)
            late = n > min(20, max(10, n // 5)) and left <= part[1]
            return part[1] > 0 and n > 0 and (n >= horizon or late)
        return part[0] == "count" and n >= part[1]

    @property
    def says(self):
        return tuple(self._says(i) for i in range(len(self.parts)))

    def _whole(self, stops, i=0):
        """Return the stop of part i, and the index behind it."""
        kind, j, found = self.parts[i][0], i + 1, []
        if kind not in ("any", "all"):
            return stops[i], j
        for _ in self.parts[i][1:]:
            at, j = self._whole(stops, j)
            found.append(at)
        if kind == "all":
            return (max(found) if all(found) else 0), j
        return min((at for at in found if at), default=0), j

    @property
    def all_stops(self):
        return tuple(self._whole(self.stops, i)[0] for i in range(len(self.parts)))

    def push(self, r):
        self.bounds.append(r)
        if not self.stopped_at:
            for i, part in enumerate(self.parts):
                if not self.stops[i] and (part[0] == "count" or not self.held) and self._says(i):
                    self.stops[i] = len(self.bounds)
            self.stopped_at = self._whole(self.stops)[0]
        return self.stopped_at > 0

    def replace(self, values, confirms):
        before = self.says
        self.bounds, self.held = list(values), True
        if not self.stopped_at:
            n = len(values)
            for i, (part, says) in enumerate(zip(self.parts, self.says, strict=True)):
                if part[0] == "count":
                    self.stops[i] = part[1] if says else 0
                else:
                    end = part[0] == "still" and n >= self.horizons[i]
                    self.stops[i] = n if says and (end or (before[i] and confirms)) else 0
            self.stopped_at = self._whole(self.stops)[0]

    def left_and_level(self):
        for part, horizon in zip(self.parts, self.horizons, strict=True):
            if part[0] == "still":
                return still(self.bounds, horizon)
        return math.nan, math.nan
