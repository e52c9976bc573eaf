"""Build c_caller.c in place: python setup.py build_ext --inplace (needs setuptools)."""

from setuptools import Extension, setup

import fastal

setup(
    name="c_caller",
    ext_modules=[Extension("c_caller", ["c_caller.c"], include_dirs=[fastal.get_include()])],
)
