"""``break``, ``continue``, ``return`` and loops' ``else`` without jumps.

Each becomes a flag, and what would have been jumped over is guarded by it. Where a branch always
jumps, the statements after the ``if`` move into its other branch instead, so that both branches of
a staged ``if`` give a value:

    if c:                         if c:
        return a                      do_return = True; retval_ = a
    b = f(x)            ->        else:
    return b                          b = f(x)
                                      do_return = True; retval_ = b
                                  return ag__.returned(retval_, do_return, True)

A function whose only ``return`` is its last statement stays as it is.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from headrace.autograph.syntax_nodes import assign, call_ag, load, located, not_all

__all__ = ["DO_RETURN", "RETVAL", "UnsupportedError", "lower", "own_statements"]

DO_RETURN = "ag__do_return"
RETVAL = "ag__retval_"

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


class UnsupportedError(Exception):
    """The function uses something that cannot be converted; it runs as it is."""


def lower(node: ast.FunctionDef) -> None:
    """Rewrite the body of one function (not of those inside it)."""
    if not any(isinstance(n, (ast.Return, *_LOOPS)) for n in own_statements(node.body)):
        return
    early = any(
        isinstance(n, ast.Return) for n in own_statements(node.body) if n is not node.body[-1]
    )
    complete = ast.Constant(_always_jumps(node.body))
    body = _Lowering(returns=early).block(node.body)
    if early:
        start = [assign(DO_RETURN, ast.Constant(False)), assign(RETVAL, load("ag__", "NO_RETURN"))]
        end = ast.Return(call_ag("returned", load(RETVAL), load(DO_RETURN), complete))
        head = 1 if ast.get_docstring(node, clean=False) is not None else 0
        body = [
            *body[:head],
            *(located(s, node.body[0]) for s in start),
            *body[head:],
            located(end, node.body[-1]),
        ]
    node.body = body


def own_statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Statements of this function, at any depth."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*_SCOPES, ast.expr)):
            pending.extend(ast.iter_child_nodes(node))


def _always_jumps(body: Sequence[ast.stmt]) -> bool:
    """Whether control never reaches the end of the block."""
    return any(_jumps(s) for s in body)


def _jumps(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
        return True
    if isinstance(node, ast.If):
        return bool(node.orelse) and _always_jumps(node.body) and _always_jumps(node.orelse)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _always_jumps(node.body)
    if isinstance(node, ast.Try):
        if _always_jumps(node.finalbody):
            return True
        done = _always_jumps(node.body) or _always_jumps(node.orelse)
        return done and all(_always_jumps(h.body) for h in node.handlers)
    if isinstance(node, ast.While):  # ``while True:`` is only left by a jump
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return endless and not _breaks(node.body)
    return False


def _binds(node: ast.expr) -> bool:
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))


def _breaks(body: Sequence[ast.stmt]) -> bool:
    return bool(_flags_set(body, ast.Break))


def _flags_set(body: Sequence[ast.AST], kind: type[ast.stmt]) -> list[ast.AST]:
    """Jumps of a kind that leave this block: ``break`` and ``continue`` of inner loops do not."""
    found: list[ast.AST] = []
    pending = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, kind):
            found.append(node)
        if isinstance(node, (*_SCOPES, ast.expr)):
            continue
        if isinstance(node, _LOOPS) and kind is not ast.Return:
            pending.extend(node.orelse)  # a break there is the outer loop's
        else:
            pending.extend(ast.iter_child_nodes(node))
    return found


class _Lowering:
    def __init__(self, returns: bool) -> None:
        self.returns = returns
        self.loops: list[tuple[str, str]] = []  # flags of the loops around: break, continue
        self.count = 0

    def flags(self, node: ast.stmt) -> list[str]:
        """The flags that a statement may set and that concern what follows it."""
        out = []
        if self.loops:
            leave, skip = self.loops[-1]
            if _flags_set([node], ast.Break):
                out.append(leave)
            if _flags_set([node], ast.Continue):
                out.append(skip)
        if self.returns and _flags_set([node], ast.Return):
            out.append(DO_RETURN)
        return out

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, node in enumerate(body):
            rest = body[i + 1 :]
            jump = self.jump(node)
            if jump is not None:
                return [*out, *jump]
            if isinstance(node, ast.If) and rest and self.flags(node):
                first, second = _always_jumps(node.body), _always_jumps(node.orelse)
                if first or second:
                    if not first:
                        node.body = [*node.body, *rest]
                    elif not second:
                        node.orelse = [*node.orelse, *rest]
                    return [*out, *self.statement(node)]
            flags = self.flags(node)
            out.extend(self.statement(node))
            if flags and rest:
                guard = ast.If(not_all(flags), self.block(rest), [])
                return [*out, located(guard, rest[0])]
        return out

    def jump(self, node: ast.stmt) -> list[ast.stmt] | None:
        """The flags of a jump; None if it is not one."""
        if isinstance(node, ast.Return) and self.returns:
            value = node.value or ast.Constant(None)
            made: list[ast.stmt] = [
                assign(DO_RETURN, ast.Constant(True)),
                assign(RETVAL, value),
            ]
        elif isinstance(node, ast.Break):
            made = [assign(self.loops[-1][0], ast.Constant(True))]
        elif isinstance(node, ast.Continue):
            made = [assign(self.loops[-1][1], ast.Constant(True))]
        else:
            return None
        return [located(s, node) for s in made]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, (ast.For, ast.While)):
            return self.loop(node)
        if isinstance(node, ast.If):
            node.body = self.block(node.body) or [located(ast.Pass(), node)]
            node.orelse = self.block(node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            node.body = self.block(node.body)
        elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            self.attempt(node)  # type: ignore[arg-type]
        elif isinstance(node, ast.Match):
            for case in node.cases:
                case.body = self.block(case.body)
        return [node]

    def attempt(self, node: ast.Try) -> None:
        if any(_flags_set(node.finalbody, k) for k in (ast.Return, ast.Break, ast.Continue)):
            raise UnsupportedError("a jump in a finally block is not supported")
        flags = sorted({f for s in node.body for f in self.flags(s)})
        node.body = self.block(node.body)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        node.orelse = self.block(node.orelse)
        if flags and node.orelse:
            node.orelse = [located(ast.If(not_all(flags), node.orelse, []), node.orelse[0])]
        node.finalbody = self.block(node.finalbody)

    def test_in_body(self, node: ast.While, stops: list[str]) -> ast.stmt:
        """``while (x := f()) > 0``: x is bound before the loop and at the end of every
        iteration.
        """
        name = f"ag__go_on_{self.count}"
        again: ast.stmt = located(assign(name, copy.deepcopy(node.test)), node.test)
        if stops:
            again = located(ast.If(not_all(stops), [again], []), node.test)
        node.body.append(again)
        first = located(assign(name, node.test), node.test)
        node.test = located(load(name), node.test)
        return first

    def loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        breaks, continues = _breaks(node.body), bool(_flags_set(node.body, ast.Continue))
        returns = self.returns and bool(_flags_set(node.body, ast.Return))
        self.count += 1
        leave, skip = f"ag__break_{self.count}", f"ag__continue_{self.count}"
        self.loops.append((leave, skip))
        node.body = self.block(node.body)
        self.loops.pop()
        before: list[ast.stmt] = []
        stops = []
        if continues:
            node.body.insert(0, located(assign(skip, ast.Constant(False)), node))
        if breaks:
            before.append(located(assign(leave, ast.Constant(False)), node))
            stops.append(leave)
        if returns:
            stops.append(DO_RETURN)
        if isinstance(node, ast.While) and _binds(node.test):
            before.append(self.test_in_body(node, stops))
        if stops and isinstance(node, ast.While):
            node.test = ast.copy_location(
                ast.BoolOp(ast.And(), [not_all(stops), node.test]), node.test
            )
        elif stops:
            vars(node)["ag__extra_test"] = not_all(stops)
        orelse, node.orelse = node.orelse, []
        after = self.block(orelse)
        if after and stops:
            after = [located(ast.If(not_all(stops), after, []), after[0])]
        return [*before, node, *after]
