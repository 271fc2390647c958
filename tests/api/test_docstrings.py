"""Every public function and class of ``tf`` has a docstring of its own, of a few words at least.

One that takes three parameters or more besides ``name`` says more than one line about them.

The walk goes through ``tf`` (v1 and v2), their submodules and ``tf.contrib.*``, with the names
that are imported when they are first used.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from collections import deque
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

#: Objects without a docstring of their own, each with the reason.
EXEMPT: dict[str, str] = {}

#: Fewer words than this do not say what a function of TensorFlow computes.
MIN_WORDS = 5

#: With so many parameters besides ``name`` one line is not enough.
MANY_PARAMETERS = 3

_NAMESPACES = ["headrace.api.v1", "headrace.api.v2"]
_NAMESPACES += [
    f"headrace.api.contrib.{module.name}"
    for module in pkgutil.iter_modules(importlib.import_module("headrace.api.contrib").__path__)
]


def _public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None)
    listed = set(dir(module) if names is None else names)
    late = {*getattr(module, "LAZY_MODULES", ()), *getattr(module, "LAZY_NAMES", ())}
    return sorted(n for n in listed | late if not n.startswith("_"))


def _objects(root: str) -> Iterator[tuple[str, Any]]:
    """(path, function or class) of a namespace and of those below it, as far as Headrace's."""
    seen: set[str] = set()
    waiting = deque([(root.removeprefix("headrace.api."), importlib.import_module(root))])
    while waiting:
        path, module = waiting.popleft()
        if module.__name__ in seen:
            continue
        seen.add(module.__name__)
        for name in _public_names(module):
            value = getattr(module, name, None)
            if isinstance(value, ModuleType):
                if value.__name__.startswith("headrace"):
                    waiting.append((f"{path}.{name}", value))
            elif _is_own(value):
                yield f"{path}.{name}", value


def _is_own(value: Any) -> bool:
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return False
    return (value.__module__ or "").startswith("headrace")


def _own_docstring(value: Any) -> str:
    """The text that somebody wrote: nothing inherited, nothing that Python generates."""
    if inspect.isfunction(value):
        return value.__doc__ or ""
    text = vars(value).get("__doc__") or ""
    generated = [f"{value.__name__}({', '.join(getattr(value, '_fields', ()))})", enum.Enum.__doc__]
    return "" if text in generated else text


@pytest.mark.parametrize("root", _NAMESPACES)
def test_public_objects_have_docstrings(root: str) -> None:
    missing = [
        f"{path} ({value.__module__}.{value.__qualname__})"
        for path, value in _objects(root)
        if len(_own_docstring(value).split()) < MIN_WORDS and path not in EXEMPT
    ]
    assert not missing, "\n".join(
        ["no docstring of their own, or a very short one:", *sorted(missing)]
    )


def _parameters(value: Any) -> list[str]:
    try:
        return [p for p in inspect.signature(value).parameters if p != "name"]
    except (TypeError, ValueError):  # of a class whose constructor is C code
        return []


def test_many_parameters_are_explained() -> None:
    found = {
        f"{value.__module__}.{value.__qualname__}: {', '.join(_parameters(value))}"
        for root in _NAMESPACES
        for _, value in _objects(root)
        if len(_parameters(value)) >= MANY_PARAMETERS
        and len([line for line in _own_docstring(value).splitlines() if line.strip()]) <= 1
    }
    assert not found, "\n".join(["one line is not enough:", *sorted(found)])


def test_the_walk_sees_the_namespaces() -> None:
    """The check would pass if it saw nothing."""
    found = {path for root in _NAMESPACES for path, _ in _objects(root)}
    assert len(found) > 1500
    wanted = "v1.matmul v1.nn.conv2d v1.image.adjust_saturation v1.train.Saver v1.layers.dense"
    assert {*wanted.split(), "v2.nn.softmax", "contrib.rnn.GRUCell"} <= found
