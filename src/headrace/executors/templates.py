"""Plans of the same structure share one compiled function; constants are its parameters.

A program that builds its graph in a loop makes, every time, a graph that differs from the last one in the values of its
constants only. The first is planned like any other. From the second on, the structure (op types, attributes, wiring,
shapes) is looked up, and what is left to do is to bind the new constants. Only pure programs take part.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from headrace.core.schedule import needed_ops
from headrace.core.tensor import Operation, Tensor
from headrace.executors.numpy_executor import make_locator
from headrace.lower.codegen import Compiled, compile_plan
from headrace.lower.executable import Executable, Options
from headrace.lower.fusion import Fused
from headrace.lower.plan import Plan, make_plan
from headrace.lower.update_groups import Grouped
from headrace.program.nodes import Node, Program
from headrace.program.snapshot import snapshot
from headrace.rewrite.engine import rewrite
from headrace.rewrite.rule_table import bits_depend_on_values, rules_for

__all__ = ["Structure", "from_template", "structure_of"]

MAX_OPS = 64
MAX_TEMPLATES = 512


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
    if len(needed) > MAX_OPS:
        return None
    ops = sorted(needed, key=_id) if len(needed) > 1 else list(needed)
    number: dict[Operation, int] = {}
    parts: list[Any] = []
    constants: list[Any] = []
    for n, op in enumerate(ops):
        number[op] = n
        if op.type == "Const":
            value = op._attrs["value"]
            constants.append(value)
            parts.append((value.shape, value.dtype))
            continue
        if op._context is not None or op._control_inputs or not _is_plain(op):
            return None
        wires = tuple(
            [(-1, fed[t]) if t in fed else (number[t._op], t._value_index) for t in op._inputs]
        )
        shapes = tuple([t._shape for t in op._outputs])
        parts.append((op.type, wires, shapes, tuple(op._attrs.items())))
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


_plain: dict[str, bool] = {}


def _is_plain(op: Operation) -> bool:
    known = _plain.get(op.type)
    if known is None:
        traits = op._opdef.traits
        known = not (
            traits.stateful or traits.random or traits.writes or traits.reads or traits.host_only
        )
        known = known and not {"node", "rt"} & set(op._opdef.kernel_params)
        _plain[op.type] = known
    return known


class _Template:
    """A compiled structure."""

    def __init__(
        self, structure: Structure, compiled: Compiled, plan: Plan, options: Options
    ) -> None:
        self.options = options
        order = [op for op in structure.ops if op.type == "Const"]
        at = {op._outputs[0]: i for i, op in enumerate(order)}
        self.slots: list[tuple[int, int, bool]] = []
        self.params = list(compiled.params.values())
        for position, name in enumerate(compiled.params):
            value = compiled.constant_params.get(name)
            if value is None:
                continue
            tensor = plan.program.values[value].tensor
            if tensor in at and value in plan.program.constants and tensor._op.type == "Const":
                scalar = isinstance(self.params[position], np.generic)
                self.slots.append((position, at[tensor], scalar))
                self.params[position] = None
        self.compiled = _without_graph(compiled, structure)
        self.plan = Plan(_without_values(plan.program), (), plan.lives)

    def bind(self, structure: Structure) -> Executable:
        params = list(self.params)
        constants = structure.constants
        for position, i, scalar in self.slots:
            params[position] = constants[i][()] if scalar else constants[i]
        run = self.compiled.make(*params)
        ops = structure.ops
        locate = make_locator(self.compiled, self.plan, lambda number: ops[number])  # type: ignore[call-overload]
        return Executable(run, self.plan, self.options, locate, {"template": True})


def _without_graph(compiled: Compiled, structure: Structure) -> Compiled:
    """A template outlives the graph it was made from: it names operations by number and keeps no constants."""
    numbers = {op: n for n, op in enumerate(structure.ops)}

    def detached(node: Node) -> Node:
        return node._replace(op=numbers[node.op])  # type: ignore[arg-type]

    lines: dict[int, Node | Fused | Grouped] = {}
    for line, step in compiled.lines.items():
        assert not isinstance(step, Grouped)  # a template writes nothing
        if isinstance(step, Fused):
            lines[line] = step._replace(nodes=tuple(map(detached, step.nodes)))
        else:
            lines[line] = detached(step)
    run = compiled.make(*[None] * len(compiled.params))
    return compiled._replace(run=run, lines=lines, params={})


def _without_values(program: Program) -> Program:
    values = [v._replace(tensor=None) for v in program.values]
    return program._replace(body=(), values=values, constants={})


_templates: OrderedDict[Hashable, _Template | None] = OrderedDict()
_lock = Lock()


def from_template(
    structure: Structure, elements: Sequence[Any], feeds: Sequence[Tensor], options: Options
) -> Executable | None:
    """An executable for a structure that was seen before; None at first sight."""
    key = (structure.key, options)
    if key not in _templates:
        _remember(key, None)
        return None
    template = _templates.get(key)
    if template is None:
        whole = snapshot(elements, feeds)
        if bits_depend_on_values(rewrite(whole, rules_for(options.exact)).notes):
            return None  # equal structures are to give equal bits: such a one is planned each time
        program = rewrite(whole, rules_for(options.exact, value_free=True))
        plan = make_plan(program, options.fusion)
        template = _Template(structure, compile_plan(plan), plan, options)
        _remember(key, template)
    return template.bind(structure)


def _remember(key: Hashable, template: _Template | None) -> None:
    with _lock:
        _templates[key] = template
        while len(_templates) > MAX_TEMPLATES:
            _templates.popitem(last=False)
