"""Gradients that the library of an imported GraphDef names for its functions.

A library may say ``gradient { function_name: "f" gradient_func: "f_grad" }`` (``Defun(grad_func=)``
writes it). A call of such a function is an IdentityN of its results *and* arguments; the gradient
of that IdentityN is a call of ``f_grad(*arguments, *gradients of results)``, as in TensorFlow.

The gradient is registered by the content of the functions that it needs, so reading one file a
thousand times registers it once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.registry import RegisterGradient, is_registered
from headrace.core.func_graph import FuncGraph
from headrace.core.tensor import Operation, Tensor
from headrace.formats.attr_values import FunctionName
from headrace.formats.call_nodes import functions_behind
from headrace.ops.array.basic import identity

if TYPE_CHECKING:
    from headrace.formats.function_calls import FunctionLibrary

__all__ = ["after_effects", "register_imported_gradient"]


def register_imported_gradient(library: FunctionLibrary, called: FunctionName, results: int) -> str:
    """The name under which the gradient of a function with so many results is registered."""
    gradient = library.gradients[called.name]
    needed = _needed(library, [called.name, gradient])
    key = f"{called.name}-gradient-{_digest(library, needed, called.attrs)}"
    if not is_registered(key):
        function = FunctionName(gradient, called.attrs)
        RegisterGradient(key)(_ImportedGradient(library.part(needed), function, results))
    return key


class _ImportedGradient:
    """Calls the gradient function of an imported function where gradients are built."""

    def __init__(self, library: FunctionLibrary, function: FunctionName, results: int) -> None:
        self._library = library
        self._function = function
        self._results = results

    def __call__(self, op: Operation, *grads: Any) -> list[Tensor | None]:
        arguments = op._inputs[self._results :]
        given = [*arguments, *(as_dense(g) for g in grads[: self._results])]
        graph = op.graph
        if isinstance(graph, FuncGraph):
            given = [graph.capture(t) for t in given]
        name, attrs = self._function
        scope = graph.unique_name(name)
        found, effects = self._library.instantiate(name, graph, given, scope, attrs=attrs)
        if len(found) != len(arguments):
            raise ValueError(
                f"The gradient function {name} has {len(found)} results for "
                f"{len(arguments)} arguments of '{op.name}'"
            )
        return [None] * self._results + after_effects(found, effects)


def after_effects(results: Sequence[Tensor], effects: Sequence[Operation]) -> list[Tensor | None]:
    """Results that come after the effects of the function's body."""
    if not effects or not results:
        return list(results)
    with results[0].graph.control_dependencies(effects):
        return [identity(t) for t in results]


def _needed(library: FunctionLibrary, names: Iterable[str]) -> dict[str, Any]:
    """Functions, everything that they call, and the gradients of all of these."""
    found: dict[str, Any] = {}
    waiting = list(names)
    while waiting:
        for function in functions_behind([waiting.pop()], library.functions):
            name = function.signature.name
            if name in found:
                continue
            found[name] = function
            if name in library.gradients:
                waiting.append(library.gradients[name])
    return found


def _digest(library: FunctionLibrary, functions: dict[str, Any], attrs: Sequence[Any]) -> str:
    digest = hashlib.sha256(repr(sorted((k, str(v)) for k, v in attrs)).encode())
    for name in sorted(functions):
        digest.update(functions[name].SerializeToString(deterministic=True))
        digest.update(f"\0{name}\0{library.gradients.get(name, '')}\0".encode())
    return digest.hexdigest()[:32]
