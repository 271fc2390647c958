"""The element-wise part of an LSTM cell, and its gradient, over whole rows of gates.

A sigmoid is a tanh, ``sigmoid(x) = tanh(x/2)/2 + 1/2``: so all four gates are one tanh over the
matrix that the cell's product made, between two products with a row of factors.

    >>> h, c_new, gates, tanh_c = cell(product, c, (0, 2, 1, 3), 1.0)  # i, j, f, o: BasicLSTMCell's
    >>> dproduct, dc = cell_grad(dh, dc_new, c, gates, tanh_c, (0, 2, 1, 3))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.accel import ask, library
from headrace.kernels.numpy.blocks import over_matching_rows
from headrace.kernels.numpy.gemm import add_product, column_sums, matmul, matmul_bias

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.kernels.packed_weights import PackedForms

__all__ = ["cell", "cell_grad", "packed_layer", "layer", "layer_grad"]

#: Where the gates i, f, g (the new value) and o are among the four parts.
Order = tuple[int, int, int, int]

#: Elements of gates from which rows are spread over threads, and elements in a block.
THREADS_FROM = 96 * 1024
BLOCK = 48 * 1024

#: Elements of gates that are computed before the steps that need them: they stay in a core's cache.
MAX_BLOCK_BYTES = 256 * 1024
#: Rows from which a kernel library computes the gates of a step in one pass.
LIBRARY_FROM_ROWS = 4

_rows: dict[Any, tuple[Any, Any, Any]] = {}
_MAX_KEPT = 64


def _factors(
    width: int, order: Order, forget_bias: float, dtype: np.dtype[Any]
) -> tuple[Any, Any, Any]:
    """For each column.

    The factor, what is added before tanh (None: nothing), what is added after it.
    """
    key = (width, order, forget_bias, dtype)
    found = _rows.get(key)
    if found is None:
        if len(_rows) >= _MAX_KEPT:
            _rows.clear()
        factor, before, after = (
            np.full(4 * width, 0.5),
            np.zeros(4 * width),
            np.full(4 * width, 0.5),
        )
        new, forget = (slice(order[k] * width, (order[k] + 1) * width) for k in (2, 1))
        factor[new], after[new], before[forget] = 1, 0, forget_bias / 2
        made = [a.astype(dtype) for a in (factor, before, after)]
        found = _rows[key] = (made[0], made[1] if forget_bias else None, made[2])
    return found


def _parts(a: Array, order: Order) -> list[Any]:
    width = a.shape[1] // 4
    return [a[:, k * width : (k + 1) * width] for k in order]


def cell(product: Array, c: Array, order: Order, forget_bias: float) -> tuple[Any, Any, Any, Any]:
    """What the cell puts out, its new state, its gates after their functions, and tanh of the
    state.
    """
    rows, width = product.shape[0], product.shape[1] // 4
    factors = _factors(width, order, forget_bias, product.dtype)
    if product.size < THREADS_FROM or c.shape != (rows, width):
        return _cell(product, c, order, *factors)
    out = [np.empty((rows, n), product.dtype) for n in (width, width, 4 * width, width)]

    def block(product: Any, c: Any, *targets: Any) -> None:
        for target, value in zip(targets, _cell(product, c, order, *factors)):
            target[...] = value

    over_matching_rows(block, [product, c, *out], 4 * width, BLOCK)
    return out[0], out[1], out[2], out[3]


def _cell(
    product: Array, c: Array, order: Order, factor: Array, before: Array | None, after: Array
) -> tuple[Any, Any, Any, Any]:
    gates = product.copy()
    _activate(gates, factor, before, after)
    i, f, g, o = _parts(gates, order)
    new = f * c
    new += i * g
    tanh_c = np.tanh(new)
    return o * tanh_c, new, gates, tanh_c


def cell_grad(
    dh: Array, dc_new: Array | np.generic, c: Array, gates: Array, tanh_c: Array, order: Order
) -> tuple[Any, Any]:
    """The gradients of the product and of the state. ``dc_new`` may be a number."""
    rows, width = tanh_c.shape
    whole = dh.shape == c.shape == tanh_c.shape
    if gates.size < THREADS_FROM or not whole:
        dproduct, dc = _cell_grad(dh, dc_new, c, gates, tanh_c, order)
        return dproduct, dc if dc.shape == c.shape else dc.sum(0, keepdims=True)
    out = [np.empty((rows, n), gates.dtype) for n in (4 * width, width)]
    state = np.broadcast_to(np.asarray(dc_new, gates.dtype), tanh_c.shape)

    def block(dh: Any, dc: Any, c: Any, gates: Any, tanh_c: Any, *targets: Any) -> None:
        for target, value in zip(targets, _cell_grad(dh, dc, c, gates, tanh_c, order)):
            target[...] = value

    over_matching_rows(block, [dh, state, c, gates, tanh_c, *out], 4 * width, BLOCK)
    return out[0], out[1]


def _cell_grad(
    dh: Array, dc_new: Array | np.generic, c: Array, gates: Array, tanh_c: Array, order: Order
) -> tuple[Array, Array]:
    i, f, g, o = _parts(gates, order)
    slopes = np.empty_like(gates)
    _slopes(gates, g, order, slopes)
    d = tanh_c * tanh_c
    np.subtract(1, d, out=d)
    d *= o
    d *= dh
    d += dc_new
    out = np.empty_like(gates)
    di, df, dg, do = _parts(out, order)
    np.multiply(d, g, out=di)
    np.multiply(d, c, out=df)
    np.multiply(d, i, out=dg)
    np.multiply(dh, tanh_c, out=do)
    out *= slopes
    d *= f
    return out, d


# all steps of a layer ---------------------------------------------------------------------------


def layer(
    inputs: Sequence[Any],
    h: Array,
    c: Array,
    kernel: Array,
    bias: Array,
    order: Order,
    forget_bias: float,
    training: bool = True,
) -> tuple[list[Any], Any, Any, Any]:
    """What each step puts out; and of all steps the states, the gates and tanh of the states, if in
    ``training``.

    The products with the inputs of many steps are one; each step adds its product with what the
    step before put out.
    """
    rows = max(x.shape[0] for x in inputs)
    width, wide = kernel.shape[1] // 4, inputs[0].shape[1]
    at_once = len(inputs) if training else max(1, MAX_BLOCK_BYTES // (rows * 4 * width))
    outputs = np.empty((len(inputs), rows, width), kernel.dtype)
    kept = len(inputs) if training else 2
    states, tanhs = (np.empty((kept, rows, width), kernel.dtype) for _ in range(2))
    step = _gates_of_step(kernel[wide:], rows, _factors(width, order, forget_bias, kernel.dtype))
    t = np.empty((rows, width), kernel.dtype)
    h = np.ascontiguousarray(np.broadcast_to(h, (rows, width)))  # (a library reads its rows)
    for k in range(len(inputs)):
        if k % at_once == 0:
            joined = _joined(inputs[k : k + at_once], rows)
            gates = matmul_bias(joined, kernel[:wide], bias).reshape(-1, rows, 4 * width)
        step(h, gates[k % at_once])
        new, h = states[k % kept], outputs[k]
        _step(gates[k % at_once], c, order, new, tanhs[k % kept], h, t)
        c = new
    if training:
        return list(outputs), states, gates, tanhs
    return list(outputs), c[None], None, None


def packed_layer(
    inputs: Sequence[Any],
    h: Any,
    c: Any,
    kernel: Any,
    bias: Any,
    forms: PackedForms,
    order: Order,
    forget_bias: float,
) -> tuple[list[Any], Any]:
    """What each step puts out and the last state.

    ``forms`` (packed.PackedForms) keeps the kernel as a library wants it.
    """
    found = library() if kernel.dtype == np.float32 else None
    rows, wide = max(x.shape[0] for x in inputs), inputs[0].shape[1]
    if found is not None and rows:
        key = (wide, order, len(inputs), rows)
        packed = forms.get(key, lambda: found.pack_lstm(kernel, *key))
        if packed is not None:
            x = _joined(inputs, rows).reshape(len(inputs), rows, wide)
            biases = bias.reshape(4, -1)[list(order)]
            biases[1] += kernel.dtype.type(forget_bias)
            first_h, first_c = (
                np.ascontiguousarray(np.broadcast_to(s, (rows, s.shape[1]))) for s in (h, c)
            )
            done = found.lstm(x, first_h, first_c, packed, biases)
            if done is not None:
                return list(done[0]), done[1]
    outputs, states, _, _ = layer(inputs, h, c, kernel, bias, order, forget_bias, False)
    return outputs, states[-1]


def _gates_of_step(weights: Array, rows: int, factors: tuple[Any, Any, Any]) -> Any:
    """``f(h, gates)`` adds a step's product to its gates and applies their functions, in place."""
    if rows >= LIBRARY_FROM_ROWS and weights.dtype == np.float32:
        found = ask("gates", weights, rows, *factors)
        if found is not None:
            return found

    def step(h: Array, gates: Array) -> None:
        add_product(h, weights, gates)
        _activate(gates, *factors)

    return step


