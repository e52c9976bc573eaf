"""ModelSettings: parameters of a model as scikit-learn has them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from fastal import _params
from fastal import _validation as check


class ModelSettings:
    """Arguments of a model's constructor, to be read, changed, cloned and written as code."""

    # Arguments of the constructor, which are attributes too.
    _settings: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def n_labels(self) -> int:
        """Number of labels added."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor, as they are now.

        Parameters
        ----------
        deep : bool
            Accepted for scikit-learn; there is nothing deeper.

        Returns
        -------
        dict
            Argument to value.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> GaussianProcess(noise=0.1).get_params()["noise"]
        0.1
        """
        check.flag("deep", deep)
        return {name: getattr(self, name) for name in self._settings}

    def set_params(self, **params: Any) -> Self:
        """Change parameters, while there are no labels.

        Parameters
        ----------
        **params
            Parameters by their names.

        Returns
        -------
        model
            The model itself.

        Examples
        --------
        >>> from fastal import GaussianProcess
        >>> GaussianProcess().set_params(noise=0.1).noise
        0.1
        """
        known = self.get_params()
        for name in params:
            check.option("params", name, tuple(known))
        if not params:
            return self
        changed = type(self)(**(known | params))
        if self.n_labels:
            raise ValueError(
                f"parameters must not change while there are labels, got {self.n_labels} of "
                "them: `rewind(0)` first, or change those of a clone"
            )
        self._take_settings(changed)
        return self

    @abstractmethod
    def _take_settings(self, changed: Self) -> None:
        """Become what `changed` is, which has no labels."""

    def __sklearn_clone__(self) -> Self:
        """Return a model with the same parameters and no labels."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        return _params.call_text(self, self.get_params())

    def __str__(self) -> str:
        return f"{self!r} with {self.n_labels} labels"
