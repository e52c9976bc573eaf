"""Slow twins of what is fast in fastal: obviously right, NumPy and the standard library only.

They share no code with fastal, and check nothing.
"""

from twins.bound import alquier_bound as alquier_bound
from twins.bound import bound_constant as bound_constant
from twins.bound import gaussian_kl as gaussian_kl
from twins.bound import gp_bounds as gp_bounds
from twins.bound import gp_kl as gp_kl
from twins.bound import gp_prior_kl as gp_prior_kl
from twins.bound import mcallester_bound as mcallester_bound
from twins.campaign import Campaign as Campaign
from twins.campaign import weak_maximum as weak_maximum
from twins.criteria import confidence_drop_stop as confidence_drop_stop
from twins.criteria import confidence_gradient_stop as confidence_gradient_stop
from twins.criteria import cross_validation_error as cross_validation_error
from twins.criteria import error_stability_stop as error_stability_stop
from twins.criteria import expected_loss as expected_loss
from twins.criteria import max_uncertainty_stop as max_uncertainty_stop
from twins.criteria import overall_uncertainty_stop as overall_uncertainty_stop
from twins.criteria import pac_bayes_bound as pac_bayes_bound
from twins.criteria import stabilizing_predictions_stop as stabilizing_predictions_stop
from twins.learning import select as select
from twins.models import GaussianProcess as GaussianProcess
from twins.models import LaplaceClassifier as LaplaceClassifier
from twins.models import weak_log_posterior as weak_log_posterior
from twins.runs import count_runs as count_runs
from twins.runs import fell as fell
from twins.runs import labels as labels
from twins.runs import runs_arrangements as runs_arrangements
from twins.runs import runs_cdf as runs_cdf
from twins.runs import runs_p_value as runs_p_value
from twins.runs import runs_pmf as runs_pmf
from twins.runs import runs_test as runs_test
from twins.runs import stopping_time as stopping_time
from twins.simulation import simulate as simulate
from twins.stopping import levels as levels
from twins.stopping import movement_left as movement_left
from twins.stopping import still_stop as still_stop