def _joined(inputs: Sequence[Any], rows: int) -> Any:
    """The inputs of all steps, one below the other."""
    if any(x.shape[0] != rows for x in inputs):
        inputs = [np.broadcast_to(x, (rows, x.shape[1])) for x in inputs]
    return np.concatenate(inputs)


def _activate(gates: Array, factor: Array, before: Array | None, after: Array) -> None:
    gates *= factor
    if before is not None:
        gates += before
    np.tanh(gates, out=gates)
    gates *= factor
    gates += after


def _step(
    gates: Array, c: Array, order: Order, new: Array, tanh_c: Array, h: Array, t: Array
) -> None:
    i, f, g, o = _parts(gates, order)
    np.multiply(f, c, out=new)
    np.multiply(i, g, out=t)
    np.add(new, t, out=new)
    np.tanh(new, out=tanh_c)
    np.multiply(o, tanh_c, out=h)


def layer_grad(
    dh: Sequence[Any],
    dc: Array | np.generic,
    inputs: Sequence[Any],
    h: Any,
    c: Any,
    kernel: Any,
    outputs: Sequence[Any],
    states: Any,
    gates: Any,
    tanhs: Any,
    order: Order,
) -> tuple[list[Any], Any, Any, Any, Any]:
    """The gradients of the inputs, of the first output and state, of the kernel and of the bias."""
    steps, rows, width = states.shape
    wide = inputs[0].shape[1]
    dgates = np.empty_like(gates)
    back = _product_of_step(kernel[wide:].T, rows)
    d, t = (np.empty((rows, width), kernel.dtype) for _ in range(2))
    slopes = np.empty((rows, 4 * width), kernel.dtype)
    d[...] = dc
    arrived, later = dh[-1], np.empty((rows, width), kernel.dtype)
    for k in range(steps - 1, -1, -1):
        before = states[k - 1] if k else c
        _step_grad(arrived, d, before, gates[k], tanhs[k], dgates[k], order, t, slopes)
        back(dgates[k], later)
        arrived = np.add(later, dh[k - 1], out=later) if k else later
    flat = dgates.reshape(-1, 4 * width)
    dkernel = np.empty(kernel.shape, kernel.dtype)
    earlier = [np.broadcast_to(h, (rows, width)), *outputs[:-1]]
    matmul(_joined(inputs, rows).T, flat, dkernel[:wide])
    matmul(np.concatenate(earlier).T, flat, dkernel[wide:])
    dx = matmul(flat, kernel[:wide].T).reshape(steps, rows, wide)
    dxs = [_like(g, x) for g, x in zip(dx, inputs)]
    return dxs, _like(arrived, h), _like(d, c), dkernel, column_sums(flat)


