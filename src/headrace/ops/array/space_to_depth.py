"""Blocks of pixels moved to the batch or to the channels, and back.

>>> tf.space_to_batch_nd(images, [2, 2], [[0, 0], [0, 0]])
>>> tf.space_to_depth(images, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import define, lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, one_of

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, ShapeLike, TensorLike

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "batch_to_space_v2",
    "depth_to_space",
    "depth_to_space_v2",
    "required_space_to_batch_paddings",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_batch_v2",
    "space_to_depth",
    "space_to_depth_v2",
]


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
        if c.rank(1) != 1:
            raise ValueError("block_shape must have rank 1.")
        (count,) = c.require_rank(1, 1)
        if count is None:
            raise ValueError("block_shape must have known size.")
        shapes.merge(c.shape(2), (count, 2))
        if pads is not None and pads.min(initial=0) < 0:
            which = "paddings" if rule is _space_to_batch_dims else "crops"
            raise ValueError(f"{which} cannot be negative")
        if block is not None and any(n < 1 for n in block.tolist()):
            raise ValueError(f"block_shape must be positive, got {block.tolist()}")
        if s is None:
            return [None]
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
        given = c.shape(1)
        if given is not None and len(given) != 2:
            raise ValueError(f"Shapes must be equal rank, but are {len(given)} and 2")
        shapes.merge(given, (2, 2))
        if pads is not None and pads.min(initial=0) < 0:
            which = "paddings" if rule is _space_to_batch_dims else "crops"
            raise ValueError(f"{which} cannot be negative")
        return [(None,) * 4 if pads is None else tuple(rule(s, [n, n], pads.tolist()))]

    return infer


def _checked(rule: Callable[..., Any], x: Array, block: list[int], pads: list[list[int]]) -> None:
    if len(pads) != len(block) or any(len(pair) != 2 for pair in pads):
        raise invalid(f"paddings or crops should have shape [{len(block)},2], got {pads}")
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
    """Blocks of the dimensions after the first moved into the batch dimension, after padding.

    ``block_shape`` is [m], ``paddings`` [m, 2] (zeros before and behind), for the m dimensions
    after the first. Padded sizes must be multiples of the block sizes. The batch grows by the
    product of ``block_shape``.
    """
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

    ``block_size`` is one number; the batch dimension grows by its square. ``block_shape`` is TF 2's
    name of it.
    """
    n = one_of("block_shape", block_shape, "block_size", block_size)
    out = space_to_batch_nd(
        input, np.array([n, n]).astype(np.int32) if np.ndim(n) == 0 else n, paddings, name
    )
    out.set_shape(out.shape.with_rank(4))
    return out


def space_to_batch_v2(
    input: TensorLike, block_shape: TensorLike, paddings: TensorLike, name: str | None = None
) -> Tensor:
    """As ``tf.space_to_batch_nd``: any number of spatial dimensions.

    ``paddings`` has a pair (begin, end) for each dimension of ``block_shape``; padded sizes must be
    multiples of the block. The batch becomes larger by the product of ``block_shape``.
    """
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

    ``block_size`` is one number; the batch dimension shrinks by its square. ``block_shape`` is TF
    2's name of it.
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
    """As ``tf.batch_to_space_nd``; one number as ``block_shape`` means height and width.

    ``crops`` has a pair (begin, end) for each spatial dimension: what is cut off the result. The
    batch becomes smaller by the product of ``block_shape``.
    """
    if isinstance(block_shape, int):
        block_shape = np.array([block_shape, block_shape], np.int32)
    return batch_to_space_nd(input, block_shape, crops, name)


def required_space_to_batch_paddings(
    input_shape: ShapeLike,
    block_shape: TensorLike,
    base_paddings: object = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(paddings, crops) that make ``input_shape`` a multiple of ``block_shape``.

    ``base_paddings`` are pairs that are wanted at least; the extra is added at the end of each
    dimension. Results are [dimensions, 2], constants where the arguments are.

        tf.required_space_to_batch_paddings([5], [2])  # ([[0, 1]], [[0, 1]])
    """
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


def _gradient_by(name: str) -> Callable[..., Any]:
    def grad(op: Operation, g: TensorLike) -> list[Any]:
        attrs = {k: op._attrs[k] for k in ("block_size", "data_format")}
        return [apply_op(name, g, **attrs)]

    return grad


SPACE_TO_DEPTH = define(
    "SpaceToDepth",
    _DEPTH,
    shape=_depth_shape(True),
    kernel=_space_to_depth_kernel,
    grad=_gradient_by("DepthToSpace"),
    view=True,
)


DEPTH_TO_SPACE = define(
    "DepthToSpace",
    _DEPTH,
    shape=_depth_shape(False),
    kernel=_depth_to_space_kernel,
    grad=_gradient_by("SpaceToDepth"),
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
    """Channels as blocks of space: the inverse of ``space_to_depth``.

    [n, h, w, c] becomes [n, h * b, w * b, c / (b * b)] with ``block_size`` b. ``data_format`` is
    "NHWC" or "NCHW".
    """
    return apply(DEPTH_TO_SPACE, input, block_size=block_size, data_format=data_format, name=name)


def space_to_depth_v2(
    input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """As ``tf.space_to_depth``, with ``data_format`` before ``name``.

    Squares of ``block_size`` pixels become channels: [n, h, w, c] gives [n, h / b, w / b, c * b **
    2]. ``data_format`` is "NHWC" or "NCHW".
    """
    return space_to_depth(input, block_size, name, data_format)


def depth_to_space_v2(
    input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """As ``tf.depth_to_space``, with ``data_format`` before ``name``.

    Blocks of ``block_size ** 2`` channels become squares of pixels: [n, h, w, c] gives [n, h * b, w
    * b, c / b ** 2]. ``data_format`` is "NHWC" or "NCHW".
    """
    return depth_to_space(input, block_size, name, data_format)
