"""Layers without weights: ``Dropout`` and ``Flatten``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.shapes import TensorShape, dimension_value
from headrace.core.tensor import Tensor
from headrace.layers.base import Layer, apply_layer
from headrace.layers.conv_arguments import normalize_data_format
from headrace.layers.core_layer import CoreLayer
from headrace.layers.input_spec import InputSpec
from headrace.layers.smart_cond import smart_cond
from headrace.ops.array.array_shape import reshape, transpose
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import identity
from headrace.ops.nn.dropout import dropout as nn_dropout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import ShapeLike, TensorLike

__all__ = ["Dropout", "DropoutCore", "Flatten", "FlattenCore", "dropout", "flatten"]


class DropoutCore(CoreLayer):
    """Zeroes a share ``rate`` of the inputs while training."""

    def __init__(
        self, rate: Any, noise_shape: Any = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed
        self.supports_masking = True

    def _get_noise_shape(self, inputs: TensorLike) -> Tensor | None:
        if self.noise_shape is None:
            return None
        have: Any = shape_of(inputs)
        return convert_to_tensor(
            [have[i] if size is None else size for i, size in enumerate(self.noise_shape)]
        )

    def call(self, inputs: TensorLike, training: TensorLike = False) -> Tensor:
        def dropped() -> Tensor:
            return nn_dropout(
                inputs, noise_shape=self._get_noise_shape(inputs), seed=self.seed, rate=self.rate
            )

        return smart_cond(training, dropped, lambda: identity(inputs))

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        own = {"rate": self.rate, "noise_shape": self.noise_shape, "seed": self.seed}
        return {**super().get_config(), **own}


class Dropout(DropoutCore, Layer):
    """The layer behind ``tf.layers.dropout``: sets a share ``rate`` of the elements to zero.

    The others are divided by ``1 - rate``. Elements are dropped only in calls with
    ``training=True`` (or a bool tensor). ``noise_shape`` has 1 in dimensions along which elements
    are dropped together.

        h = tf.layers.Dropout(0.4)(h, training=is_training)
    """

    def __init__(
        self,
        rate: object = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: Any = None,
        **kwargs: object,
    ) -> None:
        super().__init__(rate, noise_shape, seed, name=name, **kwargs)


def dropout(
    inputs: TensorLike,
    rate: TensorLike = 0.5,
    noise_shape: Sequence[Any] | None = None,
    seed: int | None = None,
    training: bool | Tensor = False,
    name: str | None = None,
) -> Tensor:
    """Drop a share ``rate`` of the inputs where ``training`` is true; the default keeps all.

    Kept elements are multiplied by ``1 / (1 - rate)``. ``training`` is a bool or a tensor;
    ``noise_shape`` has 1 where one decision holds along an axis; ``seed`` makes decisions
    repeatable. ``tf.nn.dropout`` drops always, and takes the probability to keep.

        tf.layers.dropout(tf.ones([2]), 0.5)  # [1.0, 1.0]
    """
    return apply_layer(Dropout(rate, noise_shape, seed, name), inputs, training=training)


class FlattenCore(CoreLayer):
    """All dimensions but the first become one."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = normalize_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Tensor:
        rank = inputs.shape.ndims
        if self.data_format == "channels_first" and rank is not None and rank > 1:
            inputs = transpose(inputs, [0, *range(2, rank), 1])
        batch = dimension_value(inputs.shape[0])
        sizes: Any = None if batch else shape_of(inputs)
        outputs = reshape(inputs, (batch or sizes[0], -1))
        if not get_default_graph()._is_eager:
            outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        sizes = TensorShape(input_shape).as_list()
        known = all(sizes[1:])
        return TensorShape([sizes[0], math.prod(sizes[1:]) if known else None])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "data_format": self.data_format}


class Flatten(FlattenCore, Layer):
    """All dimensions but the batch become one: [batch, ...] to [batch, product]."""


def flatten(
    inputs: TensorLike, name: str | None = None, data_format: str = "channels_last"
) -> Tensor:
    """All dimensions but the batch become one: [batch, 7, 7, 64] to [batch, 3136]."""
    return apply_layer(Flatten(name=name, data_format=data_format), inputs)
