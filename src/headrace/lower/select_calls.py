"""The last pass over instructions: the objects that their lines call, and how they are called.

A kernel with its attributes, a fused group, a writer, the ``out=`` form of what is overwritten:
after this pass an instruction is complete, and the emitter needs its text and functions alone.

    give_calls(instrs, plan.program)       # MatMul: "{call}({0}, {1})", function: the bound kernel
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from headrace.core import shapes
from headrace.lower import user_calls
from headrace.lower.fused_code import make_fused
from headrace.lower.fusion import Fused
from headrace.lower.group_writer import GroupWriter
from headrace.lower.listing import IN_PLACE, Instr
from headrace.lower.native_groups import native_step
from headrace.lower.native_kernels import NativeKernel
from headrace.lower.select_updates import Grouped, gradient_position
from headrace.lower.session_state import Writer
from headrace.ops.training.native_updates import GroupUpdate, NativeUpdate
from headrace.program.constants import exact_key, peek
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node, Program

__all__ = ["give_calls"]

#: Instructions that make a choice or move values: they call nothing.
_PLAIN = ("choice", "appended", "wait", "native or steps", "native")


def give_calls(instrs: Sequence[Instr], program: Program) -> None:
    """Complete the instructions."""
    work = _Calls(program)
    for instr in instrs:
        step = instr.source
        if step is None or instr.implementation in _PLAIN:
            continue
        if isinstance(step, Node):
            work.node(instr, step)
        elif isinstance(step, Fused):
            work.fused(instr, step)
        else:
            work.grouped(instr, step)


class _Calls:
    def __init__(self, program: Program) -> None:
        self.program = program
        # nodes of one op with equal attributes call one object
        self.kernels: dict[Any, Callable[..., Any]] = {}

    def node(self, instr: Instr, node: Node) -> None:
        if node.opdef.traits.uninit_ok:  # (what is as usual is not stored)
            instr.takes_unset = True
        if instr.implementation == "writer":
            self.write(instr, node)
            return
        if instr.implementation == "expression":
            assert node.opdef.traits.update is not None
            instr.text = node.opdef.traits.update
        elif instr.storage.kind == IN_PLACE:
            self.overwrite(instr, node)
        elif not instr.text:
            self.kernel(instr, node)
        self.numbers(instr, node)

    def numbers(self, instr: Instr, node: Node) -> None:
        """Constant numbers in an expression with an array are arrays of rank 0.

        A NumPy scalar takes 0.2 µs more there.
        """
        if node.opdef.traits.expression is None and instr.implementation != "expression":
            return
        constants, values = self.program.constants, self.program.values
        found = [i for i in node.inputs if not values[i].shape and i in constants]
        if found and any(values[i].shape for i in node.inputs):
            arrays = [(i, peek(constants, i)) for i in found]
            instr.arrays = tuple(
                [i for i, a in arrays if a is not None and a.ndim == 0 and a.dtype.kind != "O"]
            )

    def kernel(self, instr: Instr, node: Node) -> None:
        opdef, state = node.opdef, ""
        if opdef.traits.compiled:
            instr.function = NativeKernel(node, bound_kernel(node))
            state = "S"
        else:
            instr.function = self.kernel_of(node)
            if "rt" in opdef.kernel_params:
                instr.wants_rt = True
        instr.text = _call_text(len(node.inputs), state, instr.wants_rt)
        if instr.implementation == "kernel on a thread":
            starts: Callable[..., Any] = user_calls.start
            if not opdef.traits.calls_user:
                starts = user_calls.start_queue_operation
            instr.params = ((starts.__name__, starts),)
            given = _arguments(len(node.inputs), state, instr.wants_rt)
            instr.text = f"{starts.__name__}({', '.join(['{call}', *given])})"

    def kernel_of(self, node: Node) -> Callable[..., Any]:
        params = node.opdef.kernel_params
        key: Any = None
        if "node" not in params:
            attrs = [node.attrs[p] for p in params if p != "rt"]
            try:
                key = (node.opdef.name, tuple([exact_key(a) for a in attrs]))
                found = self.kernels.get(key)
            except TypeError:
                key, found = None, None
            if found is not None:
                return found
        made = bound_kernel(node)
        if key is not None:
            self.kernels[key] = made
        return made

    def overwrite(self, instr: Instr, node: Node) -> None:
        """The ``out=`` form over input ``k``, which the text calls ``{out}``."""
        k, role = node.inputs.index(instr.storage.of), node.opdef.role
        if role in ("+", "*") or (k == 0 and role in ("-", "/")):
            instr.text = f"{{out}} {role}= {{{1 - k}}}"
            return
        form = node.opdef.traits.into
        assert form is not None
        instr.text = form

    def fused(self, instr: Instr, step: Fused) -> None:
        is_over = instr.storage.kind == IN_PLACE
        own = step.inputs.index(instr.storage.of) if is_over else None
        plain = make_fused(step, self.program, own)
        instr.function = native_step(step, self.program, own, plain)
        instr.text = _call_text(len(step.inputs), "S", False)

    # writes -------------------------------------------------------------------------------------
    def write(self, instr: Instr, node: Node) -> None:
        opdef, values = node.opdef, self.program.values
        known = all(shapes.known(values[v].shape) is not None for v in node.inputs)
        inplace = opdef.inplace
        native: Callable[..., bool] | None = opdef.native
        wanted = [] if inplace is None else _keywords(inplace)
        if inplace is not None and wanted:
            attrs = {p: node.attrs[p] for p in wanted}
            inplace = functools.partial(inplace, **attrs)
            native = functools.partial(native, **attrs) if native is not None else None
        instr.wants_rt = "rt" in opdef.kernel_params
        writer = Writer(
            [self.program.variables[w].op for w in node.writes],
            [self.program.variables[w].key for w in node.writes],
            opdef.traits.writes,
            bound_kernel(node, trusting=known),
            inplace,
            opdef.traits.uninit_ok,
            copies=not instr.takes_over and opdef.role == "assign",
            wants_rt=instr.wants_rt,
            native=native,
        )
        instr.function = writer.write_one if writer.single else writer
        instr.arguments = tuple(
            [v for i, v in enumerate(node.inputs) if i not in opdef.traits.writes]
        )
        given = ["S", "rt" if instr.wants_rt else "None", *_places(len(instr.arguments))]
        instr.text = f"{{call}}({', '.join(given)})"

    def grouped(self, instr: Instr, step: Grouped) -> None:
        first, program = step.nodes[0], self.program
        at = gradient_position(first, program)
        assert at is not None
        variables = [[program.variables[w] for w in node.writes] for node in step.nodes]
        native = None
        if isinstance(first.opdef.native, NativeUpdate):
            sizes = [
                shapes.num_elements(program.values[n.inputs[0]].shape) or 0 for n in step.nodes
            ]
            attrs = {p: first.attrs[p] for p in first.opdef.kernel_params}
            native = GroupUpdate(first.opdef.native, attrs, sizes)
        instr.function = GroupWriter(
            bound_kernel(first, trusting=True),
            [[v.key for v in one] for one in variables],
            [[v.op for v in one] for one in variables],
            [program.values[node.inputs[0]].shape or () for node in step.nodes],  # type: ignore[misc]
            at,
            native,
        )
        written = first.opdef.traits.writes
        shared = [v for i, v in enumerate(first.inputs) if i not in written and i != at]
        instr.arguments = (*shared, *[node.inputs[at] for node in step.nodes])
        places = [f"{p}, " for p in _places(len(instr.arguments))]
        both = "".join(places[: len(shared)]), "".join(places[len(shared) :])
        instr.text = f"{{call}}(S, ({both[0]}), ({both[1]}))"


def _places(count: int) -> list[str]:
    return [f"{{{i}}}" for i in range(count)]


def _arguments(count: int, state: str, wants_rt: bool) -> list[str]:
    """What a kernel is given: the session's state, places for its inputs, what it runs in."""
    return [state] * bool(state) + _places(count) + ["rt=rt"] * wants_rt


@functools.lru_cache(256)
def _call_text(count: int, state: str, wants_rt: bool) -> str:
    return f"{{call}}({', '.join(_arguments(count, state, wants_rt))})"


def _keywords(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
