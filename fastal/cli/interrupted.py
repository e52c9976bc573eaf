"""What a command says after Ctrl-C: what is kept, and how to go on."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from threading import Timer

AGAIN = 0.05  # seconds


def say_interrupted(arguments: argparse.Namespace | None) -> None:
    """Print one line about what was interrupted; commands without `kept` have nothing to say.

    Parameters
    ----------
    arguments : argparse.Namespace, optional
        Those of the command; None if it was interrupted before they were read.
    """
    kept = getattr(arguments, "kept", None)
    if kept is not None and sys.stderr is not None:
        print(f"fastal: interrupted; {kept(arguments)}", file=sys.stderr, flush=True)


@contextmanager
def swallowed_interrupts() -> Iterator[list[Timer]]:
    """Hear a Ctrl-C that is lost in a callback of LLVM, while Numba compiles.

    Such a callback cannot raise: Python reports the exception and goes on, or the compilation fails
    with an error of its own. The signal is sent again a moment later, outside of the callback.

    Yields
    ------
    list of threading.Timer
        One for each signal that was lost.
    """
    before, lost = sys.unraisablehook, []

    def heard(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            before(unraisable)
            return
        from _thread import interrupt_main
        from threading import Timer

        lost.append(Timer(AGAIN, interrupt_main))
        lost[-1].start()

    sys.unraisablehook = heard
    try:
        yield lost
    finally:
        sys.unraisablehook = before
        for timer in lost:
            timer.cancel()


def kept_in_store(arguments: argparse.Namespace) -> str:
    """Say how many runs ``--store`` has, of commands that take it."""
    path = arguments.store
    if path is None:
        return "nothing is kept: --store would keep what is finished"
    from fastal.simulation.store import count_runs

    files = [path]
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if name.endswith(".sqlite"))
        files = [os.path.join(path, name) for name in names]
    number = sum(map(count_runs, files))
    if number == 0:
        return "no run was finished yet: the same command begins anew"
    runs = "1 finished run is" if number == 1 else f"{number} finished runs are"
    return f"{runs} kept in {path}: the same command goes on from there"


def kept_by_next(arguments: argparse.Namespace) -> str:
    """Say what became of ``--state``, which is written as a whole or not at all."""
    if arguments.state is None:
        return "nothing is kept: ask again"
    return f"{arguments.state} is whole, with the new labels or as it was: ask again"


def kept_at_the_end(arguments: argparse.Namespace) -> str:
    """Say that a command writes at its end, if at all."""
    options = ("out", "plot", "predictions", "report")
    if all(getattr(arguments, option, None) is None for option in options):
        return "nothing is kept: the same command begins anew"
    return "files that are not named above are missing or incomplete: run it again"
