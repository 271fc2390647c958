"""Putting tensors together, taking them apart, repeating and padding them.

    >>> tf.concat([a, b], axis=-1); tf.split(x, [3, -1], axis=1); tf.pad(x, [[0, 0], [1, 1]])

Kernels allocate the result once and assign the parts; pieces that a split gives are views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import NOT_DIFFERENTIABLE, define, lookup
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import _packed_dtype, const, invalid, shape, shape_n
from headrace.ops.array.concat_offset import concat_offset_kernel

__all__ = [
    "concat", "mirror_pad", "pack", "pad", "pad_v2", "parallel_stack", "repeat", "repeat_with_axis", "split", "stack",
    "tile", "unpack", "unstack",
]  # fmt: skip


# Concat -----------------------------------------------------------------------------------------


def _concat_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(
            f"Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}"
        )
    return axis % rank


def _concat_shape_of(found: Sequence[Shape], axis: Any) -> list[Shape]:
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
                raise ValueError(f"Dimension {i} in both shapes must be equal, but are {out[i]} and {s[i]}. Shapes are {_all(found)}")  # fmt: skip
            out[i] = s[i]
    out[at] = total
    return [tuple(out)]


def _all(found: Sequence[Shape]) -> str:
    return " and ".join(shapes.show(s) for s in found)


def concat_arrays(xp: Any, values: Sequence[Any], axis: int) -> Any:
    """The arrays one after the other; TensorFlow's error if they do not fit."""
    try:
        return xp.concatenate(values, axis)
    except (ValueError, IndexError):
        rank = values[0].ndim
        if not -rank <= axis < rank:
            raise invalid(
                f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}"
            ) from None
        first = values[0].shape
        for i, v in enumerate(values):
            same = v.ndim == rank and all(
                a == b for j, (a, b) in enumerate(zip(first, v.shape)) if j != axis % rank
            )
            if not same:
                word = "Dimensions" if v.ndim == rank else "Ranks"
                raise invalid(
                    f"ConcatOp : {word} of inputs should match: shape[0] = {shapes.show(first)} vs. shape[{i}] = "
                    f"{shapes.show(v.shape)}"
                ) from None
        raise


def _concat_pieces(op: Operation, grad: Any, values: list[Tensor], axis: Tensor) -> list[Any]:
    """The gradient cut at the borders of the inputs."""
    at = static_value(axis)
    known = [shapes.known(v._shape) for v in values]
    rank = next((v._rank() for v in values if v._rank() is not None), None)
    if at is not None and rank is not None and None not in known:
        dim = at.item() % rank
        sizes = [k[dim] for k in known]  # type: ignore[index]
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


def _concat_grad(op: Operation, grad: Any) -> list[Any]:
    pieces = _concat_pieces(op, grad, op.inputs[:-1], op.inputs[-1])
    return [*pieces, None]


def _concat_v1_grad(op: Operation, grad: Any) -> list[Any]:
    return [None, *_concat_pieces(op, grad, op.inputs[1:], op.inputs[0])]


CONCAT = define(
    "ConcatV2", "values: N*T, axis: Tidx -> output: T; Tidx: type(index)=int32",
    shape=lambda c: _concat_shape_of(c.shapes()[:-1], c.value(c.n_inputs - 1)),
    kernel=lambda xp, *v: concat_arrays(xp, v[:-1], v[-1].item()), grad=_concat_grad, known_inputs=(-1,),
)  # fmt: skip
CONCAT_V1 = define(
    "Concat", "concat_dim: int32, values: N*T -> output: T",
    shape=lambda c: _concat_shape_of(c.shapes()[1:], c.value(0)),
    kernel=lambda xp, dim, *v: concat_arrays(xp, v, dim.item()), grad=_concat_v1_grad, known_inputs=(0,),
)  # fmt: skip


