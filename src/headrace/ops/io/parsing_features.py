"""``tf.parse_example`` and its like: which features to read, and how.

>>> features = {"image": FixedLenFeature([], tf.string), "tags": VarLenFeature(tf.int64)}
>>> parsed = parse_single_example(record, features)  # {"image": Tensor, "tags": SparseTensor}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply_any, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const
from headrace.ops.io.parsing import KIND_OF, PARSE_EXAMPLE, PARSE_SINGLE_EXAMPLE
from headrace.ops.io.parsing_sequence import PARSE_SEQUENCE_EXAMPLE, PARSE_SINGLE_SEQUENCE_EXAMPLE
from headrace.ops.sparse.sparse_arranging import sparse_merge
from headrace.ops.sparse.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "VarLenFeature",
    "parse_example",
    "parse_example_v2",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_example_v2",
    "parse_single_sequence_example",
]


class VarLenFeature(NamedTuple):
    """A feature with any number of values per example: parsing gives a SparseTensor."""

    dtype: Any


class _SparseFeature(NamedTuple):
    index_key: Any
    value_key: Any
    dtype: Any
    size: Any
    already_sorted: bool = False


class SparseFeature(_SparseFeature):
    """A SparseTensor from features that hold its indices (one or several) and a feature that holds
    its values.
    """

    __slots__ = ()


class FixedLenFeature(NamedTuple):
    """Values of one shape: gives a Tensor. Where they are missing, the default is taken.

    ``shape`` is that of one example, ``dtype`` float32, int64 or string. Without ``default_value``
    an example that lacks the feature is an error.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """Any number of items of one shape: gives a Tensor, padded in a batch.

    ``shape`` is that of one item; ``allow_missing=True`` is needed, and an example without the
    feature has no items. ``default_value`` pads shorter examples of a batch (0 or "" by default).
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


@dataclass
class _Raw:
    """The features in the order that the op is given them."""

    sparse: dict[str, DType] = field(default_factory=dict)
    dense: dict[str, DType] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)

    def add_sparse(self, key: str, dtype: DType) -> None:
        have = self.sparse.setdefault(key, as_dtype(dtype))
        if have != as_dtype(dtype):
            raise ValueError(f"Conflicting type {as_dtype(dtype)} vs {have} for feature {key}.")

    def add_dense(
        self, key: str, dtype: DType, shape: Shape, default: float | Sequence[float] | None
    ) -> None:
        if key in self.sparse:
            raise ValueError(f"Dense and sparse keys must not intersect; intersection: {{{key!r}}}")
        self.dense[key] = as_dtype(dtype)
        self.shapes[key] = shape
        if default is not None:
            self.defaults[key] = default


def _raw(features: Mapping[str, Any] | None, allowed: Sequence[type]) -> _Raw:
    out = _Raw()
    for key, feature in sorted((features or {}).items()):
        if type(feature) not in _KINDS:
            raise ValueError(f"Invalid feature {key}:{feature}.")
        if type(feature) not in allowed:
            raise ValueError(f"Unsupported {type(feature).__name__} {feature}.")
        if not feature.dtype:
            raise ValueError(f"Missing type for feature {key}.")
        _KINDS[type(feature)](out, key, feature)
    return out


def _add_var_len(out: _Raw, key: str, feature: VarLenFeature) -> None:
    out.add_sparse(key, feature.dtype)


def _add_sparse(out: _Raw, key: str, feature: SparseFeature) -> None:
    keys = feature.index_key
    if not keys:
        raise ValueError(f"Missing index_key for SparseFeature {feature}.")
    if not feature.value_key:
        raise ValueError(f"Missing value_key for SparseFeature {feature}.")
    for index_key in sorted([keys] if isinstance(keys, str) else keys):
        out.add_sparse(index_key, dtypes.int64)
    out.add_sparse(feature.value_key, feature.dtype)


def _add_fixed(out: _Raw, key: str, feature: FixedLenFeature) -> None:
    if feature.shape is None:
        raise ValueError(f"Missing shape for feature {key}.")
    shape = shapes.to_plain(feature.shape)
    if shape and shape[0] is None:
        raise ValueError(
            f"First dimension of shape for feature {key} unknown. Consider using "
            "FixedLenSequenceFeature."
        )
    if shape is None or None in shape:
        raise ValueError(
            f"All dimensions of shape for feature {key} need to be known but received "
            f"{shapes.show(shape)}."
        )
    out.add_dense(key, feature.dtype, shape, feature.default_value)


def _add_sequence(out: _Raw, key: str, feature: FixedLenSequenceFeature) -> None:
    if feature.shape is None:
        raise ValueError(f"Missing shape for feature {key}.")
    shape = shapes.to_plain(feature.shape)
    out.add_dense(key, feature.dtype, shape, feature.default_value)
    if feature.allow_missing and key not in out.defaults:
        out.defaults[key] = None
    if not feature.allow_missing and feature.default_value is not None:
        raise ValueError(f"default_value of feature {key} needs allow_missing.")


_KINDS: dict[type, Any] = {
    VarLenFeature: _add_var_len,
    SparseFeature: _add_sparse,
    FixedLenFeature: _add_fixed,
    FixedLenSequenceFeature: _add_sequence,
}


def _default(raw: _Raw, key: str) -> Tensor:
    """The tensor that stands for a missing feature; an empty one where it must not be missing."""
    dtype, shape = raw.dense[key], raw.shapes[key]
    ragged = shape is not None and len(shape) > 0 and shape[0] is None
    given = raw.defaults.get(key)
    if dtype not in KIND_OF:
        raise TypeError(
            f"Value passed to parameter 'dense_defaults' has DataType {dtype.name} not in "
            "list of allowed values: "
            "float32, int64, string"
        )
    if given is None:
        return const(b"" if dtype is dtypes.string else 0, dtype) if ragged else const([], dtype)
    name = "key_" + re.sub(r"[^A-Za-z0-9_.\-/]", "_", key)
    tensor = convert_to_tensor(given, dtype, name=name)
    if ragged:
        return tensor
    return apply_op("Reshape", tensor, np.array(shape, np.int32))


def _open_sequences(raw: _Raw, features: Mapping[str, Any]) -> _Raw:
    """Outside of SequenceExamples a FixedLenSequenceFeature is a dense one with an open first
    dimension.
    """
    for key, feature in features.items():
        if isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise ValueError(
                    "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
                )
            raw.shapes[key] = (None, *(raw.shapes[key] or ()))
    return raw


def _named(raw: _Raw, found: Sequence[Any], features: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of an op by key, with SparseFeatures put together from their parts."""
    indices, values, sizes, dense = found
    out: dict[str, Any] = {}
    for key, *parts in zip(raw.sparse, indices, values, sizes):
        out[key] = SparseTensor(*parts)
    out.update(zip(raw.dense, dense))
    merged = {
        k: _merged(f, out) for k, f in sorted(features.items()) if isinstance(f, SparseFeature)
    }
    out.update(merged)
    return {key: value for key, value in out.items() if key in features}


