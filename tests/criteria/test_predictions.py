import copy
import json
import math
import pickle
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import twins
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import entropy
from sklearn.metrics import cohen_kappa_score, f1_score
from sklearn.naive_bayes import GaussianNB

import fastal
from fastal import FixedBudget, MinLabels, criteria
from fastal.criteria.measures import cohen_kappa, delta_f, entropies, error_gap, share_changed
from fastal.criteria.predictions import (
    ClassificationChange,
    DeltaFScore,
    ErrorStability,
    MaxUncertainty,
    OverallUncertainty,
    StabilizingPredictions,
)
from fastal.stopping.criterion import Criterion

rng = np.random.default_rng(7)

# measures -----------------------------------------------------------------------------------------


def expand(table):
    """Predictions of two classifiers from their table of counts."""
    pairs = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return [i for i, _ in pairs], [j for _, j in pairs]


@pytest.mark.parametrize(
    ("table", "kappa"),
    # kappa = (A_o - A_e) / (1 - A_e), Cohen (1960), as Bloodgood & Vijay-Shanker (2009) use it
    [
        # A_o = 35/50; margins 25 25 and 30 20: A_e = (25 * 30 + 25 * 20) / 50^2 = 1/2
        ([[20, 5], [10, 15]], Fraction(2, 5)),
        # A_o = 7/10; margins 4 3 3 and 4 4 2: A_e = (16 + 12 + 6) / 10^2
        ([[3, 1, 0], [1, 2, 0], [0, 1, 2]], Fraction(70 - 34, 100 - 34)),
        ([[5, 0], [0, 7]], Fraction(1)),
        ([[0, 3], [3, 0]], Fraction(-1)),  # A_o = 0, A_e = 1/2
        ([[0, 4], [0, 0]], Fraction(0)),  # A_o = A_e = 0
    ],
)
def test_kappa_by_hand(table, kappa):
    a, b = expand(table)
    assert cohen_kappa(a, b) == float(kappa)
    assert cohen_kappa(b, a) == float(kappa)
    names = np.array(["one", "two", "three"])
    assert cohen_kappa(names[a], names[b]) == float(kappa)
    assert cohen_kappa(names[a].astype(object), list(names[b])) == float(kappa)
    assert cohen_kappa(np.array(a) * 0.5, np.array(b) * 0.5) == float(kappa)


def test_kappa_is_scikit_learns():
    for _ in range(50):
        n, k = rng.integers(2, 60), rng.integers(2, 6)
        a = rng.integers(0, k, n)
        b = np.where(rng.random(n) < 0.7, a, rng.integers(0, k, n))
        a[0], b[1] = 0, 1  # two classes at least: scikit-learn has no number for one
        np.testing.assert_allclose(cohen_kappa(a, b), cohen_kappa_score(a, b), rtol=0, atol=1e-14)
    assert cohen_kappa(a == 0, b == 0) == pytest.approx(
        cohen_kappa_score(a == 0, b == 0), abs=1e-14
    )


def test_kappa_of_one_class_throughout():
    assert cohen_kappa([3, 3, 3], [3, 3, 3]) == 1.0
    assert cohen_kappa(["x"], ["x"]) == 1.0
    assert cohen_kappa([3, 3, 3], [4, 4, 4]) == 0.0


