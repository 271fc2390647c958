"""Transformations with functions of the user's: each is traced once, when the dataset is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.specs import TensorSpec
from headrace.data.api import structure
from headrace.data.functions.user_functions import DataFunction, traced
from headrace.runtime.cores import cpu_count

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.specs import TypeSpec
    from headrace.core.tensor import Tensor

__all__ = ["Mapped"]

AUTOTUNE = -1


class Mapped:
    """Methods of datasets."""

    if TYPE_CHECKING:
        element_spec: Any
        _variant_tensor: Tensor

        _keeps_cardinality: bool

        def _unary(
            self, op: str, *inputs: object, spec: object = None, **attrs: object
        ) -> Self: ...
        def _new(self, variant: Tensor, spec: object, *others: object) -> Self: ...

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: object = None,
        deterministic: bool | None = None,
        synchronous: object = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Self:
        """``map_func(element)`` of each element."""
        return self._map(map_func, num_parallel_calls, deterministic, self._keeps_cardinality, name)

    def _map(
        self,
        map_func: Any,
        calls: object,
        deterministic: bool | None,
        preserve: bool,
        name: str | None = None,
    ) -> Self:
        f = traced(map_func, self.element_spec, "Dataset.map()")
        keep = {"f": f, "preserve_cardinality": preserve, "spec": f.output_spec, "name": name}
        if calls is None:
            return self._unary("MapDataset", f.captured, **keep)
        if deterministic:  # whatever the options say, which 1.15's op cannot
            return self._unary(
                "ParallelMapDatasetV2", f.captured, _int64(calls), deterministic="true", **keep
            )
        sloppy = deterministic is not None
        return self._unary("ParallelMapDataset", f.captured, _int32(calls), sloppy=sloppy, **keep)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements for which ``predicate(element)`` is true."""
        f = _predicate(predicate, self.element_spec, "Dataset.filter()")
        return self._unary("FilterDataset", f.captured, predicate=f, name=name)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements before the first for which ``predicate(element)`` is false."""
        f = _predicate(predicate, self.element_spec, "Dataset.take_while()")
        return self._unary("TakeWhileDataset", f.captured, predicate=f, name=name)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """The elements of the datasets that ``map_func(element)`` returns."""
        f = _to_dataset(map_func, self.element_spec, "flat_map")
        return self._unary("FlatMapDataset", f.captured, f=f, spec=_inner(f), name=name)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: TensorLike | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """The elements of the datasets that ``map_func(element)`` returns, ``cycle_length``
        datasets in turns.
        """
        f = _to_dataset(map_func, self.element_spec, "interleave")
        block = 1 if block_length is None else block_length
        if cycle_length is None or (isinstance(cycle_length, int) and cycle_length == AUTOTUNE):
            cycle_length = max(1, cpu_count())
        if num_parallel_calls is None:
            return self._unary(
                "InterleaveDataset", f.captured, cycle_length, block, f=f, spec=_inner(f), name=name
            )
        if deterministic:
            return self._unary(
                "ParallelInterleaveDatasetV4",
                f.captured,
                cycle_length,
                block,
                0,
                1,
                num_parallel_calls,
                f=f,
                spec=_inner(f),
                deterministic="true",
                name=name,
            )
        sloppy = deterministic is not None
        return self._unary(
            "ParallelInterleaveDatasetV2",
            f.captured,
            cycle_length,
            block,
            num_parallel_calls,
            f=f,
            spec=_inner(f),
            sloppy=sloppy,
            name=name,
        )

    def _parallel_interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int,
        block_length: int,
        sloppy: bool,
        buffered: object,
        ahead: object,
    ) -> Self:
        f = _to_dataset(map_func, self.element_spec, "parallel_interleave")
        buffered = 2 * block_length if buffered is None else buffered
        ahead = 2 * cycle_length if ahead is None else ahead
        return self._unary(
            "ParallelInterleaveDataset",
            f.captured,
            cycle_length,
            block_length,
            bool(sloppy),
            buffered,
            ahead,
            f=f,
            spec=_inner(f),
        )

    def _map_and_batch(
        self,
        map_func: Callable[..., Any],
        batch_size: int,
        drop_remainder: bool,
        calls: int,
        preserve: bool = True,
    ) -> Self:
        from headrace.data.api.transformed import _known

        f = traced(map_func, self.element_spec, "tf.data.experimental.map_and_batch()")
        fixed = _known(batch_size) if _known(drop_remainder) else None
        return self._unary(
            "MapAndBatchDataset",
            f.captured,
            batch_size,
            calls,
            drop_remainder,
            f=f,
            spec=structure.batched(f.output_spec, fixed),
            preserve_cardinality=preserve,
        )

    def scan(
        self, initial_state: TensorLike, scan_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """``state, output = scan_func(state, element)`` for each element; the outputs."""
        from headrace.data.api.reducing import scanned

        return scanned(self, initial_state, scan_func, name)

    def group_by_window(
        self,
        key_func: object,
        reduce_func: object,
        window_size: int | None = None,
        window_size_func: object = None,
        name: str | None = None,
    ) -> Any:
        """Groups of elements with one key, each made into a dataset by ``reduce_func(key,
        group)``.
        """
        from headrace.data.api.element_groups import group_by_window

        return group_by_window(self, key_func, reduce_func, window_size, window_size_func)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: object = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Batches of elements whose lengths are alike."""
        from headrace.data.api.element_groups import bucket_by_sequence_length

        return bucket_by_sequence_length(
            self,
            element_length_func,
            bucket_boundaries,
            bucket_batch_sizes,
            padded_shapes,
            padding_values,
            pad_to_bucket_boundary,
            no_padding,
            drop_remainder,
        )

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: TensorLike,
        initial_dist: TensorLike | None = None,
        seed: TensorLike | None = None,
        name: str | None = None,
    ) -> Any:
        """(class, element) pairs, some left out so that the classes are distributed as
        ``target_dist``.
        """
        from headrace.data.api.dataset_sampling import rejection_resample

        return rejection_resample(self, class_func, target_dist, initial_dist, seed)


def _int32(value: Any) -> Tensor:
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is dtypes.int32 else apply_op("Cast", tensor, DstT=dtypes.int32)


def _int64(value: object) -> Tensor:
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is dtypes.int64 else apply_op("Cast", tensor, DstT=dtypes.int64)


def _predicate(
    predicate: Callable[..., Any],
    spec: TypeSpec | Sequence[TypeSpec | Sequence[TypeSpec]],
    what: str,
) -> DataFunction:
    f = traced(predicate, spec, what)
    leaf = f.output_spec
    if (
        not isinstance(leaf, TensorSpec)
        or leaf.dtype is not dtypes.bool
        or leaf.shape.rank not in (0, None)
    ):
        raise ValueError(
            f"`predicate` return type must be convertible to a scalar boolean tensor. Was {leaf}."
        )
    return f


def _to_dataset(
    map_func: Callable[..., Any] | type[Any], spec: TypeSpec | Sequence[TypeSpec], what: str
) -> DataFunction:
    from headrace.data.api.dataset import DatasetSpec

    f = traced(map_func, spec, f"Dataset.{what}()")
    if not isinstance(f.output_spec, DatasetSpec):
        raise TypeError(f"`map_func` must return a `Dataset` object. Got {type(f.output_value)}")
    return f


def _inner(f: DataFunction) -> Any:
    return f.output_spec.element_spec
