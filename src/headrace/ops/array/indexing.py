"""What ``tensor[...]`` does: the index as one StridedSlice, or as boolean_mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor, make_const
from headrace.core.dtypes import as_dtype
from headrace.core.graph import Graph, get_default_graph
from headrace.core.scopes import name_scope
from headrace.core.shapes import Dimension
from headrace.core.tensor import Tensor
from headrace.ops.array.slicing import STRIDED_SLICE, _attach_assign, _py_slice

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.variables.variable import Variable

__all__ = ["slice_helper"]


class _Spec:
    """``begin``, ``end``, ``strides`` and masks of one ``tensor[...]``."""

    __slots__ = (
        "begin",
        "begin_mask",
        "ellipsis_mask",
        "end",
        "end_mask",
        "new_axis_mask",
        "shrink_axis_mask",
        "strides",
    )

    def __init__(self, items: Sequence[Any]) -> None:
        self.begin: list[Any] = []
        self.end: list[Any] = []
        self.strides: list[Any] = []
        self.begin_mask = self.end_mask = self.ellipsis_mask = self.new_axis_mask = (
            self.shrink_axis_mask
        ) = 0
        for i, item in enumerate(items):
            self._add(item, 1 << i)

    def _add(self, item: Any, bit: int) -> None:
        if isinstance(item, _py_slice):
            self._add_slice(item, bit)
        elif item is Ellipsis:
            if self.ellipsis_mask:
                raise ValueError("Multiple ellipses not allowed")
            self._append(0, 0, 1)
            self.ellipsis_mask = bit
        elif item is None:
            self._append(0, 0, 1)
            self.new_axis_mask |= bit
        else:
            item = _index(item)
            self._append(item, item + 1, 1)
            self.shrink_axis_mask |= bit

    def _add_slice(self, item: Any, bit: int) -> None:
        first, last = _bound(item.start), _bound(item.stop)
        if first is None:
            self.begin_mask |= bit
        if last is None:
            self.end_mask |= bit
        step = _bound(item.step)
        self._append(
            0 if first is None else first, 0 if last is None else last, 1 if step is None else step
        )

    def _append(self, begin: TensorLike, end: int | Tensor, step: object) -> None:
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(step)


def _bound(value: TensorLike | None) -> Any:
    if value is None or type(value) is int or isinstance(value, Tensor):
        return value
    if isinstance(value, Dimension):
        return value.value
    return _index(value)


def _index(value: object) -> Any:
    """An index as an int or an integer tensor.

    TypeError for everything that TF 1.15 does not take.
    """
    if type(value) is int:
        return value
    if not isinstance(value, Tensor) and getattr(value, "_as_graph_element", None) is not None:
        value = convert_to_tensor(value)
    if isinstance(value, Tensor):
        if value._dtype._base._kind not in "iu" or value._rank() not in (0, None):
            raise TypeError(_BAD_INDEX.format(value))
        return value
    if isinstance(value, Dimension):
        return value.value
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(_BAD_INDEX.format(repr(value)))
    try:
        return value.__index__()
    except TypeError:
        raise TypeError(_BAD_INDEX.format(repr(value))) from None


_BAD_INDEX = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid "
    "indices, got {}. For a mask use tf.boolean_mask, for a list of rows tf.gather."
)


def slice_helper(tensor: TensorLike, slice_spec: object, var: Variable | None = None) -> Tensor:
    """``tensor[slice_spec]``; a boolean tensor or array is a mask."""
    if _is_mask(slice_spec):
        from headrace.ops.array.masking import boolean_mask

        return boolean_mask(tensor, slice_spec)
    items = slice_spec if isinstance(slice_spec, (list, tuple)) else (slice_spec,)
    spec = _Spec(items)
    tensor = tensor if isinstance(tensor, Tensor) else convert_to_tensor(tensor)
    graph: Graph = tensor._op.graph
    if graph._is_eager:  # the tensor has no graph of its own: it is used here
        graph = get_default_graph()
    scope = graph.unique_name("strided_slice")
    parts = _packed_parts(graph, spec, scope)
    masks = {
        "begin_mask": spec.begin_mask,
        "end_mask": spec.end_mask,
        "ellipsis_mask": spec.ellipsis_mask,
        "new_axis_mask": spec.new_axis_mask,
        "shrink_axis_mask": spec.shrink_axis_mask,
    }
    out = apply(STRIDED_SLICE, tensor, *parts, name=scope + "/", **masks)
    if var is not None:
        _attach_assign(out, var, parts[0], parts[1], parts[2], masks)
    return out


def _is_mask(spec: object) -> bool:
    if isinstance(spec, Tensor):
        return spec._dtype._base is dtypes.bool
    return spec is True or spec is False or (isinstance(spec, np.ndarray) and spec.dtype == bool)


def _packed_parts(graph: Graph, spec: _Spec, scope: str) -> list[Tensor]:
    tensors = [
        v for part in (spec.begin, spec.end, spec.strides) for v in part if isinstance(v, Tensor)
    ]
    names = (f"{scope}/stack", f"{scope}/stack_1", f"{scope}/stack_2")
    lists = (spec.begin, spec.end, spec.strides)
    if not tensors:
        kind = dtypes.int32 if all(_fits(v) for part in lists for v in part) else dtypes.int64
        return [
            make_const(graph, np.array(part, kind.np_dtype), kind, graph._unique(name))
            for part, name in zip(lists, names)
        ]
    wide = any(t._dtype._base is dtypes.int64 for t in tensors)
    dtype = dtypes.int64 if wide else dtypes.int32
    with name_scope(scope + "/", values=tensors[:1]):
        return [
            _packed(part, name, dtype) for part, name in zip(lists, ("stack", "stack_1", "stack_2"))
        ]


def _fits(value: object) -> bool:
    """Whether a border of a slice is a number of int32."""
    return not isinstance(value, (int, np.integer)) or bool(-(2**31) <= value < 2**31)


def _packed(part: list[Any], name: str, dtype: DType) -> Tensor:
    items = [
        apply_op("Cast", v, DstT=dtype)
        if isinstance(v, Tensor) and v._dtype._base is not dtype
        else v
        for v in part
    ]
    return convert_to_tensor(items, as_dtype(dtype), name)
