"""Templates: a function whose variables are made at its first call and shared by all later ones.

>>> scale = make_template("scale", lambda x: x * tf.get_variable("w", []))
>>> scale(a) + scale(b)  # one variable, scale/w
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.core import trace
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.variables import variable_scope as scopes
from headrace.variables.scope_state import _STORE_KEY, _get_unique_variable_scope
from headrace.variables.variable_store import EagerStore

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["Template", "make_template"]


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: object = None,
    **kwargs: object,
) -> Template:
    """``func_`` (with ``kwargs`` filled in) as a template: all its calls share one set of
    variables.

    The first call makes the variables under ``name_`` (unless ``create_scope_now_``, then the scope
    is made now), later calls find them. ``unique_name_`` says the scope exactly.
    """
    if kwargs:
        func_ = functools.partial(func_, **kwargs)
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_)


def _eager_store() -> EagerStore:
    """A store for a template's variables: that of the template around, if one is being called."""
    kept = get_default_graph().get_collection_ref(_STORE_KEY)
    return kept[0] if kept and isinstance(kept[0], EagerStore) else EagerStore()


class Template:
    """A function with variables of its own."""

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: object = None,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self._name = name
        self._func = func
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._frames = trace.capture(1)
        self._variables_created = False
        self._variable_scope: scopes.VariableScope | None = None
        self._store = _eager_store() if get_default_graph()._is_eager else None
        if self._store is not None and unique_name is not None:
            # TensorFlow's spelling
            raise ValueError("unique_name_ cannot be used when eager exeuction is enabled.")
        if create_scope_now:
            own = unique_name or _get_unique_variable_scope(name)
            with scopes._pure_variable_scope(own, custom_getter=custom_getter) as scope:
                self._variable_scope = scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._variable_scope is None:
            with scopes.variable_scope(
                self._unique_name, self._name, custom_getter=self._custom_getter
            ) as scope:
                self._variable_scope = scope
                with self._own_store():
                    return self._call(args, kwargs)
        shared = self._variables_created and self._store is None
        reuse = True if shared else scopes.AUTO_REUSE
        with scopes.variable_scope(self._variable_scope, reuse=reuse), self._own_store():
            return self._call(args, kwargs)

    @contextmanager
    def _own_store(self) -> Iterator[None]:
        """Eagerly no graph keeps variables: the template does."""
        if self._store is None:
            yield
            return
        kept = get_default_graph().get_collection_ref(_STORE_KEY)
        old = list(kept)
        kept[:] = [self._store]
        try:
            yield
        finally:
            kept[:] = old

    def _trainable(self) -> list[Any]:
        if self._store is None:
            return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
        return [v for v in self._stored() if v.trainable]

    def _stored(self) -> list[Any]:
        """The variables of the template's own store, below its scope."""
        if self._store is None or self._variable_scope is None:
            return []
        prefix = self._variable_scope.name + "/"
        found = [v for v in self._store._vars.values() if v.name.startswith(prefix)]
        return sorted(found, key=lambda v: str(v.name))

    def _call(self, args: Any, kwargs: Mapping[str, Any]) -> Any:
        before = len(self._trainable())
        try:
            result = self._func(*args, **kwargs)
            trainable = self._trainable()
            if self._variables_created and len(trainable) != before:
                raise ValueError(
                    "Trainable variable created when calling a template after the first "
                    "time, perhaps you used "
                    f"tf.Variable when you meant tf.get_variable: {trainable[before:]}"
                )
        except Exception as error:
            error.add_note(
                f"Template '{self._name}' was originally defined at {trace.user_line(self._frames)}"
            )
            raise
        self._variables_created = True
        return result

    @property
    def name(self) -> str:
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        return self._func

    @property
    def variable_scope(self) -> scopes.VariableScope | None:
        """The scope of the template's variables; None before it is made."""
        return self._variable_scope

    @property
    def var_scope(self) -> scopes.VariableScope | None:
        return self._variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The scope's name with a slash at its end, which no other scope's name begins with."""
        if self._variable_scope is None:
            return None
        name = self._variable_scope.name
        return name if not name or name.endswith("/") else f"{name}/"

    def _collected(self, key: str) -> list[Any]:
        if self._store is not None:
            if key == GraphKeys.LOCAL_VARIABLES or not self._variables_created:
                return []
            return self._trainable() if key == GraphKeys.TRAINABLE_VARIABLES else self._stored()
        if not self._variables_created:
            return []
        return get_default_graph().get_collection(key, self.variable_scope_name)

    @property
    def global_variables(self) -> list[Any]:
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    @property
    def variables(self) -> list[Any]:
        """The template's global and local variables."""
        return self.global_variables + self.local_variables

    @property
    def trainable_variables(self) -> list[Any]:
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        trained = set(self.trainable_variables)
        return [v for v in self.variables if v not in trained]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables
