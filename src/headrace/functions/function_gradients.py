"""Calls of functions under tapes.

The graph of a function is copied into a *whole*, to which its gradient is added with the same code
that ``tf.gradients`` runs. A *part* of the whole is what one call computes: from some tensors to
others. The forward part gives, beside the results, every tensor that the backward part uses; the
backward part is fed with them and with the gradients of the results, and starts where the forward
part ended. Nothing is computed twice, no effect happens twice.

A backward part is a part like any other, so that a tape around can record its call, and
differentiate it in turn. For that the tensors which connect the two have to be results of the
forward call that the tape knows: with n tapes recording, they are chosen for derivatives up to the
order n; a persistent tape counts twice, because it also records the gradients that it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.autodiff.aggregate import is_trainable
from headrace.autodiff.gradients import gradients
from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.contexts import Context, WhileBase, frame_of, guards_of
from headrace.core.func_graph import FuncGraph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.inline import inline
from headrace.core.schedule import needed_ops
from headrace.core.tapes import variable_accessed
from headrace.core.tensor import Operation, Tensor
from headrace.eager.eager_context import STATE
from headrace.eager.eager_tensor import EagerTensor, wrap
from headrace.eager.execute import _wrapped
from headrace.eager.tape_record import TAPES, record_operation
from headrace.ops.array.basic import constant
from headrace.ops.control.control_contexts import CondContext, in_context
from headrace.ops.control.control_flow import merge_on
from headrace.ops.control.tensor_array_ops import ArrayState
from headrace.session.graph_function import GraphFunction

if TYPE_CHECKING:
    from headrace.eager.tape import GradientTape
    from headrace.functions.concrete_function import ConcreteFunction

__all__ = ["FunctionGradients"]

_LOCK = threading.RLock()


class FunctionGradients:
    """A concrete function that can be called under tapes."""

    def __init__(self, concrete: ConcreteFunction) -> None:
        self.concrete = concrete
        graph = concrete.graph
        whole = FuncGraph(graph.name)
        sources = [*graph.inputs, *graph.internal_captures]
        with whole.as_default():
            feeds = [whole.add_input(t._dtype, t._shape, t._op.name) for t in sources]
        for t, source in zip(feeds, sources):
            t._static = source._static
        copied = inline(graph, whole, dict(zip(sources, feeds)))
        whole._effects.noting = False
        for old, new in copied.ops.items():
            if old._opdef.traits.random:  # one generator, whether a tape records or not
                new._state_key = f"{graph.key}/{old.name}"
        used = [k for k in graph.outer_handles if f"/{k}" in whole._handles]
        self.handles: list[Any] = [graph.outer_handles[k] for k in used]
        inner = [whole._handles[f"/{k}"] for k in used]
        self.part = Part(
            whole,
            feeds,
            inner,
            [copied[t] for t in graph.outputs],
            [copied.ops[op] for op in graph.control_outputs],
            frozenset(),
            concrete.name,
        )

    def call(self, tensors: list[Any]) -> Any:
        """Call with the tensors of the arguments, telling the tapes."""
        for handle in self.handles:
            variable = handle.variable()
            if variable is not None:
                variable_accessed(variable)
        captured = self.concrete.graph.external_captures
        return self.concrete.packed(self.part.call([*tensors, *captured], self.handles))


class Part:
    """From ``feeds`` and variables to ``fetches``.

    Operations in ``outside`` belong to earlier parts.
    """

    def __init__(
        self,
        whole: FuncGraph,
        feeds: list[Tensor],
        handles: list[Tensor],
        fetches: list[Tensor],
        controls: list[Operation],
        outside: frozenset[Operation],
        name: str,
    ) -> None:
        self.whole = whole
        self.feeds = feeds
        self.handles = handles
        self.fetches = fetches
        self.controls = controls
        self.outside = outside
        self.name = name
        self.plain = GraphFunction(whole, feeds, fetches, controls, done=outside, borrowed=True)
        self._inside: frozenset[Operation] | None = None
        self._variants: dict[Any, _Variant | Exception] = {}

    @property
    def inside(self) -> frozenset[Operation]:
        """The operations of this part and of what was before it."""
        if self._inside is None:
            roots = [*(t._op for t in self.fetches), *self.controls]
            feeds = set(self.feeds)
            roots = [op for op in roots if not any(t in feeds for t in op._outputs)]
            own = needed_ops(roots, feeds, self.outside)
            self._inside = self.outside | own | {t._op for t in self.feeds}
        return self._inside

    def call(self, tensors: Sequence[Any], handles: Sequence[Any]) -> list[Any]:
        """The results as eager tensors, recorded on the tapes that want them."""
        given = [*tensors, *handles]
        tapes = [t for t in TAPES.items if t._wants(given)]
        arrays = [_fed(t) for t in tensors]
        if not tapes:
            return self._wrap(self.plain(STATE, *arrays), self.fetches)
        watched = tuple([any(id(x) in t._watched for t in tapes) for x in given])
        variant = self._variant(watched, _derivatives(tapes))
        if isinstance(variant, Exception):
            outputs = self._wrap(self.plain(STATE, *arrays), self.fetches)
            record_operation(self.name, outputs, given, _raising(variant))
            return outputs
        results = variant.run(STATE, *arrays)
        n = len(self.fetches)
        outputs = self._wrap(results[:n], self.fetches)
        saved = self._wrap(results[n:], variant.fetched_saved)
        told = [*outputs, *saved] if variant.order > 1 else outputs
        backward = variant.pullback([*tensors], saved, told)
        record_operation(self.name, told, given, backward)
        return outputs

    def _variant(self, watched: tuple[bool, ...], order: int) -> _Variant | Exception:
        """What to run under so many tapes.

        An error if there is no gradient, which matters only if it is asked for.
        """
        found = self._variants.get((watched, order))
        if found is None:
            with _LOCK:
                try:
                    found = _Variant(self, watched, order)
                except (LookupError, TypeError) as error:
                    found = error
            self._variants[watched, order] = found
        return found

    @staticmethod
    def _wrap(values: Sequence[Any], tensors: Sequence[Tensor]) -> list[Any]:
        return [_wrapped(v, t._dtype._base) for v, t in zip(values, tensors)]


def _derivatives(tapes: Sequence[GradientTape]) -> int:
    """The highest order of derivatives to prepare for."""
    return sum(2 if tape._persistent else 1 for tape in tapes)


def _raising(error: Exception) -> Callable[..., Any]:
    def run(*grads: Any) -> Any:
        raise error

    vars(run)["takes_none"] = True
    return run


def _fed(tensor: Tensor) -> Any:
    """The value to feed; stacks are emptied by those who read them, and a tape may ask twice."""
    value = tensor._static
    if type(value) is list:
        return list(value)
    if type(value) is ArrayState:
        return _fresh_array(value)
    return value


def _fresh_array(state: ArrayState) -> ArrayState:
    copy = ArrayState.__new__(ArrayState)
    copy.__dict__.update(state.__dict__)
    copy.items, copy.was_read, copy.grads = list(state.items), list(state.was_read), {}
    return copy


class _Backward:
    """The backward part for gradients of certain results."""

    def __init__(self, part: Part, feeds: list[Tensor], grads: list[Any]) -> None:
        self.part = part
        self.feeds = feeds  # of these, the gradients of results come last
        self.grads = grads  # one per input of the forward part: Tensor, IndexedSlices or None


class _Variant:
    """A part with what the gradients of some of its inputs need as further results."""

    def __init__(self, part: Part, watched: tuple[bool, ...], order: int) -> None:
        self.part = part
        self.watched = watched
        self.order = order
        self.saved: list[Tensor] = []  # as the backward part uses them
        self.fetched_saved: list[
            Tensor
        ] = []  # as the forward part can return them, whichever branch it takes
        self.forward = set(part.inside)
        self._backward: dict[
            tuple[int, ...], _Backward | None
        ] = {}  # by the results with gradients
        inputs = [*part.feeds, *part.handles]
        self.sources = [i for i, t in enumerate(inputs) if watched[i] and is_trainable(t)]
        for _ in range(order):
            targets = self._targets(None)
            full = self._backward[tuple(targets)] = self._build(targets)
            self._save(full)
        self.run = GraphFunction(
            part.whole,
            part.feeds,
            [*part.fetches, *self.fetched_saved],
            part.controls,
            done=part.outside,
            borrowed=True,
        )

    # results, and gradients given for them
    # ------------------------------------------------------------
    def results(self) -> list[Tensor]:
        """What the tapes are told to be the results."""
        return [*self.part.fetches, *(self.fetched_saved if self.order > 1 else ())]

    def _targets(self, given: tuple[bool, ...] | None) -> list[int]:
        return [
            i
            for i, t in enumerate(self.results())
            if is_trainable(t) and t._dtype is not dtypes.resource and (given is None or given[i])
        ]

    # building
    # -------------------------------------------------------------------------------------------
    def _build(self, targets: list[int]) -> _Backward:
        """Gradients of the watched inputs from gradients of the results ``targets``."""
        part, whole = self.part, self.part.whole
        inputs = [*part.feeds, *part.handles]
        results = self.results()
        before = len(whole._ops)
        with whole.as_default():
            starts = [_like(whole, results[i]) for i in targets]
            found: list[Any] = [None] * len(inputs)
            if targets and self.sources:
                xs = [inputs[i] for i in self.sources]
                grads = gradients(
                    [results[i] for i in targets], xs, starts, stop_gradients=_stops(part, xs)
                )
                for i, g in zip(self.sources, grads):
                    found[i] = None if g is None else _reachable_grad(whole, g)
        self._note_forward(whole._ops[before:])
        fetches = [t for g in found if g is not None for t in _parts(g)]
        given = set(starts)
        used = [t for t in _boundary(fetches, self.forward) if t not in given]
        outside = frozenset(self.forward)
        feeds = [*used, *starts]
        made = Part(whole, feeds, [], fetches, [], outside, f"__backward_{part.name}")
        return _Backward(made, feeds, found)

    def _note_forward(self, new: Iterable[Operation]) -> None:
        """What gradients add to the loops of the forward part (counts, pushes on stacks) belongs
        to it.
        """
        loops = _loops(self.part.inside)
        for op in new:
            leaves = op._role == "exit" and op._inputs[0]._op in self.forward
            if leaves or op.type == "StackV2" or frame_of(op._context) in loops:
                self.forward.add(op)

    def _save(self, backward: _Backward) -> None:
        known = {*self.saved, *self.part.feeds}
        for t in backward.part.feeds:
            if t not in known and t._op in self.forward:
                self.saved.append(t)
                self.fetched_saved.append(_reachable(self.part.whole, t))
                self.forward.update(_added_merge(self.fetched_saved[-1], t))

    # the backward pass
    # ------------------------------------------------------------------------------------
    def backward(self, given: tuple[bool, ...]) -> tuple[_Backward, tuple[int, ...]]:
        """The backward part for the results that have gradients, and the numbers of those
        results.
        """
        targets = tuple(self._targets(given))
        with _LOCK:
            if targets not in self._backward:
                made = self._build(list(targets))
                known = {*self.saved, *self.part.feeds}
                n = len(made.feeds) - len(targets)
                self._backward[targets] = made if all(t in known for t in made.feeds[:n]) else None
            found = self._backward[targets]
        if found is not None:
            return found, targets
        everything = tuple([True] * len(given))
        if all(given[i] for i in self._targets(None)):
            raise RuntimeError(f"{self.part.name}: a derivative of this order was not prepared for")
        return self.backward(everything)

    def pullback(
        self, tensors: list[Any], saved: list[Any], results: list[Any]
    ) -> Callable[..., list[Any]]:
        """The function that a tape calls with the gradients of the results."""
        values: dict[Tensor, Any] = dict(zip(self.part.feeds, tensors))
        values.update(zip(self.saved, saved))

        def run(*grads: Any) -> list[Any]:
            dense = [_dense(g) for g in grads]
            given = tuple([g is not None for g in dense])
            backward, targets = self.backward(given)
            starts = [_zeros(results[i]) if dense[i] is None else dense[i] for i in targets]
            n = len(backward.feeds) - len(targets)
            fed = [values[t] for t in backward.feeds[:n]]
            flat = iter(backward.part.call([*fed, *starts], []))
            return [None if g is None else _packed(g, flat) for g in backward.grads]

        vars(run)["takes_none"] = True
        return run


# gradients as tensors ---------------------------------------------------------------------------


def _like(whole: FuncGraph, tensor: Tensor) -> Tensor:
    return whole._placeholder(tensor._dtype._base, tensor._shape, "grad")


def _stops(part: Part, xs: list[Tensor]) -> list[Tensor]:
    """A part's gradients do not go behind what it is fed with."""
    return [t for t in part.feeds if t._op.type != "Placeholder"]


