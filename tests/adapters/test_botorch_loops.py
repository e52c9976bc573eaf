"""Tasks, Ax and BoFire: loops around models of BoTorch."""

import warnings

import numpy as np
import pytest

from fastal import Stopper, gp_kl
from fastal.adapters import bounds_of
from fastal.adapters.dispatch import ask_trained
from fastal.adapters.trained import Asked

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("botorch", reason="BoTorch is not installed")
    from botorch.models import ModelListGP, SingleTaskGP

pytestmark = pytest.mark.filterwarnings("ignore")  # of these libraries; ours are looked for by name


def tensor(values):
    return torch.as_tensor(values, dtype=torch.double)


# Tasks and several outputs


def test_one_output_at_a_time(loop):
    X, y, _ = loop
    models = [SingleTaskGP(tensor(X[:20]), tensor(v[:20, None])) for v in (y, y**2)]
    both = ModelListGP(*models)
    with pytest.raises(TypeError, match=r"one output is wanted: give `model.models\[0\]`"):
        bounds_of(both)
    for one in both.models:
        assert len(bounds_of(one)) == 20


def test_models_that_are_not_exact(loop):
    from botorch.models import SingleTaskVariationalGP

    X, y, _ = loop
    sparse = SingleTaskVariationalGP(tensor(X), tensor(y[:, None]))
    kind = type("FullyBayesianSingleTaskGP", (SingleTaskGP,), {})  # as BoTorch names them
    bayesian = kind(tensor(X), tensor(y[:, None]))
    with pytest.raises(TypeError, match="an exact Gaussian process with Gaussian noise, got a"):
        bounds_of(sparse)
    with pytest.raises(TypeError, match=r"is not an exact Gaussian process .* is a mixture"):
        bounds_of(bayesian)


def bound_of_the_last(mean, var, y, noise):
    """Return the bound of a label from what a library says of its input *after* it.

    1 / v0 = 1 / v - 1 / noise,  m0 / v0 = m / v - y / noise: the label is taken out again.
    """
    before = var * noise / (noise - var)
    return gp_kl(before * (mean / var - y / noise), before, y, noise)


# Ax


def client(trials=8):
    pytest.importorskip("ax", reason="Ax is not installed")
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    found = Client(random_seed=0)
    parameters = [
        RangeParameterConfig(name=name, parameter_type="float", bounds=(-2.0, 2.0)) for name in "xz"
    ]
    found.configure_experiment(parameters=parameters)
    found.configure_optimization(objective="-loss")
    for _ in range(trials):
        for index, point in found.get_next_trials(max_trials=1).items():
            loss = np.sin(3 * point["x"]) + point["z"] ** 2
            found.complete_trial(trial_index=index, raw_data={"loss": float(loss)})
    return found


def test_ax():
    early = client(2)
    with pytest.raises(ValueError, match=r"`model` \(Ax\) has no model yet: the initial trials"):
        bounds_of(early)
    found = client(8)
    with pytest.raises(
        ValueError, match=r"`model` \(Ax\) has 8 labels, and its model has seen 7 of them: ask"
    ):
        bounds_of(found)
    found.get_next_trials(max_trials=1)
    got = bounds_of(found)
    within = found._generation_strategy.adapter.generator.surrogate.model
    np.testing.assert_array_equal(got, bounds_of(within))
    assert len(got) == 8
    with pytest.raises(ValueError, match="`X` and `y` cannot be compared"):
        bounds_of(found, y=np.zeros(8))


