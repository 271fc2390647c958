"""Putting tensors together and taking them apart: concat, stack, split. (padding.py)

    >>> tf.concat([a, b], axis=-1); tf.split(x, [3, -1], axis=1)

Kernels allocate the result once and assign the parts; pieces that a split gives are views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import NO_GRADIENT_YET, NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, one_number, shape_n
from headrace.ops.array.autopacking import _packed_dtype
from headrace.ops.array.concat_offset import concat_offset_kernel

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike

__all__ = ["concat", "pack", "parallel_stack", "split", "stack", "unpack", "unstack"]


# Concat -----------------------------------------------------------------------------------------


def _concat_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(
            f"Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}"
        )
    return axis % rank


def _concat_shape(c: Inference, inputs: Sequence[Shape], axis: int) -> list[Shape]:
    c.require_rank(axis, 0)
    return _concat_shape_of(inputs, c.value(axis))


def _concat_shape_of(found: Sequence[Shape], axis: Array | None) -> list[Shape]:
    rank = next((len(s) for s in found if s is not None), None)
    if rank is None:
        return [None]
    if rank == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    for s in found:
        if s is not None and len(s) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(s)}")
    if axis is None:
        return [(None,) * rank]
    at = _concat_axis(axis.item(), rank)
    out: list[int | None] = [None] * rank
    total: int | None = 0
    for s in found:
        dim = None if s is None else s[at]
        total = None if total is None or dim is None else total + dim
        for i in range(rank):
            if s is None or i == at or s[i] is None:
                continue
            if out[i] is not None and out[i] != s[i]:
                raise ValueError(
                    f"Dimension {i} in both shapes must be equal, but are {out[i]} and "
                    f"{s[i]}. Shapes are {_show_shapes(found)}"
                )
            out[i] = s[i]
    out[at] = total
    return [tuple(out)]


def _show_shapes(found: Sequence[Shape]) -> str:
    return " and ".join(shapes.show(s) for s in found)


def concat_arrays(xp: ArrayNamespace, values: Sequence[Any], axis: int) -> Array:
    """The arrays one after the other; TensorFlow's error if they do not fit."""
    try:
        return xp.concatenate(values, axis)
    except (ValueError, IndexError):
        rank = values[0].ndim
        if not -rank <= axis < rank:
            raise invalid(
                f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, "
                f"{rank}), but got {axis}"
            ) from None
        first = values[0].shape
        for i, v in enumerate(values):
            same = v.ndim == rank and all(
                a == b for j, (a, b) in enumerate(zip(first, v.shape)) if j != axis % rank
            )
            if not same:
                word = "Dimensions" if v.ndim == rank else "Ranks"
                raise invalid(
                    f"ConcatOp : {word} of inputs should match: shape[0] = "
                    f"{shapes.show(first)} vs. shape[{i}] = "
                    f"{shapes.show(v.shape)}"
                ) from None
        raise


def _concat_pieces(op: Operation, grad: Tensor, values: list[Tensor], axis: Tensor) -> list[Any]:
    """The gradient cut at the borders of the inputs."""
    at = static_value(axis)
    known = [shapes.known(v._shape) for v in values]
    rank = next((v._rank() for v in values if v._rank() is not None), None)
    whole = [k for k in known if k is not None]
    if at is not None and rank is not None and len(whole) == len(known):
        dim = at.item() % rank
        sizes = [k[dim] for k in whole]
        if len(values) == 1:
            return [grad]
        if all(s == sizes[0] for s in sizes):
            return split(grad, len(sizes), dim)
        return split(grad, sizes, dim)
    sizes_t = shape_n(values)
    axis32 = (
        axis if axis._dtype._base is dtypes.int32 else apply_op("Cast", axis, DstT=dtypes.int32)
    )
    if rank is not None and at is not None:
        axis32 = const(at.item() % rank)
    else:
        axis32 = apply_op("FloorMod", axis32, apply_op("Rank", values[0]))
    offsets = apply_list(CONCAT_OFFSET, axis32, sizes_t)
    return [apply_op("Slice", grad, o, s) for o, s in zip(offsets, sizes_t)]


def _concat_grad(op: Operation, grad: Tensor) -> list[Any]:
    pieces = _concat_pieces(op, grad, op.inputs[:-1], op.inputs[-1])
    return [*pieces, None]


