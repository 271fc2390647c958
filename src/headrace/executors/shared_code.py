"""Plans of the same structure share one compiled function; constants are its parameters.

A program that builds its graph in a loop makes, every time, a graph that differs from the last one
in the values of its constants only. The first is planned like any other. From the second on, the
structure (op types, attributes, wiring, types, shapes) is looked up, and what is left to do is to
bind the new constants. Only pure programs take part.

What a compiled function depends on is part of its key by construction. While it is made, the stages
see a program without the user's operations (:class:`NumberedOp`) and with constants that record who
looks at their values (program/constants.py). Shared code belongs to one structure and to the values
that were looked at: ``reduce_sum(x, 0)`` and ``reduce_sum(x, 1)`` have one structure and two
functions.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from headrace.core.opdef import OpDef
from headrace.core.schedule import needed_ops
from headrace.core.tensor import Operation, Tensor
from headrace.executors.numpy_executor import make_locator
from headrace.lower.emit import emit
from headrace.lower.emit_lines import Compiled
from headrace.lower.executable import Details, Executable, Options
from headrace.lower.passes import Choices, make_listing, make_plan
from headrace.lower.plan import Plan
from headrace.lower.select_packed import pack
from headrace.program.binding_times import why_no_computation
from headrace.program.constants import RecordedConstants, attributes_key, exact_key
from headrace.program.nodes import Program, walk
from headrace.program.snapshot import snapshot
from headrace.rewrite.engine import rewrite
from headrace.rewrite.rule_table import bits_depend_on_values, rules_for
from headrace.runtime.fork_locks import held_at_fork

__all__ = ["Structure", "shared_executable", "structure_of"]

MAX_OPS = 64
MAX_SHARED = 512
#: Functions of one structure, for different values of what its code depends on.
MAX_VARIANTS = 8


class Structure:
    """A pruned graph without the values of its constants."""

    __slots__ = ("constants", "key", "ops")

    def __init__(self, key: Hashable, constants: list[Any], ops: list[Operation]) -> None:
        self.key = key
        self.constants = constants
        self.ops = ops


def structure_of(elements: Sequence[Any], feeds: Sequence[Tensor]) -> Structure | None:
    """The structure of a small pure program; None if it is neither."""
    fed = {t: i for i, t in enumerate(feeds)}
    roots = []
    for e in elements:
        if type(e) is not Tensor:
            return None
        if e not in fed:
            roots.append(e._op)
    needed = needed_ops(roots, fed, limit=MAX_OPS)
    if len(needed) > MAX_OPS or (roots and roots[0].graph._reordered):
        return None
    ops = sorted(needed, key=_id) if len(needed) > 1 else list(needed)
    number: dict[Operation, int] = {}
    parts: list[Any] = []
    constants: list[Any] = []
    for n, op in enumerate(ops):
        number[op] = n
        if op._opdef.role == "constant":
            value = op._attrs["value"]
            constants.append(value)
            parts.append((value.shape, value.dtype))
            continue
        if op._context is not None or op._control_inputs or not _may_share(op._opdef):
            return None
        wires = tuple(
            [(-1, fed[t]) if t in fed else (number[t._op], t._value_index) for t in op._inputs]
        )
        results = tuple([(t._dtype, t._shape) for t in op._outputs])
        try:
            attrs = attributes_key(op._attrs)
        except TypeError:  # an attribute without a key
            return None
        parts.append((op.type, wires, results, attrs))
    outputs = tuple(
        [(-1, fed[e]) if e in fed else (number[e._op], e._value_index) for e in elements]
    )
    given = tuple([(t._dtype, t._shape) for t in feeds])
    key = (tuple(parts), outputs, given)
    try:
        hash(key)
    except TypeError:
        return None
    return Structure(key, constants, ops)


def _id(op: Operation) -> int:
    return op._id


@functools.lru_cache(4096)
def _may_share(opdef: OpDef) -> bool:
    """A computation without variables, whose kernel does not look at its operation."""
    if opdef.traits.writes or opdef.traits.reads or "node" in opdef.kernel_params:
        return False
    return not why_no_computation(opdef)


class NumberedOp:
    """Stands for an operation while shared code is made.

    Its name, type and number, and no way to its graph.
    """

    __slots__ = ("name", "number", "type")

    def __init__(self, op: Operation, number: int) -> None:
        self.name, self.type, self.number = op.name, op.type, number


def _detached(structure: Structure, program: Program) -> tuple[Program, dict[int, int]]:
    """The program without its graph, and which of the structure's constants each constant is."""
    stand_ins = {op: NumberedOp(op, n) for n, op in enumerate(structure.ops)}
    order = [op for op in structure.ops if op._opdef.role == "constant"]
    at = {op._outputs[0]: i for i, op in enumerate(order)}
    index = {v: at[program.values[v].tensor] for v in program.constants}  # type: ignore[index]
    body = tuple([n._replace(op=stand_ins[n.op]) for n in program.body])  # type: ignore[union-attr, call-arg, arg-type]
    values = [v._replace(tensor=None) for v in program.values]
    constants = RecordedConstants(program.constants)
    return program._replace(body=body, values=values, constants=constants), index


