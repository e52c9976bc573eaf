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
from numba import njit, prange

import fastal
from fastal import jit, runs_test
from fastal._core import symbols
from fastal._core.rule import Rule, Streams

rng = np.random.default_rng(0)
SHIFTED = np.r_[rng.standard_normal(15) + 5, rng.standard_normal(25)]


def first_rejection(x, alpha):
    for n in range(2, len(x) + 1):
        if runs_test(x[:n], cutoff="median", alternative="less").pvalue <= alpha:
            return n
    return -1


RULE = ("runs", 1e-3, 0, False, True, 0)
MOVEMENT = ("still", 0.1, 20)


@njit
def campaign(handle, i, bounds):
    stops = np.empty(len(bounds), dtype=np.bool_)
    for j in range(len(bounds)):
        stops[j] = jit.push(handle, i, bounds[j])
    before = jit.stopped_at(handle, i)
    jit.reset(handle, i)
    return stops, before, jit.stopped_at(handle, i)


@njit
def compiled_gp_kl(mean, var, y, noise):
    return jit.gp_kl(mean, var, y, noise)


@njit
def refused(handle, n, r):
    count = 0
    for i in range(n):
        try:
            jit.push(handle, i, r)
        except Exception:  # Numba's form
            count += 1
    return count


@pytest.mark.parametrize(
    "posterior",
    [(0.0, -1.0, 1.0, 0.01), (0.0, -1e-300, 1.0, 0.01), (0.0, -1.0, 1.0, -0.01), (0.0, 1.0, 1.0, 0.0),
     (0.0, 1.0, 1.0, -1.0), (0.0, math.nan, 1.0, 0.01), (0.0, 0.0, 1.0, 0.0), (math.nan, 1.0, 1.0, 1.0)],
)  # fmt: skip
def test_what_is_no_posterior_is_no_bound_in_compiled_code(posterior):
    assert math.isnan(compiled_gp_kl(*posterior))
    for spec in (RULE, MOVEMENT):
        streams = Streams(Rule(spec), 2)
        handle = streams.lend()
        assert refused(handle, 2, compiled_gp_kl(*posterior)) == 2
        assert refused(handle, 2, compiled_gp_kl(0.0, 1.0, 1.0, 0.01)) == 0
        streams.take_back()
        assert [streams.n_bounds(i) for i in range(2)] == [1, 1]


SIGNATURE = "void (char *, int *, __pyx_t_5scipy_6linalg_11cython_blas_d *, double *)"


def test_integers_of_blas():
    symbols.check_integers(SIGNATURE)
    for wide in ("long", "int64_t", "blas_int", "__pyx_t_5scipy_6linalg_11cython_blas_blas_int"):
        with pytest.raises(ImportError, match="32-bit integers"):
            symbols.check_integers(SIGNATURE.replace("int *", f"{wide} *"))
    assert "int *" in symbols._signature("scipy.linalg.cython_blas", "dgemm")


@pytest.mark.parametrize(
    "spec", [RULE, MOVEMENT, ("any", RULE, ("count", 12)), ("all", RULE, RULE)]
)
def test_streams_inside_compiled_code(spec):
    streams = Streams(Rule(spec), 2)
    handle = streams.lend()
    for x in (SHIFTED - SHIFTED.min(), SHIFTED[::-1] - SHIFTED.min()):
        rule = Rule(spec)
        stops, at, after = campaign(handle, 1, x)
        assert stops.tolist() == [rule.push(r) for r in x.tolist()]  # a stop stays
        assert (at, after, jit.stopped_at(handle, 0)) == (rule.stopped_at or -1, -1, -1)
    for r in x[:15].tolist():
        jit.push(handle, 0, r)
    short = Rule(spec)
    short.extend(x[:15])
    np.testing.assert_array_equal(jit.left(handle, 0), short.left)


@njit(parallel=True, nogil=True)
def in_parallel(handle, rows, out):
    for i in prange(len(rows)):
        for r in rows[i]:
            if jit.push(handle, i, r):
                break
        out[i] = jit.stopped_at(handle, i)


def test_streams_in_prange():
    rows = np.random.default_rng(1).random((200, 80)) + 2 * (np.arange(80) < 20)
    streams, out = Streams(Rule(RULE), len(rows)), np.empty(len(rows), dtype=np.int64)
    in_parallel(streams.lend(), rows, out)
    assert out.tolist() == [first_rejection(row, 1e-3) for row in rows]
    assert (out > 0).all()


def test_bad_input_in_compiled_code():
    streams, waits = Streams(Rule(MOVEMENT), 2), Streams(Rule(("still", 0.1, 0)), 1)
    handle = streams.lend()
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="`r` must be finite"):
            jit.push(handle, 0, bad)
    with pytest.raises(ValueError, match="`r` must not be negative"):
        jit.push(handle, 0, -1.0)
    with pytest.raises(ValueError, match="`horizon` must be given"):
        jit.push(waits.lend(), 0, 1.0)
    for thing, i in ((0, 0), (handle, -1), (handle, 2), (handle, 2**62)):
        for call in (lambda *s: jit.push(*s, 1.0), jit.stopped_at, jit.left, jit.reset):
            with pytest.raises(ValueError, match="there is no such stream"):
                call(thing, i)
    streams.take_back()
    assert [streams.n_bounds(i) for i in range(2)] == [0, 0]


def test_entry_points_return_numbers():
    # with the JIT disabled, a bare ExternalFunction would return its own signature
    @njit
    def raw(bounds):
        streams = symbols.streams_new_runs(1e-3, 1, 0, 1)
        status = 0
        for b in bounds:
            status = symbols.streams_push(streams, 0, b)
        answer = (
            status,
            symbols.streams_stopped_at(streams, 0),
            symbols.streams_push(streams, 0, np.nan),
            symbols.streams_reset(streams, 0),
            symbols.streams_stopped_at(streams, 0),
            symbols.streams_left(streams, 0),
        )
        symbols.streams_free(streams)
        return answer

    *numbers, left = raw(SHIFTED)
    assert numbers == [1, first_rejection(SHIFTED, 1e-3), -2, 0, 0]
    assert math.isnan(left)


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
        from numba import njit, prange
        from fastal import jit
        from fastal._core.rule import Rule, Streams

        @njit(nogil=True, cache=True)
        def caller(handle, bounds):
            stopped = False
            for b in bounds:
                stopped = jit.push(handle, 0, b)
            return stopped

        streams = Streams(Rule(("runs", 1e-3, 0, False, True, 0)), 1)
        answer = bool(caller(streams.lend(), np.repeat([5.0, 1.0], 10)))
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
        "import json\n"
        "from fastal import Stopper, Streams, jit\n"
        "streams = Streams(Stopper(), 1)\n"
        f"for r in {SHIFTED.tolist()}: jit.push(streams.handle, 0, r)\n"
        "at = jit.stopped_at(streams.handle, 0)\n"
        "print(json.dumps([at, type(jit.push).__name__]))\n"
    )
    interpreted = run(script, NUMBA_DISABLE_JIT="1")
    assert interpreted == [first_rejection(SHIFTED, 1e-3), "function"]


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
    stopped_at, stops, refused, cdf = run(tmp_path / "use.py")
    assert stopped_at == first_rejection(SHIFTED, 1e-3)
    assert first_rejection(SHIFTED[::-1], 1e-3) > 0  # a rise is a rejection that does not count
    assert stops == [stopped_at, 0, 0]
    assert refused == "status -2 at bound 1: not finite, or no memory"
    assert cdf == fastal.runs.RunsDistribution(10, 10).cdf(6)
