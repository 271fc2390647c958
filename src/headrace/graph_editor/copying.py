"""Copy a part of a graph, into the same graph or another one, with some of its inputs replaced.

>>> new_y = graph_replace(y, {x: x * 2})

Operations inside of tf.cond and tf.while_loop cannot be copied: their contexts belong to the ops
that they were built with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.core.graph import Graph
from headrace.core.scopes import control_dependencies
from headrace.core.tensor import Operation, Tensor
from headrace.graph_editor import graph_selection as selection
from headrace.graph_editor.subgraph_views import SubGraphView, make_view
from headrace.ops.array.basic import placeholder

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike


__all__ = [
    "Transformer",
    "TransformerInfo",
    "copy",
    "copy_op_handler",
    "copy_with_input_replacements",
    "graph_replace",
    "keep_t_if_possible_handler",
    "make_placeholder_from_dtype_and_shape",
    "make_placeholder_from_tensor",
    "placeholder_name",
    "replace_t_with_placeholder_handler",
]

_PREFIX = "geph"


def _closed(scope: str) -> str:
    return scope if not scope or scope.endswith("/") else f"{scope}/"


def placeholder_name(
    t: Tensor | None = None, scope: str | None = None, prefix: str = _PREFIX
) -> str:
    """The name of a placeholder that stands for ``t``, in its scope unless one is given.

    It is ``prefix``, two underscores, the name of the operation of ``t`` and the number of its
    output: "a/x:0" gives "a/geph__x_0". A name that has the prefix already stays. Without ``t`` it
    is ``scope`` and ``prefix``.
    """
    if t is None:
        return f"{_closed(scope or '')}{prefix}"
    if not isinstance(t, Tensor):
        raise TypeError(f"Expected a tf.Tensor, got: {type(t)}")
    folder, slash, base = t.op.name.rpartition("/")
    if not base.startswith(f"{prefix}__"):
        base = f"{prefix}__{base}_{t.value_index}"
    return (folder + slash if scope is None else _closed(scope)) + base


def make_placeholder_from_tensor(
    t: Tensor, scope: str | None = None, prefix: str = _PREFIX
) -> Tensor:
    """A placeholder with the type and shape of ``t``.

    Its name is that of ``t`` with the prefix "geph__" in the scope of ``t``, or in ``scope`` if one
    is given.
    """
    name = placeholder_name(t, scope=scope, prefix=prefix)
    return placeholder(dtype=t.dtype, shape=t.get_shape(), name=name)


def make_placeholder_from_dtype_and_shape(
    dtype: DTypeLike,
    shape: ShapeLike | None = None,
    scope: str | None = None,
    prefix: str = _PREFIX,
) -> Tensor:
    """A placeholder of this type and shape.

    ``scope`` and ``prefix`` make its name, as in ``placeholder_name``.
    ``tf.contrib.graph_editor.ph`` is the same function.
    """
    name = placeholder_name(scope=scope, prefix=prefix)
    return placeholder(dtype=dtype, shape=shape, name=name)


class _Copy:
    """One copy on its way: what handlers are given."""

    def __init__(self, view: SubGraphView, graph: Graph, to_scope: str, from_scope: str) -> None:
        self.sgv, self.graph, self.graph_ = view, view.graph, graph
        self.scope, self.scope_ = from_scope, to_scope
        self.ops = set(view.ops)
        self.transformed_ops: dict[Operation, Operation] = {}
        self.transformed_ts: dict[Tensor, Tensor] = {}
        self.sgv_inputs_set = set(view.inputs)

    def new_name(self, name: str) -> str:
        """The name of the copy of what is called ``name``."""
        if not name.startswith(self.scope):
            raise ValueError(f"{name} does not belong to source scope: {self.scope}.")
        return self.scope_ + name[len(self.scope) :]


class TransformerInfo:
    """The result of a Transformer: which operations and tensors of the copy stand for which."""

    def __init__(self, info: _Copy) -> None:
        self._graph, self._scope = info.graph, info.scope
        self._graph_, self._scope_ = info.graph_, info.scope_
        self._transformed_ops, self._transformed_ts = info.transformed_ops, info.transformed_ts

    def transformed(self, original: object, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """The copy of an operation or tensor, or of each in a structure.

        What was not copied is None, or what ``missing_fn`` gives for it.
        """
        return _mapped(original, self._lookup(False), missing_fn)

    def original(self, transformed: object, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """What this is a copy of."""
        return _mapped(transformed, self._lookup(True), missing_fn)

    def _lookup(self, back: bool) -> dict[Any, Any]:
        pairs = [*self._transformed_ops.items(), *self._transformed_ts.items()]
        return {b: a for a, b in pairs} if back else dict(pairs)

    def __str__(self) -> str:
        lines = ["Transformer result info:", f"Original: {self._graph!r}"]
        lines += [f"Transformed: {self._graph_!r}"]
        lines += [f"{a.name} -> {b.name}" for a, b in self._transformed_ops.items()]
        return "\n".join(lines)


def _mapped(given: Any, table: dict[Any, Any], missing_fn: Callable[[Any], Any] | None) -> Any:
    """Structures are few and small, so this may call itself."""
    if isinstance(given, (Tensor, Operation, str)):
        key = given
        if isinstance(given, str):
            key = next((k for k in table if k.name == given), given)
        if key in table:
            return table[key]
        return None if missing_fn is None else missing_fn(given)
    if isinstance(given, dict):
        return {k: _mapped(v, table, missing_fn) for k, v in given.items()}
    return type(given)(_mapped(v, table, missing_fn) for v in given)


# handlers -----------------------------------------------------------------------------------------


def replace_t_with_placeholder_handler(info: Any, t: Tensor) -> Tensor:
    """A handler that puts a placeholder in the place of an input of the copied subgraph."""
    with info.graph_.as_default():
        return make_placeholder_from_tensor(t, scope=info.scope_)


def keep_t_if_possible_handler(info: Any, t: Tensor) -> Tensor:
    """The input itself in the same graph, a placeholder in another one."""
    return t if info.graph is info.graph_ else replace_t_with_placeholder_handler(info, t)


def copy_op_handler(info: Any, op: Operation, new_inputs: list[Tensor]) -> Operation:
    """A copy of one operation, with other inputs and without control inputs.

    The default of ``Transformer.transform_op_handler``; ``info`` is the TransformerInfo of the copy
    under way. Attributes and device are those of ``op``. An operation inside of a ``tf.cond`` or
    ``tf.while_loop`` is a NotImplementedError here: TensorFlow copies it together with its loop.
    """
    if op._context is not None:
        raise NotImplementedError(
            f"graph_editor cannot copy {op.name!r}: it is inside of a tf.cond or tf.while_loop"
        )
    graph: Graph = info.graph_
    name = graph.unique_name(info.new_name(op.name))
    attrs = {k: v for k, v in op._attrs.items() if k != "_class"}
    with graph.as_default(), control_dependencies(None):
        made = graph._add_op(op._opdef, tuple(new_inputs), attrs, name, control_inputs=())
    made._set_device(op.device)
    if "_class" in op._attrs:
        made._set_attr("_class", op._attrs["_class"])
    return made


class Transformer:
    """Copies views; its handlers decide what inputs and operations become."""

    def __init__(self) -> None:
        self.transform_op_handler: Callable[..., Operation] = copy_op_handler
        self.transform_external_input_handler: Callable[..., Tensor] = (
            replace_t_with_placeholder_handler
        )
        self.transform_external_hidden_input_handler: Callable[..., Tensor] = (
            keep_t_if_possible_handler
        )

    def __call__(
        self,
        sgv: Any,
        dst_graph: Graph | None,
        dst_scope: str,
        src_scope: str = "",
        reuse_dst_scope: bool = False,
    ) -> tuple[SubGraphView, TransformerInfo]:
        view = make_view(sgv)
        graph = dst_graph if dst_graph is not None else view.graph
        if not isinstance(graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
        to_scope = _closed(dst_scope)
        if to_scope and not reuse_dst_scope:
            to_scope = _closed(graph.unique_name(to_scope[:-1]))
        info = _Copy(view, graph, to_scope, _closed(src_scope))
        for op in sorted(view.ops, key=lambda op: op._id):
            made = self.transform_op_handler(info, op, [self._input(info, t) for t in op.inputs])
            info.transformed_ops[op] = made
            info.transformed_ts.update(zip(op.outputs, made.outputs))
        self._connect_control_inputs(info)
        copied = make_view([info.transformed_ops[op] for op in view.ops])
        copies = info.transformed_ts
        copied._output_ts = [copies[t] for t in view.outputs if t in copies]
        copied._input_ts = []  # (TensorFlow's copies list inputs only if they are copies, too)
        return copied, TransformerInfo(info)

    def _input(self, info: _Copy, t: Tensor) -> Tensor:
        """The input of a copy; a handler is asked for each use of an outer tensor."""
        if t in info.transformed_ts:
            return info.transformed_ts[t]
        if t in info.sgv_inputs_set:
            return self.transform_external_input_handler(info, t)
        return self.transform_external_hidden_input_handler(info, t)

    def _connect_control_inputs(self, info: _Copy) -> None:
        same = info.graph is info.graph_
        for op, made in info.transformed_ops.items():
            waited = [info.transformed_ops.get(c, c if same else None) for c in op.control_inputs]
            found = [c for c in waited if c is not None]
            if found:
                made._add_control_inputs(found)


# copies -------------------------------------------------------------------------------------------


def copy(
    sgv: Any,
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """A copy of a view; placeholders stand for its inputs.

    ``sgv`` is a SubGraphView or what makes one: operations, a scope. The copy goes into
    ``dst_graph`` (default: the same graph) below ``dst_scope``, with ``src_scope`` taken off the
    names; ``reuse_dst_scope`` allows that scope to exist. Returns the view of the copy and a
    TransformerInfo, which maps originals to copies.
    """
    return Transformer()(sgv, dst_graph, dst_scope, src_scope, reuse_dst_scope)


def copy_with_input_replacements(
    sgv: object,
    replacement_ts: Mapping[Tensor, Tensor],
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """A copy in which some inputs are other tensors.

    ``replacement_ts`` maps inputs of the view to the tensors that stand for them in the copy; the
    other inputs stay the original tensors. The remaining arguments and the result are those of
    ``copy``.
    """
    by_tensor = dict(replacement_ts)

    def replaced(info: object, t: Tensor) -> Tensor:
        found = by_tensor.get(t)
        return keep_t_if_possible_handler(info, t) if found is None else found

    copier = Transformer()
    copier.transform_external_input_handler = replaced
    return copier(sgv, dst_graph, dst_scope, src_scope, reuse_dst_scope)


def graph_replace(
    target_ts: object,
    replacement_ts: Mapping[Tensor, Tensor],
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:
    """The targets, computed from the replacements instead of the original tensors.

    ``target_ts`` is a tensor or a nesting of tensors, and the result is nested alike. The
    operations between the keys of ``replacement_ts`` and the targets are copied; those that do not
    depend on a key are shared. A ValueError if no target depends on a key.

        x = tf.constant(2.0)
        tf.contrib.graph_editor.graph_replace(x * x, {x: tf.constant(3.0)})  # 9.0
    """
    targets = selection.make_list_of_t(target_ts)
    replaced = list(replacement_ts)
    graph = selection.get_unique_graph(targets, check_types=(Tensor,))
    ops = selection.get_walks_intersection_ops(
        replaced, targets, control_ios=selection.ControlOutputs(graph)
    )
    if not ops:
        raise ValueError("Targets and replacements are not connected!")
    _, info = copy_with_input_replacements(
        ops, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope
    )
    return info.transformed(target_ts, lambda t: t)
