"""``tf.compat.v1.wrap_function``: a function of TF-1 code for eager programs.

>>> def load():
...     tf.compat.v1.import_graph_def(graph_def, name="")
>>> model = tf.compat.v1.wrap_function(load, [])
>>> run = model.prune(model.graph.get_tensor_by_name("x:0"), model.graph.get_tensor_by_name("y:0"))
>>> run(tf.constant([1.0]))

The function is called once, in a graph of its own, with placeholders. Variables that it makes are
the wrapped function's. As in a session only what the results need is run. A call takes and gives
eager tensors; gradients do not pass through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import placeholder
from headrace.session.session import Session
from headrace.variables.variable_lists import (
    global_variables_initializer,
    local_variables_initializer,
    tables_initializer,
)

if TYPE_CHECKING:
    from headrace.core.dtypes import DType

__all__ = ["WrappedFunction", "wrap_function"]


class WrappedFunction:
    """What `wrap_function` gives: a call runs ``outputs`` for fed ``inputs`` of ``graph``."""

    def __init__(
        self, session: Session, inputs: Sequence[Tensor], structured: Any, name: str
    ) -> None:
        self._session = session
        self.graph: Graph = session.graph
        self.inputs = list(inputs)
        #: The results in their structure.
        self.structured_outputs = structured
        self.name = name
        wanted = nest.flatten(structured)
        self.outputs = [t for t in wanted if isinstance(t, Tensor)]

    @property
    def variables(self) -> list[Any]:
        """The variables that the function made."""
        from headrace.core.graph_keys import GraphKeys

        found: list[Any] = self.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arguments in the order of ``inputs``, or by their names."""
        flat = [a for a in nest.flatten(args) if a is not None]
        by_name = {t.op.name: t for t in self.inputs}
        feeds: dict[Any, Any] = {}
        for key, value in kwargs.items():
            if key not in by_name:
                raise TypeError(f"{self.name} has no input named {key!r}; it has {sorted(by_name)}")
            feeds[by_name.pop(key)] = _plain(value)
        rest = [t for t in self.inputs if t not in feeds]
        if len(flat) != len(rest):
            raise TypeError(f"{self.name} takes {len(rest)} further inputs, but got {len(flat)}")
        feeds.update(zip(rest, map(_plain, flat), strict=True))
        values = self._session.run(self.structured_outputs, feeds)
        return nest.map_structure(_eager, self.structured_outputs, values)

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
        return WrappedFunction(self._session, given, wanted, name or "pruned")

    def _element(self, what: Any) -> Any:
        return self.graph.as_graph_element(what, allow_tensor=True, allow_operation=True)


def _fed(leaf: Any) -> Any:
    if not isinstance(leaf, TensorSpec):
        return leaf
    return placeholder(leaf.dtype, leaf.shape, leaf.name)


def _plain(value: Tensor) -> Tensor:
    return value.numpy() if hasattr(value, "numpy") else value


def _eager(fetched: Any, value: Tensor) -> Any:
    """A result as an eager tensor; None for an operation."""
    if isinstance(fetched, Operation):
        return None
    dtype: DType = fetched.dtype.base_dtype
    return convert_to_tensor(value, dtype)


def wrap_function(
    fn: Callable[..., Any], signature: Any, name: str | None = None
) -> WrappedFunction:
    """Calls ``fn`` once with placeholders for the TensorSpecs of ``signature`` (other values of
    it are given as they are).
    """
    if not get_default_graph()._is_eager:
        raise NotImplementedError(
            "wrap_function is for eager programs; in a graph call the function itself, under "
            "tf.variable_scope"
        )
    graph = Graph()
    graph.seed = get_default_graph().seed
    with graph.as_default():
        args = nest.map_structure(_fed, [] if signature is None else signature)
        keyword = args if isinstance(args, dict) else {}
        found = fn(**keyword) if keyword else fn(*args)
        results = (
            nest.map_structure(
                lambda x: x if isinstance(x, Operation) else convert_to_tensor(x), found
            )
            if found is not None
            else []
        )
        ready = [
            global_variables_initializer(),
            local_variables_initializer(),
            tables_initializer(),
        ]
    session = Session(graph=graph)
    session.run(ready)
    inputs = [t for t in nest.flatten(args) if isinstance(t, Tensor)]
    return WrappedFunction(
        session, inputs, results, name or str(getattr(fn, "__name__", "wrapped"))
    )
