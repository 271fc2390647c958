"""``tensorflow.python.util.tf_decorator`` and ``tf_contextlib``.

Wrappers that remember what they wrap.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["TFDecorator", "contextmanager", "make_decorator", "rewrap", "unwrap"]


class TFDecorator:
    """A callable around ``target``.

    Its call is the decorator's function, which calls ``decorated_target``.
    """

    def __init__(
        self,
        decorator_name: str,
        target: Any,
        decorator_doc: str = "",
        decorator_argspec: Any = None,
    ) -> None:
        self._decorated_target = target
        self._decorator_name = decorator_name
        self._decorator_doc = decorator_doc
        self._decorator_argspec = decorator_argspec
        functools.update_wrapper(self, target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._decorated_target(*args, **kwargs)

    @property
    def decorated_target(self) -> Any:
        return self._decorated_target

    @decorated_target.setter
    def decorated_target(self, target: object) -> None:
        self._decorated_target = target

    @property
    def decorator_name(self) -> str:
        return self._decorator_name

    @property
    def decorator_doc(self) -> str:
        return self._decorator_doc

    @property
    def decorator_argspec(self) -> Any:
        return self._decorator_argspec


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: object = None,
) -> Callable[..., Any]:
    """``decorator_func`` with the name, the docs and the signature of ``target``."""
    name = decorator_name or sys._getframe(1).f_code.co_name
    functools.update_wrapper(decorator_func, target)
    decorator_func.__dict__["_tf_decorator"] = TFDecorator(
        name, target, decorator_doc, decorator_argspec
    )
    return decorator_func


def unwrap(maybe_tf_decorator: object) -> tuple[list[TFDecorator], Any]:
    """The decorators from the outermost on, and what is inside."""
    decorators: list[TFDecorator] = []
    current = maybe_tf_decorator
    while True:
        found = current if isinstance(current, TFDecorator) else None
        found = found or getattr(current, "__dict__", {}).get("_tf_decorator")
        if found is None:
            return decorators, current
        decorators.append(found)
        current = found.decorated_target


def rewrap(decorator_func: object, previous_target: object, new_target: object) -> Any:
    """Put ``new_target`` where ``previous_target`` was."""
    decorators, _ = unwrap(decorator_func)
    for decorator in decorators:
        if decorator.decorated_target is previous_target:
            decorator.decorated_target = new_target
    return decorator_func if decorators else new_target


def contextmanager(target: Callable[..., Any]) -> Callable[..., Any]:
    """``contextlib.contextmanager``."""
    return make_decorator(target, contextlib.contextmanager(target), "contextmanager")
