"""Draw docs/run.svg, the picture in the README: ``python docs/draw_run.py``.

It is what ``fastal demo --plot run.svg`` draws, but the text stays text, which makes the file
smaller, and the same numbers give the same file.
"""

import os
from pathlib import Path

import matplotlib

from fastal.cli.entry import main

PICTURE = Path(__file__).with_name("run.svg")


def draw(path):
    """Draw the picture of ``fastal demo``.

    Parameters
    ----------
    path : path
        File to write.

    Returns
    -------
    int
        The exit status of the command.
    """
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "fastal"}):
        return main(["demo", "--plot", str(path)])


if __name__ == "__main__":
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # else matplotlib writes today's date into the file
    raise SystemExit(draw(PICTURE))
