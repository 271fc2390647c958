"""``tf.py_function``: a Python function of eager tensors as an operation, with a gradient.

While the operation runs its function is given eager tensors and may use any TensorFlow operation; a
tape records it, and the gradient of the operation asks that tape. (``numpy_function`` gives arrays
and has no gradient.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from headrace.core import dtypes, nest
from headrace.core.build import apply_list
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Operation, Tensor
from headrace.eager.eager_context import eager_mode
from headrace.eager.execute import _wrapped
from headrace.eager.tape import GradientTape
from headrace.ops.control import py_func as script
from headrace.variables.variable import Variable

__all__ = ["py_function"]

_tokens = itertools.count()


class _EagerFunction(script.Function):
    """The function and what its last call recorded."""

    __slots__ = ("function", "last", "types")

    def __init__(self, function: Callable[..., Any], types: list[dtypes.DType]) -> None:
        self.function = function
        self.types = types
        self.last: tuple[GradientTape, list[Any], list[Any]] | None = None
        super().__init__(self.run)

    def run(self, *arrays: object, input_types: tuple[dtypes.DType, ...]) -> list[Any]:
        with eager_mode():
            inputs = [_wrapped(a, d) for a, d in zip(arrays, input_types)]
            with GradientTape(persistent=True) as tape:
                for t in inputs:
                    tape.watch(t)
                result = self.function(*inputs)
            given = [] if result is None else nest.flatten(result)
            _refuse_variables(given)
            outputs = [convert_to_tensor(r, d) for r, d in zip(given, self.types)]
            if len(given) != len(self.types):
                raise ValueError(
                    f"the function is to return {len(self.types)} values, but returned {len(given)}"
                )
        self.last = (tape, inputs, outputs)
        return [t._static for t in outputs]

    def backward(self, *grads: object) -> list[Any]:
        assert self.last is not None
        tape, inputs, outputs = self.last
        kept = [(o, g) for o, g in zip(outputs, grads) if o._dtype._kind in "fc"]
        found = tape.gradient([o for o, _ in kept], inputs, output_gradients=[g for _, g in kept])
        return [
            _dense(g) if g is not None else convert_to_tensor(x.numpy() * 0)
            for x, g in zip(inputs, found)
            if x._dtype._kind in "fc"
        ]


def _dense(grad: Tensor) -> Tensor:
    return convert_to_tensor(grad) if isinstance(grad, IndexedSlices) else grad


def py_function(
    func: Callable[..., Any] | None = None,
    inp: Any = None,
    Tout: Any = None,
    name: str | None = None,
) -> Any:
    """A Python function of eager tensors as an operation, with gradients; without ``func`` a
    decorator.

    ``func`` is called with eager tensors of the list ``inp`` when the operation runs, and gives
    tensors of the types ``Tout`` (one, or a list).

        y = tf.py_function(lambda a: a * 2.0, [x], tf.float32)
    """
    if func is None:
        return script.as_decorator(py_function, Tout, name)
    script.check_callable(func)
    graph = get_default_graph()
    types = _types(Tout)
    if graph._is_eager:
        return _now(func, inp, Tout, types)
    function = _EagerFunction(func, types)
    token = script.register(function, f"pyfunc_eager_{next(_tokens)}")
    graph._py_funcs.append(function)
    result = apply_list(script.EAGER_PY_FUNC, list(inp), token=token, Tout=types, name=name)
    if not types:
        return result
    for t, spec in zip(result, nest.flatten(Tout)):
        if isinstance(spec, TensorSpec):
            t.set_shape(spec.shape)
    return nest.pack_sequence_as(Tout, list(result))


def _types(Tout: object) -> list[dtypes.DType]:
    flat = [] if Tout is None else nest.flatten(Tout)
    return [t.dtype if isinstance(t, TensorSpec) else dtypes.as_dtype(t) for t in flat]


def _now(func: Callable[..., Any], inp: Any, Tout: object, types: list[dtypes.DType]) -> Any:
    """Eagerly it is a call, whose errors are those of an operation."""
    try:
        result = func(*[convert_to_tensor(x) for x in inp])
        if not types:
            return None if Tout is None else []
        given = nest.flatten(result)
        _refuse_variables(given)
        flat = [convert_to_tensor(r, d) for r, d in zip(given, types)]
    except Exception as error:
        raise script.failure(error) from error
    return nest.pack_sequence_as(Tout, flat)


def _refuse_variables(given: list[Any]) -> None:
    if any(isinstance(r, Variable) for r in given):
        raise RuntimeError(
            "Attempting to return a variable from an eagerly executed py_func. Only numeric data "
            "structures like Tensors or NumPy arrays should be returned; to return the value of a "
            "variable, obtain the Tensor backing it by calling `.read_value()` on it"
        )


def _gradient(op: Operation, *grads: Tensor) -> list[Any]:
    """Another such operation, which asks the tape of the first.

    It runs after that because it uses its outputs.
    """
    function = script.find(op._attrs["token"])
    assert isinstance(function, _EagerFunction)
    types = [t._dtype._base for t in op._inputs if t._dtype._base._kind in "fc"]
    filled = [_zeros(t) if g is None else g for t, g in zip(op._outputs, grads)]
    with op.graph.control_dependencies([op]):
        found: Any = py_function(function.backward, [*filled], types)
    rest = iter(_shaped(found, op))
    return [next(rest) if t._dtype._base._kind in "fc" else None for t in op._inputs]


def _shaped(found: Sequence[Tensor], op: Operation) -> list[Tensor]:
    wanted = [t for t in op._inputs if t._dtype._base._kind in "fc"]
    for t, like in zip(found, wanted):
        t.set_shape(like._shape)
    return list(found)


def _zeros(tensor: Tensor) -> Tensor:
    from headrace.autodiff.aggregate import zeros_like

    return zeros_like(tensor)


script.eager_gradient = _gradient
