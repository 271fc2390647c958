"""LSTM layers as one primitive of the kernel library, or by compiled code once they are hot.

The library's primitive multiplies a step's rows with the state's weights by a product that all
threads share. The compiled steps (kernels/native/recurrent_kernels.py) let each thread take its
rows through all steps, with weights in an order of their own; the inputs of all steps are
multiplied before, in one product.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.lower.bound_values import KNOWN, STEADY
from headrace.lower.native_groups import native_expected
from headrace.lower.native_kernels import Warming
from headrace.lower.select_bound import FLOAT32, TAKEN, Binder, is_plain
from headrace.lower.storage_arena import NotBound
from headrace.ops.internal.packed_ops import packed_forms
from headrace.program.nodes import Node
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["bind_lstm"]

#: Bytes of a state's weights that stay in a core's cache from step to step.
MAX_STATE = 3 << 19
#: The same of fewer rows than there are threads. Compiled code gives each row to one thread, which
#: reads the weights at the speed of one core's cache; the primitive divides the weights.
MAX_STATE_OF_FEW_ROWS = 1 << 18


def bind_lstm(s: Binder, node: Node) -> str:
    n = node.attrs["N"]
    inputs, (h, c, kernel, bias) = node.inputs[:n], node.inputs[n : n + 4]
    if not all(s.is_fixed(i) for i in inputs) or s.kind(bias) not in (KNOWN, STEADY):
        return "an input moves, or the bias changes in every run"
    arrays = [s.array(i) for i in inputs]
    x = _stacked(arrays)
    if x is None or s.array(kernel).dtype != FLOAT32:
        return "its steps do not lie at equal distances"
    _, rows, wide = x.shape
    hidden = s.array(kernel).shape[1] // 4
    made = s.library.lstm(n, rows, wide, hidden)
    if made is None or any(not is_plain(s.array(v)) for v in (h, c)):
        return "the library has no LSTM for it"
    call, notes_size = made
    if any(s.array(v).shape != (rows, hidden) for v in (h, c)):
        return "its state has another shape"
    order, forget = tuple(node.attrs["order"]), node.attrs["forget_bias"]
    s.renew(partial(_aim_lstm, s, call, node, (n, rows, wide), order, forget))
    if not x.flags.c_contiguous:
        whole = s.reserve([], x.shape, np.float32)
        s.copy_line(s.library.copy(x, whole), x, whole)
        x = whole
    call.aim(0, x)
    for place, value in ((1, h), (2, c)):
        s.aim(call, place, value)
    outputs = s.reserve(node.outputs[:n], (n, rows, hidden), np.float32)
    last = s.reserve([node.outputs[n]], (rows, hidden), np.float32)
    for place, array in ((6, outputs), (7, s.reserve([], (rows, hidden), np.float32)), (8, last)):
        call.aim(place, array)
    if notes_size:
        call.aim(9, s.reserve([], (notes_size,), np.uint8))
    compiled = ""
    largest = MAX_STATE if rows >= thread_count() else MAX_STATE_OF_FEW_ROWS
    if 16 * hidden * hidden <= largest and native_expected():
        native = _Compiled(s, node, (x, outputs, last))
        s.renew(native.forget)
        s.warming = native.is_hot  # (a primitive until then)
        names = [s.name(v) for v in (h, c, kernel, bias)]
        compiled = f"{s.new_param(native)}({', '.join(names)})"
    s.execute(call, compiled)
    for value, array in zip(node.outputs, (*outputs, last)):
        s.place(value, array)
    return TAKEN


class _Compiled:
    """The layer by compiled code; a call says whether it has done the work."""

    __slots__ = (
        "_arrays",
        "_node",
        "_pack",
        "_product",
        "_refused",
        "_steps",
        "_weights",
        "is_hot",
    )

    def __init__(self, s: Binder, node: Node, arrays: tuple[Array, Array, Array]) -> None:
        self._node, self._refused = node, False
        self._pack, self._product = s.accelerator.pack, s.accelerator.product
        x, outputs, last = arrays
        gates = s.reserve([], (x.shape[0] * x.shape[1], 4 * outputs.shape[2]), np.float32)
        self._arrays = (x.reshape(len(gates), -1), gates, outputs, last)
        self.is_hot = Warming(gates.size)
        self._weights: Any = None
        self._steps: Any = None

    def forget(self) -> None:
        """The weights have changed."""
        self._weights = self._steps = None

    def __call__(self, h: Array, c: Array, kernel: Array, bias: Array) -> bool:
        if self._refused or not self.is_hot():
            return False
        if self._steps is None and not self._take(kernel):
            self._refused = True
            return False
        x, gates, _, last = self._arrays
        packed, first = self._weights
        if self._product(x, packed, bias, None, gates) is None:
            return False
        first[...] = h
        last[...] = c
        self._steps()
        return True

    def _take(self, kernel: Array) -> bool:
        """Bring the weights into the orders that they are read in."""
        from headrace.kernels.native.recurrent_kernels import Steps, in_panels

        x, gates, outputs, last = self._arrays
        packed = self._pack(np.ascontiguousarray(kernel[: x.shape[1]]), len(x))
        if packed is None:
            return False
        first = np.empty(last.shape, np.float32)
        made = [in_panels(kernel[x.shape[1] :]), first, last, gates, outputs]
        order, forget = self._node.attrs["order"], self._node.attrs["forget_bias"]
        self._weights, self._steps = (
            (packed, first),
            Steps.of_inference(made, outputs.shape, order, forget),
        )
        return True


def _aim_lstm(
    s: Binder, call: Any, node: Node, sizes: tuple[int, int, int], order: Any, forget: float
) -> None:
    n, rows, wide = sizes
    kernel, bias, forms = (s.array(i) for i in node.inputs[-3:])
    pack = s.accelerator.pack_lstm
    packed_form = packed_forms(forms).get(
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
    if first.dtype != FLOAT32 or first.ndim != 2 or not first.size:
        return None
    starts = [a.__array_interface__["data"][0] for a in arrays]
    step = starts[1] - starts[0] if len(arrays) > 1 else first.nbytes
    if any(b - a != step for a, b in itertools.pairwise(starts)) or step <= 0:
        return None
    if any(a.shape != first.shape or a.strides != first.strides for a in arrays):
        return None
    shape, strides = (len(arrays), *first.shape), (step, *first.strides)
    return np.lib.stride_tricks.as_strided(first, shape, strides)
