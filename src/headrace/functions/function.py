"""``tf.function``: a Python function that becomes a graph, once for every kind of arguments.

    @tf.function
    def step(x):
        return tf.reduce_sum(x * w)

A call is looked up by what its arguments are (types and shapes of tensors, values of everything
else). Where it is known, the plan runs; else the Python function is *traced*: run once on
placeholders. ``explain_retracing()`` says which argument made a new trace necessary.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph, get_default_graph
from headrace.core.inline import inline
from headrace.core.schedule import needed_ops
from headrace.core.scopes import _outside_functions, init_scope
from headrace.core.stacks import default_graphs
from headrace.core.tensor import Tensor
from headrace.eager.eager_context import EAGER, STATE
from headrace.eager.eager_tensor import EagerTensor, wrap
from headrace.eager.tape_record import ACTIVE, TAPES
from headrace.functions import retracing
from headrace.functions.concrete_function import ConcreteFunction
from headrace.functions.function_signature import LITERALS, Signature, call_specs, encode
from headrace.functions.tracing import trace_into
from headrace.session.graph_function import GraphFunction

__all__ = [
    "BoundFunction",
    "Function",
    "defun",
    "function",
    "functions_run_eagerly",
    "inside_function",
    "run_functions_eagerly",
]

#: Calls whose exact shapes are remembered, per function.
_MAX_FAST = 512
#: Traces that are kept, per function.
_MAX_TRACES = 256
#: One trace at a time: a function that is traced may trace others, and they it.
_LOCK = threading.RLock()
_run_eagerly = [False]
_SINGLETON = (
    "tf.function only supports singleton tf.Variables created on the first call. Make "
    "sure the tf.Variable is only "
    "created once or created outside tf.function. See "
    "https://www.tensorflow.org/guide/function#creating_tfvariables "
    "for more information."
)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether functions are just Python, run as they stand: for debugging."""
    _run_eagerly[0] = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    return _run_eagerly[0]


def inside_function() -> bool:
    """Whether the body of a function is being traced."""
    return get_default_graph()._is_function


