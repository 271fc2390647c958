"""``tf.TensorArraySpec``: a TensorArray as a part of a dataset's elements.

It travels as the tensor of its stacked elements, so that every element must have been written and
have one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.dtypes import as_dtype
from headrace.core.shapes import as_shape
from headrace.core.specs import TensorSpec, TypeSpec, wider_shape
from headrace.ops.control.tensor_array import TensorArray

__all__ = ["TensorArraySpec"]


class TensorArraySpec(TypeSpec):
    """Element shape and type of a TensorArray, for datasets.

    ``element_shape`` may have unknown sizes; ``dynamic_size`` says whether the array may grow,
    ``infer_shape`` whether all elements have the shape of the first.
    """

    value_type = TensorArray

    def __init__(
        self,
        element_shape: object = None,
        dtype: object = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = as_shape(element_shape)
        self._dtype = as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    def _key(self) -> tuple[Any, ...]:
        return self._element_shape._plain, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec(as_shape([None]).concatenate(self._element_shape), self._dtype),)

    def to_components(self, value: Any) -> list[Any]:
        return [value.stack()]

    def from_components(self, tensors: Sequence[Any]) -> TensorArray:
        (stacked,) = tensors
        shape = apply_op("Shape", stacked)
        made = TensorArray(
            self._dtype,
            shape[0],
            dynamic_size=self._dynamic_size,
            clear_after_read=False,
            infer_shape=self._infer_shape,
            element_shape=self._element_shape,
        )
        return made.unstack(stacked)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """Of arrays of one type that grow alike; elements may differ in shape."""
        shape = self._element_shape
        for other in others:
            if type(other) is not type(self) or other._key()[1:] != self._key()[1:]:
                return None
            shape = wider_shape(shape, other._element_shape)
        return TensorArraySpec(shape, self._dtype, self._dynamic_size, self._infer_shape)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        other = getattr(spec_or_value, "_type_spec", spec_or_value)
        return (
            isinstance(other, TensorArraySpec)
            and other._dtype == self._dtype
            and other._dynamic_size == self._dynamic_size
            and self._element_shape.is_compatible_with(other._element_shape)
        )

    def __repr__(self) -> str:
        return f"TensorArraySpec({self._element_shape!r}, {self._dtype!r})"
