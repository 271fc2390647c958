"""The pass ``storage`` over a listing: what is overwritten, and when memory is let go.

Where no shape is known, a result gets an array of its own, unless an input that nothing reads any
more certainly has its shape: then it is written there (``Instr.storage``). Large values are let go
after their last use (``Instr.ends``), and what the run has made itself goes to the pool of buffers.

    place_results(instrs, plan.program, plan.lives)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from headrace.core import shapes
from headrace.lower.fusion import Fused
from headrace.lower.listing import IN_PLACE, VARIABLE, After, Instr, Storage
from headrace.lower.storage_lifetimes import Lifetimes
from headrace.program.nodes import Node, Program
from headrace.runtime import buffers

__all__ = ["place_results"]

_SHORT_ROW = 16
_MIN_REUSED = 4096  # elements below which reuse of a buffer gains nothing

_size = functools.lru_cache(1024)(shapes.num_elements)


def place_results(
    instrs: Sequence[Instr], program: Program, lives: Lifetimes, position: int = 0
) -> None:
    """Decide the storage of every instruction; ``position`` is the first one's (see
    storage_lifetimes.py).
    """
    work = _Placing(program, lives, position)
    for instr in instrs:
        work.instruction(instr)


class _Placing:
    def __init__(self, program: Program, lives: Lifetimes, position: int) -> None:
        self.program, self.lives, self.position = program, lives, position
        self.blocks = [0]  # the blocks around an instruction, by number
        self.n_blocks = 1
        self.made_in: dict[int, int] = {}  # the block that makes a value

    def instruction(self, instr: Instr) -> None:
        blocks = self.blocks
        if len(blocks) != instr.depth + 1:
            del blocks[instr.depth + 1 :]
            while len(blocks) <= instr.depth:
                blocks.append(self.n_blocks)
                self.n_blocks += 1
        step = instr.source
        if step is None or instr.op == "segment":
            if instr.op in ("while", "next"):
                self.position += 1
            return
        of = -1
        if isinstance(step, Fused):
            of = self._fused_over(step)
        elif instr.storage is VARIABLE:
            if isinstance(step, Node) and step.opdef.role == "assign":
                instr.takes_over = self._all_given_up(step)
        elif isinstance(step, Node) and (instr.text or instr.implementation == "kernel"):
            of = self._node_over(step)
        block = blocks[-1]
        if of >= 0:
            instr.storage = Storage(IN_PLACE, of)
            if isinstance(step, Node):  # (a group's result has a name of its own)
                block = self.made_in.pop(of, -1)
        for o in instr.outputs:
            self.made_in[o] = block
        if instr.op == "join":
            return
        self._end(instr, of)
        self.position += 1

    def _node_over(self, node: Node) -> int:
        """An input that dies here and certainly has the result's shape, for ops with an ``out=``
        form; -1 if there is none.
        """
        if node.opdef.traits.into is None or len(node.outputs) != 1:
            return -1
        values = self.program.values
        info = values[node.outputs[0]]
        if not info.shape or info.dtype._kind not in "fiuc":
            return -1
        n = _size(info.shape)
        if n is not None and n < _MIN_REUSED:
            return -1
        for k, value in enumerate(node.inputs):
            if (
                self.lives.reusable(value, self.position)
                and values[value].dtype is info.dtype
                and self._covers(node, k)
            ):
                return value
        return -1

    def _covers(self, node: Node, k: int) -> bool:
        """Input k certainly has the broadcast shape of all inputs."""
        values, value = self.program.values, node.inputs[k]
        mine = values[value].shape
        if mine is None or values[node.outputs[0]].shape != mine:
            return False
        return all(i == value or shapes.covers(mine, values[i].shape) for i in node.inputs)

    def _fused_over(self, step: Fused) -> int:
        """The input of a group that its result is written over; -1 if there is none."""
        lives, values = self.lives, self.program.values
        out = values[step.output]
        for v in step.inputs:
            if (
                lives.reusable(v, self.position)
                and not any(w != v and lives.root(w) == lives.root(v) for w in step.inputs)
                and values[v].dtype is out.dtype
                and values[v].shape == out.shape
            ):
                return v
        return -1

    def _all_given_up(self, node: Node) -> bool:
        """Whether nobody but this assignment reads what it is given."""
        others = [v for i, v in enumerate(node.inputs) if i not in node.opdef.traits.writes]
        return all(self.lives.reusable(v, self.position) for v in others)

    def _end(self, instr: Instr, of: int) -> None:
        """What the step reads last.

        Small values go when their name is used again; views are let go as well, since one of a
        variable keeps it from being overwritten.
        """
        last, position = self.lives.last, self.position
        overwritten = of if isinstance(instr.source, Node) else -1  # its name is the result's
        ends: dict[int, After] = {}
        for v in instr.inputs:
            if last.get(v) == position and v != overwritten and v not in ends:
                ends[v] = self._after(v)
        if ends:
            instr.ends = tuple(ends.items())
            for v in ends:
                self.made_in.pop(v, None)

    def _after(self, value: int) -> After:
        if self._is_small(value):
            return After.NAME
        # (what a group has overwritten has a second holder: the pool leaves it alone)
        return After.POOL if self._may_be_pooled(value) else After.CLEAR

    def _is_small(self, value: int) -> bool:
        """A few elements in all, or a few in each row of a batch: not worth a line."""
        shape = self.program.values[value].shape
        size = _size(shape)
        if size is not None:
            return size < _MIN_REUSED
        row = _size(shape[1:]) if shape else None
        return row is not None and row <= _SHORT_ROW

    def _may_be_pooled(self, value: int) -> bool:
        """Memory of the run's own, large enough to be used again, and certainly there (a branch
        that was not taken makes nothing).
        """
        info = self.program.values[value]
        if (
            value not in self.lives.fresh
            or self.made_in.get(value) != self.blocks[-1]
            or info.dtype._kind not in "fiucb"
            or info.shape == ()
        ):
            return False
        size = _size(info.shape)
        return size is None or size * info.dtype.size >= buffers.MIN_BYTES
