"""Moving elements around: reversing, rolling, and between batch, space and depth.

>>> tf.reverse(x, [1]); tf.depth_to_space(x, 2); tf.space_to_batch_nd(x, [2, 2], [[0, 0], [1, 1]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import define, lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, one_of, shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, ShapeLike, TensorLike

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "batch_to_space_v2",
    "depth_to_space",
    "depth_to_space_v2",
    "extract_image_patches",
    "extract_image_patches_v2",
    "required_space_to_batch_paddings",
    "reverse",
    "reverse_sequence",
    "reverse_sequence_v2",
    "reverse_v2",
    "roll",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_batch_v2",
    "space_to_depth",
    "space_to_depth_v2",
]


# Reverse ----------------------------------------------------------------------------------------


def _reverse_shape(c: Inference) -> list[Shape]:
    s, axes = c.shape(0), c.value(1)
    c.require_rank(1, 1)
    if s is not None and axes is not None:
        seen = set()
        for a in axes.tolist():
            if not -len(s) <= a < len(s):
                raise ValueError(f"'axis' = {a} is out of valid range [{-len(s)}, {len(s)})")
            if a % len(s) in seen:
                raise ValueError(f"axis {a % len(s)} specified more than once")
            seen.add(a % len(s))
    return [s]


def _reverse_kernel(xp: ArrayNamespace, x: Array, axis: Array) -> Any:
    if not x.ndim:  # TensorFlow returns a scalar before it looks at the axes
        return x
    index: list[Any] = [slice(None)] * x.ndim
    for a in axis.tolist():
        if not -x.ndim <= a < x.ndim:
            raise invalid(f"'axis'[{a}] = {a} is out of valid range [0, {x.ndim - 1}]")
        if index[a].step is not None:
            raise invalid(f"axis {a % x.ndim} specified more than once.")
        index[a] = slice(None, None, -1)
    return x[tuple(index)]


def _reverse_v1_kernel(xp: ArrayNamespace, x: Array, dims: Array) -> Array:
    if dims.size != x.ndim:
        raise invalid(
            f"dims must have as many elements as the rank of the tensor: {dims.size} vs. {x.ndim}"
        )
    return x[tuple(slice(None, None, -1 if d else None) for d in dims.tolist())] if x.ndim else x


REVERSE = define(
    "ReverseV2",
    "tensor: T, axis: Tidx -> output: T; Tidx: type(index)=int32",
    shape=_reverse_shape,
    kernel=_reverse_kernel,
    grad=lambda op, g: [apply_op("ReverseV2", g, op.inputs[1]), None],
    view=True,
    known_inputs=(1,),
    rearranges=True,
)


def _reverse_v1_shape(c: Inference) -> list[Shape]:
    c.require_rank(1, 1)
    return [c.shape(0)]


REVERSE_V1 = define(
    "Reverse",
    "tensor: T, dims: bool -> output: T",
    shape=_reverse_v1_shape,
    kernel=_reverse_v1_kernel,
    grad=lambda op, g: [apply_op("Reverse", g, op.inputs[1]), None],
    view=True,
    known_inputs=(1,),
)


def reverse(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Reverse the order along the dimensions in ``axis``."""
    return apply(REVERSE, tensor, axis, name=name)


reverse_v2 = reverse


def _sequence_dims(rank: int, seq_dim: int, batch_dim: int) -> tuple[int, int]:
    seq = seq_dim + rank if seq_dim < 0 else seq_dim
    batch = batch_dim + rank if batch_dim < 0 else batch_dim
    if seq >= rank or batch >= rank:
        raise ValueError(
            f"seq_dim and batch_dim must be < input rank ( {seq_dim}, {batch_dim} vs. {rank})"
        )
    return seq, batch


def _reverse_sequence_shape(c: Inference) -> list[Shape]:
    s = c.shape(0)
    lengths = c.require_rank(1, 1)
    if s is None:
        return [None]
    _, batch = _sequence_dims(len(s), c.attr("seq_dim"), c.attr("batch_dim"))
    known = lengths[0]
    if known is not None and s[batch] is not None and known != s[batch]:
        raise ValueError(f"Dimensions must be equal, but are {s[batch]} and {known}")
    return [s[:batch] + (known if s[batch] is None else s[batch],) + s[batch + 1 :]]


