"""What statements read and write, and which names are live around each branch and loop.

The trees that are looked at have no jumps left (see ``jumps.py``), so that liveness is one walk
backwards, twice through a loop's body. A *symbol* is a name, ``self.x``, ``d['k']`` or ``d[i]``: an
attribute or item of a symbol, written as in the source. Composite symbols are written where they
are assigned; reading one reads the name at its root.

>>> names, composites = modified(ast.parse("x = self.y = z").body)
>>> names, list(composites)
({'x'}, ['self.y'])
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Liveness", "Reach", "bound_names", "composite_parts", "declared", "modified", "reads"]

Names = frozenset[str]
_NONE: Names = frozenset()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


# symbols ----------------------------------------------------------------------------------------


def symbol(node: ast.AST) -> str | None:
    """The symbol that an assignment target names, if it is one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        parent = symbol(node.value)
        return None if parent is None else f"{parent}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Name, ast.Constant)):
        parent = symbol(node.value)
        return None if parent is None else f"{parent}[{ast.unparse(node.slice)}]"
    return None


def composite_parts(node: ast.AST) -> Names:
    """The plain names that a composite symbol is made of: ``d[i].x`` -> d, i."""
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _targets(node: ast.AST) -> Iterable[ast.AST]:
    """Single targets inside an assignment target."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _targets(item)
    elif isinstance(node, ast.Starred):
        yield from _targets(node.value)
    else:
        yield node


class _Writes(ast.NodeVisitor):
    """Collects written symbols of statements, not entering functions and classes."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.composites: dict[str, ast.AST] = {}

    def _write(self, target: ast.AST) -> None:
        for one in _targets(target):
            if isinstance(one, ast.Name):
                self.names.add(one.id)
                continue
            name = symbol(one)
            if name is not None:
                self.composites[name] = one

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._write(target)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._write(node.target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._write(node.target)
            self.visit(node.value)
        elif isinstance(node.target, ast.Name):
            self.names.add(node.target.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.names.add(node.target.id)
        self.visit(node.value)

    def visit_For(self, node: ast.For) -> None:
        self._write(node.target)
        self.generic_visit(node)

    def visit_withitem(self, node: ast.withitem) -> None:
        if node.optional_vars is not None:
            self._write(node.optional_vars)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._write(target)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.names.add(node.asname or node.name.split(".")[0])

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.names.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.names.add(node.rest)
        self.generic_visit(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.names.add(node.name)

    visit_FunctionDef = _definition
    visit_AsyncFunctionDef = _definition
    visit_ClassDef = _definition

    def visit_Lambda(self, node: ast.Lambda) -> None:
        return

    def _comprehension(self, node: ast.AST) -> None:
        # its targets are its own, but ``:=`` inside binds outside
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.names.add(inner.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def modified(nodes: Sequence[ast.AST]) -> tuple[set[str], dict[str, ast.AST]]:
    """Names, and composite symbols with a node for each, that the statements write."""
    found = _Writes()
    for node in nodes:
        found.visit(node)
    return found.names, found.composites


def bound_names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Names:
    """Parameters and local names of a function."""
    arguments = [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
    if isinstance(node, ast.Lambda):
        return frozenset(arguments)
    names, _ = modified(node.body)
    globals_, nonlocals = declared(node.body)
    return frozenset({*arguments, *names} - globals_ - nonlocals)


def declared(body: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """Names declared ``global`` and ``nonlocal`` in a function's body."""
    globals_: set[str] = set()
    nonlocals: set[str] = set()
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Global):
            globals_.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            nonlocals.update(node.names)
        elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)) and not isinstance(
            node, (*_FUNCTIONS, ast.ClassDef)
        ):
            pending.extend(ast.iter_child_nodes(node))
    return globals_, nonlocals


# reads ------------------------------------------------------------------------------------------


def reads(node: ast.AST | None, functions: dict[str, Names]) -> set[str]:
    """Names that an expression (or a whole definition) reads. Reading the name of a function that
    was defined in here reads what the function reads: it is about to be called.
    """
    found: set[str] = set()
    if node is None:
        return found
    pending: list[ast.AST] = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, ast.Name):
            if isinstance(at.ctx, ast.Load):
                found.add(at.id)
                found |= functions.get(at.id, _NONE)
        elif isinstance(at, _FUNCTIONS):
            found |= free_names(at, functions)
            pending.extend(at.args.defaults)
            pending.extend(d for d in at.args.kw_defaults if d is not None)
        elif isinstance(at, _COMPREHENSIONS):
            own = {
                n.id
                for g in at.generators
                for t in _targets(g.target)
                for n in ast.walk(t)
                if isinstance(n, ast.Name)
            }
            inside: set[str] = set()
            for child in ast.iter_child_nodes(at):
                inside |= reads(child, functions)
            found |= inside - own
        else:
            pending.extend(ast.iter_child_nodes(at))
    return found


def free_names(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, functions: dict[str, Names]
) -> set[str]:
    """What a function defined here reads of its surroundings."""
    body: list[ast.AST] = (
        [node.body] if isinstance(node, ast.Lambda) else [*node.body, *node.decorator_list]
    )
    found: set[str] = set()
    for part in body:
        found |= reads(part, functions)
    return found - bound_names(node)


# liveness ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """Names that are live before and after a statement."""

    before: Names
    after: Names


class Liveness:
    """``at[id(statement)]`` for every if, while and for of a jump-free body."""

    def __init__(self, body: Sequence[ast.stmt], always: Iterable[str] = ()) -> None:
        self.at: dict[int, Reach] = {}
        self.functions = self._local_functions(body)
        self.block(body, frozenset(), frozenset(always))

    @staticmethod
    def _local_functions(body: Sequence[ast.stmt]) -> dict[str, Names]:
        """Free names of the functions defined in here, those of the functions they call
        included.
        """
        own: dict[str, set[str]] = {}
        pending: list[ast.AST] = list(body)
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                own.setdefault(node.name, set()).update(free_names(node, {}))
            elif not isinstance(node, (ast.ClassDef, ast.expr)):
                pending.extend(ast.iter_child_nodes(node))
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        own.setdefault(target.id, set()).update(free_names(node.value, {}))
        changed = True
        while changed:
            changed = False
            for names in own.values():
                more = set().union(*(own[n] for n in names if n in own)) - names
                names |= more
                changed = changed or bool(more)
        return {name: frozenset(names) for name, names in own.items()}

    def block(self, body: Sequence[ast.stmt], after: Names, always: Names) -> Names:
        live = after | always
        for statement in reversed(body):
            live = self.statement(statement, live, always) | always
        return live

    def statement(self, node: ast.stmt, after: Names, always: Names) -> Names:
        method: Callable[..., Names] | None = getattr(self, f"_{type(node).__name__}", None)
        if method is not None:
            return method(node, after, always)
        names, composites = modified([node])
        if isinstance(node, (ast.Return, ast.Raise)):
            after = _NONE
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return after - {node.name} | reads(node, self.functions)
        read = reads(node, self.functions)
        if isinstance(node, ast.AugAssign):
            read |= composite_parts(node.target)
        for part in composites.values():
            read |= composite_parts(part)
        return after - names | read

    def _If(self, node: ast.If, after: Names, always: Names) -> Names:
        inside = self.block(node.body, after, always) | self.block(node.orelse, after, always)
        names, _ = modified([node.test])
        before = inside - names | reads(node.test, self.functions)
        self.at[id(node)] = Reach(before, after)
        return before

    def _While(self, node: ast.While, after: Names, always: Names) -> Names:
        test = reads(node.test, self.functions)
        before = after | test
        # the sets only grow by what the body reads before it writes, so the second walk is at the
        # fixed point
        for _ in range(2):
            before = before | self.block(node.body, before, always)
        self.at[id(node)] = Reach(before, after)
        return before

    def _For(self, node: ast.For, after: Names, always: Names) -> Names:
        written, composites = modified([ast.Assign(targets=[node.target], value=ast.Constant(0))])
        # the flags by which a break or return ends the loop are read before every iteration
        before = after | reads(getattr(node, "ag__extra_test", None), self.functions)
        for _ in range(2):
            inside = self.block(node.body, before, always) - written
            before = before | inside
        for part in composites.values():
            before |= composite_parts(part)
        before |= reads(node.iter, self.functions)
        self.at[id(node)] = Reach(before, after)
        return before

    def _With(self, node: ast.With, after: Names, always: Names) -> Names:
        live = self.block(node.body, after, always)
        for item in reversed(node.items):
            names, _ = modified([item])
            live = live - names | reads(item.context_expr, self.functions)
        return live

    def _Try(self, node: ast.Try, after: Names, always: Names) -> Names:
        final = self.block(node.finalbody, after, always)
        handlers: Names = final
        for handler in node.handlers:
            names = {handler.name} if handler.name else set()
            handlers |= self.block(handler.body, final, always | final) - names
            handlers |= reads(handler.type, self.functions)
        # an exception may come from anywhere in the body: what the handlers read is live throughout
        within = always | handlers
        return self.block(node.body, self.block(node.orelse, final, always | final), within)

    _TryStar = _Try

    def _Match(self, node: ast.Match, after: Names, always: Names) -> Names:
        live = after
        for case in node.cases:
            names, _ = modified([case.pattern])
            inside = self.block(case.body, after, always) | reads(case.guard, self.functions)
            live = live | (inside - names)
        return live | reads(node.subject, self.functions)
