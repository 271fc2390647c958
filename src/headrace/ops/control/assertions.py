"""Assertions: ``tf.Assert`` and ``tf.assert_*``.

What can be decided while building is: a check of constants or static shapes that fails raises at
once. What remains is an Assert operation; put it before what it guards with
``tf.control_dependencies``.

    >>> with tf.control_dependencies([tf.assert_positive(x)]): y = tf.log(x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import constant_value
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array import basic
from headrace.ops.array.array_shape import const, rank
from headrace.ops.array.filling import _all_axes
from headrace.ops.control.assert_op import Assert, called, described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "Assert",
    "add_check_numerics_ops",
    "assert_equal",
    "assert_equal_v2",
    "assert_greater",
    "assert_greater_equal",
    "assert_greater_equal_v2",
    "assert_greater_v2",
    "assert_integer",
    "assert_integer_v2",
    "assert_less",
    "assert_less_equal",
    "assert_less_equal_v2",
    "assert_less_v2",
    "assert_near",
    "assert_near_v2",
    "assert_negative",
    "assert_negative_v2",
    "assert_non_negative",
    "assert_non_negative_v2",
    "assert_non_positive",
    "assert_non_positive_v2",
    "assert_none_equal",
    "assert_none_equal_v2",
    "assert_positive",
    "assert_positive_v2",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_at_least_v2",
    "assert_rank_in",
    "assert_rank_in_v2",
    "assert_rank_v2",
    "assert_same_float_dtype",
    "assert_scalar",
    "called",
    "assert_type",
    "assert_type_v2",
    "is_numeric_tensor",
]


_WHEN = """Of constants that fail it raises InvalidArgumentError at once. Otherwise it makes an
operation, which has to run: put it before what it guards with ``tf.control_dependencies``."""
_TF1_ARGUMENTS = f"""{_WHEN} ``data`` is a list
of what the message shows (default: the values), ``summarize`` how many elements of each;
``message`` is its beginning."""
_TF2_ARGUMENTS = f"""{_WHEN} ``message``
begins the text of the error, which shows ``summarize`` elements of each tensor. There is no
``data`` as in TF 1."""


# two tensors ------------------------------------------------------------------------------------


def _compared(
    what: str,
    sign: str,
    op: str,
    compare: Callable[[Any, Any], Any],
    x: TensorLike,
    y: TensorLike,
    data: Any,
    summarize: Any,
    message: object,
    name: str | None,
) -> Operation:
    """The shared form of assert_equal, assert_less and so on."""
    with name_scope(name, what, [x, y, data]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y")
        if data is None:
            data = [
                f"Condition x {sign} y did not hold element-wise:",
                f"x ({called(x)}) = ",
                x,
                f"y ({called(y)}) = ",
                y,
            ]
        if message:
            data = [message, *data]
        holds = apply_op(op, x, y)
        a, b = constant_value(x), constant_value(y)
        if a is not None and b is not None and not np.all(compare(a, b)):
            raise errors.InvalidArgumentError(
                None, None, "\n".join(described(d) for d in data if not isinstance(d, str) or d)
            )
        return Assert(
            apply_op("All", holds, _all_axes(holds), keep_dims=False), data, summarize, "Assert"
        )


def _pair(
    what: str, sign: str, op: str, compare: Callable[[Any, Any], Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def check(
        x: TensorLike,
        y: TensorLike,
        data: TensorLike | None = None,
        summarize: Any = None,
        message: object = None,
        name: str | None = None,
    ) -> Operation:
        if what == "assert_equal" and not get_default_graph()._is_eager:
            if x is y:
                with name_scope(name, what, [x, y, data]):
                    return basic.no_op()
            get_default_graph().unique_name(name or what)  # TF enters the scope twice
        return _compared(what, sign, op, compare, x, y, data, summarize, message, name)

    def check_v2(
        x: Tensor,
        y: np.generic,
        message: str | None = None,
        summarize: int | None = None,
        name: str | None = None,
    ) -> Operation:
        return _compared(what, sign, op, compare, x, y, None, summarize, message, name)

    for function, label in ((check, what), (check_v2, what + "_v2")):
        function.__name__ = function.__qualname__ = label
        extra = _TF1_ARGUMENTS if function is check else _TF2_ARGUMENTS
        function.__doc__ = f"Assert that ``x {sign} y`` for every element, broadcast.\n\n{extra}"
    return check, check_v2


assert_equal, assert_equal_v2 = _pair("assert_equal", "==", "Equal", np.equal)
assert_none_equal, assert_none_equal_v2 = _pair("assert_none_equal", "!=", "NotEqual", np.not_equal)
assert_less, assert_less_v2 = _pair("assert_less", "<", "Less", np.less)
assert_less_equal, assert_less_equal_v2 = _pair(
    "assert_less_equal", "<=", "LessEqual", np.less_equal
)
assert_greater, assert_greater_v2 = _pair("assert_greater", ">", "Greater", np.greater)
assert_greater_equal, assert_greater_equal_v2 = _pair(
    "assert_greater_equal", ">=", "GreaterEqual", np.greater_equal
)


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: object = None,
    atol: object = None,
    data: Any = None,
    summarize: Any = None,
    message: object = None,
    name: str | None = None,
) -> Operation:
    """Assert ``|x - y| <= atol + rtol * |y|`` for every element; by default both are 10 eps.

    ``rtol`` and ``atol`` are numbers or tensors of the type of ``x``; eps is that of the type of
    ``x``. ``data``, ``summarize`` and ``message`` are as in ``tf.assert_equal``.

        tf.assert_near([1.0], [1.05], atol=0.1)
    """
    with name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x._dtype._base, name="y")
        wide = x._dtype.real_dtype.base_dtype
        eps = 10 * (0.0078125 if wide is dtypes.bfloat16 else float(np.finfo(wide.np_dtype).eps))
        rel = convert_to_tensor(eps if rtol is None else rtol, wide)
        tol = convert_to_tensor(eps if atol is None else atol, wide)
        absolute = "ComplexAbs" if x._dtype.is_complex else "Abs"
        distance = apply_op(absolute, apply_op("Sub", x, y))
        allowed = apply_op("Add", tol, apply_op("Mul", rel, apply_op(absolute, y)))
        if data is None:
            data = [
                message or "",
                "x and y not equal to tolerance rtol, atol:",
                f"x ({called(x)}) = ",
                x,
                f"y ({called(y)}) = ",
                y,
            ]
        holds = apply_op("LessEqual", distance, allowed)
        return Assert(
            apply_op("All", holds, _all_axes(holds), keep_dims=False), data, summarize, "Assert"
        )


def assert_near_v2(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike | None = None,
    atol: TensorLike | None = None,
    message: TensorLike | None = None,
    summarize: TensorLike | None = None,
    name: str | None = None,
) -> Operation:
    """Check that ``|x - y| <= atol + rtol * |y|`` everywhere; see ``tf.assert_near``.

    Unlike ``tf.compat.v1.assert_near`` there is no ``data``; ``message`` begins the text of the
    error.
    """
    return assert_near(x, y, rtol, atol, None, summarize, message, name)


# the sign of a tensor ---------------------------------------------------------------------------


def _signed(
    what: str, sign: str, op: str, compare: Callable[[Any, Any], Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def run(
        x: Any, data: object, summarize: object, message: object, name: str | None
    ) -> Operation:
        with name_scope(name, what, [x, data]):
            x = convert_to_tensor(x, name="x")
            if data is None:
                data = [
                    f"Condition x {sign} 0 did not hold element-wise:",
                    f"x ({called(x)}) = ",
                    x,
                ]
                if message:
                    data.insert(0, message)
                if what != "assert_non_positive":
                    count_more(x._op.graph, 2)  # as TF 1.15 counts the texts
            zero = convert_to_tensor(0, x._dtype._base)
            first, second = (x, zero) if sign.startswith("<") else (zero, x)  # as TensorFlow
            inner = "assert_less_equal" if "=" in sign else "assert_less"
            return _compared(inner, sign, op, compare, first, second, data, summarize, None, inner)

    def check(
        x: TensorLike,
        data: TensorLike | None = None,
        summarize: Any = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        return run(x, data, summarize, message, name)

    def check_v2(
        x: Tensor, message: object = None, summarize: object = None, name: str | None = None
    ) -> Operation:
        return run(x, None, summarize, message, name)

    for function, label in ((check, what), (check_v2, what + "_v2")):
        function.__name__ = function.__qualname__ = label
        extra = _TF1_ARGUMENTS if function is check else _TF2_ARGUMENTS
        function.__doc__ = f"Assert that ``x {sign} 0`` for every element.\n\n{extra}"
    return check, check_v2


assert_negative, assert_negative_v2 = _signed("assert_negative", "<", "Less", np.less)
assert_positive, assert_positive_v2 = _signed("assert_positive", ">", "Less", np.less)
assert_non_negative, assert_non_negative_v2 = _signed(
    "assert_non_negative", ">=", "LessEqual", np.less_equal
)
assert_non_positive, assert_non_positive_v2 = _signed(
    "assert_non_positive", "<=", "LessEqual", np.less_equal
)


# ranks and shapes -------------------------------------------------------------------------------


def _rank_tensor(wanted: object, message: object) -> Tensor:
    tensor = convert_to_tensor(wanted, name="rank")
    if tensor._dtype._base is not dtypes.int32:
        raise TypeError(
            f"{message or ''}  {called(tensor)} must be of type <dtype: 'int32'>: the rank is "
            f"{tensor.dtype.name}"
        )
    if tensor._shape == ():
        return tensor
    if tensor._shape is not None:
        raise ValueError("Rank must be a scalar.")
    scalar = Assert(apply_op("Equal", rank(tensor), 0), ["Rank must be a scalar."])
    with control_dependencies([scalar]):
        return basic.identity(tensor)


def _checked_rank(
    what: str,
    x: object,
    wanted: object,
    word: str,
    holds: Callable[[int, int], bool],
    op: str,
    data: object,
    summarize: int | None,
    message: object,
    name: str | None,
) -> Operation:
    with name_scope(name, what, [x, data]):
        x = convert_to_tensor(x, name="x")
        wanted = _rank_tensor(wanted, message)
        need, have = constant_value(wanted), x._rank()
        if need is not None and have is not None:
            if not holds(have, int(need)):
                raise ValueError(
                    f"{message or ''}.  Tensor {called(x)} must have rank "
                    f"{word}{int(need)}.  Received rank {have}, shape {x.shape}"
                )
            count_more(x._op.graph, 2)  # TF makes the shape and checks the rank's type
            return basic.no_op("static_checks_determined_all_ok")
        if data is None:
            data = [
                message or "",
                f"Tensor {called(x)} must have rank {word}".rstrip(),
                wanted,
                "Received shape: ",
                apply_op("Shape", x),
            ]
        return Assert(apply_op(op, rank(x), wanted), data, summarize, "Assert")


def assert_rank(
    x: object,
    rank: object,
    data: object = None,
    summarize: int | None = None,
    message: object = None,
    name: str | None = None,
) -> Operation:
    """An op that fails unless ``x`` has ``rank`` dimensions; a known other rank is refused at
    once.
    """
    return _checked_rank(
        "assert_rank", x, rank, "", int.__eq__, "Equal", data, summarize, message, name
    )


def assert_rank_v2(
    x: TensorLike, rank: TensorLike, message: TensorLike | None = None, name: str | None = None
) -> Operation:
    """Check that ``x`` has a rank; see ``tf.assert_rank``.

    A known rank is checked at once, with ValueError; otherwise the operation fails when it runs. TF
    1 has ``data`` and ``summarize`` before ``message``.
    """
    return assert_rank(x, rank, message=message, name=name)


def assert_rank_at_least(
    x: TensorLike,
    rank: TensorLike,
    data: object = None,
    summarize: int | None = None,
    message: object = None,
    name: str | None = None,
) -> Operation:
    """Check that ``x`` has at least a rank.

    A static rank is checked at once (ValueError), an unknown one when the returned operation runs.
    """
    return _checked_rank(
        "assert_rank_at_least",
        x,
        rank,
        "at least ",
        int.__ge__,
        "GreaterEqual",
        data,
        summarize,
        message,
        name,
    )


def assert_rank_at_least_v2(
    x: TensorLike, rank: TensorLike, message: TensorLike | None = None, name: str | None = None
) -> Operation:
    """Check that ``x`` has at least a rank; see ``tf.assert_rank_at_least``.

    A known rank is checked at once, with ValueError; otherwise the operation fails when it runs. TF
    1 has ``data`` and ``summarize`` before ``message``.
    """
    return assert_rank_at_least(x, rank, message=message, name=name)


def assert_rank_in(
    x: TensorLike,
    ranks: Any,
    data: Any = None,
    summarize: int | None = None,
    message: object = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails unless the rank of ``x`` is one of ``ranks``, a list of numbers.

    A known rank is checked at once, with ValueError; otherwise the operation fails when it runs.
    ``data`` is what the message shows, ``message`` its beginning.

        tf.assert_rank_in([[1.0]], (1, 2))
    """
    with name_scope(name, "assert_rank_in", [x, data]):
        x = convert_to_tensor(x, name="x")
        wanted = [_rank_tensor(r, message) for r in ranks]
        known = [int(k) for w in wanted if (k := constant_value(w)) is not None]
        have = x._rank()
        if have is not None and len(known) == len(wanted):
            allowed = tuple(known)
            if have not in allowed:
                raise ValueError(
                    f"{message or ''}.  Tensor {called(x)} must have rank in {allowed}.  "
                    f"Received rank {have}, shape {x.shape}"
                )
            count_more(x._op.graph, 1 + len(wanted))  # TF makes the rank and the ranks' types
            return basic.no_op("static_checks_determined_all_ok")
        equal = apply_op("Equal", rank(x), apply_op("Pack", wanted))
        if data is None:
            data = [
                message or "",
                f"Tensor {called(x)} must have rank in",
                *wanted,
                "Received shape: ",
                apply_op("Shape", x),
            ]
        return Assert(
            apply_op("Any", equal, const([0]), keep_dims=False), data, summarize, "Assert"
        )


