"""Control flow while eager execution is on: Python's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.convert import convert_to_tensor
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.ops.control.tensor_array import TensorArray

__all__ = ["eager_cond", "eager_while"]


def eager_cond(
    pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any], strict: bool
) -> Any:
    """The result of one of the functions."""
    result = true_fn() if _truth(pred) else false_fn()
    if not strict and isinstance(result, (list, tuple)) and len(result) == 1:
        return result[0]
    return result


def _truth(value: TensorLike) -> bool:
    if isinstance(value, bool):
        return value
    return bool(convert_to_tensor(value))


def eager_while(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Tensor,
    maximum_iterations: Any,
    return_same_structure: bool,
) -> Any:
    """``while cond(*loop_vars): loop_vars = body(*loop_vars)``."""
    single = not isinstance(loop_vars, (list, tuple)) or hasattr(loop_vars, "_fields")
    state = [loop_vars] if single else loop_vars
    left = None if maximum_iterations is None else int(maximum_iterations)
    bare = False
    while (left is None or left > 0) and _truth(cond(*state)):
        result = body(*state)
        if len(state) == 1 and not (
            isinstance(result, (list, tuple))
            and not hasattr(result, "_fields")
            and len(result) == 1
        ):
            bare, result = True, [result]
        nest.assert_same_structure(list(state), list(result), expand_composites=True)
        state = result
        left = None if left is None else left - 1
    values = nest.map_structure(_as_tensor, state, expand_composites=True)
    return values[0] if single or (bare and not return_same_structure) else values


def _as_tensor(value: int | Tensor | TensorArray) -> int | Tensor | TensorArray:
    if isinstance(value, Tensor) or hasattr(value, "_as_tensor_for_control_flow"):
        return value
    return convert_to_tensor(value)
