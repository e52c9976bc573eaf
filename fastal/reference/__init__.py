"""Slow twins of what is fast elsewhere: obviously right, NumPy and the standard library only."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.reference.bound import alquier_bound as alquier_bound
    from fastal.reference.bound import bound_constant as bound_constant
    from fastal.reference.bound import gaussian_kl as gaussian_kl
    from fastal.reference.bound import gp_bounds as gp_bounds
    from fastal.reference.bound import gp_kl as gp_kl
    from fastal.reference.bound import gp_prior_kl as gp_prior_kl
    from fastal.reference.bound import mcallester_bound as mcallester_bound
    from fastal.reference.campaign import Campaign as Campaign
    from fastal.reference.campaign import weak_maximum as weak_maximum
    from fastal.reference.criteria import confidence_drop_stop as confidence_drop_stop
    from fastal.reference.criteria import confidence_gradient_stop as confidence_gradient_stop
    from fastal.reference.criteria import cross_validation_error as cross_validation_error
    from fastal.reference.criteria import error_stability_stop as error_stability_stop
    from fastal.reference.criteria import expected_loss as expected_loss
    from fastal.reference.criteria import max_uncertainty_stop as max_uncertainty_stop
    from fastal.reference.criteria import overall_uncertainty_stop as overall_uncertainty_stop
    from fastal.reference.criteria import pac_bayes_bound as pac_bayes_bound
    from fastal.reference.criteria import (
        stabilizing_predictions_stop as stabilizing_predictions_stop,
    )
    from fastal.reference.learning import select as select
    from fastal.reference.lookahead import forecast as forecast
    from fastal.reference.lookahead import forecast_loop as forecast_loop
    from fastal.reference.lookahead import forecast_rmse as forecast_rmse
    from fastal.reference.models import BayesianLogistic as BayesianLogistic
    from fastal.reference.models import GaussianProcess as GaussianProcess
    from fastal.reference.models import LaplaceClassifier as LaplaceClassifier
    from fastal.reference.models import dense_posterior as dense_posterior
    from fastal.reference.models import weak_log_posterior as weak_log_posterior
    from fastal.reference.runs import count_runs as count_runs
    from fastal.reference.runs import fell as fell
    from fastal.reference.runs import labels as labels
    from fastal.reference.runs import runs_arrangements as runs_arrangements
    from fastal.reference.runs import runs_cdf as runs_cdf
    from fastal.reference.runs import runs_p_value as runs_p_value
    from fastal.reference.runs import runs_pmf as runs_pmf
    from fastal.reference.runs import runs_test as runs_test
    from fastal.reference.runs import stopping_time as stopping_time
    from fastal.reference.simulation import simulate as simulate
    from fastal.reference.stopping import levels as levels
    from fastal.reference.stopping import still_stop as still_stop
    from fastal.reference.stopping import still_to_come as still_to_come

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "runs": "runs_arrangements runs_pmf runs_cdf labels count_runs fell runs_test runs_p_value "
        "stopping_time",
        "bound": "gp_kl gp_bounds bound_constant gaussian_kl gp_prior_kl alquier_bound "
        "mcallester_bound",
        "models": "BayesianLogistic GaussianProcess LaplaceClassifier dense_posterior "
        "weak_log_posterior",
        "criteria": (
            "confidence_drop_stop confidence_gradient_stop "
            "expected_loss cross_validation_error pac_bayes_bound stabilizing_predictions_stop "
            "overall_uncertainty_stop max_uncertainty_stop error_stability_stop"
        ),
        "learning": "select",
        "campaign": "Campaign weak_maximum",
        "simulation": "simulate",
        "lookahead": "forecast forecast_loop forecast_rmse",
        "stopping": "still_to_come still_stop levels",
    },
)
