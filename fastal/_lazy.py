"""The doors of the rooms: what a room offers, imported when it is first asked for (PEP 562)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def attach(
    room: str, offers: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a room.

    Parameters
    ----------
    room : str
        Name of the package.
    offers : dict
        Module of the room to the names, separated by blanks, that others may take from it.

    Returns
    -------
    tuple
        For the room's ``__init__``.
    """
    homes = {name: module for module, names in offers.items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        package = importlib.import_module(room)
        value = getattr(importlib.import_module(f"{room}.{homes[name]}"), name)
        setattr(package, name, value)
        return value

    def listed() -> list[str]:
        return sorted(homes)

    return look_up, listed, listed()
