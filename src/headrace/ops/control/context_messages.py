"""Branches and loops as the messages that a MetaGraph has beside its nodes.

TensorFlow 1 takes gradients through an imported loop only if the file says which operations belong
to it. A message names the tensors of a context (``values``), and which of them stand for tensors
from outside (``external_values``). Contexts at the top are the collections ``cond_context`` and
``while_context``; others are nested in the message of the context around them. What gradients add
of their own (backward loops, their branches) has no message, as in TensorFlow.

When a MetaGraph is read, contexts are found in the graph (program/flow_structure.py); the message
adds what operations do not say: names, ``back_prop``, the limit of iterations.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Container, Sequence
from typing import Any

from headrace.core.collection_protos import register_proto_function
from headrace.core.contexts import CondBase, Context
from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scoped_names import prepend_name_scope, strip_name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.control.control_contexts import CondContext, WhileContext
from headrace.wire.control_flow_messages import control_flow_message

__all__ = ["CONTEXT_COLLECTIONS", "context_from_proto", "context_messages", "note_contexts"]

_log = logging.getLogger("tensorflow")
CONTEXT_COLLECTIONS = (GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT)

Known = CondContext | WhileContext


def note_contexts(graph: Graph, *contexts: Known) -> None:
    """Contexts that a program made: in a collection, or in the context around them.

    Functions are written as functions, which need no contexts.
    """
    if graph._is_function:
        return
    for context in contexts:
        if isinstance(context.outer_context, (CondContext, WhileContext)):
            context.outer_context.nested.append(context)
        elif context.outer_context is None:
            graph.add_to_collection(_collection_of(context), context)


def _collection_of(context: Known) -> str:
    return CONTEXT_COLLECTIONS[isinstance(context, WhileContext)]


# writing ------------------------------------------------------------------------------------------


class _Members:
    """Which operations belong to which context, as far as they are written."""

    def __init__(self, graph: Graph, written: Container[str] | None) -> None:
        self.inside: defaultdict[Context | None, list[Operation]] = defaultdict(list)
        self.switches: defaultdict[Context | None, list[Operation]] = defaultdict(list)
        self.exits: defaultdict[Context | None, list[Operation]] = defaultdict(list)
        for op in graph._ops:
            if op._context is None and op._cond_context is None and op._opdef.role != "exit":
                continue
            if written is not None and op.name not in written:
                continue
            self.inside[op._context].append(op)
            if op._cond_context is not None:
                self.switches[op._cond_context].append(op)
            if op._opdef.role == "exit":
                self.exits[op._inputs[0]._op._context].append(op)

    def values(self, context: Known, is_outermost: bool = True) -> set[str]:
        """Names of the tensors of a context, those of branches in it among them."""
        found = {
            t.name
            for op in self.inside[context]
            if is_outermost or op._opdef.role != "exit"
            for t in op._outputs
        }
        if isinstance(context, CondContext):
            start = context.pivot._op._inputs[0]._op
            found |= {
                op._outputs[context.branch].name for op in self.switches[context] if op is not start
            }
        else:
            found |= {t.name for op in self.exits[context] for t in op._outputs}
        for inner in context.nested:
            if isinstance(inner, CondContext):
                found |= self.values(inner, is_outermost=False)
        return found


def context_messages(
    contexts: Sequence[Known],
    graph: Graph,
    scope: str | None = None,
    written: Container[str] | None = None,
) -> list[Any]:
    """The messages of contexts; ``written`` has the names of the nodes that are in the file."""
    members = _Members(graph, written)
    made = [_message(c, members, scope) for c in contexts if _is_whole(c, written)]
    return [m for m in made if m is not None]


def _is_whole(context: Known, written: Container[str] | None) -> bool:
    """Whether the operations that a context's message names first are in the file."""
    if written is None:
        return True
    if isinstance(context, CondContext):
        return context.pivot._op.name in written and context.pred._op.name in written
    ends = [t._op.name for v in context.loop_variables or () for t in (v.merge, v.inside)]
    return bool(ends) and all(name in written for name in ends)


def _message(context: Known, members: _Members, scope: str | None) -> Any:
    if scope and not context.name.startswith(scope):
        return None
    if isinstance(context, CondContext):
        message = _cond_message(context)
    else:
        message = _while_message(context, members)
    if message is None:
        return None
    external = {k.name: v.name for k, v in _external(context).items()}
    message.values_def.values.extend(sorted(members.values(context) | set(external)))
    for key, value in external.items():
        message.values_def.external_values[key] = value
    if scope:
        _strip(message, scope)
    for inner in context.nested:
        nested = _message(inner, members, scope)
        if nested is not None:
            kind = "cond_ctxt" if isinstance(inner, CondContext) else "while_ctxt"
            getattr(message.nested_contexts.add(), kind).CopyFrom(nested)
    return message