def _reverse_sequence_kernel(
    xp: ArrayNamespace, x: Array, lengths: Array, *, seq_dim: int, batch_dim: int
) -> Array:
    """Position s of row b comes from ``lengths[b] - 1 - s`` where s is inside the sequence."""
    seq, batch = _sequence_dims(x.ndim, seq_dim, batch_dim)
    if seq == batch:
        raise invalid(f"batch_dim == seq_dim == {seq}")
    if lengths.size != x.shape[batch]:
        raise invalid(
            f"Length of seq_lengths != input.dims({batch}), ({lengths.size} vs. {x.shape[batch]})"
        )
    if xp.name == "numpy" and lengths.size:
        if lengths.min() < 0:
            raise invalid(f"seq_lens({int(lengths.argmin())}) < 0")
        if lengths.max() > x.shape[seq]:
            raise invalid(f"seq_lens({int(lengths.argmax())}) > input.dims({seq})")
    at = xp.arange(x.shape[seq])
    ends = lengths[:, None]
    source = xp.where(at < ends, ends - 1 - at, at)  # (batch, seq)
    if batch > seq:
        source = source.T
    index = source.reshape([d if i in (seq, batch) else 1 for i, d in enumerate(x.shape)])
    return xp.take_along_axis(x, index, seq)


