"""Names that SciPy and Pillow had when TensorFlow 1 was current, added when they are imported.

Neither package is imported here: a finder waits for the program to do it.

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

__all__ = ["install", "uninstall"]


def _scipy_misc(module: ModuleType) -> dict[str, Any]:
    from scipy import special

    from headrace.dropin import scipy_images

    names = {name: getattr(scipy_images, name) for name in scipy_images.__all__}
    for name in ("comb", "factorial", "factorial2", "factorialk", "logsumexp"):
        names[name] = getattr(special, name)
    return names


def _package(module: ModuleType) -> dict[str, Any]:
    """A module that was a package: modules of :data:`_MOVED` are below it again."""
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
}
#: Modules that are no more -> where their functions are.
_MOVED = {
    "scipy.sparse.linalg.eigen.arpack": "scipy.sparse.linalg",
    "scipy.sparse.linalg.eigen.lobpcg": "scipy.sparse.linalg",
}
#: What was added, by module.
_added: dict[str, dict[str, Any]] = {}


class _MovedLoader(importlib.abc.Loader):
    """Makes a module of :data:`_MOVED`: it has the public names of where they are now."""

    def exec_module(self, module: ModuleType) -> None:
        now = importlib.import_module(_MOVED[module.__name__])
        module.__dict__.update({n: v for n, v in vars(now).items() if not n.startswith("_")})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the modules of :data:`_LATE` as Python would, and adds to them."""

    def __init__(self) -> None:
        self._own: dict[str, importlib.machinery.ModuleSpec] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in _MOVED:
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
    """Add those names that the module does not have."""
    had = _LATE[module.__name__](module)
    added = {n: v for n, v in had.items() if n not in module.__dict__}
    module.__dict__.update(added)
    _added[module.__name__] = added


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
    for name, added in _added.items():
        module = sys.modules.get(name)
        for n, value in added.items():
            if module is not None and module.__dict__.get(n) is value:
                del module.__dict__[n]
    for name in _MOVED:
        sys.modules.pop(name, None)
    _added.clear()
