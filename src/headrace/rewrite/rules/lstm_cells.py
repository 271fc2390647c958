"""LSTMs: the element-wise part of a cell, found by its end ``h = sigmoid(o) * tanh(c)``, and layers
of unrolled steps.

A step's gates are ``concat([x, h], 1) @ kernel + bias``. Steps with the same kernel and bias, each
with the output and state of the one before, are a layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace.core import dtypes
from headrace.program.constants import one_integer
from headrace.program.nodes import Node
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["Cell", "Layer", "Step", "find_lstm_cell", "find_lstm_layers"]


class Cell(NamedTuple):
    """What was found."""

    product: int  # the matrix that is split into gates
    c: int  # the state before
    new: Node  # makes the state after
    order: tuple[int, int, int, int]  # the places of i, f, g and o
    forget_bias: float
    nodes: list[Node]  # all but the last


class Step(NamedTuple):
    """A cell with its product."""

    cell: Cell
    last: Node  # makes h
    x: int
    h: int  # of the step before
    kernel: int
    bias: int
    nodes: list[Node]  # all of them


class Layer(NamedTuple):
    steps: list[Step]


class _Gate(NamedTuple):
    part: int
    nodes: list[Node]
    bias: float = 0.0


def find_lstm_cell(node: Node, state: RewriteState) -> Cell | None:
    if state.dtype(node.outputs[0]) not in (dtypes.float32, dtypes.float64):
        return None
    for a, b in (node.inputs, node.inputs[::-1]):
        squashed = state.producer(b, "Tanh")
        new = None if squashed is None else state.producer(squashed.inputs[0], "+")
        out = _sigmoid(a, state)
        if squashed is None or new is None or out is None or out.bias:
            continue
        found = _state_after(new, out, state)
        if found is not None:
            return found._replace(nodes=[*found.nodes, *out.nodes, squashed])
    return None


def _state_after(new: Node, out: _Gate, state: RewriteState) -> Cell | None:
    """sigmoid(f) * c + sigmoid(i) * tanh(g)."""
    for first, second in (new.inputs, new.inputs[::-1]):
        kept, added = state.producer(first, "Mul"), state.producer(second, "Mul")
        if kept is None or added is None:
            return None
        for i_at, g_at in (added.inputs, added.inputs[::-1]):
            i, g = _sigmoid(i_at, state), state.producer(g_at, "Tanh")
            if i is None or g is None or i.bias:
                continue
            for f_at, c in (kept.inputs, kept.inputs[::-1]):
                f = _sigmoid(f_at, state)
                if f is None:
                    continue
                found = _of_one_split((i.part, f.part, g.inputs[0], out.part), c, state)
                if found is not None:
                    product, order, split = found
                    nodes = [new, kept, added, g, *i.nodes, *f.nodes, split]
                    return Cell(product, c, new, order, f.bias, nodes)
    return None


def _sigmoid(value: int, state: RewriteState) -> _Gate | None:
    """sigmoid(part), or sigmoid(part + number)."""
    node = state.producer(value, "Sigmoid")
    if node is None:
        return None
    plus = state.producer(node.inputs[0], "+")
    if plus is None:
        return _Gate(node.inputs[0], [node])
    for part, number in (plus.inputs, plus.inputs[::-1]):
        known = state.constants.get(number)
        if known is not None and known.size == 1:
            return _Gate(part, [node, plus], float(known.reshape(())[()]))
    return None


def _of_one_split(
    parts: tuple[int, int, int, int], c: int, state: RewriteState
) -> tuple[int, tuple[int, int, int, int], Node] | None:
    split = state.producer(parts[0], "Split")
    if split is None or len(split.outputs) != 4 or set(split.outputs) != set(parts):
        return None
    axis = one_integer(state.constants, split.inputs[0])
    shape, before = state.shape(split.inputs[1]), state.shape(c)
    if axis not in (1, -1) or shape is None or len(shape) != 2:
        return None
    if shape[1] is None or before is None or len(before) != 2 or before[1] != shape[1] // 4:
        return None
    i, f, g, o = (split.outputs.index(p) for p in parts)
    return split.inputs[1], (i, f, g, o), split


def find_lstm_layers(nodes: Iterable[Node], state: RewriteState) -> list[Layer]:
    """Layers of two steps or more."""
    by_before: dict[tuple[int, ...], Step] = {}
    steps: list[Step] = []
    for node in nodes:
        cell = find_lstm_cell(node, state) if node.opdef.name == "Mul" else None
        step = None if cell is None else _with_product(cell, node, state)
        if step is not None and _link(step, step.h, step.cell.c) not in by_before:
            by_before[_link(step, step.h, step.cell.c)] = step
            steps.append(step)
    after = {id(n): s for s in steps for n in [_next(s, by_before)] if n is not None}
    layers = []
    for step in steps:
        if id(step) not in after:
            chain = [step]
            while (following := _next(chain[-1], by_before)) is not None:
                chain.append(following)
            if len(chain) > 1:
                layers.append(Layer(chain))
    return layers


def _link(step: Step, h: int, c: int) -> tuple[Any, ...]:
    """What a step and the one before it agree in."""
    return h, c, step.kernel, step.bias, step.cell.order, step.cell.forget_bias


def _next(step: Step, by_before: dict[tuple[int, ...], Step]) -> Step | None:
    return by_before.get(_link(step, step.last.outputs[0], step.cell.new.outputs[0]))


def _with_product(cell: Cell, last: Node, state: RewriteState) -> Step | None:
    plus = state.producer(cell.product, "+", "BiasAdd")
    if plus is None or plus.attrs.get("data_format", "NHWC") != "NHWC":
        return None
    for value, bias in (plus.inputs, plus.inputs[::-1]):
        product = state.producer(value, "MatMul")
        if product is None or product.attrs["transpose_a"] or product.attrs["transpose_b"]:
            continue
        joined = state.producer(product.inputs[0], "ConcatV2")
        axis = None if joined is None else one_integer(state.constants, joined.inputs[-1])
        if joined is None or axis not in (1, -1) or len(joined.inputs) != 3:
            continue
        x, h = joined.inputs[:2]
        kernel = product.inputs[1]
        sizes = [state.shape(v) for v in (x, h, kernel, bias)]
        if not _sizes_fit(sizes, state.shape(cell.product)):
            continue
        nodes = [*cell.nodes, last, plus, product, joined]
        return Step(cell, last, x, h, kernel, bias, nodes)
    return None


def _sizes_fit(sizes: list[Any], product: Any) -> bool:
    if any(s is None for s in sizes):
        return False
    x, h, kernel, bias = sizes
    if len(x) != 2 or len(h) != 2 or None in (*kernel, *bias, x[1], h[1]):
        return False
    columns = product[1]
    return bool(kernel == (x[1] + h[1], columns) and bias == (columns,) and h[1] * 4 == columns)
