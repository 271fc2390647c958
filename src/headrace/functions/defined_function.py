"""``tensorflow.python.framework.function``: ``Defun``, the functions of TF-1 graphs.

    @function.Defun(tf.float32, tf.float32, func_name="plus")
    def plus(x, y):
        return x + y

    z = plus(1.0, 2.0)           # a call; the graph's library gets the function

A call is expanded where it stands, as calls of ``tf.function`` are: gradients go through its
operations unless the function has a gradient of its own (``grad_func``, ``python_grad_func``). In a
GraphDef the call is one node whose type is the function's name.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.registry import RegisterGradient
from headrace.core.build import apply_list
from headrace.core.call_records import AttrScalar, CalledFunction, function_arguments, note_function
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.func_graph import FuncGraph, is_function_graph
from headrace.core.graph import Graph, get_default_graph
from headrace.core.inline import Copies, inline
from headrace.core.opdef import lookup
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Operation, Tensor
from headrace.functions.concrete_function import called_operation, note_expanded
from headrace.functions.defun_attributes import CopyingFuncGraph, function_attributes
from headrace.functions.tracing import TracedFunction, trace_into

if TYPE_CHECKING:
    from headrace.core.indexed_slices import IndexedSlices

__all__ = [
    "Declare",
    "DefinedFunction",
    "Defun",
    "OverloadedFunction",
    "get_extra_args",
    "get_extra_inputs",
    "get_extra_vars",
]

_numbers = itertools.count()


class Defun:
    """Decorator that makes a function of a graph's library from a Python function.

    Arguments are the types of the function's arguments; without them each call is traced by the
    types that it has. ``func_name``: the name in the library. ``grad_func``: another Defun that
    takes the arguments and the gradients of the results. ``python_grad_func(op, *grads)``: builds
    the gradient. ``out_names``: names of the results. ``shape_func(op)``: their shapes.
    ``capture_by_value``: operations from outside that the body uses are copied into it.
    ``noinline``, ``compiled``, ``separate_compiled_gradients``, ``experimental_…``, ``_implements``
    and ``_reference`` become attributes of the function in a GraphDef.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._input_types = [as_dtype(t) for t in input_types]
        self._func_name = kwargs.pop("func_name", None)
        self._grad_func = kwargs.pop("grad_func", None)
        self._python_grad_func = kwargs.pop("python_grad_func", None)
        self._out_names = kwargs.pop("out_names", None)
        self._extra_kwargs = kwargs

    def __call__(self, func: Callable[..., Any]) -> DefinedFunction | OverloadedFunction:
        if not callable(func):
            raise ValueError(f"function {func} must be callable.")
        least, most = _argument_counts(func)
        given = len(self._input_types)
        options = dict(self._extra_kwargs)
        named = (self._grad_func, self._python_grad_func)
        if self._input_types:
            if given < least:
                raise ValueError(
                    "The function has more arguments than the number of specified input types."
                )
            if most is not None and given > most:
                raise ValueError(
                    "The function has fewer arguments than the number of specified input types."
                )
            return DefinedFunction(
                func, self._input_types, self._func_name, *named, self._out_names, **options
            )
        if least == 0 and most == 0:
            return DefinedFunction(func, [], self._func_name, *named, self._out_names, **options)
        return OverloadedFunction(func, self._func_name, *named, self._out_names, **options)


def _argument_counts(func: Callable[..., Any]) -> tuple[int, int | None]:
    """(fewest, most) arguments; most is None if any number is taken."""
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError):
        return 0, None
    kinds = inspect.Parameter
    if any(p.default is not kinds.empty or p.kind is kinds.VAR_KEYWORD for p in parameters):
        raise ValueError(
            "Functions with argument defaults or keywords arguments are not supported."
        )
    plain = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    open_ended = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    return len(plain), None if open_ended else len(plain)


