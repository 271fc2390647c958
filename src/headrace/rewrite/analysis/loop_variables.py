"""What is known of a loop's variables: lengths that stay what they were before the loop, in every
round.

Nothing is rewritten here. All lengths of all initial values are assumed at once; the shapes of the
next values then follow from the loop's body as it stands. What does not come out as assumed is
dropped, and the rest is looked at again, until all that is left follows from itself: it holds
before the first round, and if it holds before a round it does after it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from headrace.core.shapes import Shape
from headrace.program.nodes import Block, If, LoopValue, Node, While
from headrace.rewrite.analysis.dims import Dim, Dims, Times, dims_of
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["dims_in_rounds"]

#: Loops inside so many others are not looked at: every level is gone through several times.
MAX_LEVELS = 3


def dims_in_rounds(
    loop: While, values: Sequence[LoopValue], state: RewriteState
) -> dict[int, Dims]:
    """The shapes of those loop variables (``values``, with their present ``init``) of which more
    than the static shape is known.
    """
    assumed = _of_initial_values(values, state)
    scratch = _scratch(state) if assumed else state
    is_placed = False
    while assumed:
        scratch.dims, scratch.parts = {**state.dims, **assumed}, dict(state.parts)
        with scratch.inside_loop([v.value for v in loop.values]):
            _trace(loop.test, scratch, is_placed)
            _trace(loop.body, scratch, is_placed)
            left = _confirmed(values, assumed, scratch)
        if left == assumed:
            break
        assumed, is_placed = left, True
    return assumed


def _of_initial_values(values: Sequence[LoopValue], state: RewriteState) -> dict[int, Dims]:
    assumed: dict[int, Dims] = {}
    for v in values:
        shape = state.shape(v.value)
        dims = None if v.init in state.mutable else dims_of(v.init, state)
        if dims is None or (shape is not None and (None not in shape or len(shape) != len(dims))):
            continue
        assumed[v.value] = _named(
            v.value, [None if _is_written_to(d, state) else d for d in dims], shape
        )
    return assumed


def _is_written_to(dim: int | Dim, state: RewriteState) -> bool:
    names = dim.names if isinstance(dim, Times) else (dim,) if isinstance(dim, Dim) else ()
    return any(n.value in state.mutable for n in names)


def _named(value: int, dims: Sequence[Any], shape: Shape) -> Dims:
    """The static shape where it is known, else these lengths.

    None becomes the name that every value has of itself.
    """
    known = [None] * len(dims) if shape is None else shape
    both = [d if k is None else k for d, k in zip(dims, known)]
    return tuple([Dim(value, i) if d is None else d for i, d in enumerate(both)])


def _confirmed(
    values: Sequence[LoopValue], assumed: dict[int, Dims], scratch: RewriteState
) -> dict[int, Dims]:
    left: dict[int, Dims] = {}
    for v in values:
        if v.value not in assumed:
            continue
        before, shape = assumed[v.value], scratch.shape(v.value)
        after = None if v.next in scratch.mutable else dims_of(v.next, scratch)
        if after is not None and len(after) == len(before):
            same = [b if a == b else None for a, b in zip(after, before)]
            left[v.value] = _named(v.value, same, shape)
        elif shape is not None:
            left[v.value] = _named(v.value, [None] * len(shape), shape)
    return left


def _scratch(state: RewriteState) -> RewriteState:
    """A state to find out in: what is placed and found there is forgotten."""
    scratch = copy.copy(state)
    scratch.producers, scratch.makers = dict(state.producers), dict(state.makers)
    scratch.made_at, scratch.replaced = dict(state.made_at), dict(state.replaced)
    scratch.loops, scratch.scopes = list(state.loops), list(state.scopes)
    scratch.guarded = set(state.guarded)
    return scratch


def _trace(block: Block, state: RewriteState, is_placed: bool = False) -> None:
    """Place what is in a block; shapes are found in running order, so that nothing is far back."""
    for s in block:
        if isinstance(s, Node):
            if not is_placed:
                state.place(state.current(s))
            for value in s.outputs:
                shape = state.values[value].shape
                if shape is None or None in shape:
                    dims_of(value, state)
        elif isinstance(s, If):
            state.branches += 1
            _trace(s.body, state, is_placed)
            state.branches -= 1
        else:
            _trace_loop(s, state, is_placed)


def _trace_loop(loop: While, state: RewriteState, is_placed: bool) -> None:
    get = state.replaced.get
    values = [LoopValue(v.value, get(v.init, v.init), get(v.next, v.next)) for v in loop.values]
    if len(state.loops) < MAX_LEVELS:
        state.dims.update(dims_in_rounds(loop, values, state))
    with state.inside_loop([v.value for v in values]):
        _trace(loop.test, state, is_placed)
        _trace(loop.body, state, is_placed)
