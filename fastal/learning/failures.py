"""What the status of a kernel means, as an exception."""

from __future__ import annotations

from typing import NoReturn

import numpy as np


def _fail(status: int, index: int, y: float) -> NoReturn:
    if status < 0:
        raise ValueError(
            f"the label {y} of point {index} is too far from what the prior can explain: centre "
            "and scale the labels, or set `mean` and `amplitude` of the process"
        )
    raise np.linalg.LinAlgError(
        f"the factor breaks down at label {status} (point {index}): the point repeats others to "
        "the last digit; increase the noise variance or leave out duplicates"
    )
