"""The course of the hyper-parameters."""

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from fastal import GaussianProcess, MovementBelow, learn
from fastal.learning.refit import Refit

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from fastal.plotting.refits import plot_refits, refits_in_words, save_refits  # noqa: E402

BOX = 0.05, 30.0


@pytest.fixture(autouse=True)
def no_figure_is_left():
    before = pyplot.get_fignums()
    yield
    assert pyplot.get_fignums() == before


def course(scales, *, edge=(), failed=(), noise=0.01, amplitude=4.0, box=BOX):
    """A run with fits at 5, 6, 7, ... labels; edge and failed are numbers of fits."""
    fits = tuple(
        Refit(5 + i, scale, noise, amplitude, 0.0, i in edge or i in failed, i not in failed)
        for i, scale in enumerate(scales)
    )
    return SimpleNamespace(refits=fits, n_labels=fits[-1].n_labels + 1, search_box=box)


# name -> run
CASES = {
    "one": course([1.0]),
    "two": course([1.0, 2.0]),
    "moves": course([1.0, 2.0, 1.5, 1.1, 1.4]),
    "settled": course([5.0, 1.0, 1.02, 0.99, 1.0, 1.01]),
    "exactly the same": course([1.0] * 6),
    "at the lower edge": course([0.4, 0.05, 0.05], edge=(1, 2)),
    "at the upper edge": course([4.0, 30.0, 30.0, 29.9], edge=(1, 2, 3)),
    "all failed": course([1.0] * 3, failed=(0, 1, 2)),
    "last failed": course([1.0, 2.0, 1.5, 1.5], failed=(3,)),
    "edge, failure and fit": course([0.05, 0.05, 2.0, 2.1, 2.2], edge=(0,), failed=(1,)),
    "many": course(np.exp(np.random.default_rng(0).normal(size=60))),
    "large": course([1e5, 2e5, 3e6], noise=1e-280, amplitude=1e280),
    "equal": course([1.0, 1.0, 1.0], noise=2.0, amplitude=2.0),
}


def plotted(run):
    axes = plot_refits(run)
    pyplot.close(axes[0].figure)
    return axes


def parts(ax):
    return {line.get_gid(): line.get_xydata() for line in ax.lines if line.get_gid()}


def said(ax):
    return " ".join(ax.get_title(loc="left").split())


@pytest.mark.parametrize("name", CASES)
def test_every_case(name):
    run = CASES[name]
    fits = run.refits
    upper, lower = plotted(run)
    upper.figure.draw_without_rendering()  # warnings are errors

    assert said(upper) == refits_in_words(run)
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("length scale", "sd, units of y")
    assert lower.get_xlabel() == "labels"
    assert upper.get_yscale() == lower.get_yscale() == "log"
    assert upper.get_xlim() == lower.get_xlim()

    n = [fit.n_labels for fit in fits]
    wanted = {
        upper: {"length scale": [fit.lengthscale for fit in fits]},
        lower: {
            "noise": np.sqrt([fit.noise for fit in fits]),
            "function": np.sqrt([fit.amplitude for fit in fits]),
        },
    }
    for ax, courses in wanted.items():
        shown, (low, high) = parts(ax), ax.get_ylim()
        for what, values in courses.items():
            np.testing.assert_allclose(shown[what], np.column_stack((n, values)), rtol=1e-15)
            assert low < min(values) <= max(values) < high
            # Every fit is marked once, by what became of it.
            marks = [f"{what}: {kind}" for kind in ("fit", "at the edge", "failed")]
            counts = [len(shown.get(mark, ())) for mark in marks]
            failed = sum(not fit.fitted for fit in fits)
            edge = sum(fit.at_edge and fit.fitted for fit in fits)
            assert counts == [len(fits) - edge - failed, edge, failed]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one", "too early to say whether the length scale moves, after one fit; it is 1 after 5"),
        ("two", "too early to say whether the length scale moves, after 2 fits; it is 2 after 6"),
        # 1.5 / 1.1 - 1 = 36 %
        ("moves", "the length scale still moves, by 36 % over the last three fits; it is 1.4"),
        ("settled", "the length scale hardly moves any more, by 2 % over the last three fits"),
        ("exactly the same", "hardly moves any more, by 0 % over"),
        ("at the lower edge", "still moves, by a factor of 8 over"),
        ("at the lower edge", "; the last fit lies at an edge of its search, and confirms nothing"),
        ("all failed", "no fit has been possible so far: the length scale is a guess"),
        ("last failed", "still moves, by a factor of 2 over"),
        ("last failed", "; the last fit failed, and these are the values of the fit before"),
    ],
)
def test_the_words(name, text):
    assert text in refits_in_words(CASES[name])


