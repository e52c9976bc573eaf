"""Other libraries, where they are installed."""

from importlib import import_module
from importlib.util import find_spec


def peer(name):
    """Import a module, or skip the benchmark if its library is not installed.

    Only an absent library skips: one that is broken, or has moved the module, is a failure to see.
    """
    library = name.partition(".")[0]
    if find_spec(library) is None:
        raise NotImplementedError(f"{library} is not installed")
    return import_module(name)