def _merged(feature: SparseFeature, parts: Mapping[str, Any]) -> SparseTensor:
    keys = feature.index_key
    ids: Any = parts[keys] if isinstance(keys, str) else [parts[k] for k in keys]
    return sparse_merge(
        ids,
        parts[feature.value_key],
        vocab_size=feature.size,
        already_sorted=feature.already_sorted,
    )


# examples -----------------------------------------------------------------------------------------

_EXAMPLE_KINDS = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)


def parse_example(
    serialized: TensorLike, features: Any, name: str | None = None, example_names: object = None
) -> dict[str, Any]:
    """A vector of serialized Examples to a dict of batched tensors.

    ``features`` maps names to ``FixedLenFeature``, ``VarLenFeature``, ``SparseFeature`` or
    ``FixedLenSequenceFeature``; the result maps them to a Tensor or a SparseTensor with the batch
    as first dimension. ``example_names`` are for error messages.

        example = tf.train.Example()
        example.features.feature["x"].int64_list.value.append(3)
        features = {"x": tf.FixedLenFeature([], tf.int64)}
        tf.parse_example([example.SerializeToString()], features)["x"]  # [3]
    """
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    raw = _open_sequences(_raw(features, _EXAMPLE_KINDS), features)
    with name_scope(name, "ParseExample", [serialized, example_names]):
        names = [] if example_names is None else example_names
        defaults = [_default(raw, key) for key in raw.dense]
        found = apply_any(
            PARSE_EXAMPLE,
            serialized,
            names,
            list(raw.sparse),
            list(raw.dense),
            defaults,
            sparse_types=list(raw.sparse.values()),
            dense_shapes=[raw.shapes[k] for k in raw.dense],
            name=name,
        )
    return _named(raw, found, features)


