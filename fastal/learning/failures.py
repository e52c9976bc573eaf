"""What the status of a kernel means, as an exception: the only place that says it."""

from __future__ import annotations

import numpy as np

from fastal._core.ended import BROKEN


def failure(status: int, of: str = "") -> Exception:
    """Return the exception for a label that could not be taken.

    Parameters
    ----------
    status : int
        From a kernel: the number of the label at which the factor breaks down, minus that of a
        label that is too far off, or `BROKEN`.
    of : str
        Whose label it is, such as " of run 3" or " (point 17)".

    Returns
    -------
    Exception
        To be raised or recorded.
    """
    if status == BROKEN:
        return RuntimeError(
            f"the state of the selection is damaged{of}: this is an error in fastal"
        )
    if status < 0:
        return ValueError(
            f"label {-status}{of} is too far from what the prior can explain: centre and scale "
            "the labels, or set `mean` and `amplitude` of the process"
        )
    return np.linalg.LinAlgError(
        f"the factor breaks down at label {status}{of}: its point repeats others to the last "
        "digit; increase the noise variance or leave out duplicates"
    )
