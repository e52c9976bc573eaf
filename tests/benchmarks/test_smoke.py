import subprocess
import sys
from pathlib import Path

import pytest

SMOKE = Path(__file__).parents[2] / "benchmarks" / "smoke.py"

GOOD = """
import json

class Suite:
    params = (["fast", "slow", "absent"], [1000, 10, 100])
    param_names = ("implementation", "size")

    def setup(self, implementation, size):
        if implementation == "absent":
            raise NotImplementedError
        self.implementation = implementation

    def teardown(self, implementation, size):
        print("teardown", implementation)

    def time_work(self, implementation, size):
        assert self.implementation == implementation
        print("time", implementation, size)

    def track_error(self, implementation, size):
        return 0.5

class Cached:
    def setup_cache(self):
        return 7

    def peakmem_cached(self, seven):
        print("cached", seven)

def time_function(n):
    print("function", n)
time_function.params = [3, 2]

def timeraw_start():
    return "print(x)", "x = 'raw'"

def helper():
    raise RuntimeError("not a benchmark")
"""


def smoke(directory, **modules):
    """Run the runner over planted modules in a process of its own."""
    directory.mkdir()
    (directory / "__init__.py").touch()
    for name, text in modules.items():
        (directory / f"{name}.py").write_text(text)
    return subprocess.run(
        [sys.executable, str(SMOKE), str(directory)], capture_output=True, text=True
    )


def test_good_benchmarks(tmp_path):
    done = smoke(tmp_path / "planted", bench_good=GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    # Every implementation, at the smallest size only.
    assert [line for line in lines if line.startswith("time ")] == ["time fast 10", "time slow 10"]
    assert lines.count("teardown fast") == lines.count("teardown slow") == 2
    assert "teardown absent" not in lines
    assert {"cached 7", "function 2", "raw"} < set(lines)
    assert lines[-1] == "smoke: 7 ran, 2 skipped, 0 problems in 1 files"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def time_it():\n    1 / 0\n", "bench_bad.time_it(): failed"),
        ("def track_it():\n    pass\n", "bench_bad.track_it(): failed"),
        ("def track_it():\n    return float('nan')\n", "bench_bad.track_it(): failed"),
        ("def timeraw_it():\n    return 'import no_such'\n", "bench_bad.timeraw_it(): failed"),
        (
            "class A:\n    def setup(self):\n        1 / 0\n    def time_it(self):\n        pass\n",
            "bench_bad.A.time_it(): failed",
        ),
        (
            "class A:\n    def time_it(self):\n        raise NotImplementedError\n",
            "bench_bad.A.time_it(): failed",
        ),
        (
            "class A:\n    def setup(self):\n        raise NotImplementedError\n"
            "    def time_it(self):\n        pass\n",
            "bench_bad.A.time_it: skipped in every combination",
        ),
        (
            "class A:\n    def timed(self):\n        pass\n    def time_it(self):\n        pass\n",
            "bench_bad.A.timed: no prefix of asv, never runs",
        ),
        ("x = 1\n", "planted.bench_bad: no benchmark"),
    ],
)
def test_planted_failures(tmp_path, text, message):
    done = smoke(tmp_path / "planted", bench_good="def time_it():\n    pass\n", bench_bad=text)
    assert done.returncode == 1
    assert f"smoke: {message}\n" in done.stderr
    assert "1 problems in 2 files" in done.stdout


def test_module_that_does_not_import(tmp_path):
    done = smoke(tmp_path / "planted", bench_bad="import no_such_module\n")
    assert done.returncode == 1
    assert "no_such_module" in done.stderr


def test_empty_directory(tmp_path):
    done = smoke(tmp_path / "planted")
    assert done.returncode == 1
    assert "no bench_*.py" in done.stderr
