"""The steps of a bound run that are more than a kernel and a copy, by op.

Each function binds one step, or says why not and leaves it to its kernel. What they compute is
what the kernels compute; the differences are that arguments are in place, and that a product takes
in the sum that follows it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.opdef import KernelNode
from headrace.kernels import packed_weights as packed
from headrace.kernels.numpy import activation_kernels as activations
from headrace.kernels.numpy import attention_kernels as attention
from headrace.kernels.numpy import gemm
from headrace.kernels.numpy.activation_kernels import name_inside
from headrace.kernels.numpy.bounds import LARGEST_SQUARE, squared_norm
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower.emit_bound import FIXED, KNOWN, MOVING, STEADY, BoundLowering, NotBound
from headrace.lower.fused_code import bound_group, compiled
from headrace.lower.fusion import Fused
from headrace.ops.internal.packed_ops import holder
from headrace.ops.nn import conv_ops as nn_conv
from headrace.ops.nn import cross_entropy as nn_losses
from headrace.ops.nn import pool_ops as nn_pool
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.onednn.primitive import Call

__all__ = ["bind_step"]

_FLOAT32 = np.dtype(np.float32)
#: Weights up to this many elements need no packing, nor do they for so many rows.
PLAIN, ROWS = 1 << 14, 16
#: What a binder answers when it has bound a step; every other text says why it has not.
TAKEN = ""


def bind_step(s: BoundLowering, step: Node | Fused) -> str:
    """Bind a step; why that is not possible, or TAKEN."""
    if isinstance(step, Fused):
        return TAKEN if _sum(s, step.output) else _fused(s, step)
    if step.opdef.role == "+" and _sum(s, step.outputs[0]):
        return TAKEN
    binder = _BINDERS.get(step.opdef.name)
    why_not = "the kernel library has nothing for this op" if binder is None else binder(s, step)
    if why_not is TAKEN or _into(s, step) is TAKEN:
        return TAKEN
    return why_not


def _plain(array: object) -> bool:
    return (
        isinstance(array, np.ndarray)
        and array.dtype == _FLOAT32
        and array.flags.c_contiguous
        and array.size > 0
    )


# products ---------------------------------------------------------------------------------------


def _product(s: BoundLowering, node: Node) -> str:
    """MatMul with what follows it; weights may be packed."""
    attrs = node.attrs
    is_held = node.opdef.name == "_HeldMatMul"
    x, w = s.array(node.inputs[0]), s.array(node.inputs[1])
    if (
        s.kind(node.inputs[0]) not in (FIXED, MOVING)
        or attrs.get("weights", "float32") != "float32"
    ):
        return "an input is known before the run, or weights are of another type"
    if is_held and (s.kind(node.inputs[1]) not in (KNOWN, STEADY) or attrs["transpose_a"]):
        return "its weights change in every run, or the left side is transposed"
    packs = is_held and not holder(s.array(node.inputs[2])).wait
    if not _plain(x) or w.dtype != _FLOAT32 or (not packs and not _plain(w)):
        return "an input is not float32 and contiguous"
    x, w = x.T if attrs["transpose_a"] else x, w.T if attrs["transpose_b"] else w
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0] or not w.size:
        return "its sides do not fit"
    fused = attrs.get("fused_ops", ())
    if fused and fused[0] != "BiasAdd":
        return "its activation comes without a bias"
    bias = node.inputs[3 if is_held else 2] if fused else None
    if bias is not None and not (_plain(s.array(bias)) and s.array(bias).shape == (w.shape[1],)):
        return "its bias is not one contiguous row"
    if not packs and w.size > PLAIN and x.shape[0] < ROWS:
        return "its weights are large and unpacked, and there are few rows"
    return _bind_product(s, node, x, w, bias, fused[1] if len(fused) > 1 else None, packs)


def _bind_product(
    s: BoundLowering,
    node: Node,
    x: Any,
    w: Any,
    bias: int | None,
    activation: str | None,
    packs: bool,
) -> str:
    inside = None if activation is None else name_inside(activation)
    if activation == "Relu" and _feeds_products(s, node.outputs[0]):
        inside = "hidden_relu"  # to a product, -0 is as good as 0; of NaN the last product tells
    weights = _Weights(s, node, x.shape[0]) if packs else None
    if weights is not None and weights.packed is None:
        return "its weights cannot be packed"
    shape = (x.shape[0], w.shape[1])
    value = node.outputs[0]
    added = None if activation is not None else _added(s, value, shape)
    packed_form = None if weights is None else weights.packed
    call = s.library.product(
        x, w, np.empty(shape, np.float32), bias is not None, inside, added is not None, packed_form
    )
    if call is None:
        return "the library has no product for it"
    s.work += x.size * shape[1]
    if added is None:
        out, name = s.target(value, shape)
    else:
        out, name = s.target(value, shape, added[0])
        s.sums[added[0]] = value
    places: list[int | None] = [node.inputs[0], None if weights else node.inputs[1], None]
    if added is not None:
        places.append(added[1])
    if bias is not None:
        places.append(bias)
    if weights is not None:
        s.renew(partial(weights.aim, call))
    s.call(call, places, (2, out, name))
    if activation is not None and inside is None:
        _activate(s, activation, out, name)
    made_of = frozenset(u for v in node.inputs if v in s.doubtful for u in (v, *s.doubtful[v]))
    if inside == "hidden_relu":
        s.doubtful[value] = made_of
    elif made_of or inside == "gelu_erf":
        s.leave_nan(name, made_of)
    return TAKEN


def _feeds_products(s: BoundLowering, value: int) -> bool:
    """Whether products are all that reads a value (and the gradient of the relu that made it)."""
    for user in s.uses.get(value, []):
        if not isinstance(user, Node):
            return False
        name = user.opdef.name
        gradient = name == "ReluGrad" and user.inputs[0] != value
        if not gradient and (_BINDERS.get(name) is not _product or value in user.inputs[2:]):
            return False
    return True


class _Weights:
    """The packed weights of a layer, packed again when they have changed."""

    def __init__(self, s: BoundLowering, node: Node, rows: int) -> None:
        self.s, self.node, self.rows = s, node, rows
        self.packed = self._packed()

    def _packed(self) -> Any:
        node, s = self.node, self.s
        w = s.array(node.inputs[1])
        turned = w.T if node.attrs["transpose_b"] else w
        held = holder(s.array(node.inputs[2]))
        pack, rows = s.accelerator.pack, self.rows
        make = lambda: pack(np.ascontiguousarray(turned), rows, bias=True)
        return held.get(packed.product_key(turned), make, at_once=True)

    def aim(self, call: Call) -> None:
        now = self._packed()
        if now is None or not self.s.library.same_layout(self.packed, now):
            raise NotBound("weights are packed in another way")
        self.packed = now
        call.aim(1, now.data)


def _activate(s: BoundLowering, activation: str, out: Array, name: str) -> None:
    if activation == "Relu" and out.size < activations.LARGE_RELU:
        zero = s.param("zero", np.float32(0))
        s.emit(f"{s.param('maximum', np.maximum)}({zero}, {name}, out={name})")
    else:
        function = partial(activations.in_place, activation)
        s.emit(f"{s.new_param(function)}({name})")


def _added(s: BoundLowering, value: int, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """A sum with this product that nothing else stands between.

    The sum's value and its other summand.
    """
    at = value
    while True:
        users = s.uses.get(at, [])
        if len(users) != 1 or users[0] is None:
            return None
        step = users[0]
        if isinstance(step, Node) and step.opdef.name == "Reshape" and step.inputs[0] == at:
            at = step.outputs[0]
            continue
        break
    if not isinstance(step, (Node, Fused)):
        return None
    nodes = step.nodes if isinstance(step, Fused) else (step,)
    inputs = step.inputs
    if len(nodes) != 1 or nodes[0].opdef.role != "+" or len(inputs) != 2:
        return None
    other = inputs[1] if inputs[0] == at else inputs[0]
    values = s.program.values
    if other == at or values[other].shape is None or values[other].shape != values[at].shape:
        return None
    if s.kinds.get(other) != FIXED:  # it comes later
        return None
    array = s.array(other)
    if not _plain(array) or array.size != shape[0] * shape[1]:
        return None
    output = step.output if isinstance(step, Fused) else step.outputs[0]
    whole = array.reshape(shape)
    s.place(-1 - other, whole)  # as the product sees it
    return output, -1 - other


def _sum(s: BoundLowering, output: int) -> bool:
    """A sum that a product has made already."""
    product = s.sums.get(output)
    if product is None:
        return False
    summands = [s.array(i).shape for i in _inputs_of(s, output)]
    if summands[0] != summands[1]:
        raise NotBound("a sum that broadcasts")
    s.place(output, s.array(product).reshape(summands[0]))
    return True


def _inputs_of(s: BoundLowering, output: int) -> tuple[int, ...]:
    for step in s.plan.block:
        found = (step.output,) if isinstance(step, Fused) else step.outputs  # type: ignore[union-attr]
        if output in found:
            return step.inputs  # type: ignore[union-attr]
    raise NotBound("a sum without summands")


# gradients and sums -----------------------------------------------------------------------------


def _gradient(s: BoundLowering, node: Node) -> str:
    """The gradient of an activation, from its output (or, for relu, its input) and what comes back
    to it.
    """
    name = node.opdef.name
    at, back = node.inputs[::-1] if name == "ReluGrad" else node.inputs
    arrays = [s.array(v) for v in (at, back)]
    if not all(_plain(a) for a in arrays) or arrays[0].shape != arrays[1].shape:
        return "an input is not float32 and contiguous, or their shapes differ"
    call = s.library.gradient(name, arrays[0].size)
    s.call(call, [at, back, None], (2, *s.target(node.outputs[0], arrays[0].shape)))
    return TAKEN


def _sum_of_rows(s: BoundLowering, node: Node) -> str:
    """The sum over the first axis of a matrix, as a product (kernels/numpy/gemm.py)."""
    x, axes = s.array(node.inputs[0]), s.array(node.inputs[1])
    if s.kind(node.inputs[1]) != KNOWN or not _plain(x) or x.ndim != 2 or node.attrs["keep_dims"]:
        return "the axes are not known, or the input is no float32 matrix"
    if np.ravel(axes).tolist() not in ([0], [-2]):
        return "it is not over the first axis"
    s.place(node.outputs[0], s.room(node.outputs, (x.shape[1],), np.float32))
    if x.size >= gemm.HOLD_FROM:
        s.emit(f"{s.param('hold', hold_blas)}()")
    ones = s.new_param(gemm.ones(len(x), x.dtype))
    s.emit(f"{ones}.dot({s.name(node.inputs[0])}, {s.name(node.outputs[0])})")
    return TAKEN


def _cross_entropy(s: BoundLowering, node: Node) -> str:
    """Of labels that are numbers: the loss, and its gradient over the softmax."""
    x, labels = (s.array(i) for i in node.inputs)
    if not s.is_fixed(node.inputs[0]) or not _plain(x) or not s.is_fixed(node.inputs[1]):
        return "an input moves, or is not float32 and contiguous"
    rows, classes = x.shape
    call = s.library.softmax(rows, classes)
    out, name = s.target(node.outputs[1], x.shape)
    numbers = s.new_param(labels.view(f"u{labels.itemsize}"))  # negative ones are large so
    s.emit(f"if {s.param('largest', np.maximum.reduce)}({numbers}) >= {classes}: fail()")
    s.call(call, [node.inputs[0], None], (1, out, name))
    s.emit(f"{s.param('mend', s.library.mend)}({name}, 0.0)")
    s.place(node.outputs[0], s.room(node.outputs[:1], (rows,), np.float32))
    starts = s.new_param(nn_losses.row_starts(rows, classes))
    loss = f"picked({s.name(node.inputs[0])}, {name}, {starts} + {s.name(node.inputs[1])})"
    s.param("picked", nn_losses.picked_loss)
    s.emit(f"{s.param('copyto', np.copyto)}({s.name(node.outputs[0])}, {loss})")
    return TAKEN


# windows ----------------------------------------------------------------------------------------


def _conv(s: BoundLowering, node: Node) -> str:
    x = s.array(node.inputs[0])
    if not s.is_data(node.inputs[0]) or nn_conv.channels_first(node.attrs) or not _plain(x):
        return "its input is known before the run, channels come first, or it is not contiguous"
    w = s.array(node.inputs[1])
    if s.is_data(node.inputs[1]) or w.dtype != _FLOAT32 or x.ndim != 4:
        return "its filter changes in every run, or is not float32"
    knode = KernelNode(node.op.name, node.op.type, node.attrs, node.op)
    g = nn_conv.conv_geometry(knode, x, w)
    bias, add, relu = nn_conv.fused_parts(knode, node.inputs[3:], False)
    more = [v for v in (bias, add) if v is not None]
    if not all(_plain(s.array(v)) for v in more):
        return "what is added is not float32 and contiguous"
    made = s.library.conv(x, w, g, bias is not None, add is not None, relu)
    if made is None or (add is not None and s.array(add).shape != made.results):
        return "the library has no convolution for it"
    options = (1, bias is not None, add is not None, relu)
    shape, held_value, filter_value = x.shape, node.inputs[2], node.inputs[1]
    if relu:
        _check_bounds(s, node.inputs[0], filter_value, more)

    def packed_filter() -> None:
        held, now = holder(s.array(held_value)), s.array(filter_value)
        pack = s.accelerator.pack_filter
        found = held.get((shape, g, options), lambda: pack(shape, now, g, *options), at_once=True)
        if found is None:
            raise NotBound("a filter that cannot be packed")
        s.alive[node.outputs[0]] = found
        made.call.aim(1, found)

    s.renew(packed_filter)
    places: list[int | None] = [node.inputs[0], None, None, *more]
    if made.leave is None:
        s.call(made.call, places, (2, *s.target(node.outputs[0], made.results)))
    else:
        _in_own_order(s, made, places, node.outputs[0])
    return TAKEN


def _check_bounds(s: BoundLowering, x: int, w: int, added: Sequence[int]) -> None:
    """Lines that leave a convolution whose relu may see NaN to the general way (see
    onednn/conv.py).
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


