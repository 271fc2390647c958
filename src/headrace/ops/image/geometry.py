"""Images turned, flipped, cut and padded, made of simple ops.

Every function takes one image (height x width x channels) or a batch of them.

    >>> image = tf.image.resize_image_with_crop_or_pad(image, 40, 40)
    >>> image = tf.image.random_flip_left_right(image)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, shapes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, count_more, ops_counted
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import expand_dims, reshape, shape, squeeze, transpose
from headrace.ops.array.casting import cast
from headrace.ops.array.joining import stack
from headrace.ops.array.padding import pad
from headrace.ops.array.reversing import reverse
from headrace.ops.array.slicing import slice as slice_op
from headrace.ops.control.case_branches import case
from headrace.ops.control.control_flow import cond
from headrace.ops.image.image_check import at_least_3d, not_empty, require
from headrace.ops.random.random_ops import random_uniform

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "central_crop",
    "crop_to_bounding_box",
    "flip_left_right",
    "flip_up_down",
    "pad_to_bounding_box",
    "random_flip_left_right",
    "random_flip_up_down",
    "resize_image_with_crop_or_pad",
    "rot90",
    "transpose_image",
]

# flips --------------------------------------------------------------------------------------------


def _flip(image: TensorLike, axis: int, scope: str) -> Tensor:
    """``axis`` counts from an image's height."""
    with name_scope(None, scope, [image]):
        image = at_least_3d(convert_to_tensor(image, name="image"))
        dims = image._rank()
        if dims is None or dims == 3:
            flipped = reverse(image, [axis])
            if dims is None:
                flipped.set_shape([None, None, None])
            return flipped
        if dims == 4:
            return reverse(image, [axis + 1])
        raise ValueError("'image' must have either 3 or 4 dimensions.")


def flip_left_right(image: TensorLike) -> Tensor:
    """Pictures mirrored, left and right exchanged; [height, width, c] or a batch of them."""
    return _flip(image, 1, "flip_left_right")


def flip_up_down(image: Tensor) -> Tensor:
    """Pictures upside down; [height, width, channels] or a batch of them."""
    return _flip(image, 0, "flip_up_down")


def _random_flip(image: TensorLike, axis: int, seed: int | None, scope_name: str) -> Tensor:
    with name_scope(None, scope_name, [image]) as scope:
        image = at_least_3d(convert_to_tensor(image, name="image"))
        dims = image._rank()
        if dims is None or dims == 3:
            chance = random_uniform([], 0, 1.0, seed=seed)
            mirrored = apply_op("Less", chance, 0.5)
            out = cond(mirrored, lambda: reverse(image, [axis]), lambda: image, name=scope)
            out.set_shape(shapes.TensorShape([None, None, None]) if dims is None else image.shape)
            return out
        if dims != 4:
            raise ValueError("'image' must have either 3 or 4 dimensions.")
        size = shape(image)[0]
        chances = random_uniform([size], 0, 1.0, seed=seed)
        flips = apply_op("Round", reshape(chances, [size, 1, 1, 1]))
        flips = cast(flips, image.dtype.base_dtype)
        return flips * reverse(image, [axis + 1]) + (1 - flips) * image


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Mirrored or not; each image of a batch by its own chance."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Tensor, seed: int | None = None) -> Tensor:
    """Each picture turned upside down with a chance of one half."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def transpose_image(image: TensorLike, name: str | None = None) -> Tensor:
    """Rows and columns of pictures exchanged: [height, width, c] to [width, height, c]."""
    with name_scope(name, "transpose", [image]):
        image = at_least_3d(convert_to_tensor(image, name="image"))
        dims = image._rank()
        if dims is None or dims == 3:
            return transpose(image, [1, 0, 2], name="transpose")
        if dims == 4:
            return transpose(image, [0, 2, 1, 3], name="transpose")
        raise ValueError("'image' must have either 3 or 4 dimensions.")


#: Operations for the choice between four turns, which TF makes where the turn is known, too.
_OPS_OF_TURNS = 59


def rot90(image: Any, k: TensorLike = 1, name: str | None = None) -> Tensor:
    """Turn images counter-clockwise by 90 degrees, ``k`` times."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = at_least_3d(convert_to_tensor(image, name="image"))
        k = convert_to_tensor(k, dtypes.int32, name="k")
        if k._shape not in (None, ()):
            raise ValueError(f"Shape {shapes.show(k._shape)} must have rank 0")
        turns = apply_op("FloorMod", k, 4)
        first = {3: 0, 4: 1, None: 0}.get(image._rank())
        if first is None:
            raise ValueError("'image' must have either 3 or 4 dimensions.")
        known = static_value(turns)
        ways = _turns(image, first)
        if known is not None:
            before = ops_counted(image._op.graph)
            turned = ways[int(known)]()
            count_as(image._op.graph, before, _OPS_OF_TURNS)
            return turned
        pairs = [(apply_op("Equal", turns, i), ways[i]) for i in (1, 2, 3)]
        count_more(image._op.graph, 11)
        out: Tensor = case(pairs, default=ways[0], exclusive=True, name=scope)
        out.set_shape(
            [None, None, image._shape[-1] if image._shape else None]
            if first == 0
            else [image._shape[0], None, None, image._shape[-1]]
        )
        return out


