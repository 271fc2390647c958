"""Methods and calls that Python's library has refused since TensorFlow 1 was current.

- ``random.sample`` of sets and of the keys of dictionaries (until 3.10), ``random.shuffle(x,
  random)``; what is drawn from a list stays the same.
- ``threading.Thread.isAlive``, ``Element.getchildren`` of XML trees (until 3.8), the older names of
  ``unittest``'s assertions (until 3.11).
- ``json.loads(text, encoding=...)`` (until 3.8; it was ignored).

    >>> random.sample({1, 2, 3}, 2)
    >>> thread.isAlive()
"""

from __future__ import annotations

import functools
import json
import random
import threading
import unittest
from collections.abc import Callable, ItemsView, KeysView, MutableSequence, Set
from typing import Any

__all__ = ["install", "uninstall"]

_ASSERTIONS = {
    "assertAlmostEquals": "assertAlmostEqual",
    "assertEquals": "assertEqual",
    "assertItemsEqual": "assertCountEqual",
    "assertNotAlmostEquals": "assertNotAlmostEqual",
    "assertNotEquals": "assertNotEqual",
    "assertNotRegexpMatches": "assertNotRegex",
    "assertRaisesRegexp": "assertRaisesRegex",
    "assertRegexpMatches": "assertRegex",
    "assert_": "assertTrue",
}
#: Owner, name, what was there (None: nothing).
_changed: list[tuple[Any, str, Any]] = []


def _sample(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def sample(population: Any, k: int, **kwargs: Any) -> Any:
        if isinstance(population, Set | KeysView | ItemsView):
            population = tuple(population)
        return own(population, k, **kwargs)

    return sample


def _shuffle(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def shuffle(x: MutableSequence[Any], random: Callable[[], float] | None = None) -> None:
        if random is None:
            own(x)
            return
        for i in reversed(range(1, len(x))):
            j = int(random() * (i + 1))
            x[i], x[j] = x[j], x[i]

    return shuffle


def _without_encoding(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def load(source: object, *, encoding: str | None = None, **kwargs: object) -> Any:
        del encoding  # TensorFlow 1's Pythons ignored it, too
        return own(source, **kwargs)

    return load


_CALLS: list[tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = [
    (json, "load", _without_encoding),
    (json, "loads", _without_encoding),
    (random, "sample", _sample),
    (random, "shuffle", _shuffle),
]


def _add(owner: object, name: str, value: object) -> None:
    if name not in vars(owner):
        setattr(owner, name, value)
        _changed.append((owner, name, None))


def install() -> None:
    """Accept the old calls and add the old names."""
    if _changed:
        return
    for owner, name, wrapper in _CALLS:
        own = getattr(owner, name)
        setattr(owner, name, wrapper(own))
        _changed.append((owner, name, own))
    _add(threading.Thread, "isAlive", threading.Thread.is_alive)
    for old, new in _ASSERTIONS.items():
        _add(unittest.TestCase, old, getattr(unittest.TestCase, new))


def uninstall() -> None:
    """Undo :func:`install`."""
    for owner, name, own in _changed:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
    _changed.clear()
