"""Static shapes.

Inside Headrace a shape is ``None`` (nothing known) or a tuple of ``int | None``; the user sees
TF-1's :class:`TensorShape` of :class:`Dimension`. The functions here work on the plain form.

    >>> broadcast((None, 3), (2, 1))
    (2, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeGuard, Union, overload

from headrace.core.dtypes import DType

__all__ = [
    "Dim",
    "Dimension",
    "Shape",
    "TensorShape",
    "as_shape",
    "broadcast",
    "covers",
    "dimension_value",
    "merge",
    "num_elements",
    "to_plain",
    "unknown_shape",
    "vector",
]

Dim = Union[int, None]
#: The dimensions of a shape whose rank is known; None for an unknown one.
Dims = tuple[int | None, ...]
Shape = Union[Dims, None]


# plain shapes -----------------------------------------------------------------------------------


def num_elements(shape: Shape) -> int | None:
    if shape is None:
        return None
    n = 1
    for d in shape:
        if d is None:
            return None
        n *= d
    return n


def show(shape: Shape) -> str:
    """TensorFlow's way of printing a shape in messages: ``[2,?]``."""
    if shape is None:
        return "<unknown>"
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def merge(a: Shape, b: Shape) -> Shape:
    """What is known when both hold; ValueError if they contradict each other."""
    if a is None:
        return b
    if b is None or a == b:
        return a
    if len(a) != len(b):
        raise ValueError(f"Shapes must be equal rank, but are {len(a)} and {len(b)}")
    return tuple(_merge_dim(i, x, y, a, b) for i, (x, y) in enumerate(zip(a, b)))


def _merge_dim(i: int, x: Dim, y: Dim, a: Shape, b: Shape) -> Dim:
    if x is None:
        return y
    if y is None or x == y:
        return x
    raise ValueError(
        f"Dimension {i} in both shapes must be equal, but are {x} and {y}. Shapes are "
        f"{show(a)} and {show(b)}."
    )


def compatible(a: Shape, b: Shape) -> bool:
    if a is None or b is None or a == b:
        return True
    if len(a) != len(b):
        return False
    return all(x is None or y is None or x == y for x, y in zip(a, b))


def generalize(a: Shape, b: Shape) -> Shape:
    """The most specific shape that both are instances of."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))


def broadcast(a: Shape, b: Shape) -> Shape:
    if a == b:
        return a
    if a is None or b is None:
        return None
    if len(a) < len(b):
        a = (1,) * (len(b) - len(a)) + a
    elif len(b) < len(a):
        b = (1,) * (len(a) - len(b)) + b
    out: list[Dim] = []
    for x, y in zip(a, b):
        if x == y:
            out.append(x)
        elif x == 1:
            out.append(y)
        elif y == 1:
            out.append(x)
        elif x is None:
            out.append(y)
        elif y is None:
            out.append(x)
        else:
            raise ValueError(f"Dimensions must be equal, but are {x} and {y}")
    return tuple(out)


def covers(mine: Shape, other: Shape) -> bool:
    """Whether ``other`` certainly broadcasts to ``mine``, so that both together have that shape."""
    if mine is None or other is None or len(other) > len(mine):
        return False
    pairs = zip(reversed(other), reversed(mine))
    return all(a == 1 or (a is not None and a == b) for a, b in pairs)


def vector(n: Dim) -> Shape:
    return (n,)


# what users see ---------------------------------------------------------------------------------


class Dimension:
    """One dimension, perhaps unknown. Arithmetic with an unknown dimension is unknown."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        if value is None:
            self._value: int | None = None
            return
        if isinstance(value, Dimension):
            self._value = value._value
            return
        self._value = _plain_dim(value)

    @property
    def value(self) -> int | None:
        return self._value

    def is_compatible_with(self, other: object) -> bool:
        other = as_dimension(other)
        return self._value == other._value or self._value is None or other._value is None

    def assert_is_compatible_with(self, other: object) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {as_dimension(other)} are not compatible")

    def merge_with(self, other: object) -> Dimension:
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other._value if self._value is None else self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value!r})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __eq__(self, other: object) -> Any:
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other._value is None:
            return None
        return self._value == other._value

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented or equal is None else not equal

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> int:
        return self._value  # type: ignore[return-value]  # TF 1.15 hands out None here too

    def __long__(self) -> int | None:
        return self._value

    def __index__(self) -> int:
        return self._value  # type: ignore[return-value]

    def __bool__(self) -> bool:
        return self._value is not None and self._value != 0

    def _binary(self, other: object, fn: Callable[[int, int], int]) -> Dimension:
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            refused: Dimension = NotImplemented
            return refused
        if self._value is None or other._value is None:
            return Dimension(None)
        return Dimension(fn(self._value, other._value))

    def __add__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: a - b)

    def __rsub__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: b - a)

    def __mul__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: a // b)

    def __rfloordiv__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: b // a)

    __div__ = __floordiv__

    def __truediv__(self, other: object) -> Dimension:
        raise TypeError(
            "unsupported operand type(s) for /: 'Dimension' and "
            f"'{type(other).__name__}', please use // instead"
        )

    def __rtruediv__(self, other: object) -> Dimension:
        raise TypeError(
            f"unsupported operand type(s) for /: '{type(other).__name__}' and "
            "'Dimension', please use // instead"
        )

    def __mod__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: a % b)

    def __rmod__(self, other: object) -> Dimension:
        return self._binary(other, lambda a, b: b % a)

    def _compare(self, other: object, fn: Callable[[int, int], bool]) -> bool | None:
        other = as_dimension(other)
        if self._value is None or other._value is None:
            return None
        return fn(self._value, other._value)

    def __lt__(self, other: object) -> bool | None:
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other: object) -> bool | None:
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other: object) -> bool | None:
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other: object) -> bool | None:
        return self._compare(other, lambda a, b: a >= b)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._value,)


