"""Program: the part of a graph that one call needs, structured and immutable.

A program is a block of statements over numbered values. A statement is a :class:`Node` (one op), an
:class:`If` (nodes under a predicate) or a :class:`While`. All blocks share one numbering: a value
made inside a branch or loop body may be used by any later statement that runs only if that branch
ran.

Every variable has two values: ``start``, what it was before the run, and ``current``, what the last
write made of it. Which of them a read means is decided when the program is built (see snapshot.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Union

from headrace.core.dtypes import DType
from headrace.core.opdef import OpDef
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.packed_weights import WeightsForm
from headrace.program.constants import Constants

__all__ = [
    "Block",
    "Firing",
    "If",
    "LoopValue",
    "NearMiss",
    "Node",
    "Program",
    "Statement",
    "ValueInfo",
    "VariableInfo",
    "While",
    "count_uses",
    "walk",
]


class ValueInfo(NamedTuple):
    """What is known of a value: its type and static shape, and the user's tensor it stands for."""

    dtype: DType
    shape: Shape
    tensor: Tensor | None


class VariableInfo(NamedTuple):
    """A variable that the program reads or writes."""

    key: str
    name: str
    dtype: DType
    op: Operation
    start: int
    current: int
    written: bool


class Node(NamedTuple):
    """One operation.

    ``writes`` names the variables (by number) that get new values, in the kernel's order.
    """

    opdef: OpDef
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: dict[str, Any]
    op: Operation
    writes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.op.name


class If(NamedTuple):
    """Statements that run when ``pred`` is ``branch``."""

    pred: int
    branch: bool
    body: Block


class LoopValue(NamedTuple):
    """A loop variable.

    ``value`` holds it in the loop and afterwards, starting with ``init``, then ``next``.
    """

    value: int
    init: int
    next: int


class While(NamedTuple):
    """``values = inits; loop: test; if not cond: leave; body; values = nexts``."""

    values: tuple[LoopValue, ...]
    test: Block
    cond: int
    body: Block
    op: Operation


Statement = Union[Node, If, While]
Block = tuple[Statement, ...]


class Firing(NamedTuple):
    """A rewrite that was made: the rule, and the operation at which its pattern ended."""

    rule: str
    op: str


class NearMiss(NamedTuple):
    """A rewrite that was not made though its pattern was there, and why."""

    rule: str
    op: str
    why_not: str


class Program(NamedTuple):
    """What a call needs: feeds in, fetches out, in between a block."""

    feeds: tuple[int, ...]
    fetches: tuple[int | None, ...]  # None: an operation that is run for its effect
    body: Block
    values: list[ValueInfo]
    constants: Constants
    variables: tuple[VariableInfo, ...]
    total_ops: int = 0  # operations in the user's graph
    needed_ops: int = 0  # those that this call needs
    notes: dict[str, int] = {}  # how often each rewrite fired (never changed, only replaced)
    effects: tuple[
        int, ...
    ] = ()  # values of fetched operations: computed though nothing reads them
    firings: tuple[Firing, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    weights_form: WeightsForm | None = None  # how weights of another type than float32 are used
    borrowed: bool = False  # callers never write to what is returned: it need not be a copy

    @property
    def writes(self) -> bool:
        """Whether it writes a variable."""
        return any([v.written for v in self.variables])


def walk(block: Block) -> Iterator[Node]:
    """Every node, blocks inside blocks included."""
    stack: list[Iterator[Statement]] = [iter(block)]
    while stack:
        for statement in stack[-1]:
            if isinstance(statement, Node):
                yield statement
            elif isinstance(statement, If):
                stack.append(iter(statement.body))
                break
            else:
                stack.append(iter(statement.test + statement.body))
                break
        else:
            stack.pop()


def count_uses(program: Program) -> dict[int, int]:
    """How many inputs each value is.

    Fetches, effects and the steering of branches and loops count twice.
    """
    uses: dict[int, int] = {}

    def use(value: int, times: int = 1) -> None:
        uses[value] = uses.get(value, 0) + times

    for f in (*program.fetches, *program.effects):
        if f is not None:
            use(f, 2)
    stack: list[Statement] = list(program.body)
    while stack:
        s = stack.pop()
        if isinstance(s, Node):
            for i in s.inputs:
                uses[i] = uses.get(i, 0) + 1
        elif isinstance(s, If):
            use(s.pred, 2)
            stack.extend(s.body)
        else:
            for v in s.values:
                use(v.init, 2)
                use(v.next, 2)
            use(s.cond, 2)
            stack.extend(s.test)
            stack.extend(s.body)
    return uses
