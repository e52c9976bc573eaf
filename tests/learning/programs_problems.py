"""Random problems for programs: sizes around the borders that the code has."""

import math

import numpy as np
from programs_mirror import Mirror

from fastal import GaussianProcess, MovementBelow

# Borders of the code: which selection a pool gets, its stages, chunks and panels.
POOLS = {
    12: 2,
    60: 2,
    300: 1,
    999: 2,
    1000: 3,
    1001: 2,
    2047: 3,
    2048: 4,
    2049: 4,
    2500: 7,
    6000: 4,
}
LABELS = (
    15,
    17,
    50,
    64,
    65,
    127,
    128,
    129,
    200,
    249,
    251,
    255,
    256,
    257,
    260,
    318,
    400,
    511,
    512,
    513,
    560,
)
KERNELS = ("rbf", "matern12", "matern32", "matern52")


class Problem:
    """A pool, labels and options; `said` is what has been drawn and done."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.said = []
        sizes = np.array(list(POOLS))
        n = int(rng.choice(sizes, p=np.array(list(POOLS.values())) / sum(POOLS.values())))
        self.kind = str(rng.choice(["learner", "run", "interrupted"], p=[0.55, 0.35, 0.1]))
        if self.kind == "interrupted":
            n = int(rng.choice([2500, 6000, 20_000]))
        d = int(rng.integers(1, 7))
        X = rng.normal(size=(n, d))
        ties = str(rng.choice(["", "", "copies", "grid"]))
        if ties == "copies":
            X[n // 2 :] = X[: n - n // 2]
        elif ties == "grid":
            X = np.round(3 * X) / 3
        if constant := bool(rng.random() < 0.2):
            X = np.column_stack((X, np.full(n, rng.choice([0.0, 3.7]))))
        self.wave = rng.normal(size=X.shape[1])
        sx, sy = (float(rng.choice([1.0, 1.0, 1.0, 1e8, 1e-8])) for _ in range(2))
        ratio = float(rng.choice([1e-8, 1e-6, 1e-4, 1e-2, 0.1, 1.0]))
        self.middle, self.sx, self.sy, self.sd = (
            float(rng.choice([0.0, 5.0])) * sy,
            sx,
            sy,
            math.sqrt(ratio),
        )
        self.X, self.ratio = X * sx, ratio
        self.truth = self.labels_of(self.X)
        gp, refit = None, 1.2
        if rng.random() < 0.75 or n < 10:
            length = rng.uniform(0.4, 2.0) * math.sqrt(d) * sx
            if rng.random() < 0.3:
                length = length * rng.uniform(0.5, 2, X.shape[1])
            kernel = str(rng.choice(KERNELS))
            gp = GaussianProcess(
                length, ratio * sy**2, amplitude=sy**2, mean=self.middle, kernel=kernel
            )
            refit = float(rng.choice([1.2, 1.6])) if rng.random() < 0.15 else None
        lowest = 5 if gp is None else 1
        n_initial = int(rng.choice([lowest, lowest, 7, min(40, n - 5)]))
        given = rng.choice(n, n_initial, replace=False) if rng.random() < 0.4 else None
        self.most = self.some_most(n_initial + 1, n)
        if self.kind == "interrupted":
            self.most = min(self.most, 150)
        whole = self.kind == "learner" and rng.random() < 0.35
        share = float(rng.choice([1e-6, 0.02, 0.1, 0.3]))
        acquisition = "random" if rng.random() < 0.1 else "max_variance"
        self.options = {
            "gp": gp, "criterion": MovementBelow(share), "initial": n_initial if given is None else given,
            "max_labels": None if whole else self.most, "seed": int(rng.integers(1000)),
            "acquisition": acquisition, "refit": refit,
        }  # fmt: skip
        self.say(
            f"X: {n} points, {d} features{', one constant' * constant}, {ties or 'all different'}, "
            f"scales {sx:g} and {sy:g}; noise ratio {ratio:g}"
        )
        shown = self.options | {
            "initial": n_initial if given is None else f"{n_initial} given rows"
        }
        self.say(f"{self.kind}: {', '.join(f'{k}={v}' for k, v in shown.items())}")
        self.mirror = Mirror(self.X, gp, share, n_initial, None if whole else self.most, refit)
        self.mirror.greedy = acquisition == "max_variance"

    def say(self, text):
        self.said.append(text)

    def labels_of(self, X):
        f = np.sin(X / self.sx @ self.wave) + self.sd * self.rng.uniform(-1.7, 1.7, len(X))
        return self.middle + self.sy * f

    def some_most(self, least, n):
        """Draw a number of labels: a border above `least`, or anything."""
        fit = [most for most in LABELS if least <= most <= n]
        if not fit or self.rng.random() < 0.1:
            return int(self.rng.integers(least, min(n, max(least, 560)) + 1))
        return int(self.rng.choice(fit))
