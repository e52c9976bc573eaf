import sys

import numpy as np
import pytest

from fastal import FixedBudget, MinLabels, MovementBelow, Stopper
from fastal.runs import movement_left
from fastal.stopping import first_of, window_means

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from fastal.plotting.still import plot_still, save_still  # noqa: E402
from fastal.plotting.stopper import plot_stopper  # noqa: E402

RNG = np.random.default_rng(20)


def falling(n, power=2.0):
    return 5.0 / np.arange(1, n + 1) ** power * RNG.exponential(size=n)


SPARSE = np.where(RNG.random(80) < 0.2, 0.0, falling(80))

# name -> settings, bounds
CASES = {
    "empty": ({"horizon": 50}, []),
    "one": ({"horizon": 50}, [3.0]),
    "few": ({"horizon": 50}, RNG.exponential(size=6)),
    "ten": ({"horizon": 50}, RNG.exponential(size=10)),
    "stop": ({"horizon": 200}, falling(150)),
    "never": ({"horizon": 400}, RNG.exponential(size=120)),
    "some zeros": ({"horizon": 100}, SPARSE),
    "first zeros": ({"horizon": 100}, np.append(np.zeros(12), RNG.exponential(size=5))),
    "all zeros": ({"horizon": 100}, np.zeros(30)),
    "no longer moved": ({"horizon": 200}, np.append(RNG.exponential(size=20), np.zeros(25))),
    "horizon": ({"horizon": 40, "share": 0.001}, RNG.exponential(size=40)),
    "past the horizon": ({"horizon": 40, "share": 0.001}, RNG.exponential(size=60)),
    "short horizon": ({"horizon": 5}, [1.0, 2.0, 1.0, 2.0, 1.0]),
    "huge first": ({"horizon": 100}, np.append(1e18, RNG.exponential(size=40))),
    "extreme": ({"horizon": 100}, [1e308] * 12 + [5e-324] * 12),
    "tiny share": ({"share": 1e-9, "horizon": 1000}, 1.0 / np.arange(1, 200) ** 6),
    "large share": ({"share": 0.99, "horizon": 100}, RNG.exponential(size=30)),
    "short": ({"horizon": 50}, falling(30)),
}


@pytest.fixture(autouse=True)
def no_figure_is_left():
    before = pyplot.get_fignums()
    yield
    assert pyplot.get_fignums() == before


def made(settings, bounds):
    criterion = MovementBelow(**settings)
    criterion.extend(bounds)
    return criterion


def plotted(criterion):
    """Draw in a figure of its own and close it; return the two axes."""
    ax = criterion.plot()
    upper, lower = ax.figure.axes
    assert upper is ax
    pyplot.close(ax.figure)
    return upper, lower


def part(ax, gid):
    """Return the one line of a name, or None."""
    found = [line for line in ax.lines if line.get_gid() == gid]
    assert len(found) <= 1
    return found[0] if found else None


def said(ax):
    return " ".join(ax.get_title(loc="left").split())


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", CASES)
def test_every_case(name):
    criterion = made(*CASES[name])
    verdict, bounds, n = criterion.verdict, criterion.bounds, len(criterion)
    upper, lower = plotted(criterion)
    upper.figure.draw_without_rendering()  # warnings are errors

    assert said(upper).startswith(str(verdict))
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("bound", "still to come")
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "bounds")
    assert upper.get_xlim() == lower.get_xlim() == (0.5, max(n, 2) + 0.5)
    assert upper.get_yscale() == lower.get_yscale() == "log"

    # Every bound is drawn once: above 0 as a dot, 0 as a triangle on the lower edge.
    dots = [part(upper, gid) for gid in ("bound", "after the stop")]
    shown = [line.get_xdata() for line in dots if line is not None]
    zero = part(upper, "zero")
    assert sum(map(len, shown)) == (bounds > 0).sum()
    assert (0 if zero is None else len(zero.get_xdata())) == (bounds == 0).sum()
    if zero is not None:
        np.testing.assert_array_equal(zero.get_xdata(), np.flatnonzero(bounds == 0) + 1)
        assert zero.get_transform().transform((1, 0.0))[1] == pytest.approx(upper.bbox.y0)
        assert zero.get_marker() != "o"

    # The share asked for is in sight, and so is what is left.
    low, high = lower.get_ylim()
    assert 0 < low < criterion.share < 1 < high
    np.testing.assert_array_equal(part(lower, "share").get_ydata(), criterion.share)
    dot = part(lower, "left at the end")
    assert (dot is None) == (np.isnan(verdict.left))
    if dot is not None:
        assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (verdict.n, max(verdict.left, low))
        assert any(text.endswith("% left") for text in texts(lower))

    for ax in (upper, lower):
        line = part(ax, "stop")
        assert (line is None) == (not criterion.stopped)
        if line is not None:
            assert list(line.get_xdata()) == [criterion.stopped_at] * 2


