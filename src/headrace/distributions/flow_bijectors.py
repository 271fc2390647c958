"""Normalizing flows: ``MaskedAutoregressiveFlow``, ``RealNVP``, ``BatchNormalization``.

>>> made = bijectors.masked_autoregressive_default_template(hidden_layers=[64, 64])
>>> flow = tf.contrib.distributions.TransformedDistribution(
...     base, bijectors.MaskedAutoregressiveFlow(made), event_shape=[3])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.bijectors import Bijector
from headrace.layers import layer_ops as ops
from headrace.layers.batch_norm_layer import BatchNormalization as BatchNormalizationLayer
from headrace.layers.dense import Dense, dense
from headrace.variables.initializers import glorot_normal_initializer
from headrace.variables.make_template import make_template

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "BatchNormalization",
    "ConditionalBijector",
    "MaskedAutoregressiveFlow",
    "RealNVP",
    "masked_autoregressive_default_template",
    "masked_dense",
    "real_nvp_default_template",
]

_ShiftAndLogScale = Callable[..., tuple[Any, Any]]


def _key(condition: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((k, id(v)) for k, v in condition.items()))


class ConditionalBijector(Bijector):
    """A bijector whose functions take keyword arguments besides."""

    def forward(self, x: TensorLike, name: str = "forward", **condition: Any) -> Any:
        with self._scope(name, x):
            given, key = self._given(x, "x"), _key(condition)
            work = lambda: self._forward(given, **condition)
            return self._remembered("forward", given, work, key)

    def inverse(self, y: TensorLike, name: str = "inverse", **condition: Any) -> Any:
        with self._scope(name, y):
            given, key = self._given(y, "y"), _key(condition)
            work = lambda: self._inverse(given, **condition)
            return self._remembered("inverse", given, work, key)

    def forward_log_det_jacobian(
        self,
        x: TensorLike,
        event_ndims: int | Tensor,
        name: str = "forward_log_det_jacobian",
        **condition: object,
    ) -> Tensor:
        with self._scope(name, x):
            given = self._given(x, "x")
            try:
                found = self._forward_log_det_jacobian(given, **condition)
            except NotImplementedError:
                back = self._forward(given, **condition)
                found = -self._inverse_log_det_jacobian(back, **condition)
            return self._reduced(found, given, event_ndims, self._forward_min)

    def inverse_log_det_jacobian(
        self,
        y: TensorLike,
        event_ndims: int | Tensor,
        name: str = "inverse_log_det_jacobian",
        **condition: Any,
    ) -> Tensor:
        with self._scope(name, y):
            given = self._given(y, "y")
            try:
                found = self._inverse_log_det_jacobian(given, **condition)
            except NotImplementedError:
                back = self._inverse(given, **condition)
                found = -self._forward_log_det_jacobian(back, **condition)
            return self._reduced(found, given, event_ndims, self._inverse_min)

    def _given(self, x: TensorLike, name: str) -> Tensor:
        return ops.convert_to_tensor(x, name=name, preferred_dtype=self.dtype)

    def _forward(self, x: Tensor, **condition: object) -> Any:
        raise NotImplementedError(f"forward not implemented: {type(self).__name__}")

    def _inverse(self, y: Tensor, **condition: object) -> Any:
        raise NotImplementedError(f"inverse not implemented: {type(self).__name__}")

    def _forward_log_det_jacobian(self, x: Tensor, **condition: object) -> Any:
        raise NotImplementedError(f"forward_log_det_jacobian: {type(self).__name__}")

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: object) -> Any:
        raise NotImplementedError(f"inverse_log_det_jacobian: {type(self).__name__}")


class MaskedAutoregressiveFlow(ConditionalBijector):
    """y[i] = x[i] * exp(log_scale[i]) + shift[i], where both depend on y[:i].

    ``shift_and_log_scale_fn(y)`` gives them (either may be None). ``forward`` needs one step for
    each element, ``inverse`` one for all; ``unroll_loop`` writes the steps out.
    """

    def __init__(
        self,
        shift_and_log_scale_fn: _ShiftAndLogScale,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        unroll_loop: bool = False,
        name: str | None = None,
    ) -> None:
        self._shift_and_log_scale_fn = shift_and_log_scale_fn
        self._unroll_loop = unroll_loop
        super().__init__(
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            forward_min_event_ndims=1,
            name=name or "masked_autoregressive_flow",
        )

    def _forward(self, x: Tensor, **condition: object) -> Any:
        def step(y: Tensor) -> Tensor:
            shift, log_scale = self._shift_and_log_scale_fn(y, **condition)
            found = x if log_scale is None else x * ops.exp(log_scale)
            return found if shift is None else found + shift

        y = ops.zeros_like(x, name="y0")
        if self._unroll_loop:
            size = x.shape.with_rank_at_least(1).as_list()[-1]
            if size is None:
                raise ValueError(
                    "The final dimension of `x` must be known at graph construction time if "
                    f"`unroll_loop=True`. `x.shape: {x.shape}`"
                )
            for _ in range(size):
                y = step(y)
            return y
        event = ops.shape(x)[-1]
        y.set_shape(x.shape)
        return ops.while_loop(lambda i, _: i < event, lambda i, y: [i + 1, step(y)], [0, y])[1]

    def _inverse(self, y: Tensor, **condition: object) -> Tensor:
        shift, log_scale = self._shift_and_log_scale_fn(y, **condition)
        x = y if shift is None else y - shift
        return x if log_scale is None else x * ops.exp(-log_scale)

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: object) -> Tensor:
        _, log_scale = self._shift_and_log_scale_fn(y, **condition)
        if log_scale is None:
            return ops.zeros([], y.dtype)
        return -ops.reduce_sum(log_scale, -1)


def _mask(blocks: int, n_in: int, n_out: int, exclusive: bool) -> np.ndarray[Any, Any]:
    """[n_in, n_out]: which outputs may depend on which inputs, block by block."""
    mask = np.zeros((n_in, n_out), np.float32)
    width, height = n_in // blocks, n_out // blocks
    for i in range(blocks):
        first = (i + 1 if exclusive else i) * height
        mask[i * width : (i + 1) * width, first:] = 1
    return mask


def masked_dense(
    inputs: Any,
    units: int,
    num_blocks: int | None = None,
    exclusive: bool = False,
    kernel_initializer: Any = None,
    reuse: bool | None = None,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A dense layer whose block ``i`` of outputs depends on the blocks of inputs up to ``i``.

    ``exclusive``: not on block ``i`` itself. Further arguments are those of ``tf.layers.Dense``.
    """
    depth = inputs.shape.with_rank_at_least(1).as_list()[-1]
    if depth is None:
        raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
    mask = _mask(depth if num_blocks is None else num_blocks, depth, units, exclusive)
    first = glorot_normal_initializer() if kernel_initializer is None else kernel_initializer

    def masked_initializer(
        shape: Any, dtype: Any = None, partition_info: Any = None
    ) -> np.ndarray[Any, Any]:
        return mask * first(shape, dtype, partition_info)

    with name_scope(name, "masked_dense", [inputs, units, num_blocks]):
        options = {
            **kwargs,
            "kernel_initializer": masked_initializer,
            "kernel_constraint": lambda x: mask * x,
            "name": name,
            "dtype": inputs.dtype.base_dtype,
            "_scope": name,
            "_reuse": reuse,
        }
        layer = Dense(units, *args, **options)
        return layer.apply(inputs)


