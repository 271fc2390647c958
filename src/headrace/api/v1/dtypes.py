"""``tf.dtypes``: types."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.core.dtypes import (
    as_dtype, bfloat16, bool, complex128, complex64, double, DType, float16, float32, float64,
    half, int16, int32, int64, int8, qint16, qint32, qint8, QUANTIZED_DTYPES, quint16, quint8,
    resource, string, uint16, uint32, uint64, uint8, variant,
)
from headrace.ops.array.casting import cast, complex, saturate_cast
from headrace.ops.strings.string_numbers import as_string

__all__ = [
    "as_dtype", "as_string", "bfloat16", "bool", "cast", "complex", "complex128", "complex64",
    "double", "DType", "float16", "float32", "float64", "half", "int16", "int32", "int64",
    "int8", "qint16", "qint32", "qint8", "QUANTIZED_DTYPES", "quint16", "quint8", "resource",
    "saturate_cast", "string", "uint16", "uint32", "uint64", "uint8", "variant",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("dtypes", __name__)
