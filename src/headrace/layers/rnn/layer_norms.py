"""Layer normalization of an LSTM's gate, with variables ``gamma`` and ``beta`` of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core import dtypes
from headrace.layers import layer_ops as ops
from headrace.variables.initializers import constant_initializer
from headrace.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = ["layer_norm_of_gate"]


def layer_norm_of_gate(x: Tensor, scope: str, gain: float, shift: float) -> Tensor:
    """``x`` (batch, units) normalized along its rows; ``gamma`` starts as gain, beta as shift."""
    shape = x.shape[-1:]
    with variable_scope(scope):
        gamma = get_variable("gamma", shape, initializer=constant_initializer(gain), dtype=x.dtype)
        beta = get_variable("beta", shape, initializer=constant_initializer(shift), dtype=x.dtype)
    with variable_scope(scope, reuse=True):
        mean, variance = ops.moments(x, [1], keep_dims=True)
        epsilon = 1e-3 if x.dtype == dtypes.float16 else 1e-12
        result = ops.batch_normalization(x, mean, variance, beta, gamma, epsilon)
    result.set_shape(x.shape)
    return result
