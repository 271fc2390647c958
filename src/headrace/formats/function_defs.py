"""Functions as FunctionDef messages.

In a FunctionDef an input is ``node:output_argument:index``, an argument stands under its own name,
and results and effects that must happen (``control_ret``) are listed beside the nodes.

    write_function(func_graph, "f", function_def_message, library)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.core.func_graph import FuncGraph
from headrace.core.opdef import OpDef
from headrace.core.tensor import Tensor
from headrace.formats.attr_values import encode_shape
from headrace.formats.graphdef_writer import Library, write_node

__all__ = ["output_position", "write_function"]


def write_function(
    graph: FuncGraph,
    name: str,
    message: Any,
    library: Library,
    inputs: Sequence[Tensor] | None = None,
    output_names: Sequence[str] | None = None,
    outputs: Sequence[Tensor] | None = None,
) -> None:
    """Fill in a FunctionDef from a traced function: arguments first, then what it captures.

    ``inputs`` and ``outputs``: the arguments and results, if they are others or in another order
    than the graph's own.
    """
    results = graph.outputs if outputs is None else list(outputs)
    arguments = [*graph.inputs, *graph.internal_captures] if inputs is None else list(inputs)
    signature = message.signature
    signature.name = name
    names = _argument_names(arguments)
    for i, t in enumerate(arguments):
        arg = signature.input_arg.add()
        arg.name, arg.type = names[t], t._dtype._base._enum
        if t._shape is not None:
            encode_shape(t._shape, message.arg_attr[i].attr["_output_shapes"].list.shape.add())
    used = set(names.values())
    fetched = _result_names(results, output_names, used)
    for t, result in zip(results, fetched):
        arg = signature.output_arg.add()
        arg.name, arg.type = result, t._dtype._base._enum
        message.ret[result] = _input_name(t, names)
    own = {t._op for t in arguments}
    for op in graph._ops:
        if op not in own:
            write_node(
                op,
                message.node_def.add(),
                library,
                inputs=lambda o: [_input_name(t, names) for t in o._inputs],
            )
    for op in graph.control_outputs:
        if op not in own:
            message.control_ret[op.name] = op.name
            signature.control_output.append(op.name)
    signature.is_stateful = any(op._opdef.traits.is_stateful for op in graph._ops if op not in own)


def _argument_names(arguments: Sequence[Tensor]) -> dict[Tensor, str]:
    """Arguments are lower-case identifiers, different from each other (case does not
    distinguish).
    """
    names: dict[Tensor, str] = {}
    used: set[str] = set()
    for t in arguments:
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in t._op.name.lower()).strip("_")
        base = base if base[:1].isalpha() else f"arg_{base}".rstrip("_")
        name, i = base, 0
        while name in used:
            i += 1
            name = f"{base}_{i}"
        used.add(name)
        names[t] = name
    return names


def _result_names(
    outputs: Sequence[Tensor], given: Sequence[str] | None, used: set[str]
) -> list[str]:
    if given is not None:
        return list(given)
    out = []
    for t in outputs:
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in t._op.name.lower()).strip("_")
        base = base if base[:1].isalpha() else "result"
        name, i = base, 0
        while name in used:
            i += 1
            name = f"{base}_{i}"
        used.add(name)
        out.append(name)
    return out


def _input_name(tensor: Tensor, arguments: dict[Tensor, str]) -> str:
    found = arguments.get(tensor)
    if found is not None:
        return found
    argument, index = output_position(tensor._op._opdef, tensor._op._attrs, tensor._value_index)
    return f"{tensor._op.name}:{argument}:{index}"


def output_position(opdef: OpDef, attrs: dict[str, Any], flat: int) -> tuple[str, int]:
    """(output argument, index in it) of an op's flat output number."""
    at = 0
    for arg in opdef.outputs:
        n = 1
        if arg.number_attr:
            n = attrs[arg.number_attr]
        elif arg.type_list_attr:
            n = len(attrs[arg.type_list_attr])
        if flat < at + n:
            return arg.name, flat - at
        at += n
    raise IndexError(f"{opdef.name} has no output number {flat}")
