"""Which operations of a graph are the body of a call.

Calls of functions are expanded where they stand: rewrites, gradients and ``explain`` see ordinary
operations, and one operation (an IdentityN or NoOp) has the call's name and results. A record keeps
what the call was, so that a GraphDef can be written with the call and the function in its library.

    note_call(graph, CallRecord(result, "PartitionedCall", inputs, body, writer))
    calls = whole_calls(graph)        # those whose insides nothing else uses
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.core import stacks
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor

__all__ = [
    "AttrScalar",
    "CallRecord",
    "CalledFunction",
    "GraphCalls",
    "call_records",
    "call_type",
    "function_arguments",
    "note_call",
    "note_function",
    "note_library",
    "whole_calls",
]


AttrScalar = bool | int | float | str


class CalledFunction(NamedTuple):
    """A function of this process: ``arguments`` and ``outputs`` are tensors of its graph."""

    name: str
    graph: FuncGraph
    arguments: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    #: The node's type; None for PartitionedCall or StatefulPartitionedCall.
    op_type: str | None = None
    output_names: tuple[str, ...] | None = None
    #: The function that computes the gradient (``Defun(grad_func=)``).
    gradient: CalledFunction | None = None
    #: Attributes of the FunctionDef, and of the node that calls it (``Defun(noinline=True)``).
    attrs: tuple[tuple[str, AttrScalar], ...] = ()
    call_attrs: tuple[tuple[str, AttrScalar], ...] = ()


class CallRecord(NamedTuple):
    """One call: ``result`` has its name, ``inputs`` are the call's, ``outputs`` their number."""

    result: Operation
    inputs: tuple[Tensor, ...]
    outputs: int
    body: frozenset[Operation]
    #: A function of this process (functions/), or the messages of an imported one (formats/).
    function: Any


def function_arguments(graph: FuncGraph) -> tuple[Tensor, ...]:
    """What a function takes as a node: its arguments, captures, and handles of variables."""
    handles = [t for op in graph._ops if op._role == "handle" for t in op._outputs]
    return (*graph.inputs, *graph.internal_captures, *handles)


class GraphCalls:
    """The calls of one graph, and the functions in its library whether they are called or not."""

    def __init__(self) -> None:
        self.by_result: dict[Operation, CallRecord] = {}
        self.functions: dict[str, CalledFunction] = {}
        #: FunctionDefs of imported libraries, and the names of their gradients.
        self.messages: dict[str, Any] = {}
        self.gradients: dict[str, str] = {}


def call_records(graph: Graph) -> GraphCalls | None:
    """What is known of a graph's calls; None if it has none."""
    found: GraphCalls | None = graph._calls
    return found


def note_call(graph: Graph, record: CallRecord) -> None:
    """Remember a call of the graph."""
    graph._calls = graph._calls or GraphCalls()
    graph._calls.by_result[record.result] = record
    record.result.type = call_type(record)  # as TensorFlow shows it; what runs is the IdentityN


def call_type(record: CallRecord) -> str:
    """The type of a call's node: a function's name, PartitionedCall, or what was imported."""
    node = getattr(record.function, "node", None)
    kind = record.function.op_type if node is None else node.op
    if kind is not None:
        return str(kind)
    stateful = any(_is_stateful(op) for op in record.body)
    return "StatefulPartitionedCall" if stateful else "PartitionedCall"


def _is_stateful(op: Operation) -> bool:
    traits = op._opdef.traits
    return traits.is_stateful or bool(traits.reads)


def _call_of(op: Operation) -> CallRecord | None:
    calls = call_records(op.graph)
    return None if calls is None else calls.by_result.get(op)


stacks.call_of = _call_of


def note_library(graph: Graph, messages: dict[str, Any], gradients: dict[str, str]) -> None:
    """Keep the library of an imported GraphDef."""
    graph._calls = graph._calls or GraphCalls()
    graph._calls.messages.update(messages)
    graph._calls.gradients.update(gradients)


def note_function(graph: Graph, name: str, function: CalledFunction) -> None:
    """Put a function into the graph's library."""
    graph._calls = graph._calls or GraphCalls()
    graph._calls.functions[name] = function


def whole_calls(graph: Graph, ops: Sequence[Operation]) -> dict[Operation, CallRecord]:
    """The outermost calls that can be written as calls.

    Gradients, collections or a user may use a tensor inside of a call: such calls stay expanded.
    """
    known = call_records(graph)
    if known is None:
        return {}
    here = set(ops)
    records = [r for r in known.by_result.values() if r.result in here]
    inner = {op for r in records for op in r.body}
    records = [r for r in records if r.result not in inner]
    owner = {op: r.result for r in records for op in r.body}
    open_calls = _used_from_outside(ops, owner) | _in_collections(graph, owner)
    return {r.result: r for r in records if r.result not in open_calls}


def _used_from_outside(
    ops: Iterable[Operation], owner: Mapping[Operation, Operation]
) -> set[Operation]:
    found: set[Operation] = set()
    for op in ops:
        home = owner.get(op, op)
        for source in (*(t._op for t in op._inputs), *op._control_inputs):
            call = owner.get(source)
            if call is not None and call is not home:
                found.add(call)
    return found


def _in_collections(graph: Graph, owner: Mapping[Operation, Operation]) -> set[Operation]:
    found: set[Operation] = set()
    for items in graph._collections.values():
        for item in items if isinstance(items, list) else ():
            op = item._op if isinstance(item, Tensor) else item
            if isinstance(op, Operation) and op in owner:
                found.add(owner[op])
    return found
