import numpy as np
import pytest

from fastal import FixedBudget, GaussianProcess, MovementBelow, Stopper, learn
from fastal.datasets import artificial, artificial_mean
from fastal.plotting.demo import plot_demo, save_demo
from fastal.plotting.run import plot_run, save_run
from fastal.runs import movement_left

pytest.importorskip("matplotlib")
import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

GRID = np.linspace(-5, 15, 200)
X, Y = artificial(n=300)
POOL = X[:50], Y[:50]
TEST = X[50:], Y[50:]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def finished(*, criterion=None, test=TEST, max_labels=None):
    gp = GaussianProcess(1.5, 0.0025)
    criterion = Stopper() if criterion is None else criterion
    return learn(*POOL, gp=gp, criterion=criterion, test=test, seed=1, max_labels=max_labels)


def drawn(ax):
    """The lines that have a name, as (x, y)."""
    return {line.get_gid(): line.get_xydata() for line in ax.lines if line.get_gid()}


def title(ax):
    return ax.get_title(loc="left")


def overlapping(figure):
    """Pairs of texts of a figure that cover each other."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    axes = [*figure.axes, *(inset for ax in figure.axes for inset in ax.child_axes)]
    boxes = []
    for ax in axes:
        texts = [ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
        low, high = ax.get_xlim()
        texts += [label for label in ax.get_xticklabels() if low <= label.get_position()[0] <= high]
        shown = [text for text in texts if text.get_visible() and text.get_text()]
        boxes += [(text.get_text(), text.get_window_extent(renderer)) for text in shown]
    return [
        (one, other)
        for i, (one, a) in enumerate(boxes)
        for other, b in boxes[i + 1 :]
        if a.overlaps(b)
    ]


def test_the_check_of_overlaps_finds_one():
    figure, (left, right) = plt.subplots(1, 2)
    left.set_xlabel("bounds " * 20)
    right.set_xlabel("labels")
    assert overlapping(figure) != []


def test_a_run_with_a_stop():
    first = finished()
    at, loss = first.n_labels, first.errors[-1]
    run = first.resume()
    bounds, errors = plot_run(run)
    warnings = "; ".join(w for w in run.verdict.warnings if w not in str(run.verdict))
    assert " ".join(title(bounds).split()) == f"{run.verdict} warning: {warnings}"
    assert "the first comes with label 2" in bounds.child_axes[0].get_xlabel()
    lines = drawn(errors)
    np.testing.assert_array_equal(lines["errors"], np.c_[1 : at + 1, run.errors[:at]])
    np.testing.assert_array_equal(lines["errors after the stop"], np.c_[1:51, run.errors])
    np.testing.assert_array_equal(lines["stop"][:, 0], [at, at])
    np.testing.assert_allclose(lines["error at the stop"], [[at, loss]], rtol=1e-9)
    expected = f"expected loss {loss:.3g} at the stop ({at} labels), {run.errors[-1]:.3g} after 50"
    assert title(errors) == expected
    assert overlapping(errors.figure) == []


def test_a_run_without_a_stop():
    run = finished(criterion=Stopper(1e-12))
    _, errors = plot_run(run)
    assert "stop" not in drawn(errors)
    assert title(errors) == f"no stop: expected loss {run.errors[-1]:.3g} after 50"


def test_a_run_without_a_test_set():
    axes = plot_run(finished(test=None))
    assert len(axes) == 1
    assert axes[0].get_ylabel() == "bound"


def test_a_run_of_one_label():
    run = finished(max_labels=1)
    bounds, errors = plot_run(run)
    assert drawn(errors)["errors"].tolist() == [[1.0, run.errors[0]]]
    assert bounds.texts[0].get_text() == "no bounds yet"


def test_a_run_with_another_criterion():
    run = finished(criterion=FixedBudget(20))
    bounds, errors = plot_run(run)
    np.testing.assert_array_equal(bounds.lines[0].get_ydata(), run.bounds)
    assert drawn(bounds)["stop"][0, 0] == 20
    assert drawn(errors)["stop"][0, 0] == 21


def inset(ax, label):
    """Return the panel below the bounds that has this name."""
    (found,) = [inset for inset in ax.child_axes if inset.get_ylabel() == label]
    return found


def test_what_is_movement_left():
    run = finished(criterion=MovementBelow()).resume()
    at = run.stopped_at - 1
    bounds, errors = plot_run(run)
    assert " ".join(title(bounds).split()) == str(run.verdict)
    assert [ax.get_ylabel() for ax in bounds.child_axes] == ["still to come"]
    lower = inset(bounds, "still to come")
    assert "the first comes with label 2" in lower.get_xlabel()
    lines = drawn(lower)
    np.testing.assert_array_equal(lines["left"], np.c_[1 : at + 1, run.left[:at]])
    np.testing.assert_array_equal(lines["left at the end"], [[at, run.verdict.left]])
    np.testing.assert_array_equal(lines["share"][:, 1], 0.05)
    np.testing.assert_array_equal(drawn(bounds)["mean"][:, 1], run.trace().means)
    for ax, stop in ((bounds, at), (lower, at), (errors, at + 1)):
        np.testing.assert_array_equal(drawn(ax)["stop"][:, 0], stop)
    assert overlapping(errors.figure) == []


@pytest.mark.parametrize("stopper", [Stopper(), FixedBudget(20), Stopper() & FixedBudget(20)])
def test_what_is_movement_left_whatever_the_criterion(stopper):
    run = finished(criterion=stopper)
    bounds, errors = plot_run(run)
    lower = inset(bounds, "still to come")
    np.testing.assert_array_equal(drawn(lower)["left"], np.c_[1 : len(run.bounds) + 1, run.left])
    assert drawn(lower)["left at the end"][0].tolist() == [len(run.bounds), run.left[-1]]
    assert "share" not in drawn(lower)  # nobody asked
    assert "mean" in drawn(bounds)
    assert overlapping(errors.figure) == []


def test_a_stopper_keeps_its_runs_and_p_value():
    run = finished()
    bounds, _ = plot_run(run)
    assert [ax.get_ylabel() for ax in bounds.child_axes] == ["p-value", "still to come"]
    assert bounds.child_axes[1].get_xlabel() == ""
    np.testing.assert_array_equal(drawn(inset(bounds, "p-value"))["p-values"][:, 1], run.p_values)
    assert {"below the median", "at or above the median"} <= set(drawn(bounds))
    assert len([c for c in bounds.collections if c.get_gid() == "runs"]) == 1


def test_a_budget_beside_what_is_movement_left():
    run = finished(criterion=MovementBelow(0.001) | FixedBudget(15)).resume()
    bounds, _ = plot_run(run)
    lower = inset(bounds, "still to come")
    left = movement_left(run.bounds, 15)  # the horizon of the budget
    np.testing.assert_array_equal(run.trace().left, left)
    low = lower.get_ylim()[0]
    np.testing.assert_array_equal(drawn(lower)["left"][:, 1], np.maximum(left[:15], low))
    assert drawn(lower)["share"][0, 1] == 0.001
    assert drawn(bounds)["stop"][0, 0] == 15
    assert " ".join(title(bounds).split()).startswith(str(run.verdict))


def test_a_horizon_of_its_own():
    run = finished(criterion=MovementBelow(0.02, horizon=30)).resume()
    left = movement_left(run.bounds, 30)
    np.testing.assert_array_equal(run.trace().left, left)
    at = run.stopped_at - 1
    bounds, _ = plot_run(run)
    assert drawn(inset(bounds, "still to come"))["left at the end"].tolist() == [[at, left[at - 1]]]


def test_the_dot_is_what_decided_also_when_the_run_goes_on():
    first = finished(criterion=MovementBelow(), max_labels=25)
    at, left = len(first.bounds), first.verdict.left
    longer = first.resume(max_labels=50)
    bounds, _ = plot_run(longer)
    dot = drawn(inset(bounds, "still to come"))["left at the end"]
    assert dot[0].tolist() == [at, max(left, inset(bounds, "still to come").get_ylim()[0])]


def test_a_run_that_never_stops_and_one_of_few_labels():
    run = finished(criterion=MovementBelow(1e-9), max_labels=49)
    bounds, errors = plot_run(finished(criterion=MovementBelow(0.01, horizon=500)))
    assert "stop" not in drawn(bounds)
    assert overlapping(errors.figure) == []
    assert run.verdict.left == 0  # the horizon is reached
    plot_run(run)
    bounds, _ = plot_run(finished(criterion=MovementBelow(), max_labels=1))
    assert bounds.texts[0].get_text() == "no bounds yet"
    bounds, _ = plot_run(finished(criterion=MovementBelow(horizon=50), max_labels=4))
    assert inset(bounds, "still to come").texts[-1].get_text() == "not known before 10 bounds"


@pytest.mark.parametrize("size", [(6, 4), (10, 6)])
@pytest.mark.parametrize("stopper", [MovementBelow(), Stopper()])
def test_no_text_covers_another(stopper, size):
    figure, axes = plt.subplots(1, 2, figsize=size, layout="constrained")
    plot_run(finished(criterion=stopper), axes)
    assert overlapping(figure) == []
    legend = axes[0].get_legend()
    if legend is not None:  # which stays below the title
        assert legend.get_window_extent().y1 <= axes[0].get_window_extent().y1


def test_given_axes_are_used():
    _, places = plt.subplots(1, 2)
    axes = plot_run(finished(), places)
    assert axes == tuple(places)
    assert len(places[1].lines) > 0
    with pytest.raises(ValueError, match="`axes` must be 2 axes for this run, got 1"):
        plot_run(finished(), places[:1])
    with pytest.raises(ValueError, match="`axes` must be 1 axes for this run, got 2"):
        plot_run(finished(test=None), places)


def test_the_plot_leaves_the_run_alone():
    run = finished()
    before = run.to_dict()
    plot_run(run)
    plot_demo(run, *POOL, GRID, artificial_mean(GRID))
    assert run.to_dict() == before


@pytest.mark.parametrize("stopper", [Stopper(1e-3), Stopper(1e-12), MovementBelow()])
def test_demo(stopper):
    run = finished(criterion=stopper)
    used = run.n_labels
    if run.stopped:
        run = run.resume()
    model, bounds, errors = plot_demo(run, *POOL, GRID, artificial_mean(GRID))
    assert "left" in drawn(inset(bounds, "still to come"))
    lines = drawn(model)
    chosen = run.indices[:used]
    np.testing.assert_array_equal(lines["labelled"], np.c_[POOL[0][chosen], POOL[1][chosen]])
    assert len(lines.get("not labelled", ())) == 50 - used
    # The model at the stop, not the one with all labels.
    gp = run.gp.copy()
    gp.rewind(used)
    curves = {line.get_label(): line.get_ydata() for line in model.lines}
    np.testing.assert_allclose(curves["model (posterior mean)"], gp.predict(GRID), atol=1e-9)
    np.testing.assert_array_equal(curves["truth"], artificial_mean(GRID))
    when = "at the stop" if run.stopped else "at the end, without a stop"
    assert title(model) == f"the model {when}: {used} of 50 labels"
    assert "expected loss" in title(errors)
    assert overlapping(model.figure) == []


def test_demo_refuses_what_does_not_fit():
    run, truth = finished(), artificial_mean(GRID)
    with pytest.raises(ValueError, match=r"`run` must have a test set, got run.errors = None"):
        plot_demo(finished(test=None), *POOL, GRID, truth)
    with pytest.raises(ValueError, match="`X` must be the pool of 50 points, got 49"):
        plot_demo(run, POOL[0][1:], POOL[1][1:], GRID, truth)
    with pytest.raises(ValueError, match="`truth`"):
        plot_demo(run, *POOL, GRID, truth[1:])


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_files_are_written_without_pyplot(tmp_path, ending):
    run = finished()
    paths = tmp_path / f"run.{ending}", tmp_path / f"demo.{ending}"
    save_run(run, paths[0])
    save_demo(run, *POOL, GRID, artificial_mean(GRID), paths[1])
    assert [path.stat().st_size > 5000 for path in paths] == [True, True]
    assert plt.get_fignums() == []


def test_run_has_it_as_a_method():
    assert len(finished().plot()) == 2
