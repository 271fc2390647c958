"""Tensors to and from other array libraries, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.core import dtypes
from headrace.eager.eager_tensor import EagerTensor, wrap

__all__ = ["from_dlpack", "to_dlpack"]


class _Capsule:
    """NumPy takes only objects with the protocol's methods; older code passes bare capsules."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # main memory


def to_dlpack(tf_tensor: object) -> Any:
    """A DLPack capsule with a copy of the tensor's value."""
    if not isinstance(tf_tensor, EagerTensor):
        raise TypeError("The argument to `to_dlpack` must be a TF tensor, not Python object")
    return tf_tensor.__dlpack__()


def from_dlpack(dlcapsule: object) -> EagerTensor:
    """A tensor with the value of a capsule, or of any array that has ``__dlpack__``."""
    source = dlcapsule if hasattr(dlcapsule, "__dlpack__") else _Capsule(dlcapsule)
    array = np.array(np.from_dlpack(source))  # a copy: nothing else can change a tensor
    return wrap(array, dtypes.FROM_NUMPY[array.dtype])
