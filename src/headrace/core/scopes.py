"""Module-level forms of the graph's context managers, and ``tf.name_scope``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from headrace.core import stacks
from headrace.core.build import _graph_of
from headrace.core.graph import Graph, get_default_graph, root_graph

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = [
    "add_to_collection",
    "add_to_collections",
    "colocate_with",
    "container",
    "control_dependencies",
    "device",
    "get_collection",
    "get_collection_ref",
    "init_scope",
    "name_scope",
    "op_scope",
]


class name_scope:
    """``with tf.name_scope("layer1") as scope:`` puts operations made inside below "layer1/".

    A name that is taken gets a number ("layer1_1"); one that ends with a slash is entered again.
    ``default_name`` is used if ``name`` is None. ``values`` are tensors whose graph is the one
    meant. Variables of ``tf.get_variable`` do not take part.
    """

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
    ) -> None:
        if default_name is not None and not isinstance(default_name, str):
            raise TypeError(
                f"`default_name` type ({type(default_name)}) is not a string type. "
                "You likely meant to pass this into the `values` kwarg."
            )
        self._name = default_name if name is None else name
        if self._name is None and values is not None:
            raise ValueError(
                f"At least one of name ({name}) and default_name ({default_name}) must be provided."
            )
        self._values = values
        #: What each ``with`` block has entered: an object may be entered again inside of its block.
        self._entered: list[tuple[AbstractContextManager[Any], ...]] = []

    @property
    def name(self) -> str | None:
        return self._name

    def __enter__(self) -> str:
        graph = get_default_graph()
        if graph._is_eager:
            eager = graph.name_scope(self._name)
            self._entered.append((eager,))
            return eager.__enter__()
        if self._values:
            graph = _graph_of(list(self._values), graph)
        default = graph.as_default()
        scope = graph.name_scope(self._name)
        default.__enter__()
        try:
            text = scope.__enter__()
        except BaseException:
            default.__exit__(None, None, None)
            raise
        self._entered.append((scope, default))
        return text

    def __exit__(self, *exc: Any) -> bool | None:
        for context in self._entered.pop():
            context.__exit__(*exc)
        return None

    def __call__(self, function: Any) -> Any:
        import functools

        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with name_scope(self._name, values=self._values):
                return function(*args, **kwargs)

        return inner


@contextmanager
def op_scope(
    values: Sequence[Any] | None, name: str | None, default_name: str | None = None
) -> Iterator[str]:
    """The pre-1.0 spelling of ``name_scope``."""
    with name_scope(name, default_name, values) as scope:
        yield scope


def control_dependencies(control_inputs: object) -> Any:
    """Operations made inside the ``with`` block run after the given ones.

        with tf.control_dependencies([update]):
            loss = tf.identity(loss)        # computed after update

    ``None`` drops the dependencies of enclosing blocks. What was made before the block is not
    affected, nor are operations that are only used in it.
    """
    return get_default_graph().control_dependencies(control_inputs)


def device(device_name_or_function: object) -> Any:
    """Operations made inside the ``with`` block are placed on a device such as ``"/cpu:0"``.

    The name is recorded and checked; everything runs on the CPU. A function of an operation may
    give the name; ``None`` drops the devices of enclosing blocks.
    """
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: object, ignore_existing: bool = False) -> Any:
    """Operations made inside the ``with`` block are placed where ``op`` is.

    ``ignore_existing=True`` drops the constraints of enclosing blocks.
    """
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name: str) -> Any:
    """State (variables, queues, tables) made inside the ``with`` block is kept under this container
    name.
    """
    return get_default_graph().container(container_name)


def add_to_collection(name: object, value: object) -> None:
    """Append a value to a collection of the default graph, such as ``tf.GraphKeys.LOSSES``."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: object, value: object) -> None:
    """Append a value to several collections of the default graph (each once)."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection of the default graph, as a list.

    ``scope`` is a regular expression that an item's name must match from its beginning; items
    without a name are left out then.
    """
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> list[Any]:
    """The list of a collection itself, so that changing it changes the collection."""
    return get_default_graph().get_collection_ref(key)


def get_all_collection_keys() -> list[Any]:
    """The names of all collections of the default graph."""
    return get_default_graph().get_all_collection_keys()


@contextmanager
def init_scope() -> Iterator[None]:
    """Out of control dependencies and control flow, keeping the name scope.

    Where variables are initialised.
    """
    graph = get_default_graph()
    scope = graph.get_name_scope()
    if graph._is_function:
        graph = _outside_functions(graph)
        if graph._is_eager:
            with graph.as_default(), graph.name_scope(scope + "/" if scope else None):
                yield
            return
    elif graph._is_eager:
        yield
        return
    devices = _innermost_devices(graph)
    with (
        graph.as_default(),
        graph.control_dependencies(None),
        graph.name_scope(scope + "/" if scope else None),
        graph._devices_of(devices),
    ):
        yield


def _innermost_devices(graph: Graph) -> list[Any]:
    """The device scopes of the innermost graph, from the default one out to ``graph``, that has
    any.
    """
    for inner in reversed(stacks.default_graphs.items):
        if inner._device_stack or inner is graph:
            return list(inner._device_stack)
    return list(graph._device_stack)


def _outside_functions(graph: Graph) -> Graph:
    """The graph that the functions being traced stand in: a plain one, or the eager context."""
    graphs: list[Graph] = stacks.default_graphs.items
    for outer in reversed(graphs):
        if not outer._is_function:
            return outer
    root = root_graph()
    return graph if root is None else root


def get_default_session() -> Any:
    """The innermost session entered on this thread, or None."""
    return stacks.default_sessions.get()