def as_dimension(value: object) -> Dimension:
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(dimension: Any) -> int | None:
    """The number of a ``Dimension``; a number or None as it is.

    Code that runs in v1 and v2 reads dimensions with it.
    """
    return dimension.value if isinstance(dimension, Dimension) else dimension


#: TF 2's behaviour of TensorShape: dimensions are plain numbers, unknown ones None (set by
#: enable_v2_tensorshape).
V2 = [False]


class TensorShape:
    """What is known of a tensor's shape: a list of dimensions, some None, or nothing at all.

        TensorShape([None, 3]).as_list()     # [None, 3]
        TensorShape(None).ndims              # None: not even the rank is known

    Dimensions are ``Dimension`` objects in v1 (``.value`` is the number) and numbers in v2.
    """

    __slots__ = ("_plain",)

    def __init__(self, dims: Any) -> None:
        self._plain: Shape = to_plain(dims)

    @property
    def rank(self) -> int | None:
        return None if self._plain is None else len(self._plain)

    @property
    def ndims(self) -> int | None:
        return self.rank

    @property
    def dims(self) -> list[Dimension] | None:
        return None if self._plain is None else [Dimension(d) for d in self._plain]

    def as_list(self) -> list[int | None]:
        if self._plain is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._plain)

    def num_elements(self) -> int | None:
        return num_elements(self._plain)

    def is_fully_defined(self) -> bool:
        return self._plain is not None and None not in self._plain

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: object) -> bool:
        return compatible(self._plain, to_plain(other))

    def assert_is_compatible_with(self, other: object) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def most_specific_compatible_shape(self, other: object) -> TensorShape:
        return from_plain(generalize(self._plain, to_plain(other)))

    def merge_with(self, other: object) -> TensorShape:
        other = as_shape(other)
        try:
            return from_plain(merge(self._plain, other._plain))
        except ValueError:
            raise ValueError(f"Shapes {self} and {other} are not compatible") from None

    def concatenate(self, other: object) -> TensorShape:
        other_plain = to_plain(other)
        if self._plain is None or other_plain is None:
            return from_plain(None)
        return from_plain(self._plain + other_plain)

    def with_rank(self, rank: int) -> TensorShape:
        try:
            return self.merge_with(from_plain((None,) * int(rank)))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: object) -> None:
        other = as_shape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def as_proto(self) -> Any:
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        if self._plain is None:
            return TensorShapeProto(unknown_rank=True)
        dims = [TensorShapeProto.Dim(size=-1 if d is None else d) for d in self._plain]
        return TensorShapeProto(dim=dims)

    def __repr__(self) -> str:
        if V2[0]:
            return f"TensorShape({None if self._plain is None else list(self._plain)})"
        return f"TensorShape({self.dims!r})"

    def __str__(self) -> str:
        if self._plain is None:
            return "<unknown>"
        unknown = "None" if V2[0] else "?"
        if len(self._plain) == 1:
            return f"({unknown if self._plain[0] is None else self._plain[0]},)"
        return "(" + ", ".join(unknown if d is None else str(d) for d in self._plain) + ")"

    def __len__(self) -> int:
        if self._plain is None:
            raise ValueError("Cannot take the length of Shape with unknown rank.")
        return len(self._plain)

    def __bool__(self) -> bool:
        return self._plain is not None

    def __iter__(self) -> Iterator[Any]:
        if self._plain is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        if V2[0]:
            return iter(self._plain)
        return iter([Dimension(d) for d in self._plain])

    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...

    @overload
    def __getitem__(self, key: int) -> Any: ...

    def __getitem__(self, key: int | slice) -> TensorShape | Dimension | int | None:
        if self._plain is not None:
            if isinstance(key, slice):
                return from_plain(self._plain[key])
            return self._plain[key] if V2[0] else Dimension(self._plain[key])
        if not isinstance(key, slice):
            return None if V2[0] else Dimension(None)
        start = key.start or 0
        if key.step is not None or key.stop is None or start < 0 or key.stop < 0:
            return from_plain(None)
        return from_plain((None,) * max(0, key.stop - start))

    def __add__(self, other: object) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: object) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._plain == to_plain(other)
        except TypeError:
            return NotImplemented

    def __ne__(self, other: object) -> bool:
        # TF 1.15: shapes that are not fully defined cannot be told apart
        return not self == other

    def __hash__(self) -> int:
        return hash(self._plain)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (None if self._plain is None else list(self._plain),)


