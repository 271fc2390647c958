"""Padding with a constant or by mirroring, and repeating: ``tf.pad``, ``tf.tile``, ``tf.repeat``.

>>> tf.pad(x, [[0, 0], [1, 1]]); tf.tile(x, [1, 2]); tf.repeat(x, 2, axis=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference, partial_shape, static_value
from headrace.core.opdef import define, lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["mirror_pad", "pad", "pad_v2", "repeat", "repeat_with_axis", "tile"]


# Tile -------------------------------------------------------------------------------------------


def _tile_shape(c: Inference) -> list[Shape]:
    s, times = c.shape(0), c.shape_value(1)
    if s is None:
        return [None if times is None else tuple(0 if m == 0 else None for m in times)]
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


def _tile_kernel(xp: ArrayNamespace, x: Array, multiples: Array) -> Array:
    times = multiples.tolist()
    dims = x.shape
    if len(times) != len(dims):
        raise invalid(
            f"Expected multiples argument to be a vector of length {len(dims)} but got "
            f"length {len(times)}"
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


def _tile_grad(op: Operation, grad: Tensor) -> list[Any]:
    """Sum over the copies: (m0*d0, …) seen as (m0, d0, …)."""
    x, multiples = op.inputs
    known, times = shapes.known(x._shape), static_value(multiples)
    rank = x._rank()
    if known is not None and times is not None:
        split_shape = const([n for pair in zip(times.tolist(), known) for n in pair])
        axes = const(range(0, 2 * len(known), 2))
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
    "Tile",
    "input: T, multiples: Tmultiples -> output: T; Tmultiples: type(index)=int32",
    shape=_tile_shape,
    kernel=_tile_kernel,
    grad=_tile_grad,
    known_inputs=(1,),
    view=True,
    fails="arguments",
)


def _tile_grad_shape(c: Inference) -> list[Shape]:
    s, times = c.shape(0), c.shape_value(1)
    if s is None or times is None:
        return [None if s is None else (None,) * len(s)]
    return [tuple(None if d is None or not m else d // m for d, m in zip(s, times))]


def _tile_grad_kernel(xp: ArrayNamespace, x: Array, multiples: Array) -> Array:
    full: list[int] = []
    for m, d in zip(multiples.tolist(), x.shape):
        full += (m, d // m)
    return xp.sum(x.reshape(full), axis=tuple(range(0, len(full), 2)), dtype=x.dtype)


TILE_GRAD = define(
    "TileGrad",
    "input: T, multiples: int32 -> output: T",
    shape=_tile_grad_shape,
    kernel=_tile_grad_kernel,
    grad=lambda op, g: [apply(TILE, g, op.inputs[1]), None],
    known_inputs=(1,),
    removed=(3, "TileGrad has been replaced with reduce_sum"),
)


@dispatched("tile")
def tile(input: TensorLike, multiples: object, name: str | None = None) -> Tensor:
    """Repeat the whole tensor so many times along each dimension."""
    return apply(TILE, input, multiples, name=name)


def repeat(
    input: TensorLike, repeats: TensorLike, axis: int | None = None, name: str | None = None
) -> Tensor:
    """Each element repeated, as ``numpy.repeat``; without ``axis`` of the flattened tensor.

    ``repeats`` is one number or one per element: ``tf.repeat([3, 4], [2, 1])`` is [3, 3, 4].
    """
    if axis is None:
        input = apply_op("Reshape", input, const([-1]))
        axis = 0
    return repeat_with_axis(input, repeats, axis, name)


def repeat_with_axis(
    data: TensorLike, repeats: TensorLike, axis: int, name: str | None = None
) -> Tensor:
    """Gather each slice ``repeats[i]`` times.

    Slice i covers the positions below the running sum of repeats.
    """
    with name_scope(name, "Repeat", [data, repeats]):
        counts = convert_to_tensor(repeats)
        if not counts._dtype._base.is_integer and counts._shape != (0,):
            raise TypeError(f"repeats must be an integer tensor; dtype={counts._dtype!r}")
        if counts._dtype._base not in (dtypes.int32, dtypes.int64):
            counts = apply_op("Cast", counts, DstT=dtypes.int32)
        return _repeated(convert_to_tensor(data), counts, axis)


def _repeated_alike(data: Tensor, repeats: Tensor, axis: int, rank: int) -> Tensor:
    """Every slice the same number of times: on an axis of its own, then joined with its axis."""
    one = const(1, repeats._dtype)
    multiples = apply_op("Pack", [*[one] * (axis + 1), repeats, *[one] * (rank - axis - 1)])
    tiled = apply(TILE, apply_op("ExpandDims", data, const(axis + 1)), multiples)
    dims = shape(data)
    target = apply_op("ConcatV2", [dims[:axis], const([-1]), dims[axis + 1 :]], const(0))
    out: Tensor = apply_op("Reshape", tiled, target)
    out.set_shape([None if i == axis else d for i, d in enumerate(data._shape or ())])
    return out


def _repeated(data: Tensor, repeats: Tensor, axis: int) -> Tensor:
    rank = data._rank()
    if rank is None:
        raise ValueError("tf.repeat needs a tensor of known rank")
    if not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    axis %= rank
    if repeats._shape == ():
        return _repeated_alike(data, repeats, axis, rank)
    # the gradient of this Reshape makes the gather's dense
    data = apply_op("Reshape", data, shape(data), name="boolean_mask/Reshape")
    repeats = apply_op("Maximum", repeats, const(0, repeats._dtype))
    dims = shape(data, out_type=repeats._dtype)
    size: Tensor = dims[axis]
    have, want = (repeats._shape or (None,))[0], shapes.ranked(data._shape)[axis]
    if None not in (have, want) and have not in (1, want):
        raise ValueError(f"Dimensions {want} and {have} are not compatible")
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
    name = "Reshape" if axis else "boolean_mask/GatherV2"
    return apply_op("GatherV2", data, which, const(axis), name=name)


# Pad --------------------------------------------------------------------------------------------


def _pad_shape(c: Inference) -> list[Shape]:
    s = c.shape(0)
    paddings = c.shape(1)
    if paddings is not None and len(paddings) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(paddings)}")
    rows, columns = paddings or (None, None)
    if columns not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {columns}")
    if s is None:
        return [None if rows is None else (None,) * rows]
    if rows is not None and rows != len(s):
        raise ValueError(f"Shape must be rank {rows} but is rank {len(s)}")
    value = c.value(1)
    if value is None:
        return [_padded_as_far_as_known(s, _known_rows(c.op._inputs[1]))]
    if value.size and value.min() < 0:
        raise ValueError(f"Paddings must be non-negative: {value.tolist()}")
    return [tuple(None if d is None else d + int(lo) + int(hi) for d, (lo, hi) in zip(s, value))]


def _known_rows(paddings: Tensor) -> list[Shape] | None:
    """Rows that were packed into a matrix, as far as their elements are known."""
    op = paddings._op
    if op.type != "Pack" or op._attrs["axis"] != 0:
        return None
    return [partial_shape(t) for t in op._inputs]


def _padded_as_far_as_known(s: Sequence[int | None], rows: Sequence[Any] | None) -> Shape:
    """The shape where only some of the paddings are known: ``[[1, 1], [n, 2]]``."""
    if rows is None or len(rows) != len(s):
        return (None,) * len(s)
    return tuple(
        None if d is None or row is None or None in row else d + int(row[0]) + int(row[1])
        for d, row in zip(s, rows)
    )


def checked_paddings(x: Array, paddings: Array) -> list[list[int]]:
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


def _pad_kernel(xp: ArrayNamespace, x: Array, paddings: Array, value: Array | None = None) -> Array:
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


def _one_value(value: Array) -> Array:
    if getattr(value, "ndim", 0):  # (a string is bytes)
        raise invalid(f"constant_values must be a scalar. Found: {shapes.show(value.shape)}")
    return value


def _inner(op: Operation, grad: Tensor) -> Tensor:
    """The part of a padded tensor that came from the input."""
    x, paddings = op.inputs[:2]
    value = static_value(paddings)
    if value is not None:
        begin: Any = const(value[:, 0], paddings._dtype)
    else:
        begin = apply_list(lookup("Unpack"), paddings, num=2, axis=1)[0]
    size = shape(x, out_type=paddings._dtype)
    return apply_op("Slice", grad, begin, size, name="Slice_1")  # TensorFlow slices paddings first


PAD = define(
    "Pad",
    "input: T, paddings: Tpaddings -> output: T; Tpaddings: type(index)=int32",
    shape=_pad_shape,
    kernel=lambda xp, x, paddings: _pad_kernel(xp, x, paddings),
    grad=lambda op, g: [_inner(op, g), None],
    known_inputs=(1,),
)
PAD_V2 = define(
    "PadV2",
    "input: T, paddings: Tpaddings, constant_values: T -> output: T; Tpaddings: type(index)=int32",
    shape=_pad_shape,
    kernel=lambda xp, x, paddings, value: _pad_kernel(xp, x, paddings, _one_value(value)),
    grad=lambda op, g: [_inner(op, g), None, None],
    known_inputs=(1,),
)


def _mirror_index(d: int, lo: int, hi: int, offset: int) -> Array:
    """Positions 0 … d-1 with their mirror images; ``offset`` 1 leaves the border out (REFLECT)."""
    front = np.arange(lo - 1 + offset, offset - 1, -1)
    back = np.arange(d - 1 - offset, d - 1 - offset - hi, -1)
    return np.concatenate([front, np.arange(d), back])


def _mirror_offset(mode: str, dims: Sequence[int], pairs: Sequence[Sequence[int]]) -> int:
    offset = 1 if mode == "REFLECT" else 0
    for i, (d, (lo, hi)) in enumerate(zip(dims, pairs)):
        if max(lo, hi) > d - offset:
            raise invalid(
                f"paddings must be {'less than' if offset else 'no greater than'} the "
                f"dimension size: {lo}, {hi} "
                f"{'not less than' if offset else 'greater than'} {d} (dimension {i})"
            )
    return offset


def _mirror_kernel(xp: ArrayNamespace, x: Array, paddings: Array, *, mode: str) -> Array:
    pairs = checked_paddings(x, paddings)
    offset = _mirror_offset(mode, x.shape, pairs)
    for axis, (lo, hi) in enumerate(pairs):
        if lo or hi:
            x = xp.take(x, _mirror_index(x.shape[axis], lo, hi, offset), axis)
    return x


def _mirror_grad_kernel(xp: ArrayNamespace, x: Array, paddings: Array, *, mode: str) -> Array:
    """Every mirror image is added to the element that it shows."""
    offset = 1 if mode == "REFLECT" else 0
    for axis, (lo, hi) in enumerate(checked_paddings(x, paddings)):
        if not lo and not hi:
            continue
        head = (slice(None),) * axis
        d = x.shape[axis] - lo - hi
        if max(lo, hi) > d - offset:
            raise invalid(
                f"paddings must be {'less' if offset else 'no greater'} than the output dimension "
                f"size: {lo}, {hi} {'not less' if offset else 'greater'} than {d}"
            )
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
    pairs = c.require_rank(1, 2)
    shapes.merge(pairs, (None, 2))
    rows = pairs[0]
    if s is not None and rows is not None and rows != len(s):
        raise ValueError(f"Shape must be rank {rows} but is rank {len(s)}")
    if value is not None and value.min(initial=0) < 0:
        raise ValueError("Paddings must be non-negative")
    if s is None or value is None:
        return [None if s is None else (None,) * len(s)]
    return [tuple(None if d is None else d - int(lo) - int(hi) for d, (lo, hi) in zip(s, value))]


_MIRROR = "input: T, paddings: Tpaddings -> output: T; Tpaddings: type(index)=int32, mode: str"
MIRROR_PAD = define(
    "MirrorPad",
    _MIRROR,
    shape=_pad_shape,
    kernel=_mirror_kernel,
    grad=lambda op, g: [apply_op("MirrorPadGrad", g, op.inputs[1], mode=op._attrs["mode"]), None],
    known_inputs=(1,),
    view=True,
)
MIRROR_PAD_GRAD = define(
    "MirrorPadGrad",
    _MIRROR,
    shape=_mirror_grad_shape,
    kernel=_mirror_grad_kernel,
    grad=lambda op, g: [apply(MIRROR_PAD, g, op.inputs[1], mode=op._attrs["mode"]), None],
    known_inputs=(1,),
    view=True,
)


def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: TensorLike = 0,
) -> Tensor:
    """``tensor`` with elements added at both ends of each dimension.

    ``paddings`` is [rank, 2]: how many before and behind. ``mode`` is "CONSTANT"
    (``constant_values``), "REFLECT" (mirrored without the edge) or "SYMMETRIC" (with it).

        tf.pad([1, 2, 3], [[1, 2]])                             # [0, 1, 2, 3, 0, 0]
        tf.pad([1, 2, 3], [[1, 2]], "REFLECT")                  # [2, 1, 2, 3, 2, 1]
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        if type(constant_values) in (int, float) and constant_values == 0:
            return apply(PAD, tensor, paddings, name=name)
        return apply(PAD_V2, tensor, paddings, constant_values, name=name)
    if mode in ("REFLECT", "SYMMETRIC"):
        return apply(MIRROR_PAD, tensor, paddings, mode=mode, name=name)
    raise ValueError(f"Unknown padding mode: {mode}")


def pad_v2(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    constant_values: TensorLike = 0,
    name: str | None = None,
) -> Tensor:
    """As ``tf.pad``, with ``constant_values`` before ``name``.

    ``paddings`` has a pair (before, after) for each dimension; ``mode`` is "CONSTANT", "REFLECT"
    (without the edge) or "SYMMETRIC" (with it).
    """
    return pad(tensor, paddings, mode, name, constant_values)


def mirror_pad(
    input: TensorLike, paddings: TensorLike, mode: str, name: str | None = None
) -> Tensor:
    return apply(MIRROR_PAD, input, paddings, mode=mode, name=name)
