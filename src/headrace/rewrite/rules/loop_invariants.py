"""What a loop computes anew in every round though nothing in it changes is computed once, before
the loop.

Only what cannot fail is moved out of a body: a loop that runs no round must not raise what it never
computed. The test runs at least once, so anything pure may be moved out of it. Loop variables that
stay what they were are settled by the walk (see engine.py).
"""

from __future__ import annotations

from headrace.core import shapes
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import dims_of
from headrace.rewrite.rewrite_state import RewriteState, is_pure

__all__ = ["invariant"]

#: Larger results stay where they are: kept through the loop they would add to what it needs at
#: once.
MAX_BYTES = 64 << 20


def invariant(node: Node, state: RewriteState) -> Node | None:
    """Move a node out of as many loops as it may leave."""
    made_at, loops = state.made_at, state.loops
    depth = max((made_at.get(i, 0) for i in node.inputs), default=0)
    if depth >= len(loops) or loops[-1].branches != state.branches:
        return None
    if not node.inputs or not is_pure(node) or not state.mutable.isdisjoint(node.inputs):
        return None
    if _bytes(node, state) > MAX_BYTES:
        return state.no("the result is too large to be kept through the loop")
    if not loops[-1].in_test and not _cannot_fail(node, state):
        return state.no("it might fail, which a loop that runs no round must not")
    target = len(loops) - 1
    while target > depth and loops[target - 1].branches == loops[target].branches:
        target -= 1
        if not _cannot_fail(node, state):
            target += 1
            break
    state.move_out(node, target)
    return node


def _bytes(node: Node, state: RewriteState) -> int:
    total = 0
    for o in node.outputs:
        n = shapes.num_elements(state.shape(o))
        total += (n or 0) * state.dtype(o).size
    return total


def _cannot_fail(node: Node, state: RewriteState) -> bool:
    fails = node.opdef.traits.fails
    if fails == "never":
        return True
    given = [dims_of(i, state) for i in node.inputs]
    if any(g is None for g in given):
        return False
    if fails == "shapes":
        return _broadcast_for_sure(given)
    if node.opdef.role == "matmul":
        a, b = given[0], given[1]
        assert a is not None and b is not None
        if len(a) != 2 or len(b) != 2:
            return False
        return bool(
            a[0 if node.attrs["transpose_a"] else 1] == b[1 if node.attrs["transpose_b"] else 0]
        )
    # the rest fails for shapes alone, which were checked when the operation was made if they were
    # all known
    complete = all(shapes.known(state.shape(v)) is not None for v in (*node.inputs, *node.outputs))
    return fails == "arguments" and complete and all(i in state.constants for i in node.inputs[1:])


def _broadcast_for_sure(given: list[tuple[object, ...] | None]) -> bool:
    for axis in range(1, 1 + max(len(g) for g in given if g is not None)):
        found = {g[-axis] for g in given if g is not None and len(g) >= axis} - {1}
        if len(found) > 1:
            return False
    return True
