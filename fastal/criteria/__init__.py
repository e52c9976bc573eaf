"""Criteria that fastal is compared with: the paper's, and those of related work."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.criteria.confidence import ConfidenceDrop as ConfidenceDrop
    from fastal.criteria.confidence import ConfidenceGradient as ConfidenceGradient
    from fastal.criteria.confidence import confidences as confidences
    from fastal.criteria.experiments import CrossValidation as CrossValidation
    from fastal.criteria.experiments import GroundTruth as GroundTruth
    from fastal.criteria.experiments import MaxVariance as MaxVariance
    from fastal.criteria.experiments import PACBayes as PACBayes
    from fastal.criteria.experiments import cross_validation_error as cross_validation_error
    from fastal.criteria.experiments import expected_loss as expected_loss
    from fastal.criteria.experiments import expected_losses as expected_losses
    from fastal.criteria.experiments import max_variances as max_variances
    from fastal.criteria.experiments import pac_bayes_bound as pac_bayes_bound
    from fastal.criteria.experiments import pac_bayes_bounds as pac_bayes_bounds
    from fastal.criteria.finished_run import Record as Record
    from fastal.criteria.finished_run import prior_loss as prior_loss
    from fastal.criteria.held_out import LeaveOneOut as LeaveOneOut
    from fastal.criteria.held_out import leave_one_out as leave_one_out
    from fastal.criteria.measures import cohen_kappa as cohen_kappa
    from fastal.criteria.measures import crossing_counts as crossing_counts
    from fastal.criteria.measures import delta_f as delta_f
    from fastal.criteria.measures import entropies as entropies
    from fastal.criteria.measures import error_gap as error_gap
    from fastal.criteria.measures import first_crossing as first_crossing
    from fastal.criteria.measures import share_changed as share_changed
    from fastal.criteria.predictions import ClassificationChange as ClassificationChange
    from fastal.criteria.predictions import DeltaFScore as DeltaFScore
    from fastal.criteria.predictions import ErrorStability as ErrorStability
    from fastal.criteria.predictions import MaxUncertainty as MaxUncertainty
    from fastal.criteria.predictions import OverallUncertainty as OverallUncertainty
    from fastal.criteria.predictions import StabilizingPredictions as StabilizingPredictions

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "experiments": (
            "CrossValidation GroundTruth MaxVariance PACBayes cross_validation_error "
            "expected_loss expected_losses max_variances pac_bayes_bound pac_bayes_bounds"
        ),
        "confidence": "ConfidenceDrop ConfidenceGradient confidences",
        "predictions": (
            "ClassificationChange DeltaFScore ErrorStability MaxUncertainty OverallUncertainty "
            "StabilizingPredictions"
        ),
        "measures": (
            "cohen_kappa crossing_counts delta_f entropies error_gap first_crossing share_changed"
        ),
        "finished_run": "Record prior_loss",
        "held_out": "LeaveOneOut leave_one_out",
    },
)
