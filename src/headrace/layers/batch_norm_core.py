"""Batch normalization without variable scopes: what tf.layers and Keras share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import colocate_with, control_dependencies, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers.core_layer import CoreLayer
from headrace.layers.identifiers import (
    get_constraint,
    get_initializer,
    get_regularizer,
    serialize_object,
)
from headrace.layers.input_spec import InputSpec
from headrace.layers.smart_cond import constant_value, smart_cond
from headrace.ops.array.array_shape import reshape, size
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import constant, identity, stop_gradient
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones_like, zeros_like
from headrace.ops.math.binary import maximum, minimum
from headrace.ops.math.reductions import reduce_mean
from headrace.ops.math.unary import sqrt
from headrace.ops.nn.activations import relu
from headrace.ops.nn.moments import moments
from headrace.ops.nn.normalization import batch_normalization as nn_batch_normalization
from headrace.ops.nn.normalization import fused_batch_norm
from headrace.ops.state.ref_state import assign, assign_sub
from headrace.variables.variable import VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike
    from headrace.variables.variable import Variable

__all__ = ["BatchNormalizationCore"]


_CLIPPING_KEYS = ["rmax", "rmin", "dmax"]


class BatchNormalizationCore(CoreLayer):
    """Batch normalization without variable scopes."""

    #: False: the moving variance of the fused op is that of the batch, as without the fused op.
    _bessels_correction_test_only = True

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: object = "zeros",
        gamma_initializer: object = "ones",
        moving_mean_initializer: object = "zeros",
        moving_variance_initializer: object = "ones",
        beta_regularizer: object = None,
        gamma_regularizer: object = None,
        beta_constraint: object = None,
        gamma_constraint: object = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Callable[..., Any] | None = None,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if not isinstance(axis, (list, int)):
            raise TypeError(f"axis must be int or list, type given: {type(axis)}")
        self.axis: Any = axis[:] if isinstance(axis, list) else axis
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = get_initializer(beta_initializer)
        self.gamma_initializer = get_initializer(gamma_initializer)
        self.moving_mean_initializer = get_initializer(moving_mean_initializer)
        self.moving_variance_initializer = get_initializer(moving_variance_initializer)
        self.beta_regularizer = get_regularizer(beta_regularizer)
        self.gamma_regularizer = get_regularizer(gamma_regularizer)
        self.beta_constraint = get_constraint(beta_constraint)
        self.gamma_constraint = get_constraint(gamma_constraint)
        self.renorm = renorm
        self.virtual_batch_size = virtual_batch_size
        self.adjustment = adjustment
        self.fused = True if fused is None else fused
        self.supports_masking = True
        self.trainable = trainable
        if renorm:
            self.renorm_clipping = renorm_clipping or {}
            if set(self.renorm_clipping) - set(_CLIPPING_KEYS):
                raise ValueError(
                    f"renorm_clipping {renorm_clipping} contains keys not in {_CLIPPING_KEYS}"
                )
            self.renorm_momentum = renorm_momentum

    def _fused_can_be_used(self) -> bool:
        axis = [self.axis] if isinstance(self.axis, int) else self.axis
        return (
            not self.renorm
            and len(axis) == 1
            and axis[0] in (-3, -1, 1, 3)
            and self.virtual_batch_size is None
            and self.adjustment is None
        )

    @property
    def _param_dtype(self) -> dtypes.DType:
        kind = dtypes.as_dtype(self.dtype or dtypes.float32)
        return dtypes.float32 if kind in (dtypes.float16, dtypes.bfloat16) else kind

    # variables ----------------------------------------------------------------------------------
    def build(self, input_shape: Any) -> None:
        shape = TensorShape(input_shape)
        if not shape.ndims:
            raise ValueError("Input has undefined rank:", shape)
        self._check_axes(shape.ndims)
        self.fused = bool(self.fused and shape.ndims == 4 and self._fused_can_be_used())
        if self.fused:
            self._data_format = "NCHW" if self.axis == [1] else "NHWC"
            if self.axis not in ([1], [3]):
                raise ValueError(
                    "Unsupported axis, fused batch norm only supports axis == [1] or axis == [3]"
                )
        sizes = {axis: shape.as_list()[axis] for axis in self.axis}
        if None in sizes.values():
            raise ValueError("Input has undefined `axis` dimension. Input shape: ", shape)
        self.input_spec = InputSpec(ndim=shape.ndims, axes=sizes)
        self._add_parameters(self._parameter_shape(sizes, shape.ndims))
        self.built = True

    def _check_axes(self, rank: int) -> None:
        axes = [self.axis] if isinstance(self.axis, int) else self.axis
        self.axis = [rank + a if a < 0 else a for a in axes]
        for axis in self.axis:
            if axis < 0 or axis >= rank:
                raise ValueError(f"Invalid axis: {axis}")
        if len(self.axis) != len(set(self.axis)):
            raise ValueError(f"Duplicate axis: {self.axis}")
        if self.virtual_batch_size is None:
            return
        if self.virtual_batch_size <= 0:
            raise ValueError(
                "virtual_batch_size must be a positive integer that divides the true "
                "batch size of the input Tensor"
            )
        if 0 in self.axis:
            raise ValueError(
                "When using virtual_batch_size, the batch dimension must be 0 and thus "
                "axis cannot include 0"
            )
        if self.adjustment is not None:
            raise ValueError("When using virtual_batch_size, adjustment cannot be specified")

    def _parameter_shape(self, sizes: dict[int, int], rank: int) -> list[int]:
        if len(sizes) == 1 and self.virtual_batch_size is None:
            return list(sizes.values())
        shape = [sizes.get(i, 1) for i in range(rank)]
        if self.virtual_batch_size is not None:
            shape.insert(1, 1)
            self.axis = [axis + 1 for axis in self.axis]
        return shape

    def _add_parameters(self, shape: list[int]) -> None:
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(
                name="gamma",
                shape=shape,
                dtype=self._param_dtype,
                initializer=self.gamma_initializer,
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
                trainable=True,
            )
        elif self.fused:
            self._gamma_const = constant(1.0, dtype=self._param_dtype, shape=shape)
        if self.center:
            self.beta = self.add_weight(
                name="beta",
                shape=shape,
                dtype=self._param_dtype,
                initializer=self.beta_initializer,
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
                trainable=True,
            )
        elif self.fused:
            self._beta_const = constant(0.0, dtype=self._param_dtype, shape=shape)
        scope: Any = getattr(self, "_scope", None)
        partitioner = scope.partitioner if scope else None
        if scope:
            scope.set_partitioner(None)  # statistics are not partitioned
        try:
            self._add_statistics(shape)
        finally:
            if partitioner:
                scope.set_partitioner(partitioner)

    def _add_statistic(self, name: str, shape: list[int], initializer: object) -> Any:
        return self.add_weight(
            name=name,
            shape=shape,
            dtype=self._param_dtype,
            initializer=initializer,
            trainable=False,
            synchronization=VariableSynchronization.ON_READ,
            aggregation=VariableAggregation.MEAN,
        )

    def _add_statistics(self, shape: list[int]) -> None:
        self.moving_mean = self._add_statistic("moving_mean", shape, self.moving_mean_initializer)
        self.moving_variance = self._add_statistic(
            "moving_variance", shape, self.moving_variance_initializer
        )
        if not self.renorm:
            return

        def stddev_initializer(*args: object, **kwargs: object) -> Any:
            return sqrt(self.moving_variance_initializer(*args, **kwargs))

        self.moving_stddev = self._add_statistic("moving_stddev", shape, stddev_initializer)
        self.renorm_mean = self._add_statistic("renorm_mean", shape, self.moving_mean_initializer)
        self.renorm_stddev = self._add_statistic("renorm_stddev", shape, stddev_initializer)

    # updates ------------------------------------------------------------------------------------
    def _assign_moving_average(self, variable: Any, value: Tensor, momentum: Any) -> Any:
        with name_scope("AssignMovingAvg") as scope, colocate_with(variable):
            kind = variable.dtype.base_dtype
            decay = cast(convert_to_tensor(1.0 - momentum, name="decay"), kind)
            delta = (variable - cast(value, kind)) * decay
            return assign_sub(variable, delta, name=scope)

    def _new_variance_of(self, moving_stddev: Tensor) -> Any:
        value = relu(moving_stddev * moving_stddev - self.epsilon)
        with name_scope("AssignNewValue") as scope, colocate_with(self.moving_variance):
            return assign(self.moving_variance, value, name=scope)

    # calling ------------------------------------------------------------------------------------
    def call(self, inputs: Any, training: bool | Tensor = False) -> Tensor:
        if self.virtual_batch_size is None:
            return self._fused(inputs, training) if self.fused else self._general(inputs, training)
        sizes = [-1, *inputs.shape.as_list()[1:]]
        grouped = reshape(inputs, [self.virtual_batch_size, -1, *sizes[1:]])
        return reshape(self._general(grouped, training), sizes)

    def _fused(self, inputs: TensorLike, training: TensorLike) -> Tensor:
        gamma = self.gamma if self.scale else self._gamma_const
        beta = self.beta if self.center else self._beta_const

        def with_batch() -> tuple[Tensor, Tensor, Tensor]:
            return fused_batch_norm(
                inputs, gamma, beta, epsilon=self.epsilon, data_format=self._data_format
            )

        def with_averages() -> tuple[Tensor, Tensor, Tensor]:
            return fused_batch_norm(
                inputs,
                gamma,
                beta,
                mean=self.moving_mean,
                variance=self.moving_variance,
                epsilon=self.epsilon,
                is_training=False,
                data_format=self._data_format,
            )

        output: Tensor
        output, mean, variance = smart_cond(training, with_batch, with_averages)
        if not self._bessels_correction_test_only:
            samples = cast(size(inputs) / size(variance), variance.dtype)
            variance = variance * ((samples - 1.0) / samples)
        known = constant_value(training)
        if known is None:
            momentum: TensorLike = smart_cond(training, lambda: self.momentum, lambda: 1.0)
        else:
            momentum = convert_to_tensor(self.momentum)
        if known is not False:
            self.add_update(lambda: self._assign_moving_average(self.moving_mean, mean, momentum))
            self.add_update(
                lambda: self._assign_moving_average(self.moving_variance, variance, momentum)
            )
        return output

    def _general(self, inputs: Any, training: TensorLike) -> Tensor:
        rank = len(inputs.shape)
        reduced = [i for i in range(rank) if i not in self.axis]
        if self.virtual_batch_size is not None:
            del reduced[1]
        wide = [1] * rank
        wide[self.axis[0]] = inputs.shape.as_list()[self.axis[0]]

        def broadcast(v: Tensor | None) -> Any:
            if v is not None and len(v.shape) != rank and reduced != list(range(rank - 1)):
                return reshape(v, wide)
            return v

        scale, offset = broadcast(self.gamma), broadcast(self.beta)
        if constant_value(training) is False:
            mean, variance = self.moving_mean, self.moving_variance
        else:
            if self.adjustment:
                scale, offset = self._adjusted(inputs, training, scale, offset)
            mean, variance, correction = self._training_statistics(inputs, training, reduced)
            if correction is not None:
                r, d = correction
                r = broadcast(stop_gradient(r, name="renorm_r"))
                d = broadcast(stop_gradient(d, name="renorm_d"))
                scale, offset = _composed(r, d, scale, offset)
            self._add_statistics_updates(training)
        kind = inputs.dtype
        outputs = nn_batch_normalization(
            inputs,
            broadcast(cast(mean, kind)),
            broadcast(cast(variance, kind)),
            None if offset is None else cast(offset, kind),
            None if scale is None else cast(scale, kind),
            self.epsilon,
        )
        outputs.set_shape(inputs.shape)
        return outputs

    def _adjusted(
        self, inputs: TensorLike, training: TensorLike, scale: Any, offset: Any
    ) -> tuple[Any, Any]:
        assert self.adjustment is not None
        own_scale, own_bias = self.adjustment(shape_of(inputs))
        own_scale = smart_cond(training, lambda: own_scale, lambda: ones_like(own_scale))
        own_bias = smart_cond(training, lambda: own_bias, lambda: zeros_like(own_bias))
        return _composed(own_scale, own_bias, scale, offset)

    def _training_statistics(
        self, inputs: TensorLike, training: TensorLike, reduced: list[int]
    ) -> tuple[Any, Any, tuple[Any, Any] | None]:
        """Mean and variance to normalize with, and renorm's correction.

        Notes what the updates take.
        """
        keep = self.virtual_batch_size is not None or len(self.axis) > 1
        mean, variance = moments(cast(inputs, self._param_dtype), reduced, keep_dims=keep)
        batch_mean, batch_variance = mean, variance
        mean = smart_cond(training, lambda: batch_mean, lambda: convert_to_tensor(self.moving_mean))
        variance = smart_cond(
            training, lambda: batch_variance, lambda: convert_to_tensor(self.moving_variance)
        )
        self._new_mean, self._new_variance = mean, variance
        if self.virtual_batch_size is not None:
            self._new_mean = reduce_mean(mean, axis=1, keepdims=True)
            self._new_variance = reduce_mean(variance, axis=1, keepdims=True)
        return mean, variance, self._renormed(training) if self.renorm else None

    def _add_statistics_updates(self, training: TensorLike) -> None:
        new_mean, new_variance = self._new_mean, self._new_variance
        del self._new_mean, self._new_variance

        def new_moving_variance() -> Any:
            if not self.renorm:
                return self._assign_moving_average(
                    self.moving_variance, new_variance, self.momentum
                )
            stddev = sqrt(new_variance + self.epsilon)
            return self._new_variance_of(
                self._assign_moving_average(self.moving_stddev, stddev, self.momentum)
            )

        def mean_update() -> Any:
            return smart_cond(
                training,
                lambda: self._assign_moving_average(self.moving_mean, new_mean, self.momentum),
                lambda: self.moving_mean,
            )

        self.add_update(mean_update)
        self.add_update(
            lambda: smart_cond(training, new_moving_variance, lambda: self.moving_variance)
        )

    def _renormed(self, training: Any) -> tuple[Any, Any]:
        """Batch renormalization's r and d; the statistics become those after its own averages."""
        mean = self._new_mean
        stddev: Any = sqrt(self._new_variance + self.epsilon)
        renorm_stddev: Any = maximum(self.renorm_stddev, sqrt(self.epsilon))
        r: Any = stddev / renorm_stddev
        d: Any = (mean - self.renorm_mean) / renorm_stddev
        with control_dependencies([r, d]):
            mean, stddev = identity(mean), identity(stddev)
        rmin, rmax, dmax = (self.renorm_clipping.get(key) for key in ("rmin", "rmax", "dmax"))
        r = r if rmin is None else maximum(r, rmin)
        r = r if rmax is None else minimum(r, rmax)
        if dmax is not None:
            d = minimum(maximum(d, -dmax), dmax)
        clipped_r, clipped_d = r, d
        r = smart_cond(training, lambda: clipped_r, lambda: ones_like(clipped_r))
        d = smart_cond(training, lambda: clipped_d, lambda: zeros_like(clipped_d))
        updates = [
            self._renorm_update(self.renorm_mean, mean, training),
            self._renorm_update(self.renorm_stddev, stddev, training),
        ]
        with control_dependencies(updates):
            self._new_mean = identity(mean)
            self._new_variance = identity(self._new_variance)
        return r, d

    def _renorm_update(self, variable: TensorLike, value: Tensor, training: object) -> Any:
        value = identity(value)
        return smart_cond(
            training,
            lambda: self._assign_moving_average(variable, value, self.renorm_momentum),
            lambda: identity(variable),
        )

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        plain = ("axis", "momentum", "epsilon", "center", "scale")
        objects = (
            "beta_initializer",
            "gamma_initializer",
            "moving_mean_initializer",
            "moving_variance_initializer",
            "beta_regularizer",
            "gamma_regularizer",
            "beta_constraint",
            "gamma_constraint",
        )
        config = {
            **super().get_config(),
            **{name: getattr(self, name) for name in plain},
            **{name: serialize_object(getattr(self, name)) for name in objects},
        }
        if self.renorm:
            config["renorm"] = True
            config["renorm_clipping"] = self.renorm_clipping
            config["renorm_momentum"] = self.renorm_momentum
        if self.virtual_batch_size is not None:
            config["virtual_batch_size"] = self.virtual_batch_size
        return config


def _composed(
    scale: Tensor, offset: Any, then_scale: Tensor | Variable, then_offset: Tensor | Variable
) -> tuple[Any, Any]:
    """Two affine maps in turn as one."""
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    if then_offset is not None:
        offset = offset + then_offset
    return scale, offset
