"""Where op names stand outside ``ops/``: facts about ops belong on their definitions.

    python tools/op_names.py            # tables and literals per module
    python tools/op_names.py --tables   # each table, with its names

A table is a module-level set, list, tuple or dictionary with two or more names of ops in it. A
literal is any string in code that is the name of an op: ``"Add"`` in an expression counts, a
docstring that mentions it does not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

#: Modules whose words are not ops though some ops have the same names: Keras's initializers, names
#: of bijectors.
OTHER_WORDS = frozenset(
    [
        "api/contrib/bijectors.py",
        "distributions/vector_bijectors.py",
        "distributions/scalar_bijectors.py",
        "layers/identifiers.py",
    ]
)
ROOT = Path(__file__).resolve().parent.parent / "src" / "headrace"


def op_names() -> frozenset[str]:
    """The names of all ops."""
    from headrace import ops
    from headrace.core import opdef

    ops.load_all()
    return frozenset(opdef.ALL_OPS)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module outside ``ops/``, by its path below the package."""
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("ops/") and name not in OTHER_WORDS:
            yield name, ast.parse(path.read_text())


def _strings(node: ast.AST) -> list[str]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and type(n.value) is str]


def tables(names: frozenset[str]) -> dict[str, list[str]]:
    """``module:table`` and the op names in it."""
    found: dict[str, list[str]] = {}
    for module, tree in modules():
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                inside = [s for s in _strings(node.value) if s in names]
                if isinstance(target, ast.Name) and target.id != "__all__" and len(inside) >= 2:
                    found[f"{module}:{target.id}"] = inside
    return found


def literals(names: frozenset[str]) -> dict[str, int]:
    """How many op names each module has in strings."""
    found = {}
    for module, tree in modules():
        count = sum(s in names for s in _strings(tree))
        if count:
            found[module] = count
    return found


def main() -> None:
    names = op_names()
    by_table = tables(names)
    by_module = literals(names)
    if "--tables" in sys.argv:
        for table, inside in by_table.items():
            print(f"{table:60} {len(inside):4}  {', '.join(inside[:6])}")
    for module, count in sorted(by_module.items(), key=lambda m: -m[1]):
        print(f"{count:5}  {module}")
    print(f"{len(by_table)} tables, {sum(by_module.values())} literals")


if __name__ == "__main__":
    main()
