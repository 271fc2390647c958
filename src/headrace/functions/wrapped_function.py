"""``tf.compat.v1.wrap_function``: a function of TF-1 code for TF-2 programs.

>>> def load():
...     tf.compat.v1.import_graph_def(graph_def, name="")
>>> model = tf.compat.v1.wrap_function(load, [])
>>> run = model.prune(model.graph.get_tensor_by_name("x:0"), model.graph.get_tensor_by_name("y:0"))
>>> run(tf.constant([1.0]))

The function is called once, in a graph of its own, with placeholders. Variables that it makes are
the wrapped function's; eager tensors and variables from outside may be used. As in a session only
what the results need is run. It is called eagerly, in graphs and in functions, and gradients pass
through it. Code with variables of the reference kind (an imported training graph) runs in a session
of its own instead: eagerly, without gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.convert import convert_to_tensor
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.inline import inline
from headrace.core.scopes import control_dependencies
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Operation, Tensor
from headrace.functions.function import DefunFunction
from headrace.ops.array.basic import identity, placeholder
from headrace.session.session import Session
from headrace.variables.variable import variable_creator_scope
from headrace.variables.variable_lists import (
    global_variables_initializer,
    local_variables_initializer,
    tables_initializer,
)

if TYPE_CHECKING:
    from headrace.core.dtypes import DType

__all__ = ["WrappedFunction", "of_session", "wrap_function"]


class WrappedFunction:
    """What `wrap_function` gives: a call computes ``outputs`` for ``inputs`` of ``graph``."""

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Tensor],
        names: Sequence[str],
        structured: Any,
        name: str,
        variables: Sequence[Any],
    ) -> None:
        self.graph = graph
        self.inputs = list(inputs)
        #: The results in their structure.
        self.structured_outputs = structured
        self.name = name
        #: The variables that the function made.
        self.variables = list(variables)
        self._names = list(names)
        self._wanted = nest.flatten(structured)
        self.outputs = [t for t in self._wanted if isinstance(t, Tensor)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arguments in the order of ``inputs``, or by their names."""
        flat = [a for a in nest.flatten(args) if a is not None]
        by_name = dict(zip(self._names, self.inputs, strict=True))
        feeds: dict[Tensor, Any] = {}
        for key, value in kwargs.items():
            if key not in by_name:
                raise TypeError(f"{self.name} has no input named {key!r}; it has {sorted(by_name)}")
            feeds[by_name.pop(key)] = value
        rest = [t for t in self.inputs if t not in feeds]
        if len(flat) != len(rest):
            raise TypeError(f"{self.name} takes {len(rest)} further inputs, but got {len(flat)}")
        feeds.update(zip(rest, flat, strict=True))
        return self._computed([feeds[t] for t in self.inputs])

    def _computed(self, values: list[Any]) -> Any:
        """The results for values of all inputs; subclasses say how."""
        raise NotImplementedError

    def prune(
        self, feeds: Any, fetches: Any, name: str | None = None, input_signature: Any = None
    ) -> WrappedFunction:
        """Another function of the same graph and variables, from ``feeds`` to ``fetches``.

        ``input_signature`` checks the types of the feeds.
        """
        given = [self._element(f) for f in nest.flatten(feeds)]
        for tensor, spec in zip(given, nest.flatten(input_signature or []), strict=False):
            if isinstance(spec, TensorSpec) and spec.dtype != tensor.dtype.base_dtype:
                raise ValueError(f"{tensor} is not of the type of {spec}")
        wanted = nest.map_structure(self._element, fetches)
        names = [t.op.name for t in given]
        return self._like(given, names, wanted, name or "pruned")

    def _like(
        self, inputs: list[Tensor], names: list[str], structured: Any, name: str
    ) -> WrappedFunction:
        """Another function of the same kind, from inputs to other results; subclasses make it."""
        raise NotImplementedError

    def _element(self, what: Any) -> Any:
        return self.graph.as_graph_element(what, allow_tensor=True, allow_operation=True)


class _OfFunction(WrappedFunction):
    """Parts of a function's graph, copied to where they are called."""

    graph: FuncGraph

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._function = DefunFunction(self._body, self.name, autograph=False)

    def _body(self, *tensors: Tensor) -> list[Tensor]:
        graph, target = self.graph, get_default_graph()
        assert isinstance(target, FuncGraph)
        known = {inner: target.capture(convert_to_tensor(o)) for o, inner in graph.captures}
        known.update(zip(self.inputs, tensors, strict=True))
        copied = inline(graph, target, known, self._wanted, self.name)
        effects = [copied.ops[w] for w in self._wanted if isinstance(w, Operation)]
        with control_dependencies(effects):
            return [identity(copied[t]) for t in self.outputs]

    def _computed(self, values: list[Any]) -> Any:
        given = [convert_to_tensor(v, t.dtype.base_dtype) for v, t in zip(values, self.inputs)]
        found = iter(self._function(*given) or [])
        flat = [None if isinstance(w, Operation) else next(found) for w in self._wanted]
        return _packed(self.structured_outputs, flat)

    def _like(
        self, inputs: list[Tensor], names: list[str], structured: Any, name: str
    ) -> WrappedFunction:
        return _OfFunction(self.graph, inputs, names, structured, name, self.variables)


