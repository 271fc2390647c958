"""``tensorflow.python.framework.ops``: what packages use of it beside the classes of a graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.api.contrib.framework_ops import get_graph_from_inputs, get_name_scope
from headrace.api.v1.context import executing_eagerly_outside_functions
from headrace.core.convert import convert_to_tensor, register_tensor_like
from headrace.core.graph import get_default_graph
from headrace.core.scoped_names import prepend_name_scope, strip_name_scope
from headrace.core.tensor import Tensor
from headrace.ops.sparse.sparse_tensor import convert_to_tensor_or_indexed_slices
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike

__all__ = [
    "RegisterShape", "_get_graph_from_inputs", "convert_n_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_composite", "convert_to_tensor_or_indexed_slices",
    "executing_eagerly_outside_functions", "get_name_scope", "inside_function",
    "internal_convert_n_to_tensor", "internal_convert_to_tensor", "is_dense_tensor_like",
    "name_from_scope_name", "prepend_name_scope", "register_dense_tensor_like_type",
    "strip_name_scope", "uid",
]  # fmt: skip

_get_graph_from_inputs = get_graph_from_inputs
_numbers = itertools.count(1)
_DENSE: list[type] = [Tensor, Variable]


def uid() -> int:
    """A number that no earlier call gave."""
    return next(_numbers)


def is_dense_tensor_like(t: object) -> bool:
    """Whether something is a tensor, a variable, or of a registered type; not a SparseTensor."""
    return isinstance(t, tuple(_DENSE))


def register_dense_tensor_like_type(tensor_type: type) -> None:
    """Have :func:`is_dense_tensor_like` and `tf.is_tensor` say yes to a type with ``name`` and
    ``dtype`` as properties.
    """
    for attribute in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, attribute, None), property):
            raise TypeError(f"Type {tensor_type.__name__} does not define a `{attribute}` property")
    _DENSE.append(tensor_type)
    register_tensor_like(tensor_type)


def internal_convert_to_tensor(
    value: object,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: DTypeLike | None = None,
    **_unused: object,
) -> Tensor:
    """`tf.convert_to_tensor`. References are tensors here; what else may follow (``ctx``,
    ``accept_symbolic_tensors``) chooses between TensorFlow's executors.
    """
    return convert_to_tensor(value, dtype, name, preferred_dtype)


def internal_convert_n_to_tensor(
    values: Sequence[object],
    dtype: DTypeLike | None = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: DTypeLike | None = None,
    ctx: object = None,
) -> list[Tensor]:
    """A list of tensors, named ``name_0``, ``name_1`` …"""
    if not isinstance(values, Sequence):
        raise TypeError("values must be a sequence.")
    return [
        convert_to_tensor(v, dtype, None if name is None else f"{name}_{i}", preferred_dtype)
        for i, v in enumerate(values)
    ]


convert_to_tensor_or_composite = convert_to_tensor_or_indexed_slices


def convert_n_to_tensor_or_indexed_slices(
    values: Sequence[object], dtype: DTypeLike | None = None, name: str | None = None
) -> list[Any]:
    """Several values, None as it is; named ``name_0``, ``name_1`` …"""
    if not isinstance(values, Sequence):
        raise TypeError("values must be a sequence.")
    return [
        v
        if v is None
        else convert_to_tensor_or_indexed_slices(v, dtype, None if name is None else f"{name}_{i}")
        for i, v in enumerate(values)
    ]


def name_from_scope_name(name: str) -> str:
    """A name without the slash at its end."""
    return name[:-1] if name and name[-1] == "/" else name


def inside_function() -> bool:
    """Whether the default graph is a function's."""
    return bool(get_default_graph().building_function)


class RegisterShape:
    """Was a decorator of shape functions; TensorFlow 1.15 registers nothing, either."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return f
