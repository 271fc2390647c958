"""``tf.sets``: set operations on rows, with TF 2's names."""

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.ops.sparse.set_ops import (
    set_difference as difference,
)
from headrace.ops.sparse.set_ops import (
    set_intersection as intersection,
)
from headrace.ops.sparse.set_ops import (
    set_size as size,
)
from headrace.ops.sparse.set_ops import (
    set_union as union,
)

__all__ = ["difference", "intersection", "size", "union"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("sets", __name__)
