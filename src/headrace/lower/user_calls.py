"""Python functions of one run that may wait for each other: ``tf.py_func``.

TensorFlow runs operations that do not depend on each other at the same time, so two functions may
wait for each other (a producer and a consumer, a barrier). Here a function that another one follows
without depending on it is started on a thread. The run waits ``GRACE`` seconds for it, so that
functions which do not wait run one after the other, in their order; then it goes on, and waits
again where the results are used. Plans with fewer than two such functions are not affected.
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
from headrace.lower.code_expressions import call_kernel
from headrace.lower.code_lines import CodeLines
from headrace.lower.fusion import Fused, PlanBlock, PlanStatement
from headrace.lower.update_groups import Grouped
from headrace.program.nodes import Node

__all__ = ["emit_joins", "emit_start", "independent", "start"]

#: Seconds that a function is waited for before the next one is started.
GRACE = 0.05


def independent(block: PlanBlock) -> frozenset[Operation]:
    """The operations of a block that call the user and that a later such operation does not depend
    on.
    """
    found = [s.op for s in block if isinstance(s, Node) and s.opdef.traits.calls_user]
    if len(found) < 2:
        return frozenset()
    behind = _dependencies(found)
    return frozenset(
        a for n, a in enumerate(found) if any(not behind[b] >> n & 1 for b in found[n + 1 :])
    )


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


def emit_start(code: CodeLines, node: Node, args: list[str]) -> None:
    """The line that starts a Python function on a thread of its own."""
    kernel, _, given = call_kernel(code, node, args).partition("(")
    name = f"j{len(code.joining)}"
    code.joining[name] = node
    code.emit(f"{name} = {code.param('start', start)}({kernel}, {given}", node)


def emit_joins(code: CodeLines, statement: PlanStatement | None) -> None:
    """Lines that wait for the functions whose results a statement takes.

    At the end and before blocks, for all.
    """
    inputs = statement.inputs if isinstance(statement, (Node, Fused, Grouped)) else None
    for name, node in list(code.joining.items()):
        if node is None or (inputs is not None and not set(inputs) & set(node.outputs)):
            continue
        code.joining[name] = None
        names = [code.new(o) for o in node.outputs]
        left = f"{', '.join(names)} = " if names else ""
        code.emit(f"{left}{name}.result()", node)


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
    """Call a function on a thread; returns when it is done, or after ``GRACE`` seconds."""
    own = [np.array(a) if type(a) is np.ndarray else a for a in args]  # the run goes on to use them
    context = contextvars.copy_context()  # NumPy's error state is in it
    made = _Started(partial(context.run, partial(function, *own, **kwargs)))
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue()
        threading.Thread(target=_serve, args=(jobs,), daemon=True, name="py_func").start()
    jobs.put(made)
    made.done.wait(GRACE)
    return made