def _clipped(x: Tensor, low: Any, high: Any) -> Tensor:
    """Clipped, but the gradient passes as if it were not."""
    with name_scope(None, "clip_by_value_preserve_grad", [x, low, high]):
        return x + ops.stop_gradient(ops.clip_by_value(x, low, high) - x)


def masked_autoregressive_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Callable[..., Any] | None = ops.relu,
    log_scale_min_clip: float = -5.0,
    log_scale_max_clip: float = 3.0,
    log_scale_clip_gradient: bool = False,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """MADE: masked dense layers that give shift and log scale (None with ``shift_only``)."""
    name = name or "masked_autoregressive_default_template"
    with name_scope(name, values=[log_scale_min_clip, log_scale_max_clip]):

        def made(x: Tensor) -> tuple[Any, Any]:
            depth = x.shape.with_rank_at_least(1).as_list()[-1]
            if depth is None:
                raise NotImplementedError(
                    "Rightmost dimension must be known prior to graph execution."
                )
            size: Any = x.shape.as_list() if x.shape.is_fully_defined() else ops.shape(x)
            for i, units in enumerate(hidden_layers):
                x = masked_dense(x, units, depth, i == 0, *args, activation=activation, **kwargs)
            outputs = (1 if shift_only else 2) * depth
            x = masked_dense(x, outputs, depth, False, *args, activation=None, **kwargs)
            if shift_only:
                return ops.reshape(x, size), None
            parts = ops.reshape(x, ops.concat([size, [2]], 0))
            shift, log_scale = ops.unstack(parts, num=2, axis=-1)
            clip = ops.clip_by_value if log_scale_clip_gradient else _clipped
            return shift, clip(log_scale, log_scale_min_clip, log_scale_max_clip)

        return make_template(name, made)