def test_entropy_by_hand():
    # -sum p log p: Zhu & Hovy (2007), uncertainty by entropy
    quarter = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    got = entropies([[0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(got, [quarter, math.log(3), 0.0], rtol=1e-15)
    np.testing.assert_allclose(entropies([0.25, 0.75, 0.5]), [quarter, quarter, math.log(2)], 1e-15)
    for certain in ([0.0, 1.0], [[0.0, 1.0]]):
        assert (entropies(certain) == 0.0).all()
        assert not np.signbit(entropies(certain)).any()


def test_entropies_are_those_of_scipy():
    p = rng.dirichlet([0.3, 1.0, 0.5, 2.0], 200)
    np.testing.assert_allclose(entropies(p), entropy(p, axis=1), rtol=1e-13, atol=1e-15)
    p = rng.random(200)
    np.testing.assert_allclose(entropies(p), entropies(np.c_[1 - p, p]), rtol=1e-12)
    wide = np.zeros((100, 4))
    wide[:, ::2] = np.c_[p[:100], 1 - p[:100]]
    wide.flags.writeable = False
    np.testing.assert_allclose(entropies(wide[::-1, ::2]), entropies(p[99::-1]), rtol=1e-12)
    single = rng.dirichlet(np.ones(50), 20).astype(np.float32)
    np.testing.assert_allclose(entropies(single), entropy(single.astype(float), axis=1), rtol=1e-5)


@pytest.mark.parametrize("p", [5e-324, 1e-300, 1e-17, 1e-9, 0.01, 0.3, 0.9999999, 1 - 2**-53])
def test_entropy_of_rare_classes(p):
    with mpmath.workdps(400):
        want = -(
            mpmath.mpf(p) * mpmath.log(p) + (1 - mpmath.mpf(p)) * mpmath.log(1 - mpmath.mpf(p))
        )
        # denormal results have an absolute error
        np.testing.assert_allclose(entropies([p])[0], float(want), rtol=4e-16, atol=1e-320)


GAPS = [5e-324, 1e-300, 1e-30, 1e-17, 1e-9, 1e-4, 0.01, 0.1, 0.3, np.nextafter(0.5, 0), 0.5, 0.7]
GAPS += [np.nextafter(1, 0), 1.0, np.nextafter(1, 2), 1.5, 10.0, 1e3, 1e10, 1e100, 1e300]


@pytest.mark.parametrize("kl", GAPS)
def test_error_gap_against_mpmath(kl):
    with mpmath.workdps(400):
        z = (mpmath.mpf(float(kl)) - 1) / mpmath.e
        want = float(mpmath.exp(1 + mpmath.lambertw(z).real) - 1)
    # W is rounded to eps |W|, and |W| is at most 690 here
    np.testing.assert_allclose(error_gap(kl), want, rtol=1e-15 if kl < 10 else 1e-13)


def test_error_gap_by_hand():
    assert error_gap(0.0) == 0.0
    assert error_gap(1.0) == pytest.approx(math.e - 1, rel=1e-15)  # W0(0) = 0
    # (1 + u) log(1 + u) - u at u = 1 is 2 log 2 - 1
    assert error_gap(2 * math.log(2) - 1) == pytest.approx(1.0, rel=1e-14)
    assert isinstance(error_gap(0.3), float)
    kl = np.geomspace(1e-6, 100, 60).reshape(3, 20)
    u = error_gap(kl)
    assert u.shape == kl.shape
    assert (np.diff(u.ravel()) > 0).all()
    np.testing.assert_allclose((1 + u) * np.log1p(u) - u, kl, rtol=1e-9)
    assert error_gap([]).shape == (0,)


def test_error_gap_is_the_least_of_its_family():
    # (KL + e^t - t - 1) / t, by brute force over t
    t = np.geomspace(1e-4, 20, 200_001)
    for kl in (1e-6, 0.01, 0.4, 0.6, 1.0, 7.0):
        family = (kl + np.expm1(t) - t) / t
        assert error_gap(kl) <= family.min() * (1 + 1e-9)
        assert error_gap(kl) == pytest.approx(family.min(), rel=1e-6)


def test_error_gap_bounds_the_gap():
    tightest = math.inf
    for _ in range(2000):
        p, q = rng.dirichlet(np.full(4, 0.5), 2) + 1e-12
        p, q = p / p.sum(), q / q.sum()
        for risk in (rng.random(4), np.array([0.0, 0.0, 1.0, 1.0])):
            gap, bound = (q - p) @ risk, error_gap(max(0.0, float(q @ np.log(q / p))))
            assert gap <= bound + 1e-12
            if gap > 0.01:
                tightest = min(tightest, bound / gap)
    assert tightest < 3  # a third of the bound would fail
    assert tightest > 1


# criteria -----------------------------------------------------------------------------------------


def stop_of(criterion, steps):
    for step in steps:
        criterion.update(step)
    return criterion.stopped_at


def test_stabilizing_predictions_by_hand():
    # Bloodgood & Vijay-Shanker (2009): mean kappa of the last k = 3 pairs of models above 0.99.
    models = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1], *[[0, 0, 1, 1]] * 4]
    # Between (0 0 1 1) and (0 1 1 1): A_o = 3/4, A_e = 1/2 * 1/4 + 1/2 * 3/4 = 1/2, kappa = 1/2.
    kappas = [math.nan, 0.5, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0]
    criterion = StabilizingPredictions()
    stops = [criterion.update(model) for model in models]
    np.testing.assert_array_equal(criterion.history, kappas)
    assert stops == [False] * 6 + [True] * 2
    assert criterion.stopped_at == 7
    # Mean 2/3 after models 2-4, 5/6 after models 3-6
    assert stop_of(StabilizingPredictions(cutoff=0.66), models) == 4
    assert stop_of(StabilizingPredictions(cutoff=0.67), models) == 5
    # exceeds, not reaches
    assert stop_of(StabilizingPredictions(cutoff=0.5, window=1), models) == 3
    assert stop_of(StabilizingPredictions(cutoff=0.4999, window=1), models) == 2


def test_uncertainties_by_hand():
    pools = [[0.5, 0.25], [0.25, 0.75], [0.25, 1.0], [1.0]]
    quarter = 2 - 0.75 * math.log2(3)  # entropy of (1/4, 3/4), over log 2
    overall, largest = OverallUncertainty(0.43), MaxUncertainty(0.43)
    assert [overall.update(p) for p in pools] == [False, False, True, True]
    assert [largest.update(p) for p in pools] == [False, False, False, True]
    np.testing.assert_allclose(
        overall.history, [(1 + quarter) / 2, quarter, quarter / 2, 0.0], rtol=1e-15
    )
    np.testing.assert_allclose(largest.history, [1.0, quarter, quarter, 0.0], rtol=1e-15)
    rows = [np.c_[1 - np.array(p), p] for p in pools]
    assert stop_of(OverallUncertainty(0.43), rows) == 3
    assert stop_of(MaxUncertainty(0.43), rows) == 4
    # three classes at most log 3, however they are written
    third = [np.full((2, 3), 1 / 3)]
    for kind in (OverallUncertainty, MaxUncertainty):
        criterion = kind()
        criterion.update(third[0])
        np.testing.assert_allclose(criterion.history, [1.0], rtol=1e-15)
        assert criterion.history[0] <= 1.0
    assert (OverallUncertainty().threshold, MaxUncertainty().threshold) == (0.05, 0.1)
    # below, not at
    one = entropies([0.25])[0] / math.log(2)
    for kind in (OverallUncertainty, MaxUncertainty):
        assert stop_of(kind(one), [[0.25]]) is None
        assert stop_of(kind(np.nextafter(one, 1)), [[0.25]]) == 1
        assert kind(0.25).push(0.25) is False
        assert kind(0.25).push(np.nextafter(0.25, 0)) is True


def test_error_stability_by_hand():
    # u = h^-1(KL) with h(u) = (1 + u) log(1 + u) - u, so that u = 3, 1, 0.15 for these
    kls = [(1 + u) * math.log1p(u) - u for u in (3.0, 1.0, 0.15)]
    criterion = ErrorStability(0.06)
    assert [criterion.push(kl) for kl in kls] == [False, False, True]  # 1, 1/3, 1/20
    assert criterion.verdict.reason == "error bound relative to the first (0.05) is at most 0.06"
    assert ErrorStability(0.049).extend(kls) is None
    assert ErrorStability(0.34).extend(kls) == 2
    # at most, and the larger direction counts
    ratio = error_gap(1e-3) / error_gap(1.0)
    assert ErrorStability(ratio).extend([1.0, 1e-3]) == 2
    assert ErrorStability(np.nextafter(ratio, 0)).extend([1.0, 1e-3]) is None
    both = [[kls[0], 0.0], [0.0, kls[1]], [kls[2], kls[2]]]
    assert stop_of(ErrorStability(0.06), both) == 3
    assert ErrorStability(0.06).update(both[0]) is False
    # nothing to compare with before the first positive divergence
    assert ErrorStability(0.5).extend([0.0, 0.0]) is None
    assert ErrorStability(0.5).extend([0.0, 0.0, 1.0, 0.0]) == 4


def test_what_a_real_classifier_gives():
    X = np.r_[rng.normal(-1, 1, (150, 2)), rng.normal(1, 1, (150, 2))]
    y = np.repeat(["no", "yes"], 150)
    order = rng.permutation(300)
    stop_set = order[100:]
    criterion, uncertainty = StabilizingPredictions(), OverallUncertainty(0.1)
    kappas, means, before = [math.nan], [], None
    for n in range(10, 100, 5):
        model = GaussianNB().fit(X[order[:n]], y[order[:n]])
        predicted, p = model.predict(X[stop_set]), model.predict_proba(X[stop_set])
        criterion.update(predicted)
        uncertainty.update(p)
        if before is not None:
            kappas.append(cohen_kappa_score(before, predicted))
        before = predicted
        means.append(entropy(p, axis=1).mean() / math.log(2))
    np.testing.assert_allclose(criterion.history, kappas, rtol=1e-13)
    np.testing.assert_allclose(uncertainty.history, means, rtol=1e-12)
    assert criterion.history[-3:].mean() > 0.9


def test_classification_change_by_hand():
    # Zhu, Wang & Hovy (2008): no predicted class is another one than before
    assert share_changed([0, 0, 1, 1], [0, 1, 1, 1]) == 0.25
    criterion = ClassificationChange()
    models = [[0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1], [0, 1, 1]]
    assert [criterion.update(model) for model in models] == [False] * 3 + [True] * 2
    np.testing.assert_array_equal(criterion.history, [math.nan, 1 / 3, 1 / 3, 0.0, 1 / 3])
    assert criterion.stopped_at == 4
    assert criterion.verdict.reason == "share of predictions that changed (0) is at most 0"


@pytest.mark.parametrize(
    ("before", "now", "change"),
    # Altschuler & Bloodgood (2019): 1 - 2 a / (2 a + b + c)
    [
        ([0, 0, 1, 1], [0, 1, 1, 1], 1 - 4 / 5),  # a = 2, c = 1
        ([1, 1, 0], [0, 1, 1], 1 - 2 / 4),  # a = b = c = 1
        ([0, 0], [1, 1], 1.0),
        ([1, 1], [1, 1], 0.0),
        (["no", "yes"], ["no", "yes"], 0.0),
        ([True, False, True], [True, True, True], 1 - 4 / 5),
        # three classes: 1 - 2 / 3 for 0 and 1, and 0 for 2
        ([0, 0, 1, 2], [0, 1, 1, 2], (1 / 3 + 1 / 3 + 0) / 3),
    ],
)
def test_predicted_change_of_the_f_score_by_hand(before, now, change):
    assert delta_f(before, now) == pytest.approx(change, rel=1e-15)
    assert delta_f(now, before) == delta_f(before, now)


def test_predicted_change_is_that_of_scikit_learns_f_score():
    for _ in range(50):
        n, k = rng.integers(2, 60), rng.integers(2, 6)
        a = rng.integers(0, k, n)
        b = np.where(rng.random(n) < 0.7, a, rng.integers(0, k, n))
        classes = np.union1d(a, b)
        if len(classes) == 2:
            wanted = f1_score(a, b, pos_label=classes[1])
        else:
            wanted = f1_score(a, b, average="macro")
        assert delta_f(a, b) == pytest.approx(1 - wanted, abs=1e-14)


def test_delta_f_score_by_hand():
    # 0.2, 0, 0, then 1/3: means of three 1/15 and 1/9
    models = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 0]]
    criterion = DeltaFScore(0.1)
    assert [criterion.update(model) for model in models] == [False] * 3 + [True] * 2
    assert criterion.stopped_at == 4
    assert stop_of(DeltaFScore(0.06), models) is None
    assert stop_of(DeltaFScore(0.06, window=1), models) == 3
    assert DeltaFScore(0.25, 1).push(0.25) is False  # below, not at
    assert DeltaFScore(0.25, 1).push(np.nextafter(0.25, 0)) is True
    assert criterion.verdict.reason == (
        "mean predicted change of the F-score of the last 3 steps (0.06667) is below 0.1"
    )


