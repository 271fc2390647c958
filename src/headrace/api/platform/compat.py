"""``tf.compat``: text and bytes, number types, dimensions, and the two API versions."""

from __future__ import annotations

import datetime
import numbers
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.shapes import Dimension, TensorShape, dimension_value

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
    "dimension_at_index", "dimension_value", "forward_compatibility_horizon", "forward_compatible",
    "integral_types", "path_to_str", "real_types",
]  # fmt: skip

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)

_HORIZON = datetime.date(2019, 12, 31)  # TF 1.15 promises nothing beyond the year it came out in


def as_bytes(bytes_or_text: TensorLike, encoding: str = "utf-8") -> bytes:
    """Text encoded with ``encoding``; bytes are returned as they are.

    Anything else is a TypeError.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: TensorLike, encoding: str = "utf-8") -> str:
    """Bytes decoded with ``encoding``; text is returned as it is (also ``as_str``).

    Anything else is a TypeError.
    """
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: TensorLike) -> str:
    """Bytes as text, anything else as ``str`` gives it."""
    return as_str(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: object) -> Any:
    """An object with ``__fspath__`` (``pathlib.Path``) as text; other values unchanged."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """A dimension that can be asked of unknown shapes too."""
    return Dimension(None) if shape.dims is None else shape.dims[index]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """True if the date lies before this version's horizon.

    TensorFlow's own code asks it before it writes a feature that older readers would not know.
    """
    return datetime.date(year, month, day) < _HORIZON


def forward_compatibility_horizon(year: int, month: int, day: int) -> Any:
    """Accepted for programs that set it; nothing here depends on a date.

    A context manager. TensorFlow's makes operations whose newer form appeared after the date
    ``year``, ``month``, ``day``; Headrace makes the same operations at any date.
    """
    import contextlib

    return contextlib.nullcontext()
