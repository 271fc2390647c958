"""``tf.bitwise``: bits."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.math.bitwise import (
    bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift,
)

__all__ = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("bitwise", __name__)
