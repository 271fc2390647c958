"""The order of steps in the body of a loop: stored values are read first.

A gradient's loop takes what the forward loop kept from stacks, each value just before its first
use. A read is no part of a native segment (segment_cuts.py), so it would cut the element-wise work
of a cell into pieces of one or two steps. It is moved ahead of the pure steps before it, if none of
them makes its inputs:

    a = pop(s); b = f(a); c = pop(t); d = g(b, c)
    a = pop(s); c = pop(t); b = f(a); d = g(b, c)    # after

Steps with effects, reads among them, keep their order.
"""

from __future__ import annotations

from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanStatement, PlanWhile
from headrace.program.binding_times import is_computation
from headrace.program.nodes import Node

__all__ = ["read_first"]


def read_first(block: PlanBlock, in_loop: bool = False) -> PlanBlock:
    """The block with the reads of its loops' bodies moved ahead of pure steps."""
    out: list[PlanStatement] = []
    for s in block:
        if isinstance(s, PlanWhile):
            s = s._replace(body=read_first(s.body, in_loop=True))
        elif isinstance(s, PlanIf):
            s = s._replace(body=read_first(s.body, in_loop))
        out.append(s)
    return _moved(out) if in_loop else tuple(out)


def _moved(block: list[PlanStatement]) -> PlanBlock:
    out: list[PlanStatement] = []
    reads: list[PlanStatement] = []
    pure: list[PlanStatement] = []
    made: set[int] = set()
    for s in block:
        if isinstance(s, Node) and _is_read(s) and made.isdisjoint(s.inputs):
            reads.append(s)
        elif isinstance(s, Fused):
            pure.append(s)
            made.add(s.output)
        elif isinstance(s, Node) and is_computation(s):
            pure.append(s)
            made.update(s.outputs)
        else:
            out += [*reads, *pure, s]
            reads, pure, made = [], [], set()
    return (*out, *reads, *pure)


def _is_read(node: Node) -> bool:
    return node.opdef.traits.stored == "read" and bool(node.outputs) and not node.writes