def _in_own_order(s: BoundLowering, made: Any, places: list[int | None], value: int) -> None:
    """A convolution that wants its arrays in an order of its own."""
    inside: dict[int, Any] = {}
    for place, way, size in made.enter:
        inside[place] = s.room([], (size,), np.uint8)
        s.call(way, [places[place]], (1, inside[place], ""))
        places[place] = None
    place, way, size = made.leave
    inside[place] = s.room([], (size,), np.uint8)
    for at, array in inside.items():
        made.call.aim(at, array)
    s.call(made.call, places, (place, inside[place], ""))
    out = s.room([value], made.results, np.float32)
    _copy(s, way, inside[place], out)
    s.place(value, out)


def _copy(s: BoundLowering, way: Call, source: Array, target: Array) -> None:
    way.aim(0, source)
    way.aim(1, target)
    s.execute(way)


def _pool(kind: str, s: BoundLowering, node: Node) -> str:
    x = s.array(node.inputs[0])
    if not s.is_data(node.inputs[0]) or not _plain(x):
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
    return TAKEN


def _mean(s: BoundLowering, node: Node) -> str:
    """The mean over all pixels is an average over one window."""
    x, axes = s.array(node.inputs[0]), s.array(node.inputs[1])
    if not s.is_fixed(node.inputs[0]) or s.kind(node.inputs[1]) != KNOWN or not _plain(x):
        return "its input moves, or is not float32 and contiguous"
    if x.ndim == 1 and axes.size == 1 and not node.attrs["keep_dims"]:
        s.place(node.outputs[0], s.room(node.outputs, (), np.float32))
        total = f"{s.param('vector_sum', gemm.vector_sum)}({s.name(node.inputs[0])})"
        s.emit(f"{s.name(node.outputs[0])}[()] = {total} / {s.new_param(np.float32(x.size))}")
        return TAKEN
    if x.ndim != 4 or sorted(a % 4 for a in np.ravel(axes).tolist()) != [1, 2]:
        return "it is not over the pixels of images"
    windows = (1, *x.shape[1:3], 1)
    made = s.library.pool("avg", x, nn_pool.axes_of(x.shape, windows, windows, "VALID"))
    if made is None:
        return "the library has no pooling for it"
    out = s.room(node.outputs, made[1], np.float32)
    for place, array in enumerate((x, out)):
        made[0].aim(place, array)
    s.execute(made[0])
    s.place(node.outputs[0], out if node.attrs["keep_dims"] else out[:, 0, 0, :])
    return TAKEN