def assert_rank_in_v2(
    x: TensorLike, ranks: TensorLike, message: TensorLike | None = None, name: str | None = None
) -> Operation:
    """Check that the rank of ``x`` is one of ``ranks``; see ``tf.assert_rank_in``.

    A known rank is checked at once, with ValueError; otherwise the operation fails when it runs. TF
    1 has ``data`` and ``summarize`` before ``message``.
    """
    return assert_rank_in(x, ranks, message=message, name=name)


def assert_scalar(
    tensor: TensorLike, name: str | None = None, message: str | None = None
) -> Tensor:
    """The tensor itself; ValueError if it is known not to be a scalar."""
    with name_scope(name, "assert_scalar", [tensor]):
        scalar = convert_to_tensor(tensor)
        if scalar._rank() not in (0, None):
            raise ValueError(
                f"{message or ''}Expected scalar shape for {called(scalar)}, saw shape: "
                f"{scalar.shape}."
            )
        return scalar


# types ------------------------------------------------------------------------------------------


def assert_type(
    tensor: TensorLike, tf_type: object, message: str | None = None, name: str | None = None
) -> Operation:
    """TypeError at once if the tensor is of another type.

    ``tf_type`` is a dtype or its name, ``message`` begins the text of the error. The result is an
    operation that does nothing.

        tf.assert_type([1.0], tf.float32)
    """
    with name_scope(name, "assert_type", [tensor]):
        tensor = convert_to_tensor(tensor)
        if tensor._dtype._base is not dtypes.as_dtype(tf_type).base_dtype:
            raise TypeError(
                f"{message or ''}  {called(tensor)} must be of type {dtypes.as_dtype(tf_type)}"
            )
        return basic.no_op("statically_determined_correct_type")


