"""``tf.ragged``: tensors whose rows differ in length."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.ragged.ragged_factories import (
    constant,
    map_flat_values,
    placeholder,
    range,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
)
from headrace.ops.ragged.ragged_shaping import boolean_mask, stack, stack_dynamic_partitions
from headrace.ops.ragged.ragged_value import RaggedTensorValue, constant_value

__all__ = [
    "RaggedTensorValue",
    "boolean_mask",
    "constant",
    "constant_value",
    "map_flat_values",
    "placeholder",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("ragged", __name__)
