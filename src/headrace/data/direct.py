"""Functions that are one Python function and nothing else: called without going through a graph.

    dataset.map(lambda x: tf.numpy_function(f, [x], tf.float32))

The mapped function's graph is a single operation, ``PyFunc``, on its arguments. Running such a graph would cost several
times what a small function takes. Results, checks and errors are the same as those of the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import errors
from headrace.core.tensor import Operation, Tensor
from headrace.executors.base import op_error
from headrace.ops.script import call_python, find

__all__ = ["python_function"]


def python_function(graph: Any, outputs: list[Tensor]) -> Callable[..., Any] | None:
    """The function of a graph that is one Python function; None for any other graph."""
    results = [_origin(t) for t in outputs]
    if not results or graph.captures:
        return None
    op = results[0]._op
    if op.type not in ("PyFunc", "PyFuncStateless") or list(op._inputs) != list(graph.inputs):
        return None
    others = {o.type for o in graph._ops if o is not op}
    if results != list(op._outputs) or not others <= {"Placeholder", "Identity"}:
        return None
    return _caller(op)


def _origin(tensor: Tensor) -> Tensor:
    while tensor._op.type == "Identity":
        tensor = tensor._op._inputs[0]
    return tensor


def _caller(op: Operation) -> Callable[..., Any]:
    function, types = find(op._attrs["token"]), tuple(op._attrs["Tout"])
    several = len(types) > 1

    def call(*arrays: Any) -> Any:
        try:
            found = call_python(function.call, types, arrays)
        except errors.OpError as error:
            raise op_error(error, op, list(arrays)) from error.__cause__
        return found if several else (found,)

    return call
