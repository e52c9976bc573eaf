import subprocess
import sys

import numpy as np
import pytest

import fastal.runs.sequential
from fastal import FixedBudget, Stopper

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from fastal.plotting.stopper import plot_stopper, save_stopper  # noqa: E402
from fastal.plotting.style import ABOVE, BELOW, file_formats  # noqa: E402

RNG = np.random.default_rng(20)
DROP = np.exp(np.repeat([1.5, -1.0], 20) + 0.3 * RNG.normal(size=40))
NOISE = RNG.lognormal(size=60)
SIDES = ("at or above the median", "below the median")

# name -> settings, bounds
CASES = {
    "empty": ({}, []),
    "one": ({}, [3.0]),
    "two": ({}, [3.0, 1.0]),
    "stop": ({}, DROP),
    "noise": ({}, NOISE),
    "all tied": ({}, [2.0] * 20),
    "tied": ({}, [2.0] * 12 + [1.0] * 12),
    "rise": ({}, DROP[::-1]),
    "negative": ({}, RNG.normal(size=40) - 1),
    "zeros": ({}, [0.0] * 15),
    "orders of magnitude and zeros": ({}, np.append(np.exp(7 - 0.4 * np.arange(40)), [0, -0.01])),
    "huge": ({}, [1.7e308, -1.7e308, 5e-324, 0.0] * 5),
    "huge and positive": ({}, [1e308] * 10 + [5e-324] * 10),
    "normal": ({"method": "normal"}, DROP),
    "letter of the paper": ({"fall": False}, DROP[::-1]),
    "no stop possible": ({"alpha": 1e-300}, DROP),
    "sequential": ({"alpha": 0.01, "sequential": True}, DROP),
    "horizon": ({"alpha": 0.01, "sequential": True, "horizon": 25}, DROP),
}


@pytest.fixture(autouse=True)
def no_figure_is_left(monkeypatch):
    # Levels of the order of the table's: the picture does not depend on their exact values.
    monkeypatch.setattr(
        fastal.runs.sequential,
        "look_level",
        lambda alpha, horizon=None, *, fall=True: 0.001 if horizon else 0.0019,
    )
    before = pyplot.get_fignums()
    yield
    assert pyplot.get_fignums() == before


def made(settings, bounds):
    stopper = Stopper(**settings)
    stopper.extend(bounds)
    return stopper


def plotted(stopper):
    """Draw in a figure of its own and close it; return the two axes."""
    ax = stopper.plot()
    upper, lower = ax.figure.axes
    assert upper is ax
    pyplot.close(ax.figure)
    return upper, lower


def part(ax, gid):
    """Return the one artist of a name, or None."""
    found = [artist for artist in ax.get_children() if artist.get_gid() == gid]
    assert len(found) <= 1
    return found[0] if found else None


def said(ax):
    return " ".join(ax.get_title(loc="left").split())


@pytest.mark.parametrize("name", CASES)
def test_every_case(name):
    stopper = made(*CASES[name])
    verdict, n = stopper.verdict, len(stopper)
    upper, lower = plotted(stopper)
    upper.figure.draw_without_rendering()  # warnings are errors

    assert said(upper).startswith(str(verdict))
    assert [said(upper).count(w) for w in verdict.warnings] == [1] * len(verdict.warnings)
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("bound", "p-value")
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "bounds")
    assert upper.get_xlim() == lower.get_xlim() == (0.5, max(n, 2) + 0.5)
    assert lower.get_yscale() == "log"
    low, high = lower.get_ylim()
    assert 0 < low < verdict.alpha < 1 < high

    tested = stopper.bounds[: verdict.n]
    counts = [verdict.n_above, verdict.n_below]
    points = [part(upper, side) for side in SIDES]
    assert [0 if p is None else len(p.get_xdata()) for p in points] == counts
    others = part(upper, "not tested")
    assert (0 if others is None else len(others.get_xdata())) == n - len(tested)
    assert verdict.n_runs == (runs_drawn(upper) if n else 0)

    for ax in (upper, lower):
        line = part(ax, "stop")
        assert (line is None) == (not stopper.stopped)
        if line is not None:
            assert list(line.get_xdata()) == [stopper.stopped_at] * 2


def runs_drawn(ax):
    return len(part(ax, "runs").get_paths())