def test_what_is_drawn():
    criterion = made(*CASES["stop"])
    at, bounds = criterion.stopped_at, criterion.bounds
    assert 20 < at < 100
    upper, lower = plotted(criterion)
    n = np.arange(1, 151)
    np.testing.assert_array_equal(part(upper, "line").get_xydata(), np.c_[n, bounds])
    np.testing.assert_array_equal(part(upper, "bound").get_ydata(), bounds[:at])
    np.testing.assert_array_equal(part(upper, "after the stop").get_ydata(), bounds[at:])
    means = [
        bounds[t - w : t].mean() if t >= (w := min(20, max(10, t // 5))) else np.nan for t in n
    ]
    np.testing.assert_allclose(part(upper, "mean").get_ydata(), means, rtol=1e-13)
    left = movement_left(bounds, 200)
    low = lower.get_ylim()[0]
    np.testing.assert_array_equal(part(lower, "all left").get_ydata(), np.maximum(left, low))
    np.testing.assert_array_equal(part(lower, "left").get_ydata(), left[:at])
    verdict = criterion.verdict
    np.testing.assert_array_equal(
        part(lower, "range").get_ydata(), np.maximum([verdict.low, verdict.high], low)
    )
    assert "5 % asked" in texts(lower)
    (legend,) = upper.figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["bound", "after the stop", "mean of the last bounds", "stop"]


def test_words_where_there_is_nothing_to_draw():
    upper, lower = plotted(made(*CASES["empty"]))
    assert (texts(upper), texts(lower)) == (["no bounds yet"], ["5 % asked"])
    assert upper.figure.legends == []
    _, lower = plotted(made(*CASES["few"]))
    assert "not known before 10 bounds" in texts(lower)
    upper, lower = plotted(made(*CASES["all zeros"]))
    assert "all bounds are 0" in texts(upper)
    assert "100 % left" in texts(lower)
    assert list(upper.get_yticks()) == []  # of a scale without a bound


def test_the_horizon_is_marked_when_it_is_reached():
    _, lower = plotted(made(*CASES["horizon"]))
    assert part(lower, "horizon").get_xdata()[0] == 40
    assert "0 % left" in texts(lower)
    _, lower = plotted(made(*CASES["never"]))
    assert part(lower, "horizon") is None  # it would stretch the axis


def test_many_bounds():
    n = 100_000
    criterion = made({"horizon": n}, falling(n, 1.2))
    upper, lower = plotted(criterion)
    upper.figure.draw_without_rendering()
    assert part(upper, "line") is None  # it would be a blot
    assert len(part(upper, "mean").get_xdata()) == len(part(lower, "all left").get_xdata()) == n
    assert part(upper, "mean").get_linewidth() < 1


def overlapping(figure):
    """Pairs of texts that cover each other, and texts beyond the edge of the figure."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = []
    insets = [inset for ax in figure.axes for inset in ax.child_axes]
    for ax in [*figure.axes, *insets]:
        found = [ax.xaxis.label, ax.yaxis.label, ax._left_title, *ax.texts]
        for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            i = 0 if axis is ax.xaxis else 1
            labels = axis.get_ticklabels()
            found += [label for label in labels if low <= label.get_position()[i] <= high]
        shown = [text for text in found if text.get_visible() and text.get_text()]
        boxes += [(text.get_text(), text.get_window_extent(renderer)) for text in shown]
    edge = figure.bbox.padded(1)
    outside = [text for text, box in boxes if not (edge.y0 <= box.y0 and box.y1 <= edge.y1)]
    pairs = [
        (one, other)
        for i, (one, a) in enumerate(boxes)
        for other, b in boxes[i + 1 :]
        if a.overlaps(b)
    ]
    return pairs + outside


@pytest.mark.parametrize("size", [(6, 4), (10, 6)])
@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("name", CASES)
def test_no_text_covers_another(name, layout, size):
    figure, ax = pyplot.subplots(figsize=size, layout=layout)
    made(*CASES[name]).plot(ax)
    found = overlapping(figure)
    pyplot.close(figure)
    assert found == []


def test_the_check_of_overlaps_finds_some():
    figure, ax = pyplot.subplots(figsize=(6, 4))
    ax.set_title("many\nlines\n" * 9, loc="left")
    ax.text(0.5, 0.5, "one")
    ax.text(0.5, 0.5, "two")
    assert len(overlapping(figure)) == 2
    pyplot.close(figure)


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_given_axes(layout):
    criterion = made(*CASES["stop"])
    figure = Figure(layout=layout, figsize=(9, 7))
    axes = figure.subplots(1, 2)
    for ax in axes:
        assert criterion.plot(ax) is ax
        ax.clear()
        assert plot_still(criterion, ax=ax) is ax
    figure.draw_without_rendering()
    assert figure.axes == list(axes)
    for ax in axes:
        (lower,) = ax.child_axes
        place, upper, below = (
            ax.get_position(original=True),
            ax.get_position(),
            lower.get_position(),
        )
        assert place.y0 == pytest.approx(below.y0)
        assert below.y1 < upper.y0
        assert upper.y1 == pytest.approx(place.y1)
        ax.set_xlim(10, 20)
        assert lower.get_xlim() == (10, 20)


def test_the_picture_leaves_the_criterion_alone():
    criterion = made(*CASES["some zeros"])
    before = criterion.to_dict()
    plotted(criterion)
    assert criterion.to_dict() == before


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "eps"])
@pytest.mark.parametrize("name", ["empty", "some zeros"])
def test_save(tmp_path, ending, name):
    path = tmp_path / f"still.{ending}"
    save_still(made(*CASES[name]), path)
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "eps": b"%!PS"}[ending]
    assert path.read_bytes().startswith(head)


def test_other_criteria():
    with pytest.raises(TypeError, match=r"`criterion` must be a MovementBelow, got .*Stopper"):
        plot_still(Stopper())
    with pytest.raises(TypeError, match=r"`criterion` must be a Stopper, got .*MovementBelow"):
        plot_stopper(MovementBelow(horizon=20))


def test_a_combination_draws_its_first_movement_left():
    budgets = MinLabels(3) & (FixedBudget(40) | Stopper() | MovementBelow(0.1))
    for bound in falling(40):
        budgets.push(bound)
    upper, lower = plotted(budgets)
    assert lower.get_ylabel() == "still to come"
    assert "10 % asked" in texts(lower)
    member = first_of(budgets, MovementBelow)
    assert said(upper).startswith(str(member.verdict))


def test_a_combination_draws_its_first_stopper_else():
    either = FixedBudget(40) | Stopper(0.01)
    _, lower = plotted(either)
    assert lower.get_ylabel() == "p-value"
    figure = Figure()
    ax = figure.subplots()
    assert either.plot(ax) is ax


def test_a_combination_of_budgets_has_no_picture():
    with pytest.raises(
        TypeError, match=r"no picture of \(FixedBudget.*needs a MovementBelow or a St"
    ):
        (FixedBudget(3) & MinLabels(2)).plot()


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "fastal\[plot\]"'):
        made(*CASES["stop"]).plot()


def test_window_means():
    bounds = RNG.exponential(size=237)
    bounds[0] = 1e18  # which must leave no trace in later means
    expected = [
        bounds[t - w : t].mean() if t >= (w := min(20, max(10, t // 5))) else np.nan
        for t in range(1, 238)
    ]
    np.testing.assert_allclose(window_means(bounds), expected, rtol=1e-14)
    assert window_means([]).tolist() == []


def test_window_means_of_huge_bounds():
    assert window_means([1e308] * 12)[9:].tolist() == [1e308] * 3


def test_trace_without_a_horizon_and_at_the_end():
    criterion = MovementBelow()
    criterion.set_horizon(50)
    criterion.set_horizon(0)  # nobody knows it
    assert np.isnan(criterion.trace()[1]).all()
    criterion.set_horizon(50)
    criterion.extend(falling(20))
    means, left = criterion.trace()
    assert np.isfinite(means[9:]).all()
    assert (left[9:] > 0).all()
    criterion.set_horizon(0)  # no label can follow these
    assert (criterion.trace()[1][9:] == 0).all()
    np.testing.assert_array_equal(criterion.trace()[0], means)
