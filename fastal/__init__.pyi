# What `import fastal` offers, for type checkers; at run time __init__.py imports it on first use.
from . import jit as jit
from . import reference as reference
from . import runs as runs
from ._versions import show_versions as show_versions
from .runs import RunsDistribution as RunsDistribution
from .runs import RunsTestResult as RunsTestResult
from .runs import choose_method as choose_method
from .runs import runs_test as runs_test

__version__: str