def _cond_message(context: CondContext) -> Any:
    return control_flow_message("CondContextDef")(
        context_name=context.name,
        pred_name=context.pred.name,
        pivot_name=context.pivot.name,
        branch=context.branch,
    )


def _while_message(context: WhileContext, members: _Members) -> Any:
    if not context.loop_variables or context.pivot is None:
        return None
    first = context.loop_variables[0]
    enters = [op for op in context.enters if not op._attrs["is_constant"]]
    message = control_flow_message("WhileContextDef")(
        context_name=context.name,
        parallel_iterations=context.parallel_iterations,
        back_prop=context.back_prop,
        swap_memory=context.swap_memory,
        pivot_name=first.inside._op._inputs[1].name,
        pivot_for_pred_name=first.merge.name,
        pivot_for_body_name=context.pivot._outputs[0].name,
        loop_exit_names=[op._outputs[0].name for op in members.exits[context]],
        loop_enter_names=[op._outputs[0].name for op in enters],
    )
    if context.maximum_iterations is not None:
        message.maximum_iterations_name = context.maximum_iterations.name
    return message


def _external(context: Known) -> dict[Tensor, Tensor]:
    """Tensors from outside as the context knows them.

    What the context around it brought in for this one is no tensor of the program's: a branch has
    it as it is, and a loop not at all.
    """
    outer = context.outer_context
    between = set(getattr(outer, "captured", {}).values())
    if isinstance(context, WhileContext):
        return {k: v for k, v in context.captured.items() if k not in between}
    found = {context.pred: context.pred}
    found.update((k, k if k in between else v) for k, v in context.captured.items())
    return found


def _strip(message: Any, scope: str) -> None:
    """All names of a message (not of those nested in it) without a scope."""
    for field, value in message.ListFields():
        if field.name.endswith("_name"):
            message.MergeFrom(type(message)(**{field.name: strip_name_scope(value, scope)}))
        elif field.name.endswith("_names"):
            value[:] = [strip_name_scope(n, scope) for n in value]
    values = message.values_def
    values.values[:] = [strip_name_scope(n, scope) for n in values.values]
    external = {
        strip_name_scope(k, scope): strip_name_scope(v, scope)
        for k, v in values.external_values.items()
    }
    values.external_values.clear()
    values.external_values.update(external)


# reading ------------------------------------------------------------------------------------------


def context_from_proto(message: Any, import_scope: str | None = None) -> Known | None:
    """The context in the default graph that a message describes; it takes what the message says.

    None, with a warning, if the operations that the message names are no such context.
    """
    graph = get_default_graph()

    def tensor(name: str) -> Tensor:
        found: Tensor = graph.as_graph_element(prepend_name_scope(name, import_scope), True, False)
        return found

    is_cond = message.DESCRIPTOR.name == "CondContextDef"
    pivot = tensor(message.pivot_name if is_cond else message.pivot_for_pred_name)
    context = pivot._op._context
    if not isinstance(context, CondContext if is_cond else WhileContext):
        _log.warning(
            "%s of the MetaGraph is not the %s that the graph has there; it is left out.",
            message.context_name,
            "branch" if is_cond else "loop",
        )
        return None
    context.name = prepend_name_scope(message.context_name, import_scope)
    if isinstance(context, CondContext):
        context.pivot = pivot
    else:
        context.parallel_iterations = message.parallel_iterations
        context.back_prop = message.back_prop
        context.swap_memory = message.swap_memory
        if message.maximum_iterations_name:
            context.maximum_iterations = tensor(message.maximum_iterations_name)
    for names in message.values_def.external_values.items():
        key, value = (prepend_name_scope(n, import_scope).rpartition(":") for n in names)
        # what an input_map replaces is not there
        if names[0] != names[1] and key[0] in graph._by_name and value[0] in graph._by_name:
            context.captured.setdefault(tensor(names[0]), tensor(names[1]))
    _read_nested(context, message, import_scope)
    return context


def _read_nested(context: Known, message: Any, scope: str | None) -> None:
    context.nested = []
    for nested in message.nested_contexts:
        inner = context_from_proto(getattr(nested, nested.WhichOneof("ctxt")), scope)
        if inner is not None:
            context.nested.append(inner)


def _to_proto(context: Known, export_scope: str | None = None) -> Any:
    place = context.pred if isinstance(context, CondBase) else context.enters[0]
    made = context_messages([context], place.graph, export_scope)
    return made[0] if made else None


for _kind, _name in ((CondContext, "CondContextDef"), (WhileContext, "WhileContextDef")):
    register_proto_function(
        CONTEXT_COLLECTIONS[_kind is WhileContext],
        lambda name=_name: control_flow_message(name),
        _to_proto,
        context_from_proto,
    )
