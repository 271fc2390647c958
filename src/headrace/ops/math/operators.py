"""Python's operators on tensors: ``x + 1``, ``2 / x``, ``-x``, ``x[1:]``.

``install()`` puts them on :class:`Tensor`; ``OPERATORS`` has the same functions by name for other
classes that compute with tensors (variables, which pass their value). A plain number gets the type
of the tensor beside it. ``x == y`` stays identity, as in TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply, apply_op
from headrace.core.convert import convert
from headrace.core.opdef import OpDef
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.math import binary as math_binary
from headrace.ops.math import comparison
from headrace.ops.math import unary as math_unary
from headrace.ops.math.unary import is_sparse

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.core.dtypes import DType
    from headrace.variables.variable import Variable

__all__ = ["OPERATORS", "install"]

Operator = Callable[..., Any]


NO_NONE = "None values not supported."


def _gives_way(y: object, reflected: str) -> bool:
    """Whether y is of a class of its own that may know how to compute with a tensor."""
    kind = type(y)
    return (
        kind.__module__ not in ("builtins", "numpy")
        and hasattr(kind, reflected)
        and not isinstance(y, Tensor)
    )


def _forward(build: Callable[[Any, Any], Any], short: str) -> Operator:
    reflected = f"__r{short}__"

    def operator(x: TensorLike, y: TensorLike) -> Any:
        if y is None and not hasattr(x, "numpy"):  # eager tensors have words of their own
            raise ValueError(NO_NONE)
        try:
            return build(x, y)
        except (TypeError, ValueError):
            if _gives_way(y, reflected):
                return NotImplemented
            raise

    return operator


def _pair(opdef: OpDef, short: str, name: str | None = None) -> dict[str, Operator]:
    """``x op y`` and ``y op x`` for an op that keeps the type."""
    name = name or short

    def forward(x: Tensor, y: object) -> Tensor:
        return apply(opdef, x, y, name=name)

    def backward(y: Tensor, x: float) -> Tensor:
        if x is None and not hasattr(y, "numpy"):
            raise ValueError(NO_NONE)
        return apply(opdef, _like(x, y), y, T=y.dtype.base_dtype, name=name)

    return {f"__{short}__": _forward(forward, short), f"__r{short}__": backward}


# the ones with rules of their own ---------------------------------------------------------------


def _add_op(dtype: DType) -> OpDef:
    return math_binary.ADD if dtype._kind == "s" else math_binary.ADD_V2


def _add(x: Tensor, y: object) -> Tensor:
    return apply(_add_op(x.dtype), x, y, name="add")


def _radd(y: Tensor, x: float | Array) -> Tensor:
    return apply(_add_op(y.dtype), _like(x, y), y, T=y.dtype.base_dtype, name="add")


def _like(x: Any, y: Tensor) -> Tensor:
    """``x`` as it stands left of ``y``: a tensor of another dtype is refused, as in TensorFlow."""
    return convert(x, y.dtype.base_dtype, "x") if isinstance(x, Tensor) else x


def _mul(x: TensorLike, y: Any) -> Any:
    if not isinstance(y, Tensor) and is_sparse(
        y
    ):  # only where y has values is there anything to multiply
        values = apply_op("SparseDenseCwiseMul", y.indices, y.values, y.dense_shape, x, name="mul")
        return type(y)(y.indices, values, y.dense_shape)
    return apply(math_binary.MUL, x, y, name="mul")


def _rmul(y: Tensor, x: TensorLike) -> Tensor:
    return apply(math_binary.MUL, _like(x, y), y, T=y.dtype.base_dtype, name="mul")


def _reflected_with_scope(function: Callable[..., Any], default_name: str) -> Operator:
    """``y op x`` for a function that makes several ops."""

    def operator(y: Tensor, x: float | Array) -> Any:
        with name_scope(None, default_name, [x, y]) as scope:
            return function(convert(x, y.dtype.base_dtype, "x"), y, name=scope)

    return operator


def _matmul(a: Tensor, b: Tensor | Variable, name: str = "matmul") -> Tensor:
    from headrace.ops.linalg.matmul import matmul

    return matmul(a, convert(b, None, "y", a.dtype.base_dtype), name=name)


def _logical(opdef: OpDef, short: str) -> dict[str, Operator]:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return apply(opdef, x, y, name=short)

    def backward(y: Tensor, x: bool) -> Tensor:
        return apply(opdef, x, y, name=short)

    return {f"__{short}__": _forward(forward, short), f"__r{short}__": backward}


def _xor(x: Tensor, y: bool | Tensor) -> Tensor:
    with name_scope(None, "xor", [x, y]) as scope:
        return comparison.logical_xor(x, convert(y, x.dtype.base_dtype, "y"), name=scope)


def _getitem(x: Tensor, spec: object, var: Variable | None = None) -> Tensor:
    from headrace.ops.array.indexing import slice_helper

    return slice_helper(x, spec, var)


OPERATORS: dict[str, Operator] = {
    "__add__": _forward(_add, "add"),
    "__radd__": _radd,
    **_pair(math_binary.SUB, "sub"),
    "__mul__": _forward(_mul, "mul"),
    "__rmul__": _rmul,
    "__truediv__": _forward(math_binary.true_quotient, "truediv"),
    "__rtruediv__": _reflected_with_scope(math_binary.true_quotient, "truediv"),
    "__div__": _forward(math_binary.div, "div"),
    "__rdiv__": _reflected_with_scope(math_binary.div, "div"),
    **_pair(math_binary.FLOOR_DIV, "floordiv"),
    **_pair(math_binary.FLOOR_MOD, "mod"),
    **_pair(math_binary.POW, "pow"),
    "__matmul__": _forward(_matmul, "matmul"),
    "__rmatmul__": _reflected_with_scope(_matmul, "matmul"),
    **_logical(comparison.LOGICAL_AND, "and"),
    **_logical(comparison.LOGICAL_OR, "or"),
    "__xor__": _forward(_xor, "xor"),
    "__rxor__": _reflected_with_scope(comparison.logical_xor, "xor"),
    "__lt__": comparison.less,
    "__le__": comparison.less_equal,
    "__gt__": comparison.greater,
    "__ge__": comparison.greater_equal,
    "__invert__": comparison.logical_not,
    "__neg__": math_unary.negative,
    "__abs__": math_unary.abs,
    "__getitem__": _getitem,
}


def install() -> None:
    """Give Tensor its operators."""
    for name, function in OPERATORS.items():
        Tensor._override_operator(name, function)


install()
