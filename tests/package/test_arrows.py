"""The house: who may import whom, and nobody takes another room's private names.

A room is a folder of fastal, or a small module in its hall. Imports count wherever they stand, at the
top of a file or inside a function, but for those under TYPE_CHECKING; cimports count as well. The
drawing is in CONTRIBUTING.md.
"""

import ast
import re
from pathlib import Path

import pytest

import fastal

PACKAGE = Path(fastal.__file__).parent

# Everyone may use these, and they use nobody but one another.
BASE = {
    "_lazy", "_memory", "_options", "_params", "_progress", "_state", "_threads", "_types", "_validation",
    "_versions",
}  # fmt: skip

BELOW = {
    "_core": set(),
    "datasets": set(),
    "runs": {"_core"},
    "bound": {"_core"},
    "jit": {"bound", "_core"},
    "adapters": {"bound", "_core"},
    "adapters.loops": {"adapters", "stopping"},  # nobody imports it
    "stopping": {"bound", "runs", "_core"},
    "models": {"bound", "_core"},
    "criteria": {"models", "stopping", "bound", "runs", "_core"},
    "learning": {"models", "stopping", "bound", "runs", "_core"},
    "simulation": {"learning", "criteria", "models", "stopping", "bound", "runs", "_core"},
    "paper": {
        "simulation", "learning", "criteria", "models", "stopping", "bound", "runs", "datasets",
    },
    "plotting": {"stopping", "runs"},
    "cli": {
        "paper", "simulation", "learning", "criteria", "models", "stopping", "bound",
        "runs", "jit", "datasets", "plotting",
    },
    "__main__": {"cli"},
}  # fmt: skip

# From inside a function only: an object draws itself, a stopper asks another library's model.
LAZILY = {
    "stopping": {"plotting", "adapters"},
    "learning": {"plotting"},
    "simulation": {"plotting"},
}

# Public methods of every named tuple, in spite of their names.
NAMED_TUPLE = {"_replace", "_asdict", "_make", "_fields"}

# Doors that are still to be built: what a file reaches for past the door, each with its repair in
# sight. The list may only become shorter.
BACK_DOORS: set[str] = set()


def room_of(module):
    parts = module.split(".")
    if parts[1:3] == ["adapters", "loops"]:
        return "adapters.loops"
    return parts[1] if len(parts) > 1 else "fastal"


def module_of(path, package):
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Reader(ast.NodeVisitor):
    """Imports of a file, as (module, name or None, lazy, line), and private attributes it reaches."""

    def __init__(self, module, is_package, homes):
        self.module, self.homes = module, homes
        self.base = module.split(".") if is_package else module.split(".")[:-1]
        self.depth, self.imports, self.reached, self.owned = 0, [], [], set()

    def visit_If(self, node):
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for part in node.orelse:
                self.visit(part)
        else:
            self.generic_visit(node)

    def _inside(self, node):
        self.owned.add(node.name)
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    def visit_FunctionDef(self, node):
        self._inside(node)

    def visit_ClassDef(self, node):
        self.owned.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.split(".")[0] == "fastal":
                self.imports.append((alias.name, None, self.depth > 0, node.lineno))

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if node.level:
            base = self.base[: len(self.base) - node.level + 1]
            module = ".".join([*base, *([module] if module else [])])
        if module.split(".")[0] != "fastal":
            return
        for alias in node.names:
            target, name = module, alias.name
            if module == "fastal":  # an arrow to the name's home
                target, name = f"fastal.{self.homes.get(name, name)}", None
            self.imports.append((target, name, self.depth > 0, node.lineno))

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Store):
            self.owned.add(node.id)

    def visit_Attribute(self, node):
        private = node.attr.startswith("_") and not node.attr.endswith("__")
        private = private and node.attr not in NAMED_TUPLE
        if private:
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if isinstance(node.ctx, ast.Store) or own:
                self.owned.add(node.attr)
            else:
                self.reached.append((node.attr, node.lineno))
        self.generic_visit(node)


def read(package):
    """Return the readers of all Python files, and the cimports of the Cython ones."""
    homes = dict(getattr(fastal, "_HOME", {}))
    files = {}
    for path in sorted(package.rglob("*.py")):
        module = module_of(path, package)
        reader = Reader(module, path.name == "__init__.py", homes)
        reader.visit(ast.parse(path.read_text()))
        files[module] = reader
    cimports = []
    for path in sorted([*package.rglob("*.pyx"), *package.rglob("*.pxd")]):
        module = module_of(path, package)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if found := re.match(
                r"\s*(?:from (fastal[\w.]*) c?import|c?import (fastal[\w.]*))", line
            ):
                cimports.append((module, found[1] or found[2], number))
    return files, cimports


