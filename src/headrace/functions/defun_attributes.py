"""What ``Defun``'s keywords mean: attributes of the function, and captures by value."""

from __future__ import annotations

from typing import Any

from headrace.core.call_records import AttrScalar
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph, get_default_graph
from headrace.core.tensor import Operation, Tensor

__all__ = ["CopyingFuncGraph", "function_attributes"]


def function_attributes(name: str, given: dict[str, Any]) -> tuple[tuple[str, AttrScalar], ...]:
    """The attributes that keywords of ``Defun`` or of a call stand for; ValueError for others."""
    rest = dict(given)
    out: dict[str, AttrScalar] = {}
    noinline = rest.pop("noinline", None)
    if noinline is not None:
        out["_noinline"] = bool(noinline)
    # TF 1.15 says so of every Defun
    out["_disable_call_shape_inference"] = True
    compiled, separate = rest.pop("compiled", None), rest.pop("separate_compiled_gradients", None)
    if compiled is not None:
        scope = get_default_graph()._scopes.here.attrs.get("_XlaScope", f"function_{name}")
        out["_XlaCompile"] = bool(compiled)
        out["_XlaSeparateCompiledGradients"] = bool(separate)
        out["_XlaScope"] = scope.decode() if isinstance(scope, bytes) else scope
    for key in list(rest):
        kinds: tuple[type, ...]
        if key.startswith("experimental_"):
            kinds = (bool, int, float, str)
        elif key in ("_implements", "_reference"):
            kinds = (str,)
        else:
            continue
        value = rest.pop(key)
        if not isinstance(value, kinds):
            raise ValueError(f"Unsupported attribute type for {key} with type {type(value)}")
        out[key] = value
    if rest:
        raise ValueError(f"Unknown keyword arguments: {', '.join(rest)}")
    return tuple(out.items())


class CopyingFuncGraph(FuncGraph):
    """A function that copies what it uses from outside, with all that it depends on."""

    def __init__(self, name: str, outer: Graph | None = None) -> None:
        super().__init__(name, outer)
        self._copies: dict[Operation, Operation] = {}

    def capture(self, outside: Tensor, name: str | None = None) -> Tensor:
        op = outside._op
        if op.graph is self:
            return outside
        copies, stack = self._copies, [op]
        while stack:
            top = stack[-1]
            missing = [t._op for t in top._inputs if t._op not in copies]
            if top in copies or not missing:
                stack.pop()
            if top not in copies and not missing:
                copies[top] = self._copy(top, copies)
            stack.extend(missing)
        found: Tensor = copies[op]._outputs[outside._value_index]
        return found

    def _copy(self, op: Operation, copies: dict[Operation, Operation]) -> Operation:
        traits = op._opdef.traits
        if op.type in ("Placeholder", "PlaceholderV2"):
            raise ValueError(
                f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value."
            )
        if traits.is_stateful or traits.reads:
            raise ValueError(
                f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value."
            )
        inputs = tuple([copies[t._op]._outputs[t._value_index] for t in op._inputs])
        return self._add_op(op._opdef, inputs, dict(op._attrs), self.unique_name(op.name), ())
