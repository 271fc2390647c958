"""``tf.GradientTape``: what was computed, and its derivative.

While a tape records, every operation with a watched input leaves a :class:`Record` on it, and what
it gives is watched too. ``gradient`` goes through the records backwards and calls the same gradient
functions that ``tf.gradients`` calls, eagerly. In a graph (of a session or of a function that is
being traced) the graph is the record, and the tape notes which part of it was made while it was
recording (eager/graph_tape.py).

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.autodiff.aggregate import as_dense, total
from headrace.autodiff.gradients import UnconnectedGradients, unconnected_mode
from headrace.autodiff.registry import gradient_function
from headrace.core import nest
from headrace.core.contexts import named_pass
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.tensor import Tensor
from headrace.eager import graph_tape as symbolic
from headrace.eager.eager_context import eager_mode
from headrace.eager.eager_state_ops import VariableHandle
from headrace.eager.eager_tensor import EagerTensor, wrap
from headrace.eager.tape_record import ACTIVE, TAPES, Record

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.variables.variable import Variable

__all__ = ["GradientTape", "stop_recording"]

_TRAINABLE = symbolic.TRAINABLE
_passes = itertools.count()


class GradientTape:
    """Records what is computed in its block, for ``gradient(target, sources)`` afterwards.

    Variables that are read are watched by themselves (``watch_accessed_variables``), other tensors
    by ``watch(x)``. A tape gives gradients once unless ``persistent``. Tapes nest, for second
    derivatives.

        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        tape.gradient(loss, v)                                  # 2 * v
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._recording = False
        self._forget()

    def _forget(self) -> None:
        self._watched: dict[int, Any] = {}
        self._variables: dict[int, Any] = {}
        self._records: list[Record] | None = []
        self._graphs = symbolic.GraphNotes()

    # recording ----------------------------------------------------------------------------------
    def __enter__(self) -> GradientTape:
        self._push()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._pop()

    def _push(self) -> None:
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an "
                "already-active tape."
            )
        if self._records is None:
            self._forget()
        TAPES.items = [*TAPES.items, self]
        ACTIVE[0] += 1
        self._recording = True
        self._graphs.start()

    def _pop(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        TAPES.items = [t for t in TAPES.items if t is not self]
        ACTIVE[0] -= 1
        self._recording = False
        self._graphs.stop()

    def _wants(self, inputs: Sequence[Any]) -> bool:
        watched = self._watched
        for t in inputs:  # noqa: SIM110 (twice as fast as any() with a generator)
            if id(t) in watched:
                return True
        return False

    def _add(self, record: Record) -> None:
        assert self._records is not None
        self._records.append(record)
        self._watch_outputs(record._outputs)

    def _watch_outputs(self, outputs: Sequence[Any]) -> None:
        watched = self._watched
        for t in outputs:
            if t._dtype in _TRAINABLE:
                watched[id(t)] = t

    def watch(self, tensor: object) -> None:
        """Ensures that ``tensor`` (or every tensor of a structure) is traced by this tape."""
        for t in nest.flatten(tensor):
            handle = getattr(t, "handle", None)
            if handle is not None:
                self._watch_variable(t)
                continue
            if _is_reference(t):
                self._graphs.references[id(t)] = t
                continue
            if not isinstance(t, Tensor):
                raise ValueError(
                    f"Passed in object {t} of type {type(t).__name__!r}, not tf.Tensor or "
                    "tf.Variable or ExtensionType."
                )
            if t._dtype._base in _TRAINABLE:
                self._note_watched(t)

    def _watch_variable(self, variable: Variable) -> None:
        if variable.dtype._base in _TRAINABLE:
            self._note_watched(variable.handle)
            self._variables[id(variable)] = variable

    def _note_watched(self, tensor: TensorLike) -> None:
        self._watched[id(tensor)] = tensor
        self._graphs.watch(tensor)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Operations made inside are not recorded by this tape."""
        if self._records is None:
            raise RuntimeError(
                "This tape has been used already: make a new one, or a persistent one"
            )
        self._pop()
        try:
            yield
        finally:
            self._push()

    def reset(self) -> None:
        """Forget everything that was recorded."""
        recording = self._recording
        if recording:
            self._pop()
        self._forget()
        if recording:
            self._push()

    def watched_variables(self) -> tuple[Any, ...]:
        """Variables watched by this tape, in the order in which they were made."""
        return tuple(sorted(self._variables.values(), key=_age))

    # derivatives --------------------------------------------------------------------------------
    def gradient(
        self,
        target: TensorLike,
        sources: TensorLike,
        output_gradients: object = None,
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of ``target`` (summed) with respect to each of ``sources``, in the same
        structure.
        """
        mode = unconnected_mode(unconnected_gradients)
        self._begin()
        targets = [t for t in nest.flatten(target)]
        flat = nest.flatten(sources)
        given = (
            [None] * len(targets) if output_gradients is None else nest.flatten(output_gradients)
        )
        if symbolic.is_symbolic(targets, flat):
            found = symbolic.gradients(self._recorded(flat), targets, flat, given, mode)
        else:
            with eager_mode():
                found = self._backward(targets, flat, given, mode)
        if not self._persistent:
            self._records = None
        return nest.pack_sequence_as(sources, found) if nest.is_sequence(sources) else found[0]

    def _recorded(self, sources: list[Any]) -> symbolic.Recorded:
        """What was recorded in the graph that is being built."""
        if self._watch_accessed_variables:
            self._graphs.references.update({id(s): s for s in sources if _is_reference(s)})
        return self._graphs.recorded(get_default_graph(), self._watched)

    def _begin(self) -> None:
        if self._records is None:
            raise RuntimeError(
                "GradientTape.gradient can only be called once on non-persistent tapes. A "
                "non-persistent GradientTape can "
                "only be used to compute one set of gradients (or jacobians)"
            )
        if self._recording and not self._persistent:
            self._pop()

    def _backward(
        self, targets: list[Any], sources: list[Any], given: list[Any], mode: UnconnectedGradients
    ) -> list[Any]:
        starts = [
            (place, _start(t, g))
            for t, place, g in ((t, _place(t), g) for t, g in zip(targets, given))
            if place is not None
        ]
        known = {*self._watched, *(id(place) for place, _ in starts)}
        wanted = [p if id(p) in known else None for p in map(_place, sources)]
        assert self._records is not None
        found = backprop(self._records, starts, wanted)
        if mode is UnconnectedGradients.ZERO:
            found = [_zeros(s) if g is None else g for s, g in zip(sources, found)]
        return found

    def jacobian(
        self,
        target: Any,
        sources: TensorLike,
        unconnected_gradients: object = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """All derivatives of the elements of ``target``, of shape target.shape + source.shape."""
        flat = nest.flatten(sources)
        target = convert_to_tensor(target)
        self._check_rows(target, experimental_use_pfor)
        rows = self._rows(target, flat, _unit_vectors(target), unconnected_gradients)
        out = [
            None if row[0] is None else _stacked(row, (*target._shape, *_shape_of(source)))
            for row, source in zip(zip(*rows), flat)
        ]
        return nest.pack_sequence_as(sources, out) if nest.is_sequence(sources) else out[0]

    def batch_jacobian(
        self,
        target: Any,
        source: TensorLike,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor | None:
        """The jacobian of each row of ``target`` with respect to the same row of ``source``."""
        target = convert_to_tensor(target)
        t, s = target._shape, _shape_of(source)
        for what, shape in (("Source", s), ("Target", t)):
            if shape is not None and len(shape) < 2:
                raise ValueError(
                    f"{what} must have rank at least 2, but found {what.lower()}.shape={shape}"
                )
        if t is None or not t or not s or t[0] != s[0]:
            raise ValueError(
                f"Need first dimension of target shape ({t}) and source shape ({s}) to match."
            )
        self._check_rows(target, experimental_use_pfor)
        rows = self._rows(target, [source], _unit_columns(target), unconnected_gradients)
        if rows and rows[0][0] is None:
            return None
        from headrace.ops.array.array_shape import reshape
        from headrace.ops.array.joining import stack

        columns = (
            stack([as_dense(r[0]) for r in rows], axis=1)
            if rows
            else convert_to_tensor(np.zeros((s[0], 0, *s[1:]), np.float32))
        )
        return reshape(columns, [*t, *s[1:]])

    def _check_rows(self, target: Tensor, use_pfor: bool) -> None:
        if isinstance(target, EagerTensor) and not use_pfor and not self._persistent:
            raise RuntimeError(
                "GradientTape must be created with persistent=True to compute the "
                "jacobian with eager execution "
                "enabled and with experimental_use_pfor set to False."
            )

    def _rows(
        self, target: Tensor, sources: list[Any], vectors: Iterator[Any], unconnected: object
    ) -> list[list[Any]]:
        """The gradients of many weighted sums of ``target``, from one recording."""
        mode = unconnected_mode(unconnected)
        self._begin()
        if isinstance(target, EagerTensor):
            with eager_mode():
                rows = [self._backward([target], sources, [v], mode) for v in vectors]
        else:
            recorded = self._recorded(sources)
            rows = [symbolic.gradients(recorded, [target], sources, [v], mode) for v in vectors]
        if not self._persistent:
            self._records = None
        return rows


# the backward pass ------------------------------------------------------------------------------


def backprop(
    records: Sequence[Record], starts: list[tuple[Any, Any]], wanted: list[Any]
) -> list[Any]:
    """Gradients of the ``wanted`` tensors (and handles) from gradients at the outputs."""
    reached = {id(w) for w in wanted if w is not None}
    kept: list[tuple[Record, frozenset[int]]] = []
    for r in records:
        skip = frozenset([i for i, t in enumerate(r._inputs) if id(t) not in reached])
        if len(skip) < len(r._inputs):
            kept.append((r, skip))
            reached.update([id(t) for t in r._outputs if t._dtype in _TRAINABLE])
    grads: dict[int, list[Any]] = {}
    for place, grad in starts:
        if grad is not None:
            grads.setdefault(id(place), []).append(grad)
    keep = {id(w) for w in wanted if w is not None}
    with named_pass(f"gradients_{next(_passes)}"):
        for r, skip in reversed(kept):
            out_grads = [_collected(grads, id(t), id(t) in keep) for t in r._outputs]
            if any(g is not None for g in out_grads):
                _add_input_grads(grads, r, skip, out_grads)
        return [None if w is None else _collected(grads, id(w), True) for w in wanted]


def _collected(grads: dict[int, list[Any]], key: int, keep: bool) -> Any:
    found = grads.get(key)
    if not found:
        return None
    if len(found) > 1:
        found[:] = [total(found)]
    return found[0] if keep else grads.pop(key)[0]


def _add_input_grads(
    grads: dict[int, list[Any]], r: Record, skip: frozenset[int], out_grads: list[Any]
) -> None:
    r._skip = skip
    for i, (t, g) in enumerate(zip(r._inputs, _input_grads(r, out_grads))):
        if g is not None and i not in skip:
            grads.setdefault(id(t), []).append(g)


def _input_grads(r: Record, out_grads: list[Any]) -> Sequence[Any]:
    if r._backward is not None:
        takes_none = getattr(r._backward, "takes_none", False)  # calls of functions
        result = r._backward(*(out_grads if takes_none else _filled(r, out_grads)))
    else:
        function: Callable[..., Any] | None = gradient_function(r)  # type: ignore[arg-type]
        if function is None:
            return ()
        assert r._opdef is not None
        filled = out_grads if function is r._opdef.grad else _filled(r, out_grads)
        result = function(r, *filled)
    found = list(result) if isinstance(result, (list, tuple)) else [result]
    if len(found) != len(r._inputs):
        raise ValueError(
            f"Num gradients {len(found)} generated for op {r.type} do not match num "
            f"inputs {len(r._inputs)}"
        )
    return found


def _filled(r: Record, out_grads: list[Any]) -> list[Any]:
    """Functions of users get zeros for outputs that nothing depends on."""
    return [
        wrap(np.zeros(t._shape, t._dtype.np_dtype), t._dtype)
        if g is None and t._dtype._kind in "fc"
        else g
        for t, g in zip(r._outputs, out_grads)
    ]


# targets and sources ----------------------------------------------------------------------------


def _place(value: TensorLike) -> Any:
    """What gradients of a value are collected under: the tensor itself, or a variable's handle."""
    if isinstance(value, EagerTensor):
        return value
    handle = getattr(value, "handle", None)
    if handle is not None:
        return handle
    if isinstance(value, IndexedSlices):
        return value.values
    if value is None:
        return None
    if isinstance(value, Tensor):
        raise TypeError(f"{value!r} belongs to a graph; an eager tape knows nothing of it")
    return convert_to_tensor(value)


def _age(variable: Variable) -> int:
    """A number that grows with the variables of a graph, or of eager execution."""
    handle = variable.handle
    return handle.number if isinstance(handle, VariableHandle) else handle._op._id


def _is_reference(value: Tensor | Variable) -> bool:
    """Whether a variable of the reference kind, which has a reference in a graph and no handle."""
    return callable(getattr(value, "_ref", None)) and getattr(value, "handle", None) is None


def _start(target: Tensor, given: Tensor | None) -> Tensor | None:
    """The gradient that a target starts with: ones, or what the caller gave."""
    if given is not None:
        if isinstance(given, IndexedSlices):
            return given
        return convert_to_tensor(given, target.dtype)
    dtype = target.dtype._base
    if dtype not in _TRAINABLE:
        return None
    value = np.ones(_shape_of(target), dtype.np_dtype)
    return wrap(value if value.ndim else value[()], dtype)


def _shape_of(value: Any) -> tuple[int, ...]:
    return tuple(value.shape.as_list())


def _zeros(source: Tensor) -> EagerTensor:
    dtype = source.dtype._base
    return wrap(np.zeros(_shape_of(source), dtype.np_dtype), dtype)


def _unit_vectors(target: Tensor) -> Iterator[Any]:
    shape: Any = target._shape
    for i in range(int(np.prod(shape, dtype=np.int64))):
        vector = np.zeros(shape, target._dtype._base.np_dtype)
        vector.reshape(-1)[i] = 1
        yield convert_to_tensor(vector)


def _unit_columns(target: Tensor) -> Iterator[Any]:
    shape: Any = target._shape
    for i in range(int(np.prod(shape[1:], dtype=np.int64))):
        vector = np.zeros(shape, target._dtype._base.np_dtype)
        vector.reshape(shape[0], -1)[:, i] = 1
        yield convert_to_tensor(vector)


def _stacked(rows: Sequence[Any], shape: tuple[int, ...]) -> Tensor:
    from headrace.ops.array.array_shape import reshape
    from headrace.ops.array.joining import stack

    return reshape(stack([as_dense(r) for r in rows]), list(shape))


@contextmanager
def stop_recording() -> Iterator[None]:
    """No tape of this thread records inside."""
    outer = TAPES.items
    TAPES.items = []
    try:
        yield
    finally:
        TAPES.items = outer
