"""Build the Cython extension; everything else is in pyproject.toml."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

# FASTAL_BOUNDS_CHECK=1 builds with every index checked, for one run of the tests.
CHECKED = os.environ.get("FASTAL_BOUNDS_CHECK") == "1"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,
    "embedsignature": True,
}

# Double-double arithmetic needs every product rounded on its own: no silent fused multiply-add.
# The checked build is used once: compiling it must be fast.
FLAGS = [] if os.name == "nt" else ["-O1" if CHECKED else "-O3", "-ffp-contract=off"]

extensions = [
    Extension(f"fastal._core.{name}", [f"fastal/_core/{name}.pyx"], extra_compile_args=FLAGS)
    for name in ("runs", "stopper")
]
setup(
    ext_modules=cythonize(extensions, compiler_directives=DIRECTIVES, force=CHECKED),
    options={"build_ext": {"parallel": len(extensions)}},
)