class _SharedCode:
    """A compiled structure."""

    def __init__(
        self, compiled: Compiled, plan: Plan, options: Options, index: dict[int, int]
    ) -> None:
        self.options = options
        self.slots: list[tuple[int, int, bool]] = []
        self.params = list(compiled.params.values())
        for position, name in enumerate(compiled.params):
            i = index.get(compiled.constant_params.get(name, -1))
            if i is not None:
                self.slots.append((position, i, isinstance(self.params[position], np.generic)))
                self.params[position] = None
        # shared code outlives the graph that it was made from: it keeps neither constants nor the
        # first function
        run = compiled.make(*[None] * len(compiled.params))
        listing = compiled.listing.detached()
        self.compiled = compiled._replace(run=run, params={}, listing=listing)
        self.plan = Plan(plan.program._replace(body=(), constants={}), (), plan.lives)

    def bind(self, structure: Structure) -> Executable:
        params = list(self.params)
        constants = structure.constants
        for position, i, scalar in self.slots:
            params[position] = constants[i][()] if scalar else constants[i]
        run = self.compiled.make(*params)
        ops = structure.ops
        locate = make_locator(self.compiled, self.plan, lambda op: ops[op.number])  # type: ignore[attr-defined]
        return Executable(run, self.plan, self.options, locate, Details(is_shared=True))


class _Family:
    """The functions of one structure, by the constants that were looked at and by their values."""

    __slots__ = ("count", "variants")

    def __init__(self) -> None:
        self.variants: dict[tuple[int, ...], dict[Hashable, _SharedCode | None]] = {}
        self.count = 0

    def find(self, structure: Structure) -> tuple[bool, _SharedCode | None]:
        """Whether these values are known, and their function if they have one."""
        for indices, by_values in self.variants.items():
            key = _values_key(structure, indices)
            if key in by_values:
                return True, by_values[key]
        return self.count >= MAX_VARIANTS, None

    def add(self, structure: Structure, indices: tuple[int, ...], code: _SharedCode | None) -> None:
        self.variants.setdefault(indices, {})[_values_key(structure, indices)] = code
        self.count += 1


def _values_key(structure: Structure, indices: tuple[int, ...]) -> Hashable:
    return tuple([exact_key(structure.constants[i]) for i in indices])


_families: OrderedDict[Hashable, _Family | None] = OrderedDict()
_lock = held_at_fork(Lock())


def shared_executable(
    structure: Structure, elements: Sequence[Any], feeds: Sequence[Tensor], options: Options
) -> Executable | None:
    """An executable for a structure that was seen before; None at first sight."""
    key = (structure.key, options)
    with _lock:
        if key not in _families:
            _families[key] = None
            while len(_families) > MAX_SHARED:
                _families.popitem(last=False)
            return None
        family = _families[key]
        if family is None:
            family = _families[key] = _Family()
        known, code = family.find(structure)
    if not known:
        code, indices = _make(structure, elements, feeds, options)
        with _lock:
            family.add(structure, indices, code)
    return None if code is None else code.bind(structure)


def _make(
    structure: Structure, elements: Sequence[Any], feeds: Sequence[Tensor], options: Options
) -> tuple[_SharedCode | None, tuple[int, ...]]:
    """Shared code (None where one must not be used) and the constants that it depends on."""
    whole = snapshot(elements, feeds)
    rewritten = rewrite(whole, rules_for(options.exact))
    if bits_depend_on_values(rewritten.notes):
        return None, ()  # equal structures are to give equal bits: such a one is planned each time
    if pack(rewritten, options.weights) is not rewritten:
        return None, ()  # weights that are constants are packed, or kept in another type
    detached, index = _detached(structure, whole)
    program = rewrite(detached, rules_for(options.exact, value_free=True))
    if any("node" in n.opdef.kernel_params for n in walk(program.body)):
        return None, ()  # the kernel may look at anything
    plan = make_plan(program, Choices(options.fusion))
    compiled = emit(make_listing(plan))
    constants = detached.constants
    assert isinstance(constants, RecordedConstants)
    indices = tuple(sorted({index[v] for v in constants.reads}))
    return _SharedCode(compiled, plan, options, index), indices
