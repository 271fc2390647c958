"""The ops of barriers: values with keys, given out once all components of a key have come.

Elements come out in the order in which their keys were first seen; keys of one insertion have the
same index and come in the order in which they were completed. A closed barrier takes no new
keys; what is incomplete may still be completed.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.dtypes import DType
from headrace.core.infer import Inference
from headrace.core.opdef import KernelNode
from headrace.core.shapes import Shape, show, to_plain
from headrace.ops.queues.waiting_resource import (
    WaitingResource,
    boxed,
    define_op,
    resource_key,
    unboxed,
)

if TYPE_CHECKING:
    from headrace.lower.session_state import RunContext

__all__ = [
    "BARRIER", "BARRIER_CLOSE", "BARRIER_INCOMPLETE_SIZE", "BARRIER_INSERT", "BARRIER_READY_SIZE",
    "BARRIER_TAKE",
]  # fmt: skip

_FIRST_INDEX = -(1 << 63)


class BarrierResource(WaitingResource):
    """Incomplete elements by key, complete ones by the index of their key."""

    def __init__(self, name: str, types: list[DType], shapes: list[Shape]) -> None:
        super().__init__(name)
        self._types, self._components, self._shapes = types, len(types), shapes
        self._next_index = _FIRST_INDEX
        self._incomplete: dict[bytes, tuple[int, dict[int, Any]]] = {}
        self._ready: list[tuple[int, int, bytes, list[Any]]] = []
        self._order = itertools.count()
        self._closed = False
        self._enqueues_cancelled = False

    def check_same(self, types: list[DType], shapes: list[Shape]) -> None:
        """A shared barrier is asked for again: with the same components?"""
        for what, have, want in (
            ("types", [t.name for t in self._types], [t.name for t in types]),
            ("shapes", list(map(show, self._shapes)), list(map(show, shapes))),
        ):
            if have != want:
                raise _invalid(
                    f"Shared barrier '{self.name}' has component {what} [{', '.join(have)}] but "
                    f"requested component {what} were [{', '.join(want)}]"
                )

    def insert(self, component: int, keys: Array, values: Array) -> None:
        """Set component ``component`` of the elements of ``keys``."""
        self._check(component, keys, values)
        with self.lock:
            if self._closed and (self._enqueues_cancelled or (len(keys) and not self._incomplete)):
                raise errors.CancelledError(
                    None,
                    None,
                    f"Barrier '{self.name}' is closed. Pending enqueues cancelled: "
                    f"{int(self._enqueues_cancelled)}.",
                )
            known = set(self._incomplete)
            try:
                for key, value in zip(keys.tolist(), values):
                    self._insert_one(component, key, np.array(value))
            finally:
                if not known.issuperset(keys.tolist()):  # elements that are new share a number
                    self._next_index += 1
                self.changed()

    def _check(self, component: int, keys: Array, values: Array) -> None:
        if not 0 <= component < self._components:
            raise _invalid(f"The component ID is out of range {component} >= {self._components}")
        if values.ndim == 0 or len(values) != len(keys):
            rows = values.shape[0] if values.ndim else 0
            raise _invalid(
                "Shape mismatch in Barrier insert: the number of keys and values differ "
                f"({len(keys)} and {rows})"
            )
        wanted = self._shapes[component] if self._shapes else None
        shape = values.shape[1:]
        if len(keys) and not values.size:
            raise _invalid(
                f"Tensors with no elements are not supported {self.name}: received shape {shape}"
            )
        if wanted is not None and (
            len(wanted) != len(shape) or any(w not in (None, s) for w, s in zip(wanted, shape))
        ):
            raise _invalid(
                f"Shape mismatch in tuple component {component}. Expected {list(wanted)}, got "
                f"{list(shape)}"
            )

    def _insert_one(self, component: int, key: bytes, value: Array) -> None:
        if key not in self._incomplete:
            if self._closed:
                raise errors.CancelledError(
                    None,
                    None,
                    f"Barrier '{self.name}' is closed, but attempted to insert a brand new key: "
                    f"{key!r}.  Pending inserts cancelled: {int(self._enqueues_cancelled)}.",
                )
            self._incomplete[key] = (self._next_index, {})
        index, parts = self._incomplete[key]
        if component in parts:
            raise _invalid(
                f"Key {key!r} already has a value for component {component} in barrier {self.name}"
            )
        parts[component] = value
        if len(parts) == self._components:
            del self._incomplete[key]
            values = [parts[i] for i in range(self._components)]
            heapq.heappush(self._ready, (index, next(self._order), key, values))

    def take(self, wanted: int, small: bool) -> tuple[Any, ...]:
        """Indices, keys and batches of ``wanted`` complete elements.

        A closed barrier may give fewer if ``small``.
        """
        with self.lock:
            needed = self._needed(wanted, small) if self._closed else wanted
            self.wait_until(
                lambda: len(self._ready) >= needed or self._is_drained(), "BarrierTakeMany"
            )
            if len(self._ready) < needed and not (small and self._ready):
                raise self._too_few(needed, len(self._ready))
            n = min(wanted, len(self._ready))
            taken = [heapq.heappop(self._ready) for _ in range(n)]
            self.changed()
        keys = np.empty(n, object)
        keys[:] = [t[2] for t in taken]
        parts = [np.stack([t[3][i] for t in taken]) for i in range(self._components)]
        return (np.array([t[0] for t in taken], np.int64), keys, *parts)

    def _needed(self, wanted: int, small: bool) -> int:
        """How many elements a closed barrier has to have: those that are there, if ``small``, else
        those that may still be completed.
        """
        possible = len(self._ready) + (0 if small else len(self._incomplete))
        needed = min(wanted, possible) if small else wanted
        if possible < max(needed, 1):
            raise self._too_few(needed, possible)
        return needed

    def _too_few(self, wanted: int, found: int) -> errors.OutOfRangeError:
        return errors.OutOfRangeError(
            None,
            None,
            f"Barrier '{self.name}' is closed and has insufficient elements (requested {wanted}, "
            f"total size {found})",
        )

    def _is_drained(self) -> bool:
        """Whether no further element will come."""
        return self._closed and (self._enqueues_cancelled or not self._incomplete)

    def close(self, cancel_pending: bool) -> None:
        """No new keys; with ``cancel_pending`` incomplete elements are given up too."""
        with self.lock:
            if self._closed and (not cancel_pending or self._enqueues_cancelled):
                raise errors.CancelledError(None, None, f"Barrier '{self.name}' is already closed.")
            self._closed = True
            if cancel_pending:
                self._enqueues_cancelled = True
                self._incomplete.clear()
            self.changed()

    def ready_size(self) -> int:
        return len(self._ready)

    def incomplete_size(self) -> int:
        return len(self._incomplete)


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def _barrier_of(handle: Array) -> BarrierResource:
    found = unboxed(handle)
    assert isinstance(found, BarrierResource)
    return found


def _make(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Array:
    attrs = node.attrs
    name = attrs["shared_name"] or f"_0_{node.name}"
    shapes = [to_plain(s) for s in attrs["shapes"]]
    types = list(attrs["component_types"])
    made = rt.session_resource(
        resource_key("barrier", node), lambda: BarrierResource(name, types, shapes)
    )
    assert isinstance(made, BarrierResource)
    made.check_same(types, shapes)
    return boxed(made)


def _insert(
    xp: ArrayNamespace, handle: Array, keys: Array, values: Array, *, component_index: int
) -> tuple[()]:
    _barrier_of(handle).insert(component_index, np.asarray(keys), np.asarray(values))
    return ()


def _take(
    xp: ArrayNamespace, handle: Array, n: Array, *, allow_small_batch: bool
) -> tuple[Array, ...]:
    return _barrier_of(handle).take(int(n), allow_small_batch)


def _close(xp: ArrayNamespace, handle: Array, *, cancel_pending_enqueues: bool) -> tuple[()]:
    _barrier_of(handle).close(cancel_pending_enqueues)
    return ()


def _inserted(c: Inference) -> list[Shape]:
    keys, values = c.require_rank(1, 1), c.require_rank_at_least(2, 1)
    if values is not None and None not in (keys[0], values[0]) and keys[0] != values[0]:
        raise ValueError(
            f"Dimension 0 in both shapes must be equal, but are {keys[0]} and {values[0]}. Shapes "
            f"are [{keys[0]}] and [{values[0]}]."
        )
    return []


def _taken(c: Inference) -> list[Shape]:
    return [(None,), (None,), *[None] * len(c.attr("component_types"))]


BARRIER = define_op(
    "Barrier",
    "-> handle: &string; component_types: list(type), shapes: list(shape)=[], capacity: int=-1, "
    "container: str='', shared_name: str=''",
    _make,
    lambda c: [(2,)],
)
BARRIER_INSERT = define_op(
    "BarrierInsertMany",
    "handle: &string, keys: string, values: T -> ; T: type, component_index: int",
    _insert,
    _inserted,
)
BARRIER_TAKE = define_op(
    "BarrierTakeMany",
    "handle: &string, num_elements: int32 -> indices: int64, keys: string, "
    "values: *component_types; component_types: list(type), allow_small_batch: bool=False, "
    "wait_for_incomplete: bool=False, timeout_ms: int=-1",
    _take,
    _taken,
    blocking=True,
)
BARRIER_CLOSE = define_op(
    "BarrierClose", "handle: &string -> ; cancel_pending_enqueues: bool=False", _close, lambda c: []
)
BARRIER_READY_SIZE = define_op(
    "BarrierReadySize",
    "handle: &string -> size: int32",
    lambda xp, handle: np.int32(_barrier_of(handle).ready_size()),
    lambda c: [()],
)
BARRIER_INCOMPLETE_SIZE = define_op(
    "BarrierIncompleteSize",
    "handle: &string -> size: int32",
    lambda xp, handle: np.int32(_barrier_of(handle).incomplete_size()),
    lambda c: [()],
)
