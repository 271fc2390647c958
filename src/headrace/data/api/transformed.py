"""Transformations without functions: order, number and batches of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import partial_shape, static_value
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.specs import SparseTensorSpec, TensorSpec
from headrace.data.api import structure
from headrace.data.api.creation import seed_pair
from headrace.ops.ragged.ragged_spec import RaggedTensorSpec
from headrace.ops.ragged.ragged_tensor import RaggedTensor

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.specs import TypeSpec
    from headrace.core.tensor import Tensor
    from headrace.data.api.dataset import DatasetV2

__all__ = ["Transformed"]

_MAX_INT64 = 2**63 - 1


def _ragged_element(leaf: Any, row_splits_dtype: DTypeLike) -> Any:
    """The spec of an element that is to be a row of a ragged batch."""
    if not isinstance(leaf, TensorSpec) or leaf.shape.rank is None:
        return leaf
    unknown = [axis for axis, size in enumerate(leaf.shape.as_list()) if size is None]
    if not unknown:
        return leaf
    return RaggedTensorSpec(leaf.shape, leaf.dtype, max(unknown), row_splits_dtype)


def _with_ragged(spec: Any, value: Any) -> Any:
    """The element with ragged tensors where the spec says so."""

    def converted(leaf: Any, part: Any) -> Any:
        if not isinstance(leaf, RaggedTensorSpec) or not leaf.ragged_rank:
            return part
        if isinstance(part, RaggedTensor):
            return part
        splits = leaf.row_splits_dtype
        return RaggedTensor.from_tensor(part, ragged_rank=leaf.ragged_rank, row_splits_dtype=splits)

    return nest.map_structure(converted, spec, value, check_types=False)


def _known(value: Any) -> Any:
    """A number that is known while the pipeline is built, or None."""
    if value is None or isinstance(value, (int, bool, np.generic)):
        return value
    found = static_value(convert_to_tensor(value))
    return None if found is None else found.item()


class Transformed:
    """Methods of datasets."""

    if TYPE_CHECKING:
        element_spec: Any
        _variant_tensor: Tensor

        def _unary(
            self, op: str, *inputs: object, spec: object = None, **attrs: object
        ) -> Self: ...
        def _new(self, variant: Tensor, spec: object, *others: object) -> Self: ...

    # order and number ---------------------------------------------------------------------------
    def take(self, count: TensorLike, name: str | None = None) -> Self:
        """The first ``count`` elements; -1: all."""
        return self._unary("TakeDataset", count, name=name)

    def skip(self, count: TensorLike, name: str | None = None) -> Self:
        """All but the first ``count`` elements; -1: none."""
        return self._unary("SkipDataset", count, name=name)

    def repeat(self, count: TensorLike | None = None, name: str | None = None) -> Self:
        """The elements ``count`` times, without end if it is None or -1."""
        return self._unary("RepeatDataset", -1 if count is None else count, name=name)

    def shard(self, num_shards: TensorLike, index: TensorLike, name: str | None = None) -> Self:
        """Every ``num_shards``-th element, from number ``index`` on."""
        return self._unary("ShardDataset", num_shards, index, name=name)

    def shuffle(
        self,
        buffer_size: int | Tensor,
        seed: TensorLike | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """The elements in random order, drawn from ``buffer_size`` at a time."""
        size = convert_to_tensor(buffer_size, dtypes.int64, name="buffer_size")
        first, second = seed_pair(seed)
        again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
        return self._unary(
            "ShuffleDataset", size, first, second, reshuffle_each_iteration=again, name=name
        )

    def cache(self, filename: str = "", name: str | None = None) -> Self:
        """The elements, kept in memory or in a file after the first complete pass."""
        return self._unary("CacheDataset", filename, name=name)

    def prefetch(self, buffer_size: int, name: str | None = None) -> Self:
        """The elements, up to ``buffer_size`` of them produced ahead by a thread."""
        return self._unary("PrefetchDataset", -1 if buffer_size is None else buffer_size, name=name)

    def concatenate(self, dataset: DatasetV2, name: str | None = None) -> Self:
        """The elements of this dataset, then those of another."""
        ours, theirs = (
            structure.types_of(self.element_spec),
            structure.types_of(dataset.element_spec),
        )
        if ours != theirs:
            raise TypeError(f"Two datasets to concatenate have different types {ours} and {theirs}")
        spec = nest.map_structure(
            _wider, self.element_spec, dataset.element_spec, check_types=False
        )
        variant = apply_op(
            "ConcatenateDataset",
            self._variant_tensor,
            dataset._variant_tensor,
            name=name,
            output_types=structure.component_types(spec),
            output_shapes=structure.component_shapes(spec),
        )
        return self._new(variant, spec, dataset)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """(number, element) pairs."""
        kind: Any = type(self)
        return kind.zip((kind.range(start, _MAX_INT64), self))

    def unique(self, name: str | None = None) -> Self:
        """Each value once."""
        return self._unary("UniqueDataset", name=name)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """The elements that do not fail. With ``log_warning`` the errors are logged."""
        op = "_IgnoreErrorsLoggedDataset" if log_warning else "IgnoreErrorsDataset"
        return self._unary(op, name=name)

    # batches --------------------------------------------------------------------------------------
    def batch(
        self,
        batch_size: TensorLike,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: object = None,
        name: str | None = None,
    ) -> Self:
        """Batches of ``batch_size`` elements.

        With ``num_parallel_calls`` a thread puts them together ahead.
        """
        known = _known(batch_size)
        fixed = known if _known(drop_remainder) else None
        spec = structure.batched(self.element_spec, fixed)
        if num_parallel_calls is not None:
            ordered = "default" if deterministic is None else str(bool(deterministic)).lower()
            return self._unary(
                "ParallelBatchDataset",
                batch_size,
                num_parallel_calls,
                drop_remainder,
                spec=spec,
                deterministic=ordered,
                name=name,
            )
        return self._stacked(batch_size, drop_remainder, spec, name)

    def _stacked(
        self, batch_size: TensorLike, drop_remainder: Any, spec: object, name: str | None = None
    ) -> Self:
        return self._unary("BatchDatasetV2", batch_size, drop_remainder, spec=spec, name=name)

    def unbatch(self, name: str | None = None) -> Self:
        """The rows of the elements."""
        for leaf in nest.flatten(self.element_spec):
            if isinstance(leaf, TensorSpec) and leaf.shape.rank == 0:
                raise ValueError("Cannot unbatch an input with scalar components.")
        leaves = [s for s in nest.flatten(self.element_spec) if isinstance(s, TensorSpec)]
        sizes = {leaf.shape.as_list()[0] for leaf in leaves if leaf.shape.rank}
        if len(sizes - {None}) > 1:
            raise ValueError("Cannot unbatch an input whose components have different batch sizes.")
        spec, source = self.element_spec, cast("Any", self)
        whole = (SparseTensorSpec, RaggedTensorSpec)
        if any(isinstance(s, whole) for s in nest.flatten(spec)):
            # a sparse or ragged tensor travels as one value: its rows are made first
            source = source.map(
                lambda *x: tuple(
                    structure.to_row_components(spec, x if isinstance(spec, tuple) else x[0])
                )
            )
        out: Self = source._unary("UnbatchDataset", spec=structure.unbatched(spec), name=name)
        return out

    def window(
        self,
        size: TensorLike,
        shift: TensorLike | None = None,
        stride: TensorLike = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Windows of ``size`` elements: nested datasets, one for each component."""
        from headrace.data.api.dataset import DatasetSpec

        spec = nest.map_structure(DatasetSpec, self.element_spec)
        step = size if shift is None else shift
        return self._unary(
            "WindowDataset", size, step, stride, drop_remainder, spec=spec, name=name
        )

    def padded_batch(
        self,
        batch_size: Tensor,
        padded_shapes: Tensor | None = None,
        padding_values: Tensor | None = None,
        drop_remainder: Any = False,
        name: str | None = None,
    ) -> Self:
        """Batches of elements that are filled up to one shape."""
        leaves = nest.flatten(self.element_spec)
        for leaf in leaves:
            if isinstance(leaf, RaggedTensorSpec):
                raise ValueError(f"Ragged tensors are not padded: {leaf!r}. Use batch.")
            if not isinstance(leaf, TensorSpec):
                raise TypeError(
                    f"Batching of padded sparse tensors is not currently supported: {leaf!r}"
                )
        if padded_shapes is None:
            flat: list[Any] = [leaf.shape for leaf in leaves]
            if any(s.rank is None for s in flat):
                raise ValueError(
                    "You must provide `padded_shapes` argument because component 0 has "
                    f"unknown rank: {flat}"
                )
        else:
            flat = _beside(self.element_spec, padded_shapes)
        shapes = [_shape_tensor(s, leaf) for s, leaf in zip(flat, leaves)]
        values = _padding(self.element_spec, padding_values, leaves)
        fixed = _known(batch_size) if _known(drop_remainder) else None
        spec = nest.pack_sequence_as(
            self.element_spec,
            [
                TensorSpec(TensorShape([fixed]).concatenate(as_shape(partial_shape(s))), leaf.dtype)
                for s, leaf in zip(shapes, leaves)
            ],
        )
        variant = apply_op(
            "PaddedBatchDatasetV2",
            self._variant_tensor,
            batch_size,
            shapes,
            values,
            drop_remainder,
            output_shapes=structure.component_shapes(spec),
            name=name,
        )
        return self._new(variant, spec)

    def _ragged_batch(
        self, batch_size: TensorLike, drop_remainder: Any, row_splits_dtype: DTypeLike
    ) -> Self:
        """``tf.data.experimental.dense_to_ragged_batch``."""
        spec = nest.map_structure(
            lambda leaf: _ragged_element(leaf, row_splits_dtype), self.element_spec
        )
        source: Any = self
        encoded = source.map(
            lambda *x: tuple(
                structure.to_components(
                    spec, _with_ragged(spec, x if isinstance(spec, tuple) else x[0])
                )
            )
        )
        fixed = _known(batch_size) if _known(drop_remainder) else None
        made: Self = encoded._stacked(batch_size, drop_remainder, structure.batched(spec, fixed))
        return made

    def dense_to_sparse_batch(
        self, batch_size: TensorLike, row_shape: TensorLike, name: str | None = None
    ) -> Self:
        """Batches of arrays of different lengths, as sparse tensors."""
        leaf = self.element_spec
        if not isinstance(leaf, TensorSpec):
            raise TypeError("Elements must be single dense tensors.")
        shape = as_shape(row_shape)
        row = [-1 if d is None else d for d in shape.as_list()]
        spec = SparseTensorSpec(TensorShape([None]).concatenate(shape), leaf.dtype)
        row_tensor = convert_to_tensor(np.array(row, np.int64))
        return self._unary(
            "DenseToSparseBatchDataset", batch_size, row_tensor, spec=spec, name=name
        )


