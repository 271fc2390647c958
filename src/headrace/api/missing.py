"""What to say about a name that is not here.

``known.txt`` lists the public names of TensorFlow 1.15: a name in it is "not here yet", any other
is unknown; both with the nearest names that do exist.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from headrace.api.replacements import GONE, instead_of

__all__ = ["RENAMED", "explain", "known_symbols", "late", "module_getattr", "names_of"]

#: Names that TensorFlow had before 1.0 and that 1.15 has no longer, with what took their place.
RENAMED = {
    "scalar_summary": "summary.scalar (the tag becomes the name)",
    "histogram_summary": "summary.histogram (the tag becomes the name)",
    "image_summary": "summary.image (max_images is max_outputs)",
    "audio_summary": "summary.audio",
    "merge_summary": "summary.merge",
    "merge_all_summaries": "summary.merge_all",
    "merge_all_summary": "summary.merge_all",
    "batch_svd": "svd",
    "nn.seq2seq": "contrib.legacy_seq2seq",
    "ReplicaDeviceSetter": "train.replica_device_setter",
    "SyncReplicasOptimizer": "train.SyncReplicasOptimizer",
}


@functools.cache
def known_symbols() -> frozenset[str]:
    """Dotted names (without ``tf.``) of TensorFlow 1.15's public API."""
    from importlib import resources

    text = resources.files(__package__).joinpath("known.txt").read_text()
    return frozenset(names_of(text))


def names_of(text: str) -> set[str]:
    """Dotted names of a list with lines ``namespace: name name …``, namespaces included."""
    names: set[str] = set()
    for line in text.splitlines():
        namespace, _, members = line.partition(": ")
        names.update(f"{namespace}.{m}".lstrip(".") for m in members.split())
        names.add(namespace)
    return names


def explain(namespace: str, name: str, available: Iterable[str]) -> str:
    """A message for ``tf.<namespace>.<name>``; ``available`` are the names that the namespace
    has.
    """
    import difflib

    full = f"{namespace}.{name}".lstrip(".")
    full = full.removeprefix("compat.v1.")
    if full in RENAMED:
        return (
            f"tf.{full} was removed before TensorFlow 1.15, which Headrace follows. "
            f"Use tf.{RENAMED[full]}."
        )
    if exists_in_v1(full):
        return (
            f"tf.{full} is not in TensorFlow 2's API as Headrace has it; tf.compat.v1.{full} is "
            "there. A program written for TensorFlow 1 runs with `import headrace as tf` or "
            "`headrace run --api v1`."
        )
    if full.startswith(GONE):
        head = f"tf.{full} was removed before TensorFlow 1.15, which Headrace follows"
    elif full in known_symbols():
        head = f"tf.{full} is part of TensorFlow 1.15, but Headrace does not have it yet"
    elif full.startswith("contrib."):
        head = f"tf.{full}: Headrace does not have this part of tf.contrib"
    elif full.startswith("python."):
        head = f"Headrace does not have tensorflow.{full}, a path inside of TensorFlow"
    else:
        head = f"TensorFlow 1.15 has no tf.{full}, and neither has Headrace"
    advice = instead_of(full)
    if advice is not None:
        return f"{head}. Instead: {advice}."
    near = difflib.get_close_matches(name, [n for n in available if not n.startswith("_")], 3, 0.7)
    prefix = f"tf.{namespace}." if namespace else "tf."
    hints = [prefix + n for n in near] + [f"tf.{k}" for k in _elsewhere(name, full)]
    return f"{head}. Near: {', '.join(hints)}." if hints else f"{head}."


def exists_in_v1(path: str) -> bool:
    """Whether the v1 API has ``tf.<path>``, late names included."""
    v1 = sys.modules.get("headrace.api.v1")
    first, *rest = path.split(".")
    if v1 is None or first not in {*vars(v1), *v1.LAZY_MODULES, *v1.LAZY_NAMES, *v1.MESSAGES}:
        return False
    found = v1
    for part in (first, *rest):
        have = vars(found) if isinstance(found, ModuleType) else {}
        late_names = {*have.get("LAZY_MODULES", ()), *have.get("LAZY_NAMES", ())}
        if part not in have and part not in late_names and part not in have.get("MESSAGES", ()):
            return False
        found = getattr(found, part)
    return True


def _elsewhere(name: str, full: str) -> list[str]:
    """Up to two other places of TensorFlow's API where Headrace does have ``name``."""
    places = sorted(k for k in known_symbols() if k.rpartition(".")[2] == name and k != full)
    return [k for k in places if exists_in_v1(k)][:2]


_NOTHING: Mapping[str, str] = {}


def late(table: Mapping[str, str]) -> dict[str, str]:
    """``module:attribute`` by name, from names (separated by spaces.

    ``name=attribute`` renames) by module.
    """
    places: dict[str, str] = {}
    for module, names in table.items():
        for item in names.split():
            name, _, attribute = item.partition("=")
            places[name] = f"{module}:{attribute or name}"
    return places


def module_getattr(
    namespace: str,
    module_name: str,
    messages: Mapping[str, str] = _NOTHING,
    modules: Mapping[str, str] = _NOTHING,
    names: Mapping[str, str] = _NOTHING,
) -> Callable[[str], Any]:
    """A namespace's ``__getattr__``: finds what is imported late, and explains what is missing.

    ``messages``: protocol messages (see platform.messages); ``modules``: whole modules; ``names``:
    where a name is to be found (see ``late``).
    """

    def __getattr__(name: str) -> Any:
        if name in messages:
            from headrace.api.platform.messages import find

            value = find(name, messages)
        elif name in modules:
            value = importlib.import_module(modules[name])
        elif name in names:
            module, _, attribute = names[name].partition(":")
            value = getattr(importlib.import_module(module), attribute or name)
        else:
            # dunder names are asked for by Python's own machinery, which only wants to know that
            # they are absent
            here = [] if name.startswith("__") else dir(sys.modules[module_name])
            # the name is given, or Python would add a "Did you mean" of its own
            raise AttributeError(explain(namespace, name, here) if here else name, name=name)
        setattr(sys.modules[module_name], name, value)
        return value

    return __getattr__
