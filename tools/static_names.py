"""Tell type checkers the names that ``tf`` imports when they are first used.

    python tools/static_names.py           # rewrite the sections of api/v1 and api/v2
    python tools/static_names.py --check   # exit 1 if a section differs from the tables

At run time ``LAZY_MODULES``, ``LAZY_NAMES`` and ``MESSAGES`` say where such a name is. A type
checker does not read these tables, so each namespace has a section below ``if _TYPE_CHECKING:``
with the same names as imports. A test runs ``--check``.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "# static names: begin (tools/static_names.py)\n", "# static names: end\n"
NAMESPACES = ("headrace.api.v1", "headrace.api.v2")


def section(namespace: str) -> str:
    """The text between the markers."""
    module = importlib.import_module(namespace)
    lines = ["if _TYPE_CHECKING:\n", "    from typing import Any as _Any\n\n"]
    imports = [_module_import(name, place) for name, place in module.LAZY_MODULES.items()]
    imports += [_name_import(name, place) for name, place in module.LAZY_NAMES.items()]
    lines += sorted(f"    {text}\n" for text in imports)
    messages = sorted(getattr(module, "MESSAGES", ()))
    lines += [f"    {name}: _Any\n" for name in messages]
    names = sorted({*module.LAZY_MODULES, *module.LAZY_NAMES, *messages})
    quoted = " ".join(f'"{name}",' for name in names)
    wrapped = textwrap.wrap(quoted, 100, initial_indent=" " * 8, subsequent_indent=" " * 8)
    lines += ["    __all__ += [\n", *(f"{line}\n" for line in wrapped), "    ]\n"]
    return "".join(lines)


def _module_import(name: str, place: str) -> str:
    package, _, last = place.rpartition(".")
    return _import(package, last, name)


def _name_import(name: str, place: str) -> str:
    module, _, attribute = place.partition(":")
    return _import(module, attribute or name, name)


def _import(module: str, name: str, alias: str) -> str:
    line = f"from {module} import {name} as {alias}"
    if len(line) + 4 <= 100:
        return line
    long = "  # noqa: E501" if len(f"{name} as {alias}") > 90 else ""
    return f"from {module} import (\n        {name} as {alias},{long}\n    )"


def file_of(namespace: str) -> Path:
    return ROOT / "src" / Path(*namespace.split(".")) / "__init__.py"


def replaced(namespace: str) -> tuple[str, str]:
    """The file's text as it is, and as it should be."""
    text = file_of(namespace).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return text, before + BEGIN + section(namespace) + END + after


def main() -> int:
    stale = []
    for namespace in NAMESPACES:
        text, wanted = replaced(namespace)
        if text != wanted:
            stale.append(namespace)
            if "--check" not in sys.argv:
                file_of(namespace).write_text(wanted, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run python tools/static_names.py")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
