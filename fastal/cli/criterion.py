"""A criterion of the user's own, named on the command line."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING

from fastal._options import short_repr
from fastal.cli.errors import UserError

if TYPE_CHECKING:
    from types import ModuleType

    from fastal.stopping.criterion import Criterion


def load_criterion(text: str) -> Criterion:
    """Return the criterion that ``FILE.py:NAME`` or ``MODULE:NAME`` names.

    NAME is a criterion, or what returns one when called without arguments, such as its class.
    """
    from fastal.stopping.criterion import Criterion

    where, _, name = text.rpartition(":")
    if not where or not name.isidentifier():
        raise UserError(f"--criterion: must be FILE.py:NAME or MODULE:NAME, got {short_repr(text)}")
    try:
        found = getattr(_module(where), name)
        if not isinstance(found, Criterion) and callable(found):
            found = found()
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"--criterion: {text}: {type(error).__name__}: {error}") from None
    if not isinstance(found, Criterion):
        raise UserError(f"--criterion: {text}: must be a fastal.Criterion, got {short_repr(found)}")
    return found


def _module(where: str) -> ModuleType:
    """Import a module by its name, or by its file."""
    if not where.endswith(".py"):
        return importlib.import_module(where)
    name = os.path.splitext(os.path.basename(where))[0]
    spec = importlib.util.spec_from_file_location(name, where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Classes are found again by the name of their module, when they are copied or pickled.
    known = sys.modules.setdefault(name, module)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if known is module:
            del sys.modules[name]
        raise
    return module
