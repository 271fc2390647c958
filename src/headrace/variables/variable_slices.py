"""Slices of variables.

``v[1:3].assign(x)``, and where a partition lies in its whole (for checkpoints).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import lookup
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation
    from headrace.variables.variable import Variable

__all__ = ["SaveSliceInfo", "sliced_variable"]

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class SaveSliceInfo:
    """Which part of a larger variable a variable holds."""

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Any = None,
        var_offset: Any = None,
        var_shape: Any = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            stored = save_slice_info_def
            full_name = f"{import_scope}/{stored.full_name}" if import_scope else stored.full_name
            full_shape, var_offset, var_shape = (
                stored.full_shape,
                stored.var_offset,
                stored.var_shape,
            )
        self.full_name = full_name
        self.full_shape = None if full_shape is None else list(full_shape)
        self.var_offset = None if var_offset is None else list(var_offset)
        self.var_shape = None if var_shape is None else list(var_shape)

    @property
    def spec(self) -> str:
        """TensorFlow's text form: ``5 2 0,3:0,2`` is rows 0 to 3 of a [5, 2] variable."""
        full = "".join(f"{d} " for d in self.full_shape or ())
        return full + ":".join(
            f"{o},{s}" for o, s in zip(self.var_offset or (), self.var_shape or ())
        )

    def to_proto(self, export_scope: str | None = None) -> Any:
        from headrace.variables.variable_proto import slice_info_to_proto

        return slice_info_to_proto(self, export_scope)


def sliced_variable(variable: Variable, key: object) -> Tensor:
    """``variable[key]``: a tensor that can also be assigned to."""
    result: Tensor = variable.value()[key]
    op = result._op
    if op.type == "StridedSlice":

        def assign(value: TensorLike, name: str | None = None) -> Any:
            return _assign_slice(variable, op, value, name or f"{op.name}/_assign/")

        vars(result)["assign"] = assign
    return result


def _assign_slice(variable: Any, op: Operation, value: TensorLike, name: str | None) -> Any:
    begin, end, strides = op._inputs[1:4]
    masks = {mask: op._attrs[mask] for mask in _MASKS}
    if hasattr(variable, "handle"):
        dtype = variable.dtype
        value = convert_to_tensor(value, dtype)
        write = apply_operation(
            lookup("ResourceStridedSliceAssign"),
            variable.handle,
            begin,
            end,
            strides,
            value,
            name=name,
            T=dtype,
            **masks,
        )
        return variable._lazy_read(write)
    return apply_op(
        "StridedSliceAssign", variable._ref(), begin, end, strides, value, name=name, **masks
    )
