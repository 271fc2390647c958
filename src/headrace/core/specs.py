"""Specs: what is known of a value before it is there. ``TensorSpec([None, 3], tf.float32)``.

A spec says which values fit it, how a value falls apart into plain tensors and how it is put
together again, so that functions, datasets and signatures can carry SparseTensors and IndexedSlices
through code that knows tensors only.

    spec = type_spec_from_value(value)
    spec.from_components(spec.to_components(value))      # the same value again
    spec.component_specs                                 # TensorSpecs of the parts
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.dtypes import DType, as_dtype
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import lookup
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.ops.sparse.sparse_tensor import SparseTensor

__all__ = [
    "IndexedSlicesSpec",
    "Shaped",
    "SparseTensorSpec",
    "TensorSpec",
    "TypeSpec",
    "VariableSpec",
    "components",
    "component_specs",
    "from_components",
    "packer",
    "register_type_spec",
    "spec_structure",
    "type_spec_from_value",
    "wider_shape",
]


class TypeSpec:
    """Base of all specs. Two specs are equal if they are of one class and say the same."""

    value_type: ClassVar[Any] = None

    def _key(self) -> tuple[Any, ...]:
        raise NotImplementedError

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        """Of the plain tensors that a value consists of."""
        raise NotImplementedError

    def to_components(self, value: Any) -> list[Any]:
        raise NotImplementedError

    def from_components(self, tensors: Sequence[Any]) -> Any:
        raise NotImplementedError

    def is_subtype_of(self, other: object) -> bool:
        """Whether every value of this spec fits ``other``."""
        return bool(self == other)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """The narrowest spec that covers this one and ``others``; None if there is none."""
        return self if all(other == self for other in others) else None

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Whether a value can be both of this spec and of the other."""
        raise NotImplementedError

    def most_specific_compatible_type(self, other: TypeSpec) -> Any:
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))


def wider_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """The narrowest shape that covers both."""
    left, right = a._plain, b._plain
    if left is None or right is None or len(left) != len(right):
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(left, right)])


def _covers(wide: TensorShape, narrow: TensorShape) -> bool:
    big, small = wide._plain, narrow._plain
    if big is None:
        return True
    if small is None or len(big) != len(small):
        return False
    return all(x is None or x == y for x, y in zip(big, small))


def _shown(shape: TensorShape) -> str:
    """As TF 2 writes shapes: ``(None, 3)``."""
    return "<unknown>" if shape._plain is None else str(tuple(shape._plain))


class Shaped(TypeSpec):
    """What has a shape and a type."""

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype)

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    def _key(self) -> tuple[Any, ...]:
        return (self._shape._plain, self._dtype)

    def _like(self, shape: TensorShape) -> Any:
        return type(self)(shape, self._dtype)

    def _same_kind(self, other: SparseTensorSpec | TensorSpec | int) -> bool:
        return type(other) is type(self) and other._dtype is self._dtype

    def is_subtype_of(self, other: Any) -> bool:
        return self._same_kind(other) and _covers(other._shape, self._shape)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        shape = self._shape
        for other in others:
            if not self._same_kind(other):
                return None
            shape = wider_shape(shape, other._shape)
        return self._like(shape)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        other = _spec_or_none(spec_or_value)
        return (
            isinstance(other, type(self))
            and other._dtype._base is self._dtype._base
            and self._shape.is_compatible_with(other._shape)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shape!r}, {self._dtype!r})"


