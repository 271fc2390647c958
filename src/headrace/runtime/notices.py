"""Notices of the lower rooms, for listeners above: ``session.events`` passes them on.

A kernel library cannot import the session's events. It says ``notice("native cache", why=…)``, and
the events module has put its ``emit`` into ``listeners``.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["listeners", "notice"]

listeners: list[Callable[..., None]] = []


def notice(name: str, **data: object) -> None:
    """Tell all listeners of an event."""
    for listener in listeners:
        listener(name, **data)
