"""Matrix products through ``dnnl_sgemm``.

Any shape, nothing to prepare, transposed views as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.onednn.onednn_library import Api
from headrace.kernels.onednn.primitive import FLOAT32
from headrace.kernels.onednn.product_choices import Choices
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["better_as_primitive", "better_swapped", "few_rows", "matmul"]


def _layout(x: Array) -> tuple[bytes, int] | None:
    """("N" or "T", leading dimension) of a float32 matrix; None if it is neither."""
    outer, inner = x.strides
    if inner == 4 and outer >= 4 * x.shape[1] and outer % 4 == 0:
        return b"N", outer // 4
    if outer == 4 and inner >= 4 * x.shape[0] and inner % 4 == 0:
        return b"T", inner // 4
    return None


def better_swapped(a: Array, b: Array, choices: Choices) -> bool:
    """Whether (b.T @ a.T).T, turned round afterwards, is faster: few rows times a large transposed
    matrix, as in the gradient of a dense layer's input.
    """
    few = a.shape[0] <= choices.few
    return bool(few and b.strides[0] == 4 < b.strides[1] and b.size >= choices.large)


def better_as_primitive(a: Array, b: Array, choices: Choices) -> bool:
    """Whether a transposed left side, which is large, is faster by the primitive."""
    transposed = choices.transposed and a.strides[0] == 4 < a.strides[1]
    return bool(transposed and a.shape[0] >= max(1024, 2 * b.shape[1]) and a.shape[1] >= 256)


def few_rows(api: Api, a: Array, b: Array, bias: Array) -> Array | None:
    """``a @ b + bias`` (which may be None) for so few rows that what is around the call counts.

    None where it cannot.
    """
    flags = b.flags
    if a.dtype is not FLOAT32 or b.dtype is not FLOAT32 or not a.flags.c_contiguous:
        return None
    if flags.c_contiguous:
        kind, leading = b"N", b.shape[1]
    elif flags.f_contiguous:
        kind, leading = b"T", b.shape[0]
    else:
        return None
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), np.float32)
    if bias is not None:
        out[...] = bias
    buffer = api.ffi.from_buffer
    right = b if kind == b"N" else b.T
    status = api.c.dnnl_sgemm(
        b"N",
        kind,
        m,
        n,
        k,
        1.0,
        buffer("float[]", a),
        k,
        buffer("float[]", right),
        leading,
        0.0 if bias is None else 1.0,
        buffer("float[]", out),
        n,
    )
    return out if status == 0 else None


def matmul(api: Api, a: Array, b: Array, out: Array, accumulate: bool = False) -> Array | None:
    """``a @ b`` (or ``out += a @ b``) for float32 matrices.

    None where oneDNN cannot take them as they lie.
    """
    left, right = _layout(a), _layout(b)
    if left is None or right is None:
        return None
    m, k = a.shape
    n = b.shape[1]
    if out is None:
        out = buffers.empty((m, n), np.float32)
    elif not out.flags.c_contiguous:
        return None
    pointer = api.pointer
    status = api.c.dnnl_sgemm(
        left[0],
        right[0],
        m,
        n,
        k,
        1.0,
        pointer(a, "float*"),
        left[1],
        pointer(b, "float*"),
        right[1],
        1.0 if accumulate else 0.0,
        pointer(out, "float*"),
        n,
    )
    return out if status == 0 else None
