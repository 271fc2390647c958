"""Calls of functions as nodes of a GraphDef.

In a graph a call is expanded (core/call_records.py). Here it becomes one node again: a
PartitionedCall, a node of the function's own name (``Defun``), or the node that was imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headrace.core.call_records import CalledFunction, CallRecord, call_type, whole_calls
from headrace.core.graph import Graph
from headrace.core.tensor import Operation
from headrace.formats.attr_values import encode_scalars, encode_shape
from headrace.formats.graphdef_writer import Library

__all__ = ["ImportedCall", "calls_to_write", "function_names", "functions_behind", "write_call"]


class ImportedCall(NamedTuple):
    """A call as it was read: its NodeDef, and the FunctionDefs that it needs."""

    node: Any
    functions: tuple[Any, ...]


def calls_to_write(
    graph: Graph, ops: Sequence[Operation], library: Library
) -> tuple[dict[Operation, CallRecord], set[Operation]]:
    """The calls to be written as nodes, and the operations that they stand for."""
    library.add_messages(graph._calls.messages.values())
    library.gradients.update(graph._calls.gradients)
    for name, function in graph._calls.functions.items():
        if name not in library.taken:
            library.add_called(function)
    calls = {}
    for result, record in whole_calls(graph, ops).items():
        function = record.function
        if isinstance(function, ImportedCall):
            if not library.add_messages(function.functions):
                continue
        else:
            library.add_called(function)
        calls[result] = record
    return calls, {op for record in calls.values() for op in record.body}


def functions_behind(names: Iterable[str], functions: dict[str, Any]) -> tuple[Any, ...]:
    """Functions and everything that their nodes call."""
    found: dict[str, Any] = {}
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in found or name not in functions:
            continue
        found[name] = functions[name]
        for node in functions[name].node_def:
            stack.extend(function_names(node))
    return tuple(found.values())


def function_names(node: Any) -> list[str]:
    """The functions that a node may call: its type, and those that attributes name."""
    out = [node.op]
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            out.append(value.func.name)
        elif kind == "list":
            out.extend(f.name for f in value.list.func)
    return out


def write_call(record: CallRecord, message: Any, library: Library, add_shapes: bool) -> None:
    """Fill in the NodeDef of a call."""
    function = record.function
    if isinstance(function, ImportedCall):
        message.CopyFrom(function.node)
        del message.input[:]
    else:
        _local_node(record, function, message, library)
    result = record.result
    message.name = result.name
    if result._device:
        message.device = result._device
    message.input.extend(t._as_node_def_input() for t in record.inputs)
    message.input.extend(sorted(f"^{c.name}" for c in _controls(record)))
    if add_shapes and record.outputs:
        message.attr["_output_shapes"].Clear()
        shapes = message.attr["_output_shapes"].list
        for t in result._outputs[: record.outputs]:
            encode_shape(t._shape, shapes.shape.add())


def _local_node(
    record: CallRecord, function: CalledFunction, message: Any, library: Library
) -> None:
    name = library.add_called(function)
    if function.op_type is not None:
        message.op = name
        encode_scalars(function.call_attrs, message.attr)
        return
    message.op = call_type(record)
    message.attr["f"].func.name = name
    message.attr["Tin"].list.SetInParent()
    message.attr["Tin"].list.type.extend([t._dtype._base._enum for t in record.inputs])
    message.attr["Tout"].list.SetInParent()
    outputs = record.result._outputs[: record.outputs]
    message.attr["Tout"].list.type.extend([t._dtype._base._enum for t in outputs])
    for attr in ("config", "config_proto", "executor_type"):
        message.attr[attr].s = b""


def _controls(record: CallRecord) -> set[Operation]:
    """What the call waits for: operations outside of it that it does not take as inputs anyway."""
    given = {t._op for t in record.inputs}
    around = {c for op in (record.result, *record.body) for c in op._control_inputs}
    return {c for c in around if c not in record.body and c not in given}
