"""Several operations of the user's that are one function, in training: the function and its
gradient are one step each.

Inference finds a normalisation or a gelu by itself (norm_patterns.py). In training their inner
values are read by gradients, so that both sides must be replaced together. What the gradient is
needs no pattern: the backward pass is on record (autodiff/backward_record.py). If the operations of
a composite give gradients to nothing but each other and its inputs, and get one only at its last,
then what they gave to an input, summed up, is the composite's gradient at what arrived there.

    y = (x - mean(x)) * rsqrt(…) * g + b;  tf.gradients(…)      # some 40 nodes
    y, m, v = _LayerNormTraining(x, g, b); dx, dg, db = _LayerNormGrad(dy, x, g, m, v)

This comes before the walk over single nodes, which drops what nothing reads any more. Rules are
those with ``training=True``: their functions answer with a :class:`Composite`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.autodiff.backward_record import Pass, passes
from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.core.tensor import Tensor
from headrace.program.nodes import Firing, NearMiss, Node, Program, Statement, While
from headrace.rewrite.rewrite_state import RewriteState, is_pure
from headrace.rewrite.rules.fused_products import ELSEWHERE
from headrace.rewrite.rules.lstm_cells import Layer, find_lstm_cell, find_lstm_layers
from headrace.rewrite.rules.norm_patterns import find_gelu, find_layer_norm, find_softmax
from headrace.rewrite.rules.shape_rules import fold

if TYPE_CHECKING:
    from headrace.rewrite.engine import Rule


__all__ = [
    "LAYER",
    "Composite",
    "gelu",
    "layer_norm",
    "lstm_cell",
    "lstm_layer",
    "replace_composites",
    "softmax",
]

#: The gradient of a composite has at most so many nodes for each of its own; more is something
#: else.
MAX_SLICE = 60
#: Stands for a layer where a rule names op types.
LAYER = "<layer>"


class Composite(NamedTuple):
    """Operations that are one function of ``inputs``."""

    inputs: tuple[int, ...]
    outputs: tuple[Node, ...]  # whose results others may read
    nodes: list[Node]  # the outputs' included
    forward: Node | None  # makes what the outputs make, and perhaps more
    # makes the gradients of ``inputs``; it is given what arrived at the outputs, and ``reads``
    gradient: str
    reads: tuple[int, ...]
    attrs: dict[str, Any]
    alone: bool = False  # worth it without a gradient, too


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
    nodes = [*found.nodes, node]
    return Composite(found[:3], (node,), nodes, forward, "_LayerNormGrad", reads, attrs)


def softmax(node: Node, state: RewriteState) -> Composite | None:
    if state.dtype(node.outputs[0]) not in (dtypes.float32, dtypes.float64):
        return None
    attrs = {"T": node.attrs["T"]}
    if node.opdef.name == "Softmax":
        return Composite(node.inputs, (node,), [node], None, "_SoftmaxGrad", node.outputs, attrs)
    found = find_softmax(node, state)
    if found is None:
        return None
    forward = Node(lookup("Softmax"), found[:1], node.outputs, attrs, node.op)
    nodes = [*found[1], node]
    return Composite(found[:1], (node,), nodes, forward, "_SoftmaxGrad", node.outputs, attrs)


def gelu(node: Node, state: RewriteState) -> Composite | None:
    found = find_gelu(node, state, training=True)
    if found is None:
        return None
    x, approximate, nodes = found
    attrs = {"approximate": approximate, "T": state.dtype(x)}
    forward = Node(lookup("_Gelu"), (x,), node.outputs, attrs, node.op)
    return Composite((x,), (node,), [*nodes, node], forward, "_GeluGrad", (x,), attrs)


def lstm_cell(node: Node, state: RewriteState) -> Composite | None:
    """sigmoid(o) * tanh(c), c = sigmoid(f [+ bias]) * c' + sigmoid(i) * tanh(g).

    I, f, g, o are quarters of one matrix.
    """
    found = find_lstm_cell(node, state)
    if found is None:
        return None
    kind, shape, wide = (
        state.dtype(found.c),
        state.shape(node.outputs[0]),
        state.shape(found.product),
    )
    saved = (state.new_value(kind, wide), state.new_value(kind, shape))
    attrs = {"order": found.order, "T": kind}
    outputs = (*node.outputs, *found.new.outputs, *saved)
    forward = Node(
        lookup("_LSTMCell"),
        (found.product, found.c),
        outputs,
        {**attrs, "forget_bias": found.forget_bias},
        node.op,
    )
    inputs, ends = (found.product, found.c), (node, found.new)
    reads = (found.c, *saved)
    return Composite(
        inputs, ends, [*found.nodes, node], forward, "_LSTMCellGrad", reads, attrs, True
    )


def lstm_layer(found: Layer, state: RewriteState) -> Composite | None:
    """All steps of an unrolled layer."""
    first, end = found.steps[0], found.steps[-1]
    kind, shape = state.dtype(first.kernel), state.shape(end.last.outputs[0])
    n, rows = len(found.steps), None if shape is None else shape[0]
    width: Any = state.shape(first.bias)[0]  # type: ignore[index]
    saved = tuple(state.new_value(kind, (n, rows, w)) for w in (width // 4, width, width // 4))
    inputs = tuple(s.x for s in found.steps)
    given = (*inputs, first.h, first.cell.c, first.kernel, first.bias)
    hs = tuple(s.last.outputs[0] for s in found.steps)
    attrs = {"N": n, "order": first.cell.order, "T": kind}
    forward = Node(
        lookup("_LSTMLayer"),
        given,
        (*hs, *end.cell.new.outputs, *saved),
        {**attrs, "forget_bias": first.cell.forget_bias, "training": True},
        first.last.op,
    )
    nodes = [n for s in found.steps for n in s.nodes]
    outputs = (*(s.last for s in found.steps), end.cell.new)
    reads = (*inputs, first.h, first.cell.c, first.kernel, *hs, *saved)
    return Composite(given, outputs, nodes, forward, "_LSTMLayerGrad", reads, attrs, True)


# replacing ----------------------------------------------------------------------------------------


def replace_composites(program: Program, rules: Sequence[Any]) -> Program:
    """The program after the rules for composites in training."""
    nodes = [s for s in program.body if isinstance(s, Node)]
    if not rules or not any([n.opdef.traits.in_composites for n in nodes]):
        return program
    passes = _passes_of(program)
    if not passes and not any(map(_may_be_cell, nodes)):
        return program
    return _Replacing(program, passes).by(rules)


def _may_be_cell(node: Node) -> bool:
    return node.opdef.name == "Split" and node.attrs["num_split"] == 4


def _passes_of(program: Program) -> list[Pass]:
    for statement in program.body:
        if isinstance(statement, Node):
            graph = getattr(statement.op, "graph", None)
            if graph is None or not graph._imported:
                return [] if graph is None else passes(graph)
            from headrace.autodiff.imported_passes import recorded_passes

            return recorded_passes(graph)
    return []


def _tensor(value: int, c: Composite) -> Tensor:
    """The user's tensor that an input of a composite is."""
    node, i = next((n, n.inputs.index(value)) for n in c.nodes if value in n.inputs)
    return node.op._inputs[i]