class DefinedFunction:
    """A function with the types of its arguments; traced when it is first used."""

    def __init__(
        self,
        func: Callable[..., Any],
        input_types: Sequence[DType],
        func_name: str | None = None,
        grad_func: DefinedFunction | None = None,
        python_grad_func: Callable[..., Any] | None = None,
        out_names: Sequence[str] | None = None,
        shape_func: Callable[..., Any] | None = None,
        capture_by_value: bool = False,
        **attrs: Any,
    ) -> None:
        self._func = func
        self._input_types = list(input_types)
        self._func_name = func_name
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func
        self._out_names = out_names
        self._shape_func = shape_func
        self._capture_by_value = capture_by_value
        self._attrs = function_attributes(func_name or _python_name(func), attrs)
        self._traced: TracedFunction | None = None
        self._name = func_name

    # what it is ---------------------------------------------------------------------------------
    @property
    def traced(self) -> TracedFunction:
        """The body, traced once."""
        if self._traced is None:
            base = self._func_name or _python_name(self._func)
            around = get_default_graph()
            kind = CopyingFuncGraph if self._capture_by_value else FuncGraph
            graph = kind(base, None if around._is_eager else around)
            specs = tuple(TensorSpec(None, t) for t in self._input_types)
            try:
                names = list(inspect.signature(self._func).parameters)
            except (TypeError, ValueError):
                names = []
            traced = trace_into(graph, self._func, specs, {}, autograph=False, names=names)
            if self._out_names is not None and len(self._out_names) != len(graph.outputs):
                raise ValueError(
                    f"The length of out_names ({len(self._out_names)}) does not match the number "
                    f"of outputs ({len(graph.outputs)}): {', '.join(self._out_names)}"
                )
            self._traced = traced
        return self._traced

    @property
    def name(self) -> str:
        """The name in the library: the one that was given, or the function's with a hash."""
        if self._name is None:
            graph = self.traced.graph
            text = "|".join(
                f"{op.type} {op.name} {[t.name for t in op._inputs]}" for op in graph._ops
            )
            digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]
            self._name = f"{_python_name(self._func)}_{digest}"
        return self._name

    @property
    def definition(self) -> Any:
        """The FunctionDef."""
        graph = Graph()
        note_function(graph, self.name, self.called())
        found = graph.as_graph_def().library.function
        return next(f for f in found if f.signature.name == self.name)

    @property
    def declared_input_types(self) -> list[DType]:
        return list(self._input_types)

    @property
    def captured_inputs(self) -> list[Any]:
        """The tensors from outside that the body uses."""
        return self.traced.graph.external_captures

    extra_inputs = captured_inputs

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """(name, type) of the operations that do more than compute."""
        ops = self.traced.graph._ops
        return [(op.name, op.type) for op in ops if op._opdef.traits.is_stateful]

    @property
    def python_grad_func(self) -> Callable[..., Any] | None:
        return self._python_grad_func

    @property
    def grad_func_name(self) -> str | None:
        return None if self._grad_func is None else self._grad_func.name

    def set_grad_func(self, grad_func: DefinedFunction) -> None:
        """Give the function a gradient, once."""
        if not isinstance(grad_func, DefinedFunction):
            raise TypeError(f"grad_func must be a Defun, got {grad_func!r}")
        if self._grad_func is not None:
            raise ValueError(f"Gradient defined more than once for function {self.name}")
        self._grad_func = grad_func

    def called(self) -> CalledFunction:
        """The function for the library."""
        graph = self.traced.graph
        arguments = function_arguments(graph)
        gradient = None if self._grad_func is None else self._grad_func.called()
        names = None if self._out_names is None else tuple(self._out_names)
        return CalledFunction(
            self.name,
            graph,
            arguments,
            tuple(graph.outputs),
            self.name,
            names,
            gradient,
            self._attrs,
        )

    def add_to_graph(self, g: Graph) -> None:
        """Put the function into the library of a graph (and of those around it)."""
        while isinstance(g, FuncGraph):
            if g.outer_graph is None:
                return
            g = g.outer_graph
        if not g._is_eager:
            note_function(g, self.name, self.called())

    # calling ------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with tensors; ``name`` is the name of the call, other keywords (``noinline``) are
        attributes of its node.
        """
        name = kwargs.pop("name", None)
        attrs = function_attributes(self._func_name or _python_name(self._func), kwargs)
        graph = self.traced.graph
        if len(args) != len(self._input_types):
            raise ValueError(
                f"Expected number of arguments: {len(self._input_types)}, received: {len(args)}"
            )
        target = get_default_graph()
        if target._is_eager:
            raise RuntimeError(
                f"The function {self.name} is called eagerly: Defun's functions are called while a "
                "graph is built. Use tf.function."
            )
        tensors = [convert_to_tensor(a, t) for a, t in zip(args, self._input_types)]
        self.add_to_graph(target)
        result = self._expanded(target, graph, tensors, name, attrs)
        outputs = [] if isinstance(result, Operation) else result
        self._set_shapes(outputs)
        if not outputs:
            return result
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _expanded(
        self,
        target: Graph,
        graph: FuncGraph,
        tensors: list[Tensor],
        name: str | None,
        attrs: tuple[tuple[str, AttrScalar], ...],
    ) -> list[Tensor] | Operation:
        known = dict(zip(graph.inputs, tensors))
        for outer, inner in graph.captures:
            known[inner] = convert_to_tensor(outer)
        if is_function_graph(target):
            known = {k: target.capture(t) for k, t in known.items()}
        scope = f"{target.unique_name(name or self.name)}/"
        before = len(target._ops)
        copied = inline(graph, target, known, name=scope)
        new = target._ops[before:]
        function = self.called()._replace(call_attrs=attrs)
        if self._python_grad_func is None and self._grad_func is None:
            return called_operation(function, target, copied, new, scope)
        return self._with_gradient(function, target, copied, new, tensors, scope)

    def _with_gradient(
        self,
        function: CalledFunction,
        target: Graph,
        copied: Copies,
        new: Sequence[Operation],
        tensors: list[Tensor],
        name: str,
    ) -> list[Tensor] | Operation:
        """An IdentityN of results and arguments, whose gradient is the user's."""
        outputs = [copied[t] for t in function.outputs]
        if not outputs:
            return called_operation(function, target, copied, new, name)
        key = f"Defun-{next(_numbers)}"
        count = len(outputs)

        def gradient(op: Operation, *dys: Tensor | IndexedSlices) -> list[Any]:
            view = _CallView(op, self.name, count)
            dense = [as_dense(d) for d in dys[:count]]
            if self._python_grad_func is not None:
                found = self._python_grad_func(view, *dense)
            else:
                assert self._grad_func is not None
                found = self._grad_func(*view.inputs, *dense)
            grads = list(found) if isinstance(found, (list, tuple)) else [found]
            if len(grads) != len(tensors):
                raise ValueError(
                    f"The gradient of {self.name} gave {len(grads)} gradients for {len(tensors)} "
                    "arguments"
                )
            return [None] * count + grads

        RegisterGradient(key)(gradient)
        effects = [copied.ops[op] for op in function.graph.control_outputs]
        with target.control_dependencies(effects), target.gradient_override_map({"IdentityN": key}):
            wrapped = apply_list(lookup("IdentityN"), [*outputs, *tensors], name=name)
        if not target._is_function and target._context is None:
            note_expanded(function, target, copied, new, wrapped[0]._op)
        return list(wrapped[:count])

    def _set_shapes(self, outputs: Sequence[Tensor]) -> None:
        if self._shape_func is None or not outputs:
            return
        shapes = self._shape_func(outputs[0]._op)
        if len(shapes) != len(outputs):
            raise ValueError(f"shape_func produced {len(shapes)} shapes for {len(outputs)} outputs")
        for tensor, shape in zip(outputs, shapes):
            tensor.set_shape(shape)


