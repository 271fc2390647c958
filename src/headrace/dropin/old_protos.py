"""Protocol buffers that were compiled when TensorFlow 1 was current.

Packages of that time ship modules ``…_pb2.py`` which build their descriptors by hand. Today's
protobuf refuses these (*Descriptors cannot be created directly*). The whole file description is in
each module, though, as bytes: from :func:`install` on such a module is built from these, as a newly
compiled one is. Modules of today's form are left to Python.

    >>> from sonnet.protos import module_pb2
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

__all__ = ["install", "uninstall"]

_SUFFIX = "_pb2"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules ``…_pb2`` of the old form."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.endswith(_SUFFIX):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        tree = _old_form(Path(spec.origin))
        if tree is None:
            return None
        spec.loader = _Loader(tree, spec.origin)
        return spec


class _Loader(importlib.abc.Loader):
    """Builds a module from the file description in it."""

    def __init__(self, tree: ast.Module, file: str) -> None:
        self._tree, self._file = tree, file

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        from google.protobuf import descriptor_pool
        from google.protobuf.internal import builder

        names = module.__dict__
        exec(compile(_imports(self._tree), self._file, "exec"), names)
        described = _description(self._tree)
        assert described is not None
        names["DESCRIPTOR"] = descriptor_pool.Default().AddSerializedFile(described)
        builder.BuildMessageAndEnumDescriptors(names["DESCRIPTOR"], names)
        builder.BuildTopDescriptorsAndMessages(names["DESCRIPTOR"], module.__name__, names)


def _old_form(file: Path) -> ast.Module | None:
    """The module's tree if it makes a ``FileDescriptor`` itself."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if "FileDescriptor(" not in text or "serialized_pb" not in text:
        return None
    tree = ast.parse(text, str(file))
    return tree if _description(tree) is not None else None


def _imports(tree: ast.Module) -> ast.Module:
    """The imports of other compiled files, on which this one depends."""
    found: list[ast.stmt] = [
        node
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and any(alias.name.endswith(_SUFFIX) for alias in node.names)
    ]
    return ast.Module(found, [])


def _description(tree: ast.Module) -> bytes | None:
    """The argument ``serialized_pb`` of the call of ``FileDescriptor``: ``b'…'`` or ``_b('…')``."""
    for node in tree.body:
        call = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(call, ast.Call) or not _called(call).endswith("FileDescriptor"):
            continue
        for keyword in call.keywords:
            if keyword.arg == "serialized_pb":
                return _bytes(keyword.value)
    return None


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _bytes(node: ast.expr) -> bytes | None:
    if isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, str):
        return value.encode("latin-1")
    return value if isinstance(value, bytes) else None


_finder = _Finder()


def install() -> None:
    """Read old modules from now on."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Undo :func:`install`; modules that were read stay."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
