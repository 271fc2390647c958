"""``tf.compat``, with ``tf.compat.v1`` being this API itself."""

import typing as _typing

from headrace.api import v1
from headrace.api.missing import module_getattr
from headrace.api.platform.compat import (
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

__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
    "dimension_at_index", "dimension_value", "forward_compatibility_horizon", "forward_compatible",
    "integral_types", "path_to_str", "real_types", "v1",
]  # fmt: skip

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api import v2 as v2
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("compat", __name__, modules={"v2": "headrace.api.v2"})
