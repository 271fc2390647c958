"""Pooling layers: the largest element or the mean of each window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers.base import Layer
from headrace.layers.conv_arguments import (
    conv_output_length,
    convert_data_format,
    normalize_data_format,
    normalize_padding,
    normalize_tuple,
)
from headrace.layers.core_layer import CoreLayer
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.array_shape import expand_dims, squeeze, transpose
from headrace.ops.nn.pooling import avg_pool, avg_pool3d, max_pool, max_pool3d

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "PoolingCore",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
]


class PoolingCore(CoreLayer):
    """Pooling over ``rank`` dimensions, without variable scopes."""

    rank: int
    _pool2d: Callable[..., Tensor]
    _pool3d: Callable[..., Tensor]

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = normalize_tuple(pool_size, self.rank, "pool_size")
        self.strides = normalize_tuple(
            pool_size if strides is None else strides, self.rank, "strides"
        )
        self.padding = normalize_padding(padding)
        self.data_format = normalize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Tensor:
        return (self._call1d, self._call2d, self._call3d)[self.rank - 1](inputs)

    def _call1d(self, inputs: TensorLike) -> Tensor:
        first = self.data_format == "channels_first"
        axis = 3 if first else 2
        inputs = expand_dims(inputs, axis)
        if first:
            inputs = transpose(inputs, (0, 2, 3, 1))
        outputs = type(self)._pool2d(
            inputs,
            (1, *self.pool_size, 1, 1),
            (1, *self.strides, 1, 1),
            self.padding.upper(),
            "NHWC",
        )
        if first:
            outputs = transpose(outputs, (0, 3, 1, 2))
        return squeeze(outputs, axis)

    def _call2d(self, inputs: Tensor) -> Tensor:
        last = self.data_format == "channels_last"
        sizes = (1, *self.pool_size, 1) if last else (1, 1, *self.pool_size)
        strides = (1, *self.strides, 1) if last else (1, 1, *self.strides)
        return type(self)._pool2d(
            inputs, sizes, strides, self.padding.upper(), convert_data_format(self.data_format, 4)
        )

    def _call3d(self, inputs: Tensor) -> Tensor:
        first = self.data_format == "channels_first"
        if first:
            inputs = transpose(inputs, (0, 2, 3, 4, 1))
        outputs = type(self)._pool3d(
            inputs, (1, *self.pool_size, 1), (1, *self.strides, 1), self.padding.upper()
        )
        return transpose(outputs, (0, 4, 1, 2, 3)) if first else outputs

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        sizes = TensorShape(input_shape).as_list()
        first = self.data_format == "channels_first"
        space = sizes[2:] if first else sizes[1:-1]
        after = [
            conv_output_length(n, k, self.padding, s)
            for n, k, s in zip(space, self.pool_size, self.strides)
        ]
        return TensorShape([*sizes[:2], *after] if first else [sizes[0], *after, sizes[-1]])

    def get_config(self) -> dict[str, Any]:
        own = ("pool_size", "padding", "strides", "data_format")
        return {**super().get_config(), **{name: getattr(self, name) for name in own}}


class _MaxCore(PoolingCore):
    _pool2d, _pool3d = staticmethod(max_pool), staticmethod(max_pool3d)


class _AverageCore(PoolingCore):
    _pool2d, _pool3d = staticmethod(avg_pool), staticmethod(avg_pool3d)


class _ScopedPooling(PoolingCore, Layer):
    """``tf.layers``' form: strides must be given."""

    def __init__(
        self,
        pool_size: object,
        strides: object,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: object,
    ) -> None:
        if strides is None:
            raise ValueError("Argument `strides` must not be None.")
        super().__init__(pool_size, strides, padding, data_format, name=name, **kwargs)


class AveragePooling1D(_ScopedPooling, _AverageCore):
    """The mean of each window of [batch, steps, channels].

    ``pool_size`` and ``strides`` are one number; ``padding`` is "valid" (windows that lie inside)
    or "same" (ceil(size / stride) windows); ``data_format`` is "channels_last" or "channels_first".

        h = tf.layers.average_pooling1d(x, pool_size=2, strides=2)
    """

    rank = 1


class AveragePooling2D(_ScopedPooling, _AverageCore):
    """The mean of each window of [batch, height, width, channels].

    ``pool_size`` and ``strides`` are one number or a pair; ``padding`` is "valid" (windows that lie
    inside) or "same" (ceil(size / stride) windows); ``data_format`` is "channels_last" or
    "channels_first".

        h = tf.layers.average_pooling2d(x, pool_size=2, strides=2)
    """

    rank = 2


class AveragePooling3D(_ScopedPooling, _AverageCore):
    """The mean of each window of [batch, depth, height, width, channels].

    ``pool_size`` and ``strides`` are one number or three; ``padding`` is "valid" (windows that lie
    inside) or "same" (ceil(size / stride) windows); ``data_format`` is "channels_last" or
    "channels_first".

        h = tf.layers.average_pooling3d(x, pool_size=2, strides=2)
    """

    rank = 3


class MaxPooling1D(_ScopedPooling, _MaxCore):
    """The largest value of each window of [batch, steps, channels].

    ``pool_size`` and ``strides`` are one number; ``padding`` is "valid" (windows that lie inside)
    or "same" (ceil(size / stride) windows); ``data_format`` is "channels_last" or "channels_first".

        h = tf.layers.max_pooling1d(x, pool_size=2, strides=2)
    """

    rank = 1


class MaxPooling2D(_ScopedPooling, _MaxCore):
    """The largest value of each window of [batch, height, width, channels].

    ``pool_size`` and ``strides`` are one number or a pair; ``padding`` is "valid" (windows that lie
    inside) or "same" (ceil(size / stride) windows); ``data_format`` is "channels_last" or
    "channels_first".

        h = tf.layers.max_pooling2d(x, pool_size=2, strides=2)
    """

    rank = 2


class MaxPooling3D(_ScopedPooling, _MaxCore):
    """The largest value of each window of [batch, depth, height, width, channels].

    ``pool_size`` and ``strides`` are one number or three; ``padding`` is "valid" (windows that lie
    inside) or "same" (ceil(size / stride) windows); ``data_format`` is "channels_last" or
    "channels_first".

        h = tf.layers.max_pooling3d(x, pool_size=2, strides=2)
    """

    rank = 3


class _Function(Protocol):
    """The signature of the functions."""

    def __call__(
        self,
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor: ...


def _function(layer: type[_ScopedPooling], function_name: str) -> _Function:
    """The functional form of a layer class."""

    def pooling(
        inputs: Tensor,
        pool_size: Any,
        strides: TensorLike,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        found: Tensor = layer(pool_size, strides, padding, data_format, name).apply(inputs)
        return found

    pooling.__name__ = pooling.__qualname__ = function_name
    pooling.__doc__ = layer.__doc__
    return pooling


average_pooling1d = _function(AveragePooling1D, "average_pooling1d")
average_pooling2d = _function(AveragePooling2D, "average_pooling2d")
average_pooling3d = _function(AveragePooling3D, "average_pooling3d")
max_pooling1d = _function(MaxPooling1D, "max_pooling1d")
max_pooling2d = _function(MaxPooling2D, "max_pooling2d")
max_pooling3d = _function(MaxPooling3D, "max_pooling3d")