class _OfSession(WrappedFunction):
    """Runs of a session, which has variables of the reference kind."""

    _session: Session

    def _computed(self, values: list[Any]) -> Any:
        feeds = {t: v.numpy() if hasattr(v, "numpy") else v for t, v in zip(self.inputs, values)}
        found = self._session.run(self.structured_outputs, feeds)
        return nest.map_structure(_eager, self.structured_outputs, found)

    def _like(
        self, inputs: list[Tensor], names: list[str], structured: Any, name: str
    ) -> WrappedFunction:
        made = _OfSession(self.graph, inputs, names, structured, name, self.variables)
        made._session = self._session
        return made


def _packed(like: Any, flat: list[Any]) -> Any:
    return nest.pack_sequence_as(like, flat) if nest.is_sequence(like) else flat[0]


def _eager(fetched: Any, value: Any) -> Any:
    """A result as an eager tensor; None for an operation."""
    if isinstance(fetched, Operation):
        return None
    dtype: DType = fetched.dtype.base_dtype
    return convert_to_tensor(value, dtype)


def _results(found: Any) -> Any:
    """What a function gave, as tensors and operations."""
    if found is None:
        return []
    return nest.map_structure(
        lambda x: x if isinstance(x, Operation) else convert_to_tensor(x), found
    )


def wrap_function(
    fn: Callable[..., Any], signature: Any, name: str | None = None
) -> WrappedFunction:
    """Calls ``fn`` once with placeholders for the TensorSpecs of ``signature`` (other values of
    it are given as they are).
    """
    label = name or str(getattr(fn, "__name__", "wrapped")).strip("<>")
    given = [] if signature is None else signature
    made = _as_function(fn, given, label)
    if made is not None:
        return made
    if not get_default_graph()._is_eager:
        raise NotImplementedError(
            "wrap_function of code with variables of the reference kind is for eager programs; in "
            "a graph call the function itself, under tf.variable_scope"
        )
    return _in_session(fn, given, label)


def _as_function(fn: Callable[..., Any], signature: Any, label: str) -> WrappedFunction | None:
    """The function traced as ``tf.function`` does; None if it has variables of a session."""
    kept: list[Any] = []
    variables: list[Any] = []

    def keeping(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        variables.append(next_creator(**kwargs))
        return variables[-1]

    def traced(*leaves: Any) -> None:
        at = iter(leaves)
        args = nest.map_structure(lambda s: next(at) if isinstance(s, TensorSpec) else s, signature)
        found = fn(**args) if isinstance(args, dict) and args else fn(*args)
        graph: Any = get_default_graph()
        known = {id(v) for v in variables}
        variables.extend(v for v in graph.variables if id(v) not in known)
        kept[:] = [_results(found), leaves, graph.get_collection(GraphKeys.TABLE_INITIALIZERS)]

    specs = [s for s in nest.flatten(signature) if isinstance(s, TensorSpec)]
    with variable_creator_scope(keeping):  # layers make theirs outside of the function's graph
        graph = DefunFunction(traced, label, autograph=False).get_concrete_function(*specs).graph
    if any(t._dtype._is_ref for op in graph._ops for t in op._outputs):
        return None
    results, inputs, tables = kept
    names = [s.name or t.op.name for s, t in zip(specs, inputs, strict=True)]
    made = _OfFunction(graph, inputs, names, results, label, variables)
    if tables:
        made.prune([], tables)()
    return made


def _in_session(fn: Callable[..., Any], signature: Any, label: str) -> WrappedFunction:
    graph = Graph()
    graph.seed = get_default_graph().seed
    with graph.as_default():
        args = nest.map_structure(_fed, signature)
        found = fn(**args) if isinstance(args, dict) and args else fn(*args)
        results = _results(found)
        ready = [
            global_variables_initializer(),
            local_variables_initializer(),
            tables_initializer(),
        ]
    session = Session(graph=graph)
    session.run(ready)
    inputs = [t for t in nest.flatten(args) if isinstance(t, Tensor)]
    names = [t.op.name for t in inputs]
    return of_session(session, inputs, names, results, label)


def of_session(
    session: Session, inputs: Sequence[Tensor], names: Sequence[str], structured: Any, label: str
) -> WrappedFunction:
    """A function of a graph whose variables a session has: ``inputs`` are fed, called ``names``."""
    graph: Graph = session.graph
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    made = _OfSession(graph, inputs, names, structured, label, variables)
    made._session = session
    return made


def _fed(leaf: Any) -> Any:
    if not isinstance(leaf, TensorSpec):
        return leaf
    return placeholder(leaf.dtype, leaf.shape, leaf.name)
