"""``tf.Module``: an object that knows the variables and modules that it holds, at any depth of its
attributes.

class Dense(tf.Module):
    def __init__(self, n, m, name=None):
        super().__init__(name)
        self.w = tf.Variable(tf.zeros([n, m]), name="w")

    @tf.Module.with_name_scope
    def __call__(self, x):
        return x @ self.w

Dense(2, 3).trainable_variables
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.scopes import name_scope
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["Module", "restore_later"]

_IDENTIFIER = re.compile(r"^[a-zA-Z_]([a-zA-Z0-9_])*$")
_WORDS = re.compile(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))")


def _snake(name: str) -> str:
    return _WORDS.sub(r"_\1", name).lower()


def restore_later(value: object) -> None:
    """Checkpoints that are being restored look at what an object holds by now."""
    for restoration in tuple(value.__dict__.get("_restorations", ())):
        restoration.match()


class Module:
    """A base for models: it finds the variables and modules in its attributes.

    ``variables``, ``trainable_variables`` and ``submodules`` list them; ``with_name_scope`` names
    what a method makes.
    """

    #: Attributes that are not looked into.
    _TF_MODULE_IGNORED_PROPERTIES = frozenset(["_name", "_scope_name"])

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if "_restorations" in self.__dict__:
            restore_later(self)

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake(type(self).__name__)
        elif not _IDENTIFIER.match(name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python "
                "identifiers (e.g. a valid "
                "class name)."
            )
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    @property
    def name(self) -> str:
        return self._name

    @property
    def name_scope(self) -> Any:
        """The scope in which the module's own operations and variables are named."""
        return name_scope(self._scope_name)

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables of the module and its submodules."""
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(self._flatten(predicate=lambda v: _is_variable(v) and v.trainable))

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        return tuple(self._flatten(predicate=lambda v: _is_variable(v) and not v.trainable))

    @property
    def submodules(self) -> tuple[Any, ...]:
        return tuple(self._flatten(predicate=lambda m: isinstance(m, Module)))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
    ) -> Iterator[Any]:
        """Leaves of the attributes for which ``predicate`` holds, each once.

        Own ones before those of submodules.
        """
        wanted = predicate or (lambda _: True)
        seen = {id(self)}
        queue: list[tuple[tuple[Any, ...], Module]] = [((), self)]
        while queue:
            path, module = queue.pop(0)
            found: list[tuple[tuple[Any, ...], Module]] = []
            for where, leaf in _leaves(module, attribute_traversal_key):
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
                if wanted(leaf):
                    yield (path + where, leaf) if with_path else leaf
                if recursive and isinstance(leaf, Module):
                    found.append((path + where, leaf))
            queue[:0] = found

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method whose operations and variables are named below the module's name."""

        @functools.wraps(method)
        def named(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return named


def _is_variable(value: TensorLike) -> bool:
    return isinstance(value, Variable)


def _leaves(
    module: Module, key: Callable[[str], Any] | None
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, leaf) of every attribute, by name."""
    ignored = module._TF_MODULE_IGNORED_PROPERTIES
    for attribute in sorted(vars(module), key=key):
        if attribute in ignored:
            continue
        value = vars(module)[attribute]
        try:
            pairs = nest.flatten_with_tuple_paths(value)
        except TypeError:  # a dict whose keys cannot be sorted
            continue
        for path, leaf in pairs:
            yield (attribute, *path), leaf
