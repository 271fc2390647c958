"""Feeding: which tensors a feed_dict means, and how values become arrays.

A converter is made once per fed tensor and checks every value: type, then shape, as TF 1.15 does
and with its words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.convert import _string_array
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import static_value
from headrace.core.tensor import Operation, Tensor
from headrace.session.conversions import Conversion, conversion_of

if TYPE_CHECKING:
    from headrace.core.annotations import Array, FeedDict, TensorLike
    from headrace.core.graph import Graph

__all__ = ["TensorFed", "check_feeds", "expand_feeds", "is_symbolic", "make_converter"]

Converter = Callable[[Any], Any]


#: The common types of arrays, any of which a numeric placeholder takes.
_PLAIN = frozenset(np.dtype(t) for t in "?bBhHiIqQefd")


class TensorFed(Exception):
    """A tensor stands among the feed values; the session evaluates it first."""


def is_symbolic(value: object) -> bool:
    """A tensor or variable where an array is expected.

    Eager ones have their value, which is taken as an array's is.
    """
    if isinstance(value, Tensor):
        return not value._op.graph._is_eager
    return (
        hasattr(value, "_as_graph_element")
        and not isinstance(value, type)
        and not hasattr(value, "_eager_read")
    )


def make_converter(tensor: Tensor) -> Converter:
    """A function from a user's value to what the plan takes."""
    dtype = tensor._dtype._base
    if dtype._kind in "rs":
        return _string_converter(tensor) if dtype._kind == "s" else lambda value: value
    want, shape = dtype.np_dtype, tensor._shape
    exact = tuple(shape) if shape is not None and None not in shape else None
    rest = shape[1:] if shape and shape[0] is None and None not in shape[1:] else None
    numeric = want.kind in "fiubc"
    cast_from = _PLAIN - {want} if numeric else frozenset()
    ndarray = np.ndarray
    make = want.type
    bound = 1 << 53 if want.kind == "f" else 0  # integers below it are exact on the way there
    rank = 0 if shape is None else len(shape)

    if exact == ():

        def scalar(value: TensorLike) -> Any:
            if type(value) is float or (type(value) is int and want.kind == "f"):
                return make(value)
            array = _as_array(value, tensor, want)
            if array.ndim:
                _check_shape(array.shape, tensor)
            return array[()]

        return scalar

    def convert(value: object) -> Any:
        if type(value) is ndarray:
            given = value.dtype
            if given is want:
                array = value
            elif given in cast_from:
                array = value.astype(want)
            elif numeric and given.kind in "fiub":
                array = value if given == want else value.astype(want)
            elif given == want:
                array = value
            else:
                array = _as_array(value, tensor, want)
        elif shape is None and (
            type(value) is float or (type(value) is int and -bound <= value < bound)
        ):
            return make(value)
        else:
            array = _as_array(value, tensor, want)
        if rest is not None:  # the batch is open, the rest is known: the commonest placeholder
            if array.ndim != rank or (rest and array.shape[1:] != rest):
                _check_shape(array.shape, tensor)
            return array
        if exact is not None:
            if array.shape != exact:
                _check_shape(array.shape, tensor)
            return array  # (of rank 1 at least)
        if shape is not None:
            _check_shape(array.shape, tensor)
        return array if array.ndim else array[()]

    return convert


def _as_array(value: object, tensor: Tensor, want: np.dtype[Any]) -> Array:
    if is_symbolic(value):
        raise TensorFed
    if isinstance(value, Operation):
        raise TypeError(
            f"The value fed to {tensor.name} is the operation {value.name!r}, which has no value."
        )
    try:
        array = np.asarray(value, dtype=want)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
            raise _too_wide(value, tensor) from None
        kind = TypeError if want.kind == "c" else type(error)
        raise kind(
            f"Cannot turn the value fed to {tensor.name} into an array of "
            f"{tensor._dtype.name}: {error}"
        ) from None
    if type(value) is int and want.kind in "iu" and int(array) != value:
        raise _too_wide(value, tensor)
    return array


def _too_wide(value: int, tensor: Tensor) -> TypeError:
    return TypeError(
        f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
        f"{tensor._dtype.as_numpy_dtype}. Try explicitly setting the type of the feed "
        "tensor to a larger type "
        "(e.g. int64)."
    )


def _check_shape(shape: tuple[int, ...], tensor: Tensor) -> None:
    want = tensor._shape
    if want is not None and len(want) == len(shape):
        for d, w in zip(shape, want):
            if w is not None and w != d:
                break
        else:
            return
    elif want is None:
        return
    raise ValueError(
        f"Cannot feed value of shape {shape!r} for Tensor {tensor.name!r}, which has "
        f"shape {str(tensor.shape)!r}"
    )


