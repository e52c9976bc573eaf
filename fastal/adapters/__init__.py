"""fastal in other people's loops: the bounds of labels from the model that is already there.

One call in the loop, after each fit::

    if stopper.recompute_from(model):
        break

The adapter is found by the class of the model; no library is imported for it. There is one for
scikit-learn (`fastal.adapters.sklearn`), modAL (`.modal`), scikit-activeml (`.skactiveml`),
GPyTorch and BoTorch (`.botorch`), scikit-optimize (`.skopt`), bayesian-optimization
(`.bayes_opt`), Ax (`.ax`), BoFire (`.bofire`), GPy (`.gpy`), Emukit (`.emukit`), GPflow
(`.gpflow`), SMT (`.smt`), OpenTURNS (`.openturns`), tinygp, george and celerite2; their pages say
which models they know. Models are asked, never changed or copied. An optimiser is asked for the
model within it; a label that this model has not seen is an error.

`recomputed` returns the bounds of all labels of the model under the hyper-parameters that it has
now, from one factor of their covariance. `fastal.GaussianProcess` will do as well.

Any other model with a Gaussian posterior takes one line more::

    mean, var = ...  # of f at x, without noise, before the label
    if stopper.update(mean, var, y, noise):
        break

and `fastal.gp_bounds` takes the covariance of all labels. `fastal.adapters.loops` has criteria as
the stopping rules of other libraries.
"""

from fastal.adapters.recompute import Recomputed, recomputed

__all__ = ["Recomputed", "recomputed"]
