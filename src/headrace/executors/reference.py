"""One op at a time, no rewrites, no reuse.

The living definition that the other executors are tested against. As in generated code, Ctrl-C
comes before the first write of a run or after its last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.lower.executable import Executable, Options
from headrace.lower.plan import Plan
from headrace.lower.session_state import RunContext, State
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Block, If, Node, Program, Statement, While
from headrace.runtime.interrupts import protect, uninterrupted

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["make_reference"]


class _Located(Exception):
    """Carries the failing operation out of the interpreter."""

    def __init__(self, op: Any, inputs: list[Any], original: BaseException) -> None:
        super().__init__(op.name)
        self.op = op
        self.inputs = inputs
        self.original = original


def make_reference(plan: Plan, options: Options) -> Executable:
    program = plan.program
    parts = _around_writes(program.body)

    def run(state: State, values: dict[str, Any], *feeds: Array | np.generic) -> tuple[Any, ...]:
        return _Interpreter(program, state).run(feeds, parts)

    def locate(error: BaseException) -> tuple[Any, list[Any]] | None:
        return (error.op, error.inputs) if isinstance(error, _Located) else None

    return Executable(run, plan, options, locate)


def _around_writes(body: Block) -> tuple[Block, Block, Block]:
    """What comes before the first write, from the first to the last, and after the last one."""
    writing = [n for n, s in enumerate(body) if _writes(s)]
    if not writing:
        return body, (), ()
    first, end = writing[0], writing[-1] + 1
    return body[:first], body[first:end], body[end:]


def _writes(statement: Statement) -> bool:
    stack = [statement]
    while stack:
        s = stack.pop()
        if isinstance(s, Node):
            if s.writes:
                return True
        elif isinstance(s, If):
            stack.extend(s.body)
        else:
            stack.extend([*s.test, *s.body])
    return False


class _Interpreter:
    def __init__(self, program: Program, state: State) -> None:
        self.program = program
        self.state = state
        self.rt = RunContext(state)
        self.env: dict[int, Any] = dict(program.constants)
        self.variables: dict[int, tuple[int, bool]] = {}
        for n, v in enumerate(program.variables):
            self.variables[v.start] = (n, True)
            self.variables[v.current] = (n, False)

    def run(self, feeds: tuple[Any, ...], parts: tuple[Block, Block, Block]) -> tuple[Any, ...]:
        for value, given in zip(self.program.feeds, feeds):
            self.env[value] = given
        for v in self.program.variables:
            held = self.state.raw(v.key)
            self.env[v.start] = self.env[v.current] = None if held is None else np.array(held)
        before, writes, after = parts
        self.block(before)
        if writes:
            protect()
            self.whole_block(writes)
        self.block(after)
        return tuple(None if f is None else self.owned(f) for f in self.program.fetches)

    def owned(self, value: int) -> Any:
        try:
            result = self.get(value, None)
        except UnboundLocalError as error:
            tensor = self.program.values[value].tensor
            if tensor is None:
                raise
            raise _Located(tensor._op, [], error) from error
        if self.program.values[value].dtype in (dtypes.resource, dtypes.variant):
            return result
        array = np.array(result)
        return array[()] if array.ndim == 0 else array

    def get(self, value: int, node: Node | None) -> Any:
        found = self.env.get(value)
        if found is None:
            known = self.variables.get(value)
            if known is not None:
                info = self.program.variables[known[0]]
                if node is not None and node.opdef.traits.uninit_ok:
                    return self.state.raw(info.key)
                return self.state.need(info.key, info.op)
            if known is None and value not in self.env:
                raise UnboundLocalError("value was not computed")
        return found

    @uninterrupted
    def whole_block(self, block: Block) -> None:
        self.block(block)

    def block(self, block: Block) -> None:
        for s in block:
            if isinstance(s, Node):
                self.node(s)
            elif isinstance(s, If):
                if bool(self.get(s.pred, None)) == s.branch:
                    self.block(s.body)
            else:
                self.loop(s)

    def loop(self, s: While) -> None:
        for v, held in [(v, self.get(v.init, None)) for v in s.values]:
            self.env[v.value] = held
        while True:
            self.block(s.test)
            if not self.get(s.cond, None):
                return
            self.block(s.body)
            for v, held in [(v, self.get(v.next, None)) for v in s.values]:
                self.env[v.value] = held

    def node(self, node: Node) -> None:
        if node.opdef.role == "merge":
            taken = bool(self.get(node.inputs[0], None))
            self.env[node.outputs[0]] = self.get(node.inputs[2 if taken else 1], None)
            self.env[node.outputs[1]] = np.int32(taken)
            return
        inputs: list[Any] = []
        try:
            inputs = [
                None if i in node.opdef.traits.writes else self.get(v, node)
                for i, v in enumerate(node.inputs)
            ]
            self.compute(node, inputs)
        except Exception as error:
            raise _Located(node.op, inputs, error) from error

    def compute(self, node: Node, inputs: list[Any]) -> None:
        opdef = node.opdef
        kernel = bound_kernel(node)
        extra = {"rt": self.rt} if "rt" in opdef.kernel_params else {}
        if node.writes:
            self.write(node, inputs, kernel, extra)
            return
        result = kernel(*inputs, **extra)
        results = result if len(node.outputs) > 1 else (result,)
        for o, r in zip(node.outputs, results):
            self.env[o] = r

    def write(
        self, node: Node, inputs: list[Any], kernel: Callable[..., Any], extra: dict[str, Any]
    ) -> None:
        with self.state.lock:
            for i, w in zip(node.opdef.traits.writes, node.writes):
                info = self.program.variables[w]
                inputs[i] = self.state.raw(info.key)
                if inputs[i] is None and not node.opdef.traits.uninit_ok:
                    self.state.need(info.key, info.op)
            result = kernel(*inputs, **extra)
            results = result if isinstance(result, tuple) else (result,)
            for w, r in zip(node.writes, results):
                info = self.program.variables[w]
                if r is None:  # the variable is gone
                    self.state.drop(info.key)
                else:
                    self.state.set(info.key, np.array(r))
                self.env[info.current] = None if r is None else np.array(r)
        rest = iter(results[len(node.writes) :])
        for o, t in zip(node.outputs, node.op._outputs):
            self.env[o] = np.array(results[0]) if t._dtype._is_ref else next(rest)
