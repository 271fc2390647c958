"""All steps of an LSTM layer in one primitive, for inference.

oneDNN wants the gates in the order i, f, g, o; other orders are brought into it when the weights
are packed.

    >>> # kernel: [inputs + hidden, 4 * hidden]; x: [steps, rows, inputs]
    >>> packed = lstms.pack(kernel, 200, (0, 2, 1, 3), steps=20, rows=64)
    >>> outputs, state = lstms.layer(x, h, c, packed, bias)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.onednn.memory_formats import Reorder, implementation
from headrace.kernels.onednn.onednn_library import (
    BIAS,
    INFERENCE,
    TRAINING,
    WEIGHTS_DESC,
    WORKSPACE,
    WORKSPACE_DESC,
    Api,
)
from headrace.kernels.onednn.primitive import FLOAT32, Cache, Call, aligned, contiguous_float32

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Lstms", "PackedLstm"]

MAX_KEPT = 16
LEFT_TO_RIGHT = 1
#: Units are computed in groups of so many.
UNITS = 32
SRC_LAYER, SRC_ITER, SRC_ITER_C = 1, 2, 3
DST_LAYER, DST_ITER, DST_ITER_C = 17, 18, 19
WEIGHTS_LAYER, WEIGHTS_ITER = 33, 34


class _Key(NamedTuple):
    steps: int
    rows: int
    inputs: int
    hidden: int


class _Made(NamedTuple):
    call: Call
    of_input: Any  # how the weights lie
    of_state: Any
    owner: Any
    notes_size: int  # bytes of a further argument, the last one, whose contents nothing reads


class PackedLstm(NamedTuple):
    key: _Key
    of_input: Any
    of_state: Any

    @property
    def nbytes(self) -> int:
        return int(self.of_input.nbytes + self.of_state.nbytes)


class Lstms:
    """Both functions answer None where oneDNN has no fast code, or the arrays are not contiguous
    float32.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self.kept: Cache[_Key, _Made | None] = Cache(MAX_KEPT)

    def pack(
        self, kernel: Array, inputs: int, order: tuple[int, ...], steps: int, rows: int
    ) -> PackedLstm | None:
        if kernel.dtype is not FLOAT32 or not steps or not rows:
            return None
        hidden = kernel.shape[1] // 4
        key = _Key(steps, rows, inputs, hidden)
        made = self.kept.get(key, self._make)
        if made is None:
            return None
        gates = np.ascontiguousarray(kernel.reshape(-1, 4, hidden)[:, list(order)])
        return PackedLstm(
            key,
            self._packed(gates[:inputs], made.of_input),
            self._packed(gates[inputs:], made.of_state),
        )

    def _packed(self, weights: Array, layout: Any) -> Any:
        api = self.api
        data = aligned(api.c.dnnl_memory_desc_get_size(layout))
        Reorder(api, api.tensor((1, 1, *weights.shape)), layout)(weights, data)
        return data

    def layer(self, x: Array, h: Array, c: Array, packed: PackedLstm, bias: Array) -> Any:
        """What each step puts out, and the last state; ``bias`` is in the order i, f, g, o."""
        key = packed.key
        state = (key.rows, key.hidden)
        if x.shape != key[:3] or h.shape != state or c.shape != state:
            return None
        if bias.size != 4 * key.hidden or not contiguous_float32(x, h, c, bias):
            return None
        made = self.kept.get(key, self._make)
        if made is None:
            return None
        outputs = np.empty((key.steps, *state), np.float32)
        last_h, last_c = np.empty(state, np.float32), np.empty(state, np.float32)
        notes = [np.empty(made.notes_size, np.uint8)] if made.notes_size else []
        made.call(x, h, c, packed.of_input, packed.of_state, bias, outputs, last_h, last_c, *notes)
        return outputs, last_c

    def _make(self, key: _Key) -> _Made | None:
        api = self.api
        steps, rows, inputs, hidden = key
        null = api.ffi.NULL
        state, bias = api.tensor((1, 1, rows, hidden)), api.tensor((1, 1, 4, hidden))
        x, y = api.tensor((steps, rows, inputs)), api.tensor((steps, rows, hidden))
        free = [api.free_tensor((1, 1, n, 4, hidden)) for n in (inputs, hidden)]
        # the code for inference computes with a number of units that is rounded up; that for
        # training does not, but takes notes
        padded = hidden % UNITS != 0
        description = api.description(
            "lstm_forward",
            TRAINING if padded else INFERENCE,
            LEFT_TO_RIGHT,
            x,
            state,
            state,
            *free,
            null,
            null,
            bias,
            y,
            state,
            state,
            0,
            api.attributes(),
        )
        if not padded and implementation(api, description).startswith("ref"):
            return None
        of_input, of_state = (
            api.c.dnnl_primitive_desc_query_md(description, WEIGHTS_DESC, n) for n in (0, 1)
        )
        places = [
            (SRC_LAYER, x),
            (SRC_ITER, state),
            (SRC_ITER_C, state),
            (WEIGHTS_LAYER, of_input),
            (WEIGHTS_ITER, of_state),
            (BIAS, bias),
            (DST_LAYER, y),
            (DST_ITER, state),
            (DST_ITER_C, state),
        ]
        notes_size = 0
        if padded:
            notes = api.query(description, WORKSPACE_DESC)
            places.append((WORKSPACE, notes))
            notes_size = int(api.c.dnnl_memory_desc_get_size(notes))
        return _Made(Call(api, description, places), of_input, of_state, description, notes_size)
