"""Anything a user may pass, as a tensor.

``convert_to_tensor`` looks through a registry of conversion functions by type and priority, as TF
1.15 does; NumPy arrays, Python numbers and nested lists become ``Const`` operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.dtypes import DType
from headrace.core.graph import Graph, get_default_graph
from headrace.core.nested_leaves import check_leaves, default_array, ragged_error
from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef, define
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "convert_n_to_tensor",
    "convert_to_tensor",
    "is_tensor",
    "make_const",
    "make_ndarray",
    "register_tensor_conversion_function",
]

Converter = Callable[..., Any]

#: Classes of eager tensors: each has ``_converted(dtype, graph)``, itself as a tensor of the graph.
EAGER_KINDS: set[type] = set()

CONST: OpDef = define(
    "Const",
    "-> output: dtype; value: tensor, dtype: type",
    shape=lambda c: [c.attr("value").shape],
    kernel=lambda xp, *, node: node.attrs["value"],
    grad=NOT_DIFFERENTIABLE,
    attrs_vary=True,
    static_value=True,
    role="constant",
)


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """``value`` (a tensor, variable, number, list, array) as a tensor.

    ``dtype`` is a demand: a value that does not fit raises. ``preferred_dtype`` (``dtype_hint`` in
    TF 2) is a wish, taken where the value leaves the choice. Without both, Python's floats become
    float32 and ints int32.
    """
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    hint = preferred_dtype if preferred_dtype is not None else dtype_hint
    return convert(value, dtype, name, hint)


def convert(
    value: Any,
    dtype: DType | None = None,
    name: str | None = None,
    preferred: DType | None = None,
    as_ref: bool = False,
    full_name: str | None = None,
) -> Tensor:
    """The working form.

    ``full_name`` names a constant that has to be made, below the op that it is made for.
    """
    if type(value) is Tensor:
        if (
            dtype is not None
            and value._dtype is not dtype
            and value._dtype._base is not dtype._base
        ):
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype "
                f"{value._dtype.name}: {value!r}"
            )
        return value
    kind = type(value)
    if kind in EAGER_KINDS:
        converted: Tensor = value._converted(dtype, get_default_graph())
        return converted
    if kind in _PLAIN or _is_flat(value):
        return _from_python(value, dtype, name, preferred, full_name)
    if full_name is not None:
        if kind is list or kind is tuple:
            name = (
                full_name + "/"
            )  # a list with tensors in it becomes a Pack op below the op that it is made for
        else:  # what a conversion adds (a variable's read) belongs below that op too
            graph = get_default_graph()
            outer, graph._name_stack = graph._name_stack, full_name.rpartition("/")[0]
            try:
                return _registered(value, dtype, name, preferred, as_ref, full_name)
            finally:
                graph._name_stack = outer
    return _registered(value, dtype, name, preferred, as_ref, full_name)


def _registered(
    value: object,
    dtype: DType | None,
    name: str | None,
    preferred: DType | None,
    as_ref: bool,
    full_name: str | None,
) -> Tensor:
    """By the registry, or else as a Python value."""
    kind = type(value)
    for base, function in _converters_for(kind):
        del base
        result = NotImplemented
        if dtype is None and preferred is not None:
            try:
                result = function(value, dtype=dtypes.as_dtype(preferred), name=name, as_ref=as_ref)
            except (TypeError, ValueError):
                result = NotImplemented
        if result is NotImplemented:
            result = function(value, dtype=dtype, name=name, as_ref=as_ref)
        if result is NotImplemented:
            continue
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"Conversion function {function!r} for type {kind} returned non-Tensor: {result!r}"
            )
        tensor: Tensor = result
        return tensor
    return _from_python(value, dtype, name, preferred, full_name)


_PLAIN = frozenset(
    [int, float, bool, complex, str, bytes, np.ndarray, np.float32, np.float64, np.int32, np.int64]
)


def _from_python(
    value: object, dtype: DType | None, name: str | None, preferred: object, full_name: str | None
) -> Tensor:
    if dtype is None and preferred is not None:
        try:
            array = make_ndarray(value, dtypes.as_dtype(preferred))
        except (TypeError, ValueError):
            array = make_ndarray(value, None)
    else:
        array = make_ndarray(value, dtype)
    graph = get_default_graph()
    if graph._is_eager:
        return graph._constant(array, _array_dtype(array, dtype))
    if full_name is not None:
        full_name = graph._unique(full_name)
    else:
        full_name = graph._full_name(name or "Const")
    return make_const(graph, array, _array_dtype(array, dtype), full_name)


def make_const(graph: Graph, array: Array, dtype: DType, full_name: str) -> Tensor:
    """A Const operation holding an array (not to be written to afterwards)."""
    if graph._is_eager:
        return graph._constant(array, dtype)
    op = graph._add_op(CONST, (), {"value": array, "dtype": dtype}, full_name, depth=3)
    out = op._outputs[0]
    out._static = array
    return out


def _array_dtype(array: Array, dtype: DType | None) -> DType:
    return dtype._base if dtype is not None else dtypes.FROM_NUMPY[array.dtype]


# arrays from Python values ----------------------------------------------------------------------


def make_ndarray(value: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """A NumPy array from a Python value, with TF's rules.

    Ints are int32, floats float32, no silent narrowing.
    """
    if dtype is not None:
        dtype = dtype._base
    kind = type(value)
    if kind is float:
        if dtype is None or dtype is dtypes.float32:
            return np.array(value, np.float32)
    elif kind is int:
        if dtype is None or dtype is dtypes.int32:
            if -0x80000000 <= value <= 0x7FFFFFFF:
                return np.array(value, np.int32)
            if dtype is None:
                return np.array(value, np.int64 if value < 2**63 else np.uint64)
            return _wrapped(np.array(value), dtype)
        if dtype._kind == "f":
            return np.array(value, dtype.np_dtype)
    elif isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(np.asarray(value), dtype)
    return _from_nested(value, dtype)


def _from_numpy(array: np.ndarray[Any, Any], dtype: DType | None) -> np.ndarray[Any, Any]:
    if array.dtype.kind in "SUO":
        if dtype is not None and dtype is not dtypes.string:
            return array.astype(
                dtype.np_dtype
            )  # NumPy's rules, as in TensorFlow: numbers in text count
        return _string_array(array)
    if dtype is None:
        dtype = dtypes.as_dtype(array.dtype)
        return np.array(array, dtype.np_dtype, order="C")
    if dtype is dtypes.string:
        if not array.size:
            return array.astype(object)
        raise TypeError(f"Expected string, got an array of type {array.dtype} instead.")
    with np.errstate(all="ignore"):
        return np.array(array, dtype.np_dtype, order="C")


def _string_array(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = np.empty(array.shape, object)
    flat = out.reshape(-1)
    for i, item in enumerate(array.reshape(-1).tolist()):
        flat[i] = _as_bytes(item)
    return flat.reshape(array.shape)


def _as_bytes(item: bytes | str) -> bytes:
    if isinstance(item, bytes):
        return bytes(item)
    if isinstance(item, str):
        return item.encode()
    raise TypeError(f"Expected string, got {item!r} of type '{type(item).__name__}' instead.")


def _from_nested(value: object, dtype: DType | None) -> np.ndarray[Any, Any]:
    if value is None:
        raise ValueError("None values not supported.")
    if isinstance(value, (str, bytes)):
        if dtype is not None and dtype is not dtypes.string:
            raise TypeError(
                f"Expected {dtype.name}, got {value!r} of type '{type(value).__name__}' instead."
            )
        out = np.empty((), object)
        out[()] = _as_bytes(value)
        return out
    quick = _flat_numbers(value, dtype)
    if quick is not None:
        return quick
    value = _plain(value)
    if dtype is dtypes.string:
        return _strings_from_nested(value)
    try:
        array = np.array(value)
    except ValueError as error:
        if dtype is not None:
            check_leaves(value, dtype)
        raise ragged_error(value, dtype, error) from None
    if dtype is dtypes.uint64 and array.dtype.kind == "f":  # NumPy's choice for large integers
        exact = np.array(value, dtype=object)
        if all(isinstance(v, int) for v in exact.reshape(-1)):
            array = (exact % 2**64).astype(np.uint64)
    if array.dtype == object:
        return _from_objects(value, array, dtype)
    if array.dtype.kind in "SU":
        if dtype is not None:
            raise TypeError(f"Expected {dtype.name}, got {value!r} of type 'str' instead.")
        return _string_array(np.array(value, dtype=object))
    if dtype is None:
        return default_array(value, array, get_default_graph()._is_eager)
    _check_kind(value, array, dtype)
    return _wrapped(array, dtype)


def _strings_from_nested(value: object) -> np.ndarray[Any, Any]:
    try:
        array = np.array(value, dtype=object)
    except ValueError as error:
        check_leaves(value, dtypes.string)
        raise ragged_error(value, dtypes.string, error) from None
    if any(isinstance(v, (list, tuple)) for v in array.reshape(-1)):
        check_leaves(value, dtypes.string)
        raise ragged_error(value, dtypes.string, ValueError("the lists differ in length"))
    return _string_array(array)


def _wrapped(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Integers that do not fit are taken modulo the size of the type, as TF 1.15's NumPy does.

    -1 is 255 as uint8.
    """
    with np.errstate(all="ignore"):
        return array.astype(dtype.np_dtype)


