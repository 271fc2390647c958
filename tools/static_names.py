"""Tell type checkers the names that ``tf`` imports when they are first used.

    python tools/static_names.py           # rewrite the sections of api/v1 and api/v2
    python tools/static_names.py --check   # exit 1 if a section differs from the tables

At run time a namespace's ``__getattr__`` knows where such a name is. A type checker does not run
it, so each namespace that imports late has a section below ``if _typing.TYPE_CHECKING:`` with the
same names as imports. A test runs ``--check``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
API = ROOT / "src" / "headrace" / "api"
BEGIN, END = "# static names: begin (tools/static_names.py)\n", "# static names: end\n"


class Tables(NamedTuple):
    """What a namespace imports late: modules and ``module:name`` by name, and messages."""

    modules: Mapping[str, str]
    names: Mapping[str, str]
    messages: frozenset[str] = frozenset()


def tables_of(path: Path) -> Tables:
    """Read from the ``__getattr__`` that ``module_getattr`` made for this file."""
    if path == API / "v1" / "data.py":
        data = importlib.import_module("headrace.data")
        names = {name: f"headrace.data.api.{place}" for name, place in data._NAMES.items()}
        return Tables({"experimental": "headrace.data.api.data_experimental"}, names)
    module = importlib.import_module(dotted(path))
    found = inspect.getclosurevars(vars(module)["__getattr__"]).nonlocals
    names = dict(found.get("names", {}))
    if found.get("fallback"):
        names = {**_fallback_names(module, found["fallback"]), **names}
    return Tables(found.get("modules", {}), names, frozenset(found.get("messages", ())))


def _fallback_names(module: ModuleType, fallback: str) -> dict[str, str]:
    """The names of the v1 namespace that serve in this v2 namespace too."""
    path = file_of(fallback)
    late = Tables({}, {}) if BEGIN not in path.read_text(encoding="utf-8") else tables_of(path)
    public = {*importlib.import_module(fallback).__all__, *late.names, *late.modules}
    return {name: f"{fallback}:{name}" for name in public - bound(file_of(module.__name__))}


def bound(path: Path) -> set[str]:
    """Names that the file itself imports or defines at run time."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return names


def section(path: Path) -> str:
    """The text between the markers."""
    tables = tables_of(path)
    here = bound(path)
    places = [(*_module_place(place), n) for n, place in tables.modules.items() if n not in here]
    places += [(*_name_place(n, place), n) for n, place in tables.names.items() if n not in here]
    renamed = sorted(alias for _, name, alias in places if name != alias)
    whole = path.parent in (API / "v1", API / "v2") and path.name == "__init__.py"
    lines = ["if _typing.TYPE_CHECKING:\n"]
    if tables.messages:
        lines.append("    from typing import Any as _Any\n\n")
    lines += [f"    {_import(*place)}\n" for place in sorted(places, key=_import_order)]
    lines += ["\n"] if not whole and (tables.messages or renamed) else []
    lines += [f"    {name}: _Any\n" for name in sorted(tables.messages)]
    if whole:
        listed = _listed(path)
        lines += _all_names(
            sorted({*tables.modules, *tables.names, *tables.messages}.difference(listed))
        )
    else:
        lines += _exported(renamed, "__all__ +=" if "__all__" in here else "__all__ =")
    return "".join(lines)


def _listed(path: Path) -> set[str]:
    """The strings of the file's ``__all__ = [...]``."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return {c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)}
    return set()


def _all_names(names: list[str]) -> list[str]:
    """``compat.v1`` re-exports these two namespaces by ``import *``, which reads ``__all__``."""
    if not names:
        return []
    quoted = " ".join(f'"{name}",' for name in names)
    wrapped = textwrap.wrap(quoted, 100, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return ["    __all__ += [\n", *(f"{line}\n" for line in wrapped), "    ]\n"]


def _exported(names: list[str], verb: str) -> list[str]:
    """``import A as B`` exports nothing to a strict checker unless ``__all__`` has it."""
    rows = textwrap.wrap(" ".join(f'"{name}",' for name in names), 80, break_on_hyphens=False)
    verbs = [verb, *["__all__ +="] * len(rows)]
    return [f"    {v} [{row.rstrip(',')}]\n" for v, row in zip(verbs, rows)]


def _module_place(place: str) -> tuple[str, str]:
    package, _, last = place.rpartition(".")
    return package, last


def _name_place(name: str, place: str) -> tuple[str, str]:
    module, _, attribute = place.partition(":")
    return module, attribute or name


def _import_order(place: tuple[str, str, str]) -> tuple[str, int, str, str]:
    """ruff's order: by module; then constants, classes, functions."""
    module, name, alias = place
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return module, kind, name.casefold(), alias


def _import(module: str, name: str, alias: str) -> str:
    line = f"from {module} import {name} as {alias}"
    if len(line) + 4 <= 100:
        return line
    long = "  # noqa: E501" if len(f"{name} as {alias}") > 90 else ""
    return f"from {module} import (\n        {name} as {alias},{long}\n    )"


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_of(namespace: str) -> Path:
    path = ROOT / "src" / Path(*namespace.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def namespaces() -> list[Path]:
    """The files that have a section."""
    files = sorted([*(API / "v1").rglob("*.py"), *(API / "v2").rglob("*.py")])
    return [path for path in files if BEGIN in path.read_text(encoding="utf-8")]


def replaced(path: Path) -> tuple[str, str]:
    """The file's text as it is, and as it should be."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return text, before + BEGIN + section(path) + END + after


def main() -> int:
    stale = []
    for path in namespaces():
        text, wanted = replaced(path)
        if text != wanted:
            stale.append(dotted(path))
            if "--check" not in sys.argv:
                path.write_text(wanted, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run python tools/static_names.py")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
