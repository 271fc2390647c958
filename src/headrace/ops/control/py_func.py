"""Python functions as operations: ``tf.py_func``."""

from __future__ import annotations

import functools
import itertools
import traceback
import weakref
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.build import apply_any
from headrace.core.convert import _string_array
from headrace.core.graph import get_default_graph
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.tensor import Operation

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.infer import Inference
    from headrace.core.tensor import Tensor

__all__ = ["numpy_function", "py_func"]

#: Functions by token. A graph keeps its functions alive; a function goes when its graphs are gone.
_functions: weakref.WeakValueDictionary[str, Function] = weakref.WeakValueDictionary()
_tokens = itertools.count()


class Function:
    """A Python function behind an operation."""

    __slots__ = ("__weakref__", "call", "folded")

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
        #: Results for constant arguments, if the function has no state: it is called once.
        self.folded: dict[Hashable, Any] = {}


def register(function: Function, token: str) -> str:
    """Let operations find the function by a token, for as long as somebody holds it."""
    _functions[token] = function
    return token


def find(token: str) -> Function:
    function = _functions.get(token)
    if function is None:
        raise errors.UnknownError(
            None, None, f"KeyError: the Python function behind py_func ({token}) is gone"
        )
    return function


def _kernel(xp: ArrayNamespace, *inputs: Array, token: str, Tout: tuple[Any, ...]) -> Any:
    return call_python(find(token).call, Tout, inputs)


def call_python(call: Callable[..., Any], types: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
    """The results of a Python function as arrays of the given types.

    A tuple only if there are several.
    """
    try:
        result = call(*[for_user(x) for x in inputs])
    except Exception as error:
        raise failure(error) from error
    return from_python(result, types)


def failure(error: Exception) -> errors.OpError:
    """What a Python function raised, as an error of an operation."""
    return error if isinstance(error, errors.OpError) else _as_op_error(error)


def from_python(result: object, types: tuple[Any, ...]) -> Any:
    """What a Python function returned, as arrays."""
    results = (
        list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
    )
    if not isinstance(result, (list, tuple)) and len(types) == 0:
        return ()
    if len(results) != len(types):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"py_func is to return {len(types)} values, but its function returned {len(results)}",
        )
    arrays = tuple([_from_user(r, t, i) for i, (r, t) in enumerate(zip(results, types))])
    return arrays if len(arrays) != 1 else arrays[0]


def for_user(value: TensorLike) -> Any:
    """The function gets arrays of its own.

    NumPy scalars, or bytes, where the rank is 0 (as in TF).
    """
    if not isinstance(value, np.ndarray):
        return value
    return np.array(value) if value.ndim else value[()]


def _from_user(value: object, dtype: DType, i: int) -> Array:
    if dtype is dtypes.string and np.asarray(value).dtype.kind in "OSU":
        array = np.asarray(value, dtype=object)
        wrong = [v for v in array.reshape(-1).tolist() if not isinstance(v, (str, bytes))]
        if wrong:
            raise errors.InternalError(
                None, None, f"Unsupported object type {type(wrong[0]).__name__} returned by py_func"
            )
        return _string_array(array)
    if type(value) is np.ndarray and value.dtype == dtype.np_dtype:
        return value.copy()  # the function may keep it
    array = np.asarray(value)
    if array.dtype.kind == "O":
        raise errors.InternalError(
            None, None, f"Unsupported object type {type(value).__name__} returned by py_func"
        )
    if array.dtype.kind == "V" and array.dtype.names is not None:
        raise errors.InternalError(
            None, None, f"Unsupported numpy data type {array.dtype} returned by py_func"
        )
    if array.dtype != dtype.np_dtype:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{i}-th value returned by py_func is {array.dtype}, but expects {dtype.name}",
        )
    return np.array(array, order="C")


