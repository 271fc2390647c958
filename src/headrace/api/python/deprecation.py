"""``tensorflow.python.util.deprecation``: decorators for old names and arguments.

Headrace does not log TensorFlow's deprecation notices: the functions are what they were.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "deprecated", "deprecated_alias", "deprecated_arg_values", "deprecated_args",
    "deprecated_argument_lookup", "deprecated_endpoints", "rewrite_argument_docstring", "silence",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def _unchanged(function: F) -> F:
    return function


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[F], F]:
    return _unchanged


def deprecated_args(
    date: object, instructions: str, *names: TensorLike, **kwargs: object
) -> Callable[[F], F]:
    return _unchanged


def deprecated_arg_values(
    date: object, instructions: str, warn_once: bool = True, **values: object
) -> Callable[[F], F]:
    return _unchanged


def deprecated_endpoints(*args: str) -> Callable[[F], F]:
    return _unchanged


def deprecated_alias(
    deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True
) -> Any:
    """The same function or class under its old name."""
    if isinstance(func_or_class, type):
        return type(func_or_class.__name__, (func_or_class,), {"__doc__": func_or_class.__doc__})

    @functools.wraps(func_or_class)
    def alias(*args: Any, **kwargs: Any) -> Any:
        return func_or_class(*args, **kwargs)

    return alias


def deprecated_argument_lookup(
    new_name: str, new_value: object, old_name: str, old_value: object
) -> Any:
    """The one of two arguments that was given; ValueError for both."""
    if old_value is not None:
        if new_value is not None:
            raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
        return old_value
    return new_value


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(
        f"{old_argument}:", f"{new_argument}:"
    )


class silence:
    """A context in which nothing is logged."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
