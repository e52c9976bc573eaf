"""What a Gaussian process would have predicted for each label without it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._types import Array
from fastal.criteria.label_inverses import LabelInverses
from fastal.models.gp import GaussianProcess


class LeaveOneOut(NamedTuple):
    """Predictions of labels from all the others, in the order of the labels; a value.

    Attributes
    ----------
    y : array
        The labels.
    mean, var : array
        Mean and variance of the prediction of each label, its noise included.
    """

    y: Array
    mean: Array
    var: Array

    @property
    def rmse(self) -> float:
        """Root mean square of label minus prediction."""
        return float(np.sqrt(np.mean((self.y - self.mean) ** 2)))

    def share_within(self, deviations: float = 2.0) -> float:
        """Return the share of labels so near to their predictions.

        Parameters
        ----------
        deviations : float
            How near, in standard deviations of the prediction.

        Returns
        -------
        float
            From 0 to 1; about 0.95 for two, where the model suits its labels.
        """
        near = check.zero_or_more("deviations", deviations) * np.sqrt(self.var)
        return float(np.mean(np.abs(self.y - self.mean) <= near))


def leave_one_out(gp: GaussianProcess) -> LeaveOneOut:
    """Predict each label of a process from all the others, under the same hyper-parameters.

    All of it comes from one inverse, in O(n^3).

    Parameters
    ----------
    gp : GaussianProcess
        With at least one label; it is only read.

    Returns
    -------
    LeaveOneOut
        Labels, and means and variances of their predictions.

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria import leave_one_out
    >>> gp = GaussianProcess(1.0, 0.01)
    >>> bounds = gp.add_batch([[0.0], [0.5], [1.0]], [0.0, 0.4, 0.8])
    >>> leave_one_out(gp).mean.round(2)
    array([0.04, 0.44, 0.59])
    """
    if not isinstance(gp, GaussianProcess):
        raise TypeError(f"`gp` must be a GaussianProcess, got {check.short_repr(gp)}")
    labels: Any = gp.snapshot()
    n = len(labels.y)
    if not n:
        raise ValueError("`gp` must have at least one label, got 0")
    inverses = LabelInverses().follow(labels)
    # With A = (K + N)^-1: var_i = 1 / A_ii and mean_i = y_i - (A (y - m))_i / A_ii
    var = 1.0 / np.diagonal(inverses.inverses[0, :n, :n])
    return LeaveOneOut(labels.y, labels.y - inverses.alpha[:n] * var, var)
