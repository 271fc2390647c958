"""Calls of functions in imported graphs, and TF-2 control flow, expanded where they stand.

A node that calls a function (PartitionedCall, StatefulPartitionedCall, or the function's own name)
becomes the operations of the function's body, named below the node; the node itself is an IdentityN
of the results, after the effects of the body. If and Case become ``tf.cond``, While becomes
``tf.while_loop`` over such bodies. So rewrites, gradients and ``explain`` see them as they see a
graph that was built here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import shapes
from headrace.core.build import apply_op
from headrace.core.call_records import CallRecord, note_call
from headrace.core.dtypes import as_dtype, string
from headrace.core.dtypes import bool as bool_type
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph
from headrace.core.opdef import ALL_OPS, lookup
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.formats.attr_values import FunctionName, decode
from headrace.formats.call_nodes import ImportedCall, function_names, functions_behind
from headrace.formats.function_bodies import (
    CALLS,
    CASES,
    FUNCTIONAL,
    IFS,
    WHILES,
    BodyImporter,
    Results,
)
from headrace.formats.graphdef_nodes import check_ops
from headrace.formats.imported_gradients import register_imported_gradient
from headrace.formats.tensor_proto import to_shape
from headrace.ops.array.basic import constant, identity
from headrace.ops.control.case_branches import switch_case
from headrace.ops.control.control_flow import cond
from headrace.ops.control.while_loops import while_loop

if TYPE_CHECKING:
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    from headrace.data.functions.user_functions import DataFunction

__all__ = ["FunctionLibrary"]

#: Functions that call functions that call …: deeper is refused.
MAX_CALLS = 100
#: Operations that expanding may make: a few functions that each call the next twice would make
#: billions.
MAX_EXPANDED = 2_000_000


class FunctionLibrary:
    """The functions of a GraphDef (or a SavedModel), and how nodes call them."""

    def __init__(self, functions: Iterable[Any] = (), gradients: Iterable[Any] = ()) -> None:
        self.functions = {f.signature.name: f for f in functions}
        self.gradients: dict[str, str] = {g.function_name: g.gradient_func for g in gradients}
        self.copies: dict[str, Any] = {}
        self.checked: set[str] = set()
        self.stack: list[str] = []
        self.expanded = 0
        self.sizes: dict[str, int] = {}
        self.data_functions: dict[tuple[str, int], DataFunction] = {}

    def is_call(self, op: str) -> bool:
        return op in FUNCTIONAL or (op in self.functions and op not in ALL_OPS)

    def part(self, functions: dict[str, Any]) -> FunctionLibrary:
        """A library of some of the functions, which does not keep the file's message."""
        self.keep(functions)
        out = FunctionLibrary(self.copies[name] for name in functions)
        out.gradients = {f: g for f, g in self.gradients.items() if f in functions}
        return out

    def get(self, name: str) -> Any:
        found = self.functions.get(name)
        if found is None:
            raise ValueError(f"Function '{name}' is not in the library of the graph")
        return found

    # nodes that call ------------------------------------------------------------------------------
    def call(
        self,
        importer: Any,
        node: NodeDef,
        inputs: tuple[Tensor, ...],
        controls: tuple[Operation, ...],
        full: str,
    ) -> Operation:
        """The operation in the place of a node that calls a function."""
        graph: Graph = importer.graph
        entry = _entry(inputs, (*controls, *importer.entry))
        caller = _Caller(self, importer, node, inputs, entry, full)
        before = len(graph._ops)
        with graph.as_default(), graph.name_scope(f"{full}/"):
            results, effects = caller.results()
        body = graph._ops[before:]
        count = len(results)
        key = caller.gradient(count)
        if key is not None:  # its gradient is told the arguments
            results = [*results, *inputs]
        op = _result_op(graph, results, [*effects, *controls], full)
        if key is not None:
            op._attrs = {**op._attrs, "_gradient_op_type": key}
        if not graph._is_function and graph._context is None and not self.stack:
            self._note(node, CallRecord(op, inputs, count, frozenset(body), None))
        op._frames = importer.frames
        op._device = node.device or op._device
        importer.made.append(op)
        return op

    def _note(self, node: Any, record: CallRecord) -> None:
        """Keep what the call was: a GraphDef that is written again has it."""
        copy = type(node)()
        copy.CopyFrom(node)
        called = functions_behind(function_names(node), self.functions)
        self.keep(f.signature.name for f in called)
        kept = tuple(self.copies[f.signature.name] for f in called)
        note_call(record.result.graph, record._replace(function=ImportedCall(copy, kept)))

    def keep(self, names: Iterable[str]) -> None:
        """Copy functions, once: the file's message need not stay."""
        for name in names:
            if name not in self.copies:
                self.copies[name] = type(self.functions[name])()
                self.copies[name].CopyFrom(self.functions[name])

    def instantiate(
        self,
        name: str,
        graph: Graph,
        arguments: Sequence[Tensor],
        prefix: str,
        entry: tuple[Operation, ...] = (),
        attrs: Sequence[tuple[str, Any]] = (),
        frames: tuple[Any, ...] = (),
    ) -> Results:
        """The operations of a function's body in ``graph``.

        (results, effects that have to happen).
        """
        function = self.get(name)
        if name in self.stack or len(self.stack) >= MAX_CALLS:
            chain = " → ".join([*self.stack[-3:], name])
            raise ValueError(
                f"Function '{name}' calls itself, or calls are nested too deep: {chain}"
            )
        if name not in self.checked:
            check_ops(function.node_def, self.is_call)
            self.checked.add(name)
        if not self.stack:  # counted before anything is built
            self.expanded += self._size(name, 0)
        if self.expanded > MAX_EXPANDED:
            raise ValueError(
                f"The functions of the graph expand to more than {MAX_EXPANDED:,} operations: "
                f"'{name}' and what it calls to {self._size(name, 0):,}"
            )
        self.stack.append(name)
        try:
            importer = BodyImporter(graph, self, function, arguments, dict(attrs))
            importer.prefix, importer.entry, importer.frames = prefix, entry, frames
            importer.build(function.node_def)
            return importer.results()
        finally:
            self.stack.pop()

    def _size(self, name: str, depth: int) -> int:
        """How many operations a function expands to, with those that it calls."""
        known = self.sizes.get(name)
        if known is None and name in self.functions and depth <= MAX_CALLS:
            self.sizes[name] = 0  # of a function that calls itself, which is refused
            known = 0
            for node in self.functions[name].node_def:
                known += 1 + sum(self._size(f, depth + 1) for f in function_names(node))
            self.sizes[name] = known
        return known or 0

    def func_graph(
        self, name: str, given: Sequence[Any] | None = None, outer: Graph | None = None
    ) -> FuncGraph:
        """A function as a graph of its own, with a placeholder for each argument."""
        function = self.get(name)
        graph = FuncGraph(name, outer)
        with graph.as_default():
            arguments = []
            for i, arg in enumerate(function.signature.input_arg):
                shape = _argument_shape(function, i) if given is None else given[i]
                arguments.append(graph.add_input(as_dtype(arg.type)._base, shape, arg.name))
            results, effects = self.instantiate(name, graph, arguments, "")
            graph.outputs = results
            graph.control_outputs = effects
        return graph

    def data_function(self, function: FunctionName, node: NodeDef) -> DataFunction:
        """The function of a dataset's node: its last arguments are the node's ``Targuments``."""
        from headrace.data.functions.user_functions import imported_function

        captures = len(node.attr["Targuments"].list.type) if "Targuments" in node.attr else 0
        key = (function.name, captures)
        if key not in self.data_functions:
            if function.name in self.stack or len(self.stack) >= MAX_CALLS:
                raise ValueError(f"Function '{function.name}' is used inside of itself")
            outer, self.stack = self.stack, [*self.stack, f"{function.name} of {node.op}"]
            try:
                graph = self.func_graph(function.name)
            finally:
                self.stack = outer
            self.data_functions[key] = imported_function(graph, captures, function)
        return self.data_functions[key]


