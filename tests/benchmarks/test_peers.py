"""The peers of the benchmarks: found, skipped or refused; and what asv's environments have."""

import json
import re
import tomllib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_an_absent_library_skips_and_a_broken_one_fails(benchmarks, tmp_path, monkeypatch):
    peer = benchmarks("_peers").peer
    assert peer("json.decoder").JSONDecoder
    with pytest.raises(NotImplementedError, match="no_such_library is not installed"):
        peer("no_such_library.models")
    with pytest.raises(ModuleNotFoundError, match=r"json\.no_such_module"):
        peer("json.no_such_module")
    (tmp_path / "broken_library.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        peer("broken_library")


def test_a_peer_that_computes_something_else_is_refused(benchmarks, monkeypatch):
    one = benchmarks("bench_gp").OneLabel
    one().setup("scikit-learn", 10)
    refit = one._refit
    monkeypatch.setattr(one, "_refit", lambda self: (refit(self)[0], refit(self)[1] + 0.01))
    with pytest.raises(AssertionError):  # the noise is not in the variance
        one().setup("scikit-learn", 10)


@pytest.mark.parametrize("implementation", ["gpytorch", "gpytorch fantasy", "botorch"])
def test_gpytorch_and_botorch_predict_the_same(benchmarks, implementation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about linear_operator
        # GPyTorch alone first: beyond 800 rows it iterates unless it is told not to, which BoTorch
        # tells it on import
        library = implementation.partition(" ")[0]
        pytest.importorskip(library, reason=f"{library} is not installed")
    for t in (10, 100, 900):
        benchmarks("bench_gp").OneLabel().setup(implementation, t)  # compares


def test_environments_of_asv_have_the_extra_bench():
    settings = json.loads((ROOT / "asv.conf.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = {re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"]["bench"]}
    assert settings["matrix"]["req"].keys() == extra - {"asv", "virtualenv"}
    # the rest comes with the wheel
    assert not any("--no-deps" in command for command in settings["install_command"])
