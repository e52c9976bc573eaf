"""A table's columns standardised, and a process fitted to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastal._types import Array, Ints
    from fastal.cli.table import Table
    from fastal.models.gp import GaussianProcess

FIT_ROWS = 1000  # of the paper's protocol


class Scaling(NamedTuple):
    """What brings columns to mean 0 and variance 1."""

    low: Any
    width: Any
    mean: Any
    deviation: Any

    @classmethod
    def of(cls, file: str, columns: Array, names: Sequence[str]) -> Scaling:
        """Return the scaling of these columns; a TableError names one whose range overflows."""
        import numpy as np

        from fastal.cli.table import TableError

        # By the range first: squares of very large or very small numbers would not be finite or 0.
        low = columns.min(axis=0)
        with np.errstate(over="ignore"):
            width = np.ptp(columns, axis=0)
        if not np.isfinite(width).all():
            bad = names[int(np.argmin(np.isfinite(width)))]
            raise TableError(f"{file}: column {bad!r}: the range of its values is not finite")
        scaled = (columns - low) / width
        return cls(low, width, scaled.mean(axis=0), scaled.std(axis=0))

    def __call__(self, columns: Array) -> Array:
        """Return columns on this scale; those of another table may not be finite on it."""
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):
            scaled: Array = ((columns - self.low) / self.width - self.mean) / self.deviation
        return scaled


class Unit(NamedTuple):
    """What brings a standardised target back to its own units."""

    mean: float
    deviation: float


def standardise_table(file: str, table: Table) -> tuple[Array, Array, Unit]:
    """Return features and target with mean 0 and variance 1, and the unit of the target."""
    import numpy as np

    columns = np.column_stack((table.X, table.y))
    scaling = Scaling.of(file, columns, (*table.features, table.target))
    columns = scaling(columns)
    width = float(scaling.width[-1])
    mean = float(scaling.low[-1] + scaling.mean[-1] * width)
    return columns[:, :-1], columns[:, -1], Unit(mean, float(scaling.deviation[-1]) * width)


def draw_fit_rows(n: int, seed: int) -> Ints:
    """Return at most `FIT_ROWS` of n rows, at random."""
    import numpy as np

    rows: Ints = np.random.default_rng(seed).permutation(n)[:FIT_ROWS]
    return rows


def fit_process(X: Array, y: Array, *, seed: int = 0, **given: float) -> GaussianProcess:
    """Return a process whose parameters suit these rows; those that are given stay as they are."""
    from fastal.models.gp import GaussianProcess

    if len(given) == 2:  # length scale and noise: nothing to fit
        return GaussianProcess(given["lengthscale"], given["noise"])
    bounds = {name: (value, value) for name, value in given.items()}
    fit = GaussianProcess().fit_hyperparameters(X, y, bounds=bounds, seed=seed)
    # Exactly what was asked for: the search works on logarithms.
    found: dict[str, Any] = {"lengthscale": fit.lengthscale, "noise": fit.noise}
    return GaussianProcess(**found | given)
