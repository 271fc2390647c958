"""Several operations of the user's that are one function, in training: the function and its gradient are one step each.

Inference finds a normalisation or a gelu by itself (normalisation.py). In training their inner values are read by gradients, so
that both sides must be replaced together. What the gradient is needs no pattern: the backward pass is on record
(autodiff/record.py). If the operations of a composite give gradients to nothing but each other and its inputs, and get one
only at its last, then what they gave to an input, summed up, is the composite's gradient at what arrived there.

    y = (x - mean(x)) * rsqrt(…) * g + b;  tf.gradients(…)      # some 40 nodes
    y, m, v = _LayerNormTraining(x, g, b); dx, dg, db = _LayerNormGrad(dy, x, g, m, v)

This comes before the walk over single nodes, which drops what nobody reads any more. Rules are those with ``training=True``: their
functions answer with a :class:`Composite`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.autodiff.record import Pass
from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.core.tensor import Tensor
from headrace.program.nodes import Firing, If, NearMiss, Node, Program, Statement, While, walk
from headrace.rewrite.normalisation import find_gelu, find_layer_norm, find_softmax
from headrace.rewrite.products import ELSEWHERE
from headrace.rewrite.shapes import fold
from headrace.rewrite.state import RewriteState, is_pure

__all__ = ["Composite", "gelu", "layer_norm", "replace_composites", "softmax"]

#: The gradient of a composite has at most so many nodes; more is something else.
MAX_SLICE = 400


class Composite(NamedTuple):
    """Operations that are one function of ``inputs``."""

    inputs: tuple[int, ...]
    nodes: list[Node]  # the last node, where it ends, included
    forward: Node | None  # in the place of the last node
    gradient: (
        str  # its outputs are the gradients of ``inputs``; it is given what arrived, and ``reads``
    )
    reads: tuple[int, ...]
    attrs: dict[str, Any]


# the composites -----------------------------------------------------------------------------------


def layer_norm(node: Node, state: RewriteState) -> Composite | None:
    found = find_layer_norm(node, state, training=True)
    if found is None or len(set(found[:3])) < 3:
        return None
    shape, kind = state.shape(found.x), state.dtype(found.x)
    lead = None if shape is None else shape[:-1]
    statistics = (state.new_value(kind, lead), state.new_value(kind, lead))
    attrs = {"epsilon": found.epsilon, "T": kind}
    forward = Node(
        lookup("_LayerNormTraining"), found[:3], (*node.outputs, *statistics), attrs, node.op
    )
    reads = (found.x, found.scale, *statistics)
    return Composite(found[:3], [*found.nodes, node], forward, "_LayerNormGrad", reads, attrs)


def softmax(node: Node, state: RewriteState) -> Composite | None:
    if state.dtype(node.outputs[0]) not in (dtypes.float32, dtypes.float64):
        return None
    attrs = {"T": node.attrs["T"]}
    if node.opdef.name == "Softmax":
        return Composite(node.inputs, [node], None, "_SoftmaxGrad", node.outputs, attrs)
    found = find_softmax(node, state)
    if found is None:
        return None
    forward = Node(lookup("Softmax"), found[:1], node.outputs, attrs, node.op)
    return Composite(found[:1], [*found[1], node], forward, "_SoftmaxGrad", node.outputs, attrs)


def gelu(node: Node, state: RewriteState) -> Composite | None:
    found = find_gelu(node, state, training=True)
    if found is None:
        return None
    x, approximate, nodes = found
    attrs = {"approximate": approximate, "T": state.dtype(x)}
    forward = Node(lookup("_Gelu"), (x,), node.outputs, attrs, node.op)
    return Composite((x,), [*nodes, node], forward, "_GeluGrad", (x,), attrs)


# replacing ----------------------------------------------------------------------------------------


def replace_composites(program: Program, rules: Sequence[Any]) -> Program:
    """The program after the rules for composites in training."""
    passes = _passes_of(program)
    if not passes or not rules:
        return program
    return _Replacing(program, passes).by(rules)


def _passes_of(program: Program) -> list[Pass]:
    for statement in program.body:
        if isinstance(statement, Node):
            graph = getattr(statement.op, "graph", None)
            found: list[Pass] = [] if graph is None else graph.__dict__.get("backward_passes", [])
            return found
    return []


def _tensor(value: int, c: Composite) -> Tensor:
    """The user's tensor that an input of a composite is."""
    places = ((n, n.inputs.index(value)) for n in c.nodes if value in n.inputs)
    node, i = next(places)
    return node.op._inputs[i]