class Campaign:
    """What a criterion sees of a campaign: a classifier whose predictions come from a list."""

    def __init__(self, models):
        self.models, self.points, self.model = models, np.zeros((len(models[0]), 1)), self
        self.batch_ends, self.t = True, -1

    def predict_proba(self, X):
        raise AssertionError

    def predict(self, X):
        return self.models[self.t]


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("kind", [StabilizingPredictions, ClassificationChange, DeltaFScore])
def test_a_campaign_is_looked_at_after_each_so_many_labels(kind, every):
    settings = {} if kind is ClassificationChange else {"window": 2}
    criterion, told = kind(**settings, every=every), kind(**settings)
    models = MODELS + MODELS[-1:] * 6
    campaign = Campaign([model.tolist() for model in models])
    for t, model in enumerate(models, 1):
        campaign.t = t - 1
        stop = criterion.see(campaign, 1.0)
        if t % every == 0:
            told.update(model)
        assert stop is told.stopped
    np.testing.assert_array_equal(criterion.history, told.history)
    assert criterion.stopped_at == told.stopped_at * every
    assert len(criterion) == len(models)
    assert kind().every == 10


def test_a_batch_that_passes_a_multiple_is_looked_at_at_its_end():
    criterion = ClassificationChange(every=3)
    campaign = Campaign([[0, 1]] * 12)
    for t in range(12):
        campaign.t, campaign.batch_ends = t, t % 4 == 3
        criterion.see(campaign, 1.0)
    assert len(criterion.history) == 3
    assert criterion.stopped_at == 8


