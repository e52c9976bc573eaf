import sys

import numpy as np
import pytest

from fastal import Criterion, FixedBudget, MovementBelow, Stopper
from fastal.stopping import Measured

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from fastal.plotting import plot_criterion, plot_member  # noqa: E402
from fastal.plotting.style import BELOW, OUTSIDE  # noqa: E402


class ThreeLow(Criterion):
    def __init__(self, level=0.5):
        super().__init__(level=level)

    def says_stop(self, bounds):
        return len(bounds) >= 3 and max(bounds[-3:]) < self.level


class Shown(Measured):
    def __init__(self, threshold=1.0, every=1):
        super().__init__(threshold=threshold, every=every)

    def measure(self, campaign):
        return next(campaign)


def part(ax, gid):
    found = [line for line in ax.lines if line.get_gid() == gid]
    assert len(found) <= 1
    return found[0] if found else None


def said(ax):
    return " ".join(ax.get_title(loc="left").split())


def plotted(criterion):
    ax = criterion.plot()
    pyplot.close(ax.figure)
    ax.figure.draw_without_rendering()  # warnings are errors
    return ax


def test_bounds_and_stop():
    bounds = [5.0, 2.0, 0.4, 0.3, 0.2, 0.6, 0.1]
    criterion = ThreeLow()
    assert criterion.extend(bounds) == 5
    before = criterion.to_dict()
    ax = plotted(criterion)
    assert criterion.to_dict() == before
    np.testing.assert_array_equal(part(ax, "bound").get_xydata(), np.c_[range(1, 6), bounds[:5]])
    np.testing.assert_array_equal(part(ax, "after the stop").get_ydata(), bounds[5:])
    np.testing.assert_array_equal(part(ax, "line").get_ydata(), bounds)
    assert (part(ax, "bound").get_color(), part(ax, "after the stop").get_color()) == (
        BELOW,
        OUTSIDE,
    )
    assert list(part(ax, "stop").get_xdata()) == [5, 5]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("bounds", "bound", "log")
    assert said(ax) == str(criterion.verdict) == "stop after 5 bounds: the rule says stop"


def test_without_a_stop_and_without_bounds():
    criterion = ThreeLow()
    criterion.extend([1.0, -2.0])
    ax = plotted(criterion)
    assert (part(ax, "stop"), part(ax, "after the stop")) == (None, None)
    assert ax.get_yscale() == "linear"
    assert said(ax) == "go on: the rule says go on"
    ax = plotted(FixedBudget(3))
    assert [text.get_text() for text in ax.texts] == ["no bounds yet"]
    assert ax.get_legend() is None


@pytest.mark.parametrize("bounds", [[0.0] * 5, [1e308, 5e-324, 0.0, -1e308], [3.0]])
def test_every_kind_of_bounds(bounds):
    criterion = FixedBudget(100)
    criterion.extend(bounds)
    assert len(part(plotted(criterion), "bound").get_xdata()) == len(bounds)


def test_measures_stand_at_the_labels_they_were_taken_at():
    criterion = Shown(every=3)
    values = iter([4.0, np.nan, 0.5, 2.0])
    for _ in range(13):
        criterion.see(values, 0.0)
    assert criterion.stopped_at == 9
    ax = plotted(criterion)
    np.testing.assert_array_equal(part(ax, "measure").get_xydata(), [[3, 4.0], [9, 0.5]])
    np.testing.assert_array_equal(part(ax, "after the stop").get_xydata(), [[12, 2.0]])
    assert list(part(ax, "stop").get_xdata()) == [9, 9]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("labels", "measure")
    assert ax.get_xlim() == (0.5, 13.5)


def test_measures_that_nobody_knows():
    criterion = Shown()
    criterion.see(iter([np.nan]), 0.0)
    ax = plotted(criterion)
    assert [text.get_text() for text in ax.texts] == ["no measure yet"]


def test_many_bounds():
    criterion = FixedBudget(4_000)
    criterion.extend(1.0 / np.arange(1, 5_001))
    ax = plotted(criterion)
    assert part(ax, "line") is None
    assert len(part(ax, "bound").get_xdata()) == 4_000
    assert len(part(ax, "after the stop").get_xdata()) == 1_000


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_given_axes(layout):
    criterion = ThreeLow()
    criterion.extend([3.0, 2.0, 1.0])
    figure = Figure(layout=layout)
    for ax in figure.subplots(1, 2):
        assert criterion.plot(ax) is ax
        ax.clear()
        assert plot_criterion(criterion, ax=ax) is ax
    figure.draw_without_rendering()


def test_the_picture_of_a_member():
    ax = Figure().subplots()
    assert plot_member(ThreeLow() | Stopper(), ax) is ax
    assert ax.child_axes[0].get_ylabel() == "p-value"
    ax = Figure().subplots()
    assert (ThreeLow() & (Stopper() | MovementBelow(horizon=9))).plot(ax) is ax
    assert ax.child_axes[0].get_ylabel() == "still to come"
    with pytest.raises(TypeError, match=r"no picture of \(ThreeLow\(\) \| Fixed.*or a Stopper"):
        (ThreeLow() | FixedBudget(3)).plot()


def test_no_criterion_and_no_matplotlib(monkeypatch):
    with pytest.raises(TypeError, match="`criterion` must be a criterion, got 3"):
        plot_criterion(3)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "fastal\[plot\]"'):
        ThreeLow().plot()
