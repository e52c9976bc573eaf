"""Colours, file formats, and the check for matplotlib."""

from __future__ import annotations

# Okabe and Ito's vermilion and blue: they differ for every kind of colour vision, and in grey.
ABOVE, BELOW = "#d55e00", "#0072b2"

# Their bluish green, for lines only: among triangles of the other two its form tells it apart.
MEAN = "#009e73"

OUTSIDE = "0.6"  # bounds that the decision is not about

STOP = "black"


def file_formats() -> tuple[str, ...]:
    """Return the file name endings that `save_stopper` knows.

    Returns
    -------
    tuple of str
        In alphabetical order, without the dot.
    """
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    known = set(FigureCanvasBase.get_supported_filetypes())
    return tuple(sorted(known - {"pgf"}))  # which needs LaTeX


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib: pip install "fastal[plot]"', name="matplotlib"
        ) from error


TRUTH = "0.25"

MODEL = BELOW
