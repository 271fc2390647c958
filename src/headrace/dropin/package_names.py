"""Names that packages had when TensorFlow 1 was current, added when they are imported.

No package is imported here: a finder waits for the program to do it. What SciPy's and Pillow's
images had is below, the rest in :mod:`headrace.dropin.old_packages`.

    >>> from scipy.misc import imresize
    >>> from PIL import Image; Image.ANTIALIAS
    >>> from scipy.sparse.linalg.eigen.arpack import eigsh    # graph networks
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from headrace.dropin.old_calls import set_method
from headrace.dropin.old_packages import CALLS, MOVED, NAMES

__all__ = ["install", "uninstall"]


def _scipy_misc(module: ModuleType) -> dict[str, Any]:
    from scipy import special

    from headrace.dropin import scipy_images

    names = {name: getattr(scipy_images, name) for name in scipy_images.__all__}
    for name in ("comb", "factorial", "factorial2", "factorialk", "logsumexp"):
        names[name] = getattr(special, name)
    return names


def _package(module: ModuleType) -> dict[str, Any]:
    """A module that was a package: modules of :data:`MOVED` are below it again."""
    return {"__path__": []}


def _pillow_image(module: ModuleType) -> dict[str, Any]:
    """The filters' names until Pillow 10."""
    new = {"ANTIALIAS": "LANCZOS", "CUBIC": "BICUBIC", "LINEAR": "BILINEAR"}
    return {name: getattr(module, now) for name, now in new.items()}


#: Module -> what it had.
_LATE: dict[str, Callable[[ModuleType], dict[str, Any]]] = {
    "PIL.Image": _pillow_image,
    "scipy.misc": _scipy_misc,
    "scipy.sparse.linalg.eigen": _package,
    **NAMES,
    **{name: lambda module: {} for name in CALLS if name not in NAMES},
}
#: What was added, by module: owner, name, and what was there before.
_added: dict[str, list[tuple[Any, str, Any, Any]]] = {}
_NOTHING = object()
#: Bits of ``__flags__``: types whose members cannot be set (more of them since Python 3.12), and
#: types that are made while Python runs. Members of other types cannot be set either.
_IMMUTABLE, _HEAP_TYPE = 1 << 8, 1 << 9


class _MovedLoader(importlib.abc.Loader):
    """Makes a module of :data:`MOVED`: it has the public names of where they are now."""

    def exec_module(self, module: ModuleType) -> None:
        now = importlib.import_module(MOVED[module.__name__])
        module.__dict__.update({n: v for n, v in vars(now).items() if not n.startswith("_")})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the modules of :data:`_LATE` as Python would, and adds to them."""

    def __init__(self) -> None:
        self._own: dict[str, importlib.machinery.ModuleSpec] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in MOVED:
            return importlib.machinery.ModuleSpec(fullname, _MovedLoader())
        if fullname not in _LATE:
            return None
        own = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if own is None or own.loader is None:
            return None
        self._own[fullname] = own
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=own.origin)
        spec.submodule_search_locations = own.submodule_search_locations
        spec.cached, spec.has_location = own.cached, own.has_location
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        own = self._own[spec.name]
        assert own.loader is not None
        return own.loader.create_module(own)

    def exec_module(self, module: ModuleType) -> None:
        own = self._own.pop(module.__name__)
        assert own.loader is not None
        module.__spec__, module.__loader__ = own, own.loader
        own.loader.exec_module(module)
        _add(module)


_finder = _Finder()


def _add(module: ModuleType) -> None:
    """Add those names that the module does not have, and the functions that take old calls."""
    changed = _added.setdefault(module.__name__, [])
    calls = CALLS.get(module.__name__, {})
    for path, value in {**_LATE[module.__name__](module), **calls}.items():
        owner_path, _, name = path.rpartition(".")
        owner = getattr(module, owner_path) if owner_path else module
        own = owner.__dict__.get(name, _NOTHING)
        if path in calls:
            value = value(getattr(owner, name))
        elif own is not _NOTHING:
            continue
        _set(owner, name, value)
        changed.append((owner, name, value, own))


def _set(owner: Any, name: str, value: Any) -> None:
    """Set a member of a module or a class, which may be written in C; :data:`_NOTHING` deletes."""
    if isinstance(owner, type) and owner.__flags__ & (_IMMUTABLE | _HEAP_TYPE) != _HEAP_TYPE:
        set_method(owner, name, None if value is _NOTHING else value)
    elif value is _NOTHING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def install() -> None:
    """Add the names, at once or when the modules are imported."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for name in _LATE:
        if name in sys.modules and name not in _added:
            _add(sys.modules[name])


def uninstall() -> None:
    """Undo :func:`install`."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for owner, name, value, own in (c for changed in _added.values() for c in changed):
        if owner.__dict__.get(name) is value:
            _set(owner, name, own)
    for name in MOVED:
        sys.modules.pop(name, None)
    _added.clear()