class TensorSpec(Shaped):
    """Shape, type and, if wanted, the name of a tensor, as in an ``input_signature``.

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    """

    value_type = Tensor

    def __init__(
        self, shape: object = None, dtype: object = dtypes.float32, name: str | None = None
    ) -> None:
        super().__init__(shape, dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        if isinstance(tensor, Tensor) or hasattr(tensor, "_as_graph_element"):
            own = getattr(tensor, "_op", None)
            return cls(
                tensor.shape,
                tensor.dtype.base_dtype,
                name or (own.name if own is not None else None),
            )
        if isinstance(tensor, (np.ndarray, np.generic)):
            return cls(tensor.shape, tensor.dtype, name)
        raise ValueError(f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.")

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        return (self,)

    def to_components(self, value: object) -> list[Any]:
        return [value]

    def from_components(self, tensors: Sequence[Any]) -> Any:
        return tensors[0]

    def _key(self) -> tuple[Any, ...]:
        return (self._shape._plain, self._dtype, self._name)

    def _like(self, shape: TensorShape) -> TensorSpec:
        return TensorSpec(shape, self._dtype, self._name)

    def is_subtype_of(self, other: Any) -> bool:
        named = not self._name or self._name == getattr(other, "name", None)
        return named and super().is_subtype_of(other)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        if any(getattr(other, "name", None) != self._name for other in others):
            return None
        return super().most_specific_common_supertype(others)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        if isinstance(spec_or_value, (np.ndarray, np.generic)):
            spec_or_value = TensorSpec(spec_or_value.shape, spec_or_value.dtype)
        return super().is_compatible_with(spec_or_value)

    def __reduce__(self) -> Any:
        return TensorSpec, (self._shape._plain, self._dtype.name, self._name)

    def __repr__(self) -> str:
        return (
            f"TensorSpec(shape={_shown(self._shape)}, dtype={self._dtype!r}, name={self._name!r})"
        )


class SparseTensorSpec(Shaped):
    """Dense shape and type of a SparseTensor, for signatures and datasets."""

    #: ``tf.SparseTensor``, set where it is defined (ops/sparse/sparse_tensor.py).
    value_type: ClassVar[Any] = None

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        rank = self._shape.rank
        return (
            TensorSpec([None, rank], dtypes.int64),
            TensorSpec([None], self._dtype),
            TensorSpec([rank], dtypes.int64),
        )

    def to_components(self, value: SparseTensor) -> list[Any]:
        return [value.indices, value.values, value.dense_shape]

    def from_components(self, tensors: Sequence[Any]) -> Any:
        if self.value_type is None:
            lookup("SparseReorder")  # loads the module of SparseTensor
        made = self.value_type(*tensors)
        made._known_shape = self._shape
        return made

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        return cls(value.shape, value.dtype)

    def __reduce__(
        self,
    ) -> tuple[type[SparseTensorSpec], tuple[tuple[int | None, ...] | None, str]]:
        return type(self), (self._shape._plain, self._dtype.name)


class IndexedSlicesSpec(Shaped):
    """Shape and types of IndexedSlices, for the signatures of functions.

    ``shape`` and ``dtype`` are those of the dense tensor and its values; ``indices_dtype`` is int64
    by default; ``dense_shape_dtype`` is None for slices without a dense shape; ``indices_shape`` is
    [None] by default.
    """

    value_type = IndexedSlices

    def __init__(
        self,
        shape: object = None,
        dtype: object = dtypes.float32,
        indices_dtype: object = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: object = None,
    ) -> None:
        super().__init__(shape, dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = as_shape([None] if indices_shape is None else indices_shape)

    def _key(self) -> tuple[Any, ...]:
        rest = (self._indices_dtype, self._dense_shape_dtype, self._indices_shape._plain)
        return (*super()._key(), *rest)

    def _like(self, shape: TensorShape) -> IndexedSlicesSpec:
        return IndexedSlicesSpec(shape, self._dtype, self._indices_dtype, self._dense_shape_dtype)

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        rows = self._indices_shape
        parts = (
            TensorSpec(rows.concatenate(self._shape[1:]), self._dtype),
            TensorSpec(rows, self._indices_dtype),
        )
        if self._dense_shape_dtype is None:
            return parts
        return (*parts, TensorSpec([self._shape.rank], self._dense_shape_dtype))

    def to_components(self, value: IndexedSlices) -> list[Any]:
        parts = [value.values, value.indices]
        return parts if self._dense_shape_dtype is None else [*parts, value.dense_shape]

    def from_components(self, tensors: Sequence[Any]) -> IndexedSlices:
        return IndexedSlices(*tensors)

    @classmethod
    def from_value(cls, value: Any) -> IndexedSlicesSpec:
        dense = value.dense_shape
        return cls(
            value.shape if dense is not None else [None, *(value.values.shape[1:].as_list())],
            value.values.dtype,
            value.indices.dtype,
            None if dense is None else dense.dtype,
            value.indices.shape,
        )

    def __repr__(self) -> str:
        return (
            f"IndexedSlicesSpec({self._shape!r}, {self._dtype!r}, {self._indices_dtype!r}, "
            f"{self._dense_shape_dtype!r}, {self._indices_shape!r})"
        )


class VariableSpec(Shaped):
    """Shape and type of a variable that is an argument."""

    def __init__(
        self,
        shape: Any = None,
        dtype: DType = dtypes.float32,
        trainable: bool = True,
        alias_id: int | None = None,
    ) -> None:
        super().__init__(shape, dtype)
        self.trainable = trainable
        self.alias_id = alias_id

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.trainable, self.alias_id)

    def __repr__(self) -> str:
        return (
            f"VariableSpec(shape={_shown(self._shape)}, dtype={self._dtype!r}, "
            f"trainable={self.trainable}, "
            f"alias_id={self.alias_id})"
        )


# specs of values ----------------------------------------------------------------------------------

_FROM_VALUE: list[tuple[type, Callable[[Any], TypeSpec]]] = []


def register_type_spec(kind: type, from_value: Callable[[Any], TypeSpec]) -> None:
    """Values of ``kind`` have the spec that ``from_value(value)`` gives."""
    _FROM_VALUE.insert(0, (kind, from_value))


register_type_spec(Tensor, lambda t: TensorSpec(t.shape, t.dtype.base_dtype))
register_type_spec(np.ndarray, lambda a: TensorSpec(a.shape, _array_dtype(a)))
register_type_spec(np.generic, lambda a: TensorSpec((), _array_dtype(a)))
register_type_spec(IndexedSlices, IndexedSlicesSpec.from_value)


def _array_dtype(array: Array | np.generic) -> DType:
    return dtypes.string if array.dtype.kind in "SUO" else as_dtype(array.dtype)


def _spec_or_none(value: object) -> TypeSpec | None:
    if isinstance(value, TypeSpec):
        return value
    for kind, from_value in _FROM_VALUE:
        if isinstance(value, kind):
            return from_value(value)
    made = getattr(value, "_type_spec", None)
    return made if isinstance(made, TypeSpec) else None


def type_spec_from_value(value: object) -> TypeSpec:
    """The spec of a value; TypeError if there is none."""
    found = _spec_or_none(value)
    if found is None:
        raise TypeError(
            f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}"
        )
    return found


# whole structures ---------------------------------------------------------------------------------


def spec_structure(structure: object) -> Any:
    """A structure of values as one of specs; what has no spec (None, strings, objects) stays."""
    return nest.map_structure(lambda v: leaf_spec(v), structure)


def leaf_spec(value: object) -> Any:
    found = _spec_or_none(value)
    return value if found is None else found


def component_specs(specs: object) -> list[TensorSpec]:
    """The TensorSpecs of all parts of a structure of specs; leaves that are no specs have none."""
    return [
        part
        for leaf in nest.flatten(specs)
        if isinstance(leaf, TypeSpec)
        for part in leaf.component_specs
    ]


def components(
    specs: TypeSpec | Sequence[TypeSpec | Sequence[TypeSpec] | None] | Mapping[str, Any] | None,
    values: object,
) -> list[Any]:
    """The plain tensors of a structure of values that fits ``specs``."""
    out: list[Any] = []
    for spec, value in zip(nest.flatten(specs), nest.flatten_up_to(specs, values)):
        if isinstance(spec, TypeSpec):
            out.extend(spec.to_components(value))
    return out


def from_components(specs: object, tensors: Sequence[Any]) -> Any:
    """The structure of values back from its plain tensors."""
    rest = iter(tensors)
    return nest.pack_sequence_as(specs, [_rebuilt(s, rest) for s in nest.flatten(specs)])


def packer(
    specs: TypeSpec | Sequence[TypeSpec | Sequence[TypeSpec] | None] | Mapping[str, Any] | None,
) -> Callable[[Sequence[Any]], Any]:
    """``from_components`` for one structure, compiled: what a function does at every return."""
    names: dict[str, Any] = {"like": nest._like}
    at = [0]
    text = _expression(specs, names, at)
    made: Callable[[Sequence[Any]], Any] = eval(f"lambda f: {text}", names)
    return made


def _expression(specs: Any, names: dict[str, Any], at: list[int]) -> str:
    """A Python expression over the flat components ``f``."""
    kind = type(specs)
    if isinstance(specs, TypeSpec):
        start, at[0] = at[0], at[0] + len(specs.component_specs)
        if kind is TensorSpec:
            return f"f[{start}]"
        return f"{_named(names, specs)}.from_components(f[{start}:{at[0]}])"
    if not nest.is_nested(specs):
        return _named(names, specs)
    inner = [_expression(child, names, at) for _, child in nest._items(specs)]
    if kind is dict:
        by_key = dict(zip(sorted(specs), inner))
        return "{" + ", ".join(f"{_named(names, k)}: {by_key[k]}" for k in specs) + "}"
    if kind is list:
        return f"[{', '.join(inner)}]"
    if kind is tuple:
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    return f"like({_named(names, specs)}, [{', '.join(inner)}])"


def _named(names: dict[str, Any], value: object) -> str:
    if value is None:
        return "None"
    name = f"v{len(names)}"
    names[name] = value
    return name


def _rebuilt(spec: TypeSpec | None, rest: Iterator[Any]) -> Any:
    if not isinstance(spec, TypeSpec):
        return spec
    return spec.from_components([next(rest) for _ in spec.component_specs])
