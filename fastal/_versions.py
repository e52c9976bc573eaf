"""What is installed, and where: for bug reports and for compilers."""

from __future__ import annotations

import os
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


def get_include() -> str:
    """Return the folder of ``fastal.h``, for the include path of an extension in C or C++.

    Returns
    -------
    str
        Its path.

    Examples
    --------
    >>> import os, fastal
    >>> os.path.isfile(os.path.join(fastal.get_include(), "fastal.h"))
    True
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
