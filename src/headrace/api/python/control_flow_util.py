"""``tensorflow.python.ops.control_flow_util``: questions about where an operation is."""

from __future__ import annotations

from typing import Any

__all__ = ["GetContainingWhileContext", "GraphOrParentsInXlaContext", "IsInWhileLoop"]


def _context_of(op: object) -> Any:
    return getattr(op, "_context", None)


def GetContainingWhileContext(ctxt: object, stop_ctxt: object = None) -> Any:
    """The innermost while loop around a control-flow context, or None."""
    while ctxt is not None:
        if getattr(ctxt, "is_while", False) or type(ctxt).__name__.startswith("While"):
            return ctxt
        if ctxt is stop_ctxt:
            return None
        ctxt = getattr(ctxt, "outer_context", None) or getattr(ctxt, "outer", None)
    return None


def IsInWhileLoop(op: object) -> bool:
    return GetContainingWhileContext(_context_of(op)) is not None


def GraphOrParentsInXlaContext(graph: object) -> bool:
    return False
