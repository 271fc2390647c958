"""Statements: branches and loops as functions over the variables that they write.

    if c:                      def ag__set_1(ag__v): nonlocal y; …
        y = a                  def ag__body_1(): nonlocal y; y = a
    else:             ->       def ag__else_1(): nonlocal y; y = b
        y = b                  ag__.if_stmt(c, ag__body_1, ag__else_1,
                                            ag__get_1, ag__set_1, ('y',), 1)

The functions bind the function's own variables (``nonlocal``), so a branch that is decided in
Python runs exactly as it was written; ``ag__get`` and ``ag__set`` read and write those variables
that a staged branch or loop must carry. A variable that has no value stays without one: reading it
is the ``UnboundLocalError`` that Python gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from headrace.autograph import jumps
from headrace.autograph.activity import Liveness, Reach, composite_parts, declared, modified
from headrace.autograph.expressions import Expressions
from headrace.autograph.syntax_nodes import assign, call_ag, define, load, located, thunk, tuple_of

__all__ = ["convert_function"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DIRECTIVE = "set_loop_options"


def convert_function(
    node: ast.FunctionDef | ast.Lambda, convert_print: bool, convert_assert: bool
) -> None:
    """Rewrite a function, and those inside it, in place."""
    _Statements(convert_print, convert_assert).function(node)


class _Scope:
    """One function that is being rewritten."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.globals, self.nonlocals = declared(node.body)
        self.to_declare: set[str] = set()
        self.parameters = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        if not any(
            isinstance(n, (ast.If, ast.While, ast.For)) for n in jumps.own_statements(node.body)
        ):
            self.own: set[str] = set()
            return
        names, _ = modified(node.body)
        self.own = names - self.globals - self.nonlocals
        self.live = Liveness(node.body, (self.globals | self.nonlocals) & names)


