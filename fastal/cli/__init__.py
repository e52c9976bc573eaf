"""The command line, ``fastal COMMAND``; only the standard library until a command runs."""

from fastal.cli.entry import main

__all__ = ["main"]