def test_ax_against_its_own_predictions():
    found = client(8)
    found.get_next_trials(max_trials=1)
    done = [trial for trial in found._experiment.trials.values() if trial.status.is_completed]
    points = [trial.arm.parameters for trial in done]
    y = np.array([np.sin(3 * point["x"]) + point["z"] ** 2 for point in points])
    own = [answer["loss"] for answer in found.predict(points)]
    mean, sem = np.array(own).T  # of f, in the units of the labels
    # The model has other units: Ax standardises labels. What the adapter takes from it is what Ax
    # predicts with if mean, deviation and labels have one scale in common.
    known, _ = ask_trained(found, Asked())
    gain = np.linalg.solve(known.cov + np.diag(known.noise), known.cov).T
    scale, shift = np.polyfit(known.y, y, 1)
    np.testing.assert_allclose(scale * known.y + shift, y, rtol=1e-10, atol=1e-10)
    inside = known.mean + gain @ (known.y - known.mean)
    np.testing.assert_allclose(mean, scale * inside + shift, rtol=1e-8, atol=1e-8)
    variances = np.diag(known.cov - gain @ known.cov)
    np.testing.assert_allclose(sem, scale * np.sqrt(variances), rtol=1e-8)
    expected = bound_of_the_last(mean[-1], sem[-1] ** 2, y[-1], scale**2 * known.noise[-1])
    np.testing.assert_allclose(bounds_of(found)[-1], expected, rtol=1e-8)


# BoFire


def bofire(n=15, outputs=1):
    pytest.importorskip("bofire", reason="BoFire is not installed")
    import bofire.strategies.api as strategies
    import pandas as pd
    from bofire.data_models.domain.api import Domain, Inputs, Outputs
    from bofire.data_models.features.api import ContinuousInput, ContinuousOutput
    from bofire.data_models.objectives.api import MinimizeObjective
    from bofire.data_models.strategies.api import MoboStrategy, SoboStrategy

    inputs = Inputs(features=[ContinuousInput(key=k, bounds=(-2, 2)) for k in ("x", "z")])
    names = ["y", "w"][:outputs]
    objectives = [ContinuousOutput(key=k, objective=MinimizeObjective(w=1.0)) for k in names]
    kind = SoboStrategy if outputs == 1 else MoboStrategy
    strategy = strategies.map(
        kind(domain=Domain(inputs=inputs, outputs=Outputs(features=objectives)))
    )
    X = np.random.default_rng(0).uniform(-2, 2, (n, 2))
    table = pd.DataFrame(X, columns=["x", "z"])
    for name in names:
        table[name] = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + (name == "w") * X[:, 0]
        table[f"valid_{name}"] = 1
    return strategy, table


def test_bofire():
    strategy, table = bofire()
    with pytest.raises(ValueError, match=r"`model` \(BoFire\) has no model yet: it is fitted by"):
        bounds_of(strategy)
    table.loc[3, "valid_y"] = 0  # left out
    strategy.tell(table)
    surrogate = strategy.surrogates.surrogates[0]
    got = bounds_of(strategy)
    assert len(got) == 14
    np.testing.assert_array_equal(got, bounds_of(surrogate.model))
    np.testing.assert_array_equal(got, bounds_of(surrogate))
    strategy.tell(table, retrain=False)
    with pytest.raises(ValueError, match="has 28 labels, and its model has seen 14 of them"):
        bounds_of(strategy)
    stopper = Stopper()
    stopper.after_fit(surrogate, initial=4)
    assert len(stopper) == 10


def test_bofire_against_its_own_predictions():
    strategy, table = bofire()
    strategy.tell(table)
    surrogate = strategy.surrogates.surrogates[0]
    deviation = float(surrogate.model.outcome_transform.stdvs)
    noise = float(surrogate.model.likelihood.noise.detach()) * deviation**2

    def own(rows):
        said = surrogate.predict(rows)  # its deviation has the noise of a new label in it
        return said["y_pred"].to_numpy(), said["y_sd"].to_numpy() ** 2 - noise

    mean, var = own(table[["x", "z"]].iloc[[-1]])
    expected = bound_of_the_last(mean[0], var[0], table["y"].iloc[-1], noise)
    np.testing.assert_allclose(bounds_of(strategy)[-1], expected, rtol=1e-8)


def test_bofire_with_two_outputs():
    strategy, table = bofire(outputs=2)
    strategy.tell(table)
    with pytest.raises(
        ValueError, match=r"one output is wanted, give `strategy.surrogates.surrogates\[0\]`"
    ):
        bounds_of(strategy)
    assert len(bounds_of(strategy.surrogates.surrogates[1])) == 15
