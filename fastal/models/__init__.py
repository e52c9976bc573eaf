"""Models that grow label by label and give each label's bound."""

from typing import TYPE_CHECKING

from fastal._lazy import attach

if TYPE_CHECKING:
    from fastal.models.buffers import Labels as Labels
    from fastal.models.classifier import LaplaceClassifier as LaplaceClassifier
    from fastal.models.fit import Evidence as Evidence
    from fastal.models.fit import minimise_from as minimise_from
    from fastal.models.gp import GaussianProcess as GaussianProcess
    from fastal.models.gp import warn_if_far as warn_if_far
    from fastal.models.growing import FAR as FAR
    from fastal.models.model import Model as Model
    from fastal.models.posterior import PANEL as PANEL
    from fastal.models.prior import Prior as Prior
    from fastal.models.weak import WeakFit as WeakFit
    from fastal.models.weak import weak_fit as weak_fit

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "gp": "GaussianProcess warn_if_far",
        "growing": "FAR",
        "buffers": "Labels",
        "posterior": "PANEL",
        "model": "Model",
        "classifier": "LaplaceClassifier",
        "prior": "Prior",
        "fit": "Evidence minimise_from",
        "weak": "WeakFit weak_fit",
    },
)