def _turns(image: Tensor, first: int) -> list[Callable[[], Tensor]]:
    """No turn, a quarter, a half, three quarters; ``first`` is the axis of the height."""
    rows, columns = first, first + 1
    swap = [1, 0, 2] if first == 0 else [0, 2, 1, 3]
    return [
        lambda: image,
        lambda: transpose(reverse(image, [columns]), swap),
        lambda: reverse(image, [rows, columns]),
        lambda: reverse(transpose(image, swap), [columns]),
    ]


# cutting and padding ------------------------------------------------------------------------------


def _known_size(image: Tensor) -> tuple[Any, Any]:
    """Height and width: integers where they are known, else tensors."""
    dims = image._shape
    at = len(dims) - 3 if dims is not None else 0
    known = (None, None) if dims is None else dims[at : at + 2]
    if None not in known:
        return known[0], known[1]
    whole = shape(image)
    return tuple(whole[at + i] if d is None else d for i, d in enumerate(known))  # type: ignore[return-value]


def _is_tensor(*values: object) -> bool:
    return any(isinstance(v, Tensor) for v in values)


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """The middle of an image, a fraction of each side."""
    with name_scope(None, "central_crop", [image]):
        image = convert_to_tensor(image, name="image")
        if central_fraction <= 0.0 or central_fraction > 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        if central_fraction == 1.0:
            return image
        image = at_least_3d(image)
        dims = image._rank()
        if dims not in (3, 4):
            raise ValueError(
                f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {dims}."
            )
        starts, sizes = zip(*(_central(d, central_fraction) for d in _known_size(image)))
        lead = [0] if dims == 4 else []
        begin = stack([*lead, *starts, 0])
        size = stack([*([-1] if dims == 4 else []), *sizes, -1])
        out = slice_op(image, begin, size)
        known = [None if _is_tensor(s) else s for s in sizes]
        static = shapes.ranked(image._shape)
        out.set_shape([*static[: dims - 3], *known, static[-1]])
        return out


def _central(size: int | Tensor, fraction: float) -> tuple[Any, Any]:
    """Start and length."""
    if not isinstance(size, Tensor):
        start = int((size - size * fraction) / 2)
        return start, size - start * 2
    floats = cast(size, dtypes.float64)
    begin = cast((floats - floats * fraction) / 2, dtypes.int32)
    return begin, size - begin * 2


def _batched(image: TensorLike, function: Callable[[Tensor], Tensor]) -> Tensor:
    """``function`` of a batch, applied to an image or a batch."""
    image = convert_to_tensor(image, name="image")
    dims = image._rank()
    if dims is not None and dims not in (3, 4):
        raise ValueError("'image' must have either 3 or 4 dimensions.")
    single = dims != 4  # of unknown rank: TensorFlow takes it for one image
    if single:
        image = expand_dims(image, 0)
        image.set_shape([None] * 4)
    out = function(at_least_3d(image))
    return squeeze(out, axis=[0]) if single else out


