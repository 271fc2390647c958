"""What to say about a name that the v2 namespaces do not have, and names that are imported late."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from headrace.api.missing import exists_in_v1, explain
from headrace.api.replacements import instead_of

__all__ = ["module_getattr"]

_NOTHING: Mapping[str, str] = {}


def module_getattr(
    namespace: str,
    module_name: str,
    modules: Mapping[str, str] = _NOTHING,
    names: Mapping[str, str] = _NOTHING,
    fallback: str | None = None,
) -> Callable[[str], Any]:
    """A namespace's ``__getattr__``.

    ``fallback`` is a namespace of the v1 API whose names serve here too.
    """

    def __getattr__(name: str) -> Callable[..., Any] | ModuleType | type[Any]:
        if name in modules:
            value = importlib.import_module(modules[name])
        elif name in names:
            module, _, attribute = names[name].partition(":")
            value = getattr(importlib.import_module(module), attribute or name)
        elif fallback is not None and not name.startswith("_"):
            value = getattr(importlib.import_module(fallback), name)
        else:
            raise AttributeError(_explain(namespace, name, module_name), name=name)
        setattr(sys.modules[module_name], name, value)
        return value

    return __getattr__


def _explain(namespace: str, name: str, module_name: str) -> str:
    if name.startswith("__"):
        return name
    import difflib

    prefix = f"tf.{namespace}." if namespace else "tf."
    full = f"{namespace}.{name}".lstrip(".")
    advice = instead_of(full, "v2")
    if advice is None and exists_in_v1(full):
        return explain(namespace, name, ())
    here = [n for n in dir(sys.modules[module_name]) if not n.startswith("_")]
    near = difflib.get_close_matches(name, here, 3, 0.7)
    hint = f" Near: {', '.join(prefix + n for n in near)}." if near else ""
    if advice is not None and not near:
        hint = f" Instead: {advice}."
    return f"{prefix}{name}: Headrace's v2 API does not have it.{hint}"
