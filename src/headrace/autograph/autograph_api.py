"""``tf.autograph``: what users and other packages call."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.autograph.call import mark_artifact, namespace_for
from headrace.autograph.conversion import Options, converted_function, converted_tree, is_converted
from headrace.autograph.jumps import UnsupportedError
from headrace.autograph.source_code import SourceError
from headrace.autograph.status import ControlStatusCtx, Status, control_status_ctx, log

if TYPE_CHECKING:
    from headrace.autograph.call import Namespace
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "ConversionError",
    "Feature",
    "convert",
    "do_not_convert",
    "set_loop_options",
    "tf_convert",
    "to_code",
    "to_graph",
]


class ConversionError(ValueError):
    """A function that ``to_graph`` was asked to convert cannot be converted."""


class Feature(enum.Enum):
    """Optional parts of the conversion.

    BUILTIN_FUNCTIONS: ``print`` of a tensor prints when the graph runs. (``len``, ``int``,
    ``range`` … over tensors are always converted.) ASSERT_STATEMENTS and EQUALITY_OPERATORS are
    always on. AUTO_CONTROL_DEPS is what tf.function does by itself. LISTS and NAME_SCOPES are
    accepted and change nothing.
    """

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        return tuple(cls.__members__.values())

    @classmethod
    def all_but(cls, exclude: object) -> tuple[Feature, ...]:
        left_out = exclude if isinstance(exclude, (list, tuple, set)) else (exclude,)
        return tuple(f for f in cls.all() if f not in left_out and f is not cls.ALL)


def _options(recursive: bool, features: object) -> Options:
    if features is None:
        return Options(recursive)
    given = set(features) if isinstance(features, (list, tuple, set, frozenset)) else {features}
    unknown = [f for f in given if not isinstance(f, Feature)]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a tf.autograph.experimental.Feature")
    return Options(recursive, bool(given & {Feature.ALL, Feature.BUILTIN_FUNCTIONS}))


def convert(
    function: Callable[..., Any],
    recursive: bool = True,
    optional_features: object = None,
    user_requested: bool = True,
) -> Callable[..., Any]:
    """The function with Python's control flow over tensors turned into graph operations.

    What cannot be converted (no source, a generator) runs as it is, after one warning.
    ``user_requested=False`` leaves library functions as they are.
    """
    if hasattr(function, "_autograph_artifact"):
        return function
    namespace = namespace_for(_options(recursive, optional_features))
    target = _requested(function, namespace) if user_requested else namespace.call(function)

    def wrapper(*args: object, **kwargs: object) -> Any:
        with ControlStatusCtx(Status.ENABLED, namespace.options):
            try:
                return target(*args, **kwargs)
            except Exception as error:
                error.__traceback__ = _without_own_frames(error.__traceback__)
                raise

    if inspect.isfunction(function) or inspect.ismethod(function):
        functools.update_wrapper(wrapper, function)
    wrapper.__dict__["__wrapped__"] = function
    return mark_artifact(wrapper)


def _requested(function: Any, namespace: Namespace) -> Any:
    """As ``namespace.call``, but the user asked for it: whose code it is does not matter."""
    inner = function.__func__ if isinstance(function, types.MethodType) else function
    if type(inner) is not types.FunctionType or is_converted(inner):
        return namespace.call(function)
    log(1, "Converting %s", function)
    made = namespace.convert(inner)
    return types.MethodType(made, function.__self__) if inner is not function else made


def _without_own_frames(
    traceback: types.TracebackType | None,
) -> types.TracebackType | None:
    """The traceback without the frames of AutoGraph: the user's lines and what they called
    remain.
    """
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_globals.get("__name__", "").startswith(__package__):
            kept.append(traceback)
        traceback = traceback.tb_next
    result: types.TracebackType | None = None
    for entry in reversed(kept):
        result = types.TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def tf_convert(
    function: Callable[..., Any],
    ctx: ControlStatusCtx | None = None,
    convert_by_default: bool = True,
    user_requested: bool = False,
) -> Callable[..., Any]:
    """For library functions that take a user's function (``Dataset.map``).

    Converted as the status says.
    """
    status = (ctx or control_status_ctx()).status
    if status is Status.ENABLED or (status is Status.UNSPECIFIED and convert_by_default):
        return convert(function, user_requested=user_requested)
    return do_not_convert(function) if status is Status.DISABLED else function


def do_not_convert(func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Decorator: the function, and what it calls, run as they are."""
    if func is None:
        return do_not_convert

    def wrapper(*args: Tensor, **kwargs: object) -> Any:
        with ControlStatusCtx(Status.DISABLED):
            return func(*args, **kwargs)

    if inspect.isfunction(func) or inspect.ismethod(func):
        functools.update_wrapper(wrapper, func)
    return mark_artifact(wrapper)


def to_graph(
    entity: Callable[..., Any],
    recursive: bool = True,
    experimental_optional_features: object = None,
) -> Callable[..., Any]:
    """The converted function itself (a method gives a function with ``self``).

    In it ``if``, ``while``, ``for`` and ``and`` over tensors become parts of the graph.
    ``recursive`` converts what the function calls, too; ``experimental_optional_features`` names a
    feature of ``tf.autograph.experimental.Feature`` or several.

        def size(x):
            if x > 0:
                return x
            return -x

        tf.autograph.to_graph(size)(tf.constant(-3))  # 3
    """
    function = _plain_function(entity)
    namespace = namespace_for(_options(recursive, experimental_optional_features))
    try:
        made = converted_function(function, namespace.options, namespace.cell)
    except (SourceError, UnsupportedError, SyntaxError) as error:
        raise ConversionError(f"converting {entity}: {type(error).__name__}: {error}") from error
    return mark_artifact(made)


def to_code(
    entity: Callable[..., Any],
    recursive: bool = True,
    experimental_optional_features: object = None,
) -> str:
    """The converted function as Python text.

    ``entity`` is a function, a method or a lambda whose source can be read. ``recursive`` and
    ``experimental_optional_features`` are as in ``tf.autograph.to_graph``. The calls of ``ag__`` in
    the text are what decides between Python and the graph when the code runs.
    """
    function = _plain_function(entity)
    try:
        tree = converted_tree(function, _options(recursive, experimental_optional_features))
    except (SourceError, UnsupportedError, SyntaxError) as error:
        raise ConversionError(f"converting {entity}: {type(error).__name__}: {error}") from error
    tree.name = "tf__" + ("lam" if tree.name.startswith("ag__") else tree.name)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _plain_function(entity: Callable[..., Any]) -> types.FunctionType:
    function = entity.__func__ if isinstance(entity, types.MethodType) else entity
    if not isinstance(function, types.FunctionType):
        raise ValueError(
            "Cannot apply autograph to a function that doesn't expose a __code__ object. "
            "If this is a @tf.function, "
            "try passing f.python_function instead."
        )
    return function


def set_loop_options(
    parallel_iterations: object = None,
    swap_memory: object = None,
    maximum_iterations: TensorLike | None = None,
    shape_invariants: object = None,
) -> None:
    """As the first statement of a loop that is converted.

    Arguments for its ``tf.while_loop``. Does nothing by itself.
    """