def _concat_v1_grad(op: Operation, grad: Tensor) -> list[Any]:
    return [None, *_concat_pieces(op, grad, op.inputs[1:], op.inputs[0])]


_CONCAT_AXIS = "axis tensor should be a scalar integer, but got shape {shape}"

CONCAT = define(
    "ConcatV2",
    "values: N*T, axis: Tidx -> output: T; Tidx: type(index)=int32",
    shape=lambda c: _concat_shape(c, c.shapes()[:-1], c.n_inputs - 1),
    kernel=lambda xp, *v: concat_arrays(xp, v[:-1], one_number(v[-1], _CONCAT_AXIS)),
    grad=_concat_grad,
    known_inputs=(-1,),
    dense=True,
    fails="arguments",
    static_value=True,
    role="concat",
)
CONCAT_V1 = define(
    "Concat",
    "concat_dim: int32, values: N*T -> output: T",
    shape=lambda c: _concat_shape(c, c.shapes()[1:], 0),
    kernel=lambda xp, dim, *v: concat_arrays(xp, v, one_number(dim, _CONCAT_AXIS)),
    grad=_concat_v1_grad,
    known_inputs=(0,),
    static_value=True,
)


CONCAT_OFFSET = define(
    "ConcatOffset",
    "concat_dim: int32, shape: N*int32 -> offset: N*int32",
    shape=lambda c: c.shapes()[1:],
    kernel=concat_offset_kernel,
    grad=NOT_DIFFERENTIABLE,
    static_value=True,
)