_INT32 = np.dtype(np.int32)


def _is_flat(value: Any) -> bool:
    """A short list of Python ints, or of floats: the commonest lists are shapes and axes."""
    if type(value) not in (list, tuple) or not value or len(value) > 64:
        return False
    kind = type(value[0])
    if kind is not int and kind is not float:
        return False
    for v in value:  # noqa: SIM110 (three times as fast as all() with a generator)
        if type(v) is not kind:
            return False
    return True


def _flat_numbers(value: Any, dtype: DType | None) -> np.ndarray[Any, Any] | None:
    """Such a list without the general rules; None where they are needed."""
    if not _is_flat(value):
        return None
    kind = type(value[0])
    try:
        if kind is float:
            if dtype is None:
                return np.array(value, np.float32)
            return np.array(value, dtype.np_dtype) if dtype._kind == "f" else None
        if dtype is None or dtype is dtypes.int32:
            return np.array(value, _INT32)
        return np.array(value, dtype.np_dtype) if dtype._kind in "fi" else None
    except OverflowError:
        return None


def _check_kind(value: object, array: np.ndarray[Any, Any], dtype: DType) -> None:
    """No silent change of kind from Python values.

    1.5 is not an int32, 1 is not a bool; True is a number.
    """
    if array.size == 0:
        return
    have, want = array.dtype.kind, dtype._kind
    wrong = (
        (want in "iu" and have in "fc")
        or (want == "b" and have != "b")
        or (want == "f" and have == "c")
    )
    if wrong or (have == "b" and want != "b"):  # True is an int in Python, np.True_ is not
        check_leaves(value, dtype)
    if wrong:
        first = array.reshape(-1)[0].item()
        raise TypeError(
            f"Expected {dtype.name}, got {first!r} of type '{type(first).__name__}' instead."
        )


