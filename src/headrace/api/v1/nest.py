"""``tf.nest``: nested structures."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack_sequence_as,
)

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("nest", __name__)
