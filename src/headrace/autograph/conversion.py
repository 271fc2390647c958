"""From a function to its converted twin.

The tree is compiled under the function's own file name and line numbers, and the code gets the
function's own globals, defaults and closure cells: later changes of globals and enclosing variables
are seen, and tracebacks, debuggers and the graph's record of who made an op show the user's line.
What is kept (per code object) is the converted code.
"""

from __future__ import annotations
import __future__

import ast
import types
import weakref
from dataclasses import dataclass

from headrace.autograph.expressions import Mangler
from headrace.autograph.jumps import UnsupportedError
from headrace.autograph.source_code import function_tree
from headrace.autograph.statements import convert_function
from headrace.autograph.syntax_nodes import complete_locations, define, located

__all__ = ["Options", "converted_code", "converted_function", "converted_tree", "is_converted"]

_FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    _FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag
_REFUSED = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_NAMESPACE = "ag__"


@dataclass(frozen=True)
class Options:
    """What a conversion does; a key of the cache."""

    recursive: bool = True
    convert_print: bool = False
    convert_assert: bool = True


_cache: dict[tuple[int, Options], tuple[weakref.ref[types.CodeType], types.CodeType]] = {}


def is_converted(function: types.FunctionType) -> bool:
    return _NAMESPACE in function.__code__.co_freevars


def converted_function(
    function: types.FunctionType, options: Options, namespace: types.CellType
) -> types.FunctionType:
    """The function with converted code. ``namespace`` is the cell of ``ag__``."""
    code = converted_code(function, options)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[_NAMESPACE] = namespace
    closure = tuple(cells[n] for n in code.co_freevars)
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    return made


def converted_code(function: types.FunctionType, options: Options) -> types.CodeType:
    code = function.__code__
    key = (id(code), options)
    found = _cache.get(key)
    if found is None or found[0]() is not code:
        made = _compiled(function, options)
        # (when Python ends, the module's own name for it may be gone before the code is)
        kept = _cache
        found = (weakref.ref(code, lambda _: kept.pop(key, None) and None), made)
        _cache[key] = found
    return found[1]


def converted_tree(function: types.FunctionType, options: Options) -> ast.FunctionDef:
    """``def`` of the converted function (a lambda too), without decorators and defaults."""
    if function.__code__.co_flags & _REFUSED:
        raise UnsupportedError("generators are not supported")
    node = function_tree(function)
    assert not isinstance(node, ast.AsyncFunctionDef)  # refused above
    class_name = _class_around(function)
    if class_name is not None:
        node = Mangler(class_name).visit(node)
    if isinstance(node, ast.Lambda):
        convert_function(node, options.convert_print, options.convert_assert)
        result: ast.stmt = ast.copy_location(ast.Return(node.body), node.body)
        node = located(define(_LAMBDA, node.args, [result]), node)
    else:
        node.decorator_list = []
        node.returns = None
        convert_function(node, options.convert_print, options.convert_assert)
    _strip_signature(node.args)
    return node


_LAMBDA = "ag__lambda"
_FUNCTION = "ag__function"


def _class_around(function: types.FunctionType) -> str | None:
    """The class whose body the function was written in, for names such as ``self.__x``."""
    parts = function.__qualname__.split(".")
    if len(parts) < 2 or parts[-2] == "<locals>" or not _has_private(function.__code__):
        return None
    return parts[-2]


def _has_private(code: types.CodeType) -> bool:
    names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return any("__" in n[1:] and not n.endswith("__") for n in names) or any(
        map(_has_private, inner)
    )


def _strip_signature(arguments: ast.arguments) -> None:
    """Defaults are taken from the function itself; annotations are not needed."""
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in (*every, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None


def _compiled(function: types.FunctionType, options: Options) -> types.CodeType:
    tree = converted_tree(function, options)
    tree.name = _FUNCTION  # under its own name it would hide the global one from itself
    code = function.__code__
    around = located(define("ag__around", (_NAMESPACE, *code.co_freevars), [tree]), tree)
    module = ast.Module([around], [])
    complete_locations(module)
    flags = code.co_flags & _FUTURE_FLAGS
    made = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    inner = _inner_code(_inner_code(made, "ag__around"), tree.name)
    return _renamed(inner, code.co_name, code.co_qualname)


def _inner_code(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _renamed(code: types.CodeType, name: str, qualname: str) -> types.CodeType:
    """Branches and bodies bear the name of the function that they are written in."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            generated = constant.co_name.startswith("ag__")
            inner = name if generated else constant.co_name
            path = qualname if generated else f"{qualname}.<locals>.{inner}"
            constant = _renamed(constant, inner, path)
        constants.append(constant)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(constants))
