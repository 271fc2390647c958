"""How many rounds a loop runs, if that is known before the run, and whether it is written out.

A recurrent network is a loop of small steps: in a loop every product, every read of a TensorArray
and every counter is a step of its own in each round, and nothing is bound to memory. Written out,
the rounds are ordinary steps: indices are constants, lists are values (resolved_lists.py), steps
of an LSTM with one kernel are a layer (lstm_cells.py). The rounds compute what they computed, in
the same order, so every bit stays.

What the test of a loop depends on is followed round by round, with the kernels of the operations:
counters that begin with constants. A loop whose test depends on anything else is left alone.

    rounds_of(loop, state)     # 20, or None (state.reason says why)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headrace.program.binding_times import is_computation, is_function, why_no_computation
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node, While
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["RULE", "may_unroll", "rounds_of", "why_not_unrolled"]

#: The name of the rule.
RULE = "loop written out"
#: More rounds, or more nodes in all of them, are not written out: making the plan would take
#: longer than running the loop many times.
MAX_ROUNDS = 128
MAX_NODES = 3000
#: Elements of a value that the test of a loop may depend on.
MAX_SIZE = 64

Known = dict[int, Any]


def may_unroll(loop: While) -> bool:
    """Whether there is something to gain: products, which want prepared weights and memory."""
    return any(isinstance(s, Node) and s.opdef.role == "matmul" for s in loop.body)


def rounds_of(loop: While, state: RewriteState) -> int | None:
    """The number of rounds of a loop that is to be written out."""
    if not may_unroll(loop) or state.loops or state.branches:
        return None
    why = why_not_unrolled(loop)
    if why is not None:
        return state.no(why)
    rounds, nodes = _count(loop, state), len(loop.test) + len(loop.body)
    if isinstance(rounds, str):
        return state.no(f"the number of its rounds is not known before the run: {rounds}")
    if not rounds or rounds * nodes > MAX_NODES:
        return state.no(f"{rounds} rounds of {nodes} operations would be too many")
    return rounds


def why_not_unrolled(loop: While) -> str | None:
    """What in a loop forbids writing it out, however many rounds it has."""
    for s in (*loop.test, *loop.body):
        why = _why_not(s) if isinstance(s, Node) else "there are branches or loops in it"
        if why is not None:
            return why
    return None


def _why_not(node: Node) -> str | None:
    if node.opdef.traits.stored and node.opdef.name.startswith("Stack"):
        return "a gradient keeps values of its rounds"
    if is_function(node) or node.opdef.traits.stored:
        return None
    return f"{node.op.name} ({node.opdef.name}) has effects"


def _count(loop: While, state: RewriteState) -> int | str:
    """Follow the test round by round; why that is not possible."""
    needed = _needed(loop)
    test, body = (
        [
            (n, bound_kernel(n))
            for n in block
            if isinstance(n, Node) and not needed.isdisjoint(n.outputs)
        ]
        for block in (loop.test, loop.body)
    )
    get = state.replaced.get
    now: Known = {}
    for v in loop.values:
        constant = state.constants.get(get(v.init, v.init)) if v.value in needed else None
        if constant is not None:
            now[v.value] = constant
    for rounds in range(MAX_ROUNDS + 1):
        why = _evaluate(test, now, state)
        if why:
            return why
        if loop.cond not in now:
            return "its condition is given from outside"
        if not bool(now[loop.cond]):
            return rounds
        why = _evaluate(body, now, state)
        if why:
            return why
        now = {v.value: now[v.next] for v in loop.values if v.value in needed and v.next in now}
    return f"there are more than {MAX_ROUNDS}"


def _needed(loop: While) -> set[int]:
    """The values that the test depends on, in all rounds."""
    made = {o: s for s in (*loop.test, *loop.body) if isinstance(s, Node) for o in s.outputs}
    following = {v.value: v.next for v in loop.values}
    needed: set[int] = set()
    stack = [loop.cond]
    while stack:
        value = stack.pop()
        if value in needed:
            continue
        needed.add(value)
        if value in following:
            stack.append(following[value])
        elif value in made:
            stack.extend(made[value].inputs)
    return needed


def _evaluate(nodes: Iterable[tuple[Node, Any]], now: Known, state: RewriteState) -> str:
    """Add what the nodes make to ``now``; why one of them is not known, empty if all are."""
    get = state.replaced.get
    for node, kernel in nodes:
        name = f"{node.op.name} ({node.opdef.name})"
        if not is_computation(node) or node.opdef.traits.reads:
            return f"{name} {why_no_computation(node.opdef) or 'takes a variable'}"
        given = [now[i] if i in now else state.constants.get(get(i, i)) for i in node.inputs]
        if any(g is None for g in given):
            return f"{name} takes what the run gives"
        if any(g.size > MAX_SIZE for g in given):  # type: ignore[union-attr]
            return f"{name} takes more than {MAX_SIZE} elements"
        try:
            with np.errstate(all="ignore"):
                result = kernel(*given)
        except Exception as error:  # it belongs to the run
            return f"{name} fails: {type(error).__name__}: {error}".splitlines()[0]
        results = result if len(node.outputs) > 1 else (result,)
        now.update(zip(node.outputs, [np.asarray(r) for r in results]))
    return ""
