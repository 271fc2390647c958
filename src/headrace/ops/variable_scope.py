"""Variable scopes: names, defaults and sharing for ``get_variable``.

A scope is two things at once: a name scope for operations, made unique (``a``, ``a_1``), and a variable scope whose
name is taken literally, so that the second ``variable_scope("a", reuse=True)`` finds the first one's variables.

    >>> with variable_scope("layer", reuse=AUTO_REUSE):
    ...     w = get_variable("w", [3, 4])  # layer/w
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.core import convert as conversion
from headrace.core import dtypes
from headrace.core.build import _graph_of
from headrace.core.graph import GraphKeys, get_default_graph
from headrace.core.scopes import name_scope
from headrace.ops.variable_store import AUTO_REUSE, VariableStore
from headrace.ops.variables import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
    variable_creator_scope,
)

__all__ = [
    "AUTO_REUSE", "VariableScope", "disable_resource_variables", "enable_resource_variables", "get_local_variable",
    "get_variable", "get_variable_scope", "no_regularizer", "resource_variables_enabled", "variable_creator_scope",
    "variable_op_scope", "variable_scope",
]  # fmt: skip

_STORE_KEY = ("__variable_store",)
_SCOPE_KEY = ("__varscope",)
_use_resource_by_default = False

variable = Variable


def enable_resource_variables() -> None:
    """Variables are resource variables from now on, unless they say otherwise."""
    global _use_resource_by_default
    _use_resource_by_default = True


def disable_resource_variables() -> None:
    """Variables are reference variables from now on (the default), unless they say otherwise."""
    global _use_resource_by_default
    _use_resource_by_default = False


def resource_variables_enabled() -> bool:
    return _use_resource_by_default


def no_regularizer(_: Any) -> None:
    """Stops an outer scope's regularizer."""
    return None


class VariableScope:
    """The defaults that ``get_variable`` takes inside a scope."""

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
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

    def set_initializer(self, initializer: Any) -> None:
        self._initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
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
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Any = None,
        constraint: Any = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
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


def _check_initializer_dtype(initializer: Any, dtype: Any) -> None:
    have = conversion.convert(initializer).dtype.base_dtype
    if have != dtype:
        raise ValueError(f"Initializer type '{have}' and explicit dtype '{dtype}' don't match.")


# the current scope ------------------------------------------------------------------------------


class _ScopeStore(threading.local):
    """A graph's current variable scope and how often each scope was opened, per thread."""

    def __init__(self) -> None:
        self.current_scope = VariableScope(False)
        self.variable_scopes_count: dict[str, int] = {}

    def open_variable_scope(self, name: str) -> None:
        self.variable_scopes_count[name] = self.variable_scopes_count.get(name, 0) + 1

    def close_variable_subscopes(self, name: str | None) -> None:
        for key in self.variable_scopes_count:
            if name is None or key.startswith(name + "/"):
                self.variable_scopes_count[key] = 0

    def variable_scope_count(self, name: str) -> int:
        return self.variable_scopes_count.get(name, 0)


def get_variable_scope_store() -> _ScopeStore:
    stored = get_default_graph().get_collection_ref(_SCOPE_KEY)
    if not stored:
        stored.append(_ScopeStore())
    return stored[0]  # type: ignore[no-any-return]


def get_variable_scope() -> VariableScope:
    """The variable scope that is open."""
    return get_variable_scope_store().current_scope


def _get_default_variable_store() -> VariableStore:
    stored = get_default_graph().get_collection_ref(_STORE_KEY)
    if not stored:
        stored.append(VariableStore())
    return stored[0]  # type: ignore[no-any-return]


def _get_unique_variable_scope(prefix: str) -> str:
    """``prefix``, or the first ``prefix_1``, ``prefix_2``, … that is not open or opened here yet."""
    store = get_variable_scope_store()
    current = store.current_scope.name
    base = f"{current}/{prefix}" if current else prefix
    if store.variable_scope_count(base) == 0:
        return prefix
    i = 1
    while store.variable_scope_count(f"{base}_{i}") > 0:
        i += 1
    return f"{prefix}_{i}"


