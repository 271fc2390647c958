"""``tf.data.experimental``: transformations for ``Dataset.apply``, and functions of datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.specs import TensorSpec
from headrace.data.api import element_groups as grouping
from headrace.data.api.creation import seed_pair
from headrace.data.api.csv_files import CsvDatasetV1, make_csv_dataset
from headrace.data.api.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from headrace.data.api.dataset_sampling import choose_from_datasets, sample_from_datasets
from headrace.data.api.dataset_v1 import DatasetV1
from headrace.data.api.element_groups import Reducer
from headrace.data.api.examples import make_batched_features_dataset, parse_example_dataset
from headrace.data.api.optional import Optional, OptionalSpec
from headrace.data.api.options import (
    AutoShardPolicy,
    DistributeOptions,
    MapVectorizationOptions,
    OptimizationOptions,
    StatsOptions,
    ThreadingOptions,
)
from headrace.data.api.saving import TFRecordWriter, save
from headrace.data.api.saving import load as _load
from headrace.data.api.saving import snapshot as _snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.data.api.dataset import DatasetV2
    from headrace.data.api.iterators import IteratorBase

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "INFINITE_CARDINALITY",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Optional",
    "OptionalSpec",
    "RandomDataset",
    "Reducer",
    "StatsOptions",
    "TFRecordWriter",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "to_variant",
    "unbatch",
    "unique",
]

Transformation = Callable[[Any], Any]


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: TensorLike,
    num_parallel_batches: TensorLike | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: object = None,
) -> Transformation:
    """``map`` and ``batch`` in one, with several calls under way at once.

    For ``Dataset.apply``. ``num_parallel_calls`` calls of ``map_func`` run at once (as many as
    there are processors without it; ``num_parallel_batches`` is the older measure, and giving both
    is an error). The order of elements stays.

        tf.data.Dataset.range(4).apply(tf.data.experimental.map_and_batch(lambda x: x + 1, 2))
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "The `num_parallel_batches` and `num_parallel_calls` arguments are mutually exclusive."
        )
    calls = AUTOTUNE if num_parallel_calls is None else num_parallel_calls
    return lambda dataset: dataset._map_and_batch(map_func, batch_size, drop_remainder, calls)


map_and_batch_with_legacy_function = map_and_batch


def shuffle_and_repeat(
    buffer_size: TensorLike, count: TensorLike | None = None, seed: TensorLike | None = None
) -> Transformation:
    """``shuffle`` and ``repeat`` in one.

    Rounds follow each other without the buffer running empty.
    """

    def apply(dataset: DatasetV1) -> Any:
        size = convert_to_tensor(buffer_size, dtypes.int64, name="buffer_size")
        first, second = seed_pair(seed)
        again = -1 if count is None else count
        if not isinstance(dataset, DatasetV1):  # as in TensorFlow 2
            return dataset.shuffle(size, seed=seed).repeat(again)
        return dataset._unary("ShuffleAndRepeatDataset", size, first, second, again)

    return apply


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: TensorLike,
    block_length: TensorLike = 1,
    sloppy: bool = False,
    buffer_output_elements: object = None,
    prefetch_input_elements: object = None,
) -> Transformation:
    """``interleave`` with a thread for each dataset of the cycle.

    For ``Dataset.apply``. ``map_func`` makes a dataset of each element; ``cycle_length`` of them
    are read at once, ``block_length`` elements from each in turn. With ``sloppy`` a dataset that is
    not ready is passed over, so the order may change from run to run. ``buffer_output_elements``
    and ``prefetch_input_elements`` are how many results and inputs are fetched ahead.
    """
    return lambda dataset: dataset._parallel_interleave(
        map_func,
        cycle_length,
        block_length,
        sloppy,
        buffer_output_elements,
        prefetch_input_elements,
    )


def batch_and_drop_remainder(batch_size: TensorLike) -> Transformation:
    """For ``Dataset.apply``: batches of one size; a last, smaller one is dropped."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: object, padded_shapes: object, padding_values: object = None
) -> Transformation:
    """For ``Dataset.apply``: ``padded_batch`` without a last, smaller batch.

    ``padded_shapes`` and ``padding_values`` are those of ``padded_batch``. The batch size is then
    known to the graph.
    """
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def group_by_window(
    key_func: object,
    reduce_func: object,
    window_size: int | None = None,
    window_size_func: object = None,
) -> Transformation:
    """For ``Dataset.apply``: elements with one key, collected to windows and reduced.

    ``key_func`` gives an int64 key; each window of ``window_size`` elements (or
    ``window_size_func(key)``) of a key becomes a dataset, which ``reduce_func(key, dataset)`` turns
    into another.
    """
    return lambda dataset: grouping.group_by_window(
        dataset, key_func, reduce_func, window_size, window_size_func
    )


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """For ``Dataset.apply``: one element per key, accumulated over the whole dataset.

    ``reducer`` is a ``Reducer(init_func, reduce_func, finalize_func)``.
    """
    return lambda dataset: grouping.group_by_reducer(dataset, key_func, reducer)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: object,
    padded_shapes: object = None,
    padding_values: object = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """For ``Dataset.apply``: padded batches of elements of similar length.

    ``bucket_boundaries`` are the upper limits of the lengths (exclusive); there is one batch size
    more than boundaries, for what is longer. ``pad_to_bucket_boundary`` pads to the boundary less
    one instead of to the longest element.
    """
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def dense_to_sparse_batch(batch_size: TensorLike, row_shape: TensorLike) -> Transformation:
    """For ``Dataset.apply``: batches of dense elements of different sizes as a SparseTensor.

    ``row_shape`` is the dense shape of one row; None in it means the largest of the batch.
    """
    return lambda dataset: dataset.dense_to_sparse_batch(batch_size, row_shape)


def enumerate_dataset(start: object = 0) -> Transformation:
    """For ``Dataset.apply``: each element with its number, counted from ``start``."""
    return lambda dataset: dataset.enumerate(start)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """For ``Dataset.apply``: elements whose computation fails are left out.

    With ``log_warning`` (TF 2's) each error is logged.
    """
    return lambda dataset: dataset.ignore_errors(log_warning)


def prefetch_to_device(device: str, buffer_size: object = None) -> Transformation:
    """There is one device: elements are produced ahead."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device: object, source_device: str = "/cpu:0") -> Transformation:
    """For ``Dataset.apply``: the dataset as it is, since there is only the CPU."""
    return lambda dataset: dataset


def rejection_resample(
    class_func: object, target_dist: object, initial_dist: object = None, seed: int | None = None
) -> Transformation:
    """For ``Dataset.apply``: elements dropped at random until classes are distributed as wanted.

    ``class_func`` gives the class of an element, ``target_dist`` the wanted shares,
    ``initial_dist`` the present ones (estimated if left out). Elements become (class, element).
    """
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def scan(initial_state: TensorLike, scan_func: Callable[..., Any]) -> Transformation:
    """For ``Dataset.apply``: a map that carries a state from element to element.

    ``scan_func(state, element)`` returns (new state, result).
    """
    return lambda dataset: dataset.scan(initial_state, scan_func)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """For ``Dataset.apply``: elements up to the first for which ``predicate`` is false."""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """For ``Dataset.apply``: the rows of each element as elements of their own."""
    return lambda dataset: dataset.unbatch()


def unique() -> Transformation:
    """For ``Dataset.apply``: each distinct element once, where it first occurs."""
    return lambda dataset: dataset.unique()


def assert_cardinality(expected_cardinality: TensorLike) -> Transformation:
    """The dataset, with an error where it turns out to have another number of elements."""
    return lambda dataset: dataset._unary("AssertCardinalityDataset", expected_cardinality)


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: DType = dtypes.int64
) -> Transformation:
    """For ``Dataset.apply``: batches of elements of different sizes as ragged tensors.

    Dimensions up to the last one that is not known are ragged; components of a known shape are
    stacked.
    """
    return lambda dataset: dataset._ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def snapshot(
    path: str,
    compression: str | None = None,
    reader_path_prefix: str | None = None,
    writer_path_prefix: str | None = None,
    shard_size_bytes: int | None = None,
    pending_snapshot_expiry_seconds: int | None = None,
    num_reader_threads: int | None = None,
    reader_buffer_size: int | None = None,
    num_writer_threads: int | None = None,
    writer_buffer_size: int | None = None,
    reader_func: Any = None,
    shard_func: Any = None,
) -> Transformation:
    """What ``Dataset.snapshot`` does.

    The sizes and numbers of threads are recorded; they do not change what is read.
    """
    if reader_path_prefix or writer_path_prefix:
        raise NotImplementedError(
            "snapshot: give the whole path instead of a prefix of readers or writers."
        )
    settings = {
        "shard_size_bytes": shard_size_bytes,
        "num_reader_threads": num_reader_threads,
        "pending_snapshot_expiry_seconds": pending_snapshot_expiry_seconds,
        "reader_buffer_size": reader_buffer_size,
        "num_writer_threads": num_writer_threads,
        "writer_buffer_size": writer_buffer_size,
    }
    given = {k: v for k, v in settings.items() if v is not None}
    return lambda dataset: _snapshot(
        dataset, path, compression or "AUTO", reader_func, shard_func, given
    )


# functions --------------------------------------------------------------------------------------


def cardinality(dataset: DatasetV2) -> Tensor:
    """The number of elements: an int64 tensor, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    return dataset.cardinality()


def get_single_element(dataset: DatasetV2) -> Any:
    """The element of a dataset that has exactly one; otherwise InvalidArgumentError."""
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The ``TypeSpec`` of an element, in the element's structure."""
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        raise TypeError(
            "`dataset_or_iterator` must be a Dataset or Iterator object, but got "
            f"{type(dataset_or_iterator)}."
        ) from None


def get_next_as_optional(iterator: IteratorBase) -> Optional:
    """The next element as an ``Optional``, empty at the end instead of an error."""
    return iterator.get_next_as_optional()


def load(
    path: str,
    element_spec: object = None,
    compression: str | None = None,
    reader_func: object = None,
) -> Any:
    """The dataset that ``tf.data.experimental.save`` wrote to the directory ``path``.

    ``element_spec`` is read from the directory unless given, ``compression`` is None or "GZIP".
    ``reader_func`` gets a dataset of the shards' datasets and returns the one to read, for example
    with ``interleave``.
    """
    return _load(DatasetV1, path, element_spec, compression, reader_func)


def to_variant(dataset: DatasetV2) -> Tensor:
    """The dataset as a scalar tensor of type variant; ``from_variant`` is its inverse."""
    return dataset._variant_tensor


def from_variant(variant: object, structure: object) -> Any:
    """The dataset behind a variant tensor; ``structure`` is the ``TypeSpec`` of its elements."""
    return DatasetV1._base(variant, structure)


def Counter(start: Any = 0, step: Any = 1, dtype: DType = dtypes.int64) -> Any:
    """A dataset without end: ``start``, ``start + step``, and so on.

    ``start`` and ``step`` are numbers or scalar tensors of ``dtype``. Zipped with a dataset it
    numbers the elements.

        tf.data.experimental.Counter().take(3)
    """
    return DatasetV1.counter(start, step, dtype)


class RandomDataset(DatasetV1):
    """An endless dataset of random int64 scalars; ``seed`` makes them reproducible."""

    def __init__(self, seed: object = None) -> None:
        super().__init__(DatasetV1.random(seed)._variant_tensor, TensorSpec((), dtypes.int64))


CsvDataset = CsvDatasetV1