def test_points_are_the_bounds_on_their_sides():
    stopper = Stopper()
    for bound in DROP:
        if stopper.push(bound):
            break
    upper, _ = plotted(stopper)
    bounds = stopper.bounds
    above, below = (part(upper, side) for side in SIDES)
    assert len(above.get_xdata()) == stopper.n_above
    assert len(below.get_xdata()) == stopper.n_below
    assert (above.get_color(), below.get_color()) == (ABOVE, BELOW)
    assert above.get_marker() != below.get_marker()  # colour is not all
    for line, high in ((above, True), (below, False)):
        index = line.get_xdata() - 1
        np.testing.assert_array_equal(line.get_ydata(), bounds[index])
        np.testing.assert_array_equal(bounds[index] >= stopper.median, high)
    np.testing.assert_array_equal(part(upper, "line").get_ydata(), bounds)
    np.testing.assert_array_equal(part(upper, "median").get_ydata(), stopper.median)


def test_running_median_and_p_values():
    stopper = made({}, NOISE)
    upper, lower = plotted(stopper)
    prefixes = [NOISE[:n] for n in range(1, len(NOISE) + 1)]
    medians = [np.median(prefix) for prefix in prefixes]
    np.testing.assert_array_equal(part(upper, "running median").get_ydata(), medians)
    p_values = [
        fastal.runs_test(prefix, cutoff="median", alternative="less").pvalue
        if len(prefix) > 1
        else 1.0
        for prefix in prefixes
    ]
    np.testing.assert_allclose(part(lower, "p-values").get_ydata(), p_values, rtol=1e-13)


def test_runs_are_tinted_by_side():
    stopper = made({}, [5.0, 6.0, 1.0, 2.0, 7.0])  # median 5
    upper, _ = plotted(stopper)
    tints = part(upper, "runs")
    spans = [(p.vertices[:, 0].min(), p.vertices[:, 0].max()) for p in tints.get_paths()]
    assert spans == [(0.5, 2.5), (2.5, 4.5), (4.5, 5.5)]
    first, second, third = tints.get_facecolor()
    np.testing.assert_array_equal(first, third)
    assert first[0] > first[2]  # vermilion
    assert second[0] < second[2]  # blue


@pytest.mark.parametrize(
    ("bounds", "scale"),
    [
        (DROP, "log"),
        (RNG.normal(size=30), "linear"),
        ([0.0] * 5, "linear"),
        (np.append(np.exp(7 - 0.4 * np.arange(40)), 0.0), "symlog"),
    ],
)
def test_scale(bounds, scale):
    upper, _ = plotted(made({}, bounds))
    assert upper.get_yscale() == scale


def test_level_and_rejections():
    stopper = made({}, DROP)
    _, lower = plotted(stopper)
    assert set(part(lower, "level").get_ydata()) == {0.001}
    assert part(lower, "level").get_linestyle() == "--"
    at = stopper.stopped_at
    assert part(lower, "rejections").get_xdata().tolist() == [at]
    assert part(lower, "p-values").get_xdata()[-1] == at
    assert part(lower, "all p-values").get_xdata()[-1] == len(stopper)
    assert "alpha = 0.001" in [text.get_text() for text in lower.texts]


def test_falling_level():
    stopper = made({"alpha": 0.01, "sequential": True}, DROP)
    _, lower = plotted(stopper)
    n = np.arange(1, len(DROP) + 1)
    expected = 0.0019 * np.where(n < 16, 1.0, (1 + np.log2(np.maximum(n, 16) / 16)) ** -2.0)
    np.testing.assert_allclose(part(lower, "level").get_ydata()[1:-1], expected, rtol=1e-14)
    level = stopper.verdict.alpha
    text = f"level = {level:.3g} after {stopper.stopped_at} bounds"
    assert text in [text.get_text() for text in lower.texts]


def test_the_horizon_is_marked_when_it_is_reached():
    _, lower = plotted(made(CASES["horizon"][0] | {"horizon": 1000}, DROP))
    assert part(lower, "horizon") is None  # it would stretch the axis
    stopper = made(*CASES["horizon"])
    _, lower = plotted(stopper)
    assert part(lower, "horizon").get_xdata()[0] == 25
    assert not stopper.stopped
    assert part(lower, "rejections").get_xdata().tolist() == []  # p is low, but too late


