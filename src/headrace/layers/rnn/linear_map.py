"""``Linear``.

A product with a new matrix, for cells that make their variables by ``get_variable``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.shapes import dimension_value
from headrace.layers import layer_ops as ops
from headrace.layers.rnn.cell_base import BIAS, WEIGHTS
from headrace.variables.initializers import constant_initializer
from headrace.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import InitializerLike

__all__ = ["Linear", "linear"]


def _arguments(args: Any) -> tuple[list[Any], int]:
    """The arguments as a list, and how many columns they have together."""
    if args is None or (nest.is_nested(args) and not args):
        raise ValueError("`args` must be specified")
    args = list(args) if nest.is_nested(args) else [args]
    shapes = [a.shape for a in args]
    total = 0
    for shape in shapes:
        if shape.ndims != 2:
            raise ValueError(f"linear is expecting 2D arguments: {shapes}")
        size = dimension_value(shape[1])
        if size is None:
            raise ValueError(
                f"linear expects shape[1] to be provided for shape {shape}, but saw {shape[1]}"
            )
        total += size
    return args, total


class Linear:
    """``[args] · kernel + bias``, with the variables ``kernel`` and ``bias`` of the scope that is
    open.
    """

    def __init__(
        self,
        args: object,
        output_size: int,
        build_bias: bool,
        bias_initializer: object = None,
        kernel_initializer: object = None,
    ) -> None:
        self._build_bias = build_bias
        self._is_sequence = nest.is_nested(args)
        args, total = _arguments(args)
        kind = args[0].dtype
        with variable_scope(get_variable_scope()) as outer:
            self._weights = get_variable(
                WEIGHTS, [total, output_size], dtype=kind, initializer=kernel_initializer
            )
            if build_bias:
                with variable_scope(outer) as inner:
                    inner.set_partitioner(None)
                    if bias_initializer is None:
                        bias_initializer = constant_initializer(0.0, dtype=kind)
                    self._biases = get_variable(
                        BIAS, [output_size], dtype=kind, initializer=bias_initializer
                    )

    def __call__(self, args: Any) -> Any:
        args = args if self._is_sequence else [args]
        if len(args) == 1:
            result = ops.matmul(args[0], self._weights)
        else:
            one = ops.constant(1, dtype=dtypes.int32)
            result = ops.matmul(ops.concat(args, one), self._weights)
        return ops.bias_add(result, self._biases) if self._build_bias else result


def linear(
    args: object,
    output_size: int,
    bias: bool,
    bias_initializer: InitializerLike | None = None,
    kernel_initializer: InitializerLike | None = None,
) -> Any:
    """``[args] · kernel (+ bias)`` with new variables."""
    return Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)
