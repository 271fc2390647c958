"""Layers whose weights the program does not write keep them packed (kernels/packed_weights.py).

``MatMul(x, w)`` becomes ``_PackedMatMul(x, w, _PackedWeights(w))``, inside of loops, too.
``_PackedWeights(w)`` depends on a variable alone and is therefore kept between runs until the
variable is written (lower/stage_split.py); for a constant it is a constant.
"""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.opdef import OpDef, lookup
from headrace.kernels import accel
from headrace.kernels.packed_weights import PackedForms, WeightsForm
from headrace.lower.stage_split import makers_of
from headrace.ops.internal.packed_ops import PACKED_WEIGHTS, packed_arguments
from headrace.program.nodes import (
    Block,
    If,
    NearMiss,
    Node,
    Program,
    Statement,
    ValueInfo,
    While,
    walk,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["count_packed", "pack"]


def pack(program: Program, weights: str = "float32") -> Program:
    """The program with packed weights, products' as the type that is named, if there is a kernel
    library that packs.
    """
    nodes = [s for s in walk(program.body) if s.opdef.traits.packed_as and _is_large(s, program)]
    if not nodes:
        return program
    steady = {v.start for v in program.variables if not v.written}
    steady.update(makers_of(program))
    large = [s for s in nodes if _wanted(s, program, steady)]
    if weights == "float32" and program.writes:
        large = [s for s in large if not _is_product_of_variable(s, program)]
    way = _weights_form(weights) if large and weights != "float32" else None
    if way is not None:
        program = program._replace(weights_form=way)
        if way.kind == "float32":
            _warn(way)
    if not large or accel.library() is None:
        return program
    return _replaced(program, {id(s) for s in large}, way)


def count_packed(program: Program, packed: Program) -> int:
    """How many steps of a program take packed weights after ``pack``."""
    if packed is program:
        return 0
    before = set(map(id, walk(program.body)))
    made = [n for n in walk(packed.body) if id(n) not in before]
    return sum(n.opdef is not PACKED_WEIGHTS for n in made)


def _weights_form(asked: str) -> WeightsForm:
    """What becomes of weights of a type on this machine."""
    found = accel.library()
    if found is None:
        why = f"there is no kernel library: {accel.status()}"
        return WeightsForm(asked, "float32", "float32", why, "float32's rounding")
    return found.weights_form(asked)


@functools.cache
def _warn(way: WeightsForm) -> None:
    """Once: what was asked for is not done."""
    warnings.warn(
        f"weights={way.asked!r} has no effect: products are computed in float32 ({way.reason}).",
        stacklevel=2,
    )


def min_elements(opdef: OpDef) -> int:
    """The elements of weights from which packing them is worth while."""
    return opdef.traits.packed_from


def _wanted(s: Node, program: Program, steady: set[int]) -> bool:
    unless = s.opdef.traits.packed_unless
    if unless and s.attrs.get(unless):  # a gradient needs more than the packed op gives
        return False
    weights = _weights(s)
    if weights not in steady and weights not in program.constants:
        return False
    return s.inputs[0] not in steady


def _is_large(s: Node, program: Program) -> bool:
    info = program.values[_weights(s)]
    size = shapes.num_elements(info.shape)
    return info.dtype is dtypes.float32 and size is not None and size >= min_elements(s.opdef)


def _is_product_of_variable(s: Node, program: Program) -> bool:
    """In a program that writes variables, others are mostly trained by another one in turn (the
    two halves of a GAN): products with them are bound with the rest of the step instead
    (lower/bound_runs.py).
    """
    return s.opdef.role == "matmul" and _weights(s) not in program.constants


def _weights(s: Node) -> int:
    return s.inputs[s.opdef.traits.packed_input]


def _kind_of(s: Node, program: Program, way: WeightsForm | None, misses: list[NearMiss]) -> str:
    """The type in which a product reads its weights."""
    if way is None:
        return "float32"
    shape = program.values[_weights(s)].shape
    inner = None if shape is None else shape[1 if s.attrs.get("transpose_b") else 0]
    if way.max_inner is not None and inner is not None and inner > way.max_inner:
        why = f"sums of {inner} products may not fit into 32 bits (the most is {way.max_inner})"
        misses.append(NearMiss(f"weights in {way.asked}", s.op.name, why))
        return "float32"
    return way.kind


class _Replacing:
    """The program with packed weights under construction: what is kept stands in the outermost
    block, before the first statement that reads it, also for products inside of loops.
    """

    def __init__(self, program: Program, chosen: set[int], way: WeightsForm | None) -> None:
        self.program, self.chosen, self.way = program, chosen, way
        self.values, self.constants = list(program.values), dict(program.constants)
        self.misses: list[NearMiss] = []
        self.forms_of: dict[int, int] = {}
        self.made: list[Statement] = []  # nodes that hold weights, not placed yet

    def outermost(self, block: Block) -> Block:
        body: list[Statement] = []
        for s in block:
            statement = self._statement(s)
            body += [*self.made, statement]
            self.made.clear()
        return tuple(body)

    def _inner(self, block: Block) -> Block:
        return tuple([self._statement(s) for s in block])

    def _statement(self, s: Statement) -> Statement:
        if isinstance(s, If):
            return s._replace(body=self._inner(s.body))
        if isinstance(s, While):
            return s._replace(test=self._inner(s.test), body=self._inner(s.body))
        return self._node(s) if id(s) in self.chosen else s

    def _node(self, s: Node) -> Node:
        assert s.opdef.traits.packed_as is not None
        packed_op = lookup(s.opdef.traits.packed_as)
        inputs, attrs = packed_arguments(packed_op, s.inputs, s.attrs, self._packed_forms(s))
        if s.opdef.role == "matmul":
            attrs["weights"] = _kind_of(s, self.program, self.way, self.misses)
        made = sum(attrs[a.number_attr] if a.number_attr else 1 for a in packed_op.outputs)
        return Node(packed_op, inputs, s.outputs[:made], attrs, s.op)

    def _packed_forms(self, s: Node) -> int:
        weights = _weights(s)
        forms = self.forms_of.get(weights)
        if forms is None:
            forms = self.forms_of[weights] = len(self.values)
            self.values.append(ValueInfo(dtypes.variant, (), None))
            if weights in self.constants:
                self.constants[forms] = _as_constant(PackedForms())
            else:
                self.made.append(
                    Node(PACKED_WEIGHTS, (weights,), (forms,), {"T": dtypes.float32}, s.op)
                )
        return forms


def _replaced(program: Program, chosen: set[int], way: WeightsForm | None) -> Program:
    work = _Replacing(program, chosen, way)
    body = work.outermost(program.body)
    return program._replace(
        body=body,
        values=work.values,
        constants=work.constants,
        near_misses=(*program.near_misses, *work.misses),
    )


def _as_constant(forms: PackedForms) -> Array:
    box = np.empty((), object)
    box[()] = forms
    return box
