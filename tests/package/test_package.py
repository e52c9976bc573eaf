import ast
import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
import types
from importlib.resources import files
from pathlib import Path

import pytest

import fastal

ROOT = Path(__file__).parents[2]
HEAVY = {"numba", "llvmlite", "scipy", "matplotlib", "pandas", "sklearn", "joblib", "dask"}
HEAVY |= {"pooch", "requests", "threadpoolctl"}


def loaded_after(code):
    """Top-level modules that a fresh interpreter has imported after running some code."""
    code += "\nimport sys\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_version_has_one_home():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert fastal.__version__ == project["version"]
    assert importlib.metadata.version("fastal") == project["version"]
    # No other file sets it.
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    for path in ROOT.glob("fastal/**/*.py"):
        assert not re.search(r"__version__\s*=\s*[\"']", path.read_text("utf-8")), path


def test_license_metadata():
    metadata = importlib.metadata.metadata("fastal")
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata.get_all("License-File") == ["LICENSE"]


def test_console_script():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="fastal")
    assert script.load() is importlib.import_module("fastal.cli").main


def test_import_is_light():
    loaded = loaded_after("import fastal; dir(fastal)")
    assert "fastal" in loaded
    assert not loaded & (HEAVY | {"numpy"})


def test_runs_test_needs_numpy_only():
    loaded = loaded_after("from fastal import runs_test; runs_test([1.0, 2.0, 3.0])")
    assert "numpy" in loaded
    assert not loaded & HEAVY


def test_a_first_push_compiles_nothing():
    loaded = loaded_after("import fastal; fastal.Stopper().push(1.0)")
    assert not loaded & HEAVY


def test_every_public_name_resolves():
    assert len(set(fastal.__all__)) == len(fastal.__all__)
    for name in fastal.__all__:
        assert getattr(fastal, name) is not None
    assert dir(fastal) == sorted(fastal.__all__)


def test_lazy_names_are_the_real_things():
    runs = importlib.import_module("fastal.runs")
    assert fastal.runs is runs
    assert fastal.runs_test is runs.runs_test
    assert fastal.RunsDistribution is runs.RunsDistribution


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="module 'fastal' has no attribute 'no_such_name'"):
        _ = fastal.no_such_name


def test_show_versions(capsys):
    assert fastal.show_versions() is None
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["fastal"] == fastal.__version__
    assert lines["python"].startswith(sys.version.split()[0])
    assert lines["numpy"] == importlib.metadata.version("numpy")


@pytest.mark.parametrize(
    "name",
    ["py.typed", "__init__.pyi", "_core/rule.pyi", "_core/runs.pxd", "stopping/sequential.npz"],
)
def test_installed_beside_the_code(name):
    assert (files("fastal") / name).is_file()


def stub_names(nodes):
    """Names that a stub declares at one level, with a leading underscore left out."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets)
        elif isinstance(node, ast.ImportFrom):
            # Only `x as x` is an export of a stub.
            names.update(alias.name for alias in node.names if alias.asname == alias.name)
    return {name for name in names if not name.startswith("_")}


def test_package_stub_matches():
    stub = ast.parse((files("fastal") / "__init__.pyi").read_text("utf-8"))
    assert stub_names(stub.body) | {"__version__"} == set(fastal.__all__)


@pytest.mark.parametrize(
    "module", sorted(path.stem for path in Path(fastal.__file__).parent.glob("_core/*.pyx"))
)
def test_core_stub_matches(module):
    core = importlib.import_module(f"fastal._core.{module}")
    stub = ast.parse((files("fastal._core") / f"{module}.pyi").read_text("utf-8"))
    compiled = {
        name: value
        for name, value in vars(core).items()
        if not name.startswith("_")
        and not isinstance(value, types.ModuleType)
        and getattr(value, "__module__", core.__name__) == core.__name__
    }
    assert stub_names(stub.body) == set(compiled)
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            members = {name for name in vars(compiled[node.name]) if not name.startswith("_")}
            assert stub_names(node.body) == members, node.name


def test_stub_names_finds_a_difference():
    before = ast.parse("def f() -> int: ...\nx: int\nfrom .a import b as b, c\nimport d")
    assert stub_names(before.body) == {"f", "x", "b"}
    assert stub_names(ast.parse("class C:\n    def m(self) -> int: ...").body[0].body) == {"m"}


def test_changelog_has_an_unreleased_section():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (.+)", text, re.M)[0] == "Unreleased"


def test_versions_that_ci_installs(monkeypatch):
    spec = importlib.util.spec_from_file_location("versions", ROOT / ".ci" / "versions.py")
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    extras = {"b": ["b[x]>=3", "fastal[c,d]"], "c": ["b<4", "c>=1.2,<2"], "d": ["d>=1"]}
    monkeypatch.setitem(versions.PROJECT, "optional-dependencies", extras)
    found = list(versions.expand(["a>=0.59", "fastal[b]"], {"d"}))
    assert set(versions.oldest(found)) == {"a==0.59", "b[x]==3", "c==1.2"}
    assert set(versions.newest(found)) == {"a", "b", "b[x]", "c"}
    with pytest.raises(SystemExit, match="e has no lower bound"):
        list(versions.oldest(versions.expand(["e"], set())))


def test_every_door_offers_what_is_there():
    package = Path(fastal.__file__).parent
    rooms = [path.parent.name for path in package.glob("*/__init__.py")]
    for room in rooms:
        door = importlib.import_module(f"fastal.{room}")
        for name in getattr(door, "__all__", ()):
            assert getattr(door, name) is not None
        assert door.__doc__.count("\n") == 0 or room in ("adapters", "_core")
        with pytest.raises(AttributeError):
            door.no_such_name  # noqa: B018