REVERSE_SEQUENCE = define(
    "ReverseSequence",
    "input: T, seq_lengths: Tlen -> output: T; seq_dim: int, batch_dim: int=0, Tlen: "
    "type(index)=int64",
    shape=_reverse_sequence_shape,
    kernel=_reverse_sequence_kernel,
    grad=lambda op, g: [
        apply_op(
            "ReverseSequence",
            g,
            op.inputs[1],
            seq_dim=op._attrs["seq_dim"],
            batch_dim=op._attrs["batch_dim"],
        ),
        None,
    ],
)


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverse the first ``seq_lengths[i]`` elements of row i."""
    seq = one_of("seq_axis", seq_axis, "seq_dim", seq_dim)
    if seq is None:
        raise TypeError("reverse_sequence needs seq_axis")
    batch = one_of("batch_axis", batch_axis, "batch_dim", batch_dim) or 0
    return apply(REVERSE_SEQUENCE, input, seq_lengths, seq_dim=seq, batch_dim=batch, name=name)


def reverse_sequence_v2(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> Tensor:
    """As ``tf.reverse_sequence``, without the old names of its arguments."""
    return reverse_sequence(input, seq_lengths, seq_axis, batch_axis, name)


# Roll -------------------------------------------------------------------------------------------


def _roll_kernel(xp: ArrayNamespace, x: Array, shift: Array, axis: Array) -> Array:
    axes = axis.reshape(-1).tolist()
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise invalid(f"axis {a} is out of range")
    if shift.shape != axis.shape:
        raise invalid("shift and axis must have the same size")
    return xp.roll(x, shift.reshape(-1).tolist(), axes)


def _roll_grad(op: Operation, grad: Tensor) -> list[Any]:
    return [apply(ROLL, grad, apply_op("Neg", op.inputs[1]), op.inputs[2]), None, None]


def _roll_shape(c: Inference) -> list[Shape]:
    c.require_rank_at_least(0, 1)
    ranks = c.rank(1), c.rank(2)
    if None not in ranks and ranks[0] != ranks[1]:
        raise ValueError(f"Shapes must be equal rank, but are {ranks[0]} and {ranks[1]}")
    return [c.shape(0)]


ROLL = define(
    "Roll",
    "input: T, shift: Tshift, axis: Taxis -> output: T; Tshift: type(index), Taxis: type(index)",
    shape=_roll_shape,
    kernel=_roll_kernel,
    grad=_roll_grad,
    known_inputs=(1, 2),
)


def roll(input: TensorLike, shift: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """Shift along dimensions; what leaves at one end comes in at the other."""
    return apply(ROLL, input, shift, axis, name=name)


# space and batch --------------------------------------------------------------------------------


def _space_to_batch_dims(s: Sequence[Any], block: list[int], pads: list[list[int]]) -> list[Any]:
    """(batch, space…, rest…) to (batch * Πblock, (space + pads) / block, rest…)."""
    times = int(np.prod(block)) if block else 1
    out: list[Any] = [None if s[0] is None else s[0] * times]
    for i, (n, (lo, hi)) in enumerate(zip(block, pads)):
        d = s[i + 1]
        if d is not None and (d + lo + hi) % n:
            raise ValueError(
                f"padded_shape[{i}]={d + lo + hi} is not divisible by block_shape[{i}]={n}"
            )
        out.append(None if d is None else (d + lo + hi) // n)
    return out + list(s[len(block) + 1 :])


def _batch_to_space_dims(s: Sequence[Any], block: list[int], crops: list[list[int]]) -> list[Any]:
    times = int(np.prod(block)) if block else 1
    if s[0] is not None and s[0] % times:
        raise ValueError(
            f"input batch dimension ({s[0]}) is not divisible by product of block sizes ({times})"
        )
    out: list[Any] = [None if s[0] is None else s[0] // times]
    for i, (n, (lo, hi)) in enumerate(zip(block, crops)):
        d = s[i + 1]
        if d is not None and d * n - lo - hi < 0:
            raise ValueError(f"crops[{i}] = [{lo}, {hi}] are larger than the dimension {d * n}")
        out.append(None if d is None else d * n - lo - hi)
    return out + list(s[len(block) + 1 :])


def _partly_known(
    rule: Callable[..., Any], s: Sequence[Any], count: int | None, block: Any
) -> Shape:
    """Batch size (if the block is known) and the dimensions behind the blocks."""
    if count is None:
        return (None,) * len(s)
    if block is None:
        first = None
    else:
        unknown = [s[0], *(None,) * count]
        first = rule(unknown, block.tolist(), [[0, 0]] * count)[0]
    return (first, *(None,) * count, *s[count + 1 :])


def _nd_shape(rule: Callable[..., Any]) -> Callable[..., Any]:
    def infer(c: Inference) -> list[Shape]:
        s, block, pads = c.shape(0), c.value(1), c.value(2)
        length = c.require_rank(1, 1)
        count = length[0] if length is not None else None
        shapes.merge(c.shape(2), (count, 2))
        if block is not None and any(n < 1 for n in block.tolist()):
            raise ValueError(f"block_shape must be positive, got {block.tolist()}")
        if s is None:
            return [None]
        if count is None:
            raise ValueError("block_shape must have known size.")
        if len(s) < count + 1:
            raise ValueError(f"Shape must be at least rank {count + 1} but is rank {len(s)}")
        if block is None or pads is None:
            return [_partly_known(rule, s, count, block)]
        if len(s) < block.size + 1:
            raise ValueError(f"Shape must be at least rank {block.size + 1} but is rank {len(s)}")
        return [tuple(rule(s, block.tolist(), pads.tolist()))]

    return infer


def _v1_shape(rule: Callable[..., Any]) -> Callable[..., Any]:
    def infer(c: Inference) -> list[Shape]:
        s, pads, n = c.require_rank(0, 4), c.value(1), c.attr("block_size")
        return [(None,) * 4 if pads is None else tuple(rule(s, [n, n], pads.tolist()))]

    return infer


def _checked(rule: Callable[..., Any], x: Array, block: list[int], pads: list[list[int]]) -> None:
    if x.ndim < len(block) + 1:
        raise invalid(f"input rank should be >= {len(block) + 1} instead of {x.ndim}")
    if any(n < 1 for n in block):
        raise invalid("All values in block_shape must be positive, got " + str(block))
    if any(n < 0 for pair in pads for n in pair):
        raise invalid("paddings and crops must be non-negative, got " + str(pads))
    try:
        rule(x.shape, block, pads)
    except ValueError as error:
        raise invalid(str(error)) from None


def _space_to_batch(xp: ArrayNamespace, x: Array, block: list[int], pads: list[list[int]]) -> Array:
    _checked(_space_to_batch_dims, x, block, pads)
    m = len(block)
    rest = x.shape[m + 1 :]
    if any(n for pair in pads for n in pair):
        x = xp.pad(x, [[0, 0], *pads] + [[0, 0]] * len(rest))
    dims = [x.shape[0]]
    for d, n in zip(x.shape[1:], block):
        dims += [d // n, n]
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)]
    order += range(2 * m + 1, 2 * m + 1 + len(rest))
    moved = x.reshape(dims + list(rest)).transpose(order)
    out = [x.shape[0] * int(np.prod(block)), *(d // n for d, n in zip(x.shape[1:], block))]
    return moved.reshape(out + list(rest))


def _batch_to_space(
    xp: ArrayNamespace, x: Array, block: list[int], crops: list[list[int]]
) -> Array:
    _checked(_batch_to_space_dims, x, block, crops)
    m = len(block)
    rest = list(x.shape[m + 1 :])
    batch = x.shape[0] // int(np.prod(block))
    split = x.reshape([*block, batch, *x.shape[1:]])
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    order += range(2 * m + 1, 2 * m + 1 + len(rest))
    space = [d * n for d, n in zip(x.shape[1:], block)]
    whole = split.transpose(order).reshape([batch, *space, *rest])
    return whole[(slice(None), *(slice(lo, d - hi) for d, (lo, hi) in zip(space, crops)))]


SPACE_TO_BATCH_ND = define(
    "SpaceToBatchND",
    "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T; Tblock_shape: "
    "type(index)=int32, Tpaddings: type(index)=int32",
    shape=_nd_shape(_space_to_batch_dims),
    kernel=lambda xp, x, block, pads: _space_to_batch(xp, x, block.tolist(), pads.tolist()),
    grad=lambda op, g: [apply_op("BatchToSpaceND", g, op.inputs[1], op.inputs[2]), None, None],
    known_inputs=(1, 2),
    view=True,
)
BATCH_TO_SPACE_ND = define(
    "BatchToSpaceND",
    "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T; Tblock_shape: "
    "type(index)=int32, Tcrops: type(index)=int32",
    shape=_nd_shape(_batch_to_space_dims),
    kernel=lambda xp, x, block, crops: _batch_to_space(xp, x, block.tolist(), crops.tolist()),
    grad=lambda op, g: [apply(SPACE_TO_BATCH_ND, g, op.inputs[1], op.inputs[2]), None, None],
    known_inputs=(1, 2),
    view=True,
)
SPACE_TO_BATCH = define(
    "SpaceToBatch",
    "input: T, paddings: Tpaddings -> output: T; Tpaddings: type(index)=int32, block_size: int",
    shape=_v1_shape(_space_to_batch_dims),
    kernel=lambda xp, x, pads, *, block_size: _space_to_batch(
        xp, x, [block_size] * 2, pads.tolist()
    ),
    grad=lambda op, g: [
        apply_op("BatchToSpace", g, op.inputs[1], block_size=op._attrs["block_size"]),
        None,
    ],
    known_inputs=(1,),
    view=True,
)
BATCH_TO_SPACE = define(
    "BatchToSpace",
    "input: T, crops: Tidx -> output: T; block_size: int, Tidx: type(index)=int32",
    shape=_v1_shape(_batch_to_space_dims),
    kernel=lambda xp, x, crops, *, block_size: _batch_to_space(
        xp, x, [block_size] * 2, crops.tolist()
    ),
    grad=lambda op, g: [
        apply(SPACE_TO_BATCH, g, op.inputs[1], block_size=op._attrs["block_size"]),
        None,
    ],
    known_inputs=(1,),
    view=True,
)


def space_to_batch_nd(
    input: TensorLike, block_shape: object, paddings: object, name: str | None = None
) -> Tensor:
    """Cut space into blocks; each position in a block becomes a batch entry."""
    return apply(SPACE_TO_BATCH_ND, input, block_shape, paddings, name=name)


def batch_to_space_nd(
    input: TensorLike, block_shape: object, crops: object, name: str | None = None
) -> Tensor:
    """Blocks of the batch dimension moved back into spatial ones, then cropped.

    The inverse of ``space_to_batch_nd``: ``block_shape`` has m sizes, ``crops`` is [m, 2].
    """
    return apply(BATCH_TO_SPACE_ND, input, block_shape, crops, name=name)


def space_to_batch(
    input: Tensor,
    paddings: object,
    block_size: TensorLike | None = None,
    name: str | None = None,
    block_shape: object = None,
) -> Tensor:
    """Blocks of height and width moved into the batch dimension, after padding with zeros.

    ``paddings`` is [2, 2]: [[top, bottom], [left, right]]. The padded sizes must be multiples of
    the block size.
    """
    n = one_of("block_shape", block_shape, "block_size", block_size)
    out = space_to_batch_nd(
        input, np.array([n, n], np.int32) if np.ndim(n) == 0 else n, paddings, name
    )
    out.set_shape(out.shape.with_rank(4))
    return out


def space_to_batch_v2(
    input: TensorLike, block_shape: TensorLike, paddings: TensorLike, name: str | None = None
) -> Tensor:
    """As ``tf.space_to_batch_nd``: any number of spatial dimensions."""
    return space_to_batch_nd(input, block_shape, paddings, name)


def batch_to_space(
    input: Tensor,
    crops: object,
    block_size: TensorLike,
    name: str | None = None,
    block_shape: object = None,
) -> Tensor:
    """Blocks of the batch dimension moved back into height and width, then cropped.

    ``crops`` is [2, 2]: [[top, bottom], [left, right]].
    """
    n = one_of("block_shape", block_shape, "block_size", block_size)
    out = batch_to_space_nd(
        input, np.array([n, n], np.int32) if np.ndim(n) == 0 else n, crops, name
    )
    out.set_shape(out.shape.with_rank(4))
    return out


def batch_to_space_v2(
    input: TensorLike, block_shape: TensorLike, crops: TensorLike, name: str | None = None
) -> Tensor:
    """As ``tf.batch_to_space_nd``; one number as ``block_shape`` means height and width."""
    if isinstance(block_shape, int):
        block_shape = np.array([block_shape, block_shape], np.int32)
    return batch_to_space_nd(input, block_shape, crops, name)


def required_space_to_batch_paddings(
    input_shape: ShapeLike,
    block_shape: TensorLike,
    base_paddings: object = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(paddings, crops) that make ``input_shape`` a multiple of ``block_shape``."""
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtypes.int32, "input_shape")
        block = convert_to_tensor(block_shape, dtypes.int32, "block_shape")
        count = block.shape.with_rank(1).as_list()[0]
        if count is None:
            raise ValueError("block_shape must have a known length")
        if count == 0:
            return const(np.zeros((0, 2))), const(np.zeros((0, 2)))
        base = (
            const(np.zeros((count, 2)))
            if base_paddings is None
            else convert_to_tensor(base_paddings, dtypes.int32)
        )
        values = [v for t in (sizes, block, base) if (v := static_value(t)) is not None]
        if len(values) == 3:
            s, b, p = values
            start = p[:, 0]
            extra = -(s + start + p[:, 1]) % b
            pads = np.stack([start, p[:, 1] + extra], 1)
            return const(pads, name="paddings"), const(
                np.stack([0 * extra, extra], 1), name="crops"
            )
        begin, end = apply_list(lookup("Unpack"), base, num=2, axis=1)
        full: Any = sizes + begin + end
        extra_t: Any = (block - full % block) % block
        pads_t = apply_op("Pack", [begin, end + extra_t], axis=1, name="paddings")
        return pads_t, apply_op("Pack", [0 * extra_t, extra_t], axis=1, name="crops")