# rows -------------------------------------------------------------------------------------------


def _layer_norm(s: BoundLowering, node: Node) -> str:
    x, scale, offset = (s.array(i) for i in node.inputs)
    if not s.is_data(node.inputs[0]) or not all(_plain(a) for a in (x, scale, offset)):
        return "an input is not float32 and contiguous"
    columns = x.shape[-1]
    if scale.shape != (columns,) or offset.shape != (columns,):
        return "scale or offset are not one number a column"
    call = s.library.layer_norm(x.size // columns, columns, node.attrs["epsilon"])
    out, name = s.target(node.outputs[0], x.shape)
    s.call(call, [node.inputs[0], None, *node.inputs[1:]], (1, out, name))
    return TAKEN


def _softmax(s: BoundLowering, node: Node) -> str:
    x = s.array(node.inputs[0])
    if not s.is_data(node.inputs[0]) or not _plain(x) or x.ndim < 1:
        return "its input is known before the run, or not float32 and contiguous"
    columns = x.shape[-1]
    call = s.library.softmax(x.size // columns, columns)
    out, name = s.target(node.outputs[0], x.shape)
    s.call(call, [node.inputs[0], None], (1, out, name))
    s.emit(f"{s.param('mend', s.library.mend)}({name}, 0.0)")
    return TAKEN


def _batch_product(s: BoundLowering, node: Node) -> str:
    if not all(s.is_fixed(i) for i in node.inputs):
        return "an input moves or is known before the run"
    a, b = (s.array(i) for i in node.inputs)
    a = a.swapaxes(-1, -2) if node.attrs.get("adj_x") else a
    b = b.swapaxes(-1, -2) if node.attrs.get("adj_y") else b
    if a.dtype != _FLOAT32 or b.dtype != _FLOAT32 or a.ndim < 3 or a.shape[-1] != b.shape[-2]:
        return "an input is not float32, or they do not fit"
    made = s.library.batch_product(a, b)
    if made is None:
        return "the library has no product for it"
    out, name = s.target(node.outputs[0], made[1])
    made[0].aim(0, a)
    made[0].aim(1, b)
    s.call(made[0], [], (2, out, name))
    return TAKEN


def _attention(s: BoundLowering, node: Node) -> str:
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
    out = attention.room_for(partial(s.room, node.outputs), shape, np.float32)
    made = [_attend(s, q[o], keys[o], v[o], mine, out[o]) for o, mine in parts]
    if None in made:
        return "the library has no code for some examples"
    for lines in made:
        for line in lines or ():
            line()
    s.place(node.outputs[0], out)
    return TAKEN


def _attend(
    s: BoundLowering,
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
    scores = s.room([], shape, np.float32)
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
    s.alive[len(s.lines), len(s.alive)] = todo
    mend = f"{s.param('mend', s.library.mend)}({s.new_param(scores)}, 0.0)"
    lines: list[Callable[[], None]] = [partial(s.execute, call) for call, _ in todo]
    return [*lines[:-1], partial(s.emit, mend), lines[-1]]


# LSTM layers ------------------------------------------------------------------------------------


def _lstm(s: BoundLowering, node: Node) -> str:
    n = node.attrs["N"]
    inputs, (h, c, kernel, bias) = node.inputs[:n], node.inputs[n : n + 4]
    if not all(s.is_fixed(i) for i in inputs) or s.kind(bias) not in (KNOWN, STEADY):
        return "an input moves, or the bias changes in every run"
    arrays = [s.array(i) for i in inputs]
    x = _stacked(arrays)
    if x is None or s.array(kernel).dtype != _FLOAT32:
        return "its steps do not lie at equal distances"
    _, rows, wide = x.shape
    hidden = s.array(kernel).shape[1] // 4
    made = s.library.lstm(n, rows, wide, hidden)
    if made is None or any(not _plain(s.array(v)) for v in (h, c)):
        return "the library has no LSTM for it"
    call, notes_size = made
    if any(s.array(v).shape != (rows, hidden) for v in (h, c)):
        return "its state has another shape"
    order, forget = tuple(node.attrs["order"]), node.attrs["forget_bias"]
    s.renew(partial(_aim_lstm, s, call, node, (n, rows, wide), order, forget))
    if not x.flags.c_contiguous:
        whole = s.room([], x.shape, np.float32)
        _copy(s, s.library.copy(x, whole), x, whole)
        x = whole
    call.aim(0, x)
    for place, value in ((1, h), (2, c)):
        s.aim(call, place, value)
    outputs = s.room(node.outputs[:n], (n, rows, hidden), np.float32)
    last = s.room([node.outputs[n]], (rows, hidden), np.float32)
    for place, array in ((6, outputs), (7, s.room([], (rows, hidden), np.float32)), (8, last)):
        call.aim(place, array)
    if notes_size:
        call.aim(9, s.room([], (notes_size,), np.uint8))
    s.execute(call)
    for value, array in zip(node.outputs, (*outputs, last)):
        s.place(value, array)
    return TAKEN


def _aim_lstm(
    s: BoundLowering, call: Any, node: Node, sizes: tuple[int, int, int], order: Any, forget: float
) -> None:
    n, rows, wide = sizes
    kernel, bias, held = (s.array(i) for i in node.inputs[-3:])
    pack = s.accelerator.pack_lstm
    packed_form = holder(held).get(
        (wide, order, n, rows), lambda: pack(kernel, wide, order, n, rows)
    )
    if packed_form is None or bias.size != kernel.shape[1]:
        raise NotBound("an LSTM layer that cannot be packed")
    biases = bias.reshape(4, -1)[list(order)]
    biases[1] += np.float32(forget)
    s.alive[node.outputs[0]] = (packed_form, biases)
    for place, array in ((3, packed_form.of_input), (4, packed_form.of_state), (5, biases)):
        call.aim(place, array)


def _stacked(arrays: list[Any]) -> Any:
    """Matrices that lie at equal distances as one array, the first axis over them.

    None if they do not.
    """
    first = arrays[0]
    if first.dtype != _FLOAT32 or first.ndim != 2 or not first.size:
        return None
    starts = [a.__array_interface__["data"][0] for a in arrays]
    step = starts[1] - starts[0] if len(arrays) > 1 else first.nbytes
    if any(b - a != step for a, b in itertools.pairwise(starts)) or step <= 0:
        return None
    if any(a.shape != first.shape or a.strides != first.strides for a in arrays):
        return None
    shape, strides = (len(arrays), *first.shape), (step, *first.strides)
    return np.lib.stride_tricks.as_strided(first, shape, strides)


# NumPy functions that write in place ------------------------------------------------------------


def _gather(s: BoundLowering, node: Node) -> str:
    table, indices, axis = node.inputs
    if node.attrs.get("batch_dims") or s.kind(axis) != KNOWN or s.array(axis).item() != 0:
        return "it is not along the first axis"
    params, at = s.array(table), s.array(indices)
    if not s.is_fixed(indices) or params.ndim < 1 or at.dtype.kind not in "iu":
        return "its indices move or are not whole numbers"
    if s.is_fixed(table) or params.dtype.kind not in "fiub":
        return "its table is made in every run"
    turned = _is_turned(s, node.outputs[0], at.ndim)
    order = at.T if turned else at  # steps first, as what follows wants them
    out = s.room(node.outputs, order.shape + params.shape[1:], params.dtype)
    s.place(node.outputs[0], out.swapaxes(0, 1) if turned else out)
    if at.size:  # seen without their sign, negative indices are large
        plain = at.view(f"u{at.itemsize}")
        largest = f"{s.param('largest', np.maximum.reduce)}({s.new_param(plain)}, None)"
        s.emit(f"if {largest} >= {len(params)}: fail()")
    names = s.name(table), s.new_param(order), s.new_param(out)
    s.emit(f"{names[0]}.take({names[1]}, 0, {names[2]}, 'clip')")
    return TAKEN


def _is_turned(s: BoundLowering, value: int, rank: int) -> bool:
    """Whether nothing is done to a value but to exchange its first two axes."""
    users = s.uses.get(value, [])
    if rank != 2 or len(users) != 1 or not isinstance(users[0], Node):
        return False
    if users[0].opdef.name != "Transpose" or s.kinds.get(users[0].inputs[1], KNOWN) != KNOWN:
        return False
    order = s.program.constants.get(users[0].inputs[1])
    return order is not None and order.tolist() == [1, 0, *range(2, order.size)]


def _fused(s: BoundLowering, step: Fused) -> str:
    """An element-wise chain, into its place."""
    if step.reduces:
        return "it ends in a reduction"
    arrays = [s.array(i) for i in step.inputs]
    like = compiled(step, s.program, None)[0](*arrays)
    if (
        not isinstance(like, np.ndarray)
        or like.dtype != s.program.values[step.output].dtype.np_dtype
    ):
        return "its result has another type than planned"
    out = s.room([step.output], like.shape, like.dtype)
    s.place(step.output, out)
    names = [s.name(v) for v in (*step.inputs, step.output)]
    s.emit(f"{s.new_param(bound_group(step, s.program, arrays, out))}({', '.join(names)})")
    return TAKEN


def _into(s: BoundLowering, node: Node) -> str:
    """A NumPy function that can write where it is told."""
    form = node.opdef.traits.into
    if form is None or len(node.outputs) != 1 or node.opdef.name == "BiasAdd":
        return "NumPy has no function that writes its result where it is told"
    info = s.program.values[node.outputs[0]]
    like = s.function(node)(*[s.array(i) for i in node.inputs])
    if info.dtype._kind not in "fiuc" or not isinstance(like, np.ndarray) or not like.ndim:
        return "its result is no array of numbers"
    if like.dtype != info.dtype.np_dtype:
        return "its result has another type than planned"
    s.place(node.outputs[0], s.room(node.outputs, like.shape, like.dtype))
    names = [s.name(i) for i in node.inputs]
    s.emit(form.format(*names, out=s.name(node.outputs[0])))
    return TAKEN


_BINDERS: dict[str, Callable[[BoundLowering, Node], str]] = {
    "MatMul": _product,
    "_FusedMatMul": _product,
    "_HeldMatMul": _product,
    "_HeldConv2D": _conv,
    "MaxPool": partial(_pool, "max"),
    "AvgPool": partial(_pool, "avg"),
    "Mean": _mean,
    "_LayerNorm": _layer_norm,
    "Softmax": _softmax,
    "_Attention": _attention,
    "BatchMatMul": _batch_product,
    "BatchMatMulV2": _batch_product,
    "ReluGrad": _gradient,
    "TanhGrad": _gradient,
    "SigmoidGrad": _gradient,
    "Sum": _sum_of_rows,
    "SparseSoftmaxCrossEntropyWithLogits": _cross_entropy,
    "_HeldLSTMLayer": _lstm,
    "GatherV2": _gather,
}
