"""The ops of staging areas: a buffer of tuples that one run fills and a later one empties.

``put`` waits while there are ``capacity`` tuples or ``memory_limit`` bytes (0: no limit), ``get``
while there is none.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.infer import Inference
from headrace.core.opdef import KernelNode, OpDef
from headrace.core.shapes import Shape
from headrace.ops.queues.waiting_resource import WaitingResource, define_op, resource_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.lower.session_state import RunContext

__all__ = ["STAGE", "STAGE_CLEAR", "STAGE_PEEK", "STAGE_SIZE", "UNSTAGE"]


class StagingBuffer(WaitingResource):
    """Tuples in the order of their coming."""

    def __init__(self, name: str, capacity: int, memory_limit: int) -> None:
        super().__init__(name)
        self._capacity, self._limit = capacity, memory_limit
        self._bytes = 0
        self._tuples: deque[tuple[Any, ...]] = deque()

    def _has_room(self, size: int) -> bool:
        return not (self._capacity and len(self._tuples) >= self._capacity) and not (
            self._limit and self._bytes + size > self._limit
        )

    def put(self, values: tuple[Any, ...]) -> None:
        """Add a tuple, waiting for room."""
        size = sum(v.nbytes for v in values)
        if self._limit and size > self._limit:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging "
                f"Area with a memory limit of '{self._limit}'.",
            )
        with self.lock:
            self.wait_until(lambda: self._has_room(size), "Stage")
            self._tuples.append(values)
            self._bytes += size
            self.changed()

    def get(self) -> tuple[Any, ...]:
        """Take the oldest tuple, waiting for it."""
        with self.lock:
            self.wait_until(lambda: bool(self._tuples), "Unstage")
            values = self._tuples.popleft()
            self._bytes -= sum(v.nbytes for v in values)
            self.changed()
            return values

    def peek(self, index: int) -> tuple[Any, ...]:
        """A copy of the tuple at ``index``, waiting until there is one."""
        with self.lock:
            self.wait_until(lambda: index < len(self._tuples), "StagePeek")
            return tuple([np.array(v) for v in self._tuples[index]])

    def size(self) -> int:
        with self.lock:
            return len(self._tuples)

    def clear(self) -> None:
        """Drop all tuples."""
        with self.lock:
            self._tuples.clear()
            self._bytes = 0
            self.changed()


def _buffer(node: KernelNode, rt: RunContext) -> StagingBuffer:
    attrs = node.attrs
    made = rt.session_resource(
        resource_key("staging area", node),
        lambda: StagingBuffer(attrs["shared_name"], attrs["capacity"], attrs["memory_limit"]),
    )
    assert isinstance(made, StagingBuffer)
    return made


def _one_or_all(values: tuple[Any, ...]) -> Array | tuple[Array, Array]:
    return values if len(values) != 1 else values[0]


def _stage(xp: ArrayNamespace, *values: Array, node: KernelNode, rt: RunContext) -> tuple[()]:
    _buffer(node, rt).put(tuple([np.array(v) for v in values]))
    return ()


def _unstage(
    xp: ArrayNamespace, *, node: KernelNode, rt: RunContext
) -> Array | tuple[Array, Array]:
    return _one_or_all(_buffer(node, rt).get())


def _peek(xp: ArrayNamespace, index: Array, *, node: KernelNode, rt: RunContext) -> Any:
    return _one_or_all(_buffer(node, rt).peek(int(index)))


def _size(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> np.int32:
    return np.int32(_buffer(node, rt).size())


def _clear(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> tuple[()]:
    _buffer(node, rt).clear()
    return ()


def _values(c: Inference) -> list[Shape]:
    return [None] * len(c.attr("dtypes"))


def _define(
    name: str,
    signature: str,
    kernel: Callable[..., Any],
    shape: Callable[..., Any],
    blocking: bool = False,
) -> OpDef:
    buffer = "capacity: int=0, memory_limit: int=0, dtypes: list(type), "
    signature += f"; {buffer}container: str='', shared_name: str=''"
    return define_op(name, signature, kernel, shape, blocking)


STAGE = _define("Stage", "values: *dtypes ->", _stage, lambda c: [], True)
UNSTAGE = _define("Unstage", "-> values: *dtypes", _unstage, _values, True)
STAGE_PEEK = _define("StagePeek", "index: int32 -> values: *dtypes", _peek, _values, True)
STAGE_SIZE = _define("StageSize", "-> size: int32", _size, lambda c: [()])
STAGE_CLEAR = _define("StageClear", "->", _clear, lambda c: [])