def parse_example_v2(
    serialized: TensorLike,
    features: object,
    example_names: TensorLike | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """As ``tf.parse_example``, with ``example_names`` before ``name``.

    ``features`` and the result are those of ``tf.compat.v1.parse_example``: feature descriptions by
    name, to tensors by name.
    """
    return parse_example(serialized, features, name, example_names)


def parse_single_example(
    serialized: object,
    features: Mapping[str, Any] | None,
    name: str | None = None,
    example_names: object = None,
) -> dict[str, Any]:
    """One serialized Example (a scalar) to a dict of tensors.

    ``features`` is as in ``tf.parse_example``; tensors have no batch dimension. Batches are parsed
    faster with ``tf.parse_example`` after ``Dataset.batch``. ``example_names`` is for error
    messages.
    """
    if not features:
        raise ValueError("Missing features.")
    if example_names is not None:
        return _parse_single_named(serialized, features, name, example_names)
    raw = _open_sequences(_raw(features, _EXAMPLE_KINDS), features)
    with name_scope(name, "ParseSingleExample", [serialized]):
        serialized = convert_to_tensor(serialized, dtypes.string, name="serialized")
        defaults = [_default(raw, key) for key in raw.dense]
        found = apply_any(
            PARSE_SINGLE_EXAMPLE,
            serialized,
            defaults,
            num_sparse=len(raw.sparse),
            sparse_keys=list(raw.sparse),
            dense_keys=list(raw.dense),
            sparse_types=list(raw.sparse.values()),
            dense_shapes=[raw.shapes[k] for k in raw.dense],
            name=name,
        )
    return _named(raw, found, features)


def _parse_single_named(
    serialized: object, features: object, name: str | None, example_name: object
) -> dict[str, Any]:
    """As a batch of one: only that op takes names."""
    with name_scope(name, "ParseSingleExample", [serialized, example_name]):
        records = apply_op("ExpandDims", convert_to_tensor(serialized, dtypes.string), const(0))
        names = apply_op("ExpandDims", convert_to_tensor(example_name, dtypes.string), const(0))
        batch = parse_example(records, features, example_names=names)
        return {key: _first(value) for key, value in batch.items()}


def _first(value: Tensor | SparseTensor) -> Tensor | SparseTensor:
    if not isinstance(value, SparseTensor):
        return apply_op("Squeeze", value, squeeze_dims=[0])
    rank = value.dense_shape._shape
    end = 2 if rank is None or rank[0] is None else rank[0]
    columns = apply_op("Slice", value.indices, const([0, 1]), const([-1, end - 1]))
    sizes = apply_op("Slice", value.dense_shape, const([1]), const([end - 1]))
    return SparseTensor(columns, value.values, sizes)


def parse_single_example_v2(
    serialized: TensorLike,
    features: dict[str, FixedLenFeature],
    example_names: object = None,
    name: str | None = None,
) -> dict[str, Any]:
    """As ``tf.parse_single_example``, with ``example_names`` before ``name``.

    ``serialized`` is a scalar string; the result has a tensor for each name in ``features``,
    without a batch dimension.
    """
    return parse_single_example(serialized, features, name, example_names)


# sequence examples --------------------------------------------------------------------------------

_CONTEXT_KINDS = (VarLenFeature, FixedLenFeature)
_SEQUENCE_KINDS = (VarLenFeature, FixedLenSequenceFeature)


def _both_raw(
    context_features: dict[str, FixedLenFeature] | dict[str, VarLenFeature] | None,
    sequence_features: dict[str, Any] | dict[str, FixedLenSequenceFeature] | None,
) -> tuple[_Raw, _Raw, list[str]]:
    if not (context_features or sequence_features):
        raise ValueError("Missing features.")
    context = _raw(context_features, _CONTEXT_KINDS)
    lists = _raw(sequence_features, _SEQUENCE_KINDS)
    for key, value in lists.defaults.items():
        if value is not None:
            raise ValueError(f"Value feature_list_dense_defaults[{key}] must be None")
    return context, lists, list(lists.defaults)


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: dict[str, FixedLenFeature] | None = None,
    sequence_features: dict[str, Any] | dict[str, FixedLenSequenceFeature] | None = None,
    example_name: object = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One serialized SequenceExample to the tensors of its context and of its feature lists.

    ``context_features`` describe the context as in ``tf.parse_example``, ``sequence_features`` the
    lists: ``FixedLenSequenceFeature`` gives a Tensor [steps, …], ``VarLenFeature`` a SparseTensor.
    Returns two dicts. ``example_name`` is for error messages.
    """
    context, lists, optional = _both_raw(context_features, sequence_features)
    with name_scope(name, "ParseSingleSequenceExample", [serialized, example_name]):
        defaults = [_default(context, key) for key in context.dense]
        found = apply_any(
            PARSE_SINGLE_SEQUENCE_EXAMPLE,
            serialized,
            optional,
            list(context.sparse),
            list(context.dense),
            list(lists.sparse),
            list(lists.dense),
            defaults,
            "" if example_name is None else example_name,
            name=name,
            **_sequence_attrs(context, lists),
        )
    return (
        _named(context, found[:4], context_features or {}),
        _named(lists, found[4:], sequence_features or {}),
    )


def _sequence_attrs(context: _Raw, lists: _Raw) -> dict[str, Any]:
    return {
        "context_sparse_types": list(context.sparse.values()),
        "context_dense_shapes": [context.shapes[k] for k in context.dense],
        "feature_list_sparse_types": list(lists.sparse.values()),
        "feature_list_dense_types": list(lists.dense.values()),
        "feature_list_dense_shapes": [lists.shapes[k] for k in lists.dense],
    }


def parse_sequence_example(
    serialized: object,
    context_features: dict[str, VarLenFeature] | None = None,
    sequence_features: dict[str, Any] | None = None,
    example_names: object = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A vector of SequenceExamples.

    Context, feature lists, and the lengths of the dense feature lists.
    """
    context, lists, optional = _both_raw(context_features, sequence_features)
    with name_scope(name, "ParseSequenceExample", [serialized, example_names]):
        names = [] if example_names is None else example_names
        defaults = [_default(context, key) for key in context.dense]
        found = apply_any(
            PARSE_SEQUENCE_EXAMPLE,
            serialized,
            names,
            defaults,
            Ncontext_sparse=len(context.sparse),
            Ncontext_dense=len(context.dense),
            Nfeature_list_sparse=len(lists.sparse),
            Nfeature_list_dense=len(lists.dense),
            context_sparse_keys=list(context.sparse),
            context_dense_keys=list(context.dense),
            feature_list_sparse_keys=list(lists.sparse),
            feature_list_dense_keys=list(lists.dense),
            feature_list_dense_missing_assumed_empty=optional,
            name=name,
            **_sequence_attrs(context, lists),
        )
    lengths = dict(zip(lists.dense, found[8]))
    return (
        _named(context, found[:4], context_features or {}),
        _named(lists, found[4:8], sequence_features or {}),
        lengths,
    )