class _Change(NamedTuple):
    """The gradient of one input of a composite comes from elsewhere."""

    old: list[int]  # the parts of it that the composite's operations gave
    new: int
    sum_at: (
        int | None
    )  # the AddN of which they are inputs; None: there is one part, which others read


class _Replacing:
    def __init__(self, program: Program, passes: list[Pass]) -> None:
        self.program = program
        self.passes = passes
        self.state = RewriteState(program)
        self.body: list[Statement] = list(program.body)
        self.at: dict[int, int] = {}  # value -> where it is made
        self.value_of: dict[Tensor, int] = {}
        self.users: dict[int, list[int]] = {}
        self.inside: set[int] = set()  # values that branches and loops read
        self.before: dict[int, list[Node]] = {}  # new nodes, by the place that they come after
        self.changed: dict[int, int] = {}
        self.fresh: set[int] = set()  # made by new nodes
        for place, s in enumerate(self.body):
            if isinstance(s, Node):
                self._seen(place, s)
            else:
                self._nested(s)

    def _seen(self, place: int, node: Node) -> None:
        state = self.state
        state.place(node)
        scalar = len(node.outputs) == 1 and state.shape(node.outputs[0]) == ()
        if scalar and node.inputs and all(i in state.constants for i in node.inputs):
            folded = fold(node, state)
            if folded is not None:
                state.constants[node.outputs[0]] = state.constants[folded[0]]
        for tensor, value in zip(node.op._outputs, node.outputs):
            self.at[value] = place
            self.value_of[tensor] = value
        for i in node.inputs:
            self.users.setdefault(i, []).append(place)

    def _nested(self, s: If | While) -> None:
        blocks = s.body if isinstance(s, If) else s.test + s.body
        for node in walk(blocks):
            self.inside.update(node.inputs)
        if isinstance(s, If):
            self.inside.add(s.pred)
        else:
            self.inside.update(i for v in s.values for i in (v.init, v.next))
            self.inside.add(s.cond)

    # all of them --------------------------------------------------------------------------------
    def by(self, rules: Sequence[Any]) -> Program:
        table: dict[str, list[Any]] = {}
        for rule in rules:
            for op in rule.ops:
                table.setdefault(op, []).append(rule)
        for node in reversed(self.program.body):  # as gradients flow
            if isinstance(node, Node):
                for rule in table.get(node.opdef.name, ()):
                    if self._applied(rule, node):
                        break
        return self._made()

    def _applied(self, rule: Any, node: Node) -> bool:
        state = self.state
        found = rule.apply(node, state)
        done = found is not None and any(self._replaced(p, found, node) for p in self.passes)
        if done:
            state.firings.append(Firing(rule.name, node.op.name))
        elif found is not None and state.reason is not None:
            state.misses.append(NearMiss(rule.name, node.op.name, state.reason))
        state.reason = None
        return done

    def _made(self) -> Program:
        if not self.state.firings:
            return self.program._replace(near_misses=tuple(self.state.misses))
        body: list[Statement] = list(self.before.get(-1, ()))
        for place, s in enumerate(self.body):
            body.append(s)
            body.extend(self.before.get(place, ()))
        program, state = self.program, self.state
        notes = dict(program.notes)
        for firing in state.firings:
            notes[firing.rule] = notes.get(firing.rule, 0) + 1
        get = self.changed.get
        return program._replace(
            body=tuple(body), values=state.values, notes=notes,
            fetches=tuple(None if f is None else get(f, f) for f in program.fetches),
            effects=tuple(get(e, e) for e in program.effects),
            firings=(*program.firings, *state.firings), near_misses=tuple(state.misses),
        )  # fmt: skip

    # one of them --------------------------------------------------------------------------------
    def _replaced(self, done: Pass, c: Composite, last: Node) -> bool:
        parts = self._parts(done, c, last)
        if parts is None:
            return False
        arrived, given = parts
        slice_ = self._slice([v for vs in given.values() for v in vs], arrived, c)
        if slice_ is None or not self._closed(c, last, slice_):
            self.state.reason = ELSEWHERE.format("value inside")
            return False
        after = max(self.at.get(v, -1) for v in (arrived, *last.outputs, *c.inputs))
        info = [self.state.values[i] for i in c.inputs]
        outputs = tuple(self.state.new_value(v.dtype, v.shape) for v in info)
        changes = []
        for value, output in zip(c.inputs, outputs):
            if value in given:
                tensor = _tensor(value, c)
                change = self._change(done, tensor, given[value], output, slice_, after)
                if change is None:
                    return False
                changes.append(change)
        opdef = lookup(c.gradient)
        node = Node(opdef, (arrived, *c.reads), outputs, c.attrs, last.op)
        self.before.setdefault(after, []).append(node)
        self.at.update(dict.fromkeys(outputs, after))
        self.fresh.update(outputs)
        if c.forward is not None:
            self.body[self.at[last.outputs[0]]] = c.forward
        for change in changes:
            self._carry_out(change, slice_)
        return True

    def _parts(
        self, done: Pass, c: Composite, last: Node
    ) -> tuple[int, dict[int, list[int]]] | None:
        """What arrived at the last node, and what each input was given; None if others have a part in it."""
        ops = {n.op for n in c.nodes}
        arrived = done.arrived.get(last.op)
        if arrived is None or not isinstance(arrived[0], Tensor):
            return None
        inner = {o for n in c.nodes for o in n.outputs}
        given: dict[int, list[int]] = {}
        for node in c.nodes:
            if node.opdef.name == "StopGradient":
                continue
            sent = done.sent.get(node.op)
            if sent is None:
                return None
            if node is not last and any(
                g.by not in ops for g in done.given.get(node.op._outputs[0], ())
            ):
                return None
            for i, value in enumerate(node.inputs):
                if value not in inner and value not in c.inputs:
                    continue
                grad = sent[i]
                if grad is None and self.state.producer(value, "StopGradient") is None:
                    return None  # stopped here
                if value in c.inputs and grad is not None:
                    if not isinstance(grad, Tensor):
                        return None
                    made = self.value_of.get(grad)
                    if made is not None:
                        given.setdefault(value, []).append(made)
        at_last = self.value_of.get(arrived[0])
        if at_last is None or not given:
            return None
        return self.changed.get(at_last, at_last), given

    def _slice(self, ends: list[int], arrived: int, c: Composite) -> set[int] | None:
        """The places of the nodes that make the gradients, back to what arrived and the composite itself."""
        limits = {arrived, *self.fresh, *c.inputs, *(o for n in c.nodes for o in n.outputs)}
        found: set[int] = set()
        stack = list(ends)
        while stack:
            value = stack.pop()
            place = self.at.get(value)
            if value in limits or place is None or place in found:
                continue
            node = self.body[place]
            if not isinstance(node, Node) or not is_pure(node):
                continue
            found.add(place)
            if len(found) > MAX_SLICE:
                return None
            stack.extend(node.inputs)
        return found

    def _closed(self, c: Composite, last: Node, slice_: set[int]) -> bool:
        """Nothing but the composite and its gradient reads what is inside."""
        own = {self.at[n.outputs[0]] for n in c.nodes} | slice_
        for node in c.nodes:
            if node is last:
                continue
            for value in node.outputs:
                if value in self.inside or value in self.state.results:
                    return False
                if any(place not in own for place in self.users.get(value, ())):
                    return False
        return True

    def _change(
        self, done: Pass, tensor: Tensor, old: list[int], new: int, slice_: set[int], after: int
    ) -> _Change | None:
        if any(v in self.inside for v in old):
            return None
        summed = done.sums.get(tensor)
        if summed is None:
            if len(old) != 1:
                return None
            places = [p for p in self.users.get(old[0], ()) if p not in slice_]
            return _Change(old, new, None) if all(p > after for p in places) else None
        place = self.at.get(self.value_of.get(summed, -1))
        node = None if place is None else self.body[place]
        if not isinstance(node, Node) or node.opdef.name != "AddN" or place <= after:  # type: ignore[operator]
            return None
        left = list(node.inputs)
        for v in old:
            if v not in left:
                return None
            left.remove(v)
        return _Change(old, new, place)

    def _carry_out(self, change: _Change, slice_: set[int]) -> None:
        if change.sum_at is None:
            old = change.old[0]
            self.changed[old] = change.new
            for place in self.users.get(old, ()):
                node = self.body[place]
                if place not in slice_ and isinstance(node, Node):
                    inputs = tuple([change.new if i == old else i for i in node.inputs])
                    self.body[place] = node._replace(inputs=inputs)
            return
        node = self.body[change.sum_at]
        assert isinstance(node, Node)
        left = list(node.inputs)
        for v in change.old:
            left.remove(v)
        inputs = (*left, change.new)
        self.body[change.sum_at] = node._replace(
            inputs=inputs, attrs={**node.attrs, "N": len(inputs)}
        )