def from_plain(plain: Shape) -> TensorShape:
    """A TensorShape around a plain shape, unchecked."""
    shape = TensorShape.__new__(TensorShape)
    shape._plain = plain
    return shape


def to_plain(value: object) -> Shape:
    """Whatever a user may give as a shape, as a plain shape."""
    if value is None:
        return None
    if isinstance(value, TensorShape):
        return value._plain
    if isinstance(value, Dimension):
        return (value._value,)
    if hasattr(value, "unknown_rank") and hasattr(value, "dim"):  # TensorShapeProto
        return (
            None if value.unknown_rank else tuple(None if d.size < 0 else d.size for d in value.dim)
        )
    if isinstance(value, (str, bytes)):
        raise TypeError(f"A shape cannot be the string {value!r}")
    if isinstance(value, Iterable):
        return tuple(_plain_dim(d) for d in value)
    return (_plain_dim(value),)


def _plain_dim(d: Any) -> Dim:
    if d is None:
        return None
    if type(d) is int:
        if d < 0:
            raise ValueError(f"Dimension {d} must be >= 0")
        return d
    if isinstance(d, Dimension):
        return d._value
    try:
        index = d.__index__()
    except AttributeError:
        index = _whole_number(d)
    return _plain_dim(int(index))


def _whole_number(d: Any) -> int:
    """A dimension that is no integer: 50.0 (``100 / 2`` in Python 3) and "50" count as 50."""
    if isinstance(d, DType):
        raise TypeError(f"Cannot convert {d!r} to Dimension")
    try:
        value = int(d)
    except (TypeError, OverflowError):
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got {d!r}"
        ) from None
    if not isinstance(d, (str, bytes)) and value != d:
        raise ValueError(f"Ambiguous dimension: {d}")
    return value


def as_shape(value: object) -> TensorShape:
    return value if isinstance(value, TensorShape) else TensorShape(value)


def unknown_shape(rank: int | None = None, ndims: int | None = None) -> TensorShape:
    if rank is None:
        rank = ndims
    return from_plain(None if rank is None else (None,) * rank)


def scalar() -> TensorShape:
    return from_plain(())


def known(shape: Shape) -> Sequence[int] | None:
    """The shape as plain integers if every dimension is known."""
    return shape if all_known(shape) else None


def all_known(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    """Whether the rank and every dimension are known."""
    return shape is not None and None not in shape


def known_dims(shape: TensorShape) -> list[Dimension]:
    """The dimensions of a static shape that the caller knows to have a rank."""
    assert shape.dims is not None, "the rank of the shape is unknown"
    return shape.dims


def ranked(shape: Shape) -> Dims:
    """The dimensions of a shape that the caller knows to have a rank."""
    assert shape is not None, "the rank of the shape is unknown"
    return shape
