"""Expressions: calls, ``and`` / ``or`` / ``not``, ``a if c else b``, ``==`` and chained
comparisons.

    f(x)          ag__.call(f)(x)
    a and b       ag__.and_(lambda: a, lambda: b)
    not a         ag__.not_(a)
    a if c else b ag__.if_exp(c, lambda: a, lambda: b, 'c')
    a == b        ag__.eq(a, b)
    a in b        ag__.in_(a, b)
    a < b < c     ag__.compare(a, (ag__.lt, lambda: b), (ag__.lt, lambda: c))

``ag__.call(f)`` gives the function to be called, so that arguments and the traceback stay as they
were written.
"""

from __future__ import annotations

import ast
from typing import Any

from headrace.autograph.syntax_nodes import call_ag, load, located, thunk, tuple_of

__all__ = ["Expressions"]

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is_",
    ast.IsNot: "is_not",
    ast.In: "in_",
    ast.NotIn: "not_in",
}

#: Builtins that look at the frame that calls them.
_FRAME_BOUND = frozenset(
    {"breakpoint", "dir", "eval", "exec", "globals", "locals", "super", "vars"}
)
_DEBUGGERS = frozenset({"ipdb", "pdb"})


class Expressions(ast.NodeTransformer):
    """Rewrites expressions; subclasses rewrite statements."""

    #: Name of the first parameter of the method around, for ``super()``.
    first_argument: str | None = None
    convert_print = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id == "super" and not node.args and self.first_argument:
                # inside the functions that branches become, ``super()`` finds neither of the two
                node.args = [load("__class__"), load(self.first_argument)]
                return node
            if function.id in _FRAME_BOUND or (function.id == "print" and not self.convert_print):
                return self.generic_visit(node)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            owner = function.value.id
            if owner == "ag__" or (owner in _DEBUGGERS and function.attr == "set_trace"):
                return self.generic_visit(node)
        self.generic_visit(node)
        node.func = located(call_ag("call", node.func), function)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        lazy = node.values[1:]
        bound = any(map(_binds, lazy))
        self.generic_visit(node)
        if bound:  # ``:=`` in a lambda would bind there
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return located(call_ag(name, *map(thunk, node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return located(call_ag("not_", node.operand), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        text = ast.unparse(node.test)
        bound = _binds(node.body) or _binds(node.orelse)
        self.generic_visit(node)
        if bound:
            return node
        made = call_ag(
            "if_exp", node.test, thunk(node.body), thunk(node.orelse), ast.Constant(text)
        )
        return located(made, node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        bound = any(map(_binds, node.comparators[1:]))
        self.generic_visit(node)
        if len(node.ops) == 1:
            if not isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
                return node
            name = _COMPARISONS[type(node.ops[0])]
            return located(call_ag(name, node.left, node.comparators[0]), node)
        if bound:
            return node
        steps = [
            tuple_of([load("ag__", _COMPARISONS[type(op)]), thunk(right)])
            for op, right in zip(node.ops, node.comparators)
        ]
        return located(call_ag("compare", node.left, *steps), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_withitem(self, node: ast.withitem) -> ast.AST:
        return node  # context managers are called as they are, as in TensorFlow

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node  # its methods are converted when they are called

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node


def _binds(node: ast.AST) -> bool:
    """Whether an expression has something that may not move into a lambda."""
    return any(isinstance(n, (ast.NamedExpr, ast.Await)) for n in ast.walk(node))


class Mangler(ast.NodeTransformer):
    """``self.__x`` of a method.

    The class is not around the converted function, so its names are spelled out.
    """

    def __init__(self, class_name: str) -> None:
        self.prefix = "_" + class_name.lstrip("_")

    def _name(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return self.prefix + name if private else name

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "attr", "arg", "name", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                setattr(node, field, self._name(value))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._name(n) for n in node.names]
        return super().generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node