def violations(package):
    """Return what the house forbids, one line each."""
    files, cimports = read(package)
    found, arrows = [], {}
    owners = {}
    for module, reader in files.items():
        for name in reader.owned:
            if name.startswith("_"):
                owners.setdefault(name, set()).add(room_of(module))
    for module, reader in files.items():
        room = room_of(module)
        if room == "fastal":
            continue  # the front door imports by name, from a table
        for target, name, lazy, line in reader.imports:
            other = room_of(target)
            where = f"{module}:{line}"
            if other == room:
                continue
            if other in ("fastal", "__version__"):
                continue
            if name is not None and name.startswith("_"):
                found.append(f"{where} takes the private {name} from {target}")
            if other in BASE:
                if room not in BASE | set(BELOW):
                    found.append(f"{where}: no such room on the list: {room}")
                continue
            if room in BASE:
                found.append(f"{where}: {room} is below everything and must not use {other}")
                continue
            allowed = BELOW.get(room, set()) | (LAZILY.get(room, set()) if lazy else set())
            if other not in allowed:
                found.append(f"{where}: no arrow from {room} to {other}")
            arrows.setdefault(room, set()).add((other, lazy))
        for name, line in reader.reached:
            rooms = owners.get(name, set())
            if rooms and room not in rooms:
                found.append(f"{module}:{line} reaches for {name} of {', '.join(sorted(rooms))}")
    for module, target, line in cimports:
        room, other = room_of(module), room_of(target)
        if other not in (room, *BELOW.get(room, set())):
            found.append(f"{module}:{line}: no cimport from {room} to {other}")
    found += cycles({room: {o for o, lazy in to if not lazy} for room, to in arrows.items()})
    return found


def cycles(arrows):
    """Return a line for each room from which arrows lead back to it."""
    found = []
    for start in arrows:
        seen, ahead = set(), set(arrows[start])
        while ahead:
            room = ahead.pop()
            seen.add(room)
            ahead |= arrows.get(room, set()) - seen
        if start in seen:
            found.append(f"a cycle through {start}")
    return found


def test_the_arrows_of_the_house():
    found = {re.sub(r":\d+", "", line) for line in violations(PACKAGE)}
    assert found - BACK_DOORS == set()
    assert BACK_DOORS - found == set(), "repaired: take these off the list"


def test_the_list_itself_has_no_cycle():
    assert cycles(BELOW) == []


def test_every_room_is_on_the_list():
    rooms = {room_of(module_of(path, PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert rooms - {"fastal"} - BASE == set(BELOW)


def test_the_hall_is_small():
    assert len(list(PACKAGE.glob("*.py"))) <= 14 + 2  # besides __init__ and __main__


PLANTED = {
    "stopping/planted.py": [
        ("import fastal.models", "no arrow from stopping to models"),
        ("from fastal import GaussianProcess", "no arrow from stopping to models"),
        ("from fastal.runs import _prepare", "takes the private _prepare"),
        ("def f(gp):\n    return gp._append_block_of_rows", None),
        ("def f(gp):\n    return gp._planted_secret", "reaches for _planted_secret of models"),
        ("from fastal.plotting.style import ABOVE", "no arrow from stopping to plotting"),
        ("def f():\n    from fastal.plotting.style import ABOVE", None),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import fastal.models", None),
        ("from fastal.cli import main", "no arrow from stopping to cli"),
        ("from ..learning import learn", "no arrow from stopping to learning"),
    ],
    "bound.py": [("from fastal.stopping.stopper import Stopper", "a cycle through")],
    "_core/planted.pyx": [("from fastal.stopping cimport x", "no cimport from _core to stopping")],
}


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [(file, text, said) for file, all_ in PLANTED.items() for text, said in all_],
)
def test_a_planted_violation_is_found(tmp_path, file, text, said):
    package = tmp_path / "fastal"
    for folder in ("stopping", "models", "runs", "plotting", "_core"):
        (package / folder).mkdir(parents=True)
    (package / "models" / "gp.py").write_text("class A:\n    def _planted_secret(self): pass\n")
    (package / "stopping" / "stopper.py").write_text("import fastal.bound\n")
    (package / file).write_text(text + "\n")
    found = violations(package)
    if said is None:
        assert found == []
    else:
        assert any(said in line for line in found), found
