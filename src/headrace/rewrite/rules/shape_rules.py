"""Rules about shapes and constants: what is known before the run is not computed in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.annotations import Array
from headrace.core.opdef import lookup
from headrace.program.binding_times import Stage, stage_of
from headrace.program.constants import exact_key
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node
from headrace.rewrite.analysis.dims import INDEX, MAX_DEPTH, PARTS, Dim, parts_of, same_shape
from headrace.rewrite.rewrite_state import RewriteState

__all__ = [
    "broadcast_axes",
    "equal_constants",
    "fold",
    "inverse_size",
    "known_parts",
    "known_shape",
    "length_at_source",
    "size_as_float",
]

#: Folding may not blow a small description up into a large constant.
MAX_FOLDED_BYTES = 64 * 1024
#: What a user's function gave for constants is kept up to this size, as in TensorFlow.
MAX_KEPT_BYTES = 10 * 1024 * 1024


def known_shape(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Shape, Size and Rank of a tensor whose static shape is complete; ShapeN of such ones."""
    if node.opdef.name == "ShapeN":
        return _known_shapes(node, state)
    info = state.values[node.inputs[0]]
    if info.shape is None:
        return None
    if node.opdef.name == "Rank":
        return (state.constant(np.asarray(len(info.shape), np.int32), node.outputs[0]),)
    known = shapes.known(info.shape)
    if known is None:
        return None
    dtype = node.attrs["out_type"].np_dtype
    value = known if node.opdef.name == "Shape" else shapes.num_elements(info.shape)
    return (state.constant(np.asarray(value, dtype), node.outputs[0]),)