class _pure_variable_scope:
    """A variable scope without a name scope of its own."""

    def __init__(
        self,
        name_or_scope: str | VariableScope,
        reuse: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        old_name_scope: str | None = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self._name_or_scope = name_or_scope
        self._reuse = reuse
        self._own = {
            "initializer": initializer, "regularizer": regularizer, "caching_device": caching_device,
            "partitioner": partitioner, "dtype": dtype, "use_resource": use_resource,
        }  # fmt: skip
        self._custom_getter = custom_getter
        self._constraint = constraint
        self._old_name_scope = old_name_scope
        self._store = get_variable_scope_store()
        self._entered: list[tuple[VariableScope, VariableScope, dict[str, int] | None]] = []
        self._reentered = (
            self._copy_given_scope() if isinstance(name_or_scope, VariableScope) else None
        )

    def _scope_from(
        self, base: VariableScope, name: str, reuse: Any, name_scope: str
    ) -> VariableScope:
        """``base``'s defaults with this scope's own settings over them."""
        settings = {k: getattr(base, k) if v is None else v for k, v in self._own.items()}
        getter = base.custom_getter
        if self._custom_getter is not None:
            getter = _nested_getter(self._custom_getter, getter)
        return VariableScope(
            reuse,
            name=name,
            name_scope=name_scope,
            custom_getter=getter,
            constraint=self._constraint,
            **settings,
        )

    def _copy_given_scope(self) -> VariableScope:
        given = self._name_or_scope
        assert isinstance(given, VariableScope)
        return self._scope_from(given, given.name, self._reuse or given.reuse, given._name_scope)

    def __enter__(self) -> VariableScope:
        store = self._store
        old = store.current_scope
        counts: dict[str, int] | None = None
        if self._reentered is not None:
            scope = self._reentered
            store.open_variable_scope(scope.name)
            counts = dict(store.variable_scopes_count)
        else:
            prefix = self._name_or_scope
            assert isinstance(prefix, str)
            name = f"{old.name}/{prefix}" if old.name else prefix
            place = prefix if self._old_name_scope is None else self._old_name_scope
            scope = self._scope_from(old, name, self._reuse or old.reuse, place)
            store.open_variable_scope(name)
        store.current_scope = scope
        self._entered.append((scope, old, counts))
        return scope

    def __exit__(self, *exc: Any) -> None:
        scope, old, counts = self._entered.pop()
        store = self._store
        if store.current_scope is not scope:
            raise RuntimeError("Improper nesting of variable_scope.")
        if counts is not None:
            store.variable_scopes_count = counts
        else:
            store.close_variable_subscopes(scope.name)
        store.current_scope = old


def _nested_getter(inner: Any, outer: Any) -> Any:
    """A getter that calls ``inner``, whose own getter is ``outer`` applied to the true one."""
    if outer is None:
        return inner

    def getter_of_getters(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return getter_of_getters


class variable_scope:
    """``with tf.variable_scope(name_or_scope, ...) as scope:``."""

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse is False:
            reuse = None
        if not (reuse is True or reuse is None or reuse is AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(
                f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}"
            )
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse
        self._auxiliary_name_scope = auxiliary_name_scope
        self._settings = {
            "initializer": initializer, "regularizer": regularizer, "caching_device": caching_device,
            "partitioner": partitioner, "custom_getter": custom_getter, "dtype": dtype, "use_resource": use_resource,
            "constraint": constraint,
        }  # fmt: skip
        self._graph = _graph_of(list(values or ()), get_default_graph())
        self._pure: _pure_variable_scope | None = None
        self._name_scope_object: name_scope | None = None
        self._open: list[list[Any]] = []

    def __enter__(self) -> VariableScope:
        contexts: list[Any] = []
        self._open.append(contexts)
        try:
            self._enter(contexts, self._graph.as_default())
            if self._pure is None:
                return self._first_entry(contexts)
            if self._name_scope_object is not None:
                self._enter(contexts, self._name_scope_object)
            return self._enter(contexts, self._pure)  # type: ignore[no-any-return]
        except BaseException:
            self._leave(None, None, None)
            raise

    @staticmethod
    def _enter(contexts: list[Any], context: Any) -> Any:
        result = context.__enter__()
        contexts.append(context)
        return result

    def _leave(self, *exc: Any) -> None:
        contexts = self._open.pop()
        failure: BaseException | None = None
        while contexts:
            try:
                contexts.pop().__exit__(*exc)
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def __exit__(self, *exc: Any) -> None:
        self._leave(*exc)

    def _first_entry(self, contexts: list[Any]) -> VariableScope:
        given = self._name_or_scope
        if given is not None and not isinstance(given, (str, VariableScope)):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if given is None and self._reuse:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        place = self._place(given)
        entered: str | None = None
        if place is not None:
            entered = self._enter(contexts, place)
        if given is None:
            assert self._default_name is not None
            pure = _pure_variable_scope(
                _get_unique_variable_scope(self._default_name),
                old_name_scope=entered,
                **self._settings,
            )
        else:
            original = given.original_name_scope if isinstance(given, VariableScope) else entered
            pure = _pure_variable_scope(
                given,
                reuse=self._reuse,
                old_name_scope=original if place is not None else None,
                **self._settings,
            )
        scope: VariableScope = self._enter(contexts, pure)
        self._pure, self._name_scope_object = pure, place
        return scope

    def _place(self, given: str | VariableScope | None) -> name_scope | None:
        """The name scope that goes with the variable scope; None for the root scope."""
        if not self._auxiliary_name_scope:
            current = get_default_graph().get_name_scope()
            return name_scope(current + "/" if current else "")
        if given is None:
            return name_scope(self._default_name)
        name = given if isinstance(given, str) else given.name.rpartition("/")[2]
        return name_scope(name) if name else None


@contextmanager
def variable_op_scope(
    values: Any,
    name_or_scope: Any,
    default_name: str | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
) -> Iterator[VariableScope]:
    """The pre-1.0 spelling of :class:`variable_scope`."""
    with variable_scope(
        name_or_scope, default_name, values, initializer, regularizer, caching_device, partitioner, custom_getter,
        reuse, dtype, use_resource, constraint,
    ) as scope:  # fmt: skip
        yield scope


# getting ----------------------------------------------------------------------------------------


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """The variable of this name in the current scope: an existing one, or a new one."""
    return get_variable_scope().get_variable(
        _get_default_variable_store(), name, shape, dtype, initializer, regularizer, None, trainable, collections,
        caching_device, partitioner, validate_shape, use_resource, custom_getter, constraint, synchronization,
        aggregation,
    )  # fmt: skip


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """As :func:`get_variable`, for a variable that is neither trained nor saved."""
    listed = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name, shape, dtype, initializer, regularizer, False, listed, caching_device, partitioner, validate_shape,
        use_resource, custom_getter, constraint, synchronization, aggregation,
    )  # fmt: skip


def _get_partitioned_variable(
    name: str | None,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """A partitioned variable, past any custom getter; without a name it takes the scope's."""
    scope = get_variable_scope()
    if scope.custom_getter is not None:
        raise ValueError(
            "Private access to _get_partitioned_variable is not allowed when a custom getter is set.  Current custom "
            f"getter: {scope.custom_getter}.  It is likely that you're using create_partitioned_variables.  If so, "
            "consider instead using get_variable with a non-empty partitioner parameter instead."
        )
    partitioner = scope.partitioner if partitioner is None else partitioner
    if partitioner is None:
        raise ValueError("No partitioner was specified")
    with get_default_graph().name_scope(None):
        return _get_default_variable_store()._get_partitioned_variable(
            "/".join(part for part in (scope.name, name) if part),
            partitioner,
            shape=shape,
            dtype=scope.dtype if dtype is None else dtype,
            initializer=scope.initializer if initializer is None else initializer,
            regularizer=scope.regularizer if regularizer is None else regularizer,
            reuse=scope.reuse,
            trainable=trainable,
            collections=collections,
            caching_device=scope.caching_device if caching_device is None else caching_device,
            validate_shape=validate_shape,
            use_resource=scope.use_resource if use_resource is None else use_resource,
            constraint=scope.constraint if constraint is None else constraint,
            synchronization=synchronization,
            aggregation=aggregation,
        )
