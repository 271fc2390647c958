"""IndexedSlices.

Rows of a tensor, as the gradient of a gather produces them; and the value of a sparse tensor.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from headrace.core.dtypes import DType
from headrace.core.shapes import Shape, TensorShape
from headrace.core.tensor import Operation, Tensor

__all__ = ["IndexedSlices", "SparseTensorValue"]

#: What a fetched SparseTensor gives.
SparseTensorValue = namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])
SparseTensorValue.__doc__ = """A sparse tensor as arrays: fetched from, or fed for, a SparseTensor.

    ``indices`` is [n, rank] int64, ``values`` has n elements, ``dense_shape`` rank elements.
    """


class IndexedSlices:
    """``dense[indices[i]] = values[i]``, everything else zero; repeated indices add up.

    The gradient of a lookup of rows, as ``tf.gradients`` gives it: optimizers update only these
    rows. ``values`` is [n, …], ``indices`` [n] integers of rows; ``dense_shape`` may be missing.
    ``tf.convert_to_tensor`` makes a dense tensor of it.

        values, indices = tf.constant([[1.0], [2.0]]), tf.constant([0, 0])
        slices = tf.IndexedSlices(values, indices, tf.constant([2, 1]))
        tf.convert_to_tensor(slices)  # [[3.0], [0.0]]
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        return self._dense_shape

    @property
    def name(self) -> str:
        return self._values.name

    @property
    def device(self) -> str:
        return self._values.device

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def graph(self) -> Any:
        return self._values.graph

    @property
    def shape(self) -> TensorShape:
        from headrace.core.shapes import from_plain

        return from_plain(self._shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    # what gradient functions ask a tensor, before an operation makes one of the slices
    @property
    def _dtype(self) -> DType:
        return self._values._dtype

    @property
    def _shape(self) -> Shape:
        from headrace.core.infer import partial_shape

        return None if self._dense_shape is None else partial_shape(self._dense_shape)

    def _rank(self) -> int | None:
        shape = self._shape
        return None if shape is None else len(shape)

    @property
    def _graph_anchor(self) -> Tensor:
        return getattr(self._values, "_graph_anchor", self._values)  # (values may be a variable)

    # as a structure (core/nest.py with expand_composites)
    def _to_components(self) -> tuple[Tensor, ...]:
        parts = (self._values, self._indices)
        return parts if self._dense_shape is None else (*parts, self._dense_shape)

    def _from_components(self, tensors: Sequence[Tensor]) -> IndexedSlices:
        return IndexedSlices(*tensors)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __str__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    __repr__ = __str__
