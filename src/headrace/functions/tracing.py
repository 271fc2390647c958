"""Running a Python function once, on placeholders, to get a graph: what ``tf.function`` and
``Dataset.map`` are built on.

    traced = trace(lambda x, y: x * w + y, (TensorSpec([None]), TensorSpec([])), name="f")
    traced.output_specs               # TensorSpec(shape=(None,), dtype=tf.float32, name=None)
    run = traced.bind(state)          # run(array_x, array_y) -> (array,)

Arguments are structures of specs; leaves that are not specs are given to the function as they are.
What the function uses from outside is listed in ``captures``: eager tensors are fed by ``bind``
itself, tensors of an outer graph by the caller. Everything that the function does besides computing
happens in program order (core/effects.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from headrace.core import nest, specs
from headrace.core.convert import convert_to_tensor
from headrace.core.func_graph import FuncGraph, out_of_scope
from headrace.core.graph import Graph, get_default_graph
from headrace.core.specs import TensorSpec, TypeSpec
from headrace.core.tensor import Operation, Tensor
from headrace.executors import options_for
from headrace.lower.session_state import State
from headrace.session.graph_function import GraphFunction

if TYPE_CHECKING:
    from headrace.functions.function import _WeakMethod

__all__ = ["TracedFunction", "convert_outputs", "placeholders", "trace", "trace_into"]


class TracedFunction:
    """A function as a graph, with the structure of its arguments and results."""

    def __init__(
        self,
        graph: FuncGraph,
        structured_input: tuple[tuple[Any, ...], dict[str, Any]],
        structured_outputs: object,
    ) -> None:
        self.graph = graph
        self.structured_input = structured_input
        self.structured_outputs = structured_outputs
        self.output_specs = specs.spec_structure(structured_outputs)
        self._compiled: GraphFunction | None = None
        self.jit_compile = False  # wants XLA
        #: Flat results in the structure that the function returned.
        self.pack_outputs = specs.packer(self.output_specs)
        #: Set before the first call where feeds and results are eager tensors, which nothing writes
        #: to.
        self.borrowed = False

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders of the arguments, flat."""
        return self.graph.inputs

    @property
    def outputs(self) -> list[Tensor]:
        """The results, flat."""
        return self.graph.outputs

    @property
    def captures(self) -> list[tuple[Any, Tensor]]:
        """(outside, placeholder inside) for everything that comes from outside."""
        return self.graph.captures

    @property
    def stateful(self) -> bool:
        """Whether a call does more than compute its results."""
        return bool(self.graph.control_outputs)

    @property
    def compiled(self) -> GraphFunction:
        """``compiled(state, *arrays of the arguments, *arrays of the captures)``."""
        if self._compiled is None:
            graph = self.graph
            self._compiled = GraphFunction(
                graph,
                [*graph.inputs, *graph.internal_captures],
                graph.outputs,
                graph.control_outputs,
                options=options_for("xla") if self.jit_compile else None,
                borrowed=self.borrowed,
            )
        return self._compiled

    def bind(
        self, state: State, captured: Sequence[Any] | None = None
    ) -> Callable[..., tuple[Any, ...]]:
        """The function over a state: flat arrays in, flat arrays out.

        ``captured`` are the values of the captures; by default those that eager tensors have.
        """
        compiled = self.compiled
        extra = (
            tuple(map(_value_of, self.graph.external_captures))
            if captured is None
            else tuple(captured)
        )
        if not extra:
            return lambda *arrays: compiled(state, *arrays)
        return lambda *arrays: compiled(state, *arrays, *extra)


def _value_of(outside: Tensor) -> Any:
    if not getattr(outside, "_is_eager", False):
        raise ValueError(
            f"{outside!r} is a tensor of the graph around the function: its value is "
            "known in a session only"
        )
    return outside._static


def trace(
    fn: Callable[..., Any],
    args_specs: Sequence[Any] = (),
    kwargs_specs: dict[str, Any] | None = None,
    *,
    name: str = "function",
    autograph: bool = True,
    outer: Graph | None = None,
) -> TracedFunction:
    """Run ``fn`` on placeholders for the given specs and keep what it did as a graph."""
    if outer is None:
        default = get_default_graph()
        outer = None if default._is_eager else default
    graph = FuncGraph(name, outer)
    return trace_into(graph, fn, tuple(args_specs), kwargs_specs or {}, autograph)


