import numpy as np
import pytest

from fastal.datasets import artificial, artificial_mean


def test_artificial_is_the_papers_model():
    X, y = artificial(n=20_000, noise=0.05, seed=3)
    assert X.shape == (20_000, 1)
    assert y.shape == (20_000,)
    x = X[:, 0]
    assert x.min() >= -5
    assert x.max() <= 15
    # Uniform: mean 5, variance 400 / 12; six standard errors of the mean.
    assert abs(x.mean() - 5) < 6 * np.sqrt(400 / 12 / 20_000)
    curve = np.exp(-((x - 2) ** 2) / 2) + np.exp(-((x - 6) ** 2) / 10) + 1 / (x**2 + 1)
    noise = y - curve
    assert abs(noise.mean()) < 6 * 0.05 / np.sqrt(20_000)
    # A standard deviation, not a variance; its standard error is sd / sqrt(2 n).
    assert abs(noise.std() - 0.05) < 6 * 0.05 / np.sqrt(40_000)


def test_no_noise_is_the_curve():
    X, y = artificial(n=50, noise=0.0)
    np.testing.assert_array_equal(y, artificial_mean(X[:, 0]))


def test_seeds():
    first, again, other = artificial(seed=1), artificial(seed=1), artificial(seed=2)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


def test_mean_keeps_the_shape_and_survives_extremes():
    assert artificial_mean(2.0).shape == ()
    assert artificial_mean([[0.0, 1.0]]).shape == (1, 2)
    np.testing.assert_array_equal(artificial_mean([1e200, -1e308]), [0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"n": 0}, ValueError, "`n` must be at least 1, got 0"),
        ({"n": 2.0}, TypeError, "`n` must be an integer, got 2.0"),
        ({"noise": -0.1}, ValueError, "`noise`.*-0.1"),
        ({"noise": np.nan}, ValueError, "`noise`.*nan"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
    ],
)
def test_bad_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        artificial(**arguments)


def test_bad_inputs_of_the_mean():
    with pytest.raises(ValueError, match=r"`x`.*nan"):
        artificial_mean([0.0, np.nan])
