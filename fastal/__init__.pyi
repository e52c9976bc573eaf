# What `import fastal` offers, for type checkers; at run time __init__.py imports it on first use.
from . import bound as bound
from . import criteria as criteria
from . import datasets as datasets
from . import gp as gp
from . import jit as jit
from . import learner as learner
from . import reference as reference
from . import runs as runs
from . import sequential as sequential
from . import simulation as simulation
from . import stopper as stopper
from ._versions import show_versions as show_versions
from .bound import bound_constant as bound_constant
from .bound import gaussian_kl as gaussian_kl
from .bound import gp_kl as gp_kl
from .criteria import FixedBudget as FixedBudget
from .criteria import MinLabels as MinLabels
from .gp import GaussianProcess as GaussianProcess
from .learner import ActiveLearner as ActiveLearner
from .learner import Run as Run
from .learner import learn as learn
from .runs import RunsDistribution as RunsDistribution
from .runs import RunsTestResult as RunsTestResult
from .runs import choose_method as choose_method
from .runs import runs_test as runs_test
from .sequential import false_stop_probability as false_stop_probability
from .simulation import Simulation as Simulation
from .simulation import simulate as simulate
from .stopper import Stopper as Stopper
from .stopper import StopperBatch as StopperBatch
from .stopper import Verdict as Verdict
from .stopper import stopping_time as stopping_time

__version__: str
