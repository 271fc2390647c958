"""Gradient functions that a SavedModel of TF 2 has for ``tf.custom_gradient`` in its functions.

The body of such a function holds an IdentityN of results and arguments, whose ``_gradient_op_type``
is a name like ``CustomGradient-17``. The library of the model names the function that computes its
gradient, and the object graph says what that function takes besides the gradients of the outputs:
tensors of the body in which the IdentityN stands, or variables and constants of the model.

A tensor of the body becomes a further input of the IdentityN, so the gradient finds it in every
graph into which the body is expanded. The gradient is registered by the content of what it needs:
reading one file a thousand times registers it once.
"""

from __future__ import annotations

import hashlib
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.registry import RegisterGradient, is_registered
from headrace.core.func_graph import FuncGraph
from headrace.core.tensor import Operation, Tensor
from headrace.formats.call_nodes import functions_behind
from headrace.formats.imported_gradients import after_effects
from headrace.formats.structured_values import decode_structure
from headrace.ops.nn.nn_common import zeros_like

if TYPE_CHECKING:
    from headrace.formats.function_calls import FunctionLibrary

__all__ = ["register_saved_gradients"]

_numbers = itertools.count()
Bound = Callable[[int], Tensor]


class _Capture(NamedTuple):
    """What a gradient function takes from outside: an object, or a tensor of a function's body."""

    object_number: int
    tensor: str = ""
    function: str = ""


class _Saved(NamedTuple):
    """A gradient function, what it takes besides gradients, and where its results belong."""

    name: str
    captures: tuple[_Capture, ...]
    outputs: Any


def register_saved_gradients(
    library: FunctionLibrary, registered: Sequence[Any], saved: Any, bound: Bound
) -> None:
    """Make operations of the library's functions use the gradients that the model registers.

    ``saved`` is the model's SavedObjectGraph; ``bound`` gives the tensor of one of its objects and
    is a method: the registry keeps a weak reference to its object.
    """
    gradients = {
        r.registered_op_type: _saved_gradient(r.gradient_func, saved)
        for r in registered
        if r.gradient_func in library.functions and r.gradient_func in saved.concrete_functions
    }
    if gradients:
        _Registration(library, gradients, bound).run()


def _saved_gradient(name: str, saved: Any) -> _Saved:
    concrete = saved.concrete_functions[name]
    captures = []
    for i in concrete.bound_inputs:
        if not 0 <= i < len(saved.nodes):
            raise ValueError(f"the gradient function '{name}' uses object {i}, which is not there")
        node = saved.nodes[i]
        if node.WhichOneof("kind") == "captured_tensor":
            found = node.captured_tensor
            captures.append(_Capture(i, found.name, found.concrete_function))
        else:
            captures.append(_Capture(i))
    return _Saved(name, tuple(captures), concrete.output_signature)


