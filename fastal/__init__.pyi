# What `import fastal` offers, for type checkers; at run time __init__.py imports it on first use.
from . import adapters as adapters
from . import bound as bound
from . import criteria as criteria
from . import datasets as datasets
from . import jit as jit
from . import learning as learning
from . import models as models
from . import paper as paper
from . import plotting as plotting
from . import runs as runs
from . import simulation as simulation
from . import stopping as stopping
from ._versions import get_include as get_include
from ._versions import show_versions as show_versions
from .adapters.all_bounds import bounds_of as bounds_of
from .bound import gp_bounds as gp_bounds
from .bound import gp_kl as gp_kl
from .learning.learner import ActiveLearner as ActiveLearner
from .learning.run import learn as learn
from .models.gp import GaussianProcess as GaussianProcess
from .runs import runs_test as runs_test
from .simulation.campaigns import simulate as simulate
from .stopping.batch import Streams as Streams
from .stopping.batch import stopping_time as stopping_time
from .stopping.count import FixedBudget as FixedBudget
from .stopping.count import MinLabels as MinLabels
from .stopping.criterion import Criterion as Criterion
from .stopping.still import MovementBelow as MovementBelow
from .stopping.stopper import Stopper as Stopper

__version__: str