class _Parts(NamedTuple):
    """What a backward pass says of a composite."""

    arrived: list[list[int]]  # for each output, what others gave to it, to be summed
    given: dict[int, list[int]]  # what its operations gave to its inputs


class _Change(NamedTuple):
    """The gradient of one input of a composite comes from elsewhere."""

    old: list[int]  # the parts of it that the composite's operations gave
    new: int
    sum_at: (
        int | None
    )  # the AddN of which they are inputs; None: there is one part, which others read


def _made_in(statement: Statement) -> list[int]:
    """The values that a loop or a branch makes, in all its depths."""
    made: list[int] = []
    stack = [statement]
    while stack:
        s = stack.pop()
        if isinstance(s, Node):
            made += s.outputs
        elif isinstance(s, While):
            made += [v.value for v in s.values]
            stack += [*s.test, *s.body]
        else:
            stack += s.body
    return made


class _Replacing:
    """Over the statements of one block; ``state`` knows the whole program."""

    def __init__(self, program: Program, passes: list[Pass]) -> None:
        self.program = program
        self.passes = passes
        self.state = RewriteState(program)
        self.body: list[Statement | None] = list(program.body)
        self.at: dict[int, int] = {}  # value -> where it is made
        self.value_of: dict[Tensor, int] = {}
        self.users: dict[int, list[int]] = {}
        self.after: dict[int, list[Node]] = {}  # new nodes, by the place that they come after
        self.changed: dict[int, int] = {}  # values that became others, wherever they are read
        self.moved: dict[int, int | None] = {}  # parts of a sum that became others; None: that went
        self.fresh: set[int] = set()  # made by new nodes
        self.gone: set[int] = set()  # ends of cells that are in a layer
        self.repeated: set[Any] = set()  # operations of loops that were written out
        for place, s in enumerate(self.body):
            if isinstance(s, Node):
                self._seen(place, s)
            elif s is not None:  # what a loop or branch makes is there after it
                self.at.update(dict.fromkeys(_made_in(s), place))

    def _seen(self, place: int, node: Node) -> None:
        state, inputs, outputs = self.state, node.inputs, node.outputs
        state.place(node)
        if len(outputs) == 1 and inputs and state.values[outputs[0]].shape == ():
            constants = state.constants
            if all([i in constants for i in inputs]):
                folded = fold(node, state)
                if folded is not None:
                    constants[outputs[0]] = constants[folded[0]]
        value_of = self.value_of
        for tensor, value in zip(node.op._outputs, outputs):
            self.at[value] = place
            if tensor in value_of:
                self.repeated.add(node.op)
            value_of[tensor] = value
        users = self.users
        for i in inputs:
            places = users.get(i)
            if places is None:
                users[i] = [place]
            else:
                places.append(place)

    # all of them --------------------------------------------------------------------------------
    def by(self, rules: Sequence[Any]) -> Program:
        table: dict[str, list[Any]] = {}
        for rule in rules:
            for op in rule.ops:
                table.setdefault(op, []).append(rule)
        self._layers(table.get(LAYER, ()))
        for node in reversed(self.program.body):  # as gradients flow
            if isinstance(node, Node):
                by_role = table.get(node.opdef.traits.role or "", ())
                for rule in (*table.get(node.opdef.name, ()), *by_role):
                    if self._applied(rule, node):
                        break
        return self._made()

    def _layers(self, rules: Sequence[Any]) -> None:
        nodes = [n for n in self.program.body if isinstance(n, Node)]
        for rule in rules:
            for layer in reversed(find_lstm_layers(nodes, self.state)):
                if self._applied(rule, layer.steps[-1].last, layer):
                    self.gone.update(s.last.outputs[0] for s in layer.steps)

    def _applied(self, rule: Rule, node: Node, what: Layer | None = None) -> bool:
        state = self.state
        if node.outputs[0] in self.gone:
            return False
        found = rule.apply(node if what is None else what, state)
        done = found is not None and self._replaced(found)
        if done:
            state.firings.append(Firing(rule.name, node.op.name))
        elif found is not None and state.reason is not None:
            state.misses.append(NearMiss(rule.name, node.op.name, state.reason))
        state.reason = None
        return done

    def _made(self) -> Program:
        program, state = self.program, self.state
        if not state.firings:
            return program._replace(near_misses=(*program.near_misses, *state.misses))
        body: list[Statement] = list(self.after.get(-1, ()))
        for place, s in enumerate(self.body):
            if s is not None:
                body.append(s)
            body.extend(self.after.get(place, ()))
        notes = dict(program.notes)
        for firing in state.firings:
            notes[firing.rule] = notes.get(firing.rule, 0) + 1
        get = self.changed.get
        return program._replace(
            body=tuple(body),
            values=state.values,
            constants=state.constants,
            notes=notes,
            fetches=tuple(None if f is None else get(f, f) for f in program.fetches),
            effects=tuple(get(e, e) for e in program.effects),
            firings=(*program.firings, *state.firings),
            near_misses=(*program.near_misses, *state.misses),
        )

    # one of them --------------------------------------------------------------------------------
    def _replaced(self, c: Composite) -> bool:
        if any(self._with_gradient(p, c) for p in self.passes):
            return True
        if not c.alone or not self._closed(c, set()) or not self._in_time(c, set()):
            return False
        if c.forward is not None and "training" in c.forward.attrs:
            attrs = {**c.forward.attrs, "training": False}
            c = c._replace(forward=c.forward._replace(attrs=attrs))
        self._place_forward(c)
        return True

    def _in_time(self, c: Composite, slice_: set[int]) -> bool:
        """Nobody reads an output before all inputs are there (a step may depend on what others
        made of the one before).
        """
        place = max(self.at.get(v, -1) for v in c.inputs)
        own = {self.at[n.outputs[0]] for n in c.nodes} | slice_
        outputs = [o for n in c.outputs for o in n.outputs]
        return all(p > place or p in own for o in outputs for p in self.users.get(o, ()))

    def _place_forward(self, c: Composite) -> None:
        if c.forward is None:
            return
        place = max(self.at.get(v, -1) for v in c.inputs)
        self.after.setdefault(place, []).append(c.forward)
        for node in c.outputs:
            self.body[self.at[node.outputs[0]]] = None

    def _with_gradient(self, done: Pass, c: Composite) -> bool:
        parts = self._parts(done, c)
        if parts is None:
            return False
        arrived = {v for vs in parts.arrived for v in vs}
        slice_ = self._slice([v for vs in parts.given.values() for v in vs], arrived, c)
        if slice_ is None or not self._closed(c, slice_):
            self.state.reason = ELSEWHERE.format("value inside")
            return False
        if not self._in_time(c, slice_):
            self.state.reason = "an input depends on an output"
            return False
        needed = (*arrived, *(o for n in c.outputs for o in n.outputs), *c.inputs)
        place = max(self.at.get(v, -1) for v in needed)
        info = [self.state.values[i] for i in c.inputs]
        outputs = tuple(self.state.new_value(v.dtype, v.shape) for v in info)
        changes = []
        for value in dict.fromkeys(c.inputs):
            if value in parts.given:
                made = [o for i, o in zip(c.inputs, outputs) if i == value]
                new = (
                    made[0]
                    if len(made) == 1
                    else self.state.new_value(*self.state.values[value][:2])
                )
                tensor = _tensor(value, c)
                change = self._change(done, tensor, parts.given[value], new, slice_, place)
                if change is None:
                    return False
                changes.append((change, made))
        sums = [self._sum(values, node, place) for values, node in zip(parts.arrived, c.outputs)]
        opdef, op = lookup(c.gradient), c.outputs[0].op
        self._add(Node(opdef, (*sums, *c.reads), outputs, c.attrs, op), place)
        self._place_forward(c)
        for change, made in changes:
            if len(made) > 1:  # one value in several places
                kind = self.state.dtype(change.new)
                attrs = {"N": len(made), "T": kind}
                self._add(Node(lookup("AddN"), tuple(made), (change.new,), attrs, op), place)
            self._carry_out(change, slice_)
        return True

    def _add(self, node: Node, place: int) -> None:
        self.after.setdefault(place, []).append(node)
        self.at.update(dict.fromkeys(node.outputs, place))
        self.fresh.update(node.outputs)

    def _sum(self, values: list[int], node: Node, place: int) -> int:
        """What arrived at an output: one value; of nothing, a zero."""
        if len(values) == 1:
            return values[0]
        info = self.state.values[node.outputs[0]]
        if not values:
            return self.state.new_constant(np.zeros((), info.dtype.np_dtype), info.dtype)
        out = self.state.new_value(info.dtype, info.shape)
        attrs = {"N": len(values), "T": info.dtype}
        self._add(Node(lookup("AddN"), tuple(values), (out,), attrs, node.op), place)
        return out

    def _parts(self, done: Pass, c: Composite) -> _Parts | None:
        """None if others have a part in the gradients inside, or they were stopped there."""
        ops = {n.op for n in c.nodes}
        if not ops.isdisjoint(self.repeated):
            return None  # the record does not tell the rounds of a loop apart
        ends = {n.op for n in c.outputs}
        arrived = [self._arrived(done, node, ops) for node in c.outputs]
        if any(a is None for a in arrived) or not any(arrived):
            return None
        inner = {o for n in c.nodes for o in n.outputs}
        given: dict[int, list[int]] = {}
        ungiven: set[int] = set()  # inputs whose gradient nobody asked for, in some node
        silent: set[int] = set()  # inputs of nodes that nothing with a gradient lies behind
        for node in c.nodes:
            if node.opdef.name == "StopGradient":
                continue
            sent = done.sent.get(node.op)
            if sent is None:
                if any(i in inner for i in node.inputs):
                    return None
                silent.update(node.inputs)
                continue
            if node.op not in ends and any(
                g.by not in ops for t in node.op._outputs for g in done.given.get(t, ())
            ):
                return None
            for i, value in enumerate(node.inputs):
                if value not in inner and value not in c.inputs:
                    continue
                grad = sent[i]
                if grad is None and self.state.producer(value, "StopGradient") is None:
                    if value in inner:
                        return None
                    ungiven.add(value)
                if value in c.inputs and grad is not None:
                    if not isinstance(grad, Tensor):
                        return None
                    made = self.value_of.get(grad)
                    if made is not None:
                        given.setdefault(value, []).append(made)
        if not given or not silent.isdisjoint(given) or not ungiven.isdisjoint(given):
            return None
        return _Parts([a or [] for a in arrived], given)

    def _arrived(self, done: Pass, node: Node, ops: set[Any]) -> list[int] | None:
        """What others gave to an output; None if that is not to be had."""
        tensor = node.op._outputs[0]
        given = done.given.get(tensor, ())
        others = [g for g in given if g.by not in ops]
        if not given:
            return []
        if len(others) == len(given):
            total = done.arrived.get(node.op, (None,))[0]
            value = self.value_of.get(total) if isinstance(total, Tensor) else None
            return None if value is None else [self.changed.get(value, value)]
        out: list[int] = []
        for g in others:
            value = self.value_of.get(g.grad) if isinstance(g.grad, Tensor) else None
            if value is None:
                return None
            moved = self.moved.get(value, self.changed.get(value, value))
            if moved is not None:
                out.append(moved)
        return out

    def _slice(self, ends: list[int], arrived: set[int], c: Composite) -> set[int] | None:
        """The places of the nodes that make the gradients, back to what arrived and the composite
        itself.
        """
        limits = {*arrived, *self.fresh, *c.inputs, *(o for n in c.nodes for o in n.outputs)}
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
            if len(found) > MAX_SLICE * (len(c.nodes) + 4):
                return None
            stack.extend(node.inputs)
        return found

    def _closed(self, c: Composite, slice_: set[int]) -> bool:
        """Nothing but the composite and its gradient reads what is inside."""
        ends = {o for n in c.outputs for o in n.outputs}
        uses: dict[int, int] = {}
        for place in {self.at[n.outputs[0]] for n in c.nodes} | slice_:
            node = self.program.body[place]
            assert isinstance(node, Node)
            for i in node.inputs:
                uses[i] = uses.get(i, 0) + 1
        values = [o for n in c.nodes for o in n.outputs if o not in ends]
        return all(self.state.uses.get(v, 0) <= uses.get(v, 0) for v in values)

    def _change(
        self, done: Pass, tensor: Tensor, old: list[int], new: int, slice_: set[int], place: int
    ) -> _Change | None:
        places = [[p for p in self.users.get(v, ()) if p not in slice_] for v in old]
        if any(self.state.uses.get(v, 0) > len(self.users.get(v, ())) for v in old) and not (
            len(old) == 1 and old[0] in self.state.results
        ):
            return None  # branches or loops read it
        summed = done.sums.get(tensor)
        if summed is None:
            if len(old) != 1:
                return None
            return _Change(old, new, None) if all(p > place for p in places[0]) else None
        at = self.at.get(self.value_of.get(summed, -1))
        node = None if at is None else self.body[at]
        if at is None or not isinstance(node, Node) or node.opdef.name != "AddN" or at <= place:
            return None
        left = list(node.inputs)
        for v in old:
            if v not in left:
                return None
            left.remove(v)
        return _Change(old, new, at)

    def _carry_out(self, change: _Change, slice_: set[int]) -> None:
        self.moved.update(dict.fromkeys(change.old, None))
        self.moved[change.old[0]] = change.new
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
        attrs = {**node.attrs, "N": len(inputs)}
        self.body[change.sum_at] = node._replace(inputs=inputs, attrs=attrs)
