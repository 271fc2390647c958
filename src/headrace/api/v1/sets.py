"""``tf.sets``: set operations on rows."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.sparse.set_ops import (
    set_difference,
    set_intersection,
    set_size,
    set_union,
)

difference = set_difference
intersection = set_intersection
size = set_size
union = set_union

__all__ = [
    "difference", "intersection", "set_difference", "set_intersection", "set_size", "set_union",
    "size", "union",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("sets", __name__)
