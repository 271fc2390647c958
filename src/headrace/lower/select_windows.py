"""Convolutions and poolings as primitives of the kernel library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.kernels.numpy import gemm
from headrace.kernels.numpy.bounds import LARGEST_SQUARE, squared_norm
from headrace.lower.bound_values import KNOWN
from headrace.lower.select_bound import FLOAT32, TAKEN, Binder, is_plain
from headrace.lower.storage_arena import NotBound
from headrace.ops.internal.packed_ops import PACKED_CONV2D, PACKED_MATMUL, packed_forms
from headrace.ops.nn import conv_ops as nn_conv
from headrace.ops.nn import pool_ops as nn_pool
from headrace.ops.nn.conv_shapes import channels_first
from headrace.program.node_kernels import kernel_node
from headrace.program.nodes import Node

__all__ = ["bind_conv", "bind_mean", "bind_pool"]


def bind_conv(s: Binder, node: Node) -> str:
    x = s.array(node.inputs[0])
    if not s.is_data(node.inputs[0]) or channels_first(node.attrs) or not is_plain(x):
        return "its input is known before the run, channels come first, or it is not contiguous"
    w = s.array(node.inputs[1])
    if s.is_data(node.inputs[1]) or w.dtype != FLOAT32 or x.ndim != 4:
        return "its filter changes in every run, or is not float32"
    knode = kernel_node(node)
    g = nn_conv.conv_geometry(knode, x, w)
    bias, add, relu = nn_conv.fused_parts(knode, node.inputs[3:], False)
    more = [v for v in (bias, add) if v is not None]
    if not all(is_plain(s.array(v)) for v in more):
        return "what is added is not float32 and contiguous"
    value = node.outputs[0]
    keeps_nan = relu and _tells_of_nan(s, value)
    fused = (bias is not None, add is not None, relu, keeps_nan)
    made = s.library.conv(x, w, g, *fused)
    if made is None or (add is not None and s.array(add).shape != made.results):
        return "the library has no convolution for it"
    options = (1, *fused)
    shape, forms_value, filter_value = x.shape, node.inputs[2], node.inputs[1]
    if relu and not keeps_nan:
        _check_bounds(s, node.inputs[0], filter_value, more)

    def packed_filter() -> None:
        forms, now = packed_forms(s.array(forms_value)), s.array(filter_value)
        library = s.accelerator
        found = forms.get(
            library.filter_order(shape, now, g, *options),
            lambda: library.pack_filter(shape, now, g, *options),
            at_once=True,
        )
        if found is None:
            raise NotBound("a filter that cannot be packed")
        s.alive[node.outputs[0]] = found
        made.call.aim(1, found)

    s.renew(packed_filter)
    s.packs[filter_value] += 1
    places: list[int | None] = [node.inputs[0], None, None, *more]
    if made.leave is None:
        out, name = s.target(value, made.results)
        s.call(made.call, places, (2, out, name))
    else:
        _in_own_order(s, made, places, value)
        name = s.name(value)
    if keeps_nan or not relu:
        _pass_doubts_on(s, node.inputs, value, name, keeps_nan)
    return TAKEN


def _tells_of_nan(s: Binder, value: int) -> bool:
    """Whether NaN in a value comes out of all that reads it: it may be a relu's, then, that is NaN
    for minus infinity.
    """
    for user in s.uses.get(value, []):
        if not isinstance(user, Node):
            return False
        if user.opdef is PACKED_CONV2D:
            if value in user.inputs[1:3]:
                return False
        elif user.opdef is PACKED_MATMUL or user.opdef.role == "matmul":
            if value in user.inputs[1:]:
                return False
        elif user.opdef.name not in ("Mean", "AvgPool") or not _tells_of_nan(s, user.outputs[0]):
            return False
    return True


def _pass_doubts_on(
    s: Binder, inputs: Sequence[int], value: int, name: str, new: bool = False
) -> None:
    """What was made of doubtful values is doubtful; where nothing would tell of NaN, it is looked
    for.
    """
    made_of = frozenset(u for v in inputs if v in s.doubtful for u in (v, *s.doubtful[v]))
    if not made_of and not new:
        return
    if _tells_of_nan(s, value):
        s.doubtful[value] = made_of
    else:
        s.leave_nan(name, made_of)


def _check_bounds(s: Binder, x: int, w: int, added: Sequence[int]) -> None:
    """Lines that leave a convolution whose relu may see NaN to the generic run (see
    onednn/conv_primitives.py).
    """
    steady = [v for v in added if not s.is_data(v)]
    filter_size = [0.0]

    def measure() -> None:
        filter_size[0] = squared_norm(s.array(w))
        if not all(squared_norm(s.array(v)) < LARGEST_SQUARE for v in steady):
            filter_size[0] = math.nan

    s.renew(measure)
    vdot, size = s.param("vdot", np.vdot), s.new_param(filter_size)
    name = s.name(x)
    s.emit(f"if not float({vdot}({name}, {name})) * {size}[0] < {LARGEST_SQUARE}: fail()")
    for value in added:
        if s.is_data(value):
            name = s.name(value)
            s.emit(f"if not {vdot}({name}, {name}) < {LARGEST_SQUARE}: fail()")


def _in_own_order(s: Binder, made: Any, places: list[int | None], value: int) -> None:
    """A convolution that wants its arrays in an order of its own."""
    inside: dict[int, Any] = {}
    for place, way, size in made.enter:
        inside[place] = s.reserve([], (size,), np.uint8)
        s.call(way, [places[place]], (1, inside[place], ""))
        places[place] = None
    place, way, size = made.leave
    inside[place] = s.reserve([], (size,), np.uint8)
    for at, array in inside.items():
        made.call.aim(at, array)
    s.call(made.call, places, (place, inside[place], ""))
    out = s.reserve([value], made.results, np.float32)
    s.copy_line(way, inside[place], out)
    s.place(value, out)


def bind_pool(kind: str, s: Binder, node: Node) -> str:
    x = s.array(node.inputs[0])
    if not s.is_data(node.inputs[0]) or not is_plain(x):
        return "its input is known before the run, or not float32 and contiguous"
    attrs = node.attrs
    if attrs.get("data_format", "NHWC") != "NHWC":
        return "channels come first"
    made = s.library.pool(
        kind, x, nn_pool.axes_of(x.shape, attrs["ksize"], attrs["strides"], attrs["padding"])
    )
    if made is None:
        return "the library has no pooling for it"
    out, name = s.target(node.outputs[0], made[1])
    s.call(made[0], [node.inputs[0], None], (1, out, name))
    _pass_doubts_on(s, node.inputs, node.outputs[0], name)
    return TAKEN


def bind_mean(s: Binder, node: Node) -> str:
    """The mean over all pixels is an average over one window."""
    x, axes = s.array(node.inputs[0]), s.array(node.inputs[1])
    if not s.is_fixed(node.inputs[0]) or s.kind(node.inputs[1]) != KNOWN or not is_plain(x):
        return "its input moves, or is not float32 and contiguous"
    if x.ndim == 1 and axes.size == 1 and not node.attrs["keep_dims"]:
        s.place(node.outputs[0], s.reserve(node.outputs, (), np.float32))
        total = f"{s.param('vector_sum', gemm.vector_sum)}({s.name(node.inputs[0])})"
        s.emit(f"{s.name(node.outputs[0])}[()] = {total} / {s.new_param(np.float32(x.size))}")
        return TAKEN
    if x.ndim != 4 or sorted(a % 4 for a in np.ravel(axes).tolist()) != [1, 2]:
        return "it is not over the pixels of images"
    windows = (1, *x.shape[1:3], 1)
    made = s.library.pool("avg", x, nn_pool.axes_of(x.shape, windows, windows, "VALID"))
    if made is None:
        return "the library has no pooling for it"
    out = s.reserve(node.outputs, made[1], np.float32)
    for place, array in enumerate((x, out)):
        made[0].aim(place, array)
    s.execute(made[0])
    s.place(node.outputs[0], out if node.attrs["keep_dims"] else out[:, 0, 0, :])
    _pass_doubts_on(s, node.inputs, node.outputs[0], s.name(node.outputs[0]))
    return TAKEN
