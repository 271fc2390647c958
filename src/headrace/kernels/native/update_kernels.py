"""Optimizer updates compiled from their formulas (ops/training/update_rules.py): in place, in one
pass over memory.

A rule is written once, as a function of an array library ``xp``. Here it is called with values of
a loop under construction instead of arrays, so that the compiled update rounds exactly where the
formula does. ``dense`` updates whole variables, over threads; ``sparse`` updates the rows that
``indices`` names, one after the other as TensorFlow does, so that a repeated row is updated
repeatedly.

    update = Update(rule, "f32", (("use_nesterov", False),))
    update.dense([var, accum], [lr, grad, momentum], [var, accum])
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace.kernels.native.array_calls import Argument, ArrayCall
from headrace.kernels.native.element_loops import (
    GRAIN,
    Access,
    element_loop,
    lanes_for,
    load_operands,
)
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Operand, Value
from headrace.kernels.native.kernel import Kernel
from headrace.kernels.native.llvm_library import load

if TYPE_CHECKING:
    from headrace.core.annotations import Array, DTypeLike, TensorLike

__all__ = ["Update", "find_update", "why_not_native"]


class RuleLike(Protocol):
    """What is needed of a rule: names of variables and other inputs, and the formula."""

    @property
    def name(self) -> str: ...
    @property
    def variables(self) -> tuple[str, ...]: ...
    @property
    def rest(self) -> tuple[str, ...]: ...
    @property
    def gradient(self) -> str: ...
    @property
    def update(self) -> Any: ...


class _Library:
    """The array functions that rules call, on values of a loop."""

    name = "native"

    def __init__(self, f: Function) -> None:
        self.f = f
        self.sqrt, self.abs = f.sqrt, f.abs
        self.maximum, self.minimum = f.maximum, f.minimum

    def sign(self, x: Value) -> Value:
        """-1, 0 or 1; NaN of NaN."""
        one = self.f.copysign(1.0, x)
        is_signed = (x < 0.0) | (x > 0.0)
        return self.f.select(is_signed, one, x)

    def power(self, x: Value, exponent: Operand) -> Value:
        """Rules take powers of -lr_power alone; the caller has seen that it is one half."""
        return self.f.sqrt(x)

    def asarray(self, x: Value) -> Value:
        return x


def why_not_native(rule: RuleLike, dtype: Any, rest: Sequence[Any]) -> str:
    """Why an update is left to NumPy; empty if it can be compiled (with ``rest`` not known yet:
    if it can be for the usual numbers).
    """
    if rule.name in _NEEDS_EXP:
        return "its formula has an exponential"
    if getattr(dtype, "np_dtype", dtype) not in _FLOATS:  # (a dtype's name is slow to make)
        return f"variables of {dtype.name}"
    if rest and "lr_power" in rule.rest and rest[rule.rest.index("lr_power")] != -0.5:
        return "a learning-rate power other than -0.5"
    return ""


_NEEDS_EXP = frozenset(["PowerSign"])
_FLOATS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


class Update:
    """The kernels of one rule for one element type and one set of attributes."""

    def __init__(self, rule: RuleLike, element: str, attrs: tuple[tuple[str, Any], ...]) -> None:
        self.rule, self.element, self.attrs = rule, element, dict(attrs)
        self.at = rule.rest.index(rule.gradient)

    def body(self, f: Function, values: Sequence[Value]) -> Sequence[Value]:
        """Values of the variables, the gradient and the numbers to the variables' new ones."""
        count = len(self.rule.variables)
        variables, gradient, numbers = values[:count], values[count], values[count + 1 :]
        rest = [*numbers[: self.at], gradient, *numbers[self.at :]]
        made = self.rule.update(_Library(f), *variables, *rest, **self.attrs)
        return made if isinstance(made, tuple) else (made,)

    @functools.cached_property
    def _dense(self) -> Kernel:
        array, number = Access(self.element), Access(self.element, "scalar")
        arrays = [array] * len(self.rule.variables)
        inputs = [*arrays, array, *[number] * (len(self.rule.rest) - 1)]
        return Kernel(element_loop("update", inputs, arrays, self.body), "update")

    def dense(self, variables: Sequence[Any], rest: Sequence[Any], made: Sequence[Any]) -> None:
        """Write the variables' new values into ``made``, which may be the variables themselves.
        All are contiguous.
        """
        dtype = variables[0].dtype
        gradient = np.ascontiguousarray(rest[self.at], dtype)
        operands = [*variables, gradient, *self.numbers(rest, dtype), *made]
        self._dense.run(operands, [], gradient.size, GRAIN)

    def numbers(self, rest: Sequence[Any], dtype: Array) -> list[Any]:
        numbers = np.array([x for i, x in enumerate(rest) if i != self.at], dtype)
        return [numbers[i : i + 1] for i in range(numbers.size)]

    @functools.cached_property
    def _sparse(self) -> Kernel:
        return Kernel(self._rows(), "rows")

    def _rows(self) -> str:
        """Items are indices; sizes are (a row's length,)."""
        names = [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")]
        f = Function("rows", names)
        operands, sizes, first, end = f.arguments
        count, numbers = len(self.rule.variables), len(self.rule.rest) - 1
        pointers = load_operands(f, operands, count + 2 + numbers)
        variables, gradient, indices = pointers[:count], pointers[count], pointers[count + 1]
        scalars = [f.load(p, self.element) for p in pointers[count + 2 :]]
        width, lanes = f.load(sizes, "i64"), lanes_for([self.element])
        with f.loop(first, end) as row:
            start = f.load(indices, "i64", row.index) * width
            with f.loop(0, width, lanes) as column:
                mask = f.lanes_below(width - column.index, lanes)
                at = start + column.index
                values = [f.load(p, self.element, at, lanes, mask) for p in variables]
                values.append(
                    f.load(gradient, self.element, row.index * width + column.index, lanes, mask)
                )
                values += [f.splat(s, lanes) for s in scalars]
                for pointer, new in zip(variables, self.body(f, values)):
                    f.store(new, pointer, at, mask)
        return module(f)

    def sparse(self, variables: Sequence[Any], rest: Sequence[Any], indices: TensorLike) -> None:
        """Overwrite rows of the variables; ``rest`` is without the indices, which are rows."""
        dtype = variables[0].dtype
        gradient = np.ascontiguousarray(rest[self.at], dtype)
        at = np.ascontiguousarray(indices, np.int64)
        numbers = self.numbers(rest, dtype)
        width = int(np.prod(variables[0].shape[1:], dtype=np.int64))
        self._sparse.run([*variables, gradient, at, *numbers], [width], at.size, at.size + 1)

    def together(self, sizes: Sequence[int]) -> ArrayCall:
        """New values of small variables that lie one after the other, in arrays for each slot.

        ``call(*arrays, *gradients, *numbers, *new arrays)``; ``sizes`` are the gradients', which
        are flat.
        """
        from headrace.kernels.native.segment_code import Ref, SegmentCode

        code, whole, count = SegmentCode(), (sum(sizes),), len(self.rule.variables)
        arrays = [code.operand("input", self.element, whole) for _ in range(count)]
        gradients = [code.operand("input", self.element, (n,)) for n in sizes]
        rest = range(len(self.rule.rest) - 1)
        numbers = [code.operand("input", self.element, ()) for _ in rest]
        outputs = [code.operand("output", self.element, whole) for _ in range(count)]
        lanes, start = lanes_for([self.element]), 0
        for gradient in gradients:
            size = (gradient.size,)
            inputs = [*(Ref(a.buffer, size, start) for a in arrays), gradient]
            made = [Ref(o.buffer, size, start) for o in outputs]

            def write(
                code: SegmentCode, f: Function, inputs: list[Ref] = inputs, made: list[Ref] = made
            ) -> None:
                pointers = [code.pointer(f, r) for r in inputs]
                fixed = [f.load(code.pointer(f, r), self.element) for r in numbers]
                targets = [code.pointer(f, r) for r in made]

                def step(index: Value, width: int) -> None:
                    values = [f.load(p, self.element, index, width) for p in pointers]
                    values += [f.splat(n, width) for n in fixed]
                    for target, value in zip(targets, self.body(f, values)):
                        f.store(value, target, index)

                code.spans(f, made[0].size, lanes, lanes * 2, step)

            code.unit([*inputs, *numbers], made, write)
            start += gradient.size
        text, scratch = code.source()
        dtype = np.dtype({"f32": np.float32, "f64": np.float64}[self.element])
        shapes = [r.shape for r in (*arrays, *gradients, *numbers, *outputs)]
        arguments = [Argument(shape, dtype) for shape in shapes]
        return ArrayCall(load().compile(text), "segment", arguments, [np.empty(scratch + 8, "u1")])


_updates: dict[Any, Update] = {}


def find_update(rule: RuleLike, dtype: DTypeLike, attrs: dict[str, Any]) -> Update:
    """The update of a rule for variables of a dtype, made once."""
    key = (rule.name, dtype, tuple(sorted(attrs.items())))
    found = _updates.get(key)
    if found is None:
        found = _updates[key] = Update(rule, _FLOATS[dtype], key[2])
    return found