def _wider(a: TypeSpec, b: TypeSpec) -> Any:
    found = a.most_specific_common_supertype([b])
    if found is None:
        raise TypeError(f"No spec covers both {a!r} and {b!r}")
    return found


def _beside(spec: Any, values: Any) -> list[Any]:
    """What stands in ``values`` where ``spec`` has its leaves (a leaf may itself be a list)."""
    if not nest.is_nested(spec):
        if isinstance(values, dict) or (
            isinstance(values, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in values)
        ):
            raise ValueError(
                f"Padded shape {values} must be a 1-D tensor of tf.int64 values, but its shape was "
                f"{np.shape(values) if isinstance(values, (list, tuple)) else 'a dict'}."
            )
        return [values]
    if isinstance(spec, dict):
        if not hasattr(values, "keys") or set(values) != set(spec):
            raise ValueError(
                f"The two structures don't have the same keys: {sorted(spec)} and {values}"
            )
        return [leaf for k in sorted(spec) for leaf in _beside(spec[k], values[k])]
    if not isinstance(values, (tuple, list)):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input "
            f"has type: {type(values)}."
        )
    if len(values) != len(spec):
        raise ValueError(
            "The two structures don't have the same sequence length. "
            f"Input structure has length {len(values)}, while shallow structure has "
            f"length {len(spec)}."
        )
    return [leaf for s, v in zip(spec, values) for leaf in _beside(s, v)]


