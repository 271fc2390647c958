"""Slot variables: state that an optimizer or a moving average keeps beside a variable
(``tf.train.slot_creator``).

A slot of ``w`` made for "Adam" is called ``w/Adam``, the next one ``w/Adam_1``: the name comes from
a variable scope that is made unique. Slots are of the same kind (reference or resource) as their
primary and never trainable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.scopes import colocate_with
from headrace.core.tensor import Tensor
from headrace.ops.array import array_shape, filling
from headrace.train.tensor_helpers import op_of
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable import Variable
from headrace.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.shapes import TensorShape

__all__ = ["create_slot", "create_slot_with_initializer", "create_zeros_slot"]


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Any:
    """A slot that starts with the value of a tensor."""
    validate_shape = val.get_shape().is_fully_defined()
    return _create(primary, val, name, validate_shape, None, None, colocate_with_primary)


def create_slot_with_initializer(
    primary: Any,
    initializer: Any,
    shape: TensorShape,
    dtype: DType,
    name: str,
    colocate_with_primary: bool = True,
) -> Any:
    """A slot that starts with what an initializer makes for ``shape`` and ``dtype``."""
    validate_shape = shape.is_fully_defined()
    return _create(primary, initializer, name, validate_shape, shape, dtype, colocate_with_primary)


def create_zeros_slot(
    primary: Tensor | Variable,
    name: str,
    dtype: DType | None = None,
    colocate_with_primary: bool = True,
) -> Any:
    """A slot of zeros in the shape of the primary."""
    if dtype is None:
        dtype = primary.dtype
    shape = primary.get_shape()
    if shape.is_fully_defined():
        return create_slot_with_initializer(
            primary, zeros_initializer(), shape, dtype, name, colocate_with_primary
        )
    source = primary if isinstance(primary, Tensor) else primary.initialized_value()
    zeros = filling.zeros(array_shape.shape(source), dtype=dtype.base_dtype)
    return create_slot(primary, zeros, name, colocate_with_primary)


def _create(
    primary: Tensor,
    val: Tensor,
    name: str,
    validate_shape: bool,
    shape: ShapeLike | None,
    dtype: DTypeLike | None,
    colocated: bool,
) -> Any:
    with variable_scope(None, op_of(primary).name + "/" + name):
        if not colocated:
            return _variable(primary, val, validate_shape, shape, dtype)
        with colocate_with(op_of(primary)):
            return _variable(primary, val, validate_shape, shape, dtype)


def _variable(
    primary: TensorLike,
    val: TensorLike,
    validate_shape: bool,
    shape: ShapeLike | None,
    dtype: DTypeLike | None,
) -> Any:
    """The variable itself, named like the current variable scope, and never partitioned again."""
    scope = get_variable_scope()
    partitioner = scope.partitioner
    scope.set_partitioner(None)
    try:
        slot = get_variable(
            "",
            initializer=val,
            trainable=False,
            use_resource=None if isinstance(primary, Tensor) else op_of(primary)._role == "handle",
            shape=shape if callable(val) else None,
            dtype=dtype,
            validate_shape=validate_shape,
        )
    finally:
        scope.set_partitioner(partitioner)
    if getattr(primary, "_save_slice_info", None):
        _slice_like(primary, slot)
    return slot


def _slice_like(primary: Any, slot: Any) -> None:
    """The slot of a part of a partitioned variable is saved as the same part of a partitioned
    slot.
    """
    info = primary._save_slice_info
    own_name = op_of(slot).name[len(op_of(primary).name) + 1 :]
    slot._set_save_slice_info(
        Variable.SaveSliceInfo(
            f"{info.full_name}/{own_name}",
            list(info.full_shape),
            list(info.var_offset),
            list(info.var_shape),
        )
    )
