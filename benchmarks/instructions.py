"""Count the instructions of a call: ``python -m benchmarks.instructions``.

Noise does not change them. The work runs under callgrind (the valgrind package), which counts each
instruction executed. What a call costs is the difference of two amounts of work over the difference
of their sizes, so that imports, set-up and the counting itself drop out. The counts are compared
with those recorded in `instructions.json` for this Python (a call of Python itself costs more in
some than in others), or for the newest one there; ``--record`` writes those of this Python anew.

Left to themselves, compiled kernels, BLAS and Python's hashing follow the machine and the process.
Here all are held still: Numba compiles for the generic CPU of the architecture, into the same cache
as always (it keeps CPUs apart) and before anything is counted; OpenBLAS takes the plainest of its
kernels; hashes have a fixed seed. What remains are the versions of the tools, which stand beside
the counts: with others a wider tolerance holds. The C library still follows the machine: the exact
tail needs two thirds more instructions on a CPU without fused multiply-add.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from ctypes import CDLL
from importlib.metadata import version
from pathlib import Path

import numpy as np

RECORD = Path(__file__).with_name("instructions.json")

# Share by which a count may exceed the recorded one: with the same tools, and with others.
TOLERANCE = 0.03
TOLERANCE_OTHER_TOOLS = 0.3

ENVIRONMENT = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "OPENBLAS_CORETYPE": "Prescott",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}

# The instructions by which a program talks to callgrind; without it they do nothing.
SWITCH = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""


def push(n):
    """`Stopper.push`, from 1,000 to 3,000 random bounds."""
    from fastal import Stopper

    stopper, values = Stopper(), np.random.default_rng(0).standard_normal(n).tolist()
    return lambda: [stopper.push(value) for value in values]


def tail(n):
    """`RunsDistribution.cdf`, 450 runs of 500 + 500 values."""
    from fastal import RunsDistribution

    d = RunsDistribution(500, 500)
    return lambda: [d.cdf(450) for _ in range(n)]


def append(n):
    """`GaussianProcess.add`, from 50 to 150 labels of four features."""
    from fastal import GaussianProcess

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 4)), rng.standard_normal(n).tolist()
    gp = GaussianProcess()
    return lambda: [gp.add(x, label) for x, label in zip(X, y, strict=True)]


def learn(n):
    """`learn`, a pool of 100 points of four features, 60 labels."""
    from fastal import GaussianProcess, Stopper
    from fastal import learn as run

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 4)), rng.standard_normal(100)
    gp, stopper = GaussianProcess(), Stopper()
    return lambda: [run(X, y, gp=gp, stopper=stopper, max_labels=60, seed=i) for i in range(n)]


# What is counted, and its two sizes.
CASES = {push: (1000, 3000), tail: (10, 30), append: (50, 150), learn: (1, 3)}


def missing() -> str:
    """Return why nothing can be counted here, or nothing."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if not Path("/usr/include/valgrind/callgrind.h").is_file():
        return "valgrind/callgrind.h is not installed"
    if shutil.which("cc") is None:
        return "there is no C compiler"
    return ""


def tools() -> dict[str, str]:
    """Return what the counts depend on besides the code; a patch release is no other tool."""
    compiler = subprocess.run(["cc", "-dumpversion"], capture_output=True, text=True, check=True)
    found = {name: version(name) for name in ("cython", "numba", "numpy")}
    found |= {"python": platform.python_version(), "cc": compiler.stdout.strip() + ".0"}
    return {"machine": platform.machine()} | {
        name: ".".join(full.split(".")[:2]) for name, full in found.items()
    }


def work(switch: CDLL) -> None:
    """Do all the work, between signs to callgrind."""
    for case, sizes in CASES.items():
        case(sizes[0])()  # what is done once: imports, compilation, caches
        for n in sizes:
            body = case(n)
            gc.collect()
            gc.disable()
            switch.begin()
            body()
            switch.end(f"{case.__name__} {n}".encode())
            gc.enable()


def counts() -> dict[str, int]:
    """Return the instructions of one call of each case."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "switch.c").write_text(SWITCH)
        switch = str(folder / "switch.so")
        subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", "-o", switch, str(folder / "switch.c")], check=True
        )
        worker = [sys.executable, "-m", "benchmarks.instructions", "--work", switch]
        valgrind = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet",
            f"--callgrind-out-file={folder}/counts",
        ]  # fmt: skip
        environment = os.environ | ENVIRONMENT
        for command in (worker, valgrind + worker):  # without callgrind: Numba fills its cache
            subprocess.run(command, env=environment, check=True, cwd=Path(__file__).parents[1])
        total = {}
        for file in folder.glob("counts.*"):
            text = file.read_text()
            if name := re.search(r"Client Request: (\w+ \d+)", text):
                total[name[1]] = int(re.search(r"^(?:totals|summary): (\d+)", text, re.M)[1])
    return {
        case.__name__: round(
            (total[f"{case.__name__} {b}"] - total[f"{case.__name__} {a}"]) / (b - a)
        )
        for case, (a, b) in CASES.items()
    }


def compare(record: dict, counted: dict[str, int], used: dict[str, str]) -> list[str]:
    """Print each count beside the recorded one; return what is wrong."""
    pythons = record["pythons"]
    newest = max(pythons, key=lambda name: tuple(map(int, name.split("."))))
    recorded = record | pythons.get(used["python"], pythons[newest])
    other = {name: was for name, was in recorded["tools"].items() if used.get(name) != was}
    tolerance = recorded["tolerance_other_tools"] if other else recorded["tolerance"]
    for name, was in other.items():
        print(f"{name}: {used.get(name)}, recorded with {was}")
    print(f"tolerance: {tolerance:.0%}")
    wrong = []
    for name, now in counted.items():
        was = recorded["instructions"].get(name)
        if was is None:
            wrong.append(f"{name}: not recorded")
            continue
        change = now / was - 1
        print(f"{name:8} {now:12,} instructions a call, recorded {was:12,}: {change:+.1%}")
        if change > tolerance:
            wrong.append(f"{name}: {change:.1%} more instructions than recorded")
    wrong += [
        f"{name}: recorded, not counted" for name in recorded["instructions"].keys() - counted
    ]
    return wrong


def main(arguments: list[str]) -> int:
    """Count and compare; return 1 if a call needs more instructions than recorded."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("--record", action="store_true", help="write the counts as the right ones")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        work(CDLL(options.work))
        return 0
    if why := missing():
        print(f"instructions: skipped, {why}")
        return 0
    counted, used = counts(), tools()
    if options.record:
        pythons = json.loads(RECORD.read_text())["pythons"]
        pythons[used["python"]] = {"tools": used, "instructions": counted}
        record = {
            "made by": "python -m benchmarks.instructions --record",
            "unit": "instructions a call, counted by callgrind (see instructions.py)",
            "tolerance": TOLERANCE,
            "tolerance_other_tools": TOLERANCE_OTHER_TOOLS,
            "cases": {case.__name__: case.__doc__ for case in CASES},
            "pythons": dict(sorted(pythons.items())),
        }
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
        print(f"written: {RECORD}")
    wrong = compare(json.loads(RECORD.read_text()), counted, used)
    for line in wrong:
        print(f"instructions: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
