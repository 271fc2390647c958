"""``contrib.memory_stats``: how much memory the process uses, as operations.

TensorFlow has these operations for GPUs only. Here they tell about the process: resident bytes
now, their peak, and how much the machine (or the container) has.
"""

from __future__ import annotations

import numpy as np

from headrace.core import shape_fns
from headrace.core.build import apply
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.tensor import Tensor
from headrace.runtime.memory_use import memory_limit, peak_bytes, resident_bytes

__all__ = ["BytesInUse", "BytesLimit", "MaxBytesInUse"]

BYTES_IN_USE = define(
    "BytesInUse",
    "-> out: int64",
    shape=shape_fns.scalar,
    kernel=lambda xp: np.int64(resident_bytes()),
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)
BYTES_LIMIT = define(
    "BytesLimit",
    "-> out: int64",
    shape=shape_fns.scalar,
    kernel=lambda xp: np.int64(memory_limit()),
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)
MAX_BYTES_IN_USE = define(
    "MaxBytesInUse",
    "-> out: int64",
    shape=shape_fns.scalar,
    kernel=lambda xp: np.int64(max(peak_bytes(), resident_bytes())),
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)


def BytesInUse() -> Tensor:
    """Resident bytes of the process when the operation runs."""
    return apply(BYTES_IN_USE)


def BytesLimit() -> Tensor:
    """Bytes that the process may use: the container's limit or the machine's memory."""
    return apply(BYTES_LIMIT)


def MaxBytesInUse() -> Tensor:
    """The most resident bytes that the process ever had."""
    return apply(MAX_BYTES_IN_USE)