@dispatched("concat")
def concat(values: object, axis: AxisLike, name: str = "concat") -> Tensor:
    """Join tensors along an existing dimension: [2, 3] and [2, 5] along axis 1 give [2, 8].

    All other sizes must be equal. ``axis`` may be negative, and a tensor.
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        at = convert_to_tensor(axis, dtypes.int32)
        if at._rank() not in (0, None):
            raise ValueError(f"Shape {at.shape} must have rank 0")
        with name_scope(name or "concat"):
            return apply_op("Identity", values[0], name=name or "concat")
    if not values:
        raise ValueError("tf.concat needs at least one tensor")
    return apply(CONCAT, values, axis, name=name or "concat")


# Pack and Unpack --------------------------------------------------------------------------------


def _pack_shape(c: Inference) -> list[Shape]:
    merged: Shape = None
    for i, s in enumerate(c.shapes()):
        merged = _merged(merged, s, i)
    if merged is None:
        return [None]
    axis, rank = c.attr("axis"), len(merged) + 1
    if not -rank <= axis < rank:
        raise ValueError(f"axis = {axis} not in [{-rank}, {rank})")
    axis %= rank
    return [merged[:axis] + (c.n_inputs,) + merged[axis:]]


def _merged(a: Shape, b: Shape, i: int) -> Shape:
    try:
        return shapes.merge(a, b)
    except ValueError:
        assert a is not None and b is not None
        end = f"\n\tFrom merging shape {i - 1} with other shapes."
        if len(a) != len(b):
            raise ValueError(
                f"Shapes must be equal rank, but are {len(a)} and {len(b)}{end}"
            ) from None
        at = next(
            j for j, (x, y) in enumerate(zip(a, b)) if x is not None and y is not None and x != y
        )
        raise ValueError(
            f"Dimension {at} in both shapes must be equal, but are {a[at]} and {b[at]}. "
            f"Shapes are {shapes.show(a)} and {shapes.show(b)}.{end}"
        ) from None


def _pack_kernel(xp: ArrayNamespace, *values: Array, axis: int) -> Array:
    if xp.name != "numpy" and not all(isinstance(v, (np.ndarray, np.generic)) for v in values):
        return xp.stack(values, axis)
    first = values[0]
    if not hasattr(first, "shape"):  # variants: datasets
        out = np.empty(len(values), object)
        out[:] = values
        return out
    inner = first.shape
    for i, v in enumerate(values):
        if v.shape != inner:
            raise invalid(
                f"Shapes of all inputs must match: values[0].shape = {shapes.show(inner)} "
                f"!= values[{i}].shape = "
                f"{shapes.show(v.shape)}"
            )
    if axis < 0:
        axis += len(inner) + 1
    if first.dtype == object and not inner:  # an array of rank 0 would itself become the element
        values = tuple([v[()] for v in values])
    out = np.empty(inner[:axis] + (len(values),) + inner[axis:], first.dtype)
    if axis == 0:
        for i, v in enumerate(values):
            out[i] = v
    else:
        head: Any = (slice(None),) * axis
        for i, v in enumerate(values):
            out[(*head, i)] = v
    return out


def _pack_grad(op: Operation, grad: Tensor) -> list[Any]:
    attrs = op._attrs
    return apply_list(UNPACK, grad, num=attrs["N"], axis=attrs["axis"], name="unstack")


PACK = define(
    "Pack",
    "values: N*T -> output: T; axis: int=0",
    shape=_pack_shape,
    kernel=_pack_kernel,
    grad=_pack_grad,
    dense=True,
    static_value=True,
    role="pack",
)


def _unpack_shape(c: Inference) -> list[Shape]:
    s, num, axis = c.shape(0), c.attr("num"), c.attr("axis")
    if s is None:
        return [None] * num
    if not -len(s) <= axis < len(s):
        raise ValueError(f"axis = {axis} not in [{-len(s)}, {len(s)})")
    axis %= len(s)
    if s[axis] is not None and s[axis] != num:
        raise ValueError(f"Dimension must be {num} but is {s[axis]}")
    return [s[:axis] + s[axis + 1 :]] * num


def _unpack_kernel(xp: ArrayNamespace, x: Any, *, num: int, axis: int) -> Any | tuple[Any, ...]:
    if axis < 0:
        axis += x.ndim
    if not 0 <= axis < x.ndim or x.shape[axis] != num:
        raise invalid(f"Input shape axis {axis} must equal {num}, got shape {shapes.show(x.shape)}")
    head = (slice(None),) * axis
    parts = tuple(x[(*head, i, ...)] for i in range(num))
    return parts[0] if num == 1 else parts


def _with_zeros(op: Operation, grads: Sequence[Any]) -> list[Any]:
    """Gradients of several outputs, zeros where there is none."""
    return [
        apply_op("ZerosLike", out) if g is None else convert_to_tensor(g)
        for g, out in zip(grads, op.outputs)
    ]


UNPACK = define(
    "Unpack",
    "value: T -> output: num*T; num: int, axis: int=0",
    shape=_unpack_shape,
    kernel=_unpack_kernel,
    grad=lambda op, *g: [apply(PACK, _with_zeros(op, g), axis=op._attrs["axis"])],
    view=True,
    rearranges=True,
)


@dispatched("stack")
def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Join tensors of one shape along a new dimension: three of [4] give [3, 4].

    ``axis`` says where the new dimension stands in the result; -1 is the last.
    """
    if axis == 0 and (not isinstance(values, (list, tuple)) or _mixed(values)):
        return convert_to_tensor(values, name=name)  # constants become one constant
    kind = next((v._dtype._base for v in values if isinstance(v, Tensor)), None)
    first = convert_to_tensor(values[0], name=name)  # for its shape
    if first._shape is not None:
        rank = len(first._shape) + 1
        if not -rank <= axis < rank:
            raise ValueError(f"axis = {axis} not in [{-rank}, {rank})")
    kind = kind or first._dtype._base
    tensors = [v if isinstance(v, Tensor) else convert_to_tensor(v, kind) for v in values]
    return apply(PACK, tensors, axis=axis, name=name or "stack")


