"""Small pieces of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeGuard, TypeVar

__all__ = [
    "assign",
    "call_ag",
    "complete_locations",
    "define",
    "load",
    "located",
    "not_all",
    "store",
    "thunk",
    "tuple_of",
]

_Node = TypeVar("_Node", bound=ast.AST)
_LOAD, _STORE = ast.Load(), ast.Store()


def load(name: str, attribute: str | None = None) -> ast.expr:
    base: ast.expr = ast.Name(name, _LOAD)
    return base if attribute is None else ast.Attribute(base, attribute, _LOAD)


def store(name: str) -> ast.expr:
    return ast.Name(name, _STORE)


def assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([store(name)], value)


def tuple_of(items: Sequence[ast.expr]) -> ast.expr:
    return ast.Tuple(list(items), _LOAD)


def call_ag(name: str, *args: ast.expr) -> ast.expr:
    """``ag__.name(args)``"""
    return ast.Call(load("ag__", name), list(args), [])


def thunk(body: ast.expr) -> ast.expr:
    """``lambda: body``"""
    return ast.Lambda(_arguments(()), body)


def _arguments(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def define(
    name: str, parameters: Sequence[str] | ast.arguments, body: list[ast.stmt]
) -> ast.FunctionDef:
    """``def name(parameters): body``"""
    arguments = parameters if isinstance(parameters, ast.arguments) else _arguments(parameters)
    make: Callable[..., ast.FunctionDef] = ast.FunctionDef  # Python 3.12 has one field more
    more: dict[str, list[ast.AST]] = (
        {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
    )
    return make(name, arguments, body or [ast.Pass()], [], None, None, **more)


def not_all(flags: Sequence[str]) -> ast.expr:
    """``not a and not b``"""
    tests: list[ast.expr] = [ast.UnaryOp(ast.Not(), load(f)) for f in flags]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _has_place(node: ast.AST) -> TypeGuard[ast.expr]:
    """Whether a node has a line and a column (expressions, statements, arguments, ...)."""
    return "lineno" in node._attributes


def located(node: _Node, like: ast.AST) -> _Node:
    """The node at the place of another; for a compound statement that is its first line."""
    made = ast.copy_location(node, like)
    head = getattr(like, "test", None) or getattr(like, "iter", None)
    if not isinstance(like, (ast.If, ast.While, ast.For)) or head is None:
        return made
    if isinstance(made, (ast.stmt, ast.expr)):
        made.end_lineno = like.lineno
        one_line = getattr(head, "end_lineno", None) == like.lineno
        made.end_col_offset = head.end_col_offset if one_line else like.col_offset
    return made


def complete_locations(root: ast.AST) -> None:
    """Nodes without a place get the start of what they are in. (An empty range: CPython takes the
    line of a method call from the end of the attribute.)
    """
    pending: list[tuple[ast.AST, int, int]] = [(root, 1, 0)]
    while pending:
        node, line, column = pending.pop()
        if _has_place(node):
            own = getattr(node, "lineno", None)
            if own is None:
                node.lineno = node.end_lineno = line
                node.col_offset = node.end_col_offset = column
            else:
                line, column = own, node.col_offset
        pending.extend((child, line, column) for child in ast.iter_child_nodes(node))
