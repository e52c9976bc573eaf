"""Build the Cython extension; everything else is in pyproject.toml."""

import os
from pathlib import Path

from Cython import __version__ as cython_version
from Cython.Build import cythonize
from setuptools import Extension, setup

# FASTAL_BOUNDS_CHECK=1 builds with every index checked, for one run of the tests.
CHECKED = os.environ.get("FASTAL_BOUNDS_CHECK") == "1"

# FASTAL_SANITIZE=1 builds with the sanitizers of addresses and of undefined behaviour.
SANITIZED = os.environ.get("FASTAL_SANITIZE") == "1"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,
    "embedsignature": True,
}

# Double-double arithmetic needs every product rounded on its own: no silent fused multiply-add.
# The checked builds are used once: compiling them must be fast.
FAST = CHECKED or SANITIZED
# -g0: Python's own flags ask for debug information, four fifths of what would be installed.
SPEED = ["-O1"] if FAST else ["-O3", "-g0"]
FLAGS = [] if os.name == "nt" else [*SPEED, "-ffp-contract=off"]
SANITIZERS = (
    ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if SANITIZED else []
)

# What Cython adds to a module that takes memoryviews is three quarters of what there is to compile.
# The modules share it.
SHARED = "_cython_shared"

# All of them must come from one release of Cython, also where only some have changed since.
made = Path("fastal/_core", f"{SHARED}.c")
ANOTHER = made.exists() and f"Cython {cython_version} " not in made.read_text("utf-8")[:200]

extensions = [
    Extension(
        f"fastal._core.{name}",
        [f"fastal/_core/{name}.{'c' if name == SHARED else 'pyx'}"],
        include_dirs=["fastal/include", "fastal/_core"],
        extra_compile_args=[*FLAGS, *SANITIZERS, *(["-g"] if SANITIZED else [])],
        extra_link_args=SANITIZERS,
    )
    for name in (
        SHARED,
        "bound_scalar",
        "capi",
        "distribution",
        "inputs",
        "levels",
        "looks",
        "numpy_seeds",
        "rule",
        "runs_test",
        "state",
        "still",
    )
]
setup(
    ext_modules=cythonize(
        extensions,
        compiler_directives=DIRECTIVES,
        force=FAST or ANOTHER,
        shared_utility_qualified_name=f"fastal._core.{SHARED}",
    ),
    options={"build_ext": {"parallel": len(extensions)}},
)