class RealNVP(ConditionalBijector):
    """The first ``num_masked`` elements stay; the others are scaled and shifted by what
    ``shift_and_log_scale_fn(first, number of others)`` makes of the first.
    """

    def __init__(
        self,
        num_masked: int,
        shift_and_log_scale_fn: _ShiftAndLogScale,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        if num_masked <= 0:
            raise ValueError("num_masked must be a positive integer.")
        self._num_masked = num_masked
        self._input_depth: int | None = None
        self._shift_and_log_scale_fn = shift_and_log_scale_fn
        super().__init__(
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            forward_min_event_ndims=1,
            name=name or "real_nvp",
        )

    def _parts(self, x: Tensor, condition: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
        if self._input_depth is None:
            depth = x.shape.with_rank_at_least(1).as_list()[-1]
            if depth is None:
                raise NotImplementedError(
                    "Rightmost dimension must be known prior to graph execution."
                )
            if self._num_masked >= depth:
                raise ValueError("Number of masked units must be smaller than the event size.")
            self._input_depth = depth
        first, others = x[..., : self._num_masked], x[..., self._num_masked :]
        shift, log_scale = self._shift_and_log_scale_fn(
            first, self._input_depth - self._num_masked, **condition
        )
        return first, others, shift, log_scale

    def _forward(self, x: Tensor, **condition: object) -> Tensor:
        first, others, shift, log_scale = self._parts(x, condition)
        if log_scale is not None:
            others *= ops.exp(log_scale)
        if shift is not None:
            others += shift
        return ops.concat([first, others], -1)

    def _inverse(self, y: Tensor, **condition: object) -> Tensor:
        first, others, shift, log_scale = self._parts(y, condition)
        if shift is not None:
            others -= shift
        if log_scale is not None:
            others *= ops.exp(-log_scale)
        return ops.concat([first, others], -1)

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: object) -> Tensor:
        log_scale = self._parts(y, condition)[3]
        return ops.zeros([], y.dtype) if log_scale is None else -ops.reduce_sum(log_scale, -1)

    def _forward_log_det_jacobian(self, x: Tensor, **condition: object) -> Tensor:
        log_scale = self._parts(x, condition)[3]
        return ops.zeros([], x.dtype) if log_scale is None else ops.reduce_sum(log_scale, -1)


def real_nvp_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Callable[..., Any] | None = ops.relu,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Dense layers that give shift and log scale (None with ``shift_only``) for `RealNVP`."""
    with name_scope(name, "real_nvp_default_template"):

        def net(x: Tensor, output_units: int) -> tuple[Any, Any]:
            for units in hidden_layers:
                x = dense(x, units, *args, **{**kwargs, "activation": activation})
            outputs = (1 if shift_only else 2) * output_units
            x = dense(x, outputs, *args, **{**kwargs, "activation": None})
            if shift_only:
                return x, None
            shift, log_scale = ops.split(x, 2, axis=-1)
            return shift, log_scale

        return make_template("real_nvp_default_template", net)


class BatchNormalization(Bijector):
    """Batch normalisation as a flow: ``inverse`` normalises, ``forward`` undoes it with the moving
    statistics.
    """

    def __init__(
        self,
        batchnorm_layer: object = None,
        training: bool = True,
        validate_args: bool = False,
        name: str = "batch_normalization",
    ) -> None:
        layer = batchnorm_layer or BatchNormalizationLayer(
            gamma_constraint=lambda x: ops.relu(x) + 1e-6
        )
        if not isinstance(layer, BatchNormalizationLayer):
            raise ValueError("batchnorm_layer must be an instance of BatchNormalization layer.")
        parts = {"renormalization": layer.renorm, "virtual batch sizes": layer.virtual_batch_size}
        for part, asked in parts.items():
            if asked:
                raise ValueError(f"BatchNorm Bijector does not support {part}.")
        self.batchnorm: Any = layer
        self._training = training
        axes = 1 if isinstance(layer.axis, int) else len(layer.axis)
        super().__init__(validate_args=validate_args, forward_min_event_ndims=axes, name=name)

    def _axes(self) -> list[int]:
        axis = self.batchnorm.axis
        return [axis] if isinstance(axis, int) else list(axis)

    def _statistics_for(self, v: Any, x: Any) -> Any:
        """A vector of statistics beside ``x``."""
        axes, rank = self._axes(), x.shape.ndims
        if v is None or v.shape.ndims == rank:
            return v
        if [i for i in range(rank) if i not in axes] == list(range(rank - 1)):
            return v
        sizes = [1] * rank
        sizes[axes[0]] = x.shape.as_list()[axes[0]]
        return ops.reshape(v, sizes)

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = self.batchnorm.apply(y, training=self._training)
        return found

    def _forward(self, x: Tensor) -> Any:
        layer = self.batchnorm
        if not layer.built:
            layer.build(x.shape)
        _known(x)
        mean, variance = (
            self._statistics_for(layer.moving_mean, x),
            self._statistics_for(layer.moving_variance, x),
        )
        offset = self._statistics_for(layer.beta, x) if layer.center else None
        scale = self._statistics_for(layer.gamma, x) if layer.scale else None
        with name_scope(None, "undo_batchnorm", [x, mean, variance, scale, offset]):
            rescale = ops.sqrt(variance + layer.epsilon)
            if scale is not None:
                rescale /= scale
            return x * rescale + (mean if offset is None else mean - offset * rescale)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        found: Tensor = -self._log_det(x, saved=True)
        return found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        found: Tensor = self._log_det(y, saved=False)
        return found

    def _log_det(self, y: Any, saved: bool) -> Tensor:
        _known(y)
        layer = self.batchnorm
        if not layer.built:
            layer.build(y.shape)
        if saved or not self._training:
            variance = layer.moving_variance + layer.epsilon
        else:
            axes = [i for i in range(y.shape.ndims) if i not in self._axes()]
            variance = ops.moments(y, axes=axes, keepdims=True)[1] + layer.epsilon
        gamma = ops.reduce_sum(ops.log(layer.gamma))
        return gamma - 0.5 * ops.reduce_sum(ops.log(variance))


def _known(x: Tensor) -> None:
    if not x.shape.is_fully_defined():
        raise ValueError("Input must have shape known at graph construction.")
