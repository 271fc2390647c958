"""The gradient of a concatenation is cut into its parts: where they begin and how long they are is
known before the run.

slice(g, concat_offset(1, shapes)[1], shapes[1]) -> slice(g, [0, 200], [-1, 200])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import INDEX, dims_of, parts_of
from headrace.rewrite.rewrite_state import RewriteState

if TYPE_CHECKING:
    from headrace.rewrite.analysis.dims import Dim

__all__ = ["part_of_joined"]


def part_of_joined(node: Node, state: RewriteState) -> Node | None:
    """A slice whose bounds are computed from shapes gets constant ones.

    -1 stands for an axis that is certainly taken whole.
    """
    source, begin, size = node.inputs
    if (begin in state.constants and size in state.constants) or state.dtype(begin) not in INDEX:
        return None
    starts, sizes, dims = parts_of(begin, state), parts_of(size, state), dims_of(source, state)
    if (
        starts is None
        or sizes is None
        or dims is None
        or not len(starts) == len(sizes) == len(dims)
    ):
        return None
    if any(type(s) is not int for s in starts):
        return state.no("the lengths of the parts before are not known")
    taken = [_length(*axis) for axis in zip(starts, sizes, dims)]
    if None in taken:
        return state.no("two lengths are not known to be equal")
    kind = state.dtype(begin)
    bounds = [state.new_constant(np.asarray(b, kind.np_dtype), kind) for b in (starts, taken)]
    return Node(node.opdef, (source, *bounds), node.outputs, node.attrs, node.op)


def _length(start: int, size: int | Dim, whole: int | Dim) -> int | None:
    if type(size) is int:
        return size
    return -1 if start == 0 and size == whole else None
