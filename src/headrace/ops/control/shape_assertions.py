"""``tf.debugging.assert_shapes``: shapes of several tensors, with symbols for sizes that agree.

    assert_shapes([(x, ("N", "D")), (y, ("N",)), (z, (..., "D", 3))])

A specification is a sequence of numbers, symbols, and ``None`` or ``"."`` for any size; ``...`` or
``"*"`` at its beginning stands for any number of dimensions. A scalar counts as a vector of one
element. What is known while the graph is built is checked at once (ValueError), the rest when the
returned operation runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.control.assertions import (
    Assert,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    called,
)
from headrace.ops.control.dependencies import group

if TYPE_CHECKING:
    from collections.abc import Sequence

    pass

__all__ = ["assert_shapes"]

_ANY_DIMENSIONS = (Ellipsis, "*")
_ANY_SIZE = (None, ".")


class _Specified(NamedTuple):
    """A tensor with the sizes that it is to have; ``innermost``: more may come before them."""

    tensor: Tensor
    sizes: tuple[Any, ...]
    innermost: bool

    def size_at(self, at: int) -> Any:
        """The size of a dimension: a number, or a tensor where it is not known."""
        shape = self.tensor._shape
        if shape == ():
            return 1
        if shape is not None and -len(shape) <= at < len(shape) and shape[at] is not None:
            return shape[at]
        return apply_op("Shape", self.tensor)[at]


def assert_shapes(
    shapes: Sequence[Any],
    data: object = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Check the shapes of tensors: pairs of a tensor and its shape, or a dict of them.

    ``data`` (default: a description and the shape) and ``summarize`` are as in ``tf.Assert``.
    """
    pairs = list(shapes.items()) if isinstance(shapes, dict) else list(shapes)
    text = message or ""
    with name_scope(name, "assert_shapes", [pairs, data]):
        given = [_specified(x, s, text) for x, s in pairs if s is not None]
        ranks = [r for s in given if (r := _checked_rank(s, data, summarize, message)) is not None]
        sizes = _checked_sizes(given, data, summarize, text)
        with control_dependencies(ranks):
            return group(*sizes)


def _specified(x: Tensor, wanted: Any, message: str) -> _Specified:
    tensor = convert_to_tensor(x)
    if not hasattr(wanted, "__iter__") and not hasattr(wanted, "__getitem__"):
        raise ValueError(
            f"{message}.  Tensor {called(tensor)}.  Specified shape must be an iterable.  An "
            "iterable has the attribute `__iter__` or `__getitem__`.  Received specified shape: "
            f"{wanted}"
        )
    sizes = tuple(wanted)
    for i, size in enumerate(sizes):
        if i and _is_one_of(size, _ANY_DIMENSIONS):
            raise ValueError(
                f"{message}.  Tensor {called(tensor)} specified shape index {i}.  Symbol `...` or "
                "`*` for a variable number of unspecified dimensions is only allowed as the first "
                "entry"
            )
    innermost = bool(sizes) and _is_one_of(sizes[0], _ANY_DIMENSIONS)
    if innermost:
        sizes = sizes[1:]
    elif not sizes:
        sizes = (1,)  # a scalar
    return _Specified(tensor, sizes, innermost)


def _is_one_of(size: object, symbols: tuple[Any, ...]) -> bool:
    return any(
        size is s or (isinstance(s, str) and isinstance(size, str) and size == s) for s in symbols
    )


def _number(symbol: object) -> int | None:
    """The size that is given as a number, or as a digit of a text such as ``"3D"``."""
    if isinstance(symbol, (int, np.integer)):
        return int(symbol)
    return int(symbol) if isinstance(symbol, str) and symbol.isdigit() else None


def _checked_rank(s: _Specified, data: Any, summarize: Any, message: object) -> Operation | None:
    rank = len(s.sizes)
    rest = {"data": data, "summarize": summarize, "message": message}
    if s.innermost:
        return assert_rank_at_least(s.tensor, rank, **rest) if rank > 1 else None
    if rank < 2:
        return assert_rank_in(s.tensor, [0, 1], **rest)
    return assert_rank(s.tensor, rank, **rest)


def _checked_sizes(
    given: list[_Specified], data: object, summarize: int | None, message: str
) -> list[Operation]:
    asserts: list[Operation] = []
    known: dict[Any, tuple[Any, str]] = {}  # symbols: a size, and where it comes from
    for s in given:
        for i, symbol in enumerate(s.sizes):
            if _is_one_of(symbol, _ANY_SIZE):
                continue
            at = i - len(s.sizes) if s.innermost else i
            have = s.size_at(at)
            explicit = _number(symbol)
            if explicit is not None:
                want, source = explicit, "Specified explicitly"
            elif symbol in known:
                want, source = known[symbol]
            else:
                known[symbol] = have, f"Specified by tensor {called(s.tensor)} dimension {at}"
                continue
            found = _checked_size(s, at, have, want, source, data, summarize, message)
            if found is not None:
                asserts.append(found)
    return asserts


def _checked_size(
    s: _Specified,
    at: int,
    have: int,
    want: int,
    source: str,
    data: object,
    summarize: int | None,
    message: str,
) -> Operation | None:
    what = f"Tensor {called(s.tensor)} dimension"
    if not isinstance(have, Tensor) and not isinstance(want, Tensor):
        if have != want:
            raise ValueError(
                f"{message}.  {source}.  {what} {at} must have size {want}.  Received size {have}, "
                f"shape {s.tensor.shape}"
            )
        return None
    if data is None:
        shape = apply_op("Shape", s.tensor)
        data = [message, source, what, at, "must have size", want, "Received shape: ", shape]
    equal = apply_op("Equal", convert_to_tensor(have), convert_to_tensor(want))
    return Assert(equal, data, summarize)