def _string_converter(tensor: Tensor) -> Converter:
    def convert(value: object) -> np.ndarray[Any, Any]:
        if is_symbolic(value):
            raise TensorFed
        if isinstance(value, int):
            raise _too_wide(value, tensor)
        given = np.asarray(value, dtype=object)
        _check_shape(given.shape, tensor)
        other = next((x for x in given.reshape(-1) if not isinstance(x, (str, bytes))), "")
        if other != "":
            kind = type(other).__name__
            text = f"Unsupported object type {kind}: {tensor.name} takes strings"
            raise errors.InternalError(None, tensor._op, text)
        array = _string_array(given)
        return array  # a single string stays an array: bare bytes have neither shape nor dtype

    return convert


# keys -------------------------------------------------------------------------------------------


def expand_feeds(graph: Graph, feed_dict: FeedDict) -> list[tuple[Tensor, Callable[[Any], Any]]]:
    """For each fed tensor, how to find its value in the feed_dict value that belongs to it.

    The result is in the order of the dictionary; a composite key gives several entries.
    """
    out: list[tuple[Tensor, Callable[[Any], Any]]] = []
    for n, (key, value) in enumerate(feed_dict.items()):
        for tensor, pick in _expand_key(graph, key, value):
            out.append((tensor, _from(n, pick)))
    return out


def check_feeds(graph: Graph, feed_dict: FeedDict) -> None:
    """Raise what is wrong with the values that are fed, if anything is."""
    values = list(feed_dict.values()) if feed_dict else []
    for tensor, pick in expand_feeds(graph, feed_dict) if values else ():
        make_converter(tensor)(pick(values))


def _from(n: int, pick: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if pick is None:
        return lambda values: values[n]
    return lambda values: pick(values[n])


def _sparse_shape(dense_shape: Tensor) -> Callable[[Any], Any]:
    """The third part of a sparse value; it may be left out if the shape is known already."""
    known = static_value(dense_shape)
    return lambda v: v[2] if len(v) > 2 or known is None else known


def _converted_key(
    conversion: Conversion, key: object, value: object
) -> list[tuple[Tensor, Callable[[Any], Any] | None]]:
    """The tensors behind a key of a registered type."""
    feed = conversion.feed
    if feed is None:
        raise TypeError(f"{type(key)} was registered without a function for feeding: {key!r}")
    if conversion.fed_tensors is not None:
        tensors = conversion.fed_tensors(key)
    else:
        tensors = [t for t, _ in feed(key, value)]

    def part(i: int) -> Callable[[Any], Any]:
        return lambda v: feed(key, v)[i][1]

    return [(t, part(i)) for i, t in enumerate(tensors)]


def _ragged_part(key: Any, index: int) -> Callable[[Any], Any]:
    return lambda value: key._fed_part(value, index)


def _expand_key(
    graph: Graph, key: Any, value: Any
) -> list[tuple[Tensor, Callable[[Any], Any] | None]]:
    conversion = conversion_of(key)
    if conversion is not None:
        return _converted_key(conversion, key, value)
    if hasattr(type(key), "_fed_part"):  # RaggedTensor
        return [(t, _ragged_part(key, i)) for i, t in enumerate(key._to_components())]
    if isinstance(key, IndexedSlices):
        parts = [(key.values, lambda v: v[0]), (key.indices, lambda v: v[1])]
        if key.dense_shape is not None:
            parts.append((key.dense_shape, lambda v: v[2]))
        return [(t, p) for t, p in parts]
    if type(key) is not Tensor and hasattr(key, "dense_shape") and hasattr(key, "indices"):
        return [
            (key.indices, lambda v: v[0]),
            (key.values, lambda v: v[1]),
            (key.dense_shape, _sparse_shape(key.dense_shape)),
        ]
    if isinstance(key, tuple):
        out: list[tuple[Tensor, Callable[[Any], Any] | None]] = []
        for i, part in enumerate(key):
            for tensor, pick in _expand_key(graph, part, None if value is None else value[i]):
                out.append((tensor, _nested(i, pick)))
        return out
    try:
        tensor = graph.as_graph_element(key, allow_operation=False)
    except Exception as error:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error}") from None
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor} may not be fed.")
    return [(tensor, None)]


def _nested(i: int, pick: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if pick is None:
        return lambda value: value[i]
    return lambda value: pick(value[i])