def trace_into(
    graph: FuncGraph,
    fn: Callable[..., Any],
    args_specs: tuple[Any, ...],
    kwargs_specs: dict[str, Any],
    autograph: bool = True,
    options: object = None,
    names: Sequence[str] = (),
) -> TracedFunction:
    """As ``trace``, in a graph that is there already; ``names`` of the positional parameters."""
    function = converted(fn, options) if autograph else fn
    with ExitStack() as stack:
        stack.enter_context(graph.as_default())
        args, kwargs = placeholders(graph, (args_specs, kwargs_specs), names)
        before = nest.map_structure(lambda x: x, (args, kwargs))
        given = function(*args, **kwargs)
        _check_unchanged(before, (args, kwargs), fn)
        results = convert_outputs(given, fn)
        flat = specs.components(specs.spec_structure(results), results)
        outputs = [graph.capture(t) for t in flat]
        for t in outputs:
            if t._op._context is not None:  # made inside of a branch or a loop body
                raise out_of_scope(t)
        graph.finish(outputs)
    graph.structured_outputs = results
    return TracedFunction(graph, (args, kwargs), results)


def _check_unchanged(before: object, after: object, fn: Callable[..., Any] | _WeakMethod) -> None:
    """A traced function is not run again.

    What it did to the lists and dicts it was given would be lost.
    """
    try:
        nest.assert_same_structure(before, after)
        same = all(a is b for a, b in zip(nest.flatten(before), nest.flatten(after)))
    except (TypeError, ValueError):
        same = False
    if not same:
        raise ValueError(
            "Function to be traced should not modify structure of input arguments. Check "
            "if your function has list and "
            "dictionary operations that alter input arguments, such as `list.pop`, `list.append`: "
            f"{getattr(fn, '__name__', fn)}"
        )


def converted(fn: Callable[..., Any], options: object = None) -> Callable[..., Any]:
    """The function with its ``if`` and ``while`` turned into graph operations where they depend on
    tensors.
    """
    from headrace.autograph import convert

    bound = getattr(
        fn, "bound", None
    )  # a method that does not keep its object alive (functions/function.py)
    if bound is not None and hasattr(fn, "__wrapped_method__"):
        fn = bound()
    return convert(fn, optional_features=options)


def placeholders(graph: FuncGraph, structure: object, names: Sequence[str] = ()) -> Any:
    """The pair (args, kwargs) with an input of the graph in the place of every spec."""
    flat = []
    for path, leaf in nest.flatten_with_tuple_paths(structure):
        if not isinstance(leaf, TypeSpec):
            flat.append(leaf)
            continue
        name = input_name(path, names)
        parts = [graph.add_input(s.dtype, s.shape, s.name or name) for s in leaf.component_specs]
        for part, s in zip(parts, leaf.component_specs):
            part._op._attrs["_user_specified_name"] = s.name or name  # as TensorFlow notes it
        flat.append(leaf.from_components(parts))
    return nest.pack_sequence_as(structure, flat)


def input_name(path: tuple[Any, ...], names: Sequence[str]) -> str:
    """The parameter's name and the path below it."""
    first = path[1]
    if path[0] == 0:
        first = names[first] if first < len(names) else f"args_{first - len(names)}"
    text = "_".join(str(p) for p in (first, *path[2:]))
    clean = "".join(c if c.isalnum() or c in "_." else "_" for c in text)
    return clean if clean[:1].isalnum() else f"args{clean}"


def convert_outputs(structure: object, fn: object = None) -> Any:
    """Numbers and arrays that a function returns become tensors.

    An operation becomes None, after which it has run.
    """
    try:
        return nest.map_structure(_output, structure)
    except (TypeError, ValueError) as error:
        wrong = [v for v in nest.flatten(structure) if _is_foreign(v)]
        if not wrong:
            raise
        raise TypeError(
            "To be compatible with tf.function, Python functions must return zero or more "
            "Tensors or ExtensionTypes or "
            f"None values; in compilation of {fn}, found return value of type "
            f"{type(wrong[0]).__name__}, which is not a "
            "Tensor or ExtensionType."
        ) from error


def _is_foreign(value: object) -> bool:
    try:
        _output(value)
    except (TypeError, ValueError):
        return True
    return False


def _output(value: object) -> Tensor | object | None:
    if value is None or isinstance(value, Operation):
        return None  # the effects of the function happen anyway
    if isinstance(value, Tensor):
        return value
    spec = specs.leaf_spec(value)
    if isinstance(spec, TypeSpec) and not isinstance(spec, TensorSpec):
        return value
    if hasattr(value, "_as_tensor_for_control_flow"):
        return value  # a TensorArray
    return convert_to_tensor(value)
