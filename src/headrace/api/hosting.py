"""Packages written for TensorFlow that Headrace runs as parts of itself: tf_slim behind
``tf.contrib.layers`` and ``slim``.

A hosted package keeps its installed files. Its modules are loaded a second time under
``headrace.hosted.<package>``, with the names ``tensorflow`` and ``<package>`` in their import
statements replaced: ``tensorflow`` by ``headrace.hosted.tensorflow``, whose modules are Headrace's.
So nothing is put into ``sys.modules`` under a name of somebody else's, and a program may use the
same package on TensorFlow itself in the same process. A package's own ``__init__`` is not run:
modules load one by one, as they are asked for.

    >>> module("tf_slim.ops.arg_scope").arg_scope
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from headrace.api import facades, paths
from headrace.api.missing import explain

__all__ = ["HOSTED", "PREFIX", "hosted_getattr", "module"]

PREFIX = "headrace.hosted"
#: The name by which hosted code reaches Headrace.
ROOT = f"{PREFIX}.tensorflow"
#: Packages that are hosted, with the reason that a missing one is reported with.
HOSTED = {"tf_slim": "tf.contrib.layers, tf.contrib.slim and parts of tf.contrib.framework"}


def module(name: str) -> ModuleType:
    """The hosted module ``tf_slim.…``; ImportError with advice if the package is not installed."""
    _install()
    return importlib.import_module(f"{PREFIX}.{name}")


class _Renaming(ast.NodeTransformer):
    """Import statements of a hosted module, with the names under which the modules are loaded
    here.
    """

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            new = _renamed(alias.name)
            if new is not None:
                # `import a.b` binds `a`, `import x.a.b as a` binds the module itself: the same for
                # `import a`
                alias.asname = alias.asname or alias.name.partition(".")[0]
                alias.name = new
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        node.module = _renamed(node.module or "") or node.module
        return node


def _renamed(name: str) -> str | None:
    top = name.partition(".")[0]
    return f"{PREFIX}.{name}" if top == "tensorflow" or top in HOSTED else None


class _Source(importlib.machinery.SourceFileLoader):
    """Loads a module of a hosted package."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = _Renaming().visit(ast.parse(data, path))
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> CodeType | None:
        """The renamed source's code, from a cache file of our own beside Python's (which hold the
        source as it is).
        """
        path = self.get_filename(fullname)
        place = Path(importlib.util.cache_from_source(path, optimization="headrace"))
        stat = Path(path).stat()
        stamp = (
            marshal.dumps((PREFIX, stat.st_mtime_ns, stat.st_size)) + importlib.util.MAGIC_NUMBER
        )
        with contextlib.suppress(OSError, ValueError, EOFError):
            kept = place.read_bytes()
            if kept.startswith(stamp):
                code: CodeType = marshal.loads(kept[len(stamp) :])
                return code
        code = self.source_to_code(self.get_data(path), path)
        with contextlib.suppress(OSError):  # an installation that cannot be written to has no cache
            place.parent.mkdir(exist_ok=True)
            temporary = place.with_suffix(f".{os.getpid()}")
            temporary.write_bytes(stamp + marshal.dumps(code))
            temporary.replace(place)
        return code


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers for everything below ``headrace.hosted``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == ROOT or fullname.startswith(ROOT + "."):
            if not facades.exists(fullname[len(ROOT) + 1 :]):
                return None
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if not fullname.startswith(PREFIX + "."):
            return None
        return _hosted_spec(fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return facades.facade(spec.name[len(ROOT) + 1 :], ROOT)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: facades come complete."""


def _hosted_spec(fullname: str) -> importlib.machinery.ModuleSpec | None:
    package, *below = fullname[len(PREFIX) + 1 :].split(".")
    if package not in HOSTED:
        return None
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            f"{HOSTED[package]} come from the package {package}, which is not installed: "
            f"pip install {package}"
        )
    place = Path(next(iter(found.submodule_search_locations)), *below)
    if not below:  # the package itself, without its __init__
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [str(place)]
        return spec
    is_package = place.is_dir()
    file = place / "__init__.py" if is_package else place.with_suffix(".py")
    if not file.is_file():
        return None
    return importlib.util.spec_from_file_location(
        fullname,
        file,
        loader=_Source(fullname, str(file)),
        submodule_search_locations=[str(place)] if is_package else None,
    )


def _install() -> None:
    if PREFIX not in sys.modules:
        sys.meta_path.insert(0, _Finder())
        package = ModuleType(PREFIX, __doc__)
        package.__path__ = []
        sys.modules[PREFIX] = package


def hosted_getattr(
    namespace: str,
    module_name: str,
    hosted: Sequence[str],
    modules: Mapping[str, str] = {},
) -> Callable[[str], Any]:
    """A namespace's ``__getattr__``: asks hosted modules in turn, then ``tensorflow``'s inner
    paths, then explains.

    ``hosted`` are names of modules, ``modules`` maps submodules of the namespace to hosted modules.
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _find(namespace, name, hosted, modules)
        if value is None:
            here = [*dir(sys.modules[module_name]), *modules]
            raise AttributeError(explain(namespace, name, here))
        setattr(sys.modules[module_name], name, value)
        return value

    return __getattr__


def _find(namespace: str, name: str, hosted: Sequence[str], modules: Mapping[str, str]) -> Any:
    if name in modules:
        place = modules[name]
        return importlib.import_module(place) if place.startswith("headrace.") else module(place)
    below = f"{namespace}.{name}"
    if below in paths.PATHS:
        _install()
        return importlib.import_module(f"{ROOT}.{below}")
    for source in hosted:
        value = getattr(module(source), name, None)
        if value is not None and not name.startswith("_") and not isinstance(value, ModuleType):
            return value
    return None
