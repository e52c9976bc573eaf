"""Predictions against labels."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from fastal.plotting.predictions import plot_predictions  # noqa: E402

RNG = np.random.default_rng(4)


def parts(ax):
    return {line.get_gid(): line.get_xydata() for line in ax.lines if line.get_gid()}


def names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_dots_and_diamonds():
    y, mean = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.1, 1.2, 1.0, 3.0])
    ax = plot_predictions(y, mean, np.array([0.1, 0.1, 0.1, 0.2]))
    pyplot.close(ax.figure)
    ax.figure.draw_without_rendering()
    # 1.0 for 2.0 is ten standard deviations off; 1.2 for 1.0 is two of them
    shown = parts(ax)
    np.testing.assert_array_equal(shown["further off"], [[2.0, 1.0]])
    assert len(shown["within two standard deviations"]) == 3
    assert names(ax) == ["within two standard deviations: 3 of 4", "further off: 1 of 4"]
    assert ax.get_xlim() == ax.get_ylim()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("label", "prediction without it")


@pytest.mark.parametrize(
    ("y", "mean", "sd"),
    [
        ([1.0], [1.0], [0.1]),
        ([0.0, 0.0], [0.0, 0.0], [1e-3, 1e-3]),
        ([1e9, 1e9 + 1], [1e9, 1e9], [1.0, 1.0]),
        ([1.0, 2.0], [1.1, 2.1], [1e6, 1e6]),
        (RNG.normal(size=3000), RNG.normal(size=3000), np.ones(3000)),
        ([1e-200, 2e-200], [1e-200, 1e-200], [1e-200, 1e-200]),
    ],
)
def test_odd_numbers(y, mean, sd):
    ax = Figure(layout="constrained").subplots()
    assert plot_predictions(np.array(y), np.array(mean), np.array(sd), ax) is ax
    ax.figure.draw_without_rendering()  # warnings are errors
    low, high = ax.get_xlim()
    assert low < min(*y, *mean) <= max(*y, *mean) < high if len(y) > 1 else low < high
