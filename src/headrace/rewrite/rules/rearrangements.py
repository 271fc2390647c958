"""Operations that only rename, rearrange or repeat: those that change nothing go, two in a row
become one.

A rule here never drops a check that could fail: a reshape goes only if the shapes are certainly
equal, a slice only if it certainly takes everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.core import dtypes
from headrace.core.opdef import lookup
from headrace.program.constants import one_integer
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import dims_after, dims_of, parts_of, product_of, quotient
from headrace.rewrite.rewrite_state import RewriteState

__all__ = [
    "cast_chain",
    "gathered",
    "nothing_to_do",
    "pass_through",
    "reduces_nothing",
    "repeated_reshape",
    "repeated_transpose",
    "transposed_factor",
]


def pass_through(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Operations that only pass their inputs on."""
    if not state.mutable.isdisjoint(node.inputs):
        return state.no("the variable is written in this run, and the copy keeps its value")
    return node.inputs


def gathered(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Joining or splitting one part: ConcatV2 of one, AddN of one, Split in one."""
    name = node.opdef.name
    parts = {
        "ConcatV2": node.inputs[:-1],
        "Concat": node.inputs[1:],
        "AddN": node.inputs,
        "Split": node.inputs[1:],
        "SplitV": node.inputs[:1],
    }[name]
    if len(parts) != 1 or len(node.outputs) != 1 or parts[0] in state.mutable:
        return None
    if name == "AddN":
        return parts
    # the axis (and the sizes of the parts) are checked by the kernel: only what is known to pass
    # may go
    rank = state.rank(parts[0])
    at = {"ConcatV2": -1, "Concat": 0, "Split": 0, "SplitV": 2}[name]
    axis = one_integer(state.constants, node.inputs[at])
    if not rank or axis is None or not -rank <= axis < rank:
        return None
    if name == "SplitV":
        sizes, dims = state.constants.get(node.inputs[1]), dims_of(parts[0], state)
        if sizes is None or dims is None:
            return None
        if int(sizes.reshape(-1)[0]) not in (-1, dims[axis]):
            return None
    return parts


def nothing_to_do(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Casts, transposes, reshapes, slices, paddings and repetitions that change nothing."""
    source = node.inputs[0]
    if source in state.mutable or not _CHANGES_NOTHING[node.opdef.name](node, state):
        return None
    return (source,)


def _same_type(node: Node, state: RewriteState) -> bool:
    return node.attrs["SrcT"] is node.attrs["DstT"]


def _in_order(node: Node, state: RewriteState) -> bool:
    perm, rank = state.constants.get(node.inputs[1]), state.rank(node.inputs[0])
    if node.opdef.name == "ConjugateTranspose" and state.dtype(node.inputs[0])._kind == "c":
        return False
    if rank is not None and rank <= 1 and perm is not None and perm.size == rank:
        return True
    return perm is not None and rank == perm.size and perm.tolist() == list(range(perm.size))


def _same_reshape(node: Node, state: RewriteState) -> bool:
    dims, parts = dims_of(node.inputs[0], state), parts_of(node.inputs[1], state)
    if dims is None or parts is None or len(dims) != len(parts):
        return False
    if -1 in parts:
        left = quotient(dims, parts)
        parts = tuple([left if p == -1 else p for p in parts])
    return dims == parts


def _same_broadcast(node: Node, state: RewriteState) -> bool:
    dims, parts = dims_of(node.inputs[0], state), parts_of(node.inputs[1], state)
    return dims is not None and dims == parts


def _pads_nothing(node: Node, state: RewriteState) -> bool:
    known, rank = state.constants.get(node.inputs[1]), state.rank(node.inputs[0])
    return known is not None and known.shape == (rank, 2) and not known.any()


def _tiles_once(node: Node, state: RewriteState) -> bool:
    known, rank = state.constants.get(node.inputs[1]), state.rank(node.inputs[0])
    return known is not None and known.shape == (rank,) and bool((known == 1).all())


def _slices_all(node: Node, state: RewriteState) -> bool:
    begin, dims = state.constants.get(node.inputs[1]), dims_of(node.inputs[0], state)
    sizes = parts_of(node.inputs[2], state)
    if begin is None or dims is None or sizes is None or begin.any() or len(sizes) != len(dims):
        return False
    return all(size in (-1, d) for size, d in zip(sizes, dims))


def _strides_over_all(node: Node, state: RewriteState) -> bool:
    a, dims = node.attrs, dims_of(node.inputs[0], state)
    begin, end, step = (state.constants.get(i) for i in node.inputs[1:])
    if a["ellipsis_mask"] or a["new_axis_mask"] or a["shrink_axis_mask"] or dims is None:
        return False
    if begin is None or end is None or step is None or begin.size > len(dims):
        return False
    for i, (lo, hi, by) in enumerate(zip(begin.tolist(), end.tolist(), step.tolist())):
        if by != 1 or (lo != 0 and not a["begin_mask"] >> i & 1):
            return False
        if not a["end_mask"] >> i & 1 and not (type(dims[i]) is int and hi >= dims[i]):
            return False
    return True


def _ensured(node: Node, state: RewriteState) -> bool:
    wanted, have = node.attrs["shape"], state.shape(node.inputs[0])
    if wanted is None:
        return True
    return (
        have is not None
        and len(have) == len(wanted)
        and all(w is None or w == h for w, h in zip(wanted, have))
    )


def _has_nothing_to_squeeze(node: Node, state: RewriteState) -> bool:
    shape = state.shape(node.inputs[0])
    return not node.attrs["squeeze_dims"] and shape is not None and not {None, 1} & set(shape)


def reduces_nothing(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """A sum or mean of floats over nothing: as they are computed, -0.0 becomes 0.0."""
    source = node.inputs[0]
    if source in state.mutable or state.dtype(source).is_integer:
        return None
    return (source,) if _axes_without_length(node, state) else None


def _sums_nothing(node: Node, state: RewriteState) -> bool:
    return state.dtype(node.inputs[0]).is_integer and _axes_without_length(node, state)


def _axes_without_length(node: Node, state: RewriteState) -> bool:
    """A reduction over no axis, or over axes of length 1 that are kept."""
    axes, dims = state.constants.get(node.inputs[1]), dims_of(node.inputs[0], state)
    if axes is None or dims is None:
        return False
    if axes.size == 0:
        return True
    if not node.attrs["keep_dims"] or not all(
        -len(dims) <= a < len(dims) for a in axes.reshape(-1)
    ):
        return False
    return all(dims[int(a)] == 1 for a in axes.reshape(-1))


def _reverses_nothing(node: Node, state: RewriteState) -> bool:
    axes, dims = state.constants.get(node.inputs[1]), dims_of(node.inputs[0], state)
    if (
        axes is None
        or dims is None
        or not all(-len(dims) <= a < len(dims) for a in axes.reshape(-1))
    ):
        return False
    return all(dims[int(a)] == 1 for a in axes.reshape(-1))


_CHANGES_NOTHING: dict[str, Any] = {
    "Cast": _same_type,
    "Transpose": _in_order,
    "ConjugateTranspose": _in_order,
    "Reshape": _same_reshape,
    "BroadcastTo": _same_broadcast,
    "Pad": _pads_nothing,
    "PadV2": _pads_nothing,
    "MirrorPad": _pads_nothing,
    "Tile": _tiles_once,
    "Slice": _slices_all,
    "StridedSlice": _strides_over_all,
    "EnsureShape": _ensured,
    "Squeeze": _has_nothing_to_squeeze,
    "Sum": _sums_nothing,
    "Mean": _sums_nothing,
    "Max": _axes_without_length,
    "Min": _axes_without_length,
    "Prod": _axes_without_length,
    "ReverseV2": _reverses_nothing,
}
CHANGES_NOTHING = tuple(_CHANGES_NOTHING)


# two in a row -----------------------------------------------------------------------------------


def _read_early(node: Node, state: RewriteState) -> bool:
    """Its inputs are what they were when it ran."""
    return state.mutable.isdisjoint(node.inputs)


def repeated_transpose(node: Node, state: RewriteState) -> tuple[int, ...] | Node | None:
    """A transpose of a transpose is one transpose, or none."""
    inner = state.producers.get(node.inputs[0])
    if inner is None or inner.opdef is not node.opdef or not _read_early(inner, state):
        return None
    outer_perm, inner_perm = (state.constants.get(n.inputs[1]) for n in (node, inner))
    if outer_perm is None or inner_perm is None or outer_perm.shape != inner_perm.shape:
        return None
    perm = inner_perm[outer_perm]
    conjugated = node.opdef.name == "ConjugateTranspose"
    if perm.tolist() == list(range(perm.size)):
        return inner.inputs[:1]
    opdef = lookup("Transpose") if conjugated else node.opdef
    order = state.new_constant(perm.astype(np.int32), dtypes.int32)
    return Node(
        opdef,
        (inner.inputs[0], order),
        node.outputs,
        {**node.attrs, "Tperm": dtypes.int32},
        node.op,
    )


def repeated_reshape(node: Node, state: RewriteState) -> tuple[int, ...] | Node | None:
    """A reshape of a reshape (or of a squeeze, or of an expand_dims) needs the last shape only."""
    inner = state.producers.get(node.inputs[0])
    if inner is None or not _read_early(inner, state):
        return None
    if not (inner.opdef.traits.whole and inner.opdef.traits.rearranges):
        return None
    source = inner.inputs[0]
    after, before = dims_after(node, state), dims_of(source, state)
    if after is not None and after == before:
        return (source,)  # squeeze(expand_dims(x))
    if node.opdef.name != "Reshape" or inner.opdef.name != "Reshape":
        return None
    if not state.once(node.inputs[0]) and not _is_matrix(node, state):
        return None  # the inner one is needed anyway: nothing is gained
    parts = parts_of(inner.inputs[1], state)
    if parts is None or before is None or not _fits(before, parts):
        return state.no("the inner shape may be wrong for its input, which would go unnoticed")
    return Node(node.opdef, (source, node.inputs[1]), node.outputs, node.attrs, node.op)


def _is_matrix(node: Node, state: RewriteState) -> bool:
    return state.rank(node.outputs[0]) == 2


def _fits(dims: Any, parts: Any) -> bool:
    """A reshape to ``parts`` cannot fail, whatever is fed."""
    if -1 in parts:
        return quotient(dims, parts) is not None
    return product_of(dims) == product_of(parts)


def cast_chain(node: Node, state: RewriteState) -> tuple[int, ...] | Node | None:
    """A cast of a cast that lost nothing goes straight to the last type."""
    inner = state.producers.get(node.inputs[0])
    if inner is None or inner.opdef.name != "Cast" or not _read_early(inner, state):
        return None
    first, middle, last = (
        t.np_dtype for t in (inner.attrs["SrcT"], inner.attrs["DstT"], node.attrs["DstT"])
    )
    if any(t.kind not in "biuf" for t in (first, middle, last)) or not np.can_cast(
        first, middle, "safe"
    ):
        return None
    if first == last:
        return inner.inputs
    attrs = {**node.attrs, "SrcT": inner.attrs["SrcT"]}
    return Node(node.opdef, inner.inputs, node.outputs, attrs, node.op)


# transposes into products -------------------------------------------------------------------------


def transposed_factor(node: Node, state: RewriteState) -> Node | None:
    """A product of a transposed matrix is a product with a flag."""
    flags = ["adj_x", "adj_y"] if "adj_x" in node.attrs else ["transpose_a", "transpose_b"]
    inputs, attrs = list(node.inputs), dict(node.attrs)
    for i, flag in enumerate(flags):
        turned = state.producers.get(inputs[i])
        if turned is None or not _read_early(turned, state):
            continue
        kind = turned.opdef.name
        if kind not in ("Transpose", "ConjugateTranspose") or not _turns_matrices(turned, state):
            continue
        if state.dtype(inputs[i])._kind == "c" and (kind == "Transpose") != (flag[0] == "t"):
            return state.no("a transpose is not an adjoint for complex numbers")
        inputs[i] = turned.inputs[0]
        attrs[flag] = not attrs[flag]
    if tuple(inputs) == node.inputs:
        return None
    return Node(node.opdef, tuple(inputs), node.outputs, attrs, node.op)


def _turns_matrices(node: Node, state: RewriteState) -> bool:
    """The last two axes are swapped, the others stay."""
    perm = state.constants.get(node.inputs[1])
    if perm is None or perm.size < 2 or state.rank(node.inputs[0]) != perm.size:
        return False
    order = perm.tolist()
    n = len(order)
    return bool(order == [*range(n - 2), n - 1, n - 2])