# both forms ---------------------------------------------------------------------------------------

probability = st.floats(0, 1).map(lambda p: p * p)  # more of the certain ones
pools = st.lists(hnp.arrays(float, st.integers(1, 5), elements=probability), max_size=12)
divergence = st.one_of(st.just(0.0), st.floats(0, 3), st.floats(-20, 2).map(lambda e: 10.0**e))


def assert_agree(criterion, steps, twin):
    """The criterion and its twin, after every step."""
    for n, step in enumerate(steps, start=1):
        stopped = criterion.update(step)
        at = twin(steps[:n])
        assert (stopped, criterion.stopped_at) == (at is not None, at)
        assert len(criterion.history) == n


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from("ab"), min_size=n, max_size=n), max_size=12)
    ),
    st.sampled_from([0.3, 0.5, 0.7, 0.99]),
    st.integers(1, 4),
)
@example([["a", "b"]] * 5, 0.99, 3)
def test_stabilizing_predictions_forms_agree(models, cutoff, window):
    assert_agree(
        StabilizingPredictions(cutoff, window),
        models,
        lambda part: twins.stabilizing_predictions_stop(
            [cohen_kappa(*pair) for pair in pairwise(part)], cutoff, window
        ),
    )


@given(pools, st.floats(1e-3, 0.999))
def test_uncertainty_forms_agree(steps, threshold):
    for criterion, twin in (
        (OverallUncertainty, twins.overall_uncertainty_stop),
        (MaxUncertainty, twins.max_uncertainty_stop),
    ):
        assert_agree(
            criterion(threshold),
            steps,
            lambda part, twin=twin: twin(
                [np.minimum(entropies(step) / math.log(2), 1.0) for step in part], threshold
            ),
        )


