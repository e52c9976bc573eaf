"""What to paste into a bug report."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version


def show_versions() -> None:
    """Print the versions of fastal, Python, the machine and the packages fastal can use.

    Examples
    --------
    >>> import fastal
    >>> fastal.show_versions()  # doctest: +ELLIPSIS
    fastal          ...
    """
    names = ["numpy", "scipy", "numba", "llvmlite", "cython", "matplotlib", "joblib", "dask"]
    names += ["pooch", "pandas", "scikit-learn", "statsmodels"]
    names += ["modAL-python", "scikit-activeml", "torch", "gpytorch", "botorch"]
    print(f"{'fastal':15} {version('fastal')}")
    print(f"{'python':15} {sys.version.split()[0]} ({platform.python_implementation()})")
    print(f"{'machine':15} {platform.platform()} {platform.machine()}")
    for name in names:
        try:
            print(f"{name:15} {version(name)}")
        except PackageNotFoundError:
            print(f"{name:15} not installed")
