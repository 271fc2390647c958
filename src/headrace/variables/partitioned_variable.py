"""A variable that is made of several: the shards of one large variable, cut along one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor, register_tensor_conversion_function
from headrace.core.dtypes import DType
from headrace.core.graph import get_default_graph
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import identity
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike

__all__ = ["PartitionInfo", "PartitionedVariable"]


class PartitionInfo:
    """What an initializer may know of the shard that it fills."""

    def __init__(self, full_shape: list[int | None], var_offset: list[int]) -> None:
        self._full_shape = full_shape
        self._var_offset = var_offset

    @property
    def full_shape(self) -> list[int | None]:
        return self._full_shape

    @property
    def var_offset(self) -> list[int]:
        return self._var_offset

    def single_offset(self, shape: Sequence[int]) -> int:
        """The offset along the one axis that is cut."""
        return self._var_offset[self.single_slice_dim(shape) or 0]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The axis along which ``shape`` is a part of the whole; None if it is the whole."""
        cut = [i for i, (part, full) in enumerate(zip(shape, self._full_shape)) if part != full]
        if len(cut) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape {shape} and full_shape "
                f"{self._full_shape}"
            )
        return cut[0] if cut else None


class PartitionedVariable:
    """Shards that read as one tensor."""

    def __init__(
        self,
        name: str,
        shape: TensorLike,
        dtype: DTypeLike,
        variable_list: Sequence[Any],
        partitions: Sequence[int],
    ) -> None:
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError(f"variable_list is not a list or tuple: {variable_list}")
        if not isinstance(partitions, (list, tuple)):
            raise TypeError(f"partitions is not a list or tuple: {partitions}")
        if not all(p >= 1 for p in partitions):
            raise ValueError(f"partition values must be positive: {partitions}")
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        full = as_shape(shape).as_list()
        if len(full) != len(partitions):
            raise ValueError(f"len(shape) != len(partitions): {full} vs. {partitions}")
        for v in variable_list:
            if not isinstance(v, Variable):
                raise ValueError("all entries of variable_list must be variables")
            info = v._get_save_slice_info()
            if info is None:
                raise ValueError(
                    f"All variables in variable_list must have a save_slice_info; {v.name} has none"
                )
            if info.full_shape != full:
                raise ValueError(
                    f"All variables' full shapes must match shape: {full}, but {v.name} belongs to "
                    f"{info.full_shape}"
                )
        self._variable_list = sorted(
            variable_list, key=lambda v: v._get_save_slice_info().var_offset
        )
        self._name = name
        self._shape: TensorShape = as_shape(shape)
        self._dtype: DType = dtypes.as_dtype(dtype)
        self._partitions = partitions

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variable_list)

    def __len__(self) -> int:
        axes = self._partition_axes()
        if len(axes) > 1:
            raise ValueError(f"Cannot get a length for {len(axes)} > 1 partition axes")
        return len(self._variable_list)

    def _partition_axes(self) -> list[int]:
        return [i for i, p in enumerate(self._partitions) if p > 1] or [0]

    def _concat(self) -> Tensor:
        if len(self._variable_list) == 1:
            with get_default_graph().name_scope(None):
                return identity(self._variable_list[0], name=self._name)
        axes = self._partition_axes()
        if len(axes) > 1:
            raise NotImplementedError(f"Cannot concatenate along more than one dimension: {axes}.")
        with name_scope(self._name + "/ConcatPartitions/"):
            whole = apply_op("ConcatV2", list(self._variable_list), axes[0], name="concat")
        with get_default_graph().name_scope(None):
            return identity(whole, name=self._name)

    def as_tensor(self) -> Tensor:
        """The whole variable as one tensor."""
        with control_dependencies(None):
            return self._concat()

    @property
    def _graph_anchor(self) -> Tensor:
        anchor: Tensor = self._variable_list[0]._graph_anchor
        return anchor

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def get_shape(self) -> TensorShape:
        return self._shape

    def _get_variable_list(self) -> list[Any]:
        return self._variable_list

    def _get_partitions(self) -> Sequence[int]:
        return self._partitions

    # writing ------------------------------------------------------------------------------------
    def _apply(
        self, how: str, value: TensorLike, name: str | None, read_value: bool, **options: object
    ) -> list[Any]:
        """One write per shard, with the shard's part of ``value``."""
        axes = self._partition_axes()
        if len(axes) > 1:
            raise NotImplementedError(
                f"Cannot do assign action along more than one dimension: {axes}."
            )
        if isinstance(value, (list, tuple, PartitionedVariable)):
            if len(value) != len(self._variable_list):
                raise ValueError(
                    f"{len(value)} values for {len(self._variable_list)} shards of {self._name}"
                )
            parts: Sequence[Any] = list(value)
        else:
            whole = convert_to_tensor(value, self._dtype.base_dtype)
            infos = [v._get_save_slice_info() for v in self._variable_list]
            parts = [apply_op("Slice", whole, i.var_offset, i.var_shape) for i in infos]
        out = []
        for i, (variable, part) in enumerate(zip(self._variable_list, parts)):
            op_name = None if name is None else f"{name}_{i}"
            out.append(getattr(variable, how)(part, name=op_name, read_value=read_value, **options))
        return out

    def assign(
        self,
        value: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        return self._apply("assign", value, name, read_value, use_locking=use_locking)

    def assign_add(
        self,
        value: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        return self._apply("assign_add", value, name, read_value, use_locking=use_locking)

    def assign_sub(
        self,
        value: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        return self._apply("assign_sub", value, name, read_value, use_locking=use_locking)


def _convert(
    value: PartitionedVariable,
    dtype: DType | None = None,
    name: str | None = None,
    as_ref: bool = False,
) -> Tensor:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable "
            f"of type '{value.dtype.name}'"
        )
    if as_ref:
        raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
    return value.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _convert)
