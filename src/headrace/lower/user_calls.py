"""Operations of one run that may wait for each other: ``tf.py_func``, enqueues and dequeues.

TensorFlow runs operations that do not depend on each other at the same time, so two functions may
wait for each other (a producer and a consumer, a barrier). Here a function that another one follows
without depending on it is started on a thread. The run waits ``MAX_WAIT_SECONDS`` for it, so that
functions which do not wait run one after the other, in their order; then it goes on, and waits
again where the results are used, and before what has a control dependency on it. An enqueue or
dequeue that the other kind follows is treated alike. Plans with fewer than two such operations are
not affected.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from headrace.core.tensor import Operation
from headrace.lower.fusion import Fused, PlanBlock, PlanStatement
from headrace.lower.select_updates import Grouped
from headrace.program.nodes import Node

__all__ = ["independent", "must_wait", "start", "start_queue_operation"]

#: Seconds that a function is waited for before the next one is started.
MAX_WAIT_SECONDS = 0.05
#: The same for an enqueue or dequeue: it is done at once, or it waits for another operation.
QUEUE_GRACE = 0.002


def independent(block: PlanBlock) -> frozenset[Operation]:
    """The operations of a block that may have to wait for a later one, and do not precede it by a
    dependency: calls of the user's functions, and an enqueue before a dequeue or the reverse.
    """
    found = [s for s in block if isinstance(s, Node) and _may_wait(s)]
    if len(found) < 2:
        return frozenset()
    behind = _dependencies([s.op for s in found])
    return frozenset(
        a.op
        for n, a in enumerate(found)
        if any(not behind[b.op] >> n & 1 and _may_wait_for(a, b) for b in found[n + 1 :])
    )


def _may_wait(node: Node) -> bool:
    traits = node.opdef.traits
    return traits.calls_user or traits.blocking


def _may_wait_for(a: Node, b: Node) -> bool:
    if a.opdef.traits.calls_user or b.opdef.traits.calls_user:
        return a.opdef.traits.calls_user and b.opdef.traits.calls_user
    return bool(a.outputs) != bool(b.outputs)  # one gives, one takes


def _dependencies(ops: list[Operation]) -> dict[Operation, int]:
    """For every operation that one of these depends on, which of them it comes after or is, as
    bits.
    """
    number = {op: n for n, op in enumerate(ops)}
    masks: dict[Operation, int] = {}
    stack = list(ops)
    while stack:
        op = stack[-1]
        if op in masks:
            stack.pop()
            continue
        sources = [*(t._op for t in op._inputs), *op._control_inputs]
        missing = [s for s in sources if s not in masks and s._id < op._id]
        if missing:
            stack.extend(missing)
            continue
        own = 1 << number[op] if op in number else 0
        masks[op] = own | _any(masks.get(s, 0) for s in sources)
        stack.pop()
    return masks


def _any(masks: Iterable[int]) -> int:
    out = 0
    for mask in masks:
        out |= mask
    return out


def must_wait(statement: PlanStatement | None, started: Node) -> bool:
    """Whether a statement takes the results of an operation that was started, or comes after it by
    a control dependency.

    The end (None), branches and loops wait for all.
    """
    if not isinstance(statement, (Node, Fused, Grouped)):
        return True
    return _needs(statement, statement.inputs, started)


def _needs(statement: Any, inputs: tuple[int, ...], started: Node) -> bool:
    """Whether a statement takes a started operation's result, or comes after it by a control
    dependency.
    """
    if set(inputs) & set(started.outputs):
        return True
    nodes = (statement,) if isinstance(statement, Node) else statement.nodes
    return any(_is_controlled_by(n.op, started.op) for n in nodes)


def _is_controlled_by(op: Operation, source: Operation) -> bool:
    """Whether a chain of dependencies leads from ``source`` to ``op``."""
    seen, stack = {op}, [op]
    while stack:
        op = stack.pop()
        for s in (*(t._op for t in op._inputs), *op._control_inputs):
            if s is source:
                return True
            if s._id > source._id and s not in seen:
                seen.add(s)
                stack.append(s)
    return False


class _Started:
    """A call on a thread of its own."""

    __slots__ = ("call", "done", "error", "value")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call: Callable[[], Any] | None = call
        self.done = threading.Event()
        self.error: BaseException | None = None
        self.value: Any = None

    def work(self) -> None:
        assert self.call is not None
        try:
            self.value = self.call()
        except BaseException as error:
            self.error = error
        finally:
            self.call = None
            self.done.set()

    def result(self) -> Any:
        self.done.wait()
        if self.error is not None:
            raise self.error
        return self.value


def _serve(jobs: SimpleQueue[_Started]) -> None:
    while True:
        jobs.get().work()
        _idle.append(jobs)


#: The queues of threads that have nothing to do.
_idle: list[SimpleQueue[_Started]] = []


def start(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _Started:
    """Call a function on a thread; returns when it is done, or after ``MAX_WAIT_SECONDS``."""
    return _start(MAX_WAIT_SECONDS, function, args, kwargs)


def start_queue_operation(
    function: Callable[..., Any], /, *args: object, **kwargs: object
) -> _Started:
    """:func:`start` with ``QUEUE_GRACE``."""
    return _start(QUEUE_GRACE, function, args, kwargs)


def _start(
    grace: float, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Started:
    own = [np.array(a) if type(a) is np.ndarray else a for a in args]  # the run goes on to use them
    context = contextvars.copy_context()  # NumPy's error state is in it
    made = _Started(partial(context.run, partial(function, *own, **kwargs)))
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue()
        threading.Thread(target=_serve, args=(jobs,), daemon=True, name="py_func").start()
    jobs.put(made)
    made.done.wait(grace)
    return made
