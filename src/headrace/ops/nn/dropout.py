"""``tf.nn.dropout``: random elements set to zero, the others scaled up."""

from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING

from headrace.core import infer, shapes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.nn.nn_common import (
    cast,
    deprecated,
    div,
    mul,
    shape_of,
    sub,
)

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike
    from headrace.core.shapes import TensorShape

__all__ = ["dropout", "dropout_v2"]


@dispatched("unary")
def dropout(
    x: TensorLike,
    keep_prob: TensorLike | None = None,
    noise_shape: ShapeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
    rate: TensorLike | None = None,
) -> Tensor:
    """Each element is zeroed with probability ``rate`` (1 - keep_prob), the others grow by 1 / (1
    - rate).
    """
    drop = None
    if keep_prob is not None:
        try:
            drop = operator.sub(1.0, keep_prob)
        except TypeError:
            raise ValueError(
                f"keep_prob must be a floating point number or Tensor (got {keep_prob!r})"
            ) from None
    rate = deprecated("rate", rate, "keep_prob", drop)
    if rate is None:
        raise ValueError("You must provide a rate to dropout.")
    return dropout_v2(x, rate, noise_shape, seed, name)


@dispatched("unary")
def dropout_v2(
    x: TensorLike,
    rate: TensorLike,
    noise_shape: ShapeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Elements set to 0 with chance ``rate``, the others divided by ``1 - rate``.

    ``noise_shape`` has 1 where elements are kept or dropped together.
    """
    from headrace.ops.random.random_ops import random_uniform

    with name_scope(name, "dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if not x._dtype.is_floating:
            raise ValueError(
                "x has to be a floating point tensor since it's going to be scaled. "
                f"Got a {x._dtype!r} tensor instead."
            )
        if isinstance(rate, numbers.Real) and not 0 <= float(rate) < 1:
            raise ValueError(
                f"rate must be a scalar tensor or a float in the range [0, 1), got {float(rate):g}"
            )
        if isinstance(rate, numbers.Real) and rate == 0:
            return x
        rate = convert_to_tensor(rate, x._dtype, name="rate")
        rate.shape.assert_has_rank(0)
        if infer.static_value(rate) == 0:
            return x
        # TF's order of ops, so that a seeded program drops what TF's drops
        noise = random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=x._dtype._base)
        scale = div(1.0, sub(1.0, rate))
        keep = apply_op("GreaterEqual", noise, rate)
        result = mul(mul(x, scale), cast(keep, x._dtype))
        result.set_shape(x.shape)
        return result


def _noise_shape(x: Tensor, noise_shape: ShapeLike | None) -> Tensor | TensorShape | object:
    """Dimensions given as None are taken from x."""
    if noise_shape is None:
        return shape_of(x)
    try:
        wanted = shapes.to_plain(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    if x._shape is None or wanted is None or len(x._shape) != len(wanted):
        return noise_shape
    return shapes.from_plain(tuple(own if d is None else d for d, own in zip(wanted, x._shape)))
