"""ConcatOffset's kernel: where each of several tensors begins in their concatenation.

concat_offset_kernel(xp, np.array(1), np.array([2, 3]), np.array([2, 7]))  # [0, 0], [0, 3]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shapes

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["concat_offset_kernel"]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def concat_offset_kernel(xp: ArrayNamespace, axis: Array, *dims: Array) -> tuple[Any, ...] | Array:
    if axis.ndim:
        raise _invalid(
            f"Concat dim tensor should be a scalar integer, but got shape {shapes.show(axis.shape)}"
        )
    at = axis.item()
    for i, d in enumerate(dims):
        if d.ndim != 1:
            raise _invalid(f"input {i} should be a vector, but got shape {shapes.show(d.shape)}")
    rank = dims[0].size
    if not -rank <= at < rank:
        raise _invalid(f"Concat dim is out of range: {at} vs. {rank}")
    out, offset = [], 0
    for i, d in enumerate(dims):
        if d.size != rank:
            raise _invalid(f"input {i} should contain {rank} elements, but got {d.size}")
        if any(a != b for j, (a, b) in enumerate(zip(dims[0], d)) if j != at % rank):
            first, other = (" ".join(map(str, x.tolist())) for x in (dims[0], d))
            raise _invalid(
                f"All dimensions except {at % rank} must match. Input {i} has shape "
                f"[{other}] and doesn't match input 0 "
                f"with shape [{first}]."
            )
        start = np.zeros(rank, np.int32)
        start[at] = offset
        offset += int(d[at])
        out.append(start)
    return tuple(out) if len(out) > 1 else out[0]
