"""Where the C interface is."""

from __future__ import annotations

import os


def get_include() -> str:
    """Return the folder of ``fastal.h``, for the include path of an extension in C or C++.

    Returns
    -------
    str
        Its path.

    Examples
    --------
    >>> import os, fastal
    >>> os.path.isfile(os.path.join(fastal.get_include(), "fastal.h"))
    True
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
