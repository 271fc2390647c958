"""Types and shapes of a new operation, and values that are known while a graph is built.

A shape rule is ``rule(c)`` with an :class:`Inference` and returns one plain shape per output. It
raises ValueError with the reason; TensorFlow's closing words (op, name, input shapes) are added
here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes, stacks
from headrace.core.dtypes import DType
from headrace.core.opdef import OpDef
from headrace.core.shapes import Dims, Shape
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headrace.core.annotations import Array

__all__ = [
    "Inference",
    "constant_value",
    "infer_shapes",
    "output_dtypes",
    "partial_shape",
    "shape_problem",
    "static_value",
]

#: Makes an object without calling its class, which takes twice the time.
_new = object.__new__

#: Tensors above this size are not computed while building.
MAX_STATIC_ELEMENTS = 4096


class Inference:
    """What a shape rule may ask."""

    __slots__ = ("op",)

    def __init__(self, op: Operation) -> None:
        self.op = op

    @property
    def n_inputs(self) -> int:
        return len(self.op._inputs)

    def shape(self, i: int) -> Shape:
        """Plain shape of input i."""
        return self.op._inputs[i]._shape

    def shapes(self) -> list[Shape]:
        return [t._shape for t in self.op._inputs]

    def rank(self, i: int) -> int | None:
        shape = self.op._inputs[i]._shape
        return None if shape is None else len(shape)

    def dtype(self, i: int) -> DType:
        return self.op._inputs[i]._dtype

    def attr(self, name: str) -> Any:
        """An attribute; ValueError for a number beyond int32, which is what shapes are made of."""
        value = self.op._attrs.get(name)
        if type(value) is int and not -(2**31) <= value < 2**31:
            raise ValueError(f"Attr {name} has value {value} out of range for an int32")
        return value

    def value(self, i: int) -> NDArray[Any] | None:
        """The value of input i if it is known already."""
        return static_value(self.op._inputs[i])

    def shape_value(self, i: int) -> Shape:
        """Input i read as a shape (-1 and unknown elements give None). A lower number is
        refused.
        """
        self.require_rank(i, 1)
        tensor = self.op._inputs[i]
        value = static_value(tensor)
        packed = tensor._op._role == "pack"  # of scalars, whose signs TensorFlow does not look at
        if value is not None and value.size and value.min() < -1 and not packed:
            raise ValueError(f"Invalid value in tensor used for shape: {value[value < -1][0]}")
        return partial_shape(tensor)

    def require_rank(self, i: int, rank: int) -> Dims:
        shape = self.op._inputs[i]._shape
        if shape is not None and len(shape) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(shape)}")
        return (None,) * rank if shape is None else shape

    def require_rank_at_least(self, i: int, rank: int) -> Shape:
        shape = self.op._inputs[i]._shape
        if shape is not None and len(shape) < rank:
            raise ValueError(f"Shape must be at least rank {rank} but is rank {len(shape)}")
        return shape


def output_dtypes(opdef: OpDef, attrs: dict[str, Any]) -> list[DType]:
    out: list[DType] = []
    for arg in opdef.outputs:
        if arg.type_list_attr:
            out.extend(attrs[arg.type_list_attr])
            continue
        dtype: DType = arg.dtype if arg.dtype is not None else attrs[arg.type_attr]
        if arg.is_ref:
            dtype = dtype._as_ref
        out.extend([dtype] * (attrs[arg.number_attr] if arg.number_attr else 1))
    return out


def infer_shapes(op: Operation, single_dtype: DType | None = None) -> tuple[Tensor, ...]:
    """Make the output tensors of an op, with dtypes and shapes.

    ``single_dtype`` is that of the output if the caller knows that there is just one.
    """
    opdef = op._opdef
    known = _new(Inference)
    known.op = op
    try:
        found = opdef.shape(known)
    except ValueError as error:
        given = ", ".join(shapes.show(t._shape) for t in op._inputs)
        raise ValueError(
            f"{error} for '{op.name}' (op: '{op.type}') with input shapes: {given}."
        ) from None
    if single_dtype is None and (single := opdef.single) is not None and not single.is_ref:
        single_dtype = single.dtype if single.dtype is not None else op._attrs[single.type_attr]
    if single_dtype is not None:
        tensor = _new(Tensor)
        tensor._op = op
        tensor._value_index = 0
        tensor._dtype = single_dtype
        tensor._shape = found[0]
        tensor._name = None
        tensor._static = stacks.UNSET
        return (tensor,)
    dtypes = output_dtypes(opdef, op._attrs) if opdef.outputs else []
    if len(found) != len(dtypes):
        raise AssertionError(
            f"shape rule of {op.type} gave {len(found)} shapes for {len(dtypes)} outputs"
        )
    return tuple(Tensor(op, i, d, s) for i, (d, s) in enumerate(zip(dtypes, found)))


class _GivenValue:
    """An array in the place of an input tensor."""

    def __init__(self, value: Any, dtype: DType | None) -> None:
        self._shape: Shape = tuple(np.shape(value))
        self._static = np.asarray(value)
        self._dtype = dtype


class _GivenInputs:
    """Arrays and attributes in the place of an operation."""

    def __init__(self, attrs: dict[str, Any], inputs: list[_GivenValue]) -> None:
        self._attrs = attrs
        self._inputs = inputs


def shape_problem(
    opdef: OpDef, attrs: dict[str, Any], dtypes: list[DType | None], values: list[Any]
) -> str | None:
    """What the shape rule of an op says against these input values; None if it has nothing
    against them, or cannot be asked.

    A kernel that failed with NumPy's words is explained by it.
    """
    inputs = [_GivenValue(v, d) for v, d in zip(values, dtypes)]
    try:
        opdef.shape(Inference(_GivenInputs(attrs, inputs)))  # type: ignore[arg-type]
    except ValueError as error:
        return str(error)
    except Exception:  # the rule asks for more than values and attributes
        return None
    return None


# values known while building --------------------------------------------------------------------

#: Set by headrace.ops: binds an operation's kernel to NumPy.
kernel_binder: Callable[[Operation], Callable[..., Any]] | None = None


def static_value(tensor: Tensor) -> Array | None:
    """The value of a tensor that depends on constants (and known shapes) alone, else None.

    Never written to.
    """
    known: Array | None = tensor._static
    if known is not stacks.UNSET:
        return known
    order = _static_order(tensor)
    for t in order:
        if t._static is stacks.UNSET:
            _compute_static(t)
    known = tensor._static
    return known if known is not stacks.UNSET else None


def constant_value(tensor: Tensor) -> Array | None:
    """The value of a tensor where TensorFlow 1.15 knows it, too: not behind a Reshape, say.

    It decides whether an assertion fails when the graph is built or when it runs.
    """
    if not isinstance(tensor, Tensor):  # an array is its own value; a variable's is not known
        return None if hasattr(tensor, "_as_graph_element") else tensor
    if hasattr(tensor, "numpy"):
        return static_value(tensor)
    pending, seen = [tensor], set()
    while pending:
        op = pending.pop()._op
        if op in seen:
            continue
        seen.add(op)
        if not op._opdef.traits.static_value:
            return None
        if not op._opdef.traits.of_shape:
            pending.extend(op._inputs)
    return static_value(tensor)


def known_int(tensor: Tensor) -> int:
    """The number in a tensor that must be known while building; TypeError if it is not."""
    known = static_value(tensor)
    if known is None:
        raise TypeError(f"The value of {tensor!r} must be known when the graph is built.")
    return int(known)


def _static_order(tensor: Tensor) -> list[Tensor]:
    """Inputs before users, without recursion; stops at what is decided already."""
    order: list[Tensor] = []
    seen: set[Tensor] = set()
    stack = [(tensor, False)]
    while stack:
        t, done = stack.pop()
        if done:
            order.append(t)
            continue
        if t in seen or t._static is not stacks.UNSET:
            continue
        seen.add(t)
        stack.append((t, True))
        if not t._op._opdef.traits.of_shape and _may_be_static(t):
            stack.extend((i, False) for i in t._op._inputs)
    return order


def _may_be_static(t: Tensor) -> bool:
    traits = t._op._opdef.traits
    never = traits.stateful or traits.host_only or traits.role in ("placeholder", "stop gradient")
    return not never and t._op._context is None


def _compute_static(t: Tensor) -> None:
    op = t._op
    if op._opdef.role == "constant":
        t._static = op._attrs["value"]
        return
    if op._opdef.traits.of_shape:
        value = _from_shape(op, t._value_index)
        if value is not None:  # a shape may become known later: keep asking
            t._static = value
        return
    if not _may_be_static(t):
        t._static = None
        return
    inputs = [i._static for i in op._inputs]
    if any(v is stacks.UNSET for v in inputs):
        return
    size = shapes.num_elements(t._shape)
    if any(v is None for v in inputs) or (size is not None and size > MAX_STATIC_ELEMENTS):
        t._static = None
        return
    if sum(getattr(v, "size", 1) for v in inputs) > MAX_STATIC_ELEMENTS or kernel_binder is None:
        t._static = None
        return
    try:
        with np.errstate(all="ignore"):
            result = kernel_binder(op)(*inputs)
    except Exception:  # a wrong value is an error when it runs, not while building
        t._static = None
        return
    results = result if len(op._outputs) > 1 else (result,)
    for out, value in zip(op._outputs, results):
        out._static = np.asarray(value)


def _from_shape(op: Operation, index: int) -> Array | None:
    shape = op._inputs[index if op.type == "ShapeN" else 0]._shape
    if op.type == "Rank":
        return None if shape is None else np.asarray(len(shape), np.int32)
    known = shapes.known(shape)
    if known is None:
        return None
    dtype = op._attrs["out_type"].np_dtype
    if op.type == "Size":
        return np.asarray(shapes.num_elements(shape), dtype)
    return np.asarray(known, dtype)


def partial_shape(tensor: Tensor) -> Shape:
    """A tensor read as a shape, as far as it is known; None if not even its length is."""
    value = static_value(tensor)
    if value is not None:
        if value.ndim != 1:
            return None
        return tuple(None if d < 0 else int(d) for d in value.tolist())
    op = tensor._op
    if op.type == "Shape":
        return op._inputs[0]._shape
    if op._role == "pack" and tensor._shape is not None and len(tensor._shape) == 1:
        return tuple(_dim_of(t) for t in op._inputs)
    if op._role == "concat":
        parts = [partial_shape(t) for t in op._inputs[:-1]]
        known = [p for p in parts if p is not None]
        if len(known) == len(parts):
            return tuple(d for p in known for d in p)
    if op.type == "StridedSlice":
        sliced = _sliced_shape(op)
        if sliced is not None:
            return sliced
    if op.type in ("Cast", "Identity"):
        return partial_shape(op._inputs[0])
    length = tensor._shape[0] if tensor._shape is not None and len(tensor._shape) == 1 else None
    return None if length is None else (None,) * length


def _dim_of(t: Tensor) -> int | None:
    """A scalar read as one dimension: known values, and ``tf.shape(x)[i]`` of a known dimension."""
    value = static_value(t)
    if value is not None:
        return None if int(value) < 0 else int(value)
    if t._op.type in ("Cast", "Identity"):
        return _dim_of(t._op._inputs[0])
    if t._op.type != "StridedSlice" or t._op._attrs["shrink_axis_mask"] != 1:
        return None
    source = partial_shape(t._op._inputs[0])
    begin = static_value(t._op._inputs[1])
    if source is None or begin is None or begin.size != 1 or t._op._attrs["begin_mask"]:
        return None
    i = int(begin.reshape(-1)[0])
    return source[i] if -len(source) <= i < len(source) else None


def _sliced_shape(op: Operation) -> Shape:
    source = partial_shape(op._inputs[0])
    bounds = [static_value(t) for t in op._inputs[1:4]]
    a = op._attrs
    if source is None or any(b is None or b.size != 1 for b in bounds):
        return None
    if a["shrink_axis_mask"] or a["ellipsis_mask"] or a["new_axis_mask"]:
        return None
    begin, end, step = (int(b.reshape(-1)[0]) for b in bounds if b is not None)
    return source[slice(None if a["begin_mask"] else begin, None if a["end_mask"] else end, step)]
