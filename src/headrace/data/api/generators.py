"""``from_generator``: what a Python generator yields, checked and made into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, nest
from headrace.core.convert import _string_array
from headrace.core.dtypes import DType
from headrace.core.specs import SparseTensorSpec, TensorSpec
from headrace.data.runtime.batching import SparseParts
from headrace.data.runtime.stages import Element

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.core.specs import TypeSpec

__all__ = ["ElementConverter", "PythonFunction", "generator_start"]


class PythonFunction:
    """A Python function as an attribute of an op."""

    __slots__ = ("call",)
    __hash__ = None  # type: ignore[assignment]  # nothing that looks ops up by attributes may keep it

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


def generator_start(generator: Callable[..., Any]) -> Callable[..., Any]:
    """The user's function on arrays (bytes for strings), as an iterator."""

    def start(*arrays: Any) -> Any:
        return iter(generator(*[_for_user(a) for a in arrays]))

    return start


def _for_user(value: Array | np.generic) -> Any:
    if isinstance(value, np.ndarray):
        return np.array(value) if value.ndim else value[()]
    return value


class ElementConverter:
    """Makes an element of a yielded value.

    ``parts`` are its leaves, ``leaves`` the function for each of them.
    """

    def __init__(self, spec: object) -> None:
        self.spec = spec
        self.nested = nest.is_nested(spec)
        self.leaves = [_leaf_converter(leaf) for leaf in nest.flatten(spec)]

    def parts(self, value: object) -> Sequence[Any]:
        return _parts(self.spec, value, len(self.leaves)) if self.nested else (value,)

    def __call__(self, value: Any) -> Element:
        return tuple([make(part) for make, part in zip(self.leaves, self.parts(value))])


def _parts(spec: object, value: object, n: int) -> Sequence[Any]:
    """The leaves of a yielded value; where tuples are expected lists will do."""
    if type(spec) is tuple and isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        same_length = len(value) == len(spec) == n
        if same_length:
            return value
    try:
        return _flat_like(spec, value)
    except (TypeError, ValueError, KeyError) as error:
        wanted = nest.map_structure(lambda s: getattr(s, "dtype", s), spec)
        raise errors.InvalidArgumentError(
            None,
            None,
            "TypeError: `generator` yielded an element that did not match the expected "
            "structure. The expected structure "
            f"was {wanted}, but the yielded element was {value}.",
        ) from error


def _flat_like(spec: Any, value: Any) -> list[Any]:
    if not nest.is_nested(spec):
        return [value]
    if isinstance(spec, Mapping):
        if set(spec) != set(value):
            raise ValueError("keys differ")
        return [leaf for k in sorted(spec) for leaf in _flat_like(spec[k], value[k])]
    if not isinstance(value, (tuple, list)) or len(spec) != len(value):
        raise ValueError("lengths differ")
    return [leaf for s, v in zip(spec, value) for leaf in _flat_like(s, v)]


def _leaf_converter(leaf: TypeSpec) -> Callable[[Any], Any]:
    if isinstance(leaf, SparseTensorSpec):
        return lambda v: SparseParts.vector(
            np.asarray(v[0], np.int64),
            np.asarray(v[1], leaf.dtype.np_dtype),
            np.asarray(v[2], np.int64),
        )
    if not isinstance(leaf, TensorSpec):
        raise TypeError(f"A generator cannot yield {leaf!r}.")
    dtype = leaf.dtype
    shape = None if leaf.shape.rank is None else tuple(leaf.shape.as_list())
    wanted = dtype.np_dtype

    def convert(value: Any) -> Any:
        kind = type(value)
        if kind is np.ndarray and value.dtype == wanted and wanted.kind != "O":
            array = value.copy()  # the generator may use its array again
        elif kind is wanted.type:
            array = value
        else:
            array = _array(value, dtype)
        if shape is not None and not _fits(array.shape, shape):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"TypeError: `generator` yielded an element of shape {array.shape} where "
                "an element of shape "
                f"{_text(shape)} was expected.",
            )
        return array

    return convert


def _array(value: object, dtype: DType) -> Array:
    if hasattr(value, "numpy"):
        value = value.numpy()
    try:
        if dtype is dtypes.string:
            return _string_array(np.asarray(value, object))
        array = np.array(value, dtype.np_dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise errors.InvalidArgumentError(
            None,
            None,
            "TypeError: `generator` yielded an element that could not be converted to "
            "the expected type. The expected "
            f"type was {dtype.name}, but the yielded element was {value!r}.",
        ) from error
    return array if array.ndim else array[()]


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    if len(shape) != len(wanted):
        return False
    for have, want in zip(shape, wanted):  # noqa: SIM110
        if want is not None and have != want:
            return False
    return True


def _text(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join(str(d) for d in shape) + ("," if len(shape) == 1 else "") + ")"
