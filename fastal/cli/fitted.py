"""A table's columns standardised, and a process fitted to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastal.cli.table import Table
    from fastal.models.gp import GaussianProcess


def _standardised(name: str, table: Table) -> tuple[Any, Any, float]:
    """Return features and target with mean 0 and variance 1, and the scale of the target."""
    import numpy as np

    from fastal.cli.table import TableError

    columns = np.column_stack((table.X, table.y))
    with np.errstate(over="ignore"):
        # By the range first: squares of very large or very small numbers would not be finite or 0.
        ranges = np.ptp(columns, axis=0)
    if not np.isfinite(ranges).all():
        bad = (*table.features, table.target)[int(np.argmin(np.isfinite(ranges)))]
        raise TableError(f"{name}: column {bad!r}: the range of its values is not finite")
    columns = (columns - columns.min(axis=0)) / ranges
    scales = columns.std(axis=0)
    columns = (columns - columns.mean(axis=0)) / scales
    return columns[:, :-1], columns[:, -1], float(scales[-1] * ranges[-1])


def _fitted(X: Any, y: Any, noise: float | None) -> GaussianProcess:
    from fastal.models.gp import GaussianProcess

    if noise is None:
        return GaussianProcess().fit_hyperparameters(X, y)
    fit = GaussianProcess(noise=noise)
    fit.fit_hyperparameters(X, y, bounds={"noise": (noise, noise)})
    # Exactly the noise that was asked for: the search goes by logarithms.
    return GaussianProcess(lengthscale=fit.lengthscale, noise=noise)
