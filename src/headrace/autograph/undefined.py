"""Variables without a value, as values: what the state of a branch or loop has in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "NO_RETURN",
    "Undefined",
    "is_no_value",
    "is_undefined",
    "unset_attribute",
    "unset_item",
    "value_of",
]


class Undefined:
    """A variable that has no value."""

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def __repr__(self) -> str:
        return f"<no value for {self.symbol_name}>"


class _NoReturn:
    def __repr__(self) -> str:
        return "<nothing returned yet>"


#: What a function returns before a ``return`` was reached.
NO_RETURN: Any = _NoReturn()


def is_undefined(value: object) -> bool:
    return type(value) is Undefined


def is_no_value(value: object) -> bool:
    """None, without a value, or not returned yet."""
    return value is None or value is NO_RETURN or type(value) is Undefined


def value_of(read: Callable[[], Any], name: str) -> Any:
    """The value of a variable, attribute or item; Undefined if it has none."""
    try:
        return read()
    except (NameError, AttributeError, KeyError, IndexError):
        return Undefined(name)


def unset_attribute(owner: Callable[[], Any], name: str) -> None:
    try:
        delattr(owner(), name)
    except (NameError, AttributeError):
        return


def unset_item(owner: Callable[[], Any], key: object) -> None:
    try:
        container = owner()
    except (NameError, AttributeError, KeyError, IndexError):
        return
    if isinstance(container, dict):
        container.pop(key, None)