def _from_objects(
    value: object, array: np.ndarray[Any, Any], dtype: DType | None
) -> np.ndarray[Any, Any]:
    items = array.reshape(-1).tolist()
    if items and all(isinstance(i, (str, bytes)) for i in items):
        if dtype is not None and dtype is not dtypes.string:
            raise TypeError(
                f"Expected {dtype.name}, got {items[0]!r} of type "
                f"'{type(items[0]).__name__}' instead."
            )
        return _string_array(array)
    for item in items:
        if isinstance(item, Tensor):
            raise TypeError(f"List of Tensors when single Tensor expected: {value!r}")
    bad = next(
        (i for i in items if not isinstance(i, (int, float, complex, np.generic))),
        items[0] if items else value,
    )
    want = dtype.name if dtype is not None else "a number, a string or a (nested) list of them"
    if isinstance(bad, Operation):
        raise TypeError(
            f"Can't convert Operation '{bad.name}' to Tensor: an operation has no value, "
            "its outputs have"
        )
    if get_default_graph()._is_eager:
        raise ValueError(
            f"Attempt to convert a value ({bad!r}) with an unsupported type ({type(bad)}) to a "
            "Tensor."
        )
    raise TypeError(
        f"Failed to convert object of type {type(bad)} to Tensor. Contents: {bad!r}. "
        f"Expected {want}; "
        "consider casting elements to a supported type."
    )


