"""Variable scopes: names, defaults and sharing for ``get_variable``.

A scope is two things at once: a name scope for operations, made unique (``a``, ``a_1``), and a
variable scope whose name is taken literally, so that the second ``variable_scope("a", reuse=True)``
finds the first one's variables.

    >>> with variable_scope("layer", reuse=AUTO_REUSE):
    ...     w = get_variable("w", [3, 4])  # layer/w
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.core.build import _graph_of
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import name_scope
from headrace.variables.scope_state import (
    VariableScope,
    _get_default_variable_store,
    _get_unique_variable_scope,
    get_variable_scope,
    get_variable_scope_store,
)
from headrace.variables.variable import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
    variable_creator_scope,
)
from headrace.variables.variable_store import AUTO_REUSE

if TYPE_CHECKING:
    from headrace.core.annotations import (
        ConstraintLike,
        DeviceLike,
        DTypeLike,
        InitializerLike,
        Partitioner,
        RegularizerLike,
        ShapeLike,
        TensorLike,
    )
    from headrace.core.dtypes import DType
    from headrace.variables.partitioned_variable import PartitionedVariable
    from headrace.variables.variable import Variable

__all__ = [
    "AUTO_REUSE",
    "VariableScope",
    "disable_resource_variables",
    "enable_resource_variables",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "resource_variables_enabled",
    "variable_creator_scope",
    "variable_op_scope",
    "variable_scope",
]

T = TypeVar("T")

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
    """True if ``tf.Variable`` and ``get_variable`` make resource variables by default."""
    return _use_resource_by_default


def no_regularizer(_: TensorLike) -> None:
    """As ``regularizer=`` of a variable or scope: none, even if an outer scope has one."""
    return None


class _pure_variable_scope:
    """A variable scope without a name scope of its own."""

    def __init__(
        self,
        name_or_scope: str | VariableScope,
        reuse: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Partitioner | None = None,
        custom_getter: object = None,
        old_name_scope: str | None = None,
        dtype: DTypeLike | None = None,
        use_resource: bool | None = None,
        constraint: ConstraintLike | None = None,
    ) -> None:
        self._name_or_scope = name_or_scope
        self._reuse = reuse
        self._own = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "dtype": dtype,
            "use_resource": use_resource,
        }
        self._custom_getter = custom_getter
        self._constraint = constraint
        self._old_name_scope = old_name_scope
        self._store = get_variable_scope_store()
        self._entered: list[tuple[VariableScope, VariableScope, int | None]] = []
        self._reentered = (
            self._copy_given_scope() if isinstance(name_or_scope, VariableScope) else None
        )

    def _scope_from(
        self, base: VariableScope, name: str, reuse: bool | None, name_scope: str
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
        mark: int | None = None
        if self._reentered is not None:
            scope = self._reentered
            store.open_variable_scope(scope.name)
            mark = store.mark()
        else:
            prefix = self._name_or_scope
            assert isinstance(prefix, str)
            name = f"{old.name}/{prefix}" if old.name else prefix
            place = prefix if self._old_name_scope is None else self._old_name_scope
            scope = self._scope_from(old, name, self._reuse or old.reuse, place)
            store.open_variable_scope(name)
        store.current_scope = scope
        self._entered.append((scope, old, mark))
        return scope

    def check_nesting(self) -> None:
        """RuntimeError if a scope that was entered later is still open; nothing is left then."""
        if self._store.current_scope is not self._entered[-1][0]:
            raise RuntimeError("Improper nesting of variable_scope.")

    def __exit__(self, *exc: object) -> None:
        self.check_nesting()
        scope, old, mark = self._entered.pop()
        store = self._store
        if mark is not None:
            store.take_back(mark)
        else:
            store.close_variable_subscopes(scope.name)
        store.current_scope = old


def _nested_getter(inner: Any, outer: Any) -> Any:
    """A getter that calls ``inner``, whose own getter is ``outer`` applied to the true one."""
    if outer is None:
        return inner

    def getter_of_getters(getter: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return getter_of_getters


class variable_scope:
    """``with tf.variable_scope("layer1", reuse=...):`` names for variables, and defaults for them.

    ``tf.get_variable("w")`` inside makes or finds "layer1/w". ``reuse=True`` only finds variables,
    ``tf.AUTO_REUSE`` makes what is missing. The arguments ``initializer``, ``regularizer``,
    ``caching_device``, ``partitioner``, ``custom_getter``, ``dtype``, ``use_resource`` and
    ``constraint`` hold for all variables inside. A scope object can be entered again.
    ``auxiliary_name_scope=False`` opens no name scope for operations.

    ``name_or_scope`` is a string or a VariableScope; if it is None, ``default_name`` is made unique
    and used.
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: object = None,
        caching_device: DeviceLike | None = None,
        partitioner: Partitioner | None = None,
        custom_getter: object = None,
        reuse: object = None,
        dtype: DTypeLike | None = None,
        use_resource: bool | None = None,
        constraint: ConstraintLike | None = None,
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
                "The auxiliary_name_scope must be `True` or `False`, while get "
                f"{auxiliary_name_scope}"
            )
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse
        self._auxiliary_name_scope = auxiliary_name_scope
        self._settings = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "custom_getter": custom_getter,
            "dtype": dtype,
            "use_resource": use_resource,
            "constraint": constraint,
        }
        self._graph = _graph_of(list(values or ()), get_default_graph())
        self._pure: _pure_variable_scope | None = None
        self._name_scope_object: name_scope | None = None
        self._open: list[list[Any]] = []

    def __enter__(self) -> VariableScope:
        contexts: list[AbstractContextManager[Any]] = []
        self._open.append(contexts)
        try:
            self._enter(contexts, self._graph.as_default())
            if self._pure is None:
                return self._first_entry(contexts)
            if self._name_scope_object is not None:
                self._enter(contexts, self._name_scope_object)
            return self._enter(contexts, self._pure)
        except BaseException:
            self._leave(None, None, None)
            raise

    @staticmethod
    def _enter(
        contexts: list[AbstractContextManager[Any]], context: AbstractContextManager[T]
    ) -> T:
        result = context.__enter__()
        contexts.append(context)
        return result

    def _leave(self, *exc: object) -> None:
        contexts = self._open.pop()
        failure: BaseException | None = None
        while contexts:
            try:
                contexts.pop().__exit__(*exc)
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def __exit__(self, *exc: object) -> None:
        if self._pure is not None:
            self._pure.check_nesting()
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
    values: TensorLike,
    name_or_scope: Any,
    default_name: str | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerLike | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: bool | None = None,
    dtype: DType | None = None,
    use_resource: bool | None = None,
    constraint: ConstraintLike | None = None,
) -> Iterator[VariableScope]:
    """The pre-1.0 spelling of :class:`variable_scope`.

    ``values`` stands first here and is needed; the other arguments are ``tf.variable_scope``'s.
    """
    with variable_scope(
        name_or_scope,
        default_name,
        values,
        initializer,
        regularizer,
        caching_device,
        partitioner,
        custom_getter,
        reuse,
        dtype,
        use_resource,
        constraint,
    ) as scope:
        yield scope


