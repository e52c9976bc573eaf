"""Build caller.pyx in place: python setup.py build_ext --inplace (needs cython, setuptools)."""

import os

from Cython.Build import cythonize
from setuptools import setup

import fastal

# Where Cython finds fastal/_core/runs.pxd.
home = os.path.dirname(os.path.dirname(fastal.__file__))
setup(name="caller", ext_modules=cythonize("caller.pyx", include_path=[home]))