def _parts(grad: IndexedSlices | Tensor) -> list[Tensor]:
    if not isinstance(grad, IndexedSlices):
        return [grad]
    parts = [grad.values, grad.indices]
    return parts if grad.dense_shape is None else [*parts, grad.dense_shape]


def _reachable_grad(whole: FuncGraph, grad: IndexedSlices | Tensor) -> IndexedSlices | Tensor:
    """The gradient of an input that belongs to a branch is there whichever branch is taken."""
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(*[_reachable(whole, t) for t in _parts(grad)])
    return _reachable(whole, grad)


def _packed(grad: IndexedSlices | Tensor, flat: Any) -> IndexedSlices | Tensor:
    values = [next(flat) for _ in _parts(grad)]
    return IndexedSlices(*values) if isinstance(grad, IndexedSlices) else values[0]


def _dense(grad: Tensor | None) -> Tensor | None:
    if isinstance(grad, IndexedSlices):
        from headrace.autodiff.aggregate import as_dense

        return as_dense(grad)
    return grad


def _zeros(tensor: EagerTensor) -> EagerTensor:
    value = np.zeros(tensor._static.shape, tensor._dtype.np_dtype)
    return wrap(value if value.ndim else value[()], tensor._dtype)


# between forward and backward -------------------------------------------------------------------


