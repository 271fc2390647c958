"""``if``, ``a if c else b``, ``and``, ``or``, ``not``, comparisons and ``assert``.

In Python, or as ``tf.cond``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.autograph.staged import (
    as_value,
    check_branch,
    check_branches,
    check_one_branch_value,
    condition,
    is_staged,
    scratch_graph,
)
from headrace.autograph.undefined import NO_RETURN
from headrace.core import nest
from headrace.core.build import apply, apply_op
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant
from headrace.ops.array.filling import zeros
from headrace.ops.control.assertions import Assert
from headrace.ops.control.control_flow import cond
from headrace.ops.math.comparison import EQUAL, NOT_EQUAL, logical_not

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.ops.control.tensor_array import TensorArray

__all__ = [
    "and_",
    "assert_stmt",
    "compare",
    "eq",
    "if_exp",
    "if_stmt",
    "ne",
    "not_",
    "or_",
    "returned",
    "zero_like",
]

Thunk = Callable[[], Any]
State = tuple[Any, ...]


# if ---------------------------------------------------------------------------------------------


def if_stmt(
    test: Tensor,
    body: Thunk,
    orelse: Thunk,
    get_state: Callable[[], State],
    set_state: Callable[[State], None],
    names: tuple[str, ...],
    outputs: int,
) -> None:
    """Run one branch, or stage both. The first ``outputs`` of the names are read afterwards."""
    test = as_value(test)
    if not is_staged(test):
        if test:
            body()
        else:
            orelse()
        return
    _staged_if(condition(test, "if statement"), body, orelse, get_state, set_state, names, outputs)


def _staged_if(
    test: Tensor,
    body: Thunk,
    orelse: Thunk,
    get_state: Callable[[], State],
    set_state: Callable[[State], None],
    names: tuple[str, ...],
    outputs: int,
) -> None:
    start = get_state()
    main: list[Any] = []

    def run(branch: Thunk, which: str) -> list[Any]:
        set_state(start)
        branch()
        values = list(get_state()[:outputs])
        check_branch(values, names, which)
        return values

    def true_fn() -> list[int | Tensor | TensorArray | tuple[Tensor, Tensor | dict[str, Any]]]:
        values = run(body, "main")
        if any(v is NO_RETURN for v in values):
            with scratch_graph():
                kinds = run(orelse, "else")
            values = _with_returns(values, kinds)
        for name, value in zip(names, values):
            if any(v is None for v in nest.flatten(value)):
                raise ValueError(f"'{name}' is None at the end of the main branch.")
        main.extend(values)
        return _results(main)

    def false_fn() -> Any:
        other = _with_returns(run(orelse, "else"), main)
        check_branches(_returned(main), _returned(other), names)
        return _results(other)

    results = iter(cond(test, true_fn, false_fn, strict=True))
    values = [v if v is NO_RETURN else next(results) for v in main]
    set_state((*values, *start[outputs:]))


def _with_returns(values: list[Any], others: list[Any]) -> list[Any]:
    """A branch that does not return, beside one that does, gives zeros.

    The flag beside them says so.
    """
    return [
        zero_like(b) if a is NO_RETURN and b is not NO_RETURN and b is not None else a
        for a, b in zip(values, others)
    ]


def _returned(values: Sequence[Any]) -> list[Any]:
    return [0 if v is NO_RETURN else v for v in values]


def _results(values: Sequence[Any]) -> list[Any]:
    """What tf.cond is given: something even if nothing is read afterwards."""
    return [v for v in values if v is not NO_RETURN] or [constant(0)]


def zero_like(value: object) -> Any:
    """Zeros of a value's structure, types and static shapes (dimensions that are not known are
    0).
    """
    if nest.is_nested(value):
        return nest.map_structure(zero_like, value)
    if isinstance(value, (bool, int, float)):
        return type(value)(0)
    if isinstance(value, str):
        return ""
    value = as_value(value)
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Found an unsupported type '{type(value).__name__}' while creating "
            f"placeholder for {value}. Supported "
            "types include Tensor, int, float, bool, list, tuple or dict."
        )
    return zeros([d or 0 for d in value._shape or ()], value._dtype._base)


def returned(value: object, do_return: TensorLike, complete: bool) -> Any:
    """The result of a function. ``complete``: every path through it has a ``return``."""
    if value is NO_RETURN:
        return None
    if is_staged(do_return) and not complete:
        raise ValueError("the else branch must also have a return statement.")
    return value


# expressions ------------------------------------------------------------------------------------


def if_exp(test: Tensor, if_true: Thunk, if_false: Thunk, text: str) -> Any:
    test = as_value(test)
    if not is_staged(test):
        return if_true() if test else if_false()
    main: list[Any] = []

    def true_fn() -> Any:
        main.append(if_true())
        if main[0] is None:
            raise ValueError(f"'{text}' is None at the end of the main branch.")
        return main[0]

    def false_fn() -> Any:
        other = if_false()
        if nest.is_nested(main[0]) or nest.is_nested(other):
            check_branches([main[0]], [other], [text])
        else:
            check_one_branch_value(text, main[0], other)
        return other

    return cond(condition(test, "if expression"), true_fn, false_fn)


def and_(*operands: Thunk) -> Any:
    value: Any = as_value(operands[0]())
    rest = operands[1:]
    if not rest:
        return value
    if is_staged(value):
        return cond(condition(value, "and"), lambda: and_(*rest), lambda: value)
    return and_(*rest) if value else value


def or_(*operands: Thunk) -> Any:
    value: Any = as_value(operands[0]())
    rest = operands[1:]
    if not rest:
        return value
    if is_staged(value):
        return cond(condition(value, "or"), lambda: value, lambda: or_(*rest))
    return value if value else or_(*rest)


def not_(value: TensorLike) -> bool | Tensor:
    value = as_value(value)
    return logical_not(value) if is_staged(value) else not value


def eq(a: Tensor, b: TensorLike) -> bool | Tensor:
    """``a == b``: elementwise for tensors; shapes that do not fit are not equal."""
    if is_staged(a) or is_staged(b):
        if a is None or b is None:
            return False
        return apply(EQUAL, *_as_tensors(a, b), incompatible_shape_error=False)
    return a == b


def ne(a: Tensor, b: Tensor) -> Tensor | bool:
    if is_staged(a) or is_staged(b):
        if a is None or b is None:
            return True
        return apply(NOT_EQUAL, *_as_tensors(a, b), incompatible_shape_error=False)
    return a != b


def _as_tensors(a: TensorLike, b: TensorLike) -> tuple[Any, Any]:
    """Both as tensors, a Python value in the type of the other."""
    if not isinstance(a, Tensor) and isinstance(b, Tensor):
        a = constant(a, b._dtype._base) if isinstance(a, (bool, int, float, str)) else as_value(a)
    return a, as_value(b)


def in_(a: Tensor, b: Sequence[Any]) -> bool:
    """``a in b``.

    A tensor is compared by value, which needs a decision now: a TypeError, as in TensorFlow.
    """
    if is_staged(a) and isinstance(b, (list, tuple)):
        return any(x is a or bool(eq(a, x)) for x in b)
    return a in b


Comparison = Callable[[Any, Any], Any]


def compare(left: TensorLike, *steps: tuple[Comparison, Thunk]) -> Any:
    """``a < b < c``: every operand is evaluated once, and only as far as needed."""
    (test, right), rest = steps[0], steps[1:]
    value = right()
    result = test(left, value)
    if not rest:
        return result
    return and_(lambda: result, lambda: compare(value, *rest))


#: The comparisons that chains are made of.
COMPARISONS: dict[str, Comparison] = {
    "eq": eq,
    "ne": ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is_": operator.is_,
    "is_not": operator.is_not,
    "in_": in_,
    "not_in": lambda a, b: not in_(a, b),
}


# assert -----------------------------------------------------------------------------------------


def assert_stmt(test: Tensor, message: Thunk) -> None:
    """``assert``: checked when the graph runs if the condition is staged."""
    test = as_value(test)
    if not is_staged(test):
        if not test:
            text = message()
            raise AssertionError(*(() if text is None else (text,)))
        return
    text = message()
    data = (
        ["Assertion error"]
        if text is None
        else [text]
        if isinstance(text, (str, bytes, Tensor))
        else [str(text)]
        if not isinstance(text, (list, tuple))
        else list(text)
    )
    if test._shape != ():
        test = apply_op("All", test, constant(list(range(len(test._shape or ())))))
    Assert(test, data)