def assert_type_v2(
    tensor: TensorLike, tf_type: TensorLike, message: str | None = None, name: str | None = None
) -> Operation:
    """Check while the graph is built that a tensor has a type (TypeError otherwise).

    ``tf_type`` is a dtype or its name, ``message`` begins the text of the error. The result is an
    operation that does nothing.
    """
    return assert_type(tensor, tf_type, message, name)


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> Operation:
    """Check while the graph is built that ``x`` is of an integer type (TypeError otherwise)."""
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x._dtype.is_integer:
            raise TypeError(f'{message or ""}  Expected "x" to be integer type.  Found: {x._dtype}')
        return basic.no_op("statically_determined_was_integer")


def assert_integer_v2(
    x: TensorLike, message: str | None = None, name: str | None = None
) -> Operation:
    """Check while the graph is built that ``x`` is of an integer type (TypeError otherwise)."""
    return assert_integer(x, message, name)


def assert_proper_iterable(values: TensorLike) -> None:
    """TypeError for tensors, arrays and strings: things that iterate but are not collections."""
    single = (Tensor, np.ndarray, bytes, str)
    if isinstance(values, single) or hasattr(values, "_graph_anchor"):
        raise TypeError(
            f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}'
        )
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


#: What TensorFlow calls numeric here; the other number types are not among them.
NUMERIC_TYPES = frozenset(
    [
        dtypes.float32,
        dtypes.float64,
        dtypes.int8,
        dtypes.int16,
        dtypes.int32,
        dtypes.int64,
        dtypes.uint8,
        dtypes.qint8,
        dtypes.qint32,
        dtypes.quint8,
        dtypes.complex64,
    ]
)


