"""``tensorflow.python.util.tf_inspect``: Python's ``inspect`` as TensorFlow 1 has it.

Functions behind a decorator answer for what they decorate. Annotations are left out: TensorFlow 1's
functions have none, and packages compare a specification with their own function's.

    >>> import headrace as tf
    >>> getfullargspec(tf.rank).args
    ['input', 'name']
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.api.python.tf_decorator import unwrap
from headrace.core.dispatch import behind_dispatch

__all__ = [
    "ArgSpec",
    "FullArgSpec",
    "currentframe",
    "getargspec",
    "getcallargs",
    "getdoc",
    "getfile",
    "getframeinfo",
    "getfullargspec",
    "getmembers",
    "getmodule",
    "getmro",
    "getsource",
    "getsourcefile",
    "getsourcelines",
    "isbuiltin",
    "isclass",
    "isfunction",
    "isframe",
    "isgenerator",
    "isgeneratorfunction",
    "ismethod",
    "ismodule",
    "isroutine",
    "stack",
]

FullArgSpec = inspect.FullArgSpec
currentframe = inspect.currentframe
getframeinfo = inspect.getframeinfo
getmembers = inspect.getmembers
getmodule = inspect.getmodule
getmro = inspect.getmro
isframe = inspect.isframe
ismodule = inspect.ismodule
stack = inspect.stack

Function = Callable[..., Any]


class ArgSpec(NamedTuple):
    """What :func:`getargspec` returns."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def _target(value: object) -> Any:
    """What is behind the decorators of a function; other objects as they are."""
    return behind_dispatch(unwrap(value)[1])


def _declared(obj: Function) -> Any:
    """The specification that one of a function's decorators gives, if any does."""
    given = (d.decorator_argspec for d in unwrap(obj)[0])
    return next((spec for spec in given if spec is not None), None)


def getfullargspec(obj: Function) -> inspect.FullArgSpec:
    """Names and defaults of the parameters, without annotations."""
    spec = _declared(obj)
    if spec is None:
        target = _target(obj)
        plain = not (inspect.isroutine(target) or inspect.isclass(target))
        if plain and not isinstance(target, functools.partial):
            target = type(target).__call__
        return inspect.getfullargspec(target)._replace(annotations={})
    if isinstance(spec, inspect.FullArgSpec):
        return spec
    return inspect.FullArgSpec(spec.args, spec.varargs, spec.keywords, spec.defaults, [], None, {})


def getargspec(obj: Function) -> ArgSpec:
    """Names and defaults of the positional parameters. A ``functools.partial`` answers for what is
    left of its function's parameters; a class or callable object for its method.
    """
    if isinstance(obj, functools.partial):
        return _left_by_partial(obj)
    full = getfullargspec(obj)
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def _left_by_partial(partial: Any) -> ArgSpec:
    full = getfullargspec(partial.func)
    args = full.args[len(partial.args) :]
    defaults = dict(
        zip(full.args[len(full.args) - len(full.defaults or ()) :], full.defaults or ())
    )
    defaults.update(partial.keywords)
    first = next((i for i, name in enumerate(args) if name in defaults), len(args))
    without = [name for name in args[first:] if name not in defaults]
    if without:
        raise ValueError(f"{without} of {partial!r} have no default, but parameters before do.")
    return ArgSpec(args, full.varargs, full.varkw, tuple(defaults[n] for n in args[first:]) or None)


def getcallargs(func: Function, *positional: object, **named: object) -> dict[str, Any]:
    """The value of every parameter in a call."""
    bound = inspect.signature(_target(func)).bind(*positional, **named)
    bound.apply_defaults()
    return dict(bound.arguments)


def getdoc(obj: object) -> str | None:
    return inspect.getdoc(obj)


def getfile(obj: object) -> str:
    return inspect.getfile(_target(obj))


def getsource(obj: object) -> str:
    return inspect.getsource(_target(obj))


def getsourcefile(obj: object) -> str | None:
    return inspect.getsourcefile(_target(obj))


def getsourcelines(obj: object) -> tuple[list[str], int]:
    return inspect.getsourcelines(_target(obj))


def isbuiltin(obj: object) -> bool:
    return inspect.isbuiltin(_target(obj))


def isclass(obj: object) -> bool:
    return inspect.isclass(_target(obj))


def isfunction(obj: object) -> bool:
    return inspect.isfunction(_target(obj))


def isgenerator(obj: object) -> bool:
    return inspect.isgenerator(_target(obj))


def isgeneratorfunction(obj: object) -> bool:
    return inspect.isgeneratorfunction(_target(obj))


def ismethod(obj: object) -> bool:
    return inspect.ismethod(_target(obj))


def isroutine(obj: object) -> bool:
    return inspect.isroutine(_target(obj))