def _known_shapes(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    known = [shapes.known(state.shape(i)) for i in node.inputs]
    if any(k is None for k in known):
        return None
    dtype = node.attrs["out_type"].np_dtype
    return tuple(state.constant(np.asarray(k, dtype), o) for k, o in zip(known, node.outputs))


def known_parts(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Elements of shapes that are known though the whole shape is not: ``tf.shape(x)[1]``."""
    out = node.outputs[0]
    info = state.values[out]
    if info.dtype not in INDEX or info.shape is None or len(info.shape) > 1:
        return None
    if all(i in state.constants for i in node.inputs):
        return None  # constant folding does it
    parts = PARTS[node.opdef.name](node, state, MAX_DEPTH)
    if parts is None or any(type(p) is not int for p in parts):
        return None
    array = np.asarray(parts, info.dtype.np_dtype)
    return (state.constant(array.reshape(()) if info.shape == () else array, out),)


def length_at_source(node: Node, state: RewriteState) -> Node | None:
    """The length of an axis is asked of the value that it comes from, so that what lies between is
    free to go.
    """
    shape = state.producer(node.inputs[0], "Shape")
    if shape is None or not node.attrs["shrink_axis_mask"] or state.shape(node.outputs[0]) != ():
        return None
    parts = PARTS["StridedSlice"](node, state, MAX_DEPTH)
    if parts is None or not isinstance(parts[0], Dim):
        return None
    value, axis = parts[0]
    if value == shape.inputs[0] or value in state.mutable or state.rank(value) is None:
        return None
    state.retire(node)
    index = state.dtype(node.outputs[0])
    attrs = {"T": state.dtype(value), "out_type": index}
    source = state.add("Shape", (value,), index, (state.rank(value),), node.op, **attrs)
    kind = state.dtype(node.inputs[1])
    at, end, one = (
        state.new_constant(np.asarray([n], kind.np_dtype), kind) for n in (axis, axis + 1, 1)
    )
    return Node(node.opdef, (source, at, end, one), node.outputs, node.attrs, node.op)


def size_as_float(node: Node, state: RewriteState) -> Node | None:
    """``cast(size(x))``, the divisor in the gradient of a mean, is one step."""
    if node.attrs["DstT"] not in (dtypes.float32, dtypes.float64):
        return None
    size = state.producer(node.inputs[0], "Size")
    if size is None:
        return None
    attrs = {"T": size.attrs["T"], "out_type": node.attrs["DstT"]}
    return Node(size.opdef, size.inputs, node.outputs, attrs, node.op)


def inverse_size(node: Node, state: RewriteState) -> Node | None:
    """``1 / size(x)`` as a float, the gradient of a mean, is one step.

    The same sizes come again and again.
    """
    size = state.producer(node.inputs[1], "Size")
    one, kind = state.constants.get(node.inputs[0]), state.dtype(node.outputs[0])
    if size is None or one is None or one.ndim or one != 1:
        return None
    if kind not in (dtypes.float32, dtypes.float64) or state.dtype(size.inputs[0]) is not kind:
        return None
    return Node(lookup("_InverseSize"), size.inputs, node.outputs, {"T": kind}, node.op)


def equal_constants(node: Node, state: RewriteState) -> Node | None:
    """Small constants in computations with shapes, and numbers that fill arrays, are one if they
    are equal.

    Then equal operations are seen to be.
    """
    if state.dtype(node.outputs[0]) not in INDEX and node.opdef.name != "Fill":
        return None
    inputs = list(node.inputs)
    for n, i in enumerate(inputs):
        array = state.constants.get(i)
        if array is None or array.size > 8 or array.dtype.kind not in "iuf":
            continue
        inputs[n] = state.same_constant.setdefault(_contents(array), i)
    if tuple(inputs) == node.inputs:
        return None
    return Node(node.opdef, tuple(inputs), node.outputs, node.attrs, node.op, node.writes)


def _contents(array: Array) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.char, array.shape, array.tobytes()


def fold(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """Compute once what depends on constants alone."""
    constants = state.constants
    if stage_of(node, state.stages, False) is not Stage.BUILD or node.opdef.traits.reads:
        return None
    if _too_large(node, state):
        return state.no("the result would be large")
    kernel = bound_kernel(node)
    arguments = [constants[i] for i in node.inputs]
    calls_user = node.opdef.traits.calls_user
    try:
        with np.errstate(all="ignore"):
            result = _call_once(node, kernel, arguments) if calls_user else kernel(*arguments)
    except Exception as error:  # it belongs to the run that needs the value
        return state.no(f"computing it fails: {type(error).__name__}")
    results: tuple[Any, ...] = result if len(node.outputs) > 1 else (result,)
    arrays = [np.asarray(r) for r in results]
    given = MAX_KEPT_BYTES if calls_user else sum(a.nbytes for a in arguments)
    if sum(a.nbytes for a in arrays) > max(MAX_FOLDED_BYTES, given):
        return state.no("the result is larger than what it is made of")
    return tuple(_one_constant(a, o, state) for a, o in zip(arrays, node.outputs))


def _call_once(node: Node, kernel: Callable[..., Any], arguments: Sequence[Array]) -> Any:
    """The result of a user's function without state: another plan finds the first one's."""
    from headrace.ops.control.py_func import find

    known = find(node.attrs["token"]).folded
    key = tuple([exact_key(a) for a in arguments])
    if key not in known:
        known[key] = kernel(*arguments)
    return known[key]


def _one_constant(array: Array, like: int, state: RewriteState) -> int:
    """A constant for a folded value: the same one for the same contents."""
    if array.dtype.kind not in "iufb" or array.nbytes > MAX_FOLDED_BYTES:
        return state.constant(array, like)
    key = _contents(array)
    found = state.same_constant.get(key)
    if found is None or state.dtype(found) is not state.dtype(like):
        found = state.same_constant[key] = state.constant(array, like)
    return found


def _too_large(node: Node, state: RewriteState) -> bool:
    for o in node.outputs:
        n = shapes.num_elements(state.values[o].shape)
        if n is not None and n * state.values[o].dtype.size > 64 * MAX_FOLDED_BYTES:
            return True
    return False


def select_of_one_shape(node: Node, state: RewriteState) -> Node | None:
    """Select takes a vector of conditions for rows, too, and refuses shapes that differ. Where all
    three have one shape it is an element-wise operation, which joins others.
    """
    condition, yes, no = node.inputs
    if not state.rank(yes):
        return None
    if not same_shape(condition, yes, state) or not same_shape(yes, no, state):
        return state.no("the shapes are not known to be the same")
    return node._replace(opdef=lookup("SelectV2"))


def broadcast_axes(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """The axes over which the gradients of a broadcasting operation are summed, where the shapes
    tell.

    Lengths that are not known but certainly the same (those of one batch) are not broadcast.
    """
    left, right = (parts_of(value, state) for value in node.inputs)
    if left is None or right is None:
        return None
    rank = max(len(left), len(right))
    axes: tuple[list[int], list[int]] = ([], [])
    padded = [(1,) * (rank - len(p)) + tuple(p) for p in (left, right)]
    for i, (a, b) in enumerate(zip(*padded)):
        if a == b:
            # a leading axis that one side does not have is summed away even if it has length 1
            for side, p in enumerate((left, right)):
                if i < rank - len(p):
                    axes[side].append(i)
        elif a == 1:
            axes[0].append(i)
        elif b == 1:
            axes[1].append(i)
        else:
            return state.no("two lengths are not known to be equal")
    made = []
    for own, out in zip(axes, node.outputs):
        dtype = state.dtype(out)
        made.append(state.new_constant(np.array(own, dtype.np_dtype), dtype))
    return tuple(made)
