"""Pages whose examples need the paper's data, or another library, are skipped without it."""

import importlib.util
import os

import pytest

NEED_DATA = {"tutorial.md"}

# Pages about other libraries: what must be installed for them.
NEED_LIBRARIES = {
    "gpflow.md": ["gpflow"],
    "gpy.md": ["GPy", "emukit"],
    "kriging.md": ["smt", "openturns"],
    "optimisers.md": ["skopt", "bayes_opt", "optuna"],
    "processes.md": ["tinygp", "george", "celerite2"],
    "text.md": ["small_text"],
    "torch.md": ["botorch", "ax", "bofire"],
}


def pytest_collection_modifyitems(items):
    """Skip the examples of pages whose data or libraries are not there."""
    no_data = pytest.mark.skip(reason="FASTAL_DATA names no folder with the data")
    for item in items:
        if item.path.name in NEED_DATA and not os.environ.get("FASTAL_DATA"):
            item.add_marker(no_data)
        if item.path.parent.name == "others":
            # These libraries, and what they call, warn of their own.
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            for library in NEED_LIBRARIES[item.path.name]:
                if importlib.util.find_spec(library) is None:
                    item.add_marker(pytest.mark.skip(reason=f"{library} is not installed"))
