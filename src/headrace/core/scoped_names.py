"""Names of operations and tensors outside of a scope that they are in, and below another.

>>> strip_name_scope("^hidden/w:0", "hidden"), prepend_name_scope("loc:@w", "again")
('^w:0', 'loc:@again/w')
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["prepend_name_scope", "strip_name_scope"]


def strip_name_scope(name: str, export_scope: str | None) -> Any:
    """A name without the scope.

    ``hidden/w:0`` is ``w:0`` outside of ``hidden``. Control inputs and ``loc:@`` keep their mark.
    """
    if not export_scope:
        return name
    scope = re.escape(export_scope.rstrip("/"))
    text = name.decode() if isinstance(name, bytes) else name
    out = re.sub(rf"([\^]|loc:@|^){scope}[/]+(.*)", r"\1\2", text, count=1)
    return out.encode() if isinstance(name, bytes) else out


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """The opposite of :func:`strip_name_scope`."""
    if not import_scope:
        return name
    text = name.decode() if isinstance(name, bytes) else name
    scope = import_scope.rstrip("/")
    out = re.sub(
        r"([\^]|loc:@|^)(.*)", lambda m: f"{m.group(1)}{scope}/{m.group(2)}", text, count=1
    )
    return out.encode() if isinstance(name, bytes) else out