# getting ----------------------------------------------------------------------------------------


def get_variable(
    name: str,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    initializer: object = None,
    regularizer: object = None,
    trainable: bool | None = None,
    collections: TensorLike | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: ConstraintLike | None = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Variable:
    """The variable of this name in the current scope: an existing one, or a new one.

    ``shape`` is needed for a new variable unless ``initializer`` is a value. Whether a variable
    must exist, may exist or must be new is the scope's ``reuse``.

    ``regularizer(variable)`` is added to ``tf.GraphKeys.REGULARIZATION_LOSSES``;
    ``trainable=False`` keeps the variable out of ``tf.trainable_variables()``; ``collections``
    replaces ``GLOBAL_VARIABLES``; ``use_resource`` chooses the kind; ``constraint`` maps the
    variable to what it is after an optimizer's update. What is not given comes from the scope.

        >>> with tf.variable_scope("layer"):
        ...     w = tf.get_variable("w", [3, 2], initializer=tf.zeros_initializer())
        >>> w.name
        'layer/w:0'

    With a ``partitioner`` (here or of the scope) it is a PartitionedVariable, and a
    ``custom_getter`` may return something else; the declared type is that of the common case.
    """
    found: Variable = get_variable_scope().get_variable(
        _get_default_variable_store(),
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        None,
        trainable,
        collections,
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )
    return found


def get_local_variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: RegularizerLike | None = None,
    trainable: bool = False,
    collections: Sequence[str] | None = None,
    caching_device: object = None,
    partitioner: object = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: object = None,
    constraint: ConstraintLike | None = None,
    synchronization: object = VariableSynchronization.AUTO,
    aggregation: object = VariableAggregation.NONE,
) -> Variable:
    """``get_variable`` for a variable that is neither trained nor saved.

    It is in the collection ``LOCAL_VARIABLES``: ``tf.local_variables_initializer()`` initializes
    it. The arguments are those of ``get_variable``.
    """
    listed = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        listed,
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )


def _get_partitioned_variable(
    name: str | None,
    shape: object = None,
    dtype: DType | None = None,
    initializer: object = None,
    regularizer: RegularizerLike | None = None,
    trainable: bool = True,
    collections: object = None,
    caching_device: object = None,
    partitioner: Callable[..., Any] | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: ConstraintLike | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> PartitionedVariable:
    """A partitioned variable, past any custom getter; without a name it takes the scope's."""
    scope = get_variable_scope()
    if scope.custom_getter is not None:
        raise ValueError(
            "Private access to _get_partitioned_variable is not allowed when a custom "
            "getter is set.  Current custom "
            f"getter: {scope.custom_getter}.  It is likely that you're using "
            "create_partitioned_variables.  If so, "
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