# space and depth --------------------------------------------------------------------------------


def _depth_shape(to_depth: bool) -> Callable[..., Any]:
    def infer(c: Inference) -> list[Shape]:
        s, n, nchw = c.require_rank(0, 4), c.attr("block_size"), c.attr("data_format") == "NCHW"
        assert s is not None
        batch, h, w, depth = (s[0], s[2], s[3], s[1]) if nchw else s
        if to_depth:
            h, w = _divided(h, n), _divided(w, n)
            depth = None if depth is None else depth * n * n
        else:
            h, w = (None if d is None else d * n for d in (h, w))
            depth = _divided(depth, n * n)
        return [(batch, depth, h, w) if nchw else (batch, h, w, depth)]

    return infer


def _divided(d: int | None, n: int) -> int | None:
    if d is not None and d % n:
        raise ValueError(f"Dimension size must be evenly divisible by {n} but is {d}")
    return None if d is None else d // n


def _space_to_depth_kernel(
    xp: ArrayNamespace, x: Array, *, block_size: int, data_format: str
) -> Array:
    n = block_size
    if data_format == "NCHW":
        b, c, h, w = x.shape
        _check_blocks(n, h, w)
        split = x.reshape(b, c, h // n, n, w // n, n).transpose(0, 3, 5, 1, 2, 4)
        return split.reshape(b, c * n * n, h // n, w // n)
    b, h, w, c = x.shape
    _check_blocks(n, h, w)
    split = x.reshape(b, h // n, n, w // n, n, c).transpose(0, 1, 3, 2, 4, 5)
    return split.reshape(b, h // n, w // n, c * n * n)


def _check_blocks(n: int, h: int, w: int) -> None:
    if h % n or w % n:
        raise invalid(f"Image width {w} and height {h} should be divisible by block_size: {n}")


def _depth_to_space_kernel(
    xp: ArrayNamespace, x: Array, *, block_size: int, data_format: str
) -> Array:
    n = block_size
    if data_format == "NCHW":
        b, c, h, w = x.shape
        split = x.reshape(b, n, n, c // (n * n), h, w).transpose(0, 3, 4, 1, 5, 2)
        return split.reshape(b, c // (n * n), h * n, w * n)
    b, h, w, c = x.shape
    if c % (n * n):
        raise invalid(f"Input depth dimension {c} should be divisible by: {n * n}")
    split = x.reshape(b, h, w, n, n, c // (n * n)).transpose(0, 1, 3, 2, 4, 5)
    return split.reshape(b, h * n, w * n, c // (n * n))


_DEPTH = "input: T -> output: T; block_size: int, data_format: str='NHWC'"


def _other(name: str) -> Callable[..., Any]:
    def grad(op: Operation, g: TensorLike) -> list[Any]:
        attrs = {k: op._attrs[k] for k in ("block_size", "data_format")}
        return [apply_op(name, g, **attrs)]

    return grad


SPACE_TO_DEPTH = define(
    "SpaceToDepth",
    _DEPTH,
    shape=_depth_shape(True),
    kernel=_space_to_depth_kernel,
    grad=_other("DepthToSpace"),
    view=True,
)
DEPTH_TO_SPACE = define(
    "DepthToSpace",
    _DEPTH,
    shape=_depth_shape(False),
    kernel=_depth_to_space_kernel,
    grad=_other("SpaceToDepth"),
    view=True,
)


def space_to_depth(
    input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Blocks of height and width moved into channels: [n, h, w, c] to [n, h/b, w/b, c*b*b].

    ``block_size`` b must divide height and width. ``depth_to_space`` is the inverse.
    """
    return apply(SPACE_TO_DEPTH, input, block_size=block_size, data_format=data_format, name=name)


def depth_to_space(
    input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Channels as blocks of space: the inverse of ``space_to_depth``."""
    return apply(DEPTH_TO_SPACE, input, block_size=block_size, data_format=data_format, name=name)


def space_to_depth_v2(
    input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """As ``tf.space_to_depth``, with ``data_format`` before ``name``."""
    return space_to_depth(input, block_size, name, data_format)


def depth_to_space_v2(
    input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """As ``tf.depth_to_space``, with ``data_format`` before ``name``."""
    return depth_to_space(input, block_size, name, data_format)


# image patches ----------------------------------------------------------------------------------


def _window(extent: int, k: int, stride: int, rate: int, padding: str) -> tuple[int, int]:
    """(number of windows, padding in front) along one dimension."""
    reach = k + (k - 1) * (rate - 1)
    if padding == "VALID":
        return max(0, -(-(extent - reach + 1) // stride)), 0
    count = -(-extent // stride)
    return count, max((count - 1) * stride + reach - extent, 0) // 2


def _patches_shape(c: Inference) -> list[Shape]:
    s = c.require_rank(0, 4)
    assert s is not None
    k, st, r = c.attr("ksizes"), c.attr("strides"), c.attr("rates")
    for what, values in (("ksizes", k), ("stride", st), ("rates", r)):
        if len(values) != 4:
            raise ValueError(
                f"ExtractImagePatches requires the {what} attribute to contain 4 values, but got: "
                f"{len(values)}"
            )
    out = [
        None if d is None else _window(d, k[i], st[i], r[i], c.attr("padding"))[0]
        for i, d in ((1, s[1]), (2, s[2]))
    ]
    return [(s[0], out[0], out[1], None if s[3] is None else s[3] * k[1] * k[2])]


def _check_patches(attrs: dict[str, Any]) -> None:
    for what in ("ksizes", "strides", "rates"):
        given = attrs[what]
        if given[0] != 1 or given[3] != 1:
            raise errors.UnimplementedError(None, None, f"Only support {what} across space.")


def _patches_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    ksizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Array:
    """Row and column numbers of every window element.

    Numbers outside the image read a border of zeros.
    """
    b, h, w, c = x.shape
    (kh, kw), (sh, sw), (rh, rw) = ksizes[1:3], strides[1:3], rates[1:3]
    (oh, top), (ow, left) = _window(h, kh, sh, rh, padding), _window(w, kw, sw, rw, padding)
    rows = np.arange(oh)[:, None] * sh + np.arange(kh) * rh  # (oh, kh), in the padded image
    cols = np.arange(ow)[:, None] * sw + np.arange(kw) * rw
    bottom = max(0, int(rows.max(initial=0)) + 1 - top - h)
    right = max(0, int(cols.max(initial=0)) + 1 - left - w)
    if top or left or bottom or right:
        x = xp.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]])
    picked = x[:, rows[:, None, :, None], cols[None, :, None, :], :]  # (b, oh, ow, kh, kw, c)
    return picked.reshape(b, oh, ow, kh * kw * c)


def _patches_grad(op: Operation, grad: Tensor) -> list[Any]:
    """Number the pixels from 1, take patches of the numbers, and sum the gradient by pixel (0 is
    the padding).
    """
    x = op.inputs[0]
    attrs = {k: op._attrs[k] for k in ("ksizes", "strides", "rates", "padding")}
    dims = shape(x)
    b, h, w, c = (dims[i] for i in range(4))
    pixels = h * w
    numbers = apply_op("Range", const(1), pixels + 1, const(1))
    image = apply_op("Reshape", numbers, apply_op("Pack", [const(1), h, w, const(1)]))
    ids = apply_op("Reshape", apply(EXTRACT_IMAGE_PATCHES, image, **attrs), const([-1]))
    flat = apply_op("Reshape", grad, apply_op("Pack", [b, const(-1), c]))  # (b, windows * k, c)
    first = apply_op("Transpose", flat, const([1, 0, 2]))
    summed = apply_op("UnsortedSegmentSum", first, ids, pixels + 1)
    back = apply_op("Transpose", summed[1:], const([1, 0, 2]))
    return [apply_op("Reshape", back, dims)]


EXTRACT_IMAGE_PATCHES = define(
    "ExtractImagePatches",
    "images: T -> patches: T; ksizes: list(int), strides: list(int), rates: list(int), T: "
    "type(real), padding: str",
    shape=_patches_shape,
    kernel=_patches_kernel,
    grad=_patches_grad,
    check_attrs=_check_patches,
)


def extract_image_patches(
    images: TensorLike,
    ksizes: TensorLike | None = None,
    strides: TensorLike | None = None,
    rates: TensorLike | None = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: object = None,
) -> Tensor:
    """Windows of an image, each as one long channel vector."""
    ksizes = one_of("sizes", sizes, "ksizes", ksizes)
    return apply(
        EXTRACT_IMAGE_PATCHES,
        images,
        ksizes=ksizes,
        strides=strides,
        rates=rates,
        padding=padding,
        name=name,
    )


def extract_image_patches_v2(
    images: TensorLike,
    sizes: TensorLike,
    strides: TensorLike,
    rates: TensorLike,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Patches of pictures, each flattened into the depth dimension.

    ``sizes``, ``strides`` and ``rates`` are [1, rows, columns, 1].
    """
    return extract_image_patches(images, sizes, strides, rates, padding, name)