@given(st.lists(st.tuples(divergence, divergence), max_size=12), st.floats(0.01, 0.99))
@example([(0.0, 0.0), (1.0, 0.0), (0.0, 0.0)], 0.5)
def test_error_stability_forms_agree(kls, threshold):
    assert_agree(
        ErrorStability(threshold),
        kls,
        lambda part: twins.error_stability_stop(
            error_gap(np.reshape(part, (-1, 2)).max(axis=1)), threshold
        ),
    )


# the protocol -------------------------------------------------------------------------------------

MODELS = [np.where(rng.random(30) < 0.9**t, rng.integers(0, 3, 30), np.arange(30) % 3)
          for t in range(0, 60, 4)]  # fmt: skip
MODELS += [MODELS[-1]] * 4
POOLS = [  # ever more certain
    (1 - w) * rng.dirichlet(np.ones(3), 20) + w * np.eye(3)[rng.integers(0, 3, 20)]
    for w in np.linspace(0, 0.99, 15)
]
KLS = [[2.0**-t, 3.0**-t] for t in range(15)]
EVERY = [
    (StabilizingPredictions(0.9, 2), MODELS),
    (StabilizingPredictions(0.9), [np.array(["a", "b", "c"])[model] for model in MODELS]),
    (StabilizingPredictions(0.9), [model == 0 for model in MODELS]),
    (StabilizingPredictions(0.9), [model / 2 for model in MODELS]),
    (OverallUncertainty(0.4), POOLS),
    (MaxUncertainty(0.4), POOLS),
    (ErrorStability(0.1), KLS),
    (ClassificationChange(), MODELS),
    (DeltaFScore(0.1), MODELS),
    (DeltaFScore(0.1, 2), [model == 0 for model in MODELS]),
]
ONE_EACH = [EVERY[i] for i in (0, 4, 5, 6, 7, 8)]


