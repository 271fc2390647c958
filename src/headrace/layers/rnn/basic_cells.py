"""The cells of ``tf.nn.rnn_cell``: BasicRNNCell, GRUCell, BasicLSTMCell and LSTMCell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from headrace.core import dtypes
from headrace.core.annotations import DTypeLike
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.identifiers import (
    get_activation,
    get_initializer,
    serialize_activation,
    serialize_object,
)
from headrace.layers.input_spec import InputSpec
from headrace.layers.rnn.cell_base import (
    BIAS,
    WEIGHTS,
    LayerRNNCell,
    LSTMStateTuple,
    UnitState,
    check_input_dtypes,
    check_supported_dtypes,
    input_depth,
)
from headrace.variables.initializers import constant_initializer, zeros_initializer
from headrace.variables.partitioners import fixed_size_partitioner

if TYPE_CHECKING:
    from headrace.core.annotations import Activation, ReuseLike, TensorLike
    from headrace.core.shapes import TensorShape
    from headrace.core.tensor import Tensor

__all__ = ["BasicLSTMCell", "BasicRNNCell", "GRUCell", "LSTMCell"]


def _activation_of(activation: object) -> Callable[..., Any]:
    return get_activation(activation) if activation else ops.tanh


def _zeros(dtype: Any) -> Any:
    return zeros_initializer if dtype is None else zeros_initializer(dtype=dtype)


class _SimpleCell(UnitState, LayerRNNCell):
    """Cells with ``num_units`` outputs, an activation and inputs of rank 2."""

    def __init__(
        self,
        num_units: int,
        activation: Any,
        reuse: ReuseLike,
        name: Any,
        dtype: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        check_supported_dtypes(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = _activation_of(activation)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self.dtype,
            "num_units": self._num_units,
            "activation": serialize_activation(self._activation),
            "reuse": self._reuse,
        }


class BasicRNNCell(_SimpleCell):
    """``output = activation([inputs, state] · kernel + bias)``; the state is the output.

    The variables are ``kernel`` [inputs + units, units] and ``bias`` [units]. ``activation`` is a
    function or its name, tanh by default. ``reuse=True`` takes existing variables of the scope.

        cell = tf.contrib.rnn.BasicRNNCell(4)
        outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 5, 3]), dtype=tf.float32)
    """

    def __init__(
        self,
        num_units: int,
        activation: object = None,
        reuse: ReuseLike = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)

    def build(self, inputs_shape: TensorShape) -> None:
        depth = input_depth(inputs_shape)
        check_supported_dtypes(self.dtype)
        n = self._num_units
        self._kernel = self.add_variable(WEIGHTS, shape=[depth + n, n])
        self._bias = self.add_variable(BIAS, shape=[n], initializer=_zeros(self.dtype))
        self.built = True

    def call(self, inputs: TensorLike, state: TensorLike) -> Any:
        check_input_dtypes([inputs, state])
        gates = ops.matmul(ops.concat([inputs, state], 1), self._kernel)
        output = self._activation(ops.bias_add(gates, self._bias))
        return output, output


class GRUCell(_SimpleCell):
    """A gated recurrent unit, with the reset gate before the product with the state.

    ``new = u * state + (1 - u) * activation(candidate)``. The variables are ``gates/kernel``,
    ``gates/bias`` and ``candidate/kernel``, ``candidate/bias``.
    """

    def __init__(
        self,
        num_units: int,
        activation: object = None,
        reuse: ReuseLike = None,
        kernel_initializer: object = None,
        bias_initializer: object = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._kernel_initializer = get_initializer(kernel_initializer)
        self._bias_initializer = get_initializer(bias_initializer)

    def build(self, inputs_shape: Any) -> None:
        depth = input_depth(inputs_shape)
        check_supported_dtypes(self.dtype)
        n, kernel, bias = self._num_units, self._kernel_initializer, self._bias_initializer
        self._gate_kernel = self.add_variable(
            f"gates/{WEIGHTS}", shape=[depth + n, 2 * n], initializer=kernel
        )
        self._gate_bias = self.add_variable(
            f"gates/{BIAS}",
            shape=[2 * n],
            initializer=constant_initializer(1.0, dtype=self.dtype or dtypes.float32)
            if bias is None
            else bias,
        )
        self._candidate_kernel = self.add_variable(
            f"candidate/{WEIGHTS}", shape=[depth + n, n], initializer=kernel
        )
        self._candidate_bias = self.add_variable(
            f"candidate/{BIAS}",
            shape=[n],
            initializer=_zeros(self.dtype) if bias is None else bias,
        )
        self.built = True

    def call(self, inputs: TensorLike, state: TensorLike) -> Any:
        check_input_dtypes([inputs, state])
        gates = ops.matmul(ops.concat([inputs, state], 1), self._gate_kernel)
        value = ops.sigmoid(ops.bias_add(gates, self._gate_bias))
        r, u = ops.split(value=value, num_or_size_splits=2, axis=1)
        candidate = ops.matmul(ops.concat([inputs, r * state], 1), self._candidate_kernel)
        c = self._activation(ops.bias_add(candidate, self._candidate_bias))
        new = u * state + (1 - u) * c
        return new, new

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "kernel_initializer": serialize_object(self._kernel_initializer),
            "bias_initializer": serialize_object(self._bias_initializer),
        }


class BasicLSTMCell(_SimpleCell):
    """An LSTM with ``num_units`` units, without peepholes, clipping or projection.

    Its state is an LSTMStateTuple (c, h). ``forget_bias`` is added to the forget gate, so that the
    cell remembers at first. The variables are ``kernel`` [inputs + units, 4 * units], gates in the
    order i, j, f, o, and ``bias``.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: Any = None,
        dtype: DTypeLike | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        n = self._num_units
        return LSTMStateTuple(n, n) if self._state_is_tuple else 2 * n

    def build(self, inputs_shape: Any) -> None:
        depth = input_depth(inputs_shape)
        check_supported_dtypes(self.dtype)
        n = self._num_units
        self._kernel = self.add_variable(WEIGHTS, shape=[depth + n, 4 * n])
        self._bias = self.add_variable(BIAS, shape=[4 * n], initializer=_zeros(self.dtype))
        self.built = True

    def call(self, inputs: TensorLike, state: Any) -> Any:
        check_input_dtypes([inputs, state])
        one = ops.constant(1, dtype=dtypes.int32)
        if self._state_is_tuple:
            c, h = state
        else:
            c, h = ops.split(value=state, num_or_size_splits=2, axis=one)
        gates = ops.bias_add(ops.matmul(ops.concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = ops.split(value=gates, num_or_size_splits=4, axis=one)
        forget = ops.constant(self._forget_bias, dtype=f.dtype)
        kept = ops.multiply(c, ops.sigmoid(ops.add(f, forget)))
        new_c = ops.add(kept, ops.multiply(ops.sigmoid(i), self._activation(j)))
        new_h = ops.multiply(self._activation(new_c), ops.sigmoid(o))
        if self._state_is_tuple:
            return new_h, LSTMStateTuple(new_c, new_h)
        return new_h, ops.concat([new_c, new_h], 1)

    def get_config(self) -> dict[str, Any]:
        own = {"forget_bias": self._forget_bias, "state_is_tuple": self._state_is_tuple}
        return {**super().get_config(), **own}


class LSTMCell(_SimpleCell):
    """An LSTM with optional peepholes, clipping of the cell and a projection of the output.

    ``num_proj`` is the size of the projected output; ``cell_clip`` and ``proj_clip`` limit values;
    ``use_peepholes`` lets gates see the cell. The state is an LSTMStateTuple (c, h), one tensor
    with ``state_is_tuple=False``.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: object = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation | None = None,
        reuse: ReuseLike = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = get_initializer(initializer)
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    @property
    def state_size(self) -> Any:
        c, h = self._num_units, self._num_proj or self._num_units
        return LSTMStateTuple(c, h) if self._state_is_tuple else c + h

    def build(self, inputs_shape: Any) -> None:
        depth = input_depth(inputs_shape)
        check_supported_dtypes(self.dtype)
        n = self._num_units
        h = n if self._num_proj is None else self._num_proj
        self._kernel = self.add_variable(
            WEIGHTS,
            shape=[depth + h, 4 * n],
            initializer=self._initializer,
            partitioner=_partitioner(self._num_unit_shards),
        )
        self._bias = self.add_variable(BIAS, shape=[4 * n], initializer=_zeros(self.dtype))
        if self._use_peepholes:
            self._w_f_diag, self._w_i_diag, self._w_o_diag = (
                self.add_variable(f"w_{gate}_diag", shape=[n], initializer=self._initializer)
                for gate in "fio"
            )
        if self._num_proj is not None:
            self._proj_kernel = self.add_variable(
                f"projection/{WEIGHTS}",
                shape=[n, self._num_proj],
                initializer=self._initializer,
                partitioner=_partitioner(self._num_proj_shards),
            )
        self.built = True

    def call(self, inputs: Tensor, state: Any) -> Any:
        check_input_dtypes([inputs, state])
        if self._state_is_tuple:
            c_before, m_before = state
        else:
            width = self._num_units if self._num_proj is None else self._num_proj
            c_before = ops.slice(state, [0, 0], [-1, self._num_units])
            m_before = ops.slice(state, [0, self._num_units], [-1, width])
        if dimension_value(inputs.shape.with_rank(2)[1]) is None:
            raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
        gates = ops.matmul(ops.concat([inputs, m_before], 1), self._kernel)
        gates = ops.bias_add(gates, self._bias)
        i, j, f, o = ops.split(value=gates, num_or_size_splits=4, axis=1)
        c = self._new_cell(i, j, f, c_before)
        gate = ops.sigmoid(o + self._w_o_diag * c) if self._use_peepholes else ops.sigmoid(o)
        m = self._projected(gate * self._activation(c))
        return m, LSTMStateTuple(c, m) if self._state_is_tuple else ops.concat([c, m], 1)

    def _new_cell(self, i: Tensor, j: Tensor, f: Tensor, before: Tensor) -> Any:
        if self._use_peepholes:
            kept = ops.sigmoid(f + self._forget_bias + self._w_f_diag * before) * before
            c = kept + ops.sigmoid(i + self._w_i_diag * before) * self._activation(j)
        else:
            c = ops.sigmoid(f + self._forget_bias) * before + ops.sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = ops.clip_by_value(c, -self._cell_clip, self._cell_clip)
        return c

    def _projected(self, m: Tensor) -> Tensor:
        if self._num_proj is None:
            return m
        m = ops.matmul(m, self._proj_kernel)
        if self._proj_clip is not None:
            m = cast("Tensor", ops.clip_by_value(m, -self._proj_clip, self._proj_clip))
        return m

    def get_config(self) -> dict[str, Any]:
        plain = (
            "use_peepholes",
            "cell_clip",
            "num_proj",
            "proj_clip",
            "num_unit_shards",
            "num_proj_shards",
            "forget_bias",
            "state_is_tuple",
        )
        return {
            **super().get_config(),
            **{name: getattr(self, "_" + name) for name in plain},
            "initializer": serialize_object(self._initializer),
        }


def _partitioner(shards: int | None) -> Any:
    return None if shards is None else fixed_size_partitioner(shards)
