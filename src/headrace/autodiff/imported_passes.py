"""Backward passes of graphs that came out of a file, found again by TensorFlow's names.

``tf.gradients`` makes the gradient of an operation ``a/MatMul`` in the scope
``gradients/a/MatMul_grad``; where several inputs have one, ``…/tuple/control_dependency``, ``…_1``
and so on are these gradients in the order of the inputs. That tells what each operation gave to its
inputs; what arrived at it, and the sums, follow from it. An operation whose gradients are not told
apart this way, or whose gradient is the user's own (``_gradient_op_type``), is left out: what
contains it is not rewritten.

    passes = rebuilt_passes(graph)      # as backward_record.passes(graph) after tf.gradients
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headrace.autodiff.aggregate import is_trainable
from headrace.autodiff.backward_record import Given, Pass
from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor

__all__ = ["rebuilt_passes", "recorded_passes"]

_SCOPE = re.compile(r"(?:^|/)gradients(?:_\d+)?/")
_GATED = re.compile(r"/tuple/control_dependency(?:_(\d+))?$")

#: The operations of one gradient, by the scope of the pass and the operation that it belongs to.
_Members = dict[str, dict[Operation, list[Operation]]]


def rebuilt_passes(graph: Graph) -> list[Pass]:
    """The backward passes over an imported graph, as far as names tell."""
    members = _members(graph)
    return [_pass(scope, by_op, graph) for scope, by_op in members.items()]


def recorded_passes(graph: Graph) -> list[Pass]:
    """What ``tf.gradients`` recorded, and what an imported part of the graph tells by its names."""
    recorded: list[Pass] = graph._backward_passes or []
    if not graph._imported:
        return recorded
    kept = graph._imported_passes
    if kept is None or kept[0] != len(graph._ops):
        kept = graph._imported_passes = (len(graph._ops), rebuilt_passes(graph))
    return [*recorded, *kept[1]]


def _members(graph: Graph) -> _Members:
    by_name = {op.name: op for op in graph._ops}
    found: _Members = {}
    owners: dict[str, tuple[str, Operation] | None] = {}
    for op in graph._ops:
        if "_grad/" not in op.name:
            continue
        scope = op.name[: op.name.rindex("_grad/")]
        if scope not in owners:
            owners[scope] = _owner(scope, by_name)
        owner = owners[scope]
        if owner is not None:
            found.setdefault(owner[0], {}).setdefault(owner[1], []).append(op)
    return found


def _owner(text: str, by_name: dict[str, Operation]) -> tuple[str, Operation] | None:
    """The scope of the pass, and the operation whose gradient stands in ``text`` + "_grad"."""
    match = _SCOPE.search(text)
    if match is None:
        return None
    scope, name = text[: match.end()], text[match.end() :]
    parts = scope.split("/")
    for n in range(len(parts)):  # (a graph may have been imported below a name)
        op = by_name.get("/".join([*parts[:n], name]))
        if op is not None:
            return scope, op
    return None


def _pass(scope: str, by_op: dict[Operation, list[Operation]], graph: Graph) -> Pass:
    done = Pass()
    for op, made in by_op.items():
        sent = _sent(op, made)
        if sent is not None:
            done.sent[op] = sent
            for t, g in zip(op._inputs, sent):
                if g is not None:
                    done.given.setdefault(t, []).append(Given(op, g))
    sums = _sums(graph, scope)
    for tensor, given in done.given.items():
        if len(given) > 1:
            total = sums.get(frozenset(id(g.grad) for g in given))
            if total is not None:
                done.sums[tensor] = total
    for op in done.sent:
        done.arrived[op] = [_arrived(t, done) for t in op._outputs]
    _drop_partial(done)
    return done


def _sent(op: Operation, made: Sequence[Operation]) -> list[Tensor | None] | None:
    """The gradients of an operation's inputs; None if it is not certain which is which."""
    if op._attrs.get("_gradient_op_type"):
        return None
    inputs = [i for i, t in enumerate(op._inputs) if is_trainable(t)]
    gated = {int(m.group(1) or 0): o for o in made if (m := _GATED.search(o.name))}
    own = set(made)
    found: list[Tensor | None] = [None] * len(op._inputs)
    if gated:
        if len(gated) != len(inputs):
            return None
        for i, n in zip(inputs, sorted(gated)):
            found[i] = _source(gated[n]._outputs[0])
        return found
    ends = [t for o in made for t in o._outputs if _leaves(t, own)]
    if len(inputs) != 1 or len(ends) != 1:
        return None
    found[inputs[0]] = _source(ends[0])
    return found


def _source(tensor: Tensor) -> Tensor:
    """What identities (gates of gradients) pass on: a program has no others."""
    while tensor._op._opdef.role == "identity":
        tensor = tensor._op._inputs[0]
    return tensor


def _leaves(tensor: Tensor, own: set[Operation]) -> bool:
    users = tensor._op.graph._consumers_of(tensor)
    return is_trainable(tensor) and any(u not in own for u in users)


def _sums(graph: Graph, scope: str) -> dict[frozenset[int], Tensor]:
    """The sums of a pass, by what they add up."""
    return {
        frozenset([id(_source(t)) for t in op._inputs]): op._outputs[0]
        for op in graph._ops
        if op.type == "AddN" and op.name.startswith(scope) and "_grad/" not in op.name
    }


def _arrived(tensor: Tensor, done: Pass) -> Tensor | None:
    given = done.given.get(tensor, ())
    if len(given) == 1:
        return given[0].grad  # type: ignore[no-any-return]
    return done.sums.get(tensor)


def _drop_partial(done: Pass) -> None:
    """Forget gradients that were given by more than is known: their sum is not one of these."""
    for tensor, given in done.given.items():
        if len(given) > 1 and tensor not in done.sums:
            done.sent.pop(tensor._op, None)
            for g in given:
                if g.by is not None:
                    done.sent.pop(g.by, None)