def crop_to_bounding_box(
    image: TensorLike,
    offset_height: int | Tensor,
    offset_width: int | Tensor,
    target_height: int | Tensor,
    target_width: int | Tensor,
) -> Tensor:
    """The part of an image of size ``target_height`` x ``target_width`` that begins at
    (``offset_height``, ``offset_width``).

    ``image`` is [height, width, channels] or a batch of them. The part must lie inside.
    """

    def conditions(batch: Tensor) -> list[tuple[Any, str]]:
        height, width = _known_size(batch)
        return [
            not_empty(batch),
            (offset_width >= 0, "offset_width must be >= 0."),
            (offset_height >= 0, "offset_height must be >= 0."),
            (target_width > 0, "target_width must be > 0."),
            (target_height > 0, "target_height must be > 0."),
            (width >= target_width + offset_width, "width must be >= target + offset."),
            (height >= target_height + offset_height, "height must be >= target + offset."),
        ]

    def crop(batch: Tensor) -> Tensor:
        batch = require(batch, lambda: conditions(batch))
        begin = stack([0, offset_height, offset_width, 0])
        size = stack([-1, target_height, target_width, -1])
        out = slice_op(batch, begin, size)
        return _with_size(out, batch, target_height, target_width)

    with name_scope(None, "crop_to_bounding_box", [image]):
        return _batched(image, crop)


def _with_size(out: Tensor, batch: Tensor, height: Any, width: Any) -> Tensor:
    known = [None if _is_tensor(d) else int(d) for d in (height, width)]
    dims = batch._shape or (None,) * 4
    out.set_shape([dims[0], *known, dims[-1]])
    return out


def pad_to_bounding_box(
    image: TensorLike,
    offset_height: int | Tensor,
    offset_width: int | Tensor,
    target_height: Tensor,
    target_width: Tensor,
) -> Tensor:
    """An image at (``offset_height``, ``offset_width``) of zeros of size ``target_height`` x
    ``target_width``.

    ``image`` is [height, width, channels] or a batch of them, and must fit.
    """

    def padded(batch: Tensor) -> Tensor:
        height, width = _known_size(batch)
        below = target_height - offset_height - height
        beside = target_width - offset_width - width
        batch = require(
            batch,
            lambda: [
                not_empty(batch),
                (offset_height >= 0, "offset_height must be >= 0"),
                (offset_width >= 0, "offset_width must be >= 0"),
                (beside >= 0, "width must be <= target - offset"),
                (below >= 0, "height must be <= target - offset"),
            ],
        )
        paddings = stack([0, 0, offset_height, below, offset_width, beside, 0, 0])
        out = pad(batch, reshape(paddings, [4, 2]))
        return _with_size(out, batch, target_height, target_width)

    with name_scope(None, "pad_to_bounding_box", [image]):
        return _batched(image, padded)


def resize_image_with_crop_or_pad(
    image: TensorLike, target_height: Tensor, target_width: Tensor
) -> Tensor:
    """The middle of an image, or the image in the middle of zeros, in each direction.

    ``image`` is [height, width, channels] or a batch of them; nothing is scaled. With an odd
    difference the extra row or column is cut or added at the end.
    """

    def resized(batch: Tensor) -> Tensor:
        batch = require(
            batch,
            lambda: [
                (target_width > 0, "target_width must be > 0."),
                (target_height > 0, "target_height must be > 0."),
            ],
        )
        height, width = _known_size(batch)
        cut_y, pad_y = _halves(height, target_height)
        cut_x, pad_x = _halves(width, target_width)
        cut = crop_to_bounding_box(
            batch, cut_y, cut_x, _smaller(target_height, height), _smaller(target_width, width)
        )
        out = pad_to_bounding_box(cut, pad_y, pad_x, target_height, target_width)
        return at_least_3d(_with_size(out, batch, target_height, target_width))

    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        return _batched(image, resized)


def _halves(size: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Half of what is too much, half of what is missing."""
    difference = target - size
    if not _is_tensor(difference):
        return max(-difference // 2, 0), max(difference // 2, 0)
    return apply_op("Maximum", -difference // 2, 0), apply_op("Maximum", difference // 2, 0)


def _smaller(a: Any, b: Any) -> Tensor:
    return apply_op("Minimum", a, b) if _is_tensor(a, b) else min(a, b)
