"""What a person may see of long work: one progress bar (of tqdm, or none), and messages."""

from __future__ import annotations

import logging
from typing import Any, Self

# Messages of the library: silent until somebody listens. Only what happens seldom is told (how a
# campaign ended, a fit of hyper-parameters, a simulation), never a bound.
logger = logging.getLogger("fastal")
logger.addHandler(logging.NullHandler())


class ProgressBar:
    """A tqdm bar over labels or runs; does nothing, and imports nothing, unless it is wanted.

    Parameters
    ----------
    wanted : bool
        Whether to show a bar.
    total : int
        Number of steps in all.
    done : int
        Steps that were done before.
    unit : str
        What a step is: "label" or "run".
    """

    def __init__(self, wanted: bool, total: int, done: int = 0, *, unit: str) -> None:
        self._bar: Any = None
        if wanted:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, initial=done, unit=unit)

    @property
    def shown(self) -> bool:
        """Whether there is a bar; without one, no note need be made."""
        return self._bar is not None

    def advance(self, steps: int = 1, note: str | None = None) -> None:
        """Move the bar on.

        Parameters
        ----------
        steps : int
            Steps that have been done since the last call.
        note : str, optional
            A text to show beside the bar, such as the current p-value.
        """
        if self._bar is None:
            return
        if note is not None:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
