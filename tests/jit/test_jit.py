"""fastal.jit from compiled and interpreted code, and its cache; the C entry points from Cython."""

import json
import math
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import fastal
from fastal import jit, runs_test
from fastal._core import symbols

rng = np.random.default_rng(0)
SHIFTED = np.r_[rng.standard_normal(15) + 5, rng.standard_normal(25)]


def first_rejection(x, alpha):
    for n in range(2, len(x) + 1):
        if runs_test(x[:n], cutoff="median", alternative="less").pvalue <= alpha:
            return n
    return -1


def test_stopping_time_is_the_first_rejected_prefix():
    for alpha in (1e-5, 1e-3, 0.05):
        assert jit.stopping_time(SHIFTED, alpha) == first_rejection(SHIFTED, alpha)
    assert jit.stopping_time(SHIFTED, 1e-3) > 0
    assert jit.stopping_time(rng.standard_normal(30), 1e-9) == -1
    assert jit.stopping_time(np.empty(0), 1e-3) == -1


@njit
def campaign(bounds, alpha):
    handle = jit.stopper_new(alpha)
    stops = np.empty(len(bounds), dtype=np.bool_)
    p_values = np.empty(len(bounds))
    for i in range(len(bounds)):
        stops[i] = jit.stopper_push(handle, bounds[i])
        p_values[i] = jit.stopper_p_value(handle)
    runs = jit.stopper_n_runs(handle)
    jit.stopper_reset(handle)
    runs_after_reset = jit.stopper_n_runs(handle)
    jit.stopper_free(handle)
    return stops, p_values, runs, runs_after_reset


@njit
def compiled_gp_kl(mean, var, y, noise):
    return jit.gp_kl(mean, var, y, noise)


@njit
def push_to_both(r):
    stopper, still = jit.stopper_new(0.01), jit.still_new(0.1, 20)
    refused = 0
    try:
        jit.stopper_push(stopper, r)
    except Exception:  # Numba's form
        refused += 1
    try:
        jit.still_push(still, r)
    except Exception:
        refused += 1
    seen = jit.stopper_n_runs(stopper)
    jit.stopper_free(stopper)
    jit.still_free(still)
    return refused, seen


@pytest.mark.parametrize(
    "posterior",
    [(0.0, -1.0, 1.0, 0.01), (0.0, -1e-300, 1.0, 0.01), (0.0, -1.0, 1.0, -0.01), (0.0, 1.0, 1.0, 0.0),
     (0.0, 1.0, 1.0, -1.0), (0.0, math.nan, 1.0, 0.01), (0.0, 0.0, 1.0, 0.0), (math.nan, 1.0, 1.0, 1.0)],
)  # fmt: skip
def test_what_is_no_posterior_is_no_bound_in_compiled_code(posterior):
    assert math.isnan(compiled_gp_kl(*posterior))
    assert push_to_both(compiled_gp_kl(*posterior)) == (2, 0)
    assert push_to_both(compiled_gp_kl(0.0, 1.0, 1.0, 0.01)) == (0, 1)


SIGNATURE = "void (char *, int *, __pyx_t_5scipy_6linalg_11cython_blas_d *, double *)"


def test_integers_of_blas():
    symbols.check_integers(SIGNATURE)
    for wide in ("long", "int64_t", "blas_int", "__pyx_t_5scipy_6linalg_11cython_blas_blas_int"):
        with pytest.raises(ImportError, match="32-bit integers"):
            symbols.check_integers(SIGNATURE.replace("int *", f"{wide} *"))
    assert "int *" in symbols._signature("scipy.linalg.cython_blas", "dgemm")


def test_a_stopper_inside_compiled_code():
    stops, p_values, runs, runs_after_reset = campaign(SHIFTED, 1e-3)
    first = jit.stopping_time(SHIFTED, 1e-3)
    # a stop latches
    assert stops.tolist() == [n >= first for n in range(1, len(SHIFTED) + 1)]
    assert p_values[0] == 1
    for n in range(2, len(SHIFTED) + 1):
        assert p_values[n - 1] == runs_test(SHIFTED[:n], cutoff="median", alternative="less").pvalue
    assert (runs, runs_after_reset) == (runs_test(SHIFTED, cutoff="median").n_runs, 0)