def _plain(value: object) -> Any:
    """Dimensions and shapes inside lists become integers."""
    if isinstance(value, shapes.Dimension):
        if value.value is None:
            raise ValueError(f"Cannot convert an unknown Dimension to a Tensor: {value}")
        return value.value
    if isinstance(value, (list, tuple)) and any(
        isinstance(v, (shapes.Dimension, list, tuple)) for v in value
    ):
        return [_plain(v) for v in value]
    return value


# the registry -----------------------------------------------------------------------------------

_registry: list[tuple[int, int, Any, Converter]] = []
_cache: dict[type, list[tuple[Any, Converter]]] = {}


def register_tensor_conversion_function(
    base_type: str | type[Any] | Sequence[type[Any]],
    conversion_func: Converter,
    priority: int = 100,
) -> None:
    """Lets values of type ``base_type`` (or a tuple of types) be used as tensors.

    ``conversion_func(value, dtype=None, name=None, as_ref=False)`` returns a Tensor or
    NotImplemented. Functions of a smaller ``priority`` are asked first.
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(t, type) for t in types):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _registry.append((priority, len(_registry), types, conversion_func))
    _registry.sort(key=lambda entry: entry[:2])
    _cache.clear()


def _converters_for(kind: type) -> list[tuple[Any, Converter]]:
    found = _cache.get(kind)
    if found is None:
        found = [
            (types, function) for _, _, types, function in _registry if issubclass(kind, types)
        ]
        _cache[kind] = found
    return found


def _shape_converter(
    value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if not value.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
    if dtype is not None and dtype._base not in (dtypes.int32, dtypes.int64):
        raise TypeError(f"Cannot convert a TensorShape to dtype: {dtype.name}")
    large = any(d > 0x7FFFFFFF for d in value.as_list())
    if large and dtype is not None and dtype._base is dtypes.int32:
        raise ValueError(
            "Cannot convert a TensorShape to dtype int32; a dimension is too large "
            f"({max(value.as_list())}). Consider using tf.int64."
        )
    return _from_python(
        np.array(value.as_list(), np.int64 if large else np.int32),
        dtype or (dtypes.int64 if large else dtypes.int32),
        name or "shape_as_tensor",
        None,
        None,
    )


def _dimension_converter(
    value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if value.value is None:
        raise ValueError(f"Cannot convert an unknown Dimension to a Tensor: {value}")
    return _from_python(value.value, dtype or dtypes.int32, name or "shape_as_tensor", None, None)


register_tensor_conversion_function(shapes.TensorShape, _shape_converter)
register_tensor_conversion_function(shapes.Dimension, _dimension_converter)


def require_tensor(value: object, function: str) -> None:
    """TensorFlow reads the shape of some arguments before it converts them.

    Arrays and lists are an AttributeError.
    """
    if not hasattr(value, "get_shape"):
        raise AttributeError(
            f"{function} takes a tensor, not a {type(value).__name__} (which has no 'get_shape'): "
            "convert it with tf.convert_to_tensor."
        )


def convert_n_to_tensor(
    values: Sequence[Any], dtype: object = None, name: str | None = None
) -> list[Tensor]:
    return [
        convert_to_tensor(v, dtype, None if name is None else f"{name}_{i}")
        for i, v in enumerate(values)
    ]


_TENSOR_LIKE: list[type] = [Tensor]


def register_tensor_like(kind: type) -> None:
    """Types (Variable, SparseTensor, …) that ``is_tensor`` says yes to."""
    _TENSOR_LIKE.append(kind)


def is_tensor(value: object) -> bool:
    """True for what operations take as a tensor: Tensors, Variables, SparseTensors and their like.

    False for NumPy arrays and Python numbers, which are only convertible.
    """
    return isinstance(value, tuple(_TENSOR_LIKE))