class _CallView:
    """A call as a gradient function sees it: its own inputs and outputs."""

    def __init__(self, op: Operation, kind: str, outputs: int) -> None:
        self._op = op
        self.type = kind
        self.name = op.name
        self.graph = op.graph
        self.outputs = list(op._outputs[:outputs])
        self.inputs = list(op._inputs[outputs:])

    def get_attr(self, name: str) -> Any:
        return self._op.get_attr(name)

    @property
    def device(self) -> str:
        return self._op.device


class OverloadedFunction:
    """A function that is defined for each list of types that it is called with."""

    def __init__(
        self,
        func: Callable[..., Any],
        func_name: str | None = None,
        grad_func: OverloadedFunction | DefinedFunction | None = None,
        python_grad_func: Callable[..., Any] | None = None,
        out_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self._func = func
        self._func_name = func_name
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func
        self._out_names = out_names
        self._kwargs = kwargs
        self._overload: dict[tuple[DType, ...], DefinedFunction] = {}

    def instantiate(self, input_types: Sequence[Any]) -> DefinedFunction:
        """The function for these types."""
        key = tuple(as_dtype(t) for t in input_types)
        found = self._overload.get(key)
        if found is None:
            name = self._func_name
            if name is not None:
                name = "_".join([name, *(t.name for t in key)])
            found = DefinedFunction(
                self._func,
                key,
                name,
                None,
                self._python_grad_func,
                self._out_names,
                **self._kwargs,
            )
            found.traced  # noqa: B018 (errors are told here)
            if isinstance(self._grad_func, OverloadedFunction):
                kinds = [*key, *(t._dtype._base for t in found.traced.outputs)]
                found.set_grad_func(self._grad_func.instantiate(kinds))
            elif self._grad_func is not None:
                found.set_grad_func(self._grad_func)
            self._overload[key] = found
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [convert_to_tensor(a) for a in args]
        return self.instantiate([t._dtype._base for t in tensors])(*tensors, **kwargs)


class Declare:
    """A function that the graph's library has already, by its name and types."""

    def __init__(
        self, func_name: str, inputs: Sequence[tuple[str, Any]], outputs: Sequence[tuple[str, Any]]
    ) -> None:
        self._name = func_name
        self._inputs = [(n, as_dtype(t)) for n, t in inputs]
        self._outputs = [(n, as_dtype(t)) for n, t in outputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        while isinstance(graph, FuncGraph) and graph.outer_graph is not None:
            graph = graph.outer_graph
        known = {} if graph._calls is None else graph._calls.functions
        if self._name not in known:
            raise ValueError(
                f"The function {self._name} is declared, but the graph has no definition of it: "
                "call the Defun's add_to_graph(graph) before the declared function is called"
            )
        function: CalledFunction = known[self._name]
        if len(args) != len(self._inputs):
            raise ValueError(
                f"Expected number of arguments: {len(self._inputs)}, received: {len(args)}"
            )
        target = get_default_graph()
        tensors = [convert_to_tensor(a, t) for a, (_, t) in zip(args, self._inputs)]
        known_tensors = dict(zip(function.graph.inputs, tensors))
        for outer, inner in function.graph.captures:
            known_tensors[inner] = convert_to_tensor(outer)
        scope = f"{target.unique_name(kwargs.get('name') or self._name)}/"
        before = len(target._ops)
        copied = inline(function.graph, target, known_tensors, name=scope)
        result = called_operation(function, target, copied, target._ops[before:], scope)
        if isinstance(result, Operation):
            return result
        return result[0] if len(result) == 1 else tuple(result)


def _python_name(func: Any) -> str:
    name = getattr(func, "__name__", type(func).__name__)
    return "".join(c if c.isalnum() or c in "_." else "_" for c in name).strip("_") or "function"


def get_extra_inputs() -> list[Any]:
    """Tensors from outside that the function being built uses; [] outside of functions."""
    graph = get_default_graph()
    return graph.external_captures if isinstance(graph, FuncGraph) else []


def get_extra_args() -> list[Tensor]:
    """What stands for those tensors inside of the function being built."""
    graph = get_default_graph()
    return graph.internal_captures if isinstance(graph, FuncGraph) else []


def get_extra_vars() -> list[Any]:
    """Variables from outside that the function being built uses."""
    graph = get_default_graph()
    return list(graph.variables) if isinstance(graph, FuncGraph) else []
