"""Layers whose weights the program does not write keep them packed (kernels/packed_weights.py).

``MatMul(x, w)`` becomes ``_HeldMatMul(x, w, _Held(w))``. ``_Held(w)`` depends on a variable alone and is therefore kept between
runs until the variable is written (lower/kept_values.py); for a constant it is a constant.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.kernels import accel
from headrace.kernels.packed_weights import Held
from headrace.lower.kept_values import makers_of
from headrace.ops.internal.packed_ops import HELD, HELD_CONV2D, HELD_LSTM_LAYER, HELD_MATMUL
from headrace.program.nodes import Node, Program, Statement, ValueInfo

__all__ = ["pack"]

#: Elements of weights from which packing them is worth while.
MIN_ELEMENTS = {
    "MatMul": 16 * 1024,
    "_FusedMatMul": 16 * 1024,
    "Conv2D": 256,
    "_FusedConv2D": 256,
    "_LSTMLayer": 0,
}
_REPLACED = {
    "MatMul": HELD_MATMUL, "_FusedMatMul": HELD_MATMUL, "Conv2D": HELD_CONV2D, "_FusedConv2D": HELD_CONV2D,
    "_LSTMLayer": HELD_LSTM_LAYER,
}  # fmt: skip


def pack(program: Program, weights: str = "float32") -> Program:
    """The program with packed weights, products' as the type that is named, if there is a kernel library that packs."""
    if not any(isinstance(s, Node) and s.opdef.name in _REPLACED for s in program.body):
        return program
    steady = {v.start for v in program.variables if not v.written}
    made = makers_of(program, steady)
    steady |= set(made)
    large = [s for s in program.body if _wanted(s, program, steady)]
    if not large or accel.library() is None:
        if large and weights != "float32":
            _warn(weights)
        return program
    return _replaced(program, {id(s) for s in large}, weights)


@functools.cache
def _warn(weights: str) -> None:
    """Once: what was asked for is not done."""
    warnings.warn(
        f"weights={weights!r} has no effect without oneDNN ({accel.status()}); products are computed in float32.",
        stacklevel=2,
    )


def _wanted(s: Statement, program: Program, steady: set[int]) -> bool:
    if not isinstance(s, Node) or s.opdef.name not in _REPLACED:
        return False
    if s.attrs.get("training"):  # an LSTM layer whose gradient needs more than its outputs
        return False
    weights = _weights(s)
    if weights not in steady and weights not in program.constants:
        return False
    info = program.values[weights]
    size = shapes.num_elements(info.shape)
    return (
        info.dtype is dtypes.float32
        and size is not None
        and size >= MIN_ELEMENTS[s.opdef.name]
        and s.inputs[0] not in steady
    )


def _weights(s: Node) -> int:
    return s.inputs[-2 if s.opdef.name == "_LSTMLayer" else 1]


def _replaced(program: Program, chosen: set[int], kind: str) -> Program:
    values, constants = list(program.values), dict(program.constants)
    body: list[Statement] = []
    held_of: dict[int, int] = {}
    for s in program.body:
        if not isinstance(s, Node) or id(s) not in chosen:
            body.append(s)
            continue
        weights = _weights(s)
        held = held_of.get(weights)
        if held is None:
            held = held_of[weights] = len(values)
            values.append(ValueInfo(dtypes.variant, (), None))
            if weights in constants:
                constants[held] = _as_constant(Held())
            else:
                body.append(Node(HELD, (weights,), (held,), {"T": dtypes.float32}, s.op))
        if s.opdef.name == "_LSTMLayer":
            attrs = {k: v for k, v in s.attrs.items() if k != "training"}
            outputs = s.outputs[: s.attrs["N"] + 1]
            body.append(Node(HELD_LSTM_LAYER, (*s.inputs, held), outputs, attrs, s.op))
            continue
        inputs = (*s.inputs[:2], held, *s.inputs[2:])
        attrs = {**s.attrs, "fused_ops": tuple(s.attrs.get("fused_ops", ()))}
        attrs["num_args"] = len(s.inputs) - 2
        if _REPLACED[s.opdef.name] is HELD_MATMUL:
            attrs["weights"] = kind
        body.append(Node(_REPLACED[s.opdef.name], inputs, s.outputs, attrs, s.op))
    return program._replace(body=tuple(body), values=values, constants=constants)


def _as_constant(held: Held) -> Any:
    box = np.empty((), object)
    box[()] = held
    return box
