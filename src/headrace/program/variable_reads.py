"""What a read of a variable means in a run: the value from before it, or one that a write gave.

A read means the value from before the run unless the reading operation depends, by data or control,
on a write of that variable in this run; then it means the value at that point. Each write is a bit.
``masks`` says for each operation which writes it comes after, so that the question is one ``&``.
A TF-1 reference read (``v/read``) is looked through: what counts is the operation that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.core import dtypes
from headrace.core.opdef import FLOW, lookup
from headrace.core.schedule import Loop, Unit, guard_of
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.program.nodes import (
    Node,
    Statement,
    ValueInfo,
)

__all__ = ["FORWARD_ROLES", "VARIABLE_ROLES", "VariableInRun", "VariableReads", "variable_key"]

#: Roles of operations that are variables, and of those whose output is their first input.
VARIABLE_ROLES = frozenset(["variable", "handle"])
FORWARD_ROLES = (FLOW - {"merge"}) | {"identity", "loop condition"}


def variable_key(op: Operation) -> str:
    """What identifies a variable in a session's state.

    Its container and shared name (or its own name).
    """
    name = op._attrs.get("shared_name") or op.name
    container = op._attrs.get("container")
    return f"{container}/{name}" if container else name


class VariableInRun:
    """A variable while the program is built."""

    __slots__ = ("current", "in_loops", "index", "op", "resize_mask", "start", "write_mask")

    def __init__(self, op: Operation, index: int, start: int, current: int) -> None:
        self.op = op
        self.index = index
        self.start = start
        self.current = current
        self.write_mask = 0
        self.resize_mask = 0  # the writes that may change its size
        self.in_loops: set[Any] = set()


class VariableReads:
    """The part of the Program builder (snapshot.py) that gives reads their meaning."""

    def __init__(self) -> None:
        self.values: list[ValueInfo] = []
        self.value_of: dict[Tensor, int] = {}
        self.variables: dict[str, VariableInRun] = {}
        self.refs: dict[Tensor, VariableInRun] = {}
        #: The tensor of the reference read that a looked-through tensor comes from.
        self.read_of: dict[Tensor, Tensor] = {}
        #: What such a read gave, where a write that it does not depend on may change the size.
        self.read_values: dict[Tensor, int] = {}
        self.masks: dict[Operation, int] = {}
        self.write_bits: dict[Operation, int] = {}
        self.frames: list[Any] = []
        self.before_loop = 0  # writes that the loops around come after
        self.preds: set[Tensor] = set()  # what decides over branches

    def _new(self, dtype: dtypes.DType, shape: Shape, tensor: Tensor | None) -> int:
        self.values.append(ValueInfo(dtype, shape, tensor))
        return len(self.values) - 1

    def _variable(self, op: Operation) -> VariableInRun:
        key = variable_key(op)
        variable = self.variables.get(key)
        if variable is None:
            dtype, shape = op._attrs["dtype"], op._attrs.get("shape")
            start = self._new(dtype, shape, None)
            variable = VariableInRun(op, len(self.variables), start, self._new(dtype, shape, None))
            self.variables[key] = variable
        return variable

    def _find_writes(self, units: Sequence[Unit], loops: tuple[Any, ...] = ()) -> None:
        """Resolve references and note every write before reads are given a meaning."""
        for unit in units:
            if isinstance(unit, Loop):
                self._find_writes([*unit.test, *unit.body], (*loops, unit.context))
                continue
            role = unit._opdef.role
            if role in VARIABLE_ROLES:
                if unit._outputs[0] not in self.value_of:
                    self.refs[unit._outputs[0]] = self._variable(unit)
                continue
            if role in FORWARD_ROLES or role == "merge":
                variable = self._forwarded(unit)
                if variable is not None and self._looks_through(unit):
                    self._look_through(unit, variable)
                continue
            writes = unit._opdef.traits.writes
            if writes:
                self._note_writes(unit, writes, loops)

    def _look_through(self, op: Operation, variable: VariableInRun) -> None:
        source = op._inputs[0]
        is_read = op.type == "Identity" and source._dtype._is_ref
        for out in op._outputs:
            if out in self.value_of:
                continue
            self.refs[out] = variable
            read = out if is_read else self.read_of.get(source)
            if read is not None:
                self.read_of[out] = read

    def _forwarded(self, op: Operation) -> VariableInRun | None:
        """The variable whose reference an operation passes on.

        A Merge does so only if both branches agree.
        """
        sources = op._inputs[:1]
        if op._opdef.role == "merge" and op._inputs[0]._op._opdef.role != "enter":
            sources = op._inputs
        found = {self.refs.get(t) for t in sources}
        return found.pop() if len(found) == 1 else None

    def _looks_through(self, op: Operation) -> bool:
        """Identity of a reference is a read of its own only when control dependencies order it.

        A loop variable that starts with a variable's value is a value of its own, too, and so is a
        predicate: a branch may write the variable.
        """
        if op._outputs[0] in self.preds:
            return False
        if op._opdef.role == "enter":
            return bool(op._attrs["is_constant"])
        return not (op.type == "Identity" and op._control_inputs and op._inputs[0]._dtype._is_ref)

    def _note_writes(self, op: Operation, writes: tuple[int, ...], loops: tuple[Any, ...]) -> None:
        bit = 1 << len(self.write_bits)
        self.write_bits[op] = bit
        first: VariableInRun | None = None
        for i in writes:
            variable = self.refs.get(op._inputs[i])
            if variable is None:
                raise ValueError(
                    f"'{op.name}' ({op.type}) writes to {op._inputs[i].name}, which is "
                    "not a variable in this run"
                )
            variable.write_mask |= bit
            if op._attrs.get("validate_shape") is False and _may_resize(op):
                variable.resize_mask |= bit
            variable.in_loops.update(loops)
            first = first or variable
        for out in op._outputs:
            if out._dtype._is_ref and first is not None:
                self.refs[out] = first

    def _version(self, op: Operation, variable: VariableInRun) -> int:
        if variable.write_mask == 0:
            return variable.start
        if self.masks.get(op, 0) & variable.write_mask:
            return variable.current
        if variable.in_loops and any(f in variable.in_loops for f in self.frames):
            return variable.current
        return variable.start

    def _note_mask(self, op: Operation) -> None:
        """Which writes an operation comes after."""
        mask = self.before_loop
        masks = self.masks
        for t in op._inputs:
            mask |= masks.get(t._op, 0)
        for c in op._control_inputs:
            mask |= masks.get(c, 0)
        if op._context is not None:
            for guard in guard_of(op):
                mask |= masks.get(guard.pred._op, 0)
        if mask:
            masks[op] = mask

    def _keep_read(self, op: Operation, variable: VariableInRun, target: list[Statement]) -> None:
        """Remember what a reference read gives, for operations after a write that may resize."""
        value = self._version(op, variable)
        if value != variable.start:  # in a loop that writes: the value of this iteration
            out = op._outputs[0]
            kept = self._new(out._dtype._base, None, out)
            target.append(Node(op._opdef, (value,), (kept,), op._attrs, op))
            value = kept
        self.read_values[op._outputs[0]] = value

    def _read_across(self, op: Operation, i: int, target: list[Statement]) -> int | None:
        """The value of an input that was read before a write which may have resized the variable
        and which ``op`` depends on; None for every other input.
        """
        tensor = op._inputs[i]
        read = self.read_of.get(tensor)
        before = None if read is None else self.read_values.get(read)
        if read is None or before is None:
            return None
        variable = self.refs[tensor]
        if self._version(op, variable) == variable.start:
            return None
        later = self.masks.get(op, 0) & ~self.masks.get(read._op, 0)
        if not later & variable.resize_mask and before != variable.start:
            return None
        value = self._new(tensor._dtype._base, None, tensor)
        attrs = {"T": tensor._dtype._base}
        target.append(
            Node(lookup("_ReadAcrossResize"), (before, variable.current), (value,), attrs, op)
        )
        return value


def _may_resize(assign: Operation) -> bool:
    """Whether an Assign without a check of shapes may change the number of elements."""
    old, new = assign._inputs[0]._shape, assign._inputs[1]._shape
    return old is None or None in old or old != new