@pytest.mark.parametrize(("new", "steps"), EVERY)
@pytest.mark.parametrize(
    "snapshot",
    [
        lambda c: pickle.loads(pickle.dumps(c)),
        copy.deepcopy,
        copy.copy,
        lambda c: c.copy(),
        lambda c: type(c).from_dict(json.loads(json.dumps(c.to_dict(), allow_nan=False))),
        lambda c: Criterion.from_dict(c.to_dict()),
    ],
)
def test_snapshots_continue_alike(new, steps, snapshot):
    whole = new.copy()
    stops = [whole.update(step) for step in steps]
    assert 1 < whole.stopped_at < len(steps)  # the data reach a stop, not at once
    assert stops == [n >= whole.stopped_at for n in range(1, len(steps) + 1)]
    for cut in range(len(steps) + 1):
        first = new.copy()
        for step in steps[:cut]:
            first.update(step)
        twin = snapshot(first)
        assert type(twin) is type(new)
        assert (repr(twin), twin.verdict.reason) == (repr(first), first.verdict.reason)
        assert [twin.update(step) for step in steps[cut:]] == stops[cut:]
        np.testing.assert_array_equal(twin.history, whole.history)
        assert (twin.stopped_at, twin.verdict.reason) == (whole.stopped_at, whole.verdict.reason)
        assert len(first.history) == cut  # independent


@pytest.mark.parametrize(("new", "steps"), ONE_EACH)
def test_measures_may_be_pushed(new, steps):
    told = new.copy()
    for step in steps:
        told.update(step)
    measures = told.history[~np.isnan(told.history)]
    skipped = len(steps) - len(measures)
    pushed = new.copy()
    for measure in measures:
        pushed.push(measure)
    assert pushed.stopped_at == told.stopped_at - skipped
    assert pushed.verdict.reason == told.verdict.reason
    assert new.copy().extend(measures) == pushed.stopped_at
    assert told.reset() is told
    assert (told.stopped, told.stopped_at, told.history.size) == (False, None, 0)
    assert told.verdict.reason.startswith("no ")
    assert told.extend(measures) == pushed.stopped_at
    # the reason stays that of the stop
    said = pushed.verdict.reason
    pushed.push(0.9)
    assert pushed.stopped
    assert pushed.verdict.reason == said
    # in company
    assert (new.copy() & MinLabels(len(measures))).extend(measures) == len(measures)
    either = new.copy() | FixedBudget(2)
    assert either.extend(measures) == 2
    twin = Criterion.from_dict(json.loads(json.dumps(either.to_dict(), allow_nan=False)))
    assert (repr(twin), twin.verdict.reason) == (repr(either), either.verdict.reason)


def test_predictions_after_a_pushed_agreement():
    criterion = StabilizingPredictions(0.5, 1)
    criterion.update([0, 1])
    criterion.push(0.25)
    criterion.update([1, 0])  # of which model [0, 1] were is no longer known
    np.testing.assert_array_equal(criterion.history, [math.nan, 0.25, math.nan])
    assert criterion.update([1, 0]) is True
    assert criterion.reset().update([1, 0, 1]) is False  # another stop set
    np.testing.assert_array_equal(criterion.history, [math.nan])


def test_the_callers_arrays_are_not_kept():
    model = np.array([0, 1, 1])
    criterion = StabilizingPredictions()
    criterion.update(model)
    model[:] = 0
    criterion.update([0, 1, 1])
    assert criterion.history[1] == 1.0
    criterion.history[:] = 7.0
    assert criterion.history[1] == 1.0