def test_bad_input_in_compiled_code():
    for alpha in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"`alpha` must be in \(0, 1\)"):
            jit.stopper_new(alpha)
        with pytest.raises(ValueError, match=r"`alpha` must be in \(0, 1\)"):
            jit.stopping_time(SHIFTED, alpha)
    handle = jit.stopper_new(0.01)
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="`r` must be finite"):
            jit.stopper_push(handle, bad)
        with pytest.raises(ValueError, match="`bounds` must be finite"):
            jit.stopping_time(np.array([1.0, bad]), 0.01)
    assert jit.stopper_n_runs(handle) == 0
    jit.stopper_free(handle)


def test_entry_points_return_numbers():
    # with the JIT disabled, a bare ExternalFunction would return its own signature
    @njit
    def raw(bounds):
        tracker = symbols.tracker_new(0.01, 3)
        status = 0
        for b in bounds:
            status = symbols.tracker_push(tracker, b)
        answer = (
            status,
            symbols.tracker_n_runs(tracker),
            symbols.tracker_p_value(tracker),
            symbols.tracker_stopped_at(tracker),
            symbols.tracker_push(tracker, np.nan),
        )
        symbols.tracker_reset(tracker)
        symbols.tracker_free(tracker)
        return answer

    status, runs, p_value, stopped_at, refused = raw(np.array([4.0, 3.0, 2.0, 5.0, 1.0]))
    expected = runs_test([2.0, 5.0, 1.0], cutoff="median", alternative="less")  # a window of three
    assert (status, runs, p_value) == (0, expected.n_runs, expected.pvalue)
    assert (stopped_at, refused) == (0, -2)


def run(script: Path, **environment: str) -> dict:
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"} | environment
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_calling_function_caches(tmp_path):
    script = tmp_path / "caller.py"
    script.write_text(
        textwrap.dedent("""
        import json
        import numpy as np
        from numba import njit
        from fastal import jit

        @njit(nogil=True, cache=True)
        def caller(bounds):
            handle = jit.stopper_new(1e-3)
            stopped = False
            for b in bounds:
                stopped = jit.stopper_push(handle, b)
            jit.stopper_free(handle)
            return stopped

        answer = bool(caller(np.repeat([5.0, 1.0], 10)))
        stats = caller.stats
        print(json.dumps([answer, sum(stats.cache_hits.values()),
                          sum(stats.cache_misses.values())]))
        """)
    )
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(script, **cache) == [True, 0, 1]
    assert run(script, **cache) == [True, 1, 0]


def test_jit_disabled_gives_the_same(tmp_path):
    script = tmp_path / "interpreted.py"
    script.write_text(
        "import json, numpy as np\n"
        "from fastal import jit\n"
        f"x = np.array({SHIFTED.tolist()})\n"
        "print(json.dumps([jit.stopping_time(x, 1e-3), type(jit.stopping_time).__name__]))\n"
    )
    interpreted = run(script, NUMBA_DISABLE_JIT="1")
    assert interpreted == [jit.stopping_time(SHIFTED, 1e-3), "function"]


def test_an_outside_extension_can_cimport(tmp_path):
    if shutil.which(os.environ.get("CC", "cc").split()[0]) is None:
        pytest.skip("there is no C compiler called cc")
    source = Path(__file__).parents[2] / "examples" / "cython_caller"
    for name in ("caller.pyx", "setup.py"):
        shutil.copy(source / name, tmp_path)
    build = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**os.environ, "CFLAGS": "-O0"},  # in a tenth of the time
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    code = f"""
        import json, caller, numpy as np
        x = np.array({SHIFTED.tolist()})
        stops = np.empty(3, dtype=np.intp)
        caller.first_stops(np.stack([x, np.tile([5.0, 1.0], 20), x[::-1]]), 1e-3, stops)
        try:
            caller.follow(np.array([1.0, np.nan]), 1e-3)
        except ValueError as error:
            refused = str(error)
        cdf = caller.too_few(6, 10, 10)
        print(json.dumps([caller.follow(x, 1e-3), stops.tolist(), refused, cdf]))
    """
    (tmp_path / "use.py").write_text(textwrap.dedent(code))
    (stopped_at, runs, p_value), stops, refused, cdf = run(tmp_path / "use.py")
    expected = runs_test(SHIFTED, cutoff="median", alternative="less")
    assert stopped_at == first_rejection(SHIFTED, 1e-3)
    assert (runs, p_value) == (expected.n_runs, expected.pvalue)
    # one tracker for all streams, reset between them
    assert first_rejection(SHIFTED[::-1], 1e-3) > 0  # a rise is a rejection that does not count
    assert stops == [stopped_at, 0, 0]
    assert refused == "status -2 at bound 1: not finite, or no memory"
    assert cdf == fastal.RunsDistribution(10, 10).cdf(6)
