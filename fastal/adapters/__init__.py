"""fastal in other people's loops: the bounds of labels from the model that is already there.

One call in the loop, when the label is known and **before** the model is fitted to it::

    if stopper.update_from(model, x, y):
        break

The adapter is found by the class of the model; no library is imported for it. There is one for
scikit-learn (`fastal.adapters.sklearn`), modAL (`.modal`), scikit-activeml (`.skactiveml`), and
GPyTorch and BoTorch (`.botorch`); their pages say which models they know. Models are asked, never
changed or copied.

Any other model with a Gaussian posterior takes one line more::

    mean, var = ...  # of f at x, without noise, before the label
    if stopper.update(mean, var, y, noise):
        break
"""

from fastal.adapters.dispatch import bounds_from, update_from

__all__ = ["bounds_from", "update_from"]
