"""Backward passes of graphs that came out of a file, found again by TensorFlow's names.

``tf.gradients`` makes the gradient of an operation ``a/MatMul`` in the scope
``gradients/a/MatMul_grad``; where several inputs have one, an optimizer adds
``…/tuple/control_dependency``, ``…_1`` and so on: these gradients in the order of the inputs.
Where there are no such gates, the gradient function is called again in a scratch graph and compared
(replayed_gradients.py). That tells what each operation gave to its inputs; what arrived at it, and
the sums, follow from it. An operation whose gradients are not told apart this way, or whose
gradient is the user's own (``_gradient_op_type``), is left out: what contains it is not rewritten.

    passes = rebuilt_passes(graph)      # as backward_record.passes(graph) after tf.gradients
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headrace.autodiff.aggregate import is_trainable
from headrace.autodiff.backward_record import Given, Pass
from headrace.autodiff.replayed_gradients import Replays, source_of
from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor

__all__ = ["rebuilt_passes", "recorded_passes"]

_SCOPE = re.compile(r"(?:^|/)gradients(?:_\d+)?/")
_GATED = re.compile(r"/tuple/control_dependency(?:_(\d+))?$")

#: The operations of one gradient, by the scope of the pass and the operation that it belongs to.
_ByOp = dict[Operation, list[Operation]]
_Members = dict[str, _ByOp]
#: The sums of a pass, by what they add up.
_Sums = dict[tuple[int, ...], Tensor]


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


def _pass(scope: str, by_op: _ByOp, graph: Graph) -> Pass:
    done, sums = Pass(), _sums(graph, scope)
    passed = _walk_back(done, by_op, graph, sums)
    for op in done.sent:
        done.arrived[op] = [_arrived(t, done) for t in op._outputs]
    _drop_partial(done)
    _drop_unconfirmed(done, passed)
    return done


def _walk_back(done: Pass, by_op: _ByOp, graph: Graph, sums: _Sums) -> set[Operation]:
    """Fill in what each operation gave to its inputs; those that only passed on what arrived."""
    replays, passed = Replays(), set()
    for op in reversed(graph._ops):  # as gradients flow
        made = by_op.get(op)
        if made is None and not any(t in done.given for t in op._outputs):
            continue
        for t in op._outputs:
            _add_up(t, done, sums)
        sent = None if made is None else _sent(op, made)
        if sent is None:
            arrived = [_arrived(t, done) for t in op._outputs]
            sent = replays.replay(op, _below_scope(made or ()), arrived)
            if sent is not None and made is None:
                passed.add(op)
        if sent is not None:
            done.sent[op] = sent
            for t, g in zip(op._inputs, sent):
                if g is not None and is_trainable(t):
                    done.given.setdefault(t, []).append(Given(op, g))
    for tensor in done.given:
        _add_up(tensor, done, sums)
    return passed


def _add_up(tensor: Tensor, done: Pass, sums: _Sums) -> None:
    given = done.given.get(tensor, ())
    if len(given) > 1 and tensor not in done.sums:
        total = sums.get(tuple(sorted(id(g.grad) for g in given)))
        if total is not None:
            done.sums[tensor] = total


def _below_scope(made: Sequence[Operation]) -> dict[str, Operation]:
    return {op.name[op.name.rindex("_grad/") + 6 :]: op for op in made}


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
            found[i] = source_of(gated[n]._outputs[0])
        return found
    ends = [t for o in made for t in o._outputs if _leaves(t, own)]
    if len(inputs) != 1 or len(ends) != 1:
        return None
    found[inputs[0]] = source_of(ends[0])
    return found


def _leaves(tensor: Tensor, own: set[Operation]) -> bool:
    users = tensor._op.graph._consumers_of(tensor)
    return is_trainable(tensor) and any(u not in own for u in users)


def _sums(graph: Graph, scope: str) -> _Sums:
    """The sums of a pass, by what they add up."""
    return {
        tuple(sorted(id(source_of(t)) for t in op._inputs)): op._outputs[0]
        for op in graph._ops
        if op.type == "AddN" and op.name.startswith(scope) and "_grad/" not in op.name
    }


def _arrived(tensor: Tensor, done: Pass) -> Tensor | None:
    given = done.given.get(tensor, ())
    if len(given) == 1:
        return given[0].grad  # type: ignore[no-any-return]
    return done.sums.get(tensor)


def _is_read(grad: Tensor) -> bool:
    """Whether anybody took a gradient: that of a tensor which is not asked for stays unread."""
    return bool(grad._op.graph._consumers_of(grad))


def _drop_partial(done: Pass) -> None:
    """Forget gradients that were given by more than is known: their sum is not one of these."""
    for tensor, given in done.given.items():
        if len(given) > 1 and tensor not in done.sums and any(_is_read(g.grad) for g in given):
            done.sent.pop(tensor._op, None)
            for g in given:
                if g.by is not None:
                    done.sent.pop(g.by, None)


def _drop_unconfirmed(done: Pass, passed: set[Operation]) -> None:
    """Forget operations without a gradient of their own whose gradient may have ended there.

    Such an operation gave what arrived to its inputs if something took it from there: a sum, or the
    gradient of the operation that made the input.
    """
    for op in sorted(passed & set(done.sent), key=lambda op: op._id):
        arrived = {id(g) for g in done.arrived[op] if g is not None}
        sent = [g for g in done.sent[op] if g is not None]
        taken = any(t in done.sums or t._op in done.sent for t in op._inputs)
        if taken and all(id(g) in arrived for g in sent):
            continue
        del done.sent[op], done.arrived[op]
        for t in set(op._inputs):
            done.given[t] = [g for g in done.given.get(t, ()) if g.by is not op]
