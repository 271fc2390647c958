"""Where op names stand outside ``ops/``: facts about ops belong on their definitions.

    python tools/op_names.py            # tables and literals per module
    python tools/op_names.py --tables   # each table, with its names
    python tools/op_names.py --facts    # where ops are asked for by name though a trait would do

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
        "distributions/shape_bijectors.py",
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


#: Calls whose arguments name an op to build it, to look it up, or to write its code.
_BUILDING = frozenset(
    [
        *("Activation", "Composite", "VariableHandle", "add", "apply_op", "cast", "create_op"),
        *("define", "elements", "gradient", "lookup", "new", "reduce", "_compare", "_dense"),
        *("_made", "_momentum_step", "_reduce", "_scatter", "_scatter_rows", "_variable", "_write"),
    ]
)
#: Calls whose arguments are what a rewrite looks for; entries of a rule table; names of results.
_LOOKING = frozenset(["Rule", "_on", "producer", "take"])
_REGISTERING = frozenset(["_math", "_rule", "_simple", "fromkeys"])
_NAMING = frozenset(["_full_name", "get_collection", "name_scope"])


def _kind_of_call(call: ast.Call) -> str:
    function = ast.unparse(call.func).rpartition(".")[2]
    kinds = (
        (_LOOKING, "pattern"),
        (_NAMING, "name"),
        (_REGISTERING, "table"),
        (_BUILDING, "built"),
    )
    return next((kind for names, kind in kinds if function in names), "")


def _kind(around: list[ast.AST]) -> str:
    """What a literal is there for, by what is around it, the innermost first."""
    for node, outer in zip(around, [*around[1:], None]):
        if isinstance(node, ast.Compare):
            return "fact"
        if isinstance(node, ast.keyword) and node.arg in ("name", "op", "type", "after"):
            return {"name": "name", "after": "pattern"}.get(node.arg, "built")
        kind = _kind_of_call(node) if isinstance(node, ast.Call) else ""
        if kind:
            return kind
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(outer, ast.Module):
            return "table"
        if isinstance(node, ast.arguments):
            return "name"
    return "fact"


def kinds(names: frozenset[str]) -> Iterator[tuple[str, str, int]]:
    """(kind, module, line) of every literal: "built", "pattern", "table", "name", "file", "fact".

    An op that is compared with in ``rewrite/`` is part of a pattern, one in ``formats/`` stands in
    a file, where nodes have names and no definitions; everywhere else it is a fact about the op.
    """
    for module, tree in modules():
        pending: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
        while pending:
            node, around = pending.pop()
            if isinstance(node, ast.Constant) and type(node.value) is str and node.value in names:
                kind = _kind(around)
                if kind == "fact":
                    package = module.partition("/")[0]
                    kind = {"rewrite": "pattern", "formats": "file"}.get(package, kind)
                yield kind, module, node.lineno
            pending += [(child, [node, *around]) for child in ast.iter_child_nodes(node)]


def main() -> None:
    names = op_names()
    by_table = tables(names)
    by_module = literals(names)
    if "--facts" in sys.argv:
        for kind, module, line in kinds(names):
            if kind == "fact":
                print(f"{module}:{line}")
        return
    if "--tables" in sys.argv:
        for table, inside in by_table.items():
            print(f"{table:60} {len(inside):4}  {', '.join(inside[:6])}")
    for module, count in sorted(by_module.items(), key=lambda m: -m[1]):
        print(f"{count:5}  {module}")
    print(f"{len(by_table)} tables, {sum(by_module.values())} literals")


if __name__ == "__main__":
    main()