def test_legend_and_empty_text():
    upper, _ = plotted(made({}, DROP))
    (legend,) = upper.figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["median so far", *SIDES, "not tested", "stop"]
    upper, _ = plotted(Stopper())
    assert upper.figure.legends == []
    assert [text.get_text() for text in upper.texts] == ["no bounds yet"]


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_given_axes(layout):
    stopper = made({}, DROP)
    figure = Figure(layout=layout, figsize=(9, 7))
    axes = figure.subplots(1, 2)
    places = [ax.get_position(original=True).bounds for ax in axes.flat]
    for ax in axes.flat:
        assert stopper.plot(ax) is ax
        assert plot_stopper(stopper, ax=ax) is ax  # twice: it must not shrink again
    assert figure.axes == list(axes.flat)
    if layout is None:
        assert [ax.get_position(original=True).bounds for ax in axes.flat] == places
    figure.draw_without_rendering()
    for ax in axes.flat:
        place = ax.get_position(original=True)
        upper = ax.get_position()
        lower = ax.child_axes[0].get_position()
        assert place.y0 == pytest.approx(lower.y0)
        assert lower.y1 < upper.y0
        assert upper.y1 == pytest.approx(place.y1)
        assert (lower.x0, lower.x1) == pytest.approx((place.x0, place.x1))
        assert upper.height > 2 * lower.height
        assert part(ax.child_axes[0], "stop").get_xdata()[0] == stopper.stopped_at


def test_given_axes_can_be_cleared_and_zoomed():
    figure = Figure()
    ax = figure.subplots()
    made({}, DROP).plot(ax)
    ax.clear()
    assert ax.child_axes == []
    made({}, NOISE).plot(ax)
    (lower,) = ax.child_axes
    assert lower.get_xlim() == (0.5, 60.5)
    ax.set_xlim(10, 20)
    assert lower.get_xlim() == (10, 20)


def test_subfigure_and_dark_style():
    with matplotlib.style.context("dark_background"):
        figure = Figure(layout="constrained")
        left, _ = figure.subfigures(1, 2)
        ax = made({}, DROP).plot(left.subplots())
        figure.draw_without_rendering()
    assert ax.get_facecolor() == ax.child_axes[0].get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_stopper_is_only_read():
    stopper = made({}, DROP)
    before, bounds = stopper.to_dict(), stopper.bounds
    plotted(stopper)
    assert stopper.to_dict() == before
    np.testing.assert_array_equal(stopper.bounds, bounds)
    assert stopper.stopped_at == made({}, DROP).stopped_at


def test_many_bounds():
    bounds = RNG.lognormal(size=100_000)
    bounds[50_000:] *= 5.0  # a rise, which does not stop
    upper, lower = plotted(made({}, bounds))
    upper.figure.draw_without_rendering()
    assert sum(len(part(upper, side).get_xdata()) for side in SIDES) == 100_000
    assert part(upper, "line") is None  # it would be a blot
    assert len(part(lower, "all p-values").get_xdata()) == 100_000
    assert part(lower, "p-values").get_ydata().min() < 1e-15
    assert lower.get_ylim()[0] > 1e-16  # p-values underflow, alpha is still in sight
    assert runs_drawn(upper) < 500
    colours = part(upper, "runs").get_facecolor()
    assert colours[0][0] < colours[-1][0]  # from blue to vermilion


def test_many_bounds_after_a_stop():
    bounds = RNG.lognormal(size=10_000)
    bounds[:5_000] *= 5.0
    stopper = made({"alpha": 1e-6}, bounds)
    assert 5_000 < stopper.stopped_at < 6_000
    upper, _ = plotted(stopper)
    assert sum(len(part(upper, side).get_xdata()) for side in SIDES) == stopper.stopped_at
    assert len(part(upper, "not tested").get_xdata()) == 10_000 - stopper.stopped_at
    colours = part(upper, "runs").get_facecolor()
    assert colours[0][0] > colours[-1][0]  # from vermilion to blue


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "eps"])
def test_save(tmp_path, ending):
    path = tmp_path / f"stopper.{ending}"
    save_stopper(made({}, DROP), path)
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "eps": b"%!PS"}[ending]
    assert path.read_bytes().startswith(head)
    assert ending in file_formats()


def test_other_criteria():
    with pytest.raises(TypeError, match=r"`criterion` must be a Stopper, got .*FixedBudget"):
        plot_stopper(FixedBudget(3))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    stopper = made({}, DROP)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "fastal\[plot\]"'):
        stopper.plot()


def test_import_is_lazy():
    code = "import sys, fastal.plotting.stopper; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