def _argument_shape(function: Any, i: int) -> tuple[int | None, ...] | None | None:
    if i in function.arg_attr and "_output_shapes" in function.arg_attr[i].attr:
        listed = function.arg_attr[i].attr["_output_shapes"].list.shape
        return to_shape(listed[0]) if len(listed) == 1 else None
    return None


def _entry(inputs: Sequence[Tensor], controls: Sequence[Operation]) -> tuple[Operation, ...]:
    """What the effects of a call wait for: a call starts when all of its inputs are there."""
    quiet = ("Const", "Placeholder", "VarHandleOp", "VariableV2")
    found = [t._op for t in inputs if t._op.type not in quiet]
    return tuple(dict.fromkeys([*controls, *found]))


def _result_op(
    graph: Graph, results: list[Tensor], effects: list[Operation], full: str
) -> Operation:
    """The operation that stands for a call: its results, after its effects."""
    controls = tuple(dict.fromkeys(e for e in effects if e.graph is graph))
    if not results:
        return graph._add_op(lookup("NoOp"), (), {}, full, controls, -1)
    attrs = {"T": tuple(t._dtype._base for t in results)}
    return graph._add_op(lookup("IdentityN"), tuple(results), attrs, full, controls, -1)


class _Caller:
    """One node that calls: what its results are."""

    def __init__(
        self,
        library: FunctionLibrary,
        importer: Any,
        node: NodeDef,
        inputs: tuple[Tensor, ...],
        entry: tuple[Operation, ...],
        full: str,
    ) -> None:
        self.library = library
        self.importer = importer
        self.graph: Graph = importer.graph
        self.node = node
        self.inputs = inputs
        self.entry = entry
        self.full = full

    def results(self) -> Results:
        kind = self.node.op
        if kind in CALLS:
            return self.body(self.function("f"), self.inputs, self.full)
        if kind in IFS:
            return self.branches(), []
        if kind in CASES:
            return self.cases(), []
        if kind in WHILES:
            return self.loop(), []
        return self.body(self.own_name(), self.inputs, self.full)

    def own_name(self) -> FunctionName:
        """The function of a node whose type is the function's name."""
        attrs = tuple((k, v) for k, v in self.node.attr.items() if not k.startswith("_"))
        return FunctionName(self.node.op, attrs)

    def gradient(self, results: int) -> str | None:
        """The name of the gradient that the library has for the called function, if it has one."""
        kind = self.node.op
        if not self.library.gradients or not results or kind in FUNCTIONAL - CALLS:
            return None
        called = self.function("f") if kind in CALLS else self.own_name()
        if called.name not in self.library.gradients:
            return None
        return register_imported_gradient(self.library, called, results)

    def function(self, attr: str) -> FunctionName:
        if attr not in self.node.attr:
            raise ValueError(
                f"Node '{self.node.name}' ({self.node.op}) lacks the attribute '{attr}'"
            )
        found: FunctionName = decode(self.node.attr[attr], "func")
        return found

    def body(self, function: FunctionName, inputs: Sequence[Tensor], prefix: str) -> Results:
        return self.library.instantiate(
            function.name,
            self.graph,
            inputs,
            prefix,
            self.entry,
            function.attrs,
            self.importer.frames,
        )

    def inside(self, function: FunctionName, inputs: Sequence[Tensor], what: str) -> list[Tensor]:
        """A body in a branch or a loop: its results come after its effects."""
        outer = self.entry
        self.entry = ()
        try:
            results, effects = self.body(function, inputs, self.graph.unique_name(what))
        finally:
            self.entry = outer
        with self.graph.control_dependencies(effects):
            if not results:
                return [constant(0)] if effects else [identity(constant(0))]
            return [identity(t) for t in results] if effects else results

    # control flow ---------------------------------------------------------------------------------
    def branches(self) -> list[Tensor]:
        pred, inputs = _as_bool(self.inputs[0]), self.inputs[1:]
        then, otherwise = self.function("then_branch"), self.function("else_branch")
        wants = len(self.library.get(then.name).signature.output_arg)
        with self.graph.control_dependencies(self.entry):
            found = cond(
                pred,
                lambda: self.inside(then, inputs, "then"),
                lambda: self.inside(otherwise, inputs, "else"),
                strict=True,
                name="cond",
            )
        return self.shaped(list(found)[:wants] if wants else self._only_effects(found))

    def _only_effects(self, found: Sequence[Tensor]) -> list[Tensor]:
        self.entry = (*self.entry, *[t._op for t in found])
        return []

    def cases(self) -> list[Tensor]:
        index, inputs = self.inputs[0], self.inputs[1:]
        branches = decode(self.node.attr["branches"], "list(func)")
        if not branches:
            raise ValueError(f"Node '{self.node.name}' (Case) has no branches")
        wants = len(self.library.get(branches[0].name).signature.output_arg)

        def branch(function: FunctionName, i: int) -> Callable[[], Any]:
            return lambda: self.inside(function, inputs, f"branch{i}")

        functions = [branch(f, i) for i, f in enumerate(branches)]
        with self.graph.control_dependencies(self.entry):
            if len(functions) == 1:
                found = functions[0]()
            else:
                found = switch_case(index, functions, name="case")
        found = found if isinstance(found, (list, tuple)) else [found]
        return self.shaped(list(found)[:wants])

    def loop(self) -> list[Tensor]:
        test, body = self.function("cond"), self.function("body")
        inputs = list(self.inputs)
        fixed = self._invariant(body, len(inputs))
        moving = [i for i in range(len(inputs)) if i not in fixed]

        def everything(values: Sequence[Tensor]) -> list[Tensor]:
            out = list(inputs)
            for i, value in zip(moving, values):
                out[i] = value
            return out

        if not moving:
            moving = [0]
        declared = self._loop_shapes(inputs)
        for i in moving:
            inputs[i] = _as_declared(inputs[i], declared[i])

        def advance(*values: Tensor) -> list[Tensor]:
            found = self.inside(body, everything(values), "body")
            return [found[i] for i in moving]

        parallel = (
            self.node.attr["parallel_iterations"].i
            if "parallel_iterations" in self.node.attr
            else 10
        )
        with self.graph.control_dependencies(self.entry):
            found = while_loop(
                lambda *values: _as_bool(self.inside(test, everything(values), "cond")[0]),
                advance,
                [inputs[i] for i in moving],
                shape_invariants=[declared[i] for i in moving],
                parallel_iterations=max(1, parallel),
                return_same_structure=True,
                name="while",
            )
        return everything(list(found))

    def _invariant(self, body: FunctionName, n: int) -> set[int]:
        """Loop variables that the body hands on as they are."""
        function = self.library.get(body.name)
        arguments = [a.name for a in function.signature.input_arg]
        results = [a.name for a in function.signature.output_arg]
        if len(arguments) != n or len(results) != n:
            raise ValueError(
                f"Node '{self.node.name}' ({self.node.op}): the body '{body.name}' takes "
                f"{len(arguments)} values and gives "
                f"{len(results)}, the loop has {n}"
            )
        passed = {
            i for i in range(n) if function.ret[results[i]] in (arguments[i], f"{arguments[i]}:0")
        }
        through = {
            m.name: m.input[0]
            for m in function.node_def
            if m.op == "Identity" and len(m.input) == 1
        }
        for i in range(n):
            source = function.ret[results[i]].partition(":")[0]
            for _ in range(4):
                if source not in through:
                    break
                source = through[source].partition(":")[0]
            if source == arguments[i] and self._handle(i):
                passed.add(i)
        return passed

    def _handle(self, i: int) -> bool:
        return self.inputs[i]._dtype._kind == "r"

    def _loop_shapes(self, inputs: Sequence[Tensor]) -> list[Any]:
        listed = (
            self.node.attr["output_shapes"].list.shape if "output_shapes" in self.node.attr else ()
        )
        if len(listed) == len(inputs):
            return [TensorShape(to_shape(s)) for s in listed]
        return [TensorShape(None) for _ in inputs]

    def shaped(self, tensors: list[Tensor]) -> list[Tensor]:
        listed = (
            self.node.attr["output_shapes"].list.shape if "output_shapes" in self.node.attr else ()
        )
        if len(listed) == len(tensors):
            for t, shape in zip(tensors, listed):
                t.set_shape(to_shape(shape))
        return tensors


def _as_declared(tensor: Tensor, declared: TensorShape) -> Tensor:
    """A loop variable's first value with what is known of its shape from the declaration of the
    loop.
    """
    known = shapes.merge(tensor._shape, declared._plain)
    if known == tensor._shape:
        return tensor
    out: Tensor = identity(tensor)
    out._shape = known
    return out


def _as_bool(value: Tensor) -> Tensor:
    """A condition as TensorFlow takes it.

    A number that is not zero, a string or a list that is not empty.
    """
    if value._shape not in (None, ()):
        return apply_op("Greater", apply_op("Size", value), 0)
    if value._dtype._base is bool_type:
        return value
    if value._dtype._base is string:
        return apply_op("NotEqual", value, constant(""))
    return apply_op("NotEqual", value, constant(0, value._dtype._base))
