"""Functions that are one Python function and nothing else: called without going through a graph.

    dataset.map(lambda x, y: (tf.ensure_shape(tf.numpy_function(f, [x], tf.float32), (8,)), y))

The mapped function's graph has a single operation that computes, ``PyFunc`` (or ``EagerPyFunc``, of
``tf.py_function``), on its arguments and constants; its results may be checked or reshaped, and
arguments may be passed on beside them. Running such a graph would cost several times what a small
function takes. Results, checks and errors are the same as those of the operations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.core.opdef import KernelNode, bind_kernel
from headrace.core.tensor import Operation, Tensor
from headrace.data.runtime.file_stages import text_scalar
from headrace.kernels.numpy import numpy_xp
from headrace.lower.executable import op_error
from headrace.ops.control.py_func import failure, find, for_user, from_python

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.core.func_graph import FuncGraph
    from headrace.data.functions.user_functions import DataGraph

__all__ = ["python_function"]

Call = Callable[..., tuple[Any, ...]]


def _may_stand_beside(op: Operation) -> bool:
    """Whether a graph with this operation may still be one Python function: arguments, constants,
    and operations on a result that keep all of its elements.
    """
    traits = op._opdef.traits
    return op._role == "constant" or traits.role == "placeholder" or traits.whole


def python_function(graph: DataGraph | FuncGraph, outputs: list[Tensor]) -> Call | None:
    """The function of a graph that is one Python function; None for any other graph."""
    scripts = [op for op in graph._ops if op._opdef.traits.calls_user]
    if len(scripts) != 1 or not outputs or graph.captures:
        return None
    op = scripts[0]
    if any(o is not op and not _may_stand_beside(o) for o in graph._ops):
        return None
    arguments = {id(t): i for i, t in enumerate(graph.inputs)}
    given = [_argument_or_constant(t, arguments) for t in op._inputs]
    routes = [_route(t, op, arguments) for t in outputs]
    if None in given or None in routes or len({r[:2] for r in routes if r}) < len(routes):
        return None
    return _caller(op, given, routes, len(graph.inputs))  # type: ignore[arg-type]


# where values come from ---------------------------------------------------------------------------


class _Given(NamedTuple):
    """An input of the Python function: an argument's number, or (-1) a constant."""

    argument: int
    value: Any = None


class _Route(NamedTuple):
    """A result of the mapped function.

    The number of an argument or of the Python function's result, and what is done to it.
    """

    argument: bool
    number: int
    steps: tuple[_Step, ...]
    #: The only shape that passes the steps, and is not changed by them; None if there may be
    #: others.
    shape: tuple[int, ...] | None


