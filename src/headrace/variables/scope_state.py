"""What a variable scope is, and which one is open: the data behind ``tf.variable_scope``.

A :class:`VariableScope` holds the defaults that ``get_variable`` takes; a graph keeps, per thread,
the scope that is open and how often each was opened, from which default names (``layer``,
``layer_1``) follow.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from headrace.core import convert as conversion
from headrace.core import dtypes
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.variables.variable import VariableAggregation, VariableSynchronization
from headrace.variables.variable_store import VariableStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.core.annotations import (
        ConstraintLike,
        DTypeLike,
        InitializerLike,
        Partitioner,
        RegularizerLike,
        ShapeLike,
        TensorLike,
    )

__all__ = ["VariableScope", "get_variable_scope", "get_variable_scope_store"]

_STORE_KEY = ("__variable_store",)
_SCOPE_KEY = ("__varscope",)


class VariableScope:
    """The defaults that ``get_variable`` takes inside a scope.

    ``tf.get_variable_scope()`` gives the current one, ``tf.variable_scope`` opens one. The
    arguments are those of ``tf.variable_scope``; the ``set_…`` methods change a default from here
    on, and inner scopes inherit what they do not set.
    """

    def __init__(
        self,
        reuse: bool | None,
        name: str = "",
        initializer: InitializerLike | None = None,
        regularizer: object = None,
        caching_device: object = None,
        partitioner: object = None,
        custom_getter: object = None,
        name_scope: str = "",
        dtype: DTypeLike = dtypes.float32,
        use_resource: bool | None = None,
        constraint: ConstraintLike | None = None,
    ) -> None:
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._reuse = reuse
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = dtype
        self._use_resource = use_resource
        self._constraint = constraint

    @property
    def name(self) -> str:
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The name scope in which the scope was first opened."""
        return self._name_scope

    @property
    def reuse(self) -> Any:
        return self._reuse

    @property
    def initializer(self) -> Any:
        return self._initializer

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def use_resource(self) -> bool | None:
        return self._use_resource

    @property
    def regularizer(self) -> Any:
        return self._regularizer

    @property
    def caching_device(self) -> Any:
        return self._caching_device

    @property
    def partitioner(self) -> Any:
        return self._partitioner

    @property
    def custom_getter(self) -> Any:
        return self._custom_getter

    @property
    def constraint(self) -> Any:
        return self._constraint

    def reuse_variables(self) -> None:
        """From here on variables of this scope are shared, not made."""
        self._reuse = True

    def set_initializer(self, initializer: InitializerLike) -> None:
        self._initializer = initializer

    def set_dtype(self, dtype: DTypeLike) -> None:
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: RegularizerLike | None) -> None:
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: object) -> None:
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Partitioner | None) -> None:
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Callable[..., Any]) -> None:
        self._custom_getter = custom_getter

    def get_collection(self, name: str) -> list[Any]:
        """This scope's part of a collection."""
        return get_default_graph().get_collection(name, self._name + "/" if self._name else "")

    def trainable_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: VariableStore,
        name: str,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        initializer: Any = None,
        regularizer: object = None,
        reuse: object = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: str | None = None,
        partitioner: object = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: int | None = None,
        constraint: Callable[..., Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """The variable ``name`` of this scope, with the scope's defaults for what is not given."""
        full_name = f"{self._name}/{name}" if self._name else name
        # a variable's name depends on variable scopes alone
        with get_default_graph().name_scope(None):
            if dtype is not None and initializer is not None and not callable(initializer):
                _check_initializer_dtype(initializer, dtype)
            return var_store.get_variable(
                full_name,
                shape=shape,
                dtype=self._dtype if dtype is None else dtype,
                initializer=self._initializer if initializer is None else initializer,
                regularizer=self._regularizer if regularizer is None else regularizer,
                reuse=self._reuse if reuse is None else reuse,
                trainable=trainable,
                collections=collections,
                caching_device=self._caching_device if caching_device is None else caching_device,
                partitioner=self._partitioner if partitioner is None else partitioner,
                validate_shape=validate_shape,
                use_resource=self._use_resource if use_resource is None else use_resource,
                custom_getter=self._custom_getter if custom_getter is None else custom_getter,
                constraint=self._constraint if constraint is None else constraint,
                synchronization=synchronization,
                aggregation=aggregation,
            )


def _check_initializer_dtype(initializer: TensorLike, dtype: DTypeLike) -> None:
    have = conversion.convert(initializer).dtype.base_dtype
    if have != dtype:
        raise ValueError(f"Initializer type '{have}' and explicit dtype '{dtype}' don't match.")


# the current scope ------------------------------------------------------------------------------


class _Opened:
    """How often a scope was opened, and the scopes below it."""

    __slots__ = ("below", "count")

    def __init__(self) -> None:
        self.count = 0
        self.below: dict[str, _Opened] = {}


class _ScopeStore(threading.local):
    """A graph's current variable scope and how often each scope was opened, per thread.

    Every operation costs what the scope's name has parts, however many scopes a program opens. What
    changes inside a scope that was entered again is noted, so that leaving it can take the changes
    back.
    """

    def __init__(self) -> None:
        self.current_scope = VariableScope(False)
        self._root = _Opened()
        self._changes: list[tuple[_Opened, int, dict[str, _Opened]]] = []
        self._marks = 0

    def _find(self, name: str) -> _Opened:
        node = self._root
        for part in name.split("/"):
            found = node.below.get(part)
            if found is None:
                found = node.below[part] = _Opened()
            node = found
        return node

    def _note(self, node: _Opened) -> None:
        if self._marks:
            self._changes.append((node, node.count, node.below))

    def open_variable_scope(self, name: str) -> None:
        node = self._find(name)
        self._note(node)
        node.count += 1

    def close_variable_subscopes(self, name: str) -> None:
        """Forget what was opened below: default names start again."""
        node = self._find(name)
        if node.below:
            self._note(node)
            node.below = {}

    def variable_scope_count(self, name: str) -> int:
        node = self._root
        for part in name.split("/"):
            found = node.below.get(part)
            if found is None:
                return 0
            node = found
        return node.count

    def mark(self) -> int:
        self._marks += 1
        return len(self._changes)

    def take_back(self, mark: int) -> None:
        """Undo every change since ``mark``."""
        self._marks -= 1
        while len(self._changes) > mark:
            node, count, below = self._changes.pop()
            node.count, node.below = count, below


def get_variable_scope_store() -> _ScopeStore:
    stored: list[_ScopeStore] = get_default_graph().get_collection_ref(_SCOPE_KEY)
    if not stored:
        stored.append(_ScopeStore())
    return stored[0]


def get_variable_scope() -> VariableScope:
    """The variable scope that is open: its name, initializer, and whether it reuses."""
    return get_variable_scope_store().current_scope


def _get_default_variable_store() -> VariableStore:
    stored: list[VariableStore] = get_default_graph().get_collection_ref(_STORE_KEY)
    if not stored:
        stored.append(VariableStore())
    return stored[0]


def _get_unique_variable_scope(prefix: str) -> str:
    """``prefix``, or the first ``prefix_1``, ``prefix_2``, … that is not open or opened here
    yet.
    """
    store = get_variable_scope_store()
    current = store.current_scope.name
    base = f"{current}/{prefix}" if current else prefix
    if store.variable_scope_count(base) == 0:
        return prefix
    i = 1
    while store.variable_scope_count(f"{base}_{i}") > 0:
        i += 1
    return f"{prefix}_{i}"
