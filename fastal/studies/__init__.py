"""The paper's experiments and our own, each with its protocol, table and text."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.studies.bound_gap import Tightness as Tightness
    from fastal.studies.bound_gap import fit_classifier as fit_classifier
    from fastal.studies.bound_gap import sign_of_sine as sign_of_sine
    from fastal.studies.bound_gap import tightness as tightness
    from fastal.studies.campaign import campaign_study as campaign_study
    from fastal.studies.comparison import Comparison as Comparison
    from fastal.studies.comparison import Row as Row
    from fastal.studies.comparison import compare as compare
    from fastal.studies.decision import DecisionRow as DecisionRow
    from fastal.studies.decision import DecisionStudy as DecisionStudy
    from fastal.studies.decision import decision_study as decision_study
    from fastal.studies.decision import unused as unused
    from fastal.studies.names import CRITERIA as CRITERIA
    from fastal.studies.names import DATASETS as DATASETS
    from fastal.studies.names import SIMULATORS as SIMULATORS
    from fastal.studies.protocol import Campaigns as Campaigns
    from fastal.studies.protocol import Problem as Problem
    from fastal.studies.protocol import best_threshold as best_threshold
    from fastal.studies.protocol import campaigns as campaigns
    from fastal.studies.protocol import first_crossings as first_crossings
    from fastal.studies.protocol import fit as fit
    from fastal.studies.protocol import problem as problem
    from fastal.studies.protocol import problems as problems
    from fastal.studies.protocol import standardise as standardise
    from fastal.studies.protocol import true_threshold as true_threshold
    from fastal.studies.simulators import simulator as simulator
    from fastal.studies.table_one import Cell as Cell
    from fastal.studies.table_one import Outcome as Outcome
    from fastal.studies.table_one import Table1 as Table1
    from fastal.studies.table_one import outcomes as outcomes
    from fastal.studies.table_one import table1 as table1
    from fastal.studies.text import aligned as aligned

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "names": "CRITERIA DATASETS SIMULATORS",
        "protocol": (
            "Campaigns Problem best_threshold campaigns first_crossings fit problem problems "
            "standardise true_threshold"
        ),
        "table_one": "Cell Outcome Table1 outcomes table1",
        "bound_gap": "Tightness fit_classifier sign_of_sine tightness",
        "simulators": "simulator",
        "campaign": "campaign_study",
        "decision": "DecisionRow DecisionStudy decision_study unused",
        "comparison": "Comparison Row compare",
        "text": "aligned",
    },
)
