"""Which public names are compared with TensorFlow 1.15: found by running the tests that do it.

A pytest plugin (``tools/tested_symbols.py`` runs it). Modules of the API note the names that code
beside the golden files asks them for: programs of tests/golden, calls kept as text, cases of the
differential tool. Such code runs on TensorFlow 1.15 too, and a test compares the outcomes. What any
other test uses does not count, nor what Headrace itself or a hosted package uses.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
#: Code that is run on both engines: by folder, or as text without a file.
_COMPARED = (
    str(HERE) + os.sep,
    str(HERE.parents[1] / "tools" / "differential") + os.sep,
    str(HERE.parent / "data" / "data_cases"),
    "<string>",
)
#: Files of tests/golden that make or compare, and so use names that nothing compares.
_MACHINERY = {"recording.py", "proven.py", "store.py", "observe.py"}

#: Module -> the dotted paths (without ``tf.``) by which programs reach it.
_paths: dict[int, set[str]] = {}
_noted: set[tuple[int, str]] = set()


class _Noting(ModuleType):
    """A module that notes which of its names compared code asks for."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not name.startswith("__") or name == "__version__":
            _note(self, name, value, sys._getframe(1).f_code.co_filename)
        return value


def _note(module: ModuleType, name: str, value: object, file: str) -> None:
    if isinstance(value, ModuleType):
        if value.__name__.startswith("headrace."):
            for path in list(_paths[id(module)]):
                watch(value, f"{path}.{name}".lstrip("."))
    elif file.startswith(_COMPARED) and os.path.basename(file) not in _MACHINERY:
        _noted.add((id(module), name))


def watch(module: ModuleType, path: str) -> None:
    """Note what is asked of ``module``, which programs call ``tf.<path>``."""
    if path.count(".") > 6:  # compat.v1.compat.v1...
        return
    _paths.setdefault(id(module), set()).add(path)
    if type(module) is ModuleType:
        module.__class__ = _Noting


def names() -> list[str]:
    """The dotted names that were noted, and attributes of classes among them."""
    from tests.golden.inner_paths import ASKED

    dotted = (f"{path}.{name}".lstrip(".") for at, name in _noted for path in _paths[at])
    found = {n.replace("compat.v1.", "") for n in dotted if "compat.v2" not in n} | ASKED
    attributes = _attributes()
    return sorted(found | {f"{n}.{a}" for n in found for a in attributes.get(n.split(".")[-1], ())})


def _attributes() -> dict[str, set[str]]:
    """Class name -> attributes, from ``….Class.attribute`` in the sources of compared programs.

    Classes cannot note what is asked of them as modules can.
    """
    found: dict[str, set[str]] = {}
    for file in [*HERE.glob("*.py"), *(HERE.parent / "data" / "data_cases").glob("*.py")]:
        tree = ast.parse(file.read_text())
        short = _short_names(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute):
                continue
            owner = node.value
            if isinstance(owner, ast.Attribute):
                found.setdefault(owner.attr, set()).add(node.attr)
            elif isinstance(owner, ast.Name) and owner.id in short:
                found.setdefault(short[owner.id], set()).add(node.attr)
    return {c: a for c, a in found.items() if c[:1].isupper()}


def _short_names(tree: ast.AST) -> dict[str, str]:
    """``k = tf.GraphKeys`` makes ``k`` a name of the class."""
    return {
        node.targets[0].id: node.value.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Attribute)
    }


def pytest_configure(config: pytest.Config) -> None:
    """Watch the public API from the first import of a test on."""
    import headrace
    from headrace.api import v1

    watch(headrace, "")
    watch(v1, "")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the names to the file that HEADRACE_TESTED_SYMBOLS names."""
    Path(os.environ["HEADRACE_TESTED_SYMBOLS"]).write_text("\n".join(names()) + "\n")