CONCAT_OFFSET = define(
    "ConcatOffset", "concat_dim: int32, shape: N*int32 -> offset: N*int32",
    shape=lambda c: c.shapes()[1:], kernel=concat_offset_kernel, grad=NOT_DIFFERENTIABLE,
)  # fmt: skip


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Join tensors along an existing dimension."""
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
        raise ValueError(f"Dimension {at} in both shapes must be equal, but are {a[at]} and {b[at]}. Shapes are {shapes.show(a)} and {shapes.show(b)}.{end}") from None  # fmt: skip


def _pack_kernel(xp: Any, *values: Any, axis: int) -> Any:
    if xp.name != "numpy" and not all(isinstance(v, (np.ndarray, np.generic)) for v in values):
        return xp.stack(values, axis)
    first = values[0]
    inner = first.shape
    for i, v in enumerate(values):
        if v.shape != inner:
            raise invalid(
                f"Shapes of all inputs must match: values[0].shape = {shapes.show(inner)} != values[{i}].shape = "
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


def _pack_grad(op: Operation, grad: Any) -> list[Any]:
    return apply_list(UNPACK, grad, num=op._attrs["N"], axis=op._attrs["axis"])


PACK = define(
    "Pack", "values: N*T -> output: T; axis: int=0",
    shape=_pack_shape, kernel=_pack_kernel, grad=_pack_grad,
)  # fmt: skip


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


def _unpack_kernel(xp: Any, x: Any, *, num: int, axis: int) -> Any:
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
    "Unpack", "value: T -> output: num*T; num: int, axis: int=0",
    shape=_unpack_shape, kernel=_unpack_kernel,
    grad=lambda op, *g: [apply(PACK, _with_zeros(op, g), axis=op._attrs["axis"])], view=True,
)  # fmt: skip


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Join tensors along a new dimension."""
    if axis == 0 and (not isinstance(values, (list, tuple)) or _mixed(values)):
        return convert_to_tensor(values, name=name)  # constants become one constant
    first = convert_to_tensor(values[0])
    if first._shape is not None:
        rank = len(first._shape) + 1
        if not -rank <= axis < rank:
            raise ValueError(f"axis = {axis} not in [{-rank}, {rank})")
    rest = [
        v if isinstance(v, Tensor) else convert_to_tensor(v, first._dtype._base) for v in values[1:]
    ]
    return apply(PACK, [first, *rest], axis=axis, name=name or "stack")


