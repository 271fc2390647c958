"""Products of the steps of a recurrent layer: the weights packed once for all steps, the gates'
functions in the same pass.

>>> step = recurrent.gates(weights, rows, factor, before, after)
>>> step(h, out)      # out = tanh((out + h @ weights) * factor + before) * factor + after
>>> back = recurrent.product(weights.T, rows)
>>> back(d, out)      # out = d @ weights.T
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.kernels.onednn.memory_formats import Reorder, implementation
from headrace.kernels.onednn.onednn_library import (
    ADD,
    DST,
    MUL,
    POST_OP,
    SRC,
    SRC1,
    WEIGHTS,
    WEIGHTS_DESC,
    Api,
)
from headrace.kernels.onednn.primitive import FLOAT32, Cache, Call, aligned

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Recurrent"]

MAX_KEPT = 32
TANH = ("eltwise", 0x21, 0.0, 0.0)


class _Key(NamedTuple):
    rows: int
    shape: tuple[int, int]
    strides: tuple[int, int]  # of the weights, in elements
    gated: bool
    before: bool


class _Packing(NamedTuple):
    reorder: Reorder
    call: Call
    size: int


class Recurrent:
    """Both functions answer None where oneDNN has no fast code, or the arrays are not float32."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.kept: Cache[_Key, _Packing | None] = Cache(MAX_KEPT)

    def gates(
        self, weights: Array, rows: int, factor: Array, before: Array, after: Array
    ) -> Callable[[Any, Any], None] | None:
        packed = self._packed(weights, rows, True, before is not None)
        if packed is None:
            return None
        call, data = packed
        more = (factor, factor, after) if before is None else (factor, before, factor, after)
        return lambda h, out: call(h, data, out, *more)

    def product(self, weights: Array, rows: int) -> Callable[[Any, Any], None] | None:
        packed = self._packed(weights, rows, False, False)
        if packed is None:
            return None
        call, data = packed
        return lambda a, out: call(a, data, out)

    def _packed(self, weights: Any, rows: int, gated: bool, before: bool) -> Any:
        if weights.dtype is not FLOAT32 or not weights.size or any(s % 4 for s in weights.strides):
            return None
        strides = (weights.strides[0] // 4, weights.strides[1] // 4)
        key = _Key(rows, weights.shape, strides, gated, before)
        made = self.kept.get(key, self._make)
        if made is None:
            return None
        data = aligned(made.size)
        made.reorder(weights, data)
        return made.call, data

    def _make(self, key: _Key) -> _Packing | None:
        api = self.api
        left, out = api.tensor((key.rows, key.shape[0])), api.tensor((key.rows, key.shape[1]))
        row = api.tensor((1, key.shape[1]))
        steps: list[tuple[Any, ...]] = []
        if key.gated:
            plus = [("binary", ADD, row)] if key.before else []
            steps = [("sum", 1.0), ("binary", MUL, row), *plus, TANH]
            steps += [("binary", MUL, row), ("binary", ADD, row)]
        free = api.free_tensor(key.shape)
        description = api.description(
            "matmul", left, free, api.ffi.NULL, out, api.attributes(steps)
        )
        if implementation(api, description).startswith(("ref", "gemm")):
            return None
        layout = api.query(description, WEIGHTS_DESC)
        places = [(SRC, left), (WEIGHTS, layout), (DST, out)]
        places += [(POST_OP * (n + 1) | SRC1, row) for n, s in enumerate(steps) if s[0] == "binary"]
        reorder = Reorder(api, api.tensor(key.shape, key.strides), layout, description)
        call = Call(api, description, places, steps)
        return _Packing(reorder, call, api.c.dnnl_memory_desc_get_size(layout))
