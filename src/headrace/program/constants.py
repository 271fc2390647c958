"""Constants whose values are recorded when they are read.

A compiled function may be used again for a program that differs in the values of its constants, if
nobody looked at those values while it was made. ``RecordedConstants`` is what a program's stages
see in the place of a dictionary then: asking whether a value is a constant is free, asking for its
array is recorded. Copying it into a dictionary reads everything.

    constants = RecordedConstants({0: axis, 1: scale})
    1 in constants; peek(constants, 1)   # not recorded: for parameters of bound functions
    constants[0]                         # recorded
    constants.reads                      # {0}

Constants that a stage adds follow from what it has read, so they are not recorded themselves.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Hashable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from headrace.core.dtypes import DType

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Constants", "ExactFloat", "RecordedConstants", "attributes_key", "exact_key", "peek"]


class RecordedConstants(MutableMapping[int, Any]):
    """The constants of a program by value number.

    ``reads`` are the numbers of those whose arrays were asked for.
    """

    __slots__ = ("_arrays", "_given", "reads")

    def __init__(self, given: Mapping[int, Any]) -> None:
        self._arrays = dict(given)
        self._given = frozenset(given)
        self.reads: set[int] = set()

    def __getitem__(self, value: int) -> Any:
        array = self._arrays[value]
        if value in self._given:
            self.reads.add(value)
        return array

    def __setitem__(self, value: int, array: Array) -> None:
        if value in self._given:
            raise ValueError(f"constant {value} cannot be replaced while it is recorded")
        self._arrays[value] = array

    def __delitem__(self, value: int) -> None:
        del self._arrays[value]

    def __contains__(self, value: object) -> bool:
        return value in self._arrays

    def __iter__(self) -> Iterator[int]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def copy(self) -> RecordedConstants:
        """A copy that records into the same ``reads``."""
        made = RecordedConstants({})
        made._arrays, made._given, made.reads = dict(self._arrays), self._given, self.reads
        return made

    def peek(self, value: int) -> Array | None:
        """The array (None if there is none), unrecorded.

        Its type and shape may be used, its elements may not.
        """
        return self._arrays.get(value)


Constants = Union[dict[int, Any], RecordedConstants]


def peek(constants: Constants, value: int) -> Array | None:
    """A constant as a parameter of generated code.

    What the code is must not depend on its elements.
    """
    return constants.get(value) if isinstance(constants, dict) else constants.peek(value)


def one_integer(constants: Constants, value: int) -> int | None:
    """A constant axis or count; None for what is not known or no scalar (its kernel refuses it)."""
    array = constants.get(value)
    return int(array) if array is not None and not array.ndim else None


class ExactFloat(float):
    """A number that is part of a key: 0.0 and -0.0 are two, and NaN equals itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is ExactFloat and struct.pack("<d", self) == struct.pack("<d", other)

    def __hash__(self) -> int:
        return hash(struct.pack("<d", self))


#: Types of attributes whose equal values are the same value, given that their types are the same.
_EXACT_TYPES = frozenset([bool, int, str, type(None), DType])


def attributes_key(attrs: dict[str, Any]) -> Hashable:
    """``exact_key`` of all attributes of an operation but those that are notes (``_class``).

    Raises TypeError for what has no such key.
    """
    names, types = tuple(attrs), tuple(map(type, attrs.values()))
    if _EXACT_TYPES.issuperset(types) and not _have_notes(names):
        return (names, types, tuple(attrs.values()))
    return tuple([(k, exact_key(v)) for k, v in attrs.items() if k[0] != "_"])


@functools.lru_cache(4096)
def _have_notes(names: tuple[str, ...]) -> bool:
    return any(n[0] == "_" for n in names)


def exact_key(value: Any) -> Hashable:
    """A key that is equal for equal attributes only: 1, 1.0 and True differ, and so do 0.0 and
    -0.0.

    Raises TypeError for what has no such key.
    """
    kind = type(value)
    if kind is str or kind is bool or kind is int or value is None:
        return (kind, value)
    if kind is float:
        return (kind, struct.pack("<d", value))
    if kind is tuple or kind is list:
        return (kind, *[exact_key(v) for v in value])
    if kind is dict:
        return (kind, *[(exact_key(k), exact_key(v)) for k, v in value.items()])
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.hasobject:
            return (kind, value.shape, *[exact_key(v) for v in np.ravel(value).tolist()])
        return (kind, value.dtype.str, value.shape, value.tobytes())
    hash(value)
    return (kind, value)