def _mixed(values: Sequence[Any]) -> bool:
    return not all(isinstance(v, Tensor) for v in values) and (
        _packed_dtype(values) is not None or not any(hasattr(v, "_graph_anchor") for v in values)
    )


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices along a dimension, whose size must be known or given as ``num``."""
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


def pack(values: Any, axis: int = 0, name: str = "pack") -> Tensor:
    """The pre-1.0 name of ``stack``."""
    return stack(values, axis, name)


def unpack(value: Any, num: int | None = None, axis: int = 0, name: str = "unpack") -> list[Tensor]:
    """The pre-1.0 name of ``unstack``."""
    return unstack(value, num, axis, name)


def _parallel_concat_shape(c: Inference) -> list[Shape]:
    return [c.attr("shape")]


PARALLEL_CONCAT = define(
    "ParallelConcat", "values: N*T -> output: T; shape: shape",
    shape=_parallel_concat_shape, kernel=lambda xp, *v: concat_arrays(xp, v, 0),
    grad=lambda op, g: split(g, len(op.inputs), 0),
)  # fmt: skip


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """``stack`` of tensors whose shapes are known."""
    with name_scope(name, "parallel_stack", list(values)):
        rows = [apply_op("ExpandDims", v, const(0)) for v in values]
        kinds = [r._dtype._base for r in rows]
        if any(k is not kinds[0] for k in kinds):
            names = ", ".join(k.name for k in kinds)
            raise TypeError(f"Tensors in list passed to 'values' of 'ParallelConcat' Op have types [{names}] that don't all match.")  # fmt: skip
        known = shapes.known(rows[0]._shape[1:] if rows[0]._shape is not None else None)
        if known is None:
            raise ValueError("tf.parallel_stack needs tensors of known shape")
        return apply(PARALLEL_CONCAT, rows, shape=(len(values), *known))


# Split ------------------------------------------------------------------------------------------


def _split_axis(axis: Any, rank: int) -> int:
    at: int = axis.item()
    if not -rank <= at < rank:
        raise ValueError(
            f"Dimension size, given by scalar input {0}, must be in range [-{rank}, {rank}), got {at}"
        )
    return at % rank


def _split_shape(c: Inference) -> list[Shape]:
    s, num, axis = c.shape(1), c.attr("num_split"), c.value(0)
    if s is None:
        return [None] * num
    if axis is None:
        return [(None,) * len(s)] * num
    at = _split_axis(axis, len(s))
    dim = s[at]
    if dim is not None and dim % num:
        raise ValueError(
            f"Dimension size must be evenly divisible by {num} but is {dim}: number of ways to split should evenly "
            "divide the split dimension"
        )
    return [s[:at] + (None if dim is None else dim // num,) + s[at + 1 :]] * num


def _pieces(x: Any, at: int, sizes: Sequence[int]) -> Any:
    head = (slice(None),) * at
    out, start = [], 0
    for n in sizes:
        out.append(x[(*head, slice(start, start + n))])
        start += n
    return tuple(out) if len(out) > 1 else out[0]


def _split_kernel(xp: Any, axis: Any, x: Any, *, num_split: int) -> Any:
    at = axis.item()
    if not -x.ndim <= at < x.ndim:
        raise invalid(f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {at}")
    at %= x.ndim
    if x.shape[at] % num_split:
        raise invalid(
            f"Number of ways to split should evenly divide the split dimension, but got split_dim {at} (size = "
            f"{x.shape[at]}) and num_split {num_split}"
        )
    return _pieces(x, at, [x.shape[at] // num_split] * num_split)


SPLIT = define(
    "Split", "split_dim: int32, value: T -> output: num_split*T; num_split: int",
    shape=_split_shape, kernel=_split_kernel,
    grad=lambda op, *g: [None, concat(_with_zeros(op, g), op.inputs[0])], view=True, known_inputs=(0,),
)  # fmt: skip


def _split_v_shape(c: Inference) -> list[Shape]:
    s, sizes, axis, num = c.shape(0), c.value(1), c.value(2), c.attr("num_split")
    if s is None:
        return [None] * num
    if axis is None:
        return [(None,) * len(s)] * num
    at = _split_axis(axis, len(s))
    if sizes is None:
        return [s[:at] + (None,) + s[at + 1 :]] * num
    if sizes.size != num:
        raise ValueError(
            f"Length of size_splits should be equal to num_outputs: {sizes.size} vs {num}"
        )
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
            "Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
            f"than the size of the input along split_dim if not fully specified.  Got: {rest} (size {dim})"
        )
    out: list[int | None] = list(sizes)
    if unknown:
        out[unknown[0]] = None if dim is None else dim - rest
    return out


def _split_v_kernel(xp: Any, x: Any, sizes: Any, axis: Any, *, num_split: int) -> Any:
    at = axis.item()
    if not -x.ndim <= at < x.ndim:
        raise invalid(f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {at}")
    at %= x.ndim
    try:
        full = _full_sizes(sizes.tolist(), x.shape[at])
    except ValueError as error:
        raise invalid(str(error)) from None
    return _pieces(x, at, full)  # type: ignore[arg-type]


SPLIT_V = define(
    "SplitV", "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split*T; num_split: int, Tlen: type(index)=int64",
    shape=_split_v_shape, kernel=_split_v_kernel,
    grad=lambda op, *g: [concat(_with_zeros(op, g), op.inputs[2]), None, None], view=True, known_inputs=(1, 2),
)  # fmt: skip


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Cut into so many equal parts, or into parts of the sizes given (one may be -1)."""
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


# Tile -------------------------------------------------------------------------------------------


def _tile_shape(c: Inference) -> list[Shape]:
    s, times = c.shape(0), c.shape_value(1)
    if s is None:
        return [None if times is None else (None,) * len(times)]
    if times is None:
        return [(None,) * len(s)]
    if len(times) != len(s):
        raise ValueError(f"Shape must be rank {len(times)} but is rank {len(s)}")
    return [
        tuple(
            0 if 0 in (d, m) else None if d is None or m is None else d * m
            for d, m in zip(s, times)
        )
    ]


