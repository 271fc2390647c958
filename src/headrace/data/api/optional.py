"""``tf.data.experimental.Optional``: an element, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_list, apply_op
from headrace.core.opdef import lookup
from headrace.core.specs import TensorSpec, register_type_spec
from headrace.data.api import structure
from headrace.data.api.element_spec import ElementSpec

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = ["Optional", "OptionalSpec"]


class Optional:
    """A value that may be missing: ``has_value()``, ``get_value()``."""

    def __init__(self, variant_tensor: Any, element_spec: Any) -> None:
        self._variant_tensor = variant_tensor
        self._element_spec = element_spec

    @staticmethod
    def from_value(value: object) -> Optional:
        value = structure.normalize(value)
        spec = structure.spec_of(value)
        return Optional(apply_op("OptionalFromValue", structure.to_components(spec, value)), spec)

    @staticmethod
    def none_from_structure(value_structure: object) -> Optional:
        return Optional(apply_op("OptionalNone"), value_structure)

    empty = none_from_structure

    def has_value(self, name: str | None = None) -> Tensor:
        return apply_op("OptionalHasValue", self._variant_tensor, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The value; InvalidArgumentError if there is none."""
        spec = self._element_spec
        found = apply_list(
            lookup("OptionalGetValue"),
            self._variant_tensor,
            output_types=structure.component_types(spec),
            output_shapes=structure.component_shapes(spec),
            name=name,
        )
        return structure.from_components(spec, found)

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    value_structure = element_spec

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self._element_spec)

    @property
    def _graph_anchor(self) -> Any:
        return self._variant_tensor


class OptionalSpec(ElementSpec):
    """Of an optional with values of a given structure."""

    value_type = Optional

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), dtypes.variant),)

    def to_components(self, value: Any) -> list[Any]:
        return [value._variant_tensor]

    def from_components(self, tensors: Sequence[Any]) -> Optional:
        return Optional(tensors[0], self._element_spec)

    def is_subtype_of(self, other: object) -> bool:
        return bool(self == other)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        return self in (spec_or_value, getattr(spec_or_value, "_type_spec", None))

    def most_specific_common_supertype(self, others: Any) -> Any:
        return self if all(o == self for o in others) else None

    def __repr__(self) -> str:
        return f"OptionalSpec({self._element_spec!r})"


register_type_spec(Optional, lambda value: value._type_spec)
