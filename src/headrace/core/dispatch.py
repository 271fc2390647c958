"""Functions of tensors that other kinds of tensors answer for.

``@dispatched("unary")`` calls the function as it is. If that is refused (TypeError, ValueError) and
an argument has an answer of its own, as a RaggedTensor has, the answer is given instead: as in
TensorFlow, nothing is looked at as long as calls succeed.

    @dispatched("binary")
    def add(x, y, name=None): ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

__all__ = ["behind_dispatch", "dispatched"]

F = TypeVar("F", bound=Callable[..., Any])


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def dispatched(kind: str) -> Callable[[F], F]:
    """Let arguments with a method ``_dispatch(kind, function, args, kwargs)`` answer calls that
    the function refuses.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except (TypeError, ValueError):
                for value in _arguments(args, kwargs):
                    answer = getattr(type(value), "_dispatch", None)
                    if answer is not None:
                        return answer(value, kind, function, args, kwargs)
                raise

        return cast(F, call)

    return decorate


#: The code that all dispatched functions share.
_CALL = dispatched("")(lambda: None).__code__


def behind_dispatch(function: Any) -> Any:
    """The function that a dispatched one calls first; other objects as they are."""
    if getattr(function, "__code__", None) is _CALL:
        return function.__wrapped__
    return function
