"""TensorArray operations: a list of tensors that lives for one run.

The handle's value is the list object itself; the ``flow`` scalar that passes through every
operation orders them. A gradient array belongs to its forward array and a source name; writes to it
add up, elements never written are zero.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_many
from headrace.core.contexts import backward_pass
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["ArrayState"]

_FLOW = np.float32(0.0)


class ArrayState:
    """The elements of one TensorArray."""

    def __init__(
        self,
        dtype: Any,
        size: int,
        dynamic: bool,
        clear: bool,
        element_shape: Shape,
        identical: bool,
        name: str = "",
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.items: list[Any] = [None] * size
        self.was_read = [False] * size
        self.dynamic = dynamic
        self.clear = clear
        self.element_shape = element_shape
        self.identical = identical
        self.grads: dict[str, ArrayState] = {}
        self.forward: ArrayState | None = None
        #: How many elements ``split`` gave the forward array: what its gradient joins again.
        self.split_size = 0

    def _invalid(self, text: str) -> errors.InvalidArgumentError:
        return _invalid(text, self.name)

    def _written_index(self, index: Any) -> int:
        i = int(index)
        if 0 <= i < len(self.items):
            return i
        if i < 0 or not self.dynamic:
            raise self._invalid(
                f"Tried to write to index {i} but array is not resizeable and size "
                f"is: {len(self.items)}"
            )
        self.grow(i + 1)
        return i

    def _read_index(self, index: Any) -> int:
        i = int(index)
        if not 0 <= i < len(self.items):
            raise errors.InvalidArgumentError(
                None, None, f"Tried to read from index {i} but array size is: {len(self.items)}"
            )
        return i

    def grow(self, size: int) -> None:
        """Have at least ``size`` elements; the new ones were never written."""
        more = max(size - len(self.items), 0)
        self.items.extend([None] * more)
        self.was_read.extend([False] * more)

    def write(self, index: TensorLike, value: Any) -> None:
        i = self._written_index(index)
        value = np.asarray(value, object if self.dtype is dtypes.string else None)
        if value.dtype != self.dtype.np_dtype:
            raise self._invalid(
                f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype "
                f"{value.dtype}."
            )
        if not shapes.compatible(self.element_shape, value.shape):
            raise self._invalid(
                f"Could not write to TensorArray index {i} because the value shape is "
                f"{shapes.show(value.shape)} which "
                "is incompatible with the TensorArray's inferred element shape: "
                f"{shapes.show(self.element_shape)} "
                "(consider setting infer_shape=False)."
            )
        if (self.identical and self.element_shape is None) or (
            self.element_shape is not None and None in self.element_shape
        ):
            self.element_shape = value.shape if self.identical else self.element_shape
        if self.forward is None and self.was_read[i]:
            raise self._invalid(
                f"Could not write to TensorArray index {i} because it has already been read."
            )
        if self.items[i] is None:
            self.items[i] = value
        elif self.forward is None:
            raise self._invalid(
                f"Could not write to TensorArray index {i} because it has already been written to."
            )
        else:
            self.items[i] = self._sum(i, value)

    def _sum(self, i: int, value: Array) -> Array:
        """Gradients of one element add up."""
        there: Array = self.items[i]
        if there.shape != value.shape:
            raise self._invalid(
                f"Could not aggregate to TensorArray index {i} because the existing shape is "
                f"{shapes.show(there.shape)} but the new input shape is "
                f"{shapes.show(value.shape)}."
            )
        return there + value

    def read(self, index: TensorLike) -> Any:
        i = self._read_index(index)
        value = self.items[i]
        if value is None:
            return self._missing(i)
        self.was_read[i] = True
        if self.clear:
            self.items[i] = None
        return value

    def _missing(self, i: int) -> Array:
        if self.clear and self.was_read[i]:
            raise self._invalid(
                f"Could not read index {i} twice because it was cleared after a previous "
                "read (perhaps try setting "
                "clear_after_read = false?)."
            )
        shape = self._zero_shape(i)
        if shape is None:
            raise self._invalid(
                f"Could not read from TensorArray index {i} because it has not yet been written to."
            )
        return np.zeros(shape, self.dtype.np_dtype)

    def _zero_shape(self, i: int) -> Any:
        if (
            self.forward is not None
            and i < len(self.forward.items)
            and self.forward.items[i] is not None
        ):
            return self.forward.items[i].shape
        known = shapes.known(self.element_shape)
        if known is None and self.forward is not None:
            known = shapes.known(self.forward.element_shape)
        return known

    def gradient(self, source: str) -> ArrayState:
        found = self.grads.get(source)
        if found is None:
            shape = self.element_shape
            name = f"{self.name}@{source}"
            size = len(self.items)
            found = ArrayState(self.dtype, size, False, False, shape, self.identical, name)
            found.forward = self
            self.grads[source] = found
        found.grow(len(self.items))
        return found

    def concat_size(self) -> int:
        """How many elements ``concat`` joins: of a gradient, those that ``split`` had made."""
        return len(self.items) if self.forward is None else self.forward.split_size


#: What messages of TensorFlow's kernels call these types.
_C_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


#: Arrays are numbered as they are made, in all sessions, for messages alone.
_NUMBERS = itertools.count()


def _invalid(text: str, name: str = "") -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"TensorArray {name}".rstrip() + f": {text}")


# kernels ----------------------------------------------------------------------------------------


def _make(
    xp: ArrayNamespace,
    size: Array,
    *,
    dtype: DTypeLike,
    element_shape: Any,
    dynamic_size: bool,
    clear_after_read: bool,
    identical_element_shapes: bool,
    tensor_array_name: str,
) -> Any:
    n = int(size)
    if n < 0:
        raise _invalid(f"Size should be >= 0, but is {n}")
    name = f"{tensor_array_name}_{next(_NUMBERS)}"
    return ArrayState(
        dtype, n, dynamic_size, clear_after_read, element_shape, identical_element_shapes, name
    ), _FLOW


def _write(xp: ArrayNamespace, handle: ArrayState, index: Array, value: Array, flow: Array) -> Any:
    handle.write(index, value)
    return _FLOW


def _read(
    xp: ArrayNamespace, handle: ArrayState, index: Array, flow: Array, *, dtype: DType
) -> Any:
    if dtype is not handle.dtype:
        have, wanted = (_C_NAMES.get(d.name, d.name) for d in (handle.dtype, dtype))
        raise _invalid(f"TensorArray dtype is {have} but Op requested dtype {wanted}.")
    return handle.read(index)


def _gather(
    xp: ArrayNamespace,
    handle: ArrayState,
    indices: Array,
    flow: Array,
    *,
    dtype: DType,
    element_shape: Any,
) -> Array:
    wanted = np.asarray(indices).reshape(-1)
    if wanted.size == 0:
        shape = shapes.known(element_shape) or shapes.known(handle.element_shape)
        if shape is None and element_shape != ():
            raise errors.UnimplementedError(
                None,
                None,
                "TensorArray has size zero, but element shape "
                f"{shapes.show(handle.element_shape)} is not fully "
                "defined. Currently only static shapes are supported when packing zero-size "
                "TensorArrays: set element_shape.",
            )
        return np.zeros((0, *(shape or ())), dtype.np_dtype)
    items = [handle.read(i) for i in wanted]
    first = items[0].shape
    for item in items:
        if item.shape != first:
            raise _invalid(
                f"has inconsistent shapes. Index 0 has shape: {shapes.show(first)} but "
                "another has shape: "
                f"{shapes.show(item.shape)}"
            )
    return np.stack(items)


def _scatter(
    xp: ArrayNamespace, handle: ArrayState, indices: Any, value: Array, flow: Array
) -> Any:
    for i, row in zip(np.asarray(indices).reshape(-1), value):
        handle.write(i, np.array(row, value.dtype))
    return _FLOW


def _concat(
    xp: ArrayNamespace,
    handle: ArrayState,
    flow: Array,
    *,
    dtype: DType,
    element_shape_except0: Shape,
) -> tuple[Array, Array]:
    items = [handle.read(i) for i in range(handle.concat_size())]
    if not items:
        rest = shapes.known(element_shape_except0)
        if rest is None:
            raise errors.UnimplementedError(
                None,
                None,
                "TensorArray has size zero, but element_shape_except0 "
                f"{shapes.show(element_shape_except0)} is not fully defined. Currently only "
                "static shapes are supported when concatenating zero-size TensorArrays: set "
                "element_shape.",
            )
        return np.zeros((0, *rest), dtype.np_dtype), np.zeros((0,), np.int64)
    for at, item in enumerate(items):
        if item.ndim == 0:
            raise _invalid(
                f"Concat saw a scalar shape at index {at} but requires at least vectors. "
                "Did you mean to call stack?"
            )
        if item.shape[1:] != items[0].shape[1:]:
            raise _invalid(
                f"TensorArray has inconsistent shapes. Index 0 has (excepting dimension 0) shape: "
                f"{shapes.show(items[0].shape[1:])} but index {at} has (excepting "
                "dimension 0) shape: "
                f"{shapes.show(item.shape[1:])}"
            )
    return np.concatenate(items), np.asarray([i.shape[0] for i in items], np.int64)


def _split(
    xp: ArrayNamespace, handle: ArrayState, value: Array, lengths: Array, flow: Array
) -> Any:
    lengths = np.asarray(lengths)
    if lengths.ndim != 1:
        raise _invalid(
            f"Expected lengths to be a vector, received shape: {shapes.show(lengths.shape)}"
        )
    if value.ndim == 0:
        raise _invalid("Expected value to be at least a vector, but received shape: []")
    if int(lengths.sum()) != value.shape[0]:
        raise _invalid(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths "
            f"is {int(lengths.sum())} and "
            f"value's shape is: {shapes.show(value.shape)}"
        )
    if len(lengths) != len(handle.items) and not handle.dynamic:
        raise _invalid(
            f"TensorArray's size is not equal to the size of lengths ({len(handle.items)} "
            f"vs. {len(lengths)}), "
            "and the TensorArray is not marked as dynamically resizeable"
        )
    at = 0
    for i, n in enumerate(lengths):
        handle.write(i, np.array(value[at : at + int(n)]))
        at += int(n)
    handle.split_size = len(lengths)
    return _FLOW


def _size(xp: ArrayNamespace, handle: ArrayState, flow: Array) -> Any:
    return np.int32(len(handle.items))


def _grad_array(
    xp: ArrayNamespace, handle: ArrayState, flow: Array, *, source: str
) -> tuple[Any, ...]:
    return handle.gradient(source), _FLOW


# gradients --------------------------------------------------------------------------------------


def _source_of() -> str:
    """Gradient arrays of one backward pass share a name.

    That of the scope of its call of ``tf.gradients``.
    """
    return backward_pass().rstrip("/") or "gradients"


def _gradient_array(handle: Tensor, flow: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    made, new_flow = apply_many(GRAD, handle, flow, source=_source_of())
    return made, new_flow


def _read_grad(op: Operation, grad: Tensor) -> list[Any]:
    handle, index, flow = op.inputs
    grads, grad_flow = _gradient_array(handle, flow, grad)
    return [None, None, apply(WRITE, grads, index, grad, grad_flow)]


def _write_grad(op: Operation, flow_grad: Tensor) -> list[Any]:
    handle, index, _, flow = op.inputs
    grads, grad_flow = _gradient_array(handle, flow, flow_grad)
    read = apply(READ, grads, index, _flow_after_writes(flow_grad, grad_flow), dtype=op._attrs["T"])
    read._shape = op.inputs[2]._shape
    return [None, None, read, flow_grad]


def _flow_after_writes(flow_grad: Tensor, grad_flow: Tensor) -> Tensor:
    """The flow to read gradients with: all writes that produced ``flow_grad`` come before."""
    from headrace.core.build import apply_op

    return apply_op("AddV2", flow_grad, grad_flow)


def _gather_grad(op: Operation, grad: Tensor) -> list[Any]:
    handle, indices, flow = op.inputs
    grads, grad_flow = _gradient_array(handle, flow, grad)
    return [None, None, apply(SCATTER, grads, indices, grad, grad_flow)]


def _scatter_grad(op: Operation, flow_grad: Tensor) -> list[Any]:
    handle, indices, _, flow = op.inputs
    grads, grad_flow = _gradient_array(handle, flow, flow_grad)
    shape = op.inputs[2]._shape
    read = apply(
        GATHER,
        grads,
        indices,
        _flow_after_writes(flow_grad, grad_flow),
        dtype=op._attrs["T"],
        element_shape=None if shape is None else shape[1:],
    )
    return [None, None, read, flow_grad]


def _concat_grad(op: Operation, grad: Tensor, _: object) -> list[Any]:
    handle, flow = op.inputs
    grads, grad_flow = _gradient_array(handle, flow, grad)
    return [None, apply(SPLIT, grads, grad, op.outputs[1], grad_flow)]


def _split_grad(op: Operation, flow_grad: Tensor) -> list[Any]:
    handle, _, _, flow = op.inputs
    grads, grad_flow = _gradient_array(handle, flow, flow_grad)
    shape = op.inputs[1]._shape
    value, _ = apply_many(
        CONCAT,
        grads,
        _flow_after_writes(flow_grad, grad_flow),
        dtype=op._attrs["T"],
        element_shape_except0=None if shape is None else shape[1:],
    )
    value._shape = op.inputs[1]._shape
    return [None, value, None, flow_grad]


def _make_grad(op: Operation, *_: object) -> list[Any]:
    return [None]


# definitions ------------------------------------------------------------------------------------


def _gather_shape(c: Inference) -> list[Shape]:
    element, indices = c.attr("element_shape"), c.shape(1)
    n = None if indices is None or len(indices) != 1 else indices[0]
    return [None if element is None else (n, *element)]


def _concat_shape(c: Inference) -> list[Shape]:
    rest = c.attr("element_shape_except0")
    return [None if rest is None else (None, *rest), (None,)]


_STATE: dict[str, Any] = {"stateful": True, "host_only": True}

MAKE = define(
    "TensorArrayV3",
    "size: int32 -> handle: resource, flow: float32; dtype: type, element_shape: shape=None, "
    "dynamic_size: bool=False, clear_after_read: bool=True, identical_element_shapes: bool=False, "
    "tensor_array_name: str=''",
    shape=lambda c: [(2,), ()],
    kernel=_make,
    grad=_make_grad,
    **_STATE,
    role="list",
)
GRAD = define(
    "TensorArrayGradV3",
    "handle: resource, flow_in: float32 -> grad_handle: resource, flow_out: float32; source: str",
    shape=lambda c: [(2,), ()],
    kernel=_grad_array,
    grad=NOT_DIFFERENTIABLE,
    **_STATE,
)
WRITE = define(
    "TensorArrayWriteV3",
    "handle: resource, index: int32, value: T, flow_in: float32 -> flow_out: float32",
    shape=lambda c: [()],
    kernel=_write,
    grad=_write_grad,
    **_STATE,
    role="list write",
    stored="write",
)
READ = define(
    "TensorArrayReadV3",
    "handle: resource, index: int32, flow_in: float32 -> value: dtype; dtype: type",
    shape=lambda c: [None],
    kernel=_read,
    grad=_read_grad,
    **_STATE,
    role="list read",
    stored="read",
)
GATHER = define(
    "TensorArrayGatherV3",
    "handle: resource, indices: int32, flow_in: float32 -> value: dtype; dtype: type, "
    "element_shape: shape=None",
    shape=_gather_shape,
    kernel=_gather,
    grad=_gather_grad,
    **_STATE,
    role="list gather",
    stored="read",
)
SCATTER = define(
    "TensorArrayScatterV3",
    "handle: resource, indices: int32, value: T, flow_in: float32 -> flow_out: float32",
    shape=lambda c: [()],
    kernel=_scatter,
    grad=_scatter_grad,
    **_STATE,
    role="list scatter",
    stored="write",
)
CONCAT = define(
    "TensorArrayConcatV3",
    "handle: resource, flow_in: float32 -> value: dtype, lengths: int64; dtype: type, "
    "element_shape_except0: shape=None",
    shape=_concat_shape,
    kernel=_concat,
    grad=_concat_grad,
    **_STATE,
    stored="read",
)
SPLIT = define(
    "TensorArraySplitV3",
    "handle: resource, value: T, lengths: int64, flow_in: float32 -> flow_out: float32",
    shape=lambda c: [()],
    kernel=_split,
    grad=_split_grad,
    **_STATE,
    stored="write",
)
SIZE = define(
    "TensorArraySizeV3",
    "handle: resource, flow_in: float32 -> size: int32",
    shape=lambda c: [()],
    kernel=_size,
    grad=NOT_DIFFERENTIABLE,
    **_STATE,
    stored="read",
)
CLOSE = define(
    "TensorArrayCloseV3",
    "handle: resource ->",
    shape=lambda c: [],
    kernel=lambda xp, handle: handle.items.clear(),
    grad=NOT_DIFFERENTIABLE,
    **_STATE,
    stored="read",
)
