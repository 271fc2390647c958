"""Which function a converted function really calls: ``ag__.call(f)(x)``.

A user's function is converted as well (once; what is made for each call is a function object around
kept code). Called as they are: builtins and C functions, constructors, what comes with Python,
Headrace itself and the well-known numeric libraries, generators, and what is marked with
``do_not_convert``. Builtins over tensors become their operations.
"""

from __future__ import annotations

import functools
import sysconfig
import types
import unittest
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.autograph import branches, undefined
from headrace.autograph import loop_operators as loops
from headrace.autograph.conversion import Options, converted_function, is_converted
from headrace.autograph.py_builtins import BUILTINS, print_
from headrace.autograph.status import Status, control_status_ctx, log, warn_once
from headrace.core import trace
from headrace.ops.control import case_branches, control_flow, functional, while_loops

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = ["Namespace", "mark_artifact", "namespace_for"]

F = TypeVar("F", bound=Callable[..., Any])

_ARTIFACT = "_autograph_artifact"

#: Packages whose functions are called as they are.
_LIBRARIES = frozenset(
    {
        "PIL",
        "absl",
        "headrace",
        "jax",
        "keras",
        "matplotlib",
        "ml_dtypes",
        "mock",
        "numpy",
        "pandas",
        "pytest",
        "scipy",
        "tensorboard",
        "tensorflow",
        "tf_keras",
    }
)
_STANDARD = tuple(
    path.rstrip("/") + "/"
    for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    if path
)
_SITE = ("/site-packages/", "/dist-packages/")
_GENERATOR = 0x20 | 0x80 | 0x200

#: Functions of Headrace that call a user's function while building the graph.
_HIGHER_ORDER: frozenset[Any] = frozenset(
    {
        control_flow.cond,
        while_loops.while_loop,
        case_branches.case,
        case_branches.switch_case,
        functional.map_fn,
        functional.scan,
        functional.foldl,
        functional.foldr,
    }
)


def mark_artifact(function: F) -> F:
    """Say that a function is not to be converted (again)."""
    setattr(function, _ARTIFACT, True)
    return function


class Namespace:
    """``ag__`` in converted code: the operators under the options of the conversion."""

    NO_RETURN = undefined.NO_RETURN
    and_ = staticmethod(branches.and_)
    assert_stmt = staticmethod(branches.assert_stmt)
    compare = staticmethod(branches.compare)
    eq = staticmethod(branches.eq)
    for_stmt = staticmethod(loops.for_stmt)
    if_exp = staticmethod(branches.if_exp)
    if_stmt = staticmethod(branches.if_stmt)
    is_undefined = staticmethod(undefined.is_undefined)
    loop_options = staticmethod(loops.loop_options)
    ne = staticmethod(branches.ne)
    not_ = staticmethod(branches.not_)
    or_ = staticmethod(branches.or_)
    returned = staticmethod(branches.returned)
    unset_attribute = staticmethod(undefined.unset_attribute)
    unset_item = staticmethod(undefined.unset_item)
    value_of = staticmethod(undefined.value_of)
    while_stmt = staticmethod(loops.while_stmt)

    def __init__(self, options: Options) -> None:
        self.options = options
        self.cell = types.CellType(self)
        self.__dict__.update(branches.COMPARISONS)

    def call(self, function: Any) -> Any:
        """What to call in the place of ``function``."""
        kind = type(function)
        if kind is types.FunctionType:
            return self._function(function)
        if kind is types.MethodType:
            return self._method(function)
        if kind is types.BuiltinFunctionType or kind is type:
            return self._builtin(function)
        if isinstance(function, type):
            return function
        if kind is functools.partial:
            inner = self.call(function.func)
            if inner is function.func:
                return function
            return functools.partial(inner, *function.args, **function.keywords)
        return self._callable(function)

    def _builtin(self, function: object) -> Any:
        if function is print and self.options.convert_print:
            return print_
        try:
            return BUILTINS.get(function, function)
        except TypeError:  # a method of something that cannot be hashed
            return function

    def _function(self, function: types.FunctionType) -> Callable[..., Any]:
        if function in _HIGHER_ORDER and self._recurse():
            return self._with_converted_arguments(function)
        if not self._recurse() or not _is_users(function):
            return function
        return self.convert(function)

    def _method(self, method: types.MethodType) -> Callable[..., Any]:
        function = method.__func__
        if type(function) is not types.FunctionType or not self._recurse():
            return method
        if isinstance(method.__self__, unittest.TestCase) or not _is_users(function):
            return method
        made = self.convert(function)
        return method if made is function else types.MethodType(made, method.__self__)

    def _callable(self, instance: object) -> Any:
        """An object of a user's class with ``__call__``."""
        function = getattr(type(instance), "__call__", None)  # noqa: B004
        if type(function) is not types.FunctionType or hasattr(instance, _ARTIFACT):
            return instance
        if not self._recurse() or not _is_users(function):
            return instance
        made = self.convert(function)
        return instance if made is function else types.MethodType(made, instance)

    def _recurse(self) -> bool:
        return self.options.recursive and control_status_ctx().status is not Status.DISABLED

    def _with_converted_arguments(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(
            *args: Callable[..., Any] | Tensor | Sequence[int | Tensor], **kwargs: Any
        ) -> Any:
            return function(
                *map(self._argument, args), **{k: self._argument(v) for k, v in kwargs.items()}
            )

        return called

    def _argument(self, value: Callable[..., Any] | Tensor | Sequence[int | Tensor]) -> Any:
        is_function = type(value) in (types.FunctionType, types.MethodType, functools.partial)
        return self.call(value) if is_function else value

    def convert(self, function: types.FunctionType) -> types.FunctionType:
        """The converted function; the function itself, with one warning, if that is not
        possible.
        """
        try:
            return converted_function(function, self.options, self.cell)
        except Exception as error:  # whatever it is, the function itself may still do
            code = function.__code__
            if code.co_filename == "<string>":
                log(2, "%s is code without a file, it runs as it is", function)
            else:
                warn_once(
                    (code.co_filename, code.co_firstlineno, code.co_name),
                    f"AutoGraph could not transform {function} and will run it "
                    f"as-is.\nCause: {error}\n"
                    "To silence this warning, decorate the function with "
                    "@tf.autograph.experimental.do_not_convert",
                )
            return mark_artifact(function)


@functools.cache
def namespace_for(options: Options) -> Namespace:
    return Namespace(options)


# whose code -------------------------------------------------------------------------------------

_users_files: dict[str, bool] = {}


def _is_users(function: types.FunctionType) -> bool:
    """Whether a function is to be converted when it is called."""
    code = function.__code__
    if code.co_flags & _GENERATOR or hasattr(function, _ARTIFACT) or is_converted(function):
        return False
    known = _users_files.get(code.co_filename)
    if known is None:
        known = _users_files[code.co_filename] = _is_users_file(code.co_filename)
    return known and str(function.__module__).partition(".")[0] not in _LIBRARIES


def _is_users_file(filename: str) -> bool:
    if trace.is_internal(filename):
        return False
    if filename.startswith("<"):
        return filename != "<string>"
    return any(s in filename for s in _SITE) or not filename.startswith(_STANDARD)
