"""The syntax tree of a function, with the line and column numbers of its file.

A ``def`` is cut out of its file by indentation and parsed alone: the cost does not depend on the
length of the file. A wrong cut can only end inside a bracket or a string, which does not parse, and
then the next possible end is tried. A lambda is looked for in the tree of the whole file (kept for
the next one), among those on its line by the columns that CPython notes for each instruction;
several lambdas on one line are therefore told apart.

>>> tree = function_tree(lambda x: x + 1)        # -> ast.Lambda
"""

from __future__ import annotations

import ast
import copy
import linecache
from collections import OrderedDict
from types import CodeType, FunctionType

__all__ = ["SourceError", "function_tree"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FILES_KEPT = 16
_MORE_ENDS = 8
_lambdas: OrderedDict[str, tuple[list[str], list[ast.Lambda]]] = OrderedDict()
_trees: OrderedDict[str, tuple[list[str], ast.Module]] = OrderedDict()


class SourceError(Exception):
    """The source of a function cannot be read, or is not what the function was compiled from."""


def function_tree(function: FunctionType) -> FunctionNode:
    """A fresh tree of the function (the caller may change it)."""
    code = function.__code__
    linecache.checkcache(code.co_filename)  # a module may have been edited and loaded again
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines or code.co_firstlineno > len(lines):
        raise SourceError(f"the source code of {function.__qualname__} is not available")
    if code.co_name == "<lambda>":
        return _lambda_tree(code, lines)
    return _def_from_block(code, lines) or _def_from_file(code, lines)


# def --------------------------------------------------------------------------------------------


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _is_def(line: str) -> bool:
    return line.lstrip().startswith(("def ", "async def "))


def _ends(lines: list[str], first: int) -> list[int]:
    """Where the block that begins at ``first`` may end, nearest first."""
    base = _indent(lines[first])
    at = first
    while at < len(lines) and not (_is_def(lines[at]) and _indent(lines[at]) == base):
        at += 1
    found = []
    for i in range(at + 1, len(lines)):
        text = lines[i].lstrip()
        if text and text[0] not in "#)]}" and _indent(lines[i]) <= base:
            found.append(i)
            if len(found) == _MORE_ENDS:
                return found
    return [*found, len(lines)]


def _def_from_block(code: CodeType, lines: list[str]) -> FunctionNode | None:
    first = code.co_firstlineno - 1
    indented = _indent(lines[first]) > 0
    if indented and first == 0:
        return None
    # empty lines before the block keep its line numbers, ``if 1:`` makes its indentation legal
    before = "\n" * (first - 1) + "if 1:\n" if indented else "\n" * first
    for end in _ends(lines, first):
        try:
            body: list[ast.stmt] = ast.parse(before + "".join(lines[first:end])).body
        except SyntaxError:
            continue
        node = body[0].body[0] if indented else body[0]  # type: ignore[attr-defined]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node if node.name == code.co_name else None
    return None


def _def_from_file(code: CodeType, lines: list[str]) -> FunctionNode:
    for node in ast.walk(_file_tree(code.co_filename, lines)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return copy.deepcopy(node)
    raise SourceError(
        f"{code.co_filename}:{code.co_firstlineno} does not have the function "
        f"{code.co_name} (was the file changed?)"
    )


def _file_tree(filename: str, lines: list[str]) -> ast.Module:
    kept = _trees.get(filename)
    if kept is not None and kept[0] is lines:
        _trees.move_to_end(filename)
        return kept[1]
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError as error:
        raise SourceError(f"{filename} does not parse: {error}") from None
    _trees[filename] = (lines, tree)
    while len(_trees) > _FILES_KEPT:
        _trees.popitem(last=False)
    return tree


# lambda -----------------------------------------------------------------------------------------


def _lambda_tree(code: CodeType, lines: list[str]) -> ast.Lambda:
    kept = _lambdas.get(code.co_filename)
    if kept is None or kept[0] is not lines:
        tree = _file_tree(code.co_filename, lines)
        kept = (lines, [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)])
        _lambdas[code.co_filename] = kept
        while len(_lambdas) > _FILES_KEPT:
            _lambdas.popitem(last=False)
    candidates = [n for n in kept[1] if n.lineno == code.co_firstlineno]
    if len(candidates) > 1:
        # its instructions lie within its body; of lambdas in lambdas the innermost that has them
        # all
        candidates = [n for n in candidates if _contains(n.body, code)]
        candidates.sort(key=lambda n: (n.lineno, n.col_offset))
        del candidates[:-1]
    if len(candidates) != 1:
        raise SourceError(
            f"{code.co_filename}:{code.co_firstlineno} has {len(candidates)} lambdas that "
            "may be the one looked for; "
            "write each on its own line"
        )
    return copy.deepcopy(candidates[0])


def _contains(node: ast.expr, code: CodeType) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    found = False
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (line, column) == (end_line, end_column):
            continue  # instructions that stand for no text
        found = True
        if (line, column) < start or (end_line, end_column) > end:
            return False
    return found
