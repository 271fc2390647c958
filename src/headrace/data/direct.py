"""Functions that are one Python function and nothing else: called without going through a graph.

    dataset.map(lambda x: tf.numpy_function(f, [x], tf.float32))

The mapped function's graph is a single operation, ``PyFunc``, on its arguments. Running such a graph would cost several
times what a small function takes. Results, checks and errors are the same as those of the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import errors
from headrace.core.tensor import Operation, Tensor
from headrace.executors.base import op_error
from headrace.ops.script import failure, find, for_user, from_python

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
    several, one = len(types) > 1, len(op._inputs) == 1
    # a NumPy scalar of the right type is a result as it is
    kind = types[0].np_dtype.type if len(types) == 1 else None
    python = function.call

    def failed(error: Exception, arrays: tuple[Any, ...]) -> BaseException:
        return op_error(failure(error), op, list(arrays))

    def finish(result: Any, arrays: tuple[Any, ...]) -> Any:
        try:
            found = from_python(result, types)
        except errors.OpError as error:
            raise failed(error, arrays) from None
        return found if several else (found,)

    def call_one(x: Any) -> Any:
        try:
            result = python(x if isinstance(x, np.generic) else for_user(x))
        except Exception as error:
            raise failed(error, (x,)) from error
        return (result,) if type(result) is kind else finish(result, (x,))

    def call(*arrays: Any) -> Any:
        try:
            result = python(*map(for_user, arrays))
        except Exception as error:
            raise failed(error, arrays) from error
        return (result,) if type(result) is kind else finish(result, arrays)

    call.function = call_one.function = function  # type: ignore[attr-defined]  # keeps it alive
    return call_one if one else call
