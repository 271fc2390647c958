"""``tf.custom_gradient`` and ``tf.recompute_grad``."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.registry import RegisterGradient
from headrace.core import nest
from headrace.core.build import apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.opdef import lookup
from headrace.core.tapes import ACTIVE, TAPES
from headrace.core.tensor import Operation, Tensor
from headrace.variables.resource_variable import is_resource_variable
from headrace.variables.scope_state import get_variable_scope

if TYPE_CHECKING:
    from headrace.core.indexed_slices import IndexedSlices
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
    before = {id(v) for v in _all_variables(graph)}
    with _Readings() as readings:
        result, grad_fn = f(*inputs)
    _check_new_variables([v for v in _all_variables(graph) if id(v) not in before])
    read = {id(v): v for v in (*readings.variables, *_variables_used(graph._ops[first:]))}
    variables = [v for i, v in read.items() if i not in {id(a) for a in args}]
    _check_takes_variables(grad_fn, variables)
    outputs = [convert_to_tensor(r) for r in nest.flatten(result)]
    sources = [getattr(v, "handle", None) for v in variables]
    sources = [v._graph_anchor if s is None else s for v, s in zip(variables, sources)]
    name = f"CustomGradient-{next(_numbers)}"
    count = len(outputs)

    def gradient(op: Operation, *dys: Tensor | IndexedSlices) -> list[Any]:
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


def _all_variables(graph: Graph) -> list[Any]:
    return [
        *graph._collections.get("variables", ()),
        *graph._collections.get("local_variables", ()),
    ]


def _check_new_variables(variables: list[Any]) -> None:
    for v in variables:
        if not is_resource_variable(v):
            raise TypeError(
                "All variables used by a function wrapped with @custom_gradient must be "
                f"`ResourceVariable`s, which {v.name} is not. Ensure that no `variable_scope` is "
                "created with `use_resource=False`."
            )


def _check_takes_variables(grad_fn: Callable[..., Any], variables: list[Any]) -> None:
    """A gradient function of a function that uses variables is given them by keyword."""
    spec = inspect.getfullargspec(grad_fn)
    is_taken = "variables" in (*spec.args, *spec.kwonlyargs) or spec.varkw is not None
    if variables and not is_taken:
        raise TypeError(
            "If using @custom_gradient with a function that uses variables, then grad_fn must "
            "accept a 'variables' keyword argument."
        )
    if is_taken and not variables and not get_variable_scope().use_resource:
        raise TypeError(
            "If using @custom_gradient with a function that uses variables, the enclosing variable "
            "scope must have use_resource=True."
        )


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
    """A function that computes ``f`` and has the gradient of the identity."""

    @custom_gradient
    def passed(*args: object, **kwargs: object) -> Any:
        def grad(*dys: Tensor, variables: Any = None) -> Any:
            own = dys[0] if len(dys) == 1 else dys
            return own if variables is None else (own, [None] * len(variables))

        return f(*args, **kwargs), grad

    return passed
