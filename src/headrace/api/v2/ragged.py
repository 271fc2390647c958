"""``tf.ragged``: tensors whose rows differ in length, with TF 2's names."""

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.ops.ragged.ragged_factories import (
    constant,
    map_flat_values,
    range,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
)
from headrace.ops.ragged.ragged_shaping import boolean_mask, stack, stack_dynamic_partitions

__all__ = [
    "boolean_mask",
    "constant",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("ragged", __name__)