def _as_op_error(error: Exception) -> errors.OpError:
    """The error class that TensorFlow gives for it.

    The text holds the traceback of the user's function.
    """
    text = f"{type(error).__name__}: {error}\n{_traceback(error)}"
    if isinstance(error, (TypeError, ValueError)):
        return errors.InvalidArgumentError(None, None, text)
    if isinstance(error, StopIteration):
        return errors.OutOfRangeError(None, None, text)
    if isinstance(error, MemoryError):
        return errors.ResourceExhaustedError(None, None, text)
    if isinstance(error, NotImplementedError):
        return errors.UnimplementedError(None, None, text)
    return errors.UnknownError(None, None, text)


def _traceback(error: Exception) -> str:
    """The lines of the user's function, from its call on.

    Headrace's own lines above them are left out.
    """
    below = error.__traceback__.tb_next if error.__traceback__ is not None else None
    return "".join(traceback.format_exception(type(error), error, below, chain=False))


_SIGNATURE = "input: *Tin -> output: *Tout; token: str, Tout: list(type)"


def _shape(c: Inference) -> list[Any]:
    return [None] * len(c.attr("Tout"))


PY_FUNC = define(
    "PyFunc",
    _SIGNATURE,
    shape=_shape,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    calls_user=True,
    attrs_vary=True,
)
PY_FUNC_STATELESS = define(
    "PyFuncStateless",
    _SIGNATURE,
    shape=_shape,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    calls_user=True,
    attrs_vary=True,
)


def _eager_kernel(
    xp: ArrayNamespace, *inputs: Array, token: str, Tin: tuple[Any, ...]
) -> Array | tuple[Array, ...]:
    try:
        results = find(token).call(*inputs, input_types=Tin)
    except errors.OpError:
        raise
    except Exception as error:
        raise _as_op_error(error) from error
    return tuple(results) if len(results) != 1 else results[0]


#: Set by eager/py_function.py, which makes these operations.
eager_gradient: Callable[..., Any] | None = None


def _eager_grad(op: Operation, *grads: Tensor) -> Any:
    assert eager_gradient is not None
    return eager_gradient(op, *grads)


EAGER_PY_FUNC = define(
    "EagerPyFunc",
    "input: *Tin -> output: *Tout; token: str, is_async: bool=False, Tin: list(type), "
    "Tout: list(type)",
    shape=_shape,
    kernel=_eager_kernel,
    grad=_eager_grad,
    stateful=True,
    host_only=True,
    calls_user=True,
)


def py_func(
    func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """A Python function of NumPy arrays as an operation.

    Without results (``Tout=[]``) the operation itself is returned, or an empty list if it is not
    stateful.
    """
    check_callable(func)
    single = not isinstance(Tout, (list, tuple))
    types = [Tout] if single else list(Tout)
    function = Function(func)
    token = register(function, f"pyfunc_{next(_tokens)}")
    graph = get_default_graph()
    if not graph._is_eager:
        graph._py_funcs.append(function)
    opdef = PY_FUNC if stateful else PY_FUNC_STATELESS
    result = apply_any(opdef, list(inp), token=token, Tout=types, name=name)
    if not types:
        return result if stateful and isinstance(result, Operation) else []
    return result[0] if single else list(result)


def check_callable(func: object) -> None:
    """Refuse what cannot be called when the operation is made, not when it runs."""
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func)}")


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: TensorLike | None = None,
    Tout: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """A Python function of NumPy arrays as an operation; without ``func`` a decorator.

    ``func`` is called with the values of the list ``inp`` when the operation runs, and gives arrays
    of the types ``Tout`` (one, or a list). It has no gradient.

        y = tf.numpy_function(np.sinh, [x], tf.float32)
    """
    if func is None:
        return as_decorator(numpy_function, Tout, name)
    return py_func(func, inp, Tout, stateful=True, name=name)


def as_decorator(make: Callable[..., Any], Tout: object, name: str | None) -> Callable[..., Any]:
    """``@tf.py_function(Tout=…)``: calls of the decorated function make the operation."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def call(*args: Any) -> Any:
            return make(func, args, Tout, name=name)

        return call

    return decorate
