"""``tensorflow.python.util.function_utils``: what a callable is called and takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from headrace.api.python import tf_inspect
from headrace.api.python.tf_decorator import unwrap

__all__ = ["fn_args", "get_func_code", "get_func_name", "has_kwargs"]

Function = Callable[..., Any]


def _method(fn: Any) -> Function:
    """The bound ``__call__`` of an object; functions, methods and classes as they are."""
    plain = tf_inspect.isroutine(fn) or tf_inspect.isclass(fn)
    call: Function = fn if plain else fn.__call__
    return call


def fn_args(fn: Function) -> tuple[str, ...]:
    """The names of a callable's positional parameters, without ``self`` of a bound method and
    without what a partial has fixed.
    """
    if isinstance(fn, functools.partial):
        names = fn_args(fn.func)[len(fn.args) :]
        return tuple(n for n in names if n not in fn.keywords)
    fn = _method(fn)
    args = tf_inspect.getfullargspec(fn).args
    return tuple(args[1:] if tf_inspect.ismethod(fn) else args)


def has_kwargs(fn: Function) -> bool:
    """Whether a callable takes ``**kwargs``. TypeError for what cannot be called."""
    if isinstance(fn, functools.partial):
        fn = fn.func
    elif not callable(fn):
        raise TypeError(f"fn should be a function-like object, but is of type {type(fn)}.")
    else:
        fn = _method(fn)
    return tf_inspect.getfullargspec(fn).varkw is not None


def get_func_name(func: Function) -> str:
    """The qualified name of a function or method; the class of another callable."""
    _, target = unwrap(func)
    if not callable(target):
        raise ValueError("Argument must be callable")
    if tf_inspect.ismethod(target):
        return str(target.__func__.__qualname__)
    if tf_inspect.isfunction(target):
        return str(target.__qualname__)
    return str(type(target))


def get_func_code(func: Function) -> Any:
    """The code object behind a callable, None where there is none."""
    _, target = unwrap(func)
    if not callable(target):
        raise ValueError("Argument must be callable")
    if isinstance(target, functools.partial):
        return get_func_code(target.func)
    call = target if hasattr(target, "__code__") else type(target).__call__
    return getattr(call, "__code__", None)
