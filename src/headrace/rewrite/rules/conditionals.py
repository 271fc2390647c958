"""Branches whose predicate is known before the run.

The walk itself drops or inlines the statements (see engine.py); the rule here settles what was
merged from both branches.
"""

from __future__ import annotations

import numpy as np

from headrace.program.nodes import Node
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["merge_of_known"]


def merge_of_known(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """The value of the branch that is taken."""
    known = state.constants.get(node.inputs[0])
    if known is None:
        return None
    taken = bool(known)
    chosen = node.inputs[2 if taken else 1]
    if chosen in state.mutable:
        return state.no("the value is a variable that is written in this run")
    return chosen, state.constant(np.asarray(int(taken), np.int32), node.outputs[1])
