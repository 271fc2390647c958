"""Which operations of an imported graph are an operation's gradient: those that its gradient
function would make.

The gradient function of a copy of the operation is called in a scratch graph. What it makes there
is compared with what stands in the imported graph below the gradient's scope: the same names,
types, attributes and wiring. Where all of it agrees, the gradients of the inputs are known, also
without the gates by which an optimizer's graph names them; where anything differs, nothing is
known.

    found = Replays().replay(op, {"MatMul": a, "MatMul_1": b}, [arrived])
    found.sent      # the tensors that the gradient function returned, in the imported graph
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace.autodiff.aggregate import is_trainable
from headrace.autodiff.registry import gradient_function
from headrace.core.convert import CONST
from headrace.core.graph import Graph
from headrace.core.infer import static_value
from headrace.core.opdef import FLOW
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import PLACEHOLDER

__all__ = ["Replays", "source_of"]


def source_of(tensor: Tensor) -> Tensor:
    """What identities (gates of gradients) pass on: a program has no others."""
    while tensor._op._opdef.role == "identity":
        tensor = tensor._op._inputs[0]
    return tensor


class Replays:
    """Gradient functions called again, in one scratch graph."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.count = 0

    def replay(
        self, op: Operation, made: Mapping[str, Operation], arrived: Sequence[Tensor | None]
    ) -> list[Tensor | None] | None:
        """The gradients of an operation's inputs; None if they are not what it would make.

        ``made``: the operations of its gradient by their names below its scope. ``arrived``: the
        gradients of its outputs, as far as they are known.
        """
        if not _has_own_gradient(op):
            return None
        self.count += 1
        with self.graph.as_default():
            copy = self._copied(op)
            grads = [self._placeholder(t) if is_trainable(t) else None for t in op._outputs]
            before, scope = len(self.graph._ops), f"g{self.count}"
            try:
                with self.graph.name_scope(scope):
                    result = op._opdef.grad(copy, *grads)
            except (LookupError, ValueError, TypeError):
                return None  # other operations made it
        match = _Match(op, copy)
        for grad, real in zip(grads, arrived):
            if grad is not None:
                match.open(grad, real)
        for s in self.graph._ops[before:]:
            match.operation(s, made.get(s.name[len(scope) + 1 :]))
        return match.found(result if isinstance(result, (list, tuple)) else [result])

    def _copied(self, op: Operation) -> Operation:
        inputs = [self._stand_in(t) for t in op._inputs]
        kinds = [t._dtype for t in op._outputs]
        return self.graph.create_op(
            op._opdef.name, inputs, kinds, name=f"op{self.count}", attrs=dict(op._attrs)
        )

    def _stand_in(self, tensor: Tensor) -> Tensor:
        value = static_value(tensor)
        if value is None:
            return self._placeholder(tensor)
        attrs = {"value": np.asarray(value), "dtype": tensor._dtype}
        return self.graph.create_op(CONST.name, [], [tensor._dtype], attrs=attrs)._outputs[0]

    def _placeholder(self, tensor: Tensor) -> Tensor:
        attrs = {"dtype": tensor._dtype, "shape": tensor._shape}
        return self.graph.create_op(PLACEHOLDER.name, [], [tensor._dtype], attrs=attrs)._outputs[0]


class _Match:
    """What the tensors of the scratch graph are in the imported one."""

    def __init__(self, op: Operation, copy: Operation) -> None:
        pairs = zip((*copy._inputs, *copy._outputs), (*op._inputs, *op._outputs))
        self.known: dict[Tensor, Tensor] = {a: source_of(b) for a, b in pairs}
        self.open_grads: set[Tensor] = set()
        self.pruned: set[Operation] = set()  # operations that the imported graph does not have

    def open(self, grad: Tensor, real: Tensor | None) -> None:
        """A gradient that arrives: which it is, is known, or follows from who reads it."""
        if real is None:
            self.open_grads.add(grad)
        else:
            self.known[grad] = source_of(real)

    def operation(self, made: Operation, real: Operation | None) -> None:
        if real is None:
            self.pruned.add(made)
            return
        if real._opdef is not made._opdef or len(real._inputs) != len(made._inputs):
            return
        if not _same_attributes(made._attrs, real._attrs):
            return
        for a, b in zip(made._inputs, real._inputs):
            if not self._agrees(a, source_of(b)):
                return
        self.known.update(zip(made._outputs, map(source_of, real._outputs)))

    def _agrees(self, tensor: Tensor, real: Tensor) -> bool:
        known = self.known.get(tensor)
        if known is None and tensor in self.open_grads:
            known = self.known[tensor] = real
        return known is real or (known is not None and _equal_constants(known, real))

    def found(self, result: Sequence[Any]) -> list[Tensor | None] | None:
        """The gradients in the imported graph; None unless all are known.

        One whose operation was pruned is the gradient of an input that is not asked for: there is
        none.
        """
        kept = [None if isinstance(g, Tensor) and g._op in self.pruned else g for g in result]
        if not any(g is not None for g in kept) and any(g is not None for g in result):
            return None
        if not all(g is None or (isinstance(g, Tensor) and g in self.known) for g in kept):
            return None
        return [None if g is None else self.known[g] for g in kept]


def _has_own_gradient(op: Operation) -> bool:
    """Whether its gradient is made by the function on its definition, outside of branches."""
    if op._context is not None or op._opdef.role in FLOW:
        return False
    try:
        return gradient_function(op) is op._opdef.grad
    except LookupError:
        return False


def _same_attributes(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return all(_same(v, b.get(k)) for k, v in a.items() if not k.startswith("_"))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        first, second = np.asarray(a), np.asarray(b)
        return first.dtype == second.dtype and np.array_equal(first, second)
    return bool(a == b)


def _equal_constants(a: Tensor, b: Tensor) -> bool:
    return a.op.type == b.op.type == CONST.name and _same_attributes(a.op._attrs, b.op._attrs)
