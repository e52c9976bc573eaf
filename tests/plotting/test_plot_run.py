import numpy as np
import pytest

from fastal import FixedBudget, GaussianProcess, Stopper, learn
from fastal.datasets import artificial, artificial_mean
from fastal.plotting.demo import plot_demo, save_demo
from fastal.plotting.run import plot_run, save_run
from fastal.reference.models import dense_posterior

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


def finished(*, stopper=None, test=TEST, max_labels=None):
    gp = GaussianProcess(1.5, 0.0025)
    stopper = Stopper() if stopper is None else stopper
    return learn(*POOL, gp=gp, stopper=stopper, test=test, seed=1, max_labels=max_labels)


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
    warnings = "; ".join(run.verdict.warnings)
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
    run = finished(stopper=Stopper(1e-12))
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
    run = finished(stopper=FixedBudget(20))
    bounds, errors = plot_run(run)
    np.testing.assert_array_equal(bounds.lines[0].get_ydata(), run.bounds)
    assert drawn(bounds)["stop"][0, 0] == 20
    assert drawn(errors)["stop"][0, 0] == 21


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


@pytest.mark.parametrize("alpha", [1e-3, 1e-12])
def test_demo(alpha):
    run = finished(stopper=Stopper(alpha))
    used = run.n_labels
    if run.stopped:
        run = run.resume()
    model, _, errors = plot_demo(run, *POOL, GRID, artificial_mean(GRID))
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


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_dense_posterior_is_the_posterior(kernel):
    gp = GaussianProcess(1.3, 0.01, amplitude=2.0, mean=0.3, kernel=kernel)
    mean, var = dense_posterior(gp, *POOL, GRID[:, np.newaxis])
    gp.add_batch(*POOL)
    expected = gp.predict(GRID, return_var=True)
    np.testing.assert_allclose(mean, expected[0], atol=1e-10)
    np.testing.assert_allclose(var, expected[1], atol=1e-10)


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