def _product_of_step(weights: Array, rows: int) -> Any:
    """``f(a, out)``: out = a @ weights."""
    if rows >= LIBRARY_FROM_ROWS and weights.dtype == np.float32:
        found = ask("steps_product", weights, rows)
        if found is not None:
            return found
    contiguous = np.ascontiguousarray(weights)
    return lambda a, out: matmul(a, contiguous, out)


def _step_grad(
    dh: Array,
    d: Array,
    c: Array,
    gates: Array,
    tanh_c: Array,
    out: Array,
    order: Order,
    t: Array,
    slopes: Array,
) -> None:
    """``d`` is the gradient of the state after the step, then of that before."""
    i, f, g, o = _parts(gates, order)
    di, df, dg, do = _parts(out, order)
    np.multiply(tanh_c, tanh_c, out=t)
    np.subtract(1, t, out=t)
    t *= o
    t *= dh
    d += t
    np.multiply(d, g, out=di)
    np.multiply(d, c, out=df)
    np.multiply(d, i, out=dg)
    np.multiply(dh, tanh_c, out=do)
    _slopes(gates, g, order, slopes)
    out *= slopes
    d *= f


def _slopes(gates: Array, g: Array, order: Order, out: Array) -> None:
    """The derivatives of the gates' functions: of sigmoids, and of one tanh."""
    np.subtract(1, gates, out=out)
    out *= gates
    slope = _parts(out, order)[2]
    np.multiply(g, g, out=slope)
    np.subtract(1, slope, out=slope)


def _like(grad: Any, x: Array) -> Any:
    """The gradient of what was stretched over all rows."""
    return grad if grad.shape == x.shape else grad.sum(0, keepdims=True)
