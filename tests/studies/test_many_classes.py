import numpy as np
import pytest

from fastal import BayesianLogistic, StillToCome
from fastal.studies import class_data, class_study
from fastal.studies.names import CLASS_SETS

pytest.importorskip("sklearn", reason="the data ship with scikit-learn")


@pytest.mark.parametrize("name", CLASS_SETS)
def test_data(name):
    X, y = class_data(name)
    assert len(X) == len(y)
    assert (X[:, -1] == 1.0).all()
    assert sorted(set(y.tolist())) == list(range(y.max() + 1))
    if name != "digits":
        np.testing.assert_allclose(X[:, :-1].std(axis=0), 1.0)


def test_one_run_by_hand():
    study = class_study(["iris"], acquisitions=["random"], runs=1, pool=30, seed=3, jobs=1)
    assert [row.share for row in study.rows] == [0.05, 0.1, 0.2]
    X, y = class_data("iris")
    order = np.random.default_rng((3, 0)).permutation(len(X))
    mine, rest = order[:30], order[30:]
    rng = np.random.default_rng(0)
    first = rng.permutation(30)[:10]
    rows = np.r_[first, rng.permutation(np.setdiff1d(np.arange(30), first))]
    model = BayesianLogistic(5, 3)
    bounds = model.add_batch(X[mine][rows], y[mine][rows])[10:]
    losses, rmse = model.replay_errors(X[rest], y[rest])
    for row in study.rows:
        at = 10 + (StillToCome(row.share, horizon=20).extend(bounds) or 20)
        assert row.asked == at / 30
        expected = (rmse[at - 1] - rmse[-1]) / (rmse[9] - rmse[-1])
        assert row.unused == pytest.approx(expected, abs=1e-9)
        assert row.final == (model.predict(X[rest]) == y[rest]).mean()
    assert losses.shape == rmse.shape
    text, table = str(study), study.to_markdown()
    assert text.splitlines()[0].startswith("data set")
    assert len(table.splitlines()) == 5


def test_refuses():
    with pytest.raises(ValueError, match="`name` must be one of"):
        class_data("mnist")
    with pytest.raises(ValueError, match="`pool` must be at least 12, got 3"):
        class_study(["iris"], pool=3)
