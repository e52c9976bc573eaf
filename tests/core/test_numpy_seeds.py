"""Seeds and shuffles are NumPy's, to the last bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from fastal._core.numpy_seeds import Shuffler

SEEDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**64 + 5, 2**128 - 1, 3**120]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 100, 1025, 10_000, 10_001])
def test_permutation_is_that_of_default_rng(seed, n):
    rows = np.full(n, -1)
    Shuffler(seed).permutation(rows)
    assert rows.tolist() == np.random.default_rng(seed).permutation(n).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_later_shuffles_go_on_as_those_of_the_generator(seed):
    ours, theirs = Shuffler(seed), np.random.default_rng(seed)
    for n in (4, 7, 100, 1, 3, 50):  # after an odd number of draws half a word is left over
        rows = np.arange(n) * 10
        ours.shuffle(rows)
        assert rows.tolist() == theirs.permutation(np.arange(n) * 10).tolist()


def test_many_small_seeds():
    rows = np.empty(30, dtype=np.int64)
    for seed in range(2000):
        Shuffler(seed).permutation(rows)
        assert rows.tolist() == np.random.default_rng(seed).permutation(30).tolist()


def test_it_is_not_pickled():
    with pytest.raises(TypeError, match="keep the seed"):
        pickle.dumps(Shuffler(1))
