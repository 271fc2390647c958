"""What TensorFlow's registry says about attributes beyond their signature, from op_limits.txt.

A line of the file is a fact and the attributes that it holds for: ``missing uint32 uint64: Assign.T
AssignAdd.T``. Facts: ``types`` (exactly these are allowed), ``missing`` (allowed, but no kernel
takes them), ``unimplemented`` (the kernel refuses them), ``least`` (of a number, or of a list's
length) and ``strings`` (separated by ``|``). tools/op_limits.py makes the file.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from headrace.core import dtypes

__all__ = ["are_enforced", "enforce", "limits_of"]

_enforced = [True]


def enforce(on: bool) -> None:
    """The limits are TensorFlow 1.15's: they hold under TF 1's behaviour, not under TF 2's."""
    _enforced[0] = on


def are_enforced() -> bool:
    return _enforced[0]


def limits_of(op_type: str, attr: str) -> dict[str, Any]:
    """Fields of :class:`Attr` for an attribute.

    Allowed, missing, unimplemented, least, strings; {} where nothing is known.
    """
    return _table().get(f"{op_type}.{attr}", {})


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    path = os.path.join(os.path.dirname(__file__), "op_limits.txt")
    with open(path, encoding="ascii") as f:
        for line in f:
            if line.startswith("#"):
                continue
            fact, _, attrs = line.partition(":")
            field, value = _field(*fact.split(" ", 1))
            for attr in attrs.split():
                table.setdefault(attr, {})[field] = value
    return table


def _field(kind: str, value: str) -> tuple[str, Any]:
    if kind == "least":
        return "least", int(value)
    if kind == "strings":
        return "strings", tuple(value.split("|"))
    types = frozenset(dtypes.as_dtype(n) for n in value.split())
    return ("allowed" if kind == "types" else kind), types
