"""The paper's experiments, each with its protocol, its table and the paper's values beside ours."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.paper.bound_gap import Tightness as Tightness
    from fastal.paper.bound_gap import fit_classifier as fit_classifier
    from fastal.paper.bound_gap import sign_of_sine as sign_of_sine
    from fastal.paper.bound_gap import tightness as tightness
    from fastal.paper.names import CRITERIA as CRITERIA
    from fastal.paper.names import DATASETS as DATASETS
    from fastal.paper.new_parameters import TwoWays as TwoWays
    from fastal.paper.new_parameters import Way as Way
    from fastal.paper.new_parameters import two_ways as two_ways
    from fastal.paper.protocol import Campaigns as Campaigns
    from fastal.paper.protocol import Problem as Problem
    from fastal.paper.protocol import best_threshold as best_threshold
    from fastal.paper.protocol import campaigns as campaigns
    from fastal.paper.protocol import fit as fit
    from fastal.paper.protocol import problem as problem
    from fastal.paper.protocol import standardise as standardise
    from fastal.paper.protocol import true_threshold as true_threshold
    from fastal.paper.table_one import Cell as Cell
    from fastal.paper.table_one import Outcome as Outcome
    from fastal.paper.table_one import Table1 as Table1
    from fastal.paper.table_one import outcomes as outcomes
    from fastal.paper.table_one import table1 as table1

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "names": "CRITERIA DATASETS",
        "protocol": (
            "Campaigns Problem best_threshold campaigns fit problem standardise true_threshold"
        ),
        "table_one": "Cell Outcome Table1 outcomes table1",
        "bound_gap": "Tightness fit_classifier sign_of_sine tightness",
        "new_parameters": "TwoWays Way two_ways",
    },
)
