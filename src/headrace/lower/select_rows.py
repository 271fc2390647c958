"""Steps over rows as primitives of the kernel library: norms, softmax, losses, attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.numpy import attention_kernels as attention
from headrace.lower.bound_values import MOVING, STEADY
from headrace.lower.select_bound import FLOAT32, TAKEN, Binder, is_plain
from headrace.ops.nn.sparse_cross_entropy import picked_loss, row_starts
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "bind_attention",
    "bind_batch_product",
    "bind_cross_entropy",
    "bind_layer_norm",
    "bind_softmax",
]


def bind_layer_norm(s: Binder, node: Node) -> str:
    x, scale, offset = (s.array(i) for i in node.inputs)
    if not s.is_data(node.inputs[0]) or not all(is_plain(a) for a in (x, scale, offset)):
        return "an input is not float32 and contiguous"
    columns = x.shape[-1]
    if scale.shape != (columns,) or offset.shape != (columns,):
        return "scale or offset are not one number a column"
    call = s.library.layer_norm(x.size // columns, columns, node.attrs["epsilon"])
    out, name = s.target(node.outputs[0], x.shape)
    s.call(call, [node.inputs[0], None, *node.inputs[1:]], (1, out, name))
    return TAKEN


def bind_softmax(s: Binder, node: Node) -> str:
    x = s.array(node.inputs[0])
    if not s.is_data(node.inputs[0]) or not is_plain(x) or x.ndim < 1:
        return "its input is known before the run, or not float32 and contiguous"
    columns = x.shape[-1]
    call = s.library.softmax(x.size // columns, columns)
    out, name = s.target(node.outputs[0], x.shape)
    s.call(call, [node.inputs[0], None], (1, out, name))
    s.emit(f"{s.param('mend', s.library.mend)}({name}, 0.0)")
    return TAKEN


def bind_batch_product(s: Binder, node: Node) -> str:
    if not all(s.is_fixed(i) for i in node.inputs):
        return "an input moves or is known before the run"
    a, b = (s.array(i) for i in node.inputs)
    a = a.swapaxes(-1, -2) if node.attrs.get("adj_x") else a
    b = b.swapaxes(-1, -2) if node.attrs.get("adj_y") else b
    if a.dtype != FLOAT32 or b.dtype != FLOAT32 or a.ndim < 3 or a.shape[-1] != b.shape[-2]:
        return "an input is not float32, or they do not fit"
    made = s.library.batch_product(a, b)
    if made is None:
        return "the library has no product for it"
    out, name = s.target(node.outputs[0], made[1])
    made[0].aim(0, a)
    made[0].aim(1, b)
    s.call(made[0], [], (2, out, name))
    return TAKEN


def bind_attention(s: Binder, node: Node) -> str:
    """Scores with what is done to them, softmax over them, and the product with the values."""
    if not all(s.is_fixed(i) for i in node.inputs[:3]):
        return "an input moves or is known before the run"
    for i in node.inputs[
        3:
    ]:  # numbers become part of the primitive, arrays are to stay where they are
        if s.kind(i) in (STEADY, MOVING) or (s.is_fixed(i) and s.array(i).size == 1):
            return "a mask or scale changes between runs"
    q, k, v = (s.array(i) for i in node.inputs[:3])
    keys = k.swapaxes(-1, -2) if node.attrs["adj_y"] else k
    steps = [(n, s.array(i)) for n, i in zip(node.attrs["steps"], node.inputs[3:])]
    parts = attention.for_library(q, keys, v, steps)
    if parts is None:
        return "the library has no code for these scores"
    shape = (*q.shape[:-1], v.shape[-1])
    out = attention.empty_result(partial(s.reserve, node.outputs), shape, np.float32)
    made = [_attend(s, q[o], keys[o], v[o], mine, out[o]) for o, mine in parts]
    if None in made:
        return "the library has no code for some examples"
    for lines in made:
        for line in lines or ():
            line()
    s.place(node.outputs[0], out)
    return TAKEN


def _attend(
    s: Binder,
    q: Array,
    keys: Array,
    v: Array,
    steps: Sequence[Sequence[Array | str]],
    out: Array,
) -> list[Callable[[], None]] | None:
    """What is to be done for some examples; None where there is no fast code for it."""
    shape = (*q.shape[:-1], keys.shape[-1])
    after = s.library.score_steps(steps, q.ndim)
    made = None if after is None else s.library.batch_product(q, keys, None, after[0])
    masked = None
    if made is None:
        masked = s.library.masked(shape, steps)
        made = None if masked is None else s.library.batch_product(q, keys, None, masked[0])
        if made is None:
            return None
        after = ((), [])
    scores = s.reserve([], shape, np.float32)
    last = s.library.batch_product(scores, v, out)
    if last is None:
        return None
    columns = shape[-1]
    soft = s.library.softmax(scores.size // columns, columns)
    todo = [(made[0], (q, keys, scores, *after[1]))]
    if masked is not None:
        first, *others = masked[2]
        todo.append((masked[1], (scores, first, scores, *others)))
    todo += [(soft, (scores, scores)), (last[0], (scores, v, out))]
    for call, arrays in todo:
        for place, array in enumerate(arrays):
            call.aim(place, array)
    s.alive["scores", len(s.alive)] = todo
    mend = f"{s.param('mend', s.library.mend)}({s.new_param(scores)}, 0.0)"
    lines: list[Callable[[], None]] = [partial(s.execute, call) for call, _ in todo]
    return [*lines[:-1], partial(s.emit, mend), lines[-1]]


def bind_cross_entropy(s: Binder, node: Node) -> str:
    """Of labels that are numbers: the loss, and its gradient over the softmax."""
    x, labels = (s.array(i) for i in node.inputs)
    if not s.is_fixed(node.inputs[0]) or not is_plain(x) or not s.is_fixed(node.inputs[1]):
        return "an input moves, or is not float32 and contiguous"
    rows, classes = x.shape
    call = s.library.softmax(rows, classes)
    out, name = s.target(node.outputs[1], x.shape)
    numbers = s.new_param(labels.view(f"u{labels.itemsize}"))  # negative ones are large so
    s.emit(f"if {s.param('largest', np.maximum.reduce)}({numbers}) >= {classes}: fail()")
    s.call(call, [node.inputs[0], None], (1, out, name))
    s.emit(f"{s.param('mend', s.library.mend)}({name}, 0.0)")
    s.place(node.outputs[0], s.reserve(node.outputs[:1], (rows,), np.float32))
    starts = s.new_param(row_starts(rows, classes))
    loss = f"picked({s.name(node.inputs[0])}, {name}, {starts} + {s.name(node.inputs[1])})"
    s.param("picked", picked_loss)
    s.emit(f"{s.param('copyto', np.copyto)}({s.name(node.outputs[0])}, {loss})")
    return TAKEN
