import numpy as np
import pytest

from fastal import GaussianProcess, forecast
from fastal.plotting.forecast import plot_forecast, save_forecast

pytest.importorskip("matplotlib")
import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def ahead():
    X = np.random.default_rng(0).normal(size=(40, 2))
    return forecast(X, GaussianProcess(1.0, 0.05), labelled=range(8))


def lines(ax):
    return {line.get_gid(): line.get_xydata() for line in ax.lines if line.get_gid()}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_curve_and_the_stops(ahead):
    ax = plot_forecast(ahead, eps=0.1, price=0.3)
    drawn = lines(ax)
    np.testing.assert_array_equal(drawn["forecast"][:, 0], np.arange(8, 41))
    shown = np.maximum(ahead.fraction, 1e-4)[7:]
    np.testing.assert_allclose(drawn["forecast"][:, 1], shown)
    np.testing.assert_allclose(drawn["now"], [[8, ahead.fraction[7]]])
    assert drawn["at most 10 % left"][0, 0] == ahead.labels_for(0.1)
    assert drawn["within the noise of the final error"][0, 0] == ahead.labels_as_paper()
    assert drawn["price 0.3"][0, 0] == ahead.labels_at_price(0.3)
    assert f"at most 10 % left: {ahead.labels_for(0.1)} labels" in legend(ax)
    assert ax.get_title(loc="left").endswith("of the pool would still buy: 8 of 40 labelled")


def test_the_fall_of_the_rmse(ahead):
    ax = plot_forecast(ahead, eps=0.1, rmse=True)
    drawn = lines(ax)
    shown = np.maximum(ahead.rmse_share, 1e-4)[7:]
    np.testing.assert_allclose(drawn["forecast"][:, 1], shown)
    assert drawn["at most 10 % left"][0, 0] == ahead.labels_for_rmse(0.1)
    assert set(drawn) == {"forecast", "now", "at most 10 % left"}
    assert ax.get_ylabel() == "left of the fall of the RMSE"
    with pytest.raises(TypeError, match="`rmse` must be True or False, got 1"):
        ahead.plot(rmse=1)


def test_without_labels_there_is_no_past():
    X = np.random.default_rng(0).normal(size=(30, 2))
    near = forecast(X, GaussianProcess(1.0, 0.05), horizon=3)
    ax = near.plot()
    assert set(lines(ax)) == {"forecast"}
    assert legend(ax) == ["within a factor of two", "forecast"]


def test_given_axes_are_used(ahead):
    _, ax = plt.subplots()
    assert ahead.plot(ax, eps=0.2) is ax
    assert ahead.labels_for(0.2) == lines(ax)["at most 20 % left"][0, 0]
    with pytest.raises(ValueError, match=r"`eps` must be in \(0, 1\), got 2"):
        ahead.plot(eps=2)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_files_are_written_without_pyplot(ahead, tmp_path, ending):
    path = tmp_path / f"forecast.{ending}"
    save_forecast(ahead, path)
    assert path.stat().st_size > 5000
    assert plt.get_fignums() == []
