"""Probabilities and their log-odds, checks of counts, combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.shapes import dimension_value
from headrace.ops.array.basic import constant
from headrace.ops.control.assertions import (
    assert_equal,
    assert_less_equal,
    assert_near,
    assert_non_negative,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.special import lgamma
from headrace.ops.math.unary import floor, log, log1p, sigmoid
from headrace.ops.nn.activations import softmax

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = ["check_counts", "get_logits_and_probs", "log_combinations"]


def get_logits_and_probs(
    logits: TensorLike | None = None,
    probs: object = None,
    multidimensional: bool = False,
    validate_args: bool = False,
    name: str = "get_logits_and_probs",
    dtype: DType | None = None,
) -> tuple[Any, Any]:
    """Both, where one of them is given; ``multidimensional``: the last axis are classes."""
    with name_scope(name, values=[probs, logits]):
        if (probs is None) == (logits is None):
            raise ValueError("Must pass probs or logits, but not both.")
        if probs is None:
            logits = _floating(logits, "logits", dtype)
            if not multidimensional:
                return logits, sigmoid(logits, name="probs")
            if validate_args:
                _check_classes(logits)
            return logits, softmax(logits, name="probs")
        probs = _floating(probs, "probs", dtype)
        if validate_args:
            with name_scope("validate_probs"):
                probs = _checked_probs(probs, multidimensional)
        with name_scope("logits"):
            if multidimensional:
                return log(probs), probs
            return log(probs) - log1p(-1.0 * probs), probs


def _floating(value: object, name: str, dtype: DTypeLike | None) -> Tensor:
    tensor = convert_to_tensor(value, dtype, name)
    if not tensor.dtype.is_floating:
        raise TypeError(f"{name} must having floating type.")
    return tensor


def _checked_probs(probs: Tensor, multidimensional: bool) -> Tensor:
    one = constant(1.0, probs.dtype)
    checks = [assert_non_negative(probs)]
    if multidimensional:
        _check_classes(probs)
        sums = reduce_sum(probs, -1)
        checks.append(assert_near(sums, one, message="probs does not sum to 1."))
    else:
        message = "probs has components greater than 1."
        checks.append(assert_less_equal(probs, one, message=message))
    return with_dependencies(checks, probs)


def _check_classes(parameter: Any) -> None:
    if parameter.shape.ndims == 0:
        raise ValueError("A categorical-distribution parameter must have at least 1 dimension.")
    known = parameter.shape.ndims is not None
    classes = dimension_value(parameter.shape[-1]) if known else None
    if classes is not None and classes < 2:
        raise ValueError("A categorical-distribution parameter must have at least 2 events.")


def check_counts(x: TensorLike, name: str = "embed_check_nonnegative_integer_form") -> Tensor:
    """``x``, checked when it is used to be non-negative whole numbers."""
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        checks = [assert_non_negative(x, message=f"'{x}' must be non-negative.")]
        if not x.dtype.is_integer:
            message = f"'{x}' cannot contain fractional components."
            checks.append(assert_equal(x, floor(x), message=message))
        return with_dependencies(checks, x)


def log_combinations(n: TensorLike, counts: TensorLike, name: str = "log_combinations") -> Tensor:
    """The logarithm of n! / (counts_1! … counts_k!)."""
    with name_scope(name, values=[n, counts]):
        n = convert_to_tensor(n, name="n")
        counts = convert_to_tensor(counts, name="counts")
        return lgamma(n + 1) - reduce_sum(lgamma(counts + 1), axis=[-1])
