"""The name under which ``apply`` is called says what comes back: true for every call in the tree.

``apply``, ``apply_many``, ``apply_list`` and ``apply_operation`` are one function at run time, and
mypy believes their declarations. Here every call whose op can be found by evaluating its first
argument in its module is compared with the outputs that the op's definition declares.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.core import build
from headrace.core.opdef import OpDef, lookup

SOURCES = Path(headrace.__file__).parent
EXPECTED = {
    "apply": "one",
    "apply_op": "one",
    "apply_many": "many",
    "apply_named": "many",
    "apply_list": "list",
    "apply_operation": "none",
}


def kind_of(opdef: OpDef) -> str:
    if not opdef.outputs:
        return "none"
    if len(opdef.outputs) == 1:
        return "list" if opdef.outputs[0].is_list else "one"
    return "mixed" if any(arg.is_list for arg in opdef.outputs) else "many"


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "headrace.core.build":
            names.update({a.asname or a.name: a.name for a in node.names if a.name in EXPECTED})
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        if node.func.id in names:
            yield names[node.func.id], node


def found_op(expression: ast.expr, namespace: dict[str, object]) -> OpDef | None:
    """The definition that the first argument means; None where it is a local variable."""
    try:
        value = eval(compile(ast.Expression(expression), "<call>", "eval"), namespace)
    except (NameError, AttributeError, KeyError):
        return None
    found = lookup(value) if isinstance(value, str) else value
    return found if isinstance(found, OpDef) else None


def modules() -> list[str]:
    return sorted(
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if "headrace.core.build import" in path.read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("path", modules())
def test_calls_name_what_comes_back(path: str) -> None:
    file = SOURCES / path
    parts = ["headrace", *Path(path).with_suffix("").parts]
    module = importlib.import_module(".".join(p for p in parts if p != "__init__"))
    namespace = dict(vars(module)) | {"lookup": lookup}
    wrong = []
    for name, call in calls(ast.parse(file.read_text(encoding="utf-8"))):
        opdef = found_op(call.args[0], namespace)
        if opdef is not None and kind_of(opdef) != EXPECTED[name]:
            wrong.append(f"{path}:{call.lineno}: {name}({opdef.name}) has {kind_of(opdef)}")
    assert not wrong, "\n".join(wrong)


def test_spellings_are_one_function() -> None:
    assert build.apply is build.apply_many is build.apply_list is build.apply_operation
    assert build.apply is build.apply_any
