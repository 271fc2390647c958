"""``tf.compat`` of the v2 API, with ``tf.compat.v1`` and ``tf.compat.v2``."""

import typing as _typing

from headrace.api import v1, v2
from headrace.api.v1.compat import (
    as_bytes,
    as_str,
    as_str_any,
    as_text,
    bytes_or_text_types,
    complex_types,
    dimension_at_index,
    dimension_value,
    forward_compatibility_horizon,
    forward_compatible,
    integral_types,
    path_to_str,
    real_types,
)
from headrace.api.v2.name_lookup import module_getattr

__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
    "dimension_at_index", "dimension_value", "forward_compatibility_horizon", "forward_compatible",
    "integral_types", "path_to_str", "real_types", "v1", "v2",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("compat", __name__)
