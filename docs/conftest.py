"""Pages whose examples need the paper's data are skipped where there are none."""

import os

import pytest

NEED_DATA = {"tutorial.md"}


def pytest_collection_modifyitems(items):
    """Skip the examples of pages that load a data set, unless FASTAL_DATA names the folder."""
    if os.environ.get("FASTAL_DATA"):
        return
    skip = pytest.mark.skip(reason="FASTAL_DATA names no folder with the data")
    for item in items:
        if item.path.name in NEED_DATA:
            item.add_marker(skip)
