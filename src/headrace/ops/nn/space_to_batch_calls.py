"""``tf.nn.with_space_to_batch``: a function applied to the dilated view of its input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.joining import concat, stack
from headrace.ops.array.space_to_depth import (
    batch_to_space_nd,
    required_space_to_batch_paddings,
    space_to_batch_nd,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["with_space_to_batch"]


def _axes(given: Sequence[int] | None, count: int, data_format: str | None) -> list[int]:
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    axes = list(range(first, first + count) if given is None else given)
    if sorted({int(a) for a in axes}) != axes or any(a < 1 for a in axes):
        raise ValueError(
            "spatial_dims must be a montonically increasing sequence of positive integers"
        )
    return axes


def _base(padding: str, filter_shape: Any, rate: Any, count: int) -> Any:
    """Padding that makes "SAME" of "VALID"."""
    if padding == "VALID":
        return np.zeros((count, 2), np.int32)
    if padding != "SAME":
        raise ValueError(f"Invalid padding method {padding!r}")
    if filter_shape is None:
        raise ValueError("filter_shape must be specified for SAME padding")
    size: Any = convert_to_tensor(filter_shape, name="filter_shape")
    known, known_rate = static_value(size), static_value(rate)
    if known is not None and known_rate is not None:
        reach = (known[:count] - 1) * known_rate
        return np.stack([reach // 2, reach - reach // 2], 1)
    reach_t = (size[:count] - 1) * rate
    return stack([reach_t // 2, reach_t - reach_t // 2], 1)


def _spread(values: object, fill: int, axes: list[int]) -> Any:
    """What belongs to the given axes for all axes after the batch up to the last of them."""
    known = static_value(convert_to_tensor(values))
    if known is not None:
        out = np.full((axes[-1], *known.shape[1:]), fill, known.dtype)
        out[[a - 1 for a in axes]] = known
        return out
    tensor: Any = values
    places = {a - 1: i for i, a in enumerate(axes)}
    gap = np.full((1, *tensor.shape.as_list()[1:]), fill, np.int32)
    rows = [tensor[places[i] : places[i] + 1] if i in places else gap for i in range(axes[-1])]
    return concat(rows, 0)


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: TensorLike,
    padding: str,
    op: Callable[[Tensor, int, str], Tensor],
    filter_shape: TensorLike | None = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """``op(input, number of spatial axes, padding)`` with its input sampled at ``dilation_rate``.

    ``filter_shape`` is needed for "SAME" padding; ``spatial_dims`` are the axes that are dilated.
    """
    x = convert_to_tensor(input, name="input")
    rate = convert_to_tensor(dilation_rate, dtypes.int32, name="dilation_rate")
    if rate.shape.ndims != 1:
        raise ValueError("rate must be rank 1")
    if not rate.shape.is_fully_defined():
        raise ValueError("rate must have known shape")
    count = rate.shape.as_list()[0] or 0
    axes = _axes(spatial_dims, count, data_format)
    least = axes[-1] + (0 if data_format is not None and data_format.startswith("NC") else 1)
    if x.shape.ndims is not None and x.shape.ndims < least:
        raise ValueError(f"input tensor must have rank {least} at least")
    known = static_value(rate)
    if known is not None:
        if (known < 1).any():
            raise ValueError("dilation_rate must be positive")
        if (known == 1).all():
            return op(x, count, padding)
    base = _base(padding, filter_shape, rate, count)
    dims = x.shape.as_list() if x.shape.ndims is not None else []
    sizes: Any = [dims[a] for a in axes] if dims else [None]
    if None in sizes:
        size = shape_of(x)
        sizes = stack([size[a] for a in axes])
    paddings, crops = required_space_to_batch_paddings(sizes, rate, base)
    blocks = _spread(rate, 1, axes)
    inner = space_to_batch_nd(x, blocks, _spread(paddings, 0, axes))
    return batch_to_space_nd(op(inner, count, "VALID"), blocks, _spread(crops, 0, axes))