def _loops(ops: Iterable[Operation]) -> set[Context]:
    found: set[Context] = set()
    for op in ops:
        context = op._context
        while context is not None and context not in found:
            if isinstance(context, WhileBase):
                found.add(context)
            context = context.outer_context
    return found


def _boundary(fetches: list[Tensor], forward: set[Operation]) -> list[Tensor]:
    """The tensors of the forward part that the operations behind ``fetches`` use."""
    found: dict[Tensor, None] = {}
    seen: set[Operation] = set()
    stack: list[Operation] = []

    def need(t: Tensor) -> None:
        op = t._op
        if op._role == "handle":
            return
        if op in forward and op._role != "constant":
            found[t] = None
        elif op not in seen:
            seen.add(op)
            stack.append(op)

    for t in fetches:
        need(t)
    while stack:
        op = stack.pop()
        for t in op._inputs:
            need(t)
        for guard in guards_of(op._context):
            need(guard.pred)
        for c in op._control_inputs:
            if c not in forward and c not in seen:
                seen.add(c)
                stack.append(c)
    return sorted(found, key=lambda t: (t._op._id, t._value_index))


def _reachable(whole: FuncGraph, tensor: Tensor) -> Tensor:
    """The tensor as something that has a value whichever branches are taken."""
    for guard in reversed(guards_of(tensor._op._context)):
        pred = guard.pred
        other = CondContext(pred, pred, 1 - guard.branch, guard.name, guard.outer_context)
        with whole.as_default(), in_context(whole, guard.outer_context):
            nothing = _nothing(whole, other, tensor)
            pair = (nothing, tensor) if guard.branch else (tensor, nothing)
            shape = tensor._shape
            tensor = merge_on(pair[0], pair[1], pred)
            tensor._shape = shape
    return tensor


def _nothing(whole: FuncGraph, context: CondContext, like: Tensor) -> Tensor:
    """Stands for a tensor where its branch is not taken; never used."""
    dtype = like._dtype._base
    with in_context(whole, context):
        if dtype is dtypes.resource:
            return apply_op("StackV2", constant(0), elem_type=dtypes.int32)
        if dtype is dtypes.string:
            return constant("")
        return constant(np.zeros([0], dtype.np_dtype), dtype)


def _added_merge(merged: Tensor, tensor: Tensor) -> list[Operation]:
    """The operations that ``_reachable`` made."""
    out: list[Operation] = []
    while merged is not tensor:
        out.append(merged._op)
        inner = [t for t in merged._op._inputs if t._op._id < merged._op._id]
        nothing = max(inner, key=lambda t: t._op._id)
        out.append(nothing._op)
        merged = next(t for t in inner if t is not nothing)
    return out
