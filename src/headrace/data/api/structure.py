"""The structure of elements: nested tuples, dicts and named tuples of tensors, and the plain
tensors they travel as.

An element is flattened to *components*. A dense tensor is one component; a SparseTensor is one, a
variant vector of its three parts, which stacks and slices like any other; a ragged tensor, a
dataset or an optional is one variant. Lists are not structure: TensorFlow's datasets take them
for tensors.

    spec = spec_of({"x": tf.constant([1, 2]), "y": 3.0})
    from_components(spec, to_components(spec, value))      # value again
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.build import apply, apply_many
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.specs import SparseTensorSpec, TensorSpec, TypeSpec, type_spec_from_value
from headrace.core.tensor import Tensor
from headrace.ops.io.sparse_rows import (
    DESERIALIZE_SPARSE,
    SERIALIZE_MANY_SPARSE,
    SERIALIZE_SPARSE,
)
from headrace.ops.ragged.ragged_spec import RaggedTensorSpec
from headrace.ops.ragged.ragged_tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from headrace.ops.ragged.ragged_variants import from_variant, to_variant
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue

if TYPE_CHECKING:
    from headrace.data.api.dataset import DatasetSpec


__all__ = [
    "NoneSpec",
    "batched",
    "classes_of",
    "component_shapes",
    "component_types",
    "convert_legacy",
    "from_components",
    "map_leaves",
    "normalize",
    "shapes_of",
    "spec_of",
    "to_components",
    "types_of",
    "unbatched",
]


class NoneSpec(TypeSpec):
    """Of the value None, which has no components."""

    def _key(self) -> tuple[Any, ...]:
        return ()

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        return ()

    def to_components(self, value: object) -> list[Any]:
        return []

    def from_components(self, tensors: Sequence[Any]) -> None:
        return None

    def is_compatible_with(self, spec_or_value: object) -> bool:
        return spec_or_value is None or isinstance(spec_or_value, NoneSpec)

    def __repr__(self) -> str:
        return "NoneTensorSpec()"


def tuples(structure: Any) -> Any:
    """The structure with tuples for lists (in structures of types, shapes and specs)."""
    if isinstance(structure, list):
        return tuple(tuples(s) for s in structure)
    if nest.is_namedtuple(structure):
        return type(structure)(*map(tuples, structure))
    if isinstance(structure, tuple):
        return tuple(map(tuples, structure))
    if isinstance(structure, Mapping):
        return type(structure)((k, tuples(v)) for k, v in structure.items())  # type: ignore[call-arg]
    return structure


def map_leaves(function: Callable[..., Any], structure: object, *others: object) -> Any:
    return nest.map_structure(function, structure, *others, check_types=False)


def normalize(element: object) -> Any:
    """The element with tensors for leaves; a list is a leaf."""
    count = [0]

    def convert(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _mapping(value, {k: convert(value[k]) for k in sorted(value)})
        if nest.is_namedtuple(value) and not isinstance(value, SparseTensorValue):
            return type(value)(*map(convert, value))
        if isinstance(value, tuple) and not isinstance(value, SparseTensorValue):
            return tuple(map(convert, value))
        if hasattr(type(value), "__attrs_attrs__"):
            return nest.map_structure(convert, value)
        i = count[0]
        count[0] += 1
        return _leaf(value, f"component_{i}")

    return convert(element)


def _mapping(like: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    ordered = {k: values[k] for k in like}
    if type(like) is dict:
        return ordered
    return nest.pack_sequence_as(like, [values[k] for k in sorted(values)])


def _leaf(value: object, name: str) -> Any:
    if isinstance(value, (Tensor, SparseTensor)) or value is None:
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if hasattr(value, "nested_row_splits"):
        return convert_to_tensor_or_ragged_tensor(value)
    if getattr(value, "_type_spec", None) is not None and not hasattr(value, "_as_graph_element"):
        return value
    if isinstance(value, list) and value and all(hasattr(v, "_variant_tensor") for v in value):
        return value[0]._type_spec._stacked(value)  # datasets
    return convert_to_tensor(value, name=name)


def spec_of(value: object) -> Any:
    """The structure of specs of a normalized element."""
    return nest.map_structure(_leaf_spec, value)


def _leaf_spec(value: object) -> TypeSpec:
    if value is None:
        return NoneSpec()
    if isinstance(value, SparseTensor):
        return SparseTensorSpec(value.shape, value.dtype)
    if isinstance(value, RaggedTensor):
        return RaggedTensorSpec.from_value(value)
    own = getattr(value, "_type_spec", None)
    return own if isinstance(own, TypeSpec) else type_spec_from_value(value)


# components -------------------------------------------------------------------------------------


def _component_specs(spec: TypeSpec) -> list[TensorSpec]:
    if isinstance(spec, (SparseTensorSpec, RaggedTensorSpec)):
        return [TensorSpec(None, dtypes.variant)]
    return list(spec.component_specs)


def components_of(spec: object) -> list[TensorSpec]:
    """The specs of the plain tensors that an element consists of."""
    return [part for leaf in nest.flatten(spec) for part in _component_specs(leaf)]


def component_types(spec: object) -> list[DType]:
    return [part.dtype for part in components_of(spec)]


def component_shapes(spec: object) -> list[TensorShape]:
    return [part.shape for part in components_of(spec)]


def to_components(spec: object, value: object) -> list[Tensor]:
    """The plain tensors of an element that fits ``spec``."""
    out: list[Tensor] = []
    for leaf, part in zip(nest.flatten(spec), nest.flatten_up_to(spec, value, check_types=False)):
        if isinstance(leaf, SparseTensorSpec):
            sparse = SparseTensor.from_value(part)
            parts = (sparse.indices, sparse.values, sparse.dense_shape)
            out.append(apply(SERIALIZE_SPARSE, *parts, out_type=dtypes.variant))
        elif isinstance(leaf, RaggedTensorSpec):
            out.append(to_variant(part))
        elif isinstance(leaf, TensorSpec):
            out.append(convert_to_tensor(part, leaf.dtype))
        else:
            out.extend(leaf.to_components(part))
    return out


def to_row_components(spec: object, value: Tensor) -> list[Tensor]:
    """The same for an element whose rows are to be the elements of a dataset."""
    out: list[Tensor] = []
    for leaf, part in zip(nest.flatten(spec), nest.flatten_up_to(spec, value, check_types=False)):
        if isinstance(leaf, SparseTensorSpec):
            parts = (part.indices, part.values, part.dense_shape)
            out.append(apply(SERIALIZE_MANY_SPARSE, *parts, out_type=dtypes.variant))
        elif isinstance(leaf, RaggedTensorSpec):
            out.append(to_variant(part, batched=True) if leaf.ragged_rank else part)
        elif isinstance(leaf, TensorSpec):
            out.append(part)
        else:
            out.extend(leaf.to_components(part))
    return out


def from_components(spec: object, tensors: Sequence[Any]) -> Any:
    """The element back from its plain tensors."""
    rest = iter(tensors)

    def rebuilt(leaf: TypeSpec) -> Any:
        if isinstance(leaf, SparseTensorSpec):
            return _sparse(leaf, next(rest))
        if isinstance(leaf, RaggedTensorSpec):
            return _ragged(leaf, next(rest))
        return leaf.from_components([next(rest) for _ in leaf.component_specs])

    return nest.pack_sequence_as(spec, [rebuilt(leaf) for leaf in nest.flatten(spec)])


def _sparse(spec: SparseTensorSpec, variant: Tensor) -> SparseTensor:
    indices, values, dense_shape = apply_many(DESERIALIZE_SPARSE, variant, dtype=spec.dtype)
    rank = spec.shape.rank
    if rank is not None:
        indices.set_shape([None, rank])
        dense_shape.set_shape([rank])
    return SparseTensor(indices, values, dense_shape)


def _ragged(spec: RaggedTensorSpec, variant: Tensor) -> Any:
    found = from_variant(variant, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    shape = spec.shape
    if not isinstance(found, RaggedTensor):
        found.set_shape(shape)
    elif shape.rank is not None:
        found.flat_values.set_shape(TensorShape([None]).concatenate(shape[spec.ragged_rank + 1 :]))
        rows = shape.as_list()[0]
        found.row_splits.set_shape([None if rows is None else rows + 1])
    return found


# types, shapes and classes, as TF 1 names them --------------------------------------------------


def types_of(spec: object) -> Any:
    return nest.map_structure(lambda s: getattr(s, "dtype", None) or _legacy(s)[0], spec)


def shapes_of(spec: object) -> Any:
    return nest.map_structure(lambda s: s.shape if hasattr(s, "shape") else _legacy(s)[1], spec)


def classes_of(spec: object) -> Any:
    return nest.map_structure(
        lambda s: SparseTensor if isinstance(s, SparseTensorSpec) else s.value_type,
        spec,
    )


def _legacy(spec: object) -> tuple[Any, Any]:
    return getattr(spec, "_legacy", lambda: (dtypes.variant, TensorShape([])))()


def convert_legacy(
    output_types: object, output_shapes: object = None, output_classes: object = None
) -> Any:
    """A structure of specs from structures of types, shapes and classes."""
    types = map_leaves(as_dtype, tuples(output_types))
    flat_types = nest.flatten(types)
    if output_shapes is None:
        flat_shapes = [TensorShape(None)] * len(flat_types)
    else:
        flat_shapes = _flat_shapes(types, output_shapes)
    classes = (
        [Tensor] * len(flat_types)
        if output_classes is None
        else nest.flatten(tuples(output_classes))
    )
    made = [
        SparseTensorSpec(s, t) if issubclass(c, SparseTensor) else TensorSpec(s, t)
        for t, s, c in zip(flat_types, flat_shapes, classes)
    ]
    return nest.pack_sequence_as(types, made)


def _flat_shapes(types: Any, shapes: Any) -> list[TensorShape]:
    """Shapes beside types; a shape may itself be a list, a tuple or None."""
    if not nest.is_nested(types):
        return [as_shape(shapes)]
    if isinstance(types, Mapping):
        pairs = [(types[k], shapes[k]) for k in sorted(types)]
    else:
        if isinstance(types, tuple) and not isinstance(shapes, tuple):
            raise TypeError(
                "If shallow structure is a sequence, input must also be a sequence (a "
                "tuple beside a tuple). "
                f"Input has type: {type(shapes)}."
            )
        shapes = tuple(shapes)
        if len(shapes) != len(types):
            raise ValueError(
                f"The two structures don't have the same number of elements: {types} has "
                f"{len(types)}, "
                f"{shapes} has {len(shapes)}"
            )
        pairs = list(zip(types, shapes))
    return [s for t, shape in pairs for s in _flat_shapes(t, shape)]


# batches ----------------------------------------------------------------------------------------


def batched(spec: object, size: int | None) -> Any:
    """The spec of a batch of elements."""
    return nest.map_structure(lambda s: _batched(s, size), spec)


def _batched(spec: object, size: int | None) -> Any:
    if isinstance(spec, TensorSpec):
        return TensorSpec(TensorShape([size]).concatenate(spec.shape), spec.dtype)
    if isinstance(spec, SparseTensorSpec):
        return SparseTensorSpec(TensorShape([size]).concatenate(spec.shape), spec.dtype)
    if isinstance(spec, RaggedTensorSpec):
        shape = TensorShape([size]).concatenate(spec.shape)
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    if isinstance(spec, NoneSpec):
        return spec
    if hasattr(spec, "_batch"):
        return spec._batch(size)
    raise TypeError(f"Elements with {spec!r} cannot be batched.")


def unbatched(spec: object) -> Any:
    """The spec of one element of a batch."""
    return nest.map_structure(_unbatched, spec)


def _unbatched(
    spec: DatasetSpec | SparseTensorSpec | TensorSpec,
) -> DatasetSpec | SparseTensorSpec | TensorSpec:
    if isinstance(spec, NoneSpec):
        return spec
    if hasattr(spec, "_unbatch"):
        return spec._unbatch()
    if spec.shape.rank == 0:
        raise ValueError("Unbatching a tensor is only supported for rank >= 1")
    shape = spec.shape[1:] if spec.shape.rank is not None else spec.shape
    if isinstance(spec, RaggedTensorSpec):
        if not spec.ragged_rank:
            return TensorSpec(shape, spec.dtype)
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank - 1, spec.row_splits_dtype)
    return type(spec)(shape, spec.dtype)
