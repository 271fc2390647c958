"""The modules that programs get for TensorFlow's inner paths.

``import tensorflow.python.ops.array_ops`` gives a :class:`Facade`: it asks the providers that
``paths.py`` lists for the path, in turn, for each name. Paths below the public namespaces
(``tensorflow.nn``) are found by walking the attributes of the API.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from headrace.api.missing import explain
from headrace.api.paths import GENERATED, PATHS, V1
from headrace.api.platform import messages

__all__ = ["Facade", "children", "exists", "facade", "use_api", "uses_api"]


#: The API whose names ``tensorflow`` itself has.
_public = [V1]


#: Where TensorFlow's inner modules import one another from: ``python.ops.rnn`` has the attribute
#: ``rnn_cell_impl``, and programs import it from there.
_MODULE_PACKAGES = ("python.ops", "python.framework", "python.util", "python.training")


#: Modules hidden by a function of the same name: TensorFlow's package imports all names of the
#: module, so that ``from contrib.framework.python.ops import arg_scope`` is the function.
_HIDDEN_MODULES = frozenset({"contrib.framework.python.ops.arg_scope"})


class Facade(ModuleType):
    """A module that takes its names from its providers."""

    def __init__(self, name: str, path: str, root: str, providers: list[Any]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._path, self._root, self._providers = path, root, providers
        self.__all__ = sorted({n for p in providers for n in getattr(p, "__all__", ())})
        for provider in reversed(providers):  # the first provider wins
            have = vars(provider)
            self.__dict__.update(
                (n, have[n]) for n in getattr(provider, "__all__", ()) if n in have
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        below = f"{self._path}.{name}".lstrip(".")
        if below in PATHS and below not in _HIDDEN_MODULES:
            if sys.modules.get(self.__name__) is self:  # an imported module's child has a name too
                return importlib.import_module(f"{self._root}.{below}")
            return facade(below, self._root)
        for provider in self._providers:
            try:
                value = getattr(provider, name)
            except AttributeError as e:
                if e.name == name:
                    continue
                raise  # the name is there, and making it failed
            if not isinstance(provider, ModuleType) or not name.startswith("_"):
                self.__dict__[name] = value
            return value
        if self._path.startswith("python."):
            for package in _MODULE_PACKAGES:
                if f"{package}.{name}" in PATHS:
                    return facade(f"{package}.{name}", self._root)
        raise AttributeError(explain(self._path, name, self.__dir__()), name=name)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and f"{self._path}.{name}" in _HIDDEN_MODULES:
            return  # the import system makes every imported module an attribute of its package
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        provided = (n for p in self._providers for n in dir(p))
        return sorted({*self.__dict__, *(n for n in provided if not n.startswith("__"))})


class _Public:
    """A public namespace as a provider; it may come later than the path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = importlib.import_module(V1)
        for part in self._path.split("."):
            found = getattr(found, part)
        return getattr(found, name)


class _Hosted:
    """A module of a hosted package as a provider, loaded when it is asked."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from headrace.api.hosting import module

        return getattr(module(self._name), name)


class _Generated:
    """The generated functions as a provider."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from headrace.api.raw_ops import generated

        try:
            return generated(name)
        except KeyError:
            raise AttributeError(name, name=name) from None


def _provider(text: str) -> Any:
    if text == GENERATED:
        return _Generated()
    if text.startswith("<public "):
        return _Public(text[len("<public ") : -1])
    if text.startswith("<hosted "):
        return _Hosted(text[len("<hosted ") : -1])
    if text.startswith("<message "):
        return messages.module(text[len("<message ") : -1])
    return importlib.import_module(text)


def _walk(path: str) -> ModuleType | None:
    """The public namespace at ``path``, by attributes from the top."""
    found: Any = importlib.import_module(_public[0])
    for part in path.split(".") if path else ():
        found = getattr(found, part, None)
        if not isinstance(found, ModuleType):
            return None
    assert isinstance(found, ModuleType)
    return found


def use_api(name: str) -> None:
    """Which API ``tensorflow`` is: "v1" or "v2". Inner modules are the same for both."""
    _public[0] = f"headrace.api.{name}"


def uses_api(name: str) -> bool:
    return _public[0] == f"headrace.api.{name}"


def exists(path: str) -> bool:
    """Whether ``tensorflow.<path>`` can be imported."""
    return path in PATHS or _walk(path) is not None


def children(path: str) -> list[str]:
    """Names of the modules below ``path``."""
    prefix = f"{path}." if path else ""
    inner = {p[len(prefix) :].partition(".")[0] for p in PATHS if p.startswith(prefix)}
    public = _walk(path)
    return sorted(
        inner | {n for n in dir(public) if isinstance(getattr(public, n, None), ModuleType)}
    )


def facade(path: str, root: str) -> Facade:
    """A module named ``<root>.<path>``."""
    name = f"{root}.{path}" if path else root
    if path in PATHS:
        return Facade(name, path, root, [_provider(p) for p in PATHS[path]])
    public = _walk(path)
    if public is None:
        raise ModuleNotFoundError(f"No module named {name!r}")
    made = Facade(name, path, root, [public])
    made.__doc__ = public.__doc__
    return made