class _Registration:
    def __init__(
        self, library: FunctionLibrary, gradients: dict[str, _Saved], bound: Bound
    ) -> None:
        self.library = library
        self.gradients = gradients
        self.bound = bound

    def run(self) -> None:
        keys: dict[str, str] = {}
        changed = {}
        for name, function in self.library.functions.items():
            used = [n for n in function.node_def if self._fits(n, name)]
            if used:
                for node in used:
                    kind = _gradient_type(node)
                    keys[kind] = keys.get(kind) or self._key(kind)
                changed[name] = self._changed(function, keys)
        self.library.functions.update(changed)
        for kind, key in keys.items():
            if not is_registered(key):
                RegisterGradient(key)(self._gradient(self.gradients[kind]))

    def _fits(self, node: Any, function: str) -> bool:
        """Whether the gradient that a node names can find what it takes from this function."""
        found = self.gradients.get(_gradient_type(node)) if node.op == "IdentityN" else None
        return found is not None and all(c.function in ("", function) for c in found.captures)

    def _changed(self, function: Any, keys: dict[str, str]) -> Any:
        """A copy of a function whose operations hand on what their gradients take."""
        out = type(function)()
        out.CopyFrom(function)
        for node in out.node_def:
            if not self._fits(node, function.signature.name):
                continue
            kind = _gradient_type(node)
            captures = self.gradients[kind].captures
            arguments = self.library.get(self.gradients[kind].name).signature.input_arg
            if len(arguments) != len(node.attr["T"].list.type) + len(captures):
                raise ValueError(
                    f"the gradient function '{self.gradients[kind].name}' of '{node.name}' takes "
                    f"{len(arguments)} arguments, {len(node.attr['T'].list.type)} gradients and "
                    f"{len(captures)} captured tensors are given"
                )
            taken = arguments[len(arguments) - len(captures) :]
            inner = [(c.tensor, a.type) for c, a in zip(captures, taken) if c.tensor]
            first_control = next(
                (i for i, s in enumerate(node.input) if s.startswith("^")), len(node.input)
            )
            inputs = list(node.input)
            inputs[first_control:first_control] = [tensor for tensor, _ in inner]
            node.input[:] = inputs
            node.attr["T"].list.type.extend([dtype for _, dtype in inner])
            node.attr["_gradient_op_type"].s = keys[kind].encode()
        return out

    def _needed(self, name: str) -> dict[str, Any]:
        """A gradient function, all that it calls, and the gradient functions of these."""
        found: dict[str, Any] = {}
        waiting = [name]
        while waiting:
            for function in functions_behind([waiting.pop()], self.library.functions):
                if function.signature.name in found:
                    continue
                found[function.signature.name] = function
                kinds = {_gradient_type(n) for n in function.node_def}
                waiting.extend(self.gradients[k].name for k in kinds if k in self.gradients)
        return found

    def _key(self, kind: str) -> str:
        needed = self._needed(self.gradients[kind].name)
        digest = hashlib.sha256()
        for name in sorted(needed):
            digest.update(needed[name].SerializeToString(deterministic=True))
        concerned = [g for g in self.gradients.values() if g.name in needed]
        for saved in sorted(concerned, key=lambda g: g.name):
            digest.update(repr((saved.name, saved.captures)).encode())
            digest.update(saved.outputs.SerializeToString(deterministic=True))
        key = f"{kind}-{digest.hexdigest()[:32]}"
        if any(not c.tensor for g in concerned for c in g.captures):  # objects of this model
            key += f"-{next(_numbers)}"
        return key

    def _gradient(self, saved: _Saved) -> _SavedGradient:
        part = self.library.part(self._needed(saved.name))
        return _SavedGradient(part, saved, weakref.WeakMethod(self.bound))


class _SavedGradient:
    """Calls a gradient function of a SavedModel where gradients are built."""

    def __init__(
        self, library: FunctionLibrary, saved: _Saved, bound: weakref.WeakMethod[Bound]
    ) -> None:
        self._library = library
        self._saved = saved
        self._bound = bound
        self._results = decode_structure(saved.outputs)

    def __call__(self, op: Operation, *grads: Any) -> list[Tensor | None]:
        inner = [c for c in self._saved.captures if c.tensor]
        count = len(op._outputs) - len(inner)
        graph = op.graph
        given = [_dense(g, t) for g, t in zip(grads[:count], op._outputs)]
        handed_on = iter(op._inputs[count:])
        given += [next(handed_on) if c.tensor else self._object(c) for c in self._saved.captures]
        if isinstance(graph, FuncGraph):
            given = [graph.capture(t) for t in given]
        scope = graph.unique_name(self._saved.name)
        found, effects = self._library.instantiate(self._saved.name, graph, given, scope)
        results = iter(after_effects(found, effects))
        positions = list(self._results) if isinstance(self._results, (list, tuple)) else []
        wanted = sum(p is not None for p in positions)
        if len(positions) != count or wanted != len(found):
            raise ValueError(
                f"The gradient function {self._saved.name} has {len(found)} results for "
                f"{wanted} of {len(positions)} inputs; '{op.name}' has {count}"
            )
        return [None if p is None else next(results) for p in positions] + [None] * len(inner)

    def _object(self, capture: _Capture) -> Tensor:
        bound = self._bound()
        if bound is None:
            raise ValueError(
                f"The gradient function {self._saved.name} uses a variable or a constant of a "
                "SavedModel that was loaded and is no longer there: keep the loaded object"
            )
        return bound(capture.object_number)


def _dense(grad: Any, output: Tensor) -> Tensor:
    found: Tensor = zeros_like(output) if grad is None else as_dense(grad)
    return found


def _gradient_type(node: Any) -> str:
    if "_gradient_op_type" not in node.attr:
        return ""
    name: str = node.attr["_gradient_op_type"].s.decode("utf-8", "replace")
    return name
