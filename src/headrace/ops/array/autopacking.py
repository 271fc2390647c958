"""Lists that contain tensors: ``convert_to_tensor([x, 1.0])`` stacks them (autopacking)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import convert
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__: list[str] = []


# lists that contain tensors ---------------------------------------------------------------------


def _is_dense(value: TensorLike) -> bool:
    return isinstance(value, Tensor) or getattr(value, "_as_graph_element", None) is not None


def _packed_dtype(values: Any) -> DType | None:
    """The type of the first tensor anywhere in nested lists."""
    stack = [values]
    while stack:
        item = stack.pop()
        if isinstance(item, (list, tuple)):
            stack.extend(reversed(item))
        elif _is_dense(item):
            return as_dtype(item.dtype).base_dtype
    return None


def _pack(values: Sequence[int | Tensor], dtype: DType, name: str) -> Tensor:
    """Nested lists with tensors in them as Pack operations.

    Numbers become constants named by position.
    """
    with name_scope(name) as scope:
        items = [_packable(v, dtype, i) for i, v in enumerate(values)]
        return apply_op("Pack", items, axis=0, name=scope)


def _packable(value: int | Tensor, dtype: DType, position: int) -> Tensor:
    if _is_dense(value):
        tensor = convert_to_tensor(value)
        if tensor._dtype._base is not dtype:
            raise TypeError(
                f"Cannot convert a list containing a tensor of dtype {tensor._dtype} to "
                f"{dtype} (Tensor is: {tensor!r})"
            )
        return tensor
    if isinstance(value, (list, tuple)) and _packed_dtype(value) is not None:
        return _pack(value, dtype, str(position))
    return convert_to_tensor(value, dtype, str(position))


def _cast_tensors(value: Tensor, dtype: DType) -> Tensor | list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [_cast_tensors(v, dtype) for v in value]
    if _is_dense(value) and as_dtype(value.dtype).base_dtype is not dtype:
        return apply_op("Cast", value, DstT=dtype)
    return value


def _autopack(
    value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Any:
    """Conversion of lists: ``[tf.shape(x)[0], -1]`` is one tensor."""
    if as_ref:
        return NotImplemented
    found = _packed_dtype(value)
    if found is None:
        return NotImplemented
    if dtype is None:
        dtype = found
    elif dtype._base is not found:
        dtype = dtype._base
        value = _cast_tensors(value, dtype)
    return _pack(value, dtype, name or "packed")


convert.register_tensor_conversion_function((list, tuple), _autopack, 99)
