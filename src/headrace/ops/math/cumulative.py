"""Running sums, products and logsumexps along one axis.

>>> tf.cumsum([1, 2, 3], exclusive=True)  # [0, 1, 3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import shape_fns
from headrace.core.build import apply, apply_op
from headrace.core.opdef import OpDef, define
from headrace.core.tensor import Operation, Tensor
from headrace.ops.math import reduction_kernels as kernels

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, TensorLike

__all__ = ["cumprod", "cumsum", "cumulative_logsumexp"]


def _cumsum_grad(op: Operation, g: Tensor) -> list[Any]:
    a = op._attrs
    return [
        apply_op("Cumsum", g, op._inputs[1], exclusive=a["exclusive"], reverse=not a["reverse"]),
        None,
    ]


def _cumprod_grad(op: Operation, g: Tensor) -> list[Any]:
    x, axis = op._inputs
    a = op._attrs
    inner = apply_op(
        "Cumsum", op._outputs[0] * g, axis, exclusive=a["exclusive"], reverse=not a["reverse"]
    )
    return [apply_op("RealDiv", inner, x), None]


def _cumulative_logsumexp_grad(op: Operation, g: Tensor) -> list[Any]:
    """The gradient's positive and negative part are summed in the log domain, apart."""
    x, axis = op._inputs
    a, lowest = op._attrs, float(op._inputs[0]._dtype._base.min)

    def part(positive: object) -> Tensor:
        log = apply_op(
            "SelectV2", apply_op("Greater", positive, 0.0), apply_op("Log", positive), lowest
        )
        scan = apply_op(
            "CumulativeLogsumexp",
            log - op._outputs[0],
            axis,
            exclusive=a["exclusive"],
            reverse=not a["reverse"],
        )
        return apply_op("Exp", scan + x)

    return [part(g) - part(-g), None]


_SCAN = (
    "x: T, axis: Tidx -> out: T; exclusive: bool=False, reverse: bool=False, T: type(number), "
    "Tidx: type(index)=int32"
)


def _define_scan(
    name: str, kernel: Callable[..., Any], grad: Callable[..., Any], signature: str = _SCAN
) -> OpDef:
    return define(
        name, signature, shape=shape_fns.unchanged, kernel=kernel, grad=grad, known_inputs=(1,)
    )


CUMSUM = _define_scan("Cumsum", kernels.cumsum_kernel, _cumsum_grad)


CUMPROD = _define_scan("Cumprod", kernels.cumprod_kernel, _cumprod_grad)


CUMULATIVE_LOGSUMEXP = _define_scan(
    "CumulativeLogsumexp",
    kernels.cumulative_logsumexp_kernel,
    _cumulative_logsumexp_grad,
    _SCAN.replace("type(number)", "type(half_single_double)"),
)


def cumsum(
    x: TensorLike,
    axis: TensorLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Running sums along ``axis``: [a, b, c] to [a, a + b, a + b + c].

    ``exclusive`` leaves the element itself out ([0, a, a + b]), ``reverse`` begins at the end.
    """
    return apply(CUMSUM, x, axis, exclusive=exclusive, reverse=reverse, name=name)


def cumprod(
    x: TensorLike,
    axis: TensorLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of the elements up to each place along ``axis``.

    ``exclusive`` leaves the element itself out, ``reverse`` begins at the end.
    """
    return apply(CUMPROD, x, axis, exclusive=exclusive, reverse=reverse, name=name)


def cumulative_logsumexp(
    x: TensorLike,
    axis: AxisLike = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """``log(cumsum(exp(x)))`` along ``axis`` without overflow.

    ``exclusive`` leaves an element's own term out: the first is then the least finite number.
    ``reverse`` sums from the end.
    """
    return apply(CUMULATIVE_LOGSUMEXP, x, axis, exclusive=exclusive, reverse=reverse, name=name)