def test_twenty_percent_is_the_limit():
    assert "hardly moves" in refits_in_words(course([9.0, 1.0, 1.1, 1.199]))
    assert "still moves" in refits_in_words(course([9.0, 1.0, 1.1, 1.201]))


@pytest.mark.parametrize(
    ("run", "edges"),
    [
        (CASES["moves"], []),
        (CASES["at the lower edge"], [0.05]),
        (CASES["at the upper edge"], [30.0]),
        (course([0.07, 0.07], box=BOX), [0.05]),  # near, not at it
        (course([0.05, 0.05], box=None), []),
    ],
)
def test_edges_of_the_search_where_they_are_near(run, edges):
    upper, lower = plotted(run)
    drawn = [line.get_ydata()[0] for line in upper.lines if line.get_gid() == "edge"]
    assert drawn == edges
    low, high = upper.get_ylim()
    assert all(low < edge < high for edge in drawn)
    assert "edge" not in parts(lower)
    assert any(text.get_text() == "edge of the search" for text in upper.texts) == bool(edges)


def test_marks_have_a_key_where_they_need_one():
    upper, lower = plotted(CASES["settled"])
    assert upper.get_legend() is None
    assert [text.get_text() for text in lower.get_legend().get_texts()] == ["function", "noise"]
    upper, _ = plotted(CASES["edge, failure and fit"])
    names = [text.get_text() for text in upper.get_legend().get_texts()]
    assert names == ["fit", "at the edge", "failed"]


@pytest.fixture(scope="module")
def learnt():
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (60, 2))
    y = 5 + 3 * np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    return learn(X, y, criterion=MovementBelow(0.05), max_labels=20, seed=0)


def test_a_run_draws_itself(learnt, tmp_path):
    axes = learnt.plot_refits()
    pyplot.close(axes[0].figure)
    assert len(parts(axes[0])["length scale"]) == len(learnt.refits) > 5
    # l / sqrt(d) is searched in [0.05, 30], see fastal/_core/weak.py
    assert learnt.search_box == pytest.approx((0.05 * np.sqrt(2), 30 * np.sqrt(2)), rel=1e-15)

    given = Figure(layout="constrained").subplots(2, 1)
    assert learnt.plot_refits(given) == tuple(given)
    path = tmp_path / "refits.png"
    save_refits(learnt, path)
    assert path.stat().st_size > 10_000


def test_labels_that_are_all_equal():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run = learn(np.arange(12.0), np.ones(12), criterion=MovementBelow(0.05), seed=0)
    assert "a guess" in refits_in_words(run)
    upper, _ = plotted(run)
    upper.figure.draw_without_rendering()


def test_wrong_use(learnt):
    gp = GaussianProcess(1.5, 0.0025)
    run = learn(
        np.arange(20.0), np.sin(np.arange(20.0)), gp=gp, criterion=MovementBelow(0.05), seed=0
    )
    assert run.search_box is None
    for wrong in (run.plot_refits, lambda: save_refits(run, "x.png"), lambda: refits_in_words(run)):
        with pytest.raises(
            ValueError, match="`run` has no refits: its hyper-parameters were given"
        ):
            wrong()
    with pytest.raises(ValueError, match="`axes` must be 2 axes, got 1"):
        learnt.plot_refits([Figure().subplots()])


def test_without_matplotlib(learnt, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "fastal\[plot\]"'):
        learnt.plot_refits()
