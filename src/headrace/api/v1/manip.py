"""``tf.manip``: rearranging."""


# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.gathering import gather_nd, scatter_nd
from headrace.ops.array.padding import tile
from headrace.ops.array.reversing import reverse, roll
from headrace.ops.array.space_to_depth import batch_to_space_nd, space_to_batch_nd

__all__ = [
    "batch_to_space_nd", "gather_nd", "reshape", "reverse", "roll", "scatter_nd",
    "space_to_batch_nd", "tile",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("manip", __name__)
