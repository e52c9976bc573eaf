"""fastal in other people's loops: the bounds of labels from the model that is already there.

One call in the loop, after each fit::

    if rule.after_fit(model):
        break

The adapter is found by the class of the model; no library is imported for it. There is one for
scikit-learn (`fastal.adapters.sklearn`), modAL (`.modal`), scikit-activeml (`.skactiveml`),
GPyTorch and BoTorch (`.botorch`), scikit-optimize (`.skopt`), bayesian-optimization
(`.bayes_opt`), Ax (`.ax`), BoFire (`.bofire`), GPy (`.gpy`), Emukit (`.emukit`), GPflow
(`.gpflow`), SMT (`.smt`), OpenTURNS (`.openturns`), tinygp, george and celerite2; their pages say
which models they know. Models are asked, never changed or copied. An optimiser is asked for the
model within it; a label that this model has not seen is an error.

`bounds_of` returns the bounds of all labels of the model under the hyper-parameters that it has
now, from one factor of their covariance: what `after_fit` takes. `fastal.GaussianProcess` will do
as well.

Any other model with a Gaussian posterior takes one line more::

    mean, var = ...  # of f at x, without noise, before the label
    if rule.push(gp_kl(mean, var, y, noise)):
        break

and `fastal.gp_bounds` takes the covariance of all labels. `fastal.adapters.loops` has criteria as
the stopping rules of other libraries.
"""

from fastal.adapters.all_bounds import bounds_of

__all__ = ["bounds_of"]
