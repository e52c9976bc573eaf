"""What benchmarks take that is not public, wherever a version of fastal keeps it.

A name that a version does not have is missed when it is used, not when a file is imported: the
other benchmarks of that file still run on that version.
"""

import importlib


def inside(name, *homes):
    """Return what has this name in the first of these modules that has it."""
    for home in homes:
        try:
            return getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError):
            continue

    def missing(*arguments, **more):
        # asv skips a benchmark whose setup raises this
        raise NotImplementedError(f"this version has no {name} in {' or '.join(homes)}")

    return missing
