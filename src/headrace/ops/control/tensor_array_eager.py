"""``tf.TensorArray`` while eager execution is on: a Python list of tensors, changed in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply_list, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import lookup
from headrace.core.tensor import Tensor
from headrace.ops.control.tensor_array import TensorArray

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["EagerTensorArray"]


class EagerTensorArray(TensorArray):
    """Every change is made in place.

    Methods return the array itself, so that graph code reads the same.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: object = None,
        flow: object = None,
        infer_shape: bool = True,
        element_shape: object = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None:
            raise ValueError(
                "TensorArray handles are not supported when eager execution is enabled."
            )
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._element_shape = [shapes.to_plain(element_shape)]
        self._clear = clear_after_read is not False
        self._items: list[Tensor | None] = [None] * (0 if size is None else int(size))
        self._cleared: set[int] = set()
        self._flow = convert_to_tensor(0.0)

    @property
    def handle(self) -> Any:
        return None

    _graph_anchor = None  # type: ignore[assignment]

    def _as_tensor_for_control_flow(self) -> Any:
        return self

    def _from_tensor_for_control_flow(self, flow: object) -> TensorArray:
        return self

    def identity(self) -> TensorArray:
        return self

    def grad(self, source: str, flow: object = None, name: str | None = None) -> TensorArray:
        raise NotImplementedError(
            "TensorArray.grad is not supported when executing eagerly; eager's gradient "
            "implementation does not use "
            "TensorArray gradients."
        )

    def read(self, index: Any, name: str | None = None) -> Tensor:
        i = int(index)
        if not 0 <= i < len(self._items):
            raise errors.OutOfRangeError(
                None, None, f"Tried to read from index {i} but array size is: {len(self._items)} "
            )
        value = self._items[i]
        if value is None:
            value = self._missing(i)
        if self._clear:
            self._items[i] = None
            self._cleared.add(i)
        return value

    def _value(self, i: int) -> Tensor:
        """An element that stays; zeros where there is none (any more), as in TensorFlow."""
        if not 0 <= i < len(self._items):
            raise errors.OutOfRangeError(
                None, None, f"Tried to read from index {i} but array size is: {len(self._items)} "
            )
        value = self._items[i]
        return self._zeros(i) if value is None else value

    def _missing(self, i: int) -> Tensor:
        if i in self._cleared:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Could not read index {i} twice because it was cleared after a previous "
                "read (perhaps try setting "
                "clear_after_read = false?)",
            )
        return self._zeros(i)

    def _zeros(self, i: int) -> Tensor:
        shape = shapes.known(self._element_shape[0])
        if shape is None:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Could not read from TensorArray index {i} because it has not yet been "
                "written to.",
            )
        return convert_to_tensor(np.zeros(shape, self._dtype.np_dtype))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        self._set(int(index), value)
        return self

    def _set(self, i: int, given: TensorLike) -> None:
        value = convert_to_tensor(given, preferred_dtype=self._dtype)
        if value._dtype is not self._dtype:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{value._dtype.name} ",
            )
        self._note_shape(value._shape)
        if i < 0:
            raise errors.OutOfRangeError(
                None, None, f"Writing to negative indices (index {i}) is not allowed."
            )
        if i >= len(self._items):
            if not self._dynamic_size:
                raise errors.OutOfRangeError(
                    None,
                    None,
                    f"Tried to write to index {i} but array is not resizeable and size "
                    f"is: {len(self._items)} ",
                )
            self._items.extend([None] * (i + 1 - len(self._items)))
        self._items[i] = value
        self._cleared.discard(i)

    def stack(self, name: str | None = None) -> Tensor:
        return self.gather(range(len(self._items)))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        parts = [self._value(int(i)) for i in indices]
        if not parts:
            shape = shapes.known(self._element_shape[0]) or ()
            return convert_to_tensor(np.zeros((0, *shape), self._dtype.np_dtype))
        return apply_op("Pack", parts, axis=0)

    def concat(self, name: str | None = None) -> Tensor:
        parts = [self._value(i) for i in range(len(self._items))]
        if not parts:
            return convert_to_tensor(np.zeros((0,), self._dtype.np_dtype))
        for i, part in enumerate(parts):
            if part._shape == ():
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Concat saw a scalar shape at index {i} but requires at least vectors.",
                )
        return parts[0] if len(parts) == 1 else apply_op("ConcatV2", parts, 0)

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        rows = self._rows(value)
        if len(rows) > len(self._items) and not self._dynamic_size:
            raise ValueError(
                f"Cannot unstack {len(rows)} tensors into a TensorArray of static size "
                f"{len(self._items)} "
            )
        self._items = [None] * max(len(rows), len(self._items))
        for i, row in enumerate(rows):
            self._set(i, row)
        return self

    def _rows(self, value: object) -> list[Any]:
        tensor = convert_to_tensor(value, preferred_dtype=self._dtype)
        shape: Any = tensor._shape
        return list(apply_list(lookup("Unpack"), tensor, num=shape[0], axis=0))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        for i, row in zip(indices, self._rows(value)):
            self._set(int(i), row)
        return self

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        tensor = convert_to_tensor(value, preferred_dtype=self._dtype)
        lengths = np.asarray(convert_to_tensor(lengths))
        if lengths.ndim != 1:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Expected lengths to be a vector, received shape: {shapes.show(lengths.shape)}",
            )
        if tensor._shape == ():
            raise errors.InvalidArgumentError(
                None, None, "Expected value to be at least a vector, but received shape: []"
            )
        sizes = [int(n) for n in lengths]
        if sum(sizes) != tensor.shape.as_list()[0]:
            raise errors.InvalidArgumentError(
                None,
                None,
                "Expected sum of lengths to be equal to values.shape[0], but sum of "
                f"lengths is {sum(sizes)} and value's "
                f"shape is: {shapes.show(tensor._shape)} ",
            )
        if len(sizes) != len(self._items) and not self._dynamic_size:
            raise errors.InvalidArgumentError(
                None,
                None,
                "TensorArray's size is not equal to the size of lengths "
                f"({len(self._items)} vs. {len(sizes)}), and the TensorArray is not marked as "
                "dynamically resizeable",
            )
        self._items = [None] * len(sizes)
        at = 0
        for i, n in enumerate(sizes):
            self._set(i, tensor[at : at + n])
            at += n
        return self

    def size(self, name: str | None = None) -> Tensor:
        return convert_to_tensor(np.asarray(len(self._items), np.int32))

    def close(self, name: str | None = None) -> None:
        self._items.clear()
