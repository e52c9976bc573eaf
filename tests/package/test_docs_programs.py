"""Programs on the pages that are no doctests: C, Cython, a Dask cluster, and what commands print."""

import json
import os
import re
import warnings

import numpy as np
import pytest
from next_tables import write
from numba import config
from page_blocks import ROOT, blocks, build_extension, run_python

import fastal
from fastal.cli.entry import main

needs_data = pytest.mark.skipif(
    not os.environ.get("FASTAL_DATA"), reason="FASTAL_DATA names no folder with the data"
)
needs_jit = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="takes minutes without the JIT")

# What the page leaves to the reader: the module, and where mean, variance and label come from.
AROUND_C = """
#include <Python.h>
#include <fastal.h>

static PyObject *loop(PyObject *self, PyObject *args);
static PyMethodDef methods[] = {
    {"loop", loop, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "mine", NULL, -1, methods, NULL, NULL, NULL, NULL};

%(start)s

static PyObject *loop(PyObject *self, PyObject *args)
{
    double mean, var, y, noise;
    (void)self;
    if (!PyArg_ParseTuple(args, "dddd", &mean, &var, &y, &noise)) {
        return NULL;
    }
    %(loop)s
    return PyLong_FromLong(status);
}
"""


def test_the_c_page_builds_and_runs(tmp_path):
    start, loop = blocks("docs/c.md", "c")
    (extension,) = blocks("docs/c.md", "python")
    source = AROUND_C % {"start": start, "loop": loop}
    (tmp_path / "mine.c").write_text(source)
    (tmp_path / "setup.py").write_text(
        f"from setuptools import Extension, setup\nimport fastal\nsetup(name='mine', ext_modules=[{extension}])\n"
    )
    build_extension(tmp_path)
    code = "import json, mine; print(json.dumps([mine.loop(0, 1, 0.5, 0.01), mine.loop(0, -1, 0.5, 0.01)]))"
    stop, negative = json.loads(run_python(code, tmp_path))
    assert (stop, negative) == (1, -4)  # FASTAL_STOP, FASTAL_NEGATIVE


def test_the_cython_lines_build_and_run(tmp_path):
    pytest.importorskip("Cython", reason="Cython is not installed")
    (lines,) = blocks("docs/library.md", "cython")
    (extension,) = blocks("docs/library.md", "python")
    (tmp_path / "mine.pyx").write_text(f"# cython: language_level=3\n{lines}\nanswer = stopped\n")
    (tmp_path / "setup.py").write_text(
        f"import os\nimport fastal\nfrom Cython.Build import cythonize\nfrom setuptools import setup\n"
        f"setup(name='mine', ext_modules={extension})\n"
    )
    build_extension(tmp_path)
    assert run_python("import mine; print(mine.answer)", tmp_path) == "0\n"


# Dask's own end is not free of warnings.
@pytest.mark.filterwarnings("ignore")
@needs_jit
def test_the_lines_for_a_cluster_run(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask: extra scale")
    import dask.array

    made = []
    start_client = distributed.Client
    rng = np.random.default_rng(0)
    pool = rng.uniform(0, 1, (3_000, 2))
    y = np.sin(6 * pool[:, 0]) + 0.1 * rng.normal(size=len(pool))

    def local_client(address):
        """Stand in for a scheduler on another machine."""
        assert re.fullmatch(r"\w+:\d+", address)
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        )
        made.append((start_client(cluster), cluster))
        return made[-1][0]

    def rows_of(path):
        assert path == "pool.zarr"
        return dask.array.from_array(pool, chunks=(1_000, 2))

    monkeypatch.setattr(distributed, "Client", local_client)
    monkeypatch.setattr(dask.array, "from_zarr", rows_of)
    cluster_lines, lost_lines = blocks("docs/scale.md", "python")
    names = {"oracle": lambda index, x: y[index]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(cluster_lines, names)
            run, learn = names["run"], names["learn"]
            assert run.stopped
            alone = learn(pool, y, gp=names["gp"], criterion=names["stopper"], seed=0)
            assert run.indices.tolist() == alone.indices.tolist()

            def loses_its_scheduler(X, oracle, **more):
                """Raise what `learn` raises when the scheduler is gone, with the run so far."""
                error = ConnectionError("the scheduler is gone")
                error.run = learn(X, oracle, **more | {"max_labels": 10})
                raise error

            names["learn"] = loses_its_scheduler
            exec(lost_lines, names)
    finally:
        for client, cluster in reversed(made):  # each puts back what Dask did before it
            client.close()
            cluster.close()
    assert names["run"] is not run
    assert names["run"].indices.tolist() == run.indices.tolist()
    assert len(made) == 2


@needs_data
def test_the_data_of_the_paper_are_loaded():
    (lines,) = blocks("docs/simulations.md", "python")
    names = {}
    exec(lines, names)
    assert names["X"].shape == (1503, 5)
    others = re.findall(r'"(\w+)"', lines)
    assert set(others) == set(fastal.datasets.SETS)


@needs_data
@needs_jit
def test_next_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    """Three batches of twenty, each of them what the command asked for."""
    monkeypatch.chdir(tmp_path)
    X, y = fastal.datasets.load("concrete")
    rows = np.random.default_rng(0).permutation(len(X))[:300]
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    (command,) = re.findall(r"^fastal (next .*)$", page, re.M)
    labels = {}
    for done in (0, 20, 40, 60):
        assert len(labels) == done
        write(
            "mixes.csv",
            [[f"M{i + 1:03}", *X[row], labels.get(i, "")] for i, row in enumerate(rows)],
            [
                "mix",
                "cement",
                "slag",
                "ash",
                "water",
                "plasticizer",
                "coarse",
                "fine",
                "age",
                "strength",
            ],
        )
        assert main(command.split()) == 3  # go on
        answer = capsys.readouterr().out
        asked = re.search(r"^label next:(.*?)^\S", answer, re.M | re.S)[1]
        labels |= {int(i) - 1: y[rows[int(i) - 1]] for i in re.findall(r"\(M(\d+)\)", asked)}
    assert answer in blocks("docs/commands.md", "text")


@needs_data
@needs_jit
@pytest.mark.long
def test_the_study_prints_what_the_page_shows(benchmarks, monkeypatch, capsys):
    unused = benchmarks("studies.unused")
    printed = ""
    for options in ([], ["--learnt"]):
        monkeypatch.setattr("sys.argv", ["unused", *options])
        unused.main()
        printed += capsys.readouterr().out
    tables = [table for block in blocks("docs/when.md", "text") for table in block.split("\n\n")]
    assert len(tables) == 6  # four with known hyper-parameters, two with learnt ones
    assert [table for table in tables if table.strip() not in printed] == []