def test_words():
    criterion = StabilizingPredictions()
    assert repr(criterion) == "StabilizingPredictions()"
    assert (
        repr(StabilizingPredictions(0.9, every=1)) == "StabilizingPredictions(cutoff=0.9, every=1)"
    )
    assert criterion.verdict.reason == "no mean agreement of the last 3 steps yet"
    criterion.extend([0.5, 0.75, 1.0])
    assert (
        criterion.verdict.reason == "mean agreement of the last 3 steps (0.75) does not exceed 0.99"
    )
    assert str(criterion.verdict) == f"go on: {criterion.verdict.reason}"
    criterion = OverallUncertainty(np.float32(0.25))
    assert repr(criterion) == "OverallUncertainty(threshold=0.25)"
    criterion.push(1)
    assert criterion.verdict.reason == (
        "mean entropy of the pool, as a share of log k, (1) is not below 0.25"
    )
    criterion = MaxUncertainty(0.25)
    criterion.push(0.125)
    assert criterion.verdict.reason == (
        "largest entropy of the pool, as a share of log k, (0.125) is below 0.25"
    )
    assert criterion.verdict.stop is True
    criterion = ErrorStability(0.25)
    criterion.push(0.0)
    assert criterion.verdict.reason == "no error bound relative to the first yet"
    criterion.push(0.1)
    assert criterion.verdict.reason == "error bound relative to the first (1) is above 0.25"


def test_public_names():
    for name in (
        "StabilizingPredictions",
        "OverallUncertainty",
        "MaxUncertainty",
        "ErrorStability",
        "ClassificationChange",
        "DeltaFScore",
    ):
        assert name in dir(criteria)
        assert name not in dir(fastal)
    assert all(hasattr(criteria, name) for name in dir(criteria))


# bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: StabilizingPredictions(1.0), ValueError, r"`cutoff` must be in \(0, 1\), got 1"),
        (lambda: StabilizingPredictions("x"), TypeError, "`cutoff` must be a real number"),
        (lambda: StabilizingPredictions(window=0), ValueError, "`window` must be at least 1, got 0"),
        (lambda: StabilizingPredictions(window=2.0), TypeError, "`window` must be an integer"),
        (lambda: OverallUncertainty(0), ValueError, r"`threshold` must be in \(0, 1\), got 0"),
        (lambda: MaxUncertainty(math.nan), ValueError, r"`threshold` must be in \(0, 1\), got nan"),
        (lambda: MaxUncertainty(every=0), ValueError, "`every` must be at least 1, got 0"),
        (lambda: DeltaFScore(1), ValueError, r"`threshold` must be in \(0, 1\), got 1"),
        (lambda: delta_f([1, 2], [1]), ValueError, "`b` must have 2 elements, got 1"),
        (lambda: share_changed([1], ["x"]), TypeError, "`b` must be of dtype int64 as before"),
        (lambda: ErrorStability(1), ValueError, r"`threshold` must be in \(0, 1\), got 1"),
        (lambda: cohen_kappa([1, 2], [1]), ValueError, "`b` must have 2 elements, got 1"),
        (lambda: cohen_kappa([], []), ValueError, r"`a` must have shape \(n,\) with n >= 1"),
        (lambda: cohen_kappa([[1]], [1]), ValueError, r"`a` must have shape \(n,\)"),
        (lambda: cohen_kappa([1], ["x"]), TypeError, "`b` must be of dtype int64 as before"),
        (lambda: cohen_kappa([1, None], [1, 2]), TypeError, "`a` must hold texts, booleans or"),
        (lambda: cohen_kappa([1.0], [math.nan]), ValueError, "`b` must be finite, got nan at index"),
        (lambda: entropies([0.5, 1.5]), ValueError, r"`p` must be in \[0, 1\], got 1.5 at index 1"),
        (lambda: entropies([math.nan]), ValueError, r"`p` must be in \[0, 1\], got nan"),
        (lambda: entropies([[0.5, 0.6]]), ValueError, "`p` must have rows that sum to 1, got 1.1"),
        (lambda: entropies([[1.0]]), ValueError, r"`p` must have shape \(n, k\) or \(n,\)"),
        (lambda: entropies(0.5), ValueError, r"`p` must have shape .* got \(\)"),
        (lambda: entropies([]), ValueError, r"n >= 1 and k >= 2, got \(0,\)"),
        (lambda: entropies(["a"]), TypeError, "`p` must hold real numbers"),
        (lambda: error_gap([1.0, -1e-9]), ValueError, "`kl` must not be negative, got -1e-09"),
        (lambda: error_gap(math.inf), ValueError, "`kl` must be finite, got inf"),
        (lambda: ErrorStability(2).extend([1.0]), ValueError, r"`threshold` must be in \(0, 1\)"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("number", "call", "error", "message"),
    [
        (0, lambda c: c.push(1.1), ValueError, r"`r` must be in \[-1, 1\], got 1.1"),
        (0, lambda c: c.push(math.nan), ValueError, "`r` must be finite, got nan"),
        (0, lambda c: c.extend([0.5, -2]), ValueError, r"`values` must be in \[-1, 1\], got -2"),
        (0, lambda c: c.update([1, 2]), ValueError, "`predictions` must have 30 elements, got 2"),
        (0, lambda c: c.update(["a"] * 30), TypeError, "`predictions` must be of dtype int64 as"),
        (0, lambda c: c.update([None] * 30), TypeError, "`predictions` must hold texts, booleans"),
        (1, lambda c: c.push(-0.1), ValueError, r"`r` must be in \[0, 1\], got -0.1"),
        (1, lambda c: c.update([[0.5, 0.6]]), ValueError, "`probabilities` must have rows that sum"),
        (1, lambda c: c.extend([0.5, "x"]), TypeError, "`values` must be a real number, got 'x'"),
        (2, lambda c: c.update([]), ValueError, r"`probabilities` must have shape"),
        (2, lambda c: c.push(None), TypeError, "`r` must be a real number, got None"),
        (3, lambda c: c.update([1.0, -1.0]), ValueError, "`kl` must not be negative, got -1.0 at"),
        (3, lambda c: c.update([]), ValueError, "`kl` must not be empty"),
        (3, lambda c: c.push(math.inf), ValueError, "`r` must be finite, got inf"),
    ],
)  # fmt: skip
def test_bad_steps_change_nothing(number, call, error, message):
    new, steps = ONE_EACH[number]
    criterion = new.copy()
    for step in steps[:4]:
        criterion.update(step)
    before = criterion.to_dict()
    with pytest.raises(error, match=message):
        call(criterion)
    assert criterion.to_dict() == before