def _shape_tensor(shape: TensorShape | Tensor | Sequence[int | None], leaf: TensorSpec) -> Tensor:
    """A padded shape as an int64 vector; None and -1 mean the longest of the batch."""
    if hasattr(shape, "dtype") and not isinstance(shape, (list, tuple, TensorShape)):
        tensor = convert_to_tensor(shape)
        if tensor.shape.rank not in (None, 1):
            raise ValueError(
                f"Padded shape {tensor} must be a 1-D tensor of tf.int64 values, but its "
                f"shape was {tensor.shape}."
            )
        if tensor.dtype.base_dtype is not dtypes.int64:
            raise TypeError(
                f"Padded shape {tensor} must be a 1-D tensor of tf.int64 values, but its "
                "element type was "
                f"{tensor.dtype.name}."
            )
        rank, given = leaf.shape.rank, tensor.shape.as_list() if tensor.shape.rank == 1 else [None]
        if rank is not None and given[0] not in (None, rank):
            known = static_value(tensor)
            dims = [-1] * given[0] if known is None else known.tolist()
            wanted = TensorShape([None if d < 0 else d for d in dims])
            raise ValueError(
                f"The padded shape {wanted} is not compatible with the corresponding "
                f"input component shape {leaf.shape}."
            )
        return tensor
    if isinstance(shape, (list, tuple)):
        shape = [None if d == -1 else d for d in shape]
    plain = as_shape(shape)
    if plain.rank is None:
        raise ValueError(f"Padded shape {shape} must have a known rank.")
    if leaf.shape.rank is not None and leaf.shape.rank != plain.rank:
        raise ValueError(
            f"The padded shape {tuple(plain.as_list())} is not compatible with the "
            "corresponding input component shape "
            f"{leaf.shape}."
        )
    for have, want in zip(leaf.shape.as_list() if leaf.shape.rank else [], plain.as_list()):
        if have is not None and want is not None and want < have:
            raise ValueError(
                f"The padded shape {tuple(plain.as_list())} is not compatible with the "
                "corresponding input component "
                f"shape {leaf.shape}."
            )
    dims = [-1 if d is None else d for d in plain.as_list()]
    return convert_to_tensor(np.array(dims, np.int64), name="padded_shapes")


def _padding(
    spec: TypeSpec | Sequence[TypeSpec] | Mapping[str, Any],
    values: str | Tensor | Sequence[np.generic | str | Tensor] | None,
    leaves: list[Any],
) -> list[Any]:
    if values is None:
        given: list[Any] = [None] * len(leaves)
    elif nest.is_nested(spec) and not nest.is_nested(values):
        given = [values] * len(leaves)
    else:
        given = _beside(spec, values)
    out = []
    for value, leaf in zip(given, leaves):
        if value is None:
            value = b"" if leaf.dtype is dtypes.string else np.zeros((), leaf.dtype.np_dtype)
        tensor = convert_to_tensor(value, name="padding_value")
        if tensor.shape.rank not in (None, 0):
            raise ValueError(f"Padding value should be a scalar, but is not: {value}.")
        if tensor.dtype.base_dtype is not leaf.dtype:
            if not isinstance(value, (int, float, bool)):
                raise TypeError(
                    f"Padding value tensor ({tensor}) does not match output type: {leaf.dtype}"
                )
            tensor = convert_to_tensor(value, leaf.dtype, name="padding_value")
        out.append(tensor)
    return out