class _Step:
    """An operation on one result."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.constants = [_constant(t) for t in op._inputs[1:]]
        node = KernelNode(op.name, op.type, op._attrs, op)
        self.kernel = bind_kernel(op._opdef, node, numpy_xp)

    def __call__(self, x: TensorLike) -> Any:
        try:
            return self.kernel(x, *self.constants)
        except Exception as error:
            located = op_error(error, self.op, [x, *self.constants])
            raise located from (None if isinstance(error, errors.OpError) else error)


def _source(tensor: Tensor) -> Tensor:
    while tensor._op._role == "identity":
        tensor = tensor._op._inputs[0]
    return tensor


def _constant(tensor: Tensor) -> Any:
    op = _source(tensor)._op
    return op._attrs["value"] if op._role == "constant" else None


def _argument_or_constant(tensor: Tensor, arguments: dict[int, int]) -> _Given | None:
    source = _source(tensor)
    if id(source) in arguments:
        return _Given(arguments[id(source)])
    value = _constant(source)
    return None if value is None else _Given(-1, value)


def _route(tensor: Tensor, script: Operation, arguments: dict[int, int]) -> _Route | None:
    source, steps = _source(tensor), []
    while source._op._opdef.traits.whole:
        steps.append(source._op)
        source = _source(source._op._inputs[0])
    if any(_constant(t) is None for op in steps for t in op._inputs[1:]):
        return None
    done = tuple([_Step(op) for op in reversed(steps)])
    if id(source) in arguments:
        return _Route(True, arguments[id(source)], done, None)
    if source._op is not script:
        return None
    number = list(map(id, script._outputs)).index(id(source))
    return _Route(False, number, done, _only_shape(steps))


def _only_shape(steps: Sequence[Operation]) -> tuple[int, ...] | None:
    wanted = {op._attrs["shape"] if op.type == "EnsureShape" else None for op in steps}
    shape = wanted.pop() if len(wanted) == 1 else None
    return None if shape is None or None in shape else tuple(shape)


# the call -----------------------------------------------------------------------------------------


def _caller(op: Operation, given: list[_Given], routes: list[_Route], arity: int) -> Call:
    token = op._attrs["token"]
    function = find(token)
    script = (_eager if op.type == "EagerPyFunc" else _numpy)(op, function.call)
    plain = [g.argument for g in given] == list(range(arity))
    if not plain:
        script = _picking(script, given)
    simple = len(routes) == 1 and not routes[0].argument and len(op._attrs["Tout"]) == 1
    if simple and plain and op.type != "EagerPyFunc":
        call = _one_result(op, function.call, script, routes[0], arity == 1)
    else:
        call = _arranged(script, routes)
    vars(call)["function"] = function  # keeps it alive
    return call


def _numpy(op: Operation, python: Callable[..., Any]) -> Call:
    """The Python function of arrays: all of its results."""
    types = tuple(op._attrs["Tout"])
    several = len(types) != 1

    def call(*arrays: Array | np.generic) -> tuple[Any, ...]:
        try:
            result = python(*map(for_user, arrays))
        except Exception as error:
            raise _failed(error, op, arrays) from error
        return finished(result, arrays)

    def finished(result: TensorLike, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        try:
            found = from_python(result, types)
        except errors.OpError as error:
            raise _failed(error, op, arrays) from None
        return found if several else (found,)

    vars(call)["finished"] = finished
    return call


def _eager(op: Operation, python: Callable[..., Any]) -> Call:
    """The Python function of eager tensors.

    Tensors that it keeps are not the ones that are handed on.
    """
    types = tuple(op._attrs["Tin"])

    def call(*arrays: np.generic) -> tuple[Any, ...]:
        try:
            results = python(*arrays, input_types=types)
        except Exception as error:
            cause = None if isinstance(error, errors.OpError) else error
            raise _failed(error, op, arrays) from cause
        return tuple([_copied(r) for r in results])

    return call


def _failed(error: Exception, op: Operation, arrays: Sequence[Any]) -> BaseException:
    return op_error(failure(error), op, list(arrays))


def _copied(value: TensorLike) -> Any:
    if type(value) is np.ndarray:
        return value.copy()
    return text_scalar(value) if type(value) is bytes else value


def _picking(script: Call, given: list[_Given]) -> Call:
    def call(*arrays: Array | np.generic) -> tuple[Any, ...]:
        return script(*[arrays[i] if i >= 0 else value for i, value in given])

    return call


def _arranged(script: Call, routes: list[_Route]) -> Call:
    """Results and arguments in the order in which they are wanted."""

    def call(*arrays: Array | np.generic) -> tuple[Any, ...]:
        found = script(*arrays)
        out = []
        for argument, number, steps, _ in routes:
            value = _copied(arrays[number]) if argument else found[number]
            for step in steps:
                value = step(value)
            out.append(value)
        return tuple(out)

    return call


def _filler(
    op: Operation,
    python: Callable[..., Any],
    accept: Callable[..., tuple[Any, ...]],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
) -> Callable[..., tuple[int, Any]]:
    """A function that runs ``python`` on many elements, each result into its row of an array."""

    def fill(elements: deque[Any], rows: Array) -> tuple[int, Any]:
        """As many elements as there are rows: their number, and an element or error of another
        kind that came after them.
        """
        take = elements.popleft
        for i in range(min(len(rows), len(elements))):
            x = take()[0]
            try:
                result = python(x if isinstance(x, np.generic) else for_user(x))
                if type(result) is np.ndarray and result.dtype is dtype and result.shape == shape:
                    rows[i] = result
                    continue
            except Exception as error:
                failed = _failed(error, op, (x,))
                failed.__cause__ = error
                return i, failed
            try:
                return i, accept(result, (x,))
            except Exception as error:
                return i, error
        return i + 1, None

    return fill


def _one_result(
    op: Operation, python: Callable[..., Any], script: Any, route: _Route, one: bool
) -> Call:
    """The commonest case, without detours for a result that is as it should be."""
    finished, steps, shape = script.finished, route.steps, route.shape
    dtype = op._attrs["Tout"][0].np_dtype
    # a NumPy scalar of the right type is a result as it is; strings are looked at
    kind = dtype.type if dtype.kind != "O" and not steps else None
    array = np.ndarray if dtype.kind != "O" and (shape is not None or not steps) else None

    def call(*arrays: Any) -> tuple[Any, ...]:
        try:
            result = python(*map(for_user, arrays))
        except Exception as error:
            raise _failed(error, op, arrays) from error
        return accept(result, arrays)

    def call_one(x: np.generic) -> tuple[Any, ...]:
        try:
            result = python(x if isinstance(x, np.generic) else for_user(x))
        except Exception as error:
            raise _failed(error, op, (x,)) from error
        # the function may keep the array (a NumPy type is one object: that it is the same is
        # quicker found than that it equals)
        if (
            type(result) is array
            and result.dtype is dtype
            and (shape is None or result.shape == shape)
        ):
            return (result.copy(),)
        return accept(result, (x,))

    def accept(
        result: float | Array | np.generic | Sequence[float | Array | np.generic],
        arrays: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        if type(result) is kind:
            return (result,)
        value = finished(result, arrays)[0]
        for step in steps:
            value = step(value)
        return (value,)

    if one and array is not None and shape is not None:
        fill = _filler(op, python, accept, dtype, shape)
        vars(call_one).update(fill=fill, row=(shape, dtype))
    return call_one if one else call