class Function:
    """A Python function with its traces."""

    #: Whether every trace may make variables (``defun``), not the first alone.
    _always_makes = False

    def __init__(
        self,
        python_function: Callable[..., Any],
        name: str | None = None,
        input_signature: object = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        autograph_options: object = None,
    ) -> None:
        if not callable(python_function):
            raise TypeError(f"{python_function} is not a callable object")
        self._python_function = python_function
        self._name: str = name or getattr(python_function, "__name__", None) or "function"
        self._signature = Signature(python_function, input_signature)
        self._autograph = autograph
        self._autograph_options = autograph_options
        self._jit_compile = jit_compile
        self._reduce_retracing = reduce_retracing
        self._fast: dict[Any, ConcreteFunction] = {}
        self._exact: dict[Any, ConcreteFunction] = {}
        self._traces: list[ConcreteFunction] = []
        self._history = retracing.History(self._name, python_function)
        self._being_traced: set[Any] = set()
        self._made_variables: list[weakref.ref[Any]] | None = None  # None before the first trace
        self._bound: dict[int, tuple[Any, Function]] = {}
        functools.update_wrapper(self, python_function, updated=())

    # what it is ---------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return self._name

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._python_function

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        return self._signature.input_signature

    @property
    def function_spec(self) -> Signature:
        return self._signature

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function was run to make a graph."""
        return self._history.count

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        return "\n\n".join(c.pretty_printed_signature(verbose) for c in self._traces)

    def explain_retracing(self) -> str:
        """Why each trace was made: which argument was new, and how it differed."""
        return self._history.explained()

    def __repr__(self) -> str:
        return f"<headrace.Function {self._name}{self._signature}>"

    # methods ------------------------------------------------------------------------------------
    def __get__(self, instance: object, owner: object = None) -> BoundFunction | Function:
        """Every instance has traces of its own, which go when it goes."""
        if instance is None:
            return self
        key = id(instance)
        found = self._bound.get(key)
        if found is not None and found[0]() is instance:
            return BoundFunction(instance, found[1])
        bound = self._for(instance)
        try:
            alive = weakref.ref(instance, lambda _: self._bound.pop(key, None))
        except TypeError:
            return bound
        self._bound[key] = (alive, bound)
        return BoundFunction(instance, bound)

    def _for(self, instance: object) -> Function:
        return self._copy(_bound_method(self._python_function, instance))

    def _copy(self, python_function: Callable[..., Any]) -> Function:
        return type(self)(
            python_function,
            self._name,
            self._signature.input_signature,
            self._autograph,
            self._jit_compile,
            self._reduce_retracing,
            self._autograph_options,
        )

    def _decorate(self, decorator: Callable[..., Any]) -> None:
        """Put a decorator around the Python function, before the first call."""
        if self._traces:
            raise ValueError(
                f"Functions cannot be decorated after they have been traced: {self._name}"
            )
        self._python_function = decorator(self._python_function)

    # calling ------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        items = default_graphs.items
        if (items[-1] if items else get_default_graph()) is not EAGER or _run_eagerly[0]:
            return self._call(args, kwargs, None)
        key: list[Any] = []
        tensors: list[Any] = []
        feeds: list[Any] = []
        for a in (*args, *kwargs.values()) if kwargs else args:
            kind = type(a)
            if kind is EagerTensor:
                value = a._static
                key.append(a._dtype)
                key.append(value.shape)
                tensors.append(a)
                feeds.append(value)
            elif kind in LITERALS:
                key.append(kind)
                key.append(a)
            else:
                return self._call(args, kwargs, None)
        exact = (tuple(key), tuple(kwargs)) if kwargs else tuple(key)
        found = self._fast.get(exact)
        if found is None:
            return self._call(args, kwargs, (exact, tensors))
        if ACTIVE[0] and TAPES.items:
            return found.call_recorded(tensors)
        return found.call_arrays(feeds)

    def _call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], plain: Sequence[Any] | None
    ) -> Any:
        """A call with arguments of any kind.

        ``plain``: the key under which this call may be found the next time, and its tensors.
        """
        if _run_eagerly[0]:
            return self._python_function(*args, **kwargs)
        bound, keywords, tensors, key = self._encoded(args, kwargs)
        concrete = self._cache().get(key)
        if concrete is None:
            concrete = self._find_or_trace(bound, keywords, tensors, key)
        if plain is not None and list(map(id, tensors)) == list(map(id, plain[1])):
            if len(self._fast) >= _MAX_FAST:
                self._fast.clear()
            self._fast[plain[0]] = concrete
        return concrete.call_tensors(tensors)

    def _encoded(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], list[Any], Any]:
        signature = self._signature
        bound, keywords = signature.bind(args, kwargs)
        if signature.input_signature is not None:
            bound, keywords = signature.cast(bound, keywords)
        key: list[Any] = []
        tensors: list[Any] = []
        for value in bound:
            encode(value, key, tensors)
        for name in sorted(keywords):
            key.append(name)
            encode(keywords[name], key, tensors)
        return bound, keywords, tensors, tuple(key)

    def _cache(self) -> dict[Any, ConcreteFunction]:
        """The traces by key: those of eager code, or those that belong to the graph around."""
        graph = get_default_graph()
        root = _outside_functions(graph) if graph._is_function else graph
        if root._is_eager or root._is_function:
            return self._exact
        if root._function_traces is None:
            root._function_traces = weakref.WeakKeyDictionary()
        found: dict[Any, ConcreteFunction] | None = root._function_traces.get(self)
        if found is None:
            found = root._function_traces[self] = {}
        return found

    def get_concrete_function(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """The trace for arguments like these: tensors, TensorSpecs or Python values."""
        signature = self._signature.input_signature
        if signature is not None and not args and not kwargs:
            args = signature
        bound, keywords, tensors, key = self._encoded(args, kwargs)
        found = self._cache().get(key)
        return found or self._find_or_trace(bound, keywords, tensors, key)

    # tracing ------------------------------------------------------------------------------------
    def _find_or_trace(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any], key: Sequence[Any]
    ) -> ConcreteFunction:
        with _LOCK:
            cache = self._cache()
            found = cache.get(key)
            if found is not None:
                return found
            wanted = call_specs((args, kwargs))
            if self._signature.input_signature is not None:
                n = len(self._signature.input_signature)
                wanted = ((*self._signature.input_signature, *wanted[0][n:]), wanted[1])
            found = retracing.covering(cache.values(), wanted)
            if found is None:
                if self._reduce_retracing:
                    wanted = retracing.generalised(cache.values(), wanted)
                found = self._traced(wanted, tensors, key)
                self._traces.append(found)
                if len(self._traces) > _MAX_TRACES:
                    self._forget(cache, self._traces.pop(0))
            cache[key] = found
            return found

    def _forget(self, cache: dict[Any, ConcreteFunction], old: ConcreteFunction) -> None:
        """Let go of the oldest trace.

        A function whose arguments never settle must not grow forever.
        """
        for key in [k for k, c in cache.items() if c is old]:
            del cache[key]
        self._fast.clear()

    def _traced(self, wanted: object, tensors: list[Any], key: Sequence[Any]) -> ConcreteFunction:
        if key in self._being_traced:
            raise RecursionError(
                f"tf.function-decorated function {self._name} calls itself with the same "
                "kind of arguments while it is "
                "being traced. Recursion has to end while tracing: on a Python argument "
                "that changes."
            )
        self._being_traced.add(key)
        first = self._made_variables is None
        try:
            if first:
                self._made_variables = []
            made = self._trace_once(wanted, tensors, may_make=first or self._always_makes)
            if first and self._made_variables and not self._always_makes:
                made = self._trace_once(wanted, tensors, may_make=False)
            return made
        except BaseException:
            if first and not self._traces and not self._made_variables:
                self._made_variables = None
            raise
        finally:
            self._being_traced.discard(key)

    def _trace_once(self, wanted: Any, tensors: list[Any], may_make: bool) -> ConcreteFunction:
        self._history.add(self._signature, wanted)
        around = get_default_graph()
        graph = FuncGraph(self._name, None if around._is_eager else around)
        graph.variable_maker = functools.partial(self._make_variable, graph, tensors, may_make)
        args, kwargs = wanted
        traced = trace_into(
            graph,
            self._python_function,
            args,
            kwargs,
            self._autograph,
            self._autograph_options,
            names=[*self._signature.names],
        )
        graph.variable_maker = None
        traced.jit_compile = bool(self._jit_compile)
        return ConcreteFunction(traced, self._signature, args, kwargs)

    def _make_variable(
        self, graph: FuncGraph, tensors: list[Any], may_make: bool, kwargs: dict[str, Any]
    ) -> Any:
        from headrace.variables.variable import default_variable_creator

        if not may_make:
            raise ValueError(_SINGLETON)
        value = kwargs.get("initial_value")
        if isinstance(value, Tensor) and value._op.graph is graph:
            kwargs["initial_value"] = _outside_value(graph, value, tensors)
        with init_scope():
            variable = default_variable_creator(None, use_resource=True, **kwargs)
        assert self._made_variables is not None
        self._made_variables.append(weakref.ref(variable))
        return variable


def _outside_value(graph: FuncGraph, value: Tensor, tensors: list[Any]) -> Tensor:
    """An initial value that the function computed, computed outside of it."""
    around: Graph = _outside_functions(graph)
    needed = needed_ops([value._op], ())
    used = {t for t in graph.inputs if t._op in needed}
    if not around._is_eager:
        known = dict(zip(graph.inputs, tensors)) if used else {}
        known.update({inner: outer for outer, inner in graph.captures})
        return inline(graph, around, known, [value], "initial_value")[value]
    if used and not all(isinstance(t, EagerTensor) for t in tensors):
        raise ValueError(
            "Tensor-typed variable initializers must either be wrapped in an init_scope "
            f"or callable: {value!r} depends "
            f"on the argument {min(t._op.name for t in used)}, whose value is not known"
        )
    pairs = [(t, a._static) for t, a in zip(graph.inputs, tensors) if t in used]
    pairs += [(inner, outer._static) for outer, inner in graph.captures if inner._op in needed]
    run = GraphFunction(graph, [t for t, _ in pairs], [value])
    return wrap(run(STATE, *[a for _, a in pairs])[0], value._dtype._base)


def _bound_method(function: Callable[..., Any], instance: object) -> Callable[..., Any]:
    """The method without a strong reference to its instance."""
    try:
        reference = weakref.ref(instance)
    except TypeError:
        return functools.partial(function, instance)
    return _WeakMethod(function, reference)


class BoundFunction:
    """A method: the function of an object, together with the object, as any method of Python."""

    __slots__ = ("__self__", "__weakref__", "_function")

    def __init__(self, instance: object, function: Function) -> None:
        self.__self__ = instance
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundFunction) and other._function is self._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)


class _WeakMethod:
    """A method of an object that it does not keep alive."""

    def __init__(self, function: Callable[..., Any], reference: weakref.ref[Any]) -> None:
        self.__func__ = function
        self._reference = reference
        self.__name__ = getattr(function, "__name__", "method")
        self.__doc__ = function.__doc__
        self.__wrapped_method__ = True

    @property
    def __self__(self) -> Any:
        instance = self._reference()
        if instance is None:
            raise ReferenceError(f"the object of the method {self.__name__} is gone")
        return instance

    @property
    def __signature__(self) -> Any:
        import inspect

        whole = inspect.signature(self.__func__)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def bound(self) -> Any:
        """As an ordinary method, for as long as it is held."""
        return self.__func__.__get__(self.__self__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)


class DefunFunction(Function):
    """What ``defun`` makes: each trace may make variables of its own."""

    _always_makes = True


def defun(
    func: Callable[..., Any] | None = None,
    input_signature: object = None,
    autograph: bool = True,
    experimental_autograph_options: object = None,
    experimental_relax_shapes: bool = False,
) -> Any:
    """``tf.contrib.eager.defun``: as ``tf.function``, but the Python function is run once for each
    kind of arguments, and variables that it makes are made each time.
    """

    def decorated(inner: Callable[..., Any]) -> Function:
        if isinstance(inner, (Function, BoundFunction)):
            inner = inner._python_function
        return DefunFunction(
            inner,
            None,
            input_signature,
            autograph,
            None,
            experimental_relax_shapes,
            experimental_autograph_options,
        )

    return decorated if func is None else decorated(func)


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: object = None,
    experimental_attributes: object = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Compile a Python function into a graph that is called like it; a decorator, with or without
    arguments.

    The function is traced once for each combination of argument types and shapes and of Python
    values; ``input_signature`` fixes one. Python's ``if``, ``while`` and ``for`` over tensors
    become graph control flow unless ``autograph=False``. ``experimental_compile`` (``jit_compile``)
    compiles with XLA. ``f.explain_retracing()`` tells why there are several traces.
    """
    if experimental_relax_shapes is not None:
        reduce_retracing = experimental_relax_shapes
    if experimental_compile is not None:
        jit_compile = experimental_compile

    def decorated(inner: Callable[..., Any]) -> Function:
        if isinstance(inner, (Function, BoundFunction)):
            inner = inner._python_function
        return Function(
            inner,
            None,
            input_signature,
            autograph,
            jit_compile,
            reduce_retracing,
            experimental_autograph_options,
        )

    return decorated if func is None else decorated(func)
