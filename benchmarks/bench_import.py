"""How long the first import takes, in a fresh interpreter."""

import os
import statistics
import subprocess
import sys
import tempfile
from time import perf_counter


def timeraw_import_fastal():
    return "import fastal"


def timeraw_import_runs_test():
    # `import fastal` postpones the work; this is what a first use of the runs test waits for.
    return "from fastal import runs_test"


def timeraw_import_numpy():
    return "import numpy"


class ImportRatio:
    """Import time over that of NumPy, each the median of interleaved fresh interpreters."""

    params = (["import fastal", "from fastal import runs_test"],)
    param_names = ("statement",)
    repetitions = 9

    def track_import_ratio(self, statement):
        times = {statement: [], "import numpy": []}
        for _ in range(self.repetitions):
            for code, seconds in times.items():
                seconds.append(_seconds(code))
        return statistics.median(times[statement]) / statistics.median(times["import numpy"])

    track_import_ratio.unit = "ratio"


def _seconds(statement):
    code = f"from time import perf_counter as t; t0 = t(); {statement}; print(t() - t0)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


# Whole: the interpreter, the imports, the compilation or the reading of what was compiled, the run.
FIRST_RUN = """
import numpy as np
from fastal import GaussianProcess, Stopper, learn
X = np.random.default_rng(0).normal(size=(100, 2))
print(learn(X, X.sum(axis=1), gp=GaussianProcess(1.3, 0.01), criterion=Stopper()).n_labels)
"""

# What one would wait for with another library.
FIRST_FIT = """
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
X = np.random.default_rng(0).normal(size=(100, 2))
model = GaussianProcessRegressor(alpha=0.01, optimizer=None).fit(X, X.sum(axis=1))
print(model.predict(X, return_std=True)[1].max())
"""


def _with_cache(state, seconds):
    """Return what `seconds` measures with a folder for compiled code, empty or not."""
    with tempfile.TemporaryDirectory() as folder:
        cold = seconds(folder)
        if state == "empty cache":
            return cold
        return statistics.median(seconds(folder) for _ in range(3))


class FirstRun:
    """A process whose first `learn` is timed, with Numba's cache empty or warm."""

    params = (["empty cache", "warm cache"],)
    param_names = ("state",)
    timeout = 300

    def track_seconds_of_a_first_run(self, state):
        """No target: what a user waits for."""
        return _with_cache(state, lambda folder: process_seconds(FIRST_RUN, folder))

    track_seconds_of_a_first_run.unit = "s"


class Demo:
    """From `fastal demo` to its first line, with Numba's cache empty or warm."""

    params = (["empty cache", "warm cache"],)
    param_names = ("state",)
    timeout = 300

    def track_seconds_to_the_first_line(self, state):
        """No target: what a newcomer waits for."""
        return _with_cache(state, self._seconds)

    track_seconds_to_the_first_line.unit = "s"

    def _seconds(self, cache):
        begin = perf_counter()
        with subprocess.Popen(
            [sys.executable, "-m", "fastal", "demo"],
            stdout=subprocess.PIPE,
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
        ) as demo:
            line = demo.stdout.readline()
            seconds = perf_counter() - begin
            demo.stdout.read()
        if not line.startswith(b"answer"):
            raise RuntimeError(f"the demo begins with {line}")
        return seconds


class FirstUse:
    """A first `learn` with nothing compiled yet, over a first fit of scikit-learn."""

    params = ([100, 3_000],)
    param_names = ("N",)
    timeout = 300

    def track_first_learn_over_a_first_fit(self, N):
        """At most 2 is wanted."""
        with tempfile.TemporaryDirectory() as folder:
            seconds = process_seconds(FIRST_RUN.replace("(100, 2)", f"({N}, 2)"), folder)
            return seconds / min(process_seconds(FIRST_FIT, folder) for _ in range(3))

    track_first_learn_over_a_first_fit.unit = "ratio"


def process_seconds(code, cache):
    """Return the time of a whole process, with this folder for compiled code."""
    begin = perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
    )
    return perf_counter() - begin
