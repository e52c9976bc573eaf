"""Build cpp_caller.cpp in place: python setup.py build_ext --inplace (needs setuptools)."""

from setuptools import Extension, setup

import fastal

setup(
    name="cpp_caller",
    ext_modules=[Extension("cpp_caller", ["cpp_caller.cpp"], include_dirs=[fastal.get_include()])],
)
