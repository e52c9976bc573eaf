"""UserError: wrong use or bad input, in one line."""

from __future__ import annotations


class UserError(Exception):
    """Wrong use or bad input: the message is all that the user gets to see."""