def _tile_kernel(xp: Any, x: Any, multiples: Any) -> Any:
    times = multiples.tolist()
    dims = x.shape
    if len(times) != len(dims):
        raise invalid(
            f"Expected multiples argument to be a vector of length {len(dims)} but got length {len(times)}"
        )
    if not times:
        return x
    if min(times) < 0:
        raise invalid(f"Expected multiples[{times.index(min(times))}] >= 0, but got {min(times)}")
    full: list[int] = []
    narrow: list[int] = []
    for m, d in zip(times, dims):
        full += (m, d)
        narrow += (1, d)
    final = [m * d for m, d in zip(times, dims)]
    if xp.name != "numpy":
        return xp.broadcast_to(x.reshape(narrow), full).reshape(final)
    out = np.empty(full, x.dtype)
    out[...] = x.reshape(narrow)
    return out.reshape(final)


def _tile_grad(op: Operation, grad: Any) -> list[Any]:
    """Sum over the copies: (m0*d0, …) seen as (m0, d0, …)."""
    x, multiples = op.inputs
    known, times = shapes.known(x._shape), static_value(multiples)
    rank = x._rank()
    if known is not None and times is not None:
        split_shape: Any = const([n for pair in zip(times.tolist(), known) for n in pair])
        axes: Any = const(range(0, 2 * len(known), 2))
    else:
        pairs = apply_op("Pack", [multiples, shape(x, out_type=multiples._dtype)], axis=1)
        split_shape = apply_op("Reshape", pairs, const([-1]))
        if rank is not None:
            axes = const(range(0, 2 * rank, 2))
        else:
            axes = apply_op("Range", const(0), apply_op("Size", split_shape), const(2))
    out = apply_op("Sum", apply_op("Reshape", grad, split_shape), axes, keep_dims=False)
    out.set_shape(x.shape)
    return [out, None]


TILE = define(
    "Tile", "input: T, multiples: Tmultiples -> output: T; Tmultiples: type(index)=int32",
    shape=_tile_shape, kernel=_tile_kernel, grad=_tile_grad, known_inputs=(1,), view=True,
)  # fmt: skip


