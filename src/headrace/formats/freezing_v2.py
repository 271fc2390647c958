"""Freezing of TF 2's functions: ``convert_variables_to_constants_v2``.

frozen = convert_variables_to_constants_v2(f.get_concrete_function(tf.TensorSpec([None, 3])))
frozen.graph.as_graph_def()               # no variables, nothing captured
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import nest
from headrace.core.func_graph import FuncGraph
from headrace.core.tensor import Tensor
from headrace.formats.freezing import convert_variables_to_constants, freeze_graph_def
from headrace.formats.graphdef_reader import import_graph_def
from headrace.formats.graphdef_writer import graph_def_of
from headrace.formats.subgraphs import extract_sub_graph
from headrace.formats.tensor_proto import to_message
from headrace.functions.concrete_function import ConcreteFunction
from headrace.functions.tracing import TracedFunction

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    from headrace.session.session import BaseSession

__all__ = ["convert_variables_to_constants_from_session_graph", "convert_variables_to_constants_v2"]


def convert_variables_to_constants_v2(
    func: ConcreteFunction, lower_control_flow: bool = True, aggressive_inlining: bool = False
) -> ConcreteFunction:
    """The function with its variables, and whatever else it took from outside, as constants.

    Control flow is TF 1's and calls are inlined in every graph of Headrace, so that both options
    change nothing.
    """
    del lower_control_flow, aggressive_inlining
    if not isinstance(func, ConcreteFunction):
        func = getattr(func, "concrete", func)
    graph = func.graph
    names = [t._op.name for t in (*graph.inputs, *graph.outputs)]
    effects = [op.name for op in graph.control_outputs]
    graph_def = extract_sub_graph(
        graph_def_of(graph, expand_calls=True), list(dict.fromkeys([*names, *effects]))
    )
    values = {}
    for op in graph._ops:
        if op.type == "VarHandleOp":
            handle: Any = graph.outer_handles[op._attrs.get("shared_name") or op.name]
            values[op.name] = np.asarray(handle.variable().numpy())
    frozen = freeze_graph_def(_without_captures(graph, graph_def), values)
    return _as_function(func, frozen)


def _without_captures(graph: FuncGraph, graph_def: GraphDef) -> GraphDef:
    """Captured eager tensors as constants."""
    captured = {inner._op.name: outer for outer, inner in graph.captures}
    out = type(graph_def)()
    out.CopyFrom(graph_def)
    for node in out.node:
        if node.name in captured:
            outer = captured[node.name]
            fresh = type(node)(name=node.name, op="Const")
            fresh.attr["dtype"].type = outer.dtype.base_dtype.as_datatype_enum
            to_message(
                np.asarray(outer._static), outer.dtype.base_dtype, fresh.attr["value"].tensor
            )
            node.CopyFrom(fresh)
    return out


def _as_function(func: ConcreteFunction, graph_def: object) -> ConcreteFunction:
    old = func.graph
    new = FuncGraph(old.name)
    with new.as_default():
        import_graph_def(graph_def, name="")

    def moved(value: object) -> Any:
        return new.get_tensor_by_name(value.name) if isinstance(value, Tensor) else value

    new.inputs = [moved(t) for t in old.inputs]
    new.finish([moved(t) for t in old.outputs])
    traced = func.traced
    outputs = nest.map_structure(moved, traced.structured_outputs)
    new.structured_outputs = outputs
    given = nest.map_structure(moved, traced.structured_input)
    return ConcreteFunction(
        TracedFunction(new, given, outputs), func.signature, func.call_args, func.call_kwargs
    )


def convert_variables_to_constants_from_session_graph(
    session: BaseSession | None,
    graph_def: GraphDef,
    output_node_names: Any,
    variable_names_allowlist: Any = None,
    variable_names_denylist: Any = None,
) -> GraphDef:
    """TF 2's name for ``graph_util.convert_variables_to_constants``."""
    return convert_variables_to_constants(
        session, graph_def, output_node_names, variable_names_allowlist, variable_names_denylist
    )