def _mixed(values: Sequence[Any]) -> bool:
    return not all(isinstance(v, Tensor) for v in values) and (
        _packed_dtype(values) is not None or not any(hasattr(v, "_graph_anchor") for v in values)
    )


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices along a dimension, whose size must be known or given as ``num``.

    The result is a list of tensors without that dimension; ``axis`` may be negative.

        tf.unstack([[1, 2], [3, 4]], axis=1)  # [[1, 3], [2, 4]]
    """
    if num is None:
        value = convert_to_tensor(value)
        s = value._shape
        if s is not None:
            if not -len(s) <= axis < len(s):
                raise ValueError(f"axis = {axis} not in [{-len(s)}, {len(s)})")
            num = s[axis]
    if num is None:
        raise ValueError(f"Cannot infer num from shape {value.shape}")
    return apply_list(UNPACK, value, num=num, axis=axis, name=name or "unstack")


def pack(values: TensorLike, axis: int = 0, name: str = "pack") -> Tensor:
    """The pre-1.0 name of ``stack``."""
    return stack(values, axis, name)


def unpack(
    value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unpack"
) -> list[Tensor]:
    """The pre-1.0 name of ``unstack``; ``num`` is the size of ``axis`` where
    the graph does not know it.
    """
    return unstack(value, num, axis, name)


def _parallel_concat_shape(c: Inference) -> list[Shape]:
    """The inputs are slices of one shape along the first axis, each of size 1."""
    out: Shape = c.attr("shape")
    merged: Shape = None
    for i, s in enumerate(c.shapes()):
        if s is not None and (not s or s[0] not in (1, None)):
            raise ValueError(
                f"Size of first dimension must be 1, but input {i} is {shapes.show(s)}"
            )
        if shapes.known(s) is None:
            raise ValueError("All input shapes must be fully defined.")
        merged = shapes.merge(merged, s)
    return [out]


PARALLEL_CONCAT = define(
    "ParallelConcat",
    "values: N*T -> output: T; shape: shape",
    shape=_parallel_concat_shape,
    kernel=lambda xp, *v: concat_arrays(xp, v, 0),
    grad=NO_GRADIENT_YET,
)


def parallel_stack(values: Sequence[TensorLike], name: str = "parallel_stack") -> Tensor:
    """``stack`` along the first dimension, of tensors whose shapes are known."""
    with name_scope(name, "parallel_stack", list(values)):
        rows = [apply_op("ExpandDims", v, const(0)) for v in values]
        kinds = [r._dtype._base for r in rows]
        if any(k is not kinds[0] for k in kinds):
            names = ", ".join(k.name for k in kinds)
            raise TypeError(
                "Tensors in list passed to 'values' of 'ParallelConcat' Op have types "
                f"[{names}] that don't all match."
            )
        known = shapes.known(rows[0]._shape[1:] if rows[0]._shape is not None else None)
        if known is None:
            raise ValueError("tf.parallel_stack needs tensors of known shape")
        return apply(PARALLEL_CONCAT, rows, shape=(len(values), *known))


# Split ------------------------------------------------------------------------------------------


def _split_axis(axis: Array, rank: int) -> int:
    at: int = axis.item()
    if not -rank <= at < rank:
        raise ValueError(
            f"Dimension size, given by scalar input {0}, must be in range [-{rank}, "
            f"{rank}), got {at}"
        )
    return at % rank


def _split_shape(c: Inference) -> list[Shape]:
    s, num, axis = c.shape(1), c.attr("num_split"), c.value(0)
    if c.rank(0) and axis is not None:
        raise ValueError(f"Input must be scalar but has rank {c.rank(0)}")
    if s is None:
        return [None] * num
    if axis is None:
        return [(None,) * len(s)] * num
    at = _split_axis(axis, len(s))
    dim = s[at]
    if dim is not None and dim % num:
        raise ValueError(
            f"Dimension size must be evenly divisible by {num} but is {dim}: number of "
            "ways to split should evenly "
            "divide the split dimension"
        )
    return [s[:at] + (None if dim is None else dim // num,) + s[at + 1 :]] * num


def _pieces(x: Array, at: int, sizes: Sequence[int]) -> Array | tuple[Array, ...]:
    head = (slice(None),) * at
    out, start = [], 0
    for n in sizes:
        out.append(x[(*head, slice(start, start + n))])
        start += n
    return tuple(out) if len(out) > 1 else out[0]


def _split_kernel(
    xp: ArrayNamespace, axis: Array, x: Array, *, num_split: int
) -> Array | tuple[Array, ...]:
    at = one_number(axis, "split_dim must be a scalar but has rank {rank}")
    if not -x.ndim <= at < x.ndim:
        raise invalid(f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {at}")
    at %= x.ndim
    if x.shape[at] % num_split:
        raise invalid(
            "Number of ways to split should evenly divide the split dimension, but got "
            f"split_dim {at} (size = "
            f"{x.shape[at]}) and num_split {num_split}"
        )
    return _pieces(x, at, [x.shape[at] // num_split] * num_split)


SPLIT = define(
    "Split",
    "split_dim: int32, value: T -> output: num_split*T; num_split: int",
    shape=_split_shape,
    kernel=_split_kernel,
    renamed=(("split_dim", "axis"),),
    grad=lambda op, *g: [None, concat(_with_zeros(op, g), op.inputs[0])],
    view=True,
    known_inputs=(0,),
    rearranges=True,
    in_composites=True,
)


def _split_v_shape(c: Inference) -> list[Shape]:
    s, sizes, axis, num = c.shape(0), c.value(1), c.value(2), c.attr("num_split")
    if sizes is not None and sizes.size != num:
        raise ValueError(
            f"Length of size_splits should be equal to num_outputs: {sizes.size} vs {num}"
        )
    if s is None:
        return [None] * num
    if axis is None and len(s) != 1:
        return [(None,) * len(s)] * num
    if axis is not None and axis.ndim:
        raise ValueError(f"Input must be scalar but has rank {axis.ndim}")
    at = 0 if axis is None else _split_axis(axis, len(s))
    if sizes is None:
        return [s[:at] + (None,) + s[at + 1 :]] * num
    full = _full_sizes(sizes.tolist(), s[at])
    return [s[:at] + (n,) + s[at + 1 :] for n in full]


def _full_sizes(sizes: Sequence[int], dim: int | None) -> list[int | None]:
    """Sizes with a single -1 filled in; ValueError if they do not add up."""
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    if len(unknown) > 1:
        raise ValueError("There can only be one -1 in the input.")
    rest = sum(n for n in sizes if n != -1)
    if dim is not None and (rest > dim or (not unknown and rest != dim)):
        raise ValueError(
            "Determined shape must either match input shape along split_dim exactly if "
            "fully specified, or be less "
            "than the size of the input along split_dim if not fully specified.  Got: "
            f"{rest} (size {dim})"
        )
    out: list[int | None] = list(sizes)
    if unknown:
        out[unknown[0]] = None if dim is None else dim - rest
    return out


def _split_v_kernel(
    xp: ArrayNamespace, x: Array, sizes: Array, axis: Array, *, num_split: int
) -> Array | tuple[Array, ...]:
    at = axis.item()  # (a vector of one number is taken, as in TensorFlow)
    if not -x.ndim <= at < x.ndim:
        raise invalid(f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {at}")
    if sizes.ndim != 1:
        raise invalid(
            "size of the split_tensor must be 1-D and have the same elements as outputs got "
            f"{sizes.ndim} -D and {sizes.size} elements"
        )
    at %= x.ndim
    if sizes.size != num_split:
        raise invalid(
            "size of the split_tensor must be 1-D and have the same elements as outputs got "
            f"{sizes.ndim} -D and {sizes.size} elements"
        )
    try:
        full = _full_sizes(sizes.tolist(), x.shape[at])
    except ValueError as error:
        raise invalid(str(error)) from None
    return _pieces(x, at, full)  # type: ignore[arg-type]


SPLIT_V = define(
    "SplitV",
    "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split*T; num_split: "
    "int, Tlen: type(index)=int64",
    shape=_split_v_shape,
    kernel=_split_v_kernel,
    renamed=(("split_dim", "axis"),),
    grad=lambda op, *g: [concat(_with_zeros(op, g), op.inputs[2]), None, None],
    view=True,
    known_inputs=(1, 2),
    rearranges=True,
)


def split(
    value: TensorLike,
    num_or_size_splits: TensorLike,
    axis: AxisLike = 0,
    num: int | None = None,
    name: str = "split",
) -> list[Tensor]:
    """A tensor cut along ``axis`` into a list of tensors.

    ``num_or_size_splits`` is the number of equal parts, or a list of sizes, one of which may be -1.
    ``num`` is the number of parts where the list is a tensor of unknown length.

        a, b = tf.split([[1, 2, 3], [4, 5, 6]], [1, 2], axis=1)
        b                                                       # [[2, 3], [5, 6]]
    """
    if isinstance(num_or_size_splits, (int, np.integer, shapes.Dimension)):
        count_more(get_default_graph(), 1)  # TF makes a tensor of the number
        return apply_list(SPLIT, axis, value, num_split=int(num_or_size_splits), name=name)
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes._shape == ():
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split."
        )
    if num is None:
        num = None if sizes._shape is None else sizes._shape[0]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {num_or_size_splits}")
    return apply_list(SPLIT_V, value, sizes, axis, num_split=num, name=name)