def _tile_grad_shape(c: Inference) -> list[Shape]:
    s, times = c.shape(0), c.shape_value(1)
    if s is None or times is None:
        return [None if s is None else (None,) * len(s)]
    return [tuple(None if d is None or not m else d // m for d, m in zip(s, times))]


def _tile_grad_kernel(xp: Any, x: Any, multiples: Any) -> Any:
    full: list[int] = []
    for m, d in zip(multiples.tolist(), x.shape):
        full += (m, d // m)
    return xp.sum(x.reshape(full), axis=tuple(range(0, len(full), 2)), dtype=x.dtype)


TILE_GRAD = define(
    "TileGrad", "input: T, multiples: int32 -> output: T",
    shape=_tile_grad_shape, kernel=_tile_grad_kernel,
    grad=lambda op, g: [apply(TILE, g, op.inputs[1]), None], known_inputs=(1,),
)  # fmt: skip


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat the whole tensor so many times along each dimension."""
    return apply(TILE, input, multiples, name=name)


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Repeat single elements, as ``numpy.repeat``."""
    if axis is None:
        input = apply_op("Reshape", input, const([-1]))
        axis = 0
    return repeat_with_axis(input, repeats, axis, name)


def repeat_with_axis(data: Any, repeats: Any, axis: int, name: str | None = None) -> Tensor:
    """Gather each slice ``repeats[i]`` times: slice i covers the positions below the running sum of repeats."""
    with name_scope(name, "Repeat", [data, repeats]):
        return _repeated(convert_to_tensor(data), convert_to_tensor(repeats), axis)


def _repeated(data: Tensor, repeats: Tensor, axis: int) -> Tensor:
    rank = data._rank()
    if rank is None:
        raise ValueError("tf.repeat needs a tensor of known rank")
    axis = axis % rank if -rank <= axis < rank else axis
    dims = shape(data, out_type=repeats._dtype)
    size: Tensor = dims[axis]
    each = apply_op("BroadcastTo", repeats, apply_op("Reshape", size, const([1]), name="rows"))
    ends = apply_op("Cumsum", each, const(0), exclusive=False, reverse=False)
    total = apply_op("Sum", each, const(0), keep_dims=False)
    one, zero = const(1, repeats._dtype), const(0, repeats._dtype)
    places = apply_op("Range", zero, total, one)
    row = apply_op("ExpandDims", ends, const(0))
    which = apply_op(
        "UpperBound", row, apply_op("ExpandDims", places, const(0)), out_type=dtypes.int32
    )
    which = apply_op("Squeeze", which, squeeze_dims=(0,))
    return apply_op("GatherV2", data, which, const(axis), name="Reshape")


# Pad --------------------------------------------------------------------------------------------


def _pad_shape(c: Inference) -> list[Shape]:
    s = c.shape(0)
    paddings = c.shape(1)
    if paddings is not None and len(paddings) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(paddings)}")
    rows = None if paddings is None else paddings[0]
    if s is None:
        return [None if rows is None else (None,) * rows]
    if rows is not None and rows != len(s):
        raise ValueError(f"Shape must be rank {rows} but is rank {len(s)}")
    value = c.value(1)
    if value is None:
        return [(None,) * len(s)]
    if value.size and value.min() < 0:
        raise ValueError(f"Paddings must be non-negative: {value.tolist()}")
    return [tuple(None if d is None else d + int(lo) + int(hi) for d, (lo, hi) in zip(s, value))]


def checked_paddings(x: Any, paddings: Any) -> list[list[int]]:
    pairs: list[list[int]] = paddings.tolist()
    if paddings.shape != (x.ndim, 2):
        raise invalid(
            "The first dimension of paddings must be the rank of inputs"
            f"{shapes.show(paddings.shape)} {shapes.show(x.shape)}"
        )
    for lo, hi in pairs:
        if lo < 0 or hi < 0:
            raise invalid(f"Paddings must be non-negative: {lo} {hi}")
    return pairs


def _pad_kernel(xp: Any, x: Any, paddings: Any, value: Any = None) -> Any:
    pairs = checked_paddings(x, paddings)
    if xp.name != "numpy":
        return xp.pad(x, pairs, constant_values=0 if value is None else value)
    dims = [d + lo + hi for d, (lo, hi) in zip(x.shape, pairs)]
    if value is None and x.dtype.kind != "O":
        out = np.zeros(dims, x.dtype)
    else:
        out = np.empty(dims, x.dtype)
        out[...] = b"" if value is None else value
    out[tuple(slice(lo, lo + d) for d, (lo, _) in zip(x.shape, pairs))] = x
    return out


def _inner(op: Operation, grad: Any) -> Tensor:
    """The part of a padded tensor that came from the input."""
    x, paddings = op.inputs[:2]
    value = static_value(paddings)
    if value is not None:
        begin: Any = const(value[:, 0], paddings._dtype)
    else:
        begin = apply_list(lookup("Unpack"), paddings, num=2, axis=1)[0]
    return apply_op("Slice", grad, begin, shape(x, out_type=paddings._dtype))


def _pad_v2_grad(op: Operation, grad: Any) -> list[Any]:
    inner = _inner(op, grad)
    whole = _sum_all(grad)
    return [inner, None, apply_op("Sub", whole, _sum_all(inner))]


def _sum_all(x: Tensor) -> Any:
    from headrace.ops.array.array_shape import _all_axes

    return apply_op("Sum", x, _all_axes(x), keep_dims=False)


PAD = define(
    "Pad", "input: T, paddings: Tpaddings -> output: T; Tpaddings: type(index)=int32",
    shape=_pad_shape, kernel=lambda xp, x, paddings: _pad_kernel(xp, x, paddings),
    grad=lambda op, g: [_inner(op, g), None], known_inputs=(1,),
)  # fmt: skip
PAD_V2 = define(
    "PadV2", "input: T, paddings: Tpaddings, constant_values: T -> output: T; Tpaddings: type(index)=int32",
    shape=_pad_shape, kernel=lambda xp, x, paddings, value: _pad_kernel(xp, x, paddings, value),
    grad=_pad_v2_grad, known_inputs=(1,),
)  # fmt: skip


def _mirror_index(d: int, lo: int, hi: int, offset: int) -> Any:
    """Positions 0 … d-1 with their mirror images; ``offset`` 1 leaves the border out (REFLECT)."""
    front = np.arange(lo - 1 + offset, offset - 1, -1)
    back = np.arange(d - 1 - offset, d - 1 - offset - hi, -1)
    return np.concatenate([front, np.arange(d), back])


def _mirror_offset(mode: str, dims: Sequence[int], pairs: Sequence[Sequence[int]]) -> int:
    offset = 1 if mode == "REFLECT" else 0
    for i, (d, (lo, hi)) in enumerate(zip(dims, pairs)):
        if max(lo, hi) > d - offset:
            raise invalid(
                f"paddings must be {'less than' if offset else 'no greater than'} the dimension size: {lo}, {hi} "
                f"{'not less than' if offset else 'greater than'} {d} (dimension {i})"
            )
    return offset


def _mirror_kernel(xp: Any, x: Any, paddings: Any, *, mode: str) -> Any:
    pairs = checked_paddings(x, paddings)
    offset = _mirror_offset(mode, x.shape, pairs)
    for axis, (lo, hi) in enumerate(pairs):
        if lo or hi:
            x = xp.take(x, _mirror_index(x.shape[axis], lo, hi, offset), axis)
    return x


def _mirror_grad_kernel(xp: Any, x: Any, paddings: Any, *, mode: str) -> Any:
    """Every mirror image is added to the element that it shows."""
    offset = 1 if mode == "REFLECT" else 0
    for axis, (lo, hi) in enumerate(checked_paddings(x, paddings)):
        if not lo and not hi:
            continue
        head = (slice(None),) * axis
        d = x.shape[axis] - lo - hi
        core = x[(*head, slice(lo, lo + d))]
        flipped = (*head, slice(None, None, -1))
        if lo:
            at = (*head, slice(offset, offset + lo))
            core = xp.index_add(core, at, x[(*head, slice(0, lo))][flipped])
        if hi:
            at = (*head, slice(d - offset - hi, d - offset))
            core = xp.index_add(core, at, x[(*head, slice(lo + d, None))][flipped])
        x = core
    return x


def _mirror_grad_shape(c: Inference) -> list[Shape]:
    s, value = c.shape(0), c.value(1)
    if s is None or value is None:
        return [None if s is None else (None,) * len(s)]
    return [tuple(None if d is None else d - int(lo) - int(hi) for d, (lo, hi) in zip(s, value))]


_MIRROR = "input: T, paddings: Tpaddings -> output: T; Tpaddings: type(index)=int32, mode: str"
MIRROR_PAD = define(
    "MirrorPad", _MIRROR, shape=_pad_shape, kernel=_mirror_kernel,
    grad=lambda op, g: [apply_op("MirrorPadGrad", g, op.inputs[1], mode=op._attrs["mode"]), None],
    known_inputs=(1,), view=True,
)  # fmt: skip
MIRROR_PAD_GRAD = define(
    "MirrorPadGrad", _MIRROR, shape=_mirror_grad_shape, kernel=_mirror_grad_kernel,
    grad=lambda op, g: [apply(MIRROR_PAD, g, op.inputs[1], mode=op._attrs["mode"]), None],
    known_inputs=(1,), view=True,
)  # fmt: skip


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """Add elements at both ends of each dimension: a constant, or the mirror image of what is there."""
    mode = mode.upper()
    if mode == "CONSTANT":
        if type(constant_values) in (int, float) and constant_values == 0:
            return apply(PAD, tensor, paddings, name=name)
        return apply(PAD_V2, tensor, paddings, constant_values, name=name)
    if mode in ("REFLECT", "SYMMETRIC"):
        return apply(MIRROR_PAD, tensor, paddings, mode=mode, name=name)
    raise ValueError(f"Unknown padding mode: {mode}")


def pad_v2(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    constant_values: Any = 0,
    name: str | None = None,
) -> Tensor:
    return pad(tensor, paddings, mode, name, constant_values)


def mirror_pad(input: Any, paddings: Any, mode: str, name: str | None = None) -> Tensor:
    return apply(MIRROR_PAD, input, paddings, mode=mode, name=name)
