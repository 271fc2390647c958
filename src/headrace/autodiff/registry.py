"""Gradient functions by op type: those that users register, else the op's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.core.opdef import NO_GRADIENT_YET, NOT_DIFFERENTIABLE, lookup
from headrace.core.tensor import Operation

__all__ = [
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "gradient_function",
    "is_registered",
]

_registered: dict[str, Any] = {}


class RegisterGradient:
    """``@tf.RegisterGradient("Name")`` for a function ``f(op, *grads)``.

    Use it through gradient_override_map.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self._op_type in _registered:
            raise KeyError(
                f"Registering two gradient with name '{self._op_type}'! (Previous registration was "
                f"{_registered[self._op_type]!r})"
            )
        _registered[self._op_type] = f
        return f


def NotDifferentiable(op_type: str) -> None:
    """Declare that ops of this type have no gradient: ``tf.gradients`` stops at them."""
    _registered[op_type] = NOT_DIFFERENTIABLE


NoGradient = NotDifferentiable


def is_registered(op_type: str) -> bool:
    """Whether a user's gradient has this name."""
    return op_type in _registered


def _gradient_of_type(kind: str, op: Operation) -> Any:
    """The gradient of another op type: ``gradient_override_map({"Round": "Identity"})``."""
    try:
        return lookup(kind).grad
    except ValueError:
        raise LookupError(
            f"No gradient defined for operation '{op.name}' (op type: {op.type}): "
            "gradient_override_map names "
            f"'{kind}', which is not registered with tf.RegisterGradient"
        ) from None


def gradient_function(op: Operation) -> Callable[..., Any] | None:
    """The gradient function of an operation; None if it has no derivative."""
    kind = op._attrs.get("_gradient_op_type", op.type)
    if isinstance(kind, bytes):
        kind = kind.decode()
    found = _registered.get(kind)
    if found is None:
        found = op._opdef.grad if kind == op.type else _gradient_of_type(kind, op)
    if found is NOT_DIFFERENTIABLE:
        return None
    if found is NO_GRADIENT_YET:
        raise LookupError(
            f"No gradient defined for operation '{op.name}' (op type: {op.type}). "
            "Headrace does not have it yet."
        )
    function: Callable[..., Any] = found
    return function
