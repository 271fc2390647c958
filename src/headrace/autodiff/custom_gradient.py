"""``tf.custom_gradient`` and ``tf.recompute_grad``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.registry import RegisterGradient
from headrace.core import nest
from headrace.core.build import apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.opdef import lookup
from headrace.core.tapes import ACTIVE, TAPES
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.variables.variable import Variable

__all__ = ["custom_gradient", "grad_pass_through"]

_numbers = itertools.count()


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f(*args)`` returns ``(y, grad)``; ``grad(*dys)`` gives the gradients of the args.

    If f uses variables, ``grad`` must take a keyword ``variables`` and return (grads of args, grads
    of variables).
    """

    @functools.wraps(f)
    def decorated(*args: Tensor, **kwargs: object) -> Any:
        graph = get_default_graph()
        if graph._is_eager:
            return graph._custom_gradient(f, args, kwargs)
        if kwargs:
            if graph._is_function:
                return _decorated(lambda *given: f(*given, **kwargs), args)
            raise ValueError(
                "The custom_gradient decorator currently supports keywords arguments only "
                "when eager execution is "
                "enabled."
            )
        return _decorated(f, args)

    return decorated


def _decorated(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The function's outputs behind an IdentityN whose gradient is the user's."""
    graph = get_default_graph()
    inputs = [apply_op("Identity", convert_to_tensor(a)) for a in args]
    first = len(graph._ops)
    with _Readings() as readings:
        result, grad_fn = f(*inputs)
    read = {id(v): v for v in (*readings.variables, *_variables_used(graph._ops[first:]))}
    variables = [v for i, v in read.items() if i not in {id(a) for a in args}]
    outputs = [convert_to_tensor(r) for r in nest.flatten(result)]
    sources = [getattr(v, "handle", None) for v in variables]
    sources = [v._graph_anchor if s is None else s for v, s in zip(variables, sources)]
    name = f"CustomGradient-{next(_numbers)}"
    count = len(outputs)

    def gradient(op: Operation, *dys: Tensor | None) -> list[Any]:
        given = [as_dense(d) for d in dys[:count]]
        if variables:
            grads, variable_grads = grad_fn(*given, variables=variables)
            if len(variable_grads) != len(variables):
                raise ValueError(
                    "Must return gradient for each variable from @custom_gradient grad_fn."
                )
        else:
            grads, variable_grads = grad_fn(*given), []
        flat = nest.flatten(grads) if isinstance(grads, (list, tuple)) else [grads]
        if len(flat) != len(inputs):
            raise ValueError(
                f"The gradient function of {f!r} returned {len(flat)} gradients for "
                f"{len(inputs)} arguments"
            )
        return [None] * count + list(flat) + list(variable_grads)

    RegisterGradient(name)(gradient)
    with graph.gradient_override_map({"IdentityN": name}):
        wrapped = apply_list(lookup("IdentityN"), [*outputs, *inputs, *sources])
    flat_result = wrapped[:count]
    if nest.is_sequence(result):
        return nest.pack_sequence_as(result, flat_result)
    return flat_result[0]


class _Readings:
    """Notes the trainable variables that are read inside; to the rest of the code it is a tape."""

    _watch_accessed_variables = True

    def __init__(self) -> None:
        self.variables: list[Any] = []

    def __enter__(self) -> _Readings:
        TAPES.items = [*TAPES.items, self]
        ACTIVE[0] += 1
        return self

    def __exit__(self, *exc: None) -> None:
        TAPES.items = [t for t in TAPES.items if t is not self]
        ACTIVE[0] -= 1

    def _watch_variable(self, variable: Variable) -> None:
        if not any(v is variable for v in self.variables):
            self.variables.append(variable)

    def _wants(self, inputs: Tensor) -> bool:
        return False


def _variables_used(ops: list[Operation]) -> list[Any]:
    """Trainable variables that the function's operations read."""
    graph = get_default_graph()
    by_tensor = {}
    for v in graph.get_collection("trainable_variables"):
        anchor = getattr(v, "_graph_anchor", None)
        if anchor is not None:
            by_tensor[anchor] = v
            for other in (getattr(v, "handle", None), getattr(v, "_snapshot", None)):
                if other is not None:
                    by_tensor[other] = v
            cached = getattr(v, "_graph_element", None)
            if cached is not None:
                by_tensor[cached] = v
    found: dict[int, Any] = {}
    for op in ops:
        for t in op._inputs:
            v = by_tensor.get(t)
            if v is not None:
                found[id(v)] = v
    return list(found.values())


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` forward, the identity backward."""

    @custom_gradient
    def passed(*args: object, **kwargs: object) -> Any:
        def grad(*dys: Tensor, variables: Any = None) -> Any:
            own = dys[0] if len(dys) == 1 else dys
            return own if variables is None else (own, [None] * len(variables))

        return f(*args, **kwargs), grad

    return passed