GOOD = StabilizingPredictions(0.5)
GOOD.update(["a", "b"])
GOOD.update(["a", "a"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"cutoff": 2}}, r"`state` is damaged: `cutoff` must be in \(0, 1\), got 2"),
        (
            {"settings": {"window": None}},
            "`state` is damaged: `window` must be an integer, got None",
        ),
        ({"settings": {"breadth": 1}}, "`state` is damaged: .*breadth"),
        ({"history": None}, "`state` is damaged"),
        ({"history": [None, "x"]}, "`state` is damaged: `history` must be a real number, got 'x'"),
        ({"history": [None, 7.0]}, r"`state` is damaged: `history` must be in \[-1, 1\], got 7"),
        ({"times": [1]}, "`state` is damaged"),
        ({"times": [2, 1]}, "`state` is damaged: `times` must be at least 3, got 1"),
        ({"seen": 1}, "`state` is damaged: `seen` must be at least 2, got 1"),
        ({"predictions": []}, "`state` is damaged: `predictions` must have shape"),
        ({"predictions": [None]}, "`state` is damaged: `predictions` must hold texts"),
        ({"colour": 1}, "`state` .*has the unknown 'colour'"),
        ({"version": 2}, "is a StabilizingPredictions of fastal 0.1 or 0.2"),
        ({"version": 4}, "`state` must have version 3, got 4"),
        ({"kind": "ErrorStability"}, "must describe a StabilizingPredictions"),
    ],
)
def test_damaged_states(change, message):
    with pytest.raises(ValueError, match=message):
        StabilizingPredictions.from_dict(GOOD.to_dict() | change)
    assert StabilizingPredictions.from_dict(GOOD.to_dict()).to_dict() == GOOD.to_dict()


@pytest.mark.parametrize("criterion", [GOOD, OverallUncertainty(0.1), ErrorStability(0.1)])
def test_missing_keys(criterion):
    for key in criterion.to_dict():
        state = criterion.to_dict()
        del state[key]
        with pytest.raises(ValueError, match="`state`"):
            Criterion.from_dict(state)
