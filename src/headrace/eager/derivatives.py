"""``tf.contrib.eager``'s forms of derivatives: functions that give gradients of functions.

grad = gradients_function(lambda x: x * x)
grad(3.0)      # [6.0]
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.eager.tape import GradientTape
from headrace.variables.scope_state import _STORE_KEY
from headrace.variables.variable_store import EagerStore

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = [
    "EagerVariableStore",
    "gradients_function",
    "implicit_gradients",
    "implicit_value_and_gradients",
    "value_and_gradients_function",
]


def value_and_gradients_function(
    f: Callable[..., Any], params: Any = None
) -> Callable[..., tuple[Any, list[Any]]]:
    """A function that gives f's value and its gradients with respect to (some of) its positional
    arguments.
    """

    def decorated(*args: object, dy: Any = None, **kwargs: object) -> tuple[Any, list[Any]]:
        given = [convert_to_tensor(a) for a in args]
        positions = _positions(f, params, len(given))
        _tell_apart(given, positions)
        chosen = [given[i] for i in positions]
        with GradientTape() as tape:
            tape.watch(chosen)
            value = f(*given, **kwargs)
        if value is None:
            raise ValueError(
                "Cannot differentiate a function that returns None; did you forget to "
                f"return a value from {_name(f)}?"
            )
        return value, tape.gradient(value, chosen, dy)

    return decorated


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", None) or repr(f)


def _tell_apart(tensors: list[Any], positions: list[int]) -> None:
    """The same tensor given for two arguments has two gradients: all but the first become
    copies.
    """
    seen: set[int] = set()
    for i in positions:
        if id(tensors[i]) in seen:
            tensors[i] = apply_op("Identity", tensors[i])
        seen.add(id(tensors[i]))


def _positions(f: Callable[..., Any], params: Tensor, count: int) -> list[int]:
    if params is None:
        return list(range(count))
    wanted = [params] if isinstance(params, (str, int)) else list(params)
    names = list(inspect.signature(f).parameters)
    return [names.index(p) if isinstance(p, str) else int(p) for p in wanted]


def gradients_function(f: Callable[..., Any], params: object = None) -> Callable[..., list[Any]]:
    """A function that gives the gradients of f with respect to (some of) its positional
    arguments.
    """
    both = value_and_gradients_function(f, params)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def implicit_value_and_gradients(
    f: Callable[..., Any],
) -> Callable[..., tuple[Any, list[tuple[Any, Any]]]]:
    """A function that gives f's value and (gradient, variable) for the trainable variables that f
    uses.
    """

    def decorated(*args: object, **kwargs: object) -> tuple[Any, list[tuple[Any, Any]]]:
        with GradientTape() as tape:
            value = f(*args, **kwargs)
        if value is None:
            raise ValueError(
                "Cannot differentiate a function that returns None; did you forget to "
                f"return a value from {_name(f)}?"
            )
        variables = list(tape.watched_variables())
        if not variables:
            raise ValueError(
                "No trainable variables were accessed while the function was being computed."
            )
        return value, list(zip(tape.gradient(value, variables), variables))

    return decorated


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., list[tuple[Any, Any]]]:
    """A function that gives (gradient, variable) for the trainable variables that f uses."""
    both = implicit_value_and_gradients(f)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


class EagerVariableStore:
    """Keeps the variables that ``tf.get_variable`` makes inside ``with store.as_default():``, and
    shares them.
    """

    def __init__(self, store: Any = None) -> None:
        self._store = EagerStore() if store is None else store

    @contextmanager
    def as_default(self) -> Any:
        kept = get_default_graph().get_collection_ref(_STORE_KEY)
        old = list(kept)
        kept[:] = [self._store]
        try:
            yield
        finally:
            kept[:] = old

    def copy(self) -> EagerVariableStore:
        """A store with variables of the same names and values, which are variables of their own."""
        made = EagerVariableStore()
        for key, variable in self._store._vars.items():
            made._store._vars[key] = copy.deepcopy(variable)
        return made

    def variables(self) -> list[Any]:
        return sorted(self._store._vars.values(), key=lambda v: str(v.name))

    def trainable_variables(self) -> list[Any]:
        return [v for v in self.variables() if v.trainable]

    def non_trainable_variables(self) -> list[Any]:
        return [v for v in self.variables() if not v.trainable]
