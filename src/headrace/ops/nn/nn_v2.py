"""Neural-network functions that came with TF 2, made of other ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__: list[str] = []


@dispatched("unary")
def silu(features: TensorLike, beta: TensorLike = 1.0) -> Tensor:
    """``x * sigmoid(beta * x)``."""
    with name_scope(None, "swish", [features]):
        x = convert_to_tensor(features)
        scaled = (
            x
            if isinstance(beta, float) and beta == 1.0
            else apply_op("Mul", x, convert_to_tensor(beta, x.dtype))
        )
        return apply_op("Mul", x, apply_op("Sigmoid", scaled))


@dispatched("unary")
def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """The Gaussian error linear unit (https://arxiv.org/abs/1606.08415)."""
    with name_scope(name, "Gelu", [features]):
        x = convert_to_tensor(features)
        if not x.dtype.is_floating:
            raise ValueError(
                "`features.dtype` must be a floating point tensor. "
                f"Received:features.dtype={x.dtype}"
            )
        if approximate:
            inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
            return 0.5 * x * (1.0 + apply_op("Tanh", inner))
        return 0.5 * x * (1.0 + apply_op("Erf", x / math.sqrt(2.0)))


def compute_average_loss(
    per_example_loss: TensorLike,
    sample_weight: object = None,
    global_batch_size: TensorLike | None = None,
) -> Tensor:
    """The sum of the losses of the examples over the number of examples of all replicas.

    ``sample_weight`` is a factor for each example; ``global_batch_size`` (default: the examples
    here) is that of all replicas together.

        tf.nn.compute_average_loss([1.0, 3.0], global_batch_size=8)  # 0.5
    """
    losses = convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        losses = losses * apply_op("Cast", sample_weight, DstT=losses.dtype)
    if global_batch_size is None:
        global_batch_size = (
            apply_op("Size", losses) if losses._shape == () else losses.shape.as_list()[0]
        )
    axes = list(range(len(losses._shape or ())))
    total = apply_op("Sum", losses, axes, keep_dims=False) if axes else losses
    return total / apply_op("Cast", global_batch_size, DstT=losses.dtype)


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """The sum of the losses, over the number of replicas: one."""
    loss = convert_to_tensor(regularization_loss)
    axes = list(range(len(loss._shape or ())))
    return apply_op("Sum", loss, axes, keep_dims=False) if axes else loss