class _Statements(Expressions):
    def __init__(self, convert_print: bool, convert_assert: bool) -> None:
        self.convert_print = convert_print
        self.convert_assert = convert_assert
        self.scopes: list[_Scope] = []
        self.count = 0

    # functions ------------------------------------------------------------------------------------
    def function(self, node: ast.FunctionDef | ast.Lambda) -> None:
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return
        if _is_generator(node):
            return
        outer_first = self.first_argument
        positional = [*node.args.posonlyargs, *node.args.args]
        if not self.scopes:
            self.first_argument = positional[0].arg if positional else None
        jumps.lower(node)
        scope = _Scope(node)
        self.scopes.append(scope)
        node.body = self.body(node.body) or [located(ast.Pass(), node)]
        self.scopes.pop()
        # an annotation without a value makes a name local and compiles to nothing
        missing = sorted((scope.to_declare & scope.own) - scope.parameters)
        names: list[ast.stmt] = [
            located(ast.AnnAssign(ast.Name(n, ast.Store()), ast.Constant(0), None, 1), node)
            for n in missing
        ]
        head = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body = [*node.body[:head], *names, *node.body[head:]]
        self.first_argument = outer_first

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d if d is None else self.visit(d) for d in node.args.kw_defaults]
        self.function(node)
        return node

    def body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            made = self.visit(statement)
            if isinstance(made, list):
                out.extend(made)
            elif made is not None:
                out.append(made)
        return out

    # branches and loops
    # -----------------------------------------------------------------------------
    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        block = _Block(self, node, [*node.body, *node.orelse])
        test = self.visit(node.test)
        body = block.function("body", (), self.body(node.body))
        orelse = block.function("else", (), self.body(node.orelse))
        made = call_ag(
            "if_stmt", test, load(body.name), load(orelse.name), *block.state(), block.outputs()
        )
        return block.statements([body, orelse], made)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        block = _Block(self, node, node.body)
        options = self.options(node)
        body = block.function("body", (), self.body(node.body))
        test_value: ast.stmt = located(ast.Return(self.visit(node.test)), node.test)
        test = block.function("test", (), [test_value], binds=False)
        made = call_ag("while_stmt", load(test.name), load(body.name), *block.state(), options)
        return block.statements([body, test], made)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        target: ast.stmt = located(ast.Assign([node.target], load("ag__item")), node)
        extra = getattr(node, "ag__extra_test", None)
        block = _Block(self, node, [*node.body, target])
        options = self.options(node)
        iterated = self.visit(node.iter)
        functions = [block.function("body", ("ag__item",), [target, *self.body(node.body)])]
        extra_name: ast.expr = ast.Constant(None)
        if extra is not None:
            value: ast.stmt = located(ast.Return(self.visit(extra)), node)
            functions.append(block.function("test", (), [value], binds=False))
            extra_name = load(functions[-1].name)
        iterate = ast.Constant(ast.unparse(node.target))
        made = call_ag(
            "for_stmt",
            iterated,
            extra_name,
            load(functions[0].name),
            *block.state(),
            options,
            iterate,
        )
        return block.statements(functions, made)

    def options(self, node: ast.While | ast.For) -> ast.expr:
        """The arguments of ``set_loop_options`` at the head of a loop, as a dict made before the
        loop.
        """
        found = [(i, s) for i, s in enumerate(node.body) if _is_directive(s)]
        if not found:
            return ast.Dict([], [])
        at, statement = found[0]
        if any(not _is_flag(s) for s in node.body[:at]):
            raise jumps.UnsupportedError(
                f'"{_DIRECTIVE}" must be the first statement in the loop block'
            )
        del node.body[at]
        if not node.body:
            node.body.append(located(ast.Pass(), node))
        given = statement.value  # type: ignore[attr-defined]
        self.generic_visit(given)
        return ast.Call(load("ag__", "loop_options"), given.args, given.keywords)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        if not self.convert_assert:
            return node
        message = node.msg if node.msg is not None else ast.Constant(None)
        return located(ast.Expr(call_ag("assert_stmt", node.test, thunk(message))), node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return node


class _Block:
    """One branch or loop: the variables that it carries and the functions that are made for it."""

    def __init__(self, owner: _Statements, node: ast.stmt, parts: Sequence[ast.AST]) -> None:
        self.node = node
        scope = self.scope = owner.scopes[-1]
        owner.count += 1
        self.number = owner.count
        self.names, composites = modified(parts)
        scope.to_declare |= self.names
        reach: Reach = scope.live.at[id(node)]
        carried = [n for n in self.names if n in reach.before or n in reach.after]
        parents = {
            name: target
            for name, target in composites.items()
            if composite_parts(target) <= reach.before
        }
        results = sorted([n for n in carried if n in reach.after] + list(parents))
        inputs = sorted(n for n in carried if n not in reach.after)
        self.composites = parents
        self.symbols = [*results, *inputs]
        self.results = len(results)

    def declarations(self, names: Iterable[str]) -> list[ast.stmt]:
        names = sorted(names)
        out: list[ast.stmt] = []
        global_names = [n for n in names if n in self.scope.globals]
        if global_names:
            out.append(ast.Global(global_names))
        others = [n for n in names if n not in self.scope.globals]
        if others:
            out.append(ast.Nonlocal(others))
        return [located(s, self.node) for s in out]

    def function(
        self,
        kind: str,
        parameters: Sequence[str],
        body: list[ast.stmt],
        binds: bool = True,
    ) -> ast.FunctionDef:
        if binds:
            body = [*self.declarations(self.names), *body]
        return define(f"ag__{kind}_{self.number}", parameters, body)

    def state(self) -> list[ast.expr]:
        names = tuple_of([ast.Constant(_shown(s)) for s in self.symbols])
        return [load(f"ag__get_{self.number}"), load(f"ag__set_{self.number}"), names]

    def outputs(self) -> ast.expr:
        return ast.Constant(self.results)

    def statements(self, functions: Sequence[ast.stmt], made: ast.expr) -> list[ast.stmt]:
        parts = [self._getter(), self._setter(), *functions, ast.Expr(made)]
        return [located(p, self.node) for p in parts]

    def _read(self, name: str) -> ast.expr:
        if name not in self.composites:
            return load(name)
        return ast.parse(name, mode="eval").body

    def _getter(self) -> ast.stmt:
        values = [
            load(s)
            if _is_internal(s)
            else call_ag("value_of", thunk(self._read(s)), ast.Constant(s))
            for s in self.symbols
        ]
        return define(f"ag__get_{self.number}", (), [ast.Return(tuple_of(values))])

    def _setter(self) -> ast.stmt:
        simple = [s for s in self.symbols if s not in self.composites]
        body = self.declarations(simple)
        for i, name in enumerate(self.symbols):
            item = ast.Subscript(load("ag__v"), ast.Constant(i), ast.Load())
            body.extend(self._unset_or_set(name, item))
        return define(f"ag__set_{self.number}", ("ag__v",), body)

    def _unset_or_set(self, name: str, item: ast.expr) -> list[ast.stmt]:
        if _is_internal(name):
            return [assign(name, item)]
        if name not in self.composites:
            unset: list[ast.stmt] = [ast.Delete([ast.Name(name, ast.Del())])]
            return [assign(name, item), ast.If(call_ag("is_undefined", load(name)), unset, [])]
        target = self._read(name)
        assert isinstance(target, (ast.Attribute, ast.Subscript))
        if isinstance(target, ast.Attribute):
            forget = call_ag("unset_attribute", thunk(target.value), ast.Constant(target.attr))
        else:
            forget = call_ag("unset_item", thunk(target.value), target.slice)
        written = self._read(name)
        written.ctx = ast.Store()  # type: ignore[attr-defined]
        given: list[ast.stmt] = [ast.Assign([written], item)]
        return [ast.If(call_ag("is_undefined", item), [ast.Expr(forget)], given)]


def _is_internal(symbol: str) -> bool:
    """Whether it is a flag of the conversion, which always has a value."""
    return symbol.startswith("ag__")


def _shown(symbol: str) -> str:
    """The name that a user sees in a message: TensorFlow's for the flags."""
    if not _is_internal(symbol):
        return symbol
    plain = symbol[len("ag__") :]
    return plain.rstrip("0123456789") if plain[:5] in ("break", "conti") else plain


def _is_generator(node: ast.FunctionDef) -> bool:
    pending: list[ast.AST] = list(node.body)
    while pending:
        at = pending.pop()
        if isinstance(at, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(at, (*_FUNCTIONS, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(at))
    return False


def _is_directive(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    function = node.value.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == _DIRECTIVE


def _is_flag(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id.startswith("ag__")
    )
