"""Small graph-building helpers that the modules of ``train`` share."""

from __future__ import annotations

from typing import Any

from headrace.core.dtypes import DType
from headrace.core.graph import Graph, get_default_graph
from headrace.core.scopes import _outside_functions
from headrace.core.tensor import Tensor
from headrace.ops.array import casting

__all__ = ["cast", "op_of", "state_graph"]


def cast(value: Any, dtype: DType) -> Any:
    """``value`` (tensor, variable or number) in a type.

    A resource variable that has it is read where it is used.
    """
    if getattr(value, "handle", None) is not None and value.dtype.base_dtype is dtype:
        return value
    return casting.cast(value, dtype)


def op_of(value: Any) -> Any:
    """The operation of a tensor or variable; for an eager one, what stands in its place."""
    if isinstance(value, Tensor):
        return value._op
    handle = getattr(value, "_handle", None)
    return handle._op if isinstance(handle, Tensor) else value.op


def state_graph() -> Graph:
    """The graph that variables made here belong to.

    A function that is being traced has none of its own.
    """
    graph = get_default_graph()
    return _outside_functions(graph) if graph._is_function else graph
