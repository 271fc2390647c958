"""``cond`` that is decided while the graph is built wherever its condition is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.core.infer import static_value
from headrace.core.tensor import Tensor
from headrace.ops.control.control_flow import cond
from headrace.variables.variable import Variable

__all__ = ["constant_value", "smart_cond"]

T = TypeVar("T")


def constant_value(pred: object) -> bool | None:
    """What is known of a condition: a bool, or None.

    ``pred`` is a bool, 0, 1, or a tensor; TypeError for anything else.
    """
    if isinstance(pred, Variable):
        return None
    if isinstance(pred, bool) or (isinstance(pred, int) and pred in (0, 1)):
        return bool(pred)
    if isinstance(pred, Tensor):
        known = static_value(pred)
        return None if known is None else bool(known)
    raise TypeError(
        f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {type(pred)}"
    )


def smart_cond(
    pred: object,
    true_fn: Callable[[], T],
    false_fn: Callable[[], T],
    name: str | None = None,
) -> T:
    """One branch if ``pred`` is known, ``tf.cond`` otherwise.

    ``pred`` is a Python bool, 0 or 1, a constant or a tensor; the functions take no arguments. A
    branch that is not taken for certain adds nothing to the graph.

        tf.contrib.framework.smart_cond(True, lambda: 1, lambda: 2)  # 1
    """
    if not callable(true_fn):
        raise TypeError("`true_fn` must be callable.")
    if not callable(false_fn):
        raise TypeError("`false_fn` must be callable.")
    known = constant_value(pred)
    if known is None:
        chosen: T = cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
        return chosen
    return true_fn() if known else false_fn()
