"""Lines that write variables: small updates in place, calls of writers, groups of updates.

A small update is an expression under the session's lock. Everything else is a call of a ``Writer``
(session_state.py) or, for updates of one kind that stand together, of a ``GroupWriter``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from headrace.core import shapes
from headrace.lower.emit_expressions import argument
from headrace.lower.emit_lines import CodeLines
from headrace.lower.group_writer import GroupWriter
from headrace.lower.listing import Instr
from headrace.lower.select_updates import Grouped, gradient_position
from headrace.lower.session_state import Writer
from headrace.lower.storage_lifetimes import written_variables
from headrace.ops.training.native_updates import GroupUpdate, NativeUpdate
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node

__all__ = ["emit_group", "emit_write"]


def emit_write(code: CodeLines, instr: Instr, node: Node) -> None:
    """Lines that give variables new values."""
    traits = node.opdef.traits
    args = [argument(code, node, i) for i in range(len(node.inputs)) if i not in traits.writes]
    targets = [f"v{w}" for w in node.writes]
    for w in dict.fromkeys(node.writes):
        info = code.program.variables[w]
        code.names.setdefault(info.current, f"v{w}")
    if instr.implementation == "writer":
        _call_writer(code, node, args, targets, copies=not instr.takes_over)
        _wrote(code, node)
        return
    if code.locked != (len(code.lines), code.depth):  # one after the other they share the lock
        code.emit("with S.lock:")
    code.depth += 1
    _small_update(code, node, args)
    _wrote(code, node)
    code.depth -= 1
    code.locked = (len(code.lines), code.depth)


def _small_update(code: CodeLines, node: Node, args: list[str]) -> None:
    """What a Writer does, in the generated code itself."""
    i = node.writes[0]
    info = code.program.variables[i]
    key, op = code.param(f"q{i}", info.key), code.param(f"o{i}", info.op)
    form = node.opdef.traits.update
    assert form is not None
    new = form.format(f"v{i}", *args)
    code.emit(f"if {key} in S.busy: S.wait_until_idle(({key},))")
    code.emit(f"v{i} = V.get({key})")
    code.emit(f"if v{i} is None: v{i} = S.need({key}, {op})")
    code.emit(f"S.versions[{key}] += 1")
    code.emit(f"v{i} = V[{key}] = {new}")


def _call_writer(
    code: CodeLines, node: Node, args: list[str], targets: list[str], copies: bool
) -> None:
    bound = _writer(code, node, copies)
    writer = code.param(f"w{len(code.params)}", bound.write_one if bound.single else bound)
    live = [t for t in dict.fromkeys(targets) if t not in args]
    code.emit(" = ".join([*live, "None"]) if live else "pass")
    if "rt" in node.opdef.kernel_params:
        code.uses_rt = True
        runtime = "rt"
    else:
        runtime = "None"
    outs = _write_targets(code, node, targets)
    call = f"{writer}(S, {runtime}{''.join(', ' + a for a in args)})"
    code.emit(f"{', '.join(outs)}, = {call}")


def _write_targets(code: CodeLines, node: Node, targets: list[str]) -> list[str]:
    plain = [o for o, t in zip(node.outputs, node.op._outputs) if not t._dtype._is_ref]
    return targets + [code.new(o) for o in plain]


def _writer(code: CodeLines, node: Node, copies: bool) -> Writer:
    opdef = node.opdef
    known = all(shapes.known(code.program.values[v].shape) is not None for v in node.inputs)
    kernel = bound_kernel(node, trusting=known)
    inplace = opdef.inplace
    native: Callable[..., bool] | None = opdef.native
    if inplace is not None:
        wanted = [
            p.name
            for p in inspect.signature(inplace).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        ]
        if wanted:
            attrs = {p: node.attrs[p] for p in wanted}
            inplace = functools.partial(inplace, **attrs)
            native = functools.partial(native, **attrs) if native is not None else None
    return Writer(
        [code.program.variables[w].op for w in node.writes],
        [code.program.variables[w].key for w in node.writes],
        opdef.traits.writes,
        kernel,
        inplace,
        opdef.traits.uninit_ok,
        copies=copies and opdef.role == "assign",
        wants_rt="rt" in opdef.kernel_params,
        native=native,
    )


def emit_group(code: CodeLines, step: Grouped) -> None:
    """Lines that update small variables together."""
    first = step.nodes[0]
    at = gradient_position(first, code.program)
    assert at is not None
    written = first.opdef.traits.writes
    shared = [
        argument(code, first, i) for i in range(len(first.inputs)) if i not in written and i != at
    ]
    gradients = [argument(code, node, at) for node in step.nodes]
    variables = [[code.program.variables[w] for w in node.writes] for node in step.nodes]
    native = None
    if isinstance(first.opdef.native, NativeUpdate):
        values = code.program.values
        sizes = [shapes.num_elements(values[n.inputs[0]].shape) or 0 for n in step.nodes]
        attrs = {p: first.attrs[p] for p in first.opdef.kernel_params}
        native = GroupUpdate(first.opdef.native, attrs, sizes)
    bound = GroupWriter(
        bound_kernel(first, trusting=True),
        [[v.key for v in one] for one in variables],
        [[v.op for v in one] for one in variables],
        [code.program.values[node.inputs[0]].shape or () for node in step.nodes],  # type: ignore[misc]
        at,
        native,
    )
    targets = [f"v{w}" for w in written_variables(step)]
    writer = code.param(f"w{len(code.params)}", bound)
    call = (
        f"{writer}(S, ({''.join(a + ', ' for a in shared)}), "
        f"({''.join(g + ', ' for g in gradients)}))"
    )
    code.emit(f"{', '.join(targets)}, = {call}")
    for node in step.nodes:
        _wrote(code, node)


def _wrote(code: CodeLines, node: Node) -> None:
    """The names of what a write left behind."""
    for w in node.writes:
        current = code.program.variables[w].current
        code.names.setdefault(current, f"v{w}")
        for scope in code.checked:
            scope.discard(current)
        code.checked[-1].add(current)
    if node.outputs and node.op._outputs[0]._dtype._is_ref:
        code.emit(f"{code.new(node.outputs[0])} = v{node.writes[0]}")
