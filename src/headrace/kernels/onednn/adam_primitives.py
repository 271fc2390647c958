"""Adam in three passes over memory, each on all cores.

    m   = beta1*m + (1-beta1)*g
    v   = beta2*v + (1-beta2)*g*g
    var = var - rate * m / (sqrt(v) + epsilon)

The primitives belong to a size and to the betas and epsilon, which do not change while a program
trains; the rate does and is an argument. Each thread has its own.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.onednn.onednn_library import (
    DST,
    LINEAR,
    MUL,
    POST_OP,
    POW,
    SQRT,
    SRC,
    SRC1,
    Api,
)
from headrace.kernels.onednn.primitive import FLOAT32

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Adam"]

#: Variables below this size are left to NumPy.
MIN_SIZE = 16 * 1024
MAX_KEPT = 256

_Key = tuple[int, float, float, float]


class _Update:
    """The three primitives for one size, with the memory objects that they work on."""

    def __init__(self, api: Api, key: _Key) -> None:
        size, beta1, beta2, epsilon = key
        self.api = api
        desc, one = api.vector(size), api.vector(1)
        self.numbers = np.array([1 - beta1, 1.0, 0.0], np.float32)
        names = ("var", "m", "v", "g", "g_again")
        self.at = {n: api.memory(desc) for n in names}
        self.memories = tuple(self.at.values())
        self.aim, self.buffer = api.c.dnnl_memory_set_data_handle, api.ffi.from_buffer
        rest, unit, rate = (api.memory(one) for _ in range(3))
        for i, memory in enumerate((rest, unit, rate)):
            api.check(api.c.dnnl_memory_set_data_handle(memory, api.pointer(self.numbers[i:])))
        at = self.at
        self.steps = [
            (
                api.binary(MUL, desc, one, desc, [("sum", beta1)]),
                api.arguments((SRC, at["g"]), (SRC1, rest), (DST, at["m"])),
            ),
            (
                api.binary(
                    MUL, desc, desc, desc, [("eltwise", LINEAR, 1 - beta2, 0.0), ("sum", beta2)]
                ),
                api.arguments((SRC, at["g"]), (SRC1, at["g_again"]), (DST, at["v"])),
            ),
            (
                api.binary(
                    MUL,
                    desc,
                    one,
                    desc,
                    [
                        ("eltwise", SQRT, 0.0, 0.0),
                        ("eltwise", LINEAR, 1.0, epsilon),
                        ("eltwise", POW, 1.0, -1.0),
                        ("binary", MUL, desc),
                        ("binary", MUL, one),
                        ("sum", 1.0),
                    ],
                ),
                api.arguments(
                    (SRC, at["v"]),
                    (SRC1, unit),
                    (DST, at["var"]),
                    (4 * POST_OP | SRC1, at["m"]),
                    (5 * POST_OP | SRC1, rate),
                ),
            ),
        ]
        self.keep = (desc, one, rest, unit, rate)

    def __call__(self, var: Array, m: Array, v: Array, g: Array, rate: float | Array) -> None:
        aim, buffer = self.aim, self.buffer
        at_var, at_m, at_v, at_g, at_g_again = self.memories
        gradient = buffer(g)
        aim(at_var, buffer(var))
        aim(at_m, buffer(m))
        aim(at_v, buffer(v))
        aim(at_g, gradient)
        aim(at_g_again, gradient)
        self.numbers[2] = -rate
        for primitive, arguments in self.steps:
            self.api.execute(primitive, arguments)


class Adam:
    """``adam(var, m, v, …)`` in place; False where the arrays are not large contiguous float32."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.local = threading.local()

    def __call__(
        self,
        var: Array,
        m: Array,
        v: Array,
        rate: float | Array,
        beta1: float | Array,
        beta2: float | Array,
        epsilon: float | Array,
        grad: Array,
    ) -> bool:
        if var.size < MIN_SIZE or not all(_fits(x) for x in (var, m, v, grad)):
            return False
        key = (var.size, float(beta1), float(beta2), float(epsilon))
        self._update(key)(var, m, v, grad, float(rate))
        return True

    def _update(self, key: _Key) -> _Update:
        kept: dict[_Key, _Update] = self.local.__dict__.setdefault("kept", {})
        update = kept.get(key)
        if update is None:
            if len(kept) >= MAX_KEPT:
                kept.clear()
            update = kept[key] = _Update(self.api, key)
        return update


def _fits(x: Array) -> bool:
    return x.dtype is FLOAT32 and bool(x.flags.c_contiguous)