def is_numeric_tensor(tensor: TensorLike) -> bool:
    """True for a Tensor of floats, integers or complex numbers; False for anything else."""
    return isinstance(tensor, Tensor) and tensor._dtype._base in NUMERIC_TYPES


def assert_same_float_dtype(
    tensors: Sequence[Any] | None = None, dtype: DType | None = None
) -> DType:
    """The one floating type of all tensors; ValueError if they differ or it is not floating."""
    found = None if dtype is None else dtypes.as_dtype(dtype)
    for t in tensors or ():
        if t is None:
            continue
        have = dtypes.as_dtype(t.dtype).base_dtype
        if found is None:
            found = have
        elif found.base_dtype is not have:
            raise ValueError(f"Tensor type mismatch: {t} has type {have}, expected {found}.")
    found = found or dtypes.float32
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating tensor of the graph for NaN and infinity."""
    checks: list[Operation] = []
    for op in get_default_graph().get_operations():
        for out in op.outputs:
            if out._dtype._base not in (dtypes.float16, dtypes.float32, dtypes.float64):
                continue
            if op._get_control_flow_context() is not None:
                raise ValueError(
                    "`tf.add_check_numerics_ops() is not compatible with TensorFlow "
                    "control flow operations such as `tf.cond()` or `tf.while_loop()`."
                )
            with control_dependencies([c for c in checks[-1:]]):
                checks.append(
                    apply_op("CheckNumerics", out, message=f"{op.name}:{out.value_index}").op
                )
    with control_dependencies(checks):
        return basic.no_op("check_numerics")
