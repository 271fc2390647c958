"""What to say about a name that is not here.

``known.txt`` lists the public names of TensorFlow 1.15: a name in it is "not here yet", any other is unknown; both with
the nearest names that do exist.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from importlib import resources

__all__ = ["explain", "known_symbols"]


@functools.cache
def known_symbols() -> frozenset[str]:
    """Dotted names (without ``tf.``) of TensorFlow 1.15's public API."""
    text = resources.files(__package__).joinpath("known.txt").read_text()
    names: set[str] = set()
    for line in text.splitlines():
        namespace, _, members = line.partition(": ")
        names.update(f"{namespace}.{m}".lstrip(".") for m in members.split())
        names.add(namespace)
    return frozenset(names)


def explain(namespace: str, name: str, available: Iterable[str]) -> str:
    """A message for ``tf.<namespace>.<name>``; ``available`` are the names that the namespace has."""
    full = f"{namespace}.{name}".lstrip(".")
    if full in known_symbols():
        head = f"tf.{full} is part of TensorFlow 1.15, but Headrace does not have it yet"
    elif full.startswith("contrib."):
        head = f"tf.{full}: Headrace does not have this part of tf.contrib"
    else:
        head = f"TensorFlow 1.15 has no tf.{full}, and neither has Headrace"
    near = difflib.get_close_matches(name, [n for n in available if not n.startswith("_")], 3, 0.7)
    prefix = f"tf.{namespace}." if namespace else "tf."
    elsewhere = sorted(k for k in known_symbols() if k.endswith("." + name) and k != full)[:2]
    hints = [prefix + n for n in near]
    hints += [f"tf.{k}" for k in elsewhere if full not in known_symbols()]
    return f"{head}. Near: {', '.join(hints)}." if hints else f"{head}."
