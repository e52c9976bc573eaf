"""fastal warm: compile everything into Numba's cache, for images and clusters."""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fastal.cli.errors import UserError
from fastal.cli.interrupted import kept_in_cache

if TYPE_CHECKING:
    from fastal.cli.arguments import Commands

# Points of a pool that is large enough for the lazy selection, and labels that end its eager stage
# and fill a panel; labels of small pools.
LARGE, MANY, LABELS = 2_100, 160, 20

Step = tuple[str, Callable[[], object]]


def add_warm(commands: Commands) -> None:
    """Add ``fastal warm`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "warm",
        help="compile all in advance, for container images and clusters",
        description="Compile what learn, simulate, the models and their fits need into "
        "Numba's cache, so that no later process waits for it. NUMBA_CACHE_DIR says where the "
        "cache is; what is in it serves the same type of CPU, and the same versions of fastal, "
        "Numba and Python.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=_warm, kept=kept_in_cache, broken_pipe_status=0)


def _warm(_: argparse.Namespace) -> int:
    from numba import config

    if config.DISABLE_JIT:
        print("the JIT is off (NUMBA_DISABLE_JIT): there is nothing to compile")
        return 0
    import llvmlite.binding

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            from fastal import jit
        except RuntimeWarning as warning:
            raise UserError(str(warning)) from None
    kernel: Any = jit.stopping_time
    place = kernel.stats.cache_path
    if place is None:
        raise UserError(
            "no folder for compiled code can be written: set the environment variable "
            "NUMBA_CACHE_DIR to a folder that can"
        )
    # Beside the modules, or a folder for each room: then above it.
    folder = Path(place).parent
    before, begin = _kept(folder), perf_counter()
    for name, step in _steps():
        start, known = perf_counter(), _kept(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of data that only serve to compile
            step()
        made = _kept(folder) - known
        print(f"{name}: {made} compiled in {perf_counter() - start:.1f} s", flush=True)
    made = _kept(folder) - before
    print(f"{made} compiled in {perf_counter() - begin:.1f} s, {before} were there already")
    print(f"cache: {folder}")
    print(f"for {llvmlite.binding.get_host_cpu_name()} ({platform.machine()})")
    return 0


def _kept(folder: Path) -> int:
    """Return how many compiled kernels a cache has."""
    return sum(1 for _ in folder.rglob("*.nbc"))


def _steps() -> Iterator[Step]:
    """Yield what there is to compile: a name, and calls that need it."""
    yield "bounds and models", _models
    yield "learn, small pools", _small_pools
    yield "learn, large pools", _large_pools
    yield "fits of hyper-parameters", _fits
    yield "classification", _classification
    yield "criteria", _criteria
    yield "simulate", _simulations
    yield "fastal.jit", _handles


def _data(n: int = 40) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


def _gp() -> Any:
    from fastal import GaussianProcess

    return GaussianProcess(1.0, 0.01)


def _models() -> None:
    import numpy as np

    from fastal import gaussian_kl, gp_bounds, gp_kl

    X, y = _data()
    gp_kl(np.zeros(3), np.ones(3), np.ones(3), 0.1)
    gp_kl(0.0, 1.0, 1.0, 0.1)
    gaussian_kl(np.zeros(2), np.eye(2), np.ones(2), np.eye(2))
    gp_bounds(np.eye(4), np.ones(4), 0.1)
    gp = _gp()
    gp.add(X[0], y[0])
    gp.add_batch(X[1:], y[1:])
    gp.predict(X)
    gp.predict(X, return_var=True)
    gp.predict(X, return_cov=True)
    gp.log_marginal_likelihood()
    gp.prior_kl()
    type(gp).from_dict(gp.copy().to_dict())
    gp.rewind(3)


def _learn(n: int, labels: int, **more: Any) -> Any:
    from fastal import Stopper, learn

    X, y = _data(n)
    given: dict[str, Any] = {"gp": _gp(), "stopper": Stopper(1e-9), "seed": 0} | more
    return learn(X, y, max_labels=labels, **given)


def _ask_and_tell(n: int, labels: int = LABELS, **more: Any) -> None:
    from fastal import ActiveLearner, Stopper

    X, y = _data(n)
    learner = ActiveLearner(X, gp=_gp(), stopper=Stopper(), seed=0, max_labels=labels, **more)
    for _ in range(labels - 15):
        learner.tell(y[learner.ask()])
    if not more:
        learner.tell(y[learner.ask(3)])
    learner.run(test=_data(30))


def _small_pools() -> None:
    run = _learn(40, LABELS, test=_data(30))
    run.gp.predict(_data(3)[0])
    _ask_and_tell(40)
    _ask_and_tell(40, acquisition=lambda mean, var: var)


def _large_pools() -> None:
    for threads in (1, 2):
        _learn(LARGE, MANY, threads=threads, test=_data(LARGE))
    _ask_and_tell(LARGE, MANY)


def _fits() -> None:
    X, y = _data()
    kinds: tuple[dict[str, Any], ...] = ({}, {"ard": True, "amplitude": True}, {"prior": "weak"})
    for settings in kinds:
        _gp().fit_hyperparameters(X, y, restarts=1, **settings)
    _learn(40, LABELS, gp=None, test=_data(30))
    _learn(40, LABELS, refit=1.5)


def _classification() -> None:
    import numpy as np

    from fastal import LaplaceClassifier, Stopper, learn

    X, y = _data()
    labels = np.where(y > 0, 1.0, -1.0)
    learn(
        X, labels, gp=LaplaceClassifier(1.0), stopper=Stopper(), seed=0, max_labels=12,
        test=(X, labels),
    )  # fmt: skip


def _criteria() -> None:
    from fastal.criteria.experiments import CrossValidation, GroundTruth, PACBayes

    X, y = _data()
    for criterion in (CrossValidation(-9.0), PACBayes(-9.0, 1.0), GroundTruth(X, y, 1e9)):
        _learn(40, 10, stopper=criterion)


def _simulations() -> None:
    from fastal import Stopper, simulate
    from fastal.criteria.experiments import CrossValidation, MaxVariance, PACBayes

    X, y = _data(80)
    gp = _gp()
    judges = (MaxVariance(1e-3), CrossValidation(-9.0), PACBayes(-9.0, 1.0))
    simulate(X, y, gp=gp, n_runs=2, pool_size=30, max_labels=12, criteria=judges, n_jobs=1)
    simulate(X, y, gp=gp, n_runs=2, pool_size=30, max_labels=12, test=None, n_jobs=1)
    simulate(X, y, n_runs=1, pool_size=30, max_labels=12, stopper=Stopper(), n_jobs=1)
    X, y = _data(2 * LARGE)
    simulate(X, y, gp=gp, n_runs=1, pool_size=LARGE, max_labels=8, n_jobs=1)


def _handles() -> None:
    import numpy as np

    from fastal import jit

    jit.gp_kl(0.0, 1.0, 1.0, 0.1)
    jit.stopping_time(np.ones(20), 1e-3)
    stopper = jit.stopper_new(1e-3)
    jit.stopper_push(stopper, 1.0)
    jit.stopper_p_value(stopper)
    jit.stopper_free(stopper)
    still = jit.still_new(0.05, 30)
    jit.still_push(still, 1.0)
    jit.still_left(still)
    jit.still_free(still)
