"""Datasets of serialized Examples.

``parse_example_dataset`` and ``make_batched_features_dataset``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.specs import TensorSpec
from headrace.data.api.csv_files import _file_names, _repeated
from headrace.data.api.dataset import AUTOTUNE
from headrace.data.api.dataset_v1 import DatasetV1
from headrace.data.api.readers import TFRecordDatasetV1, TFRecordDatasetV2

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.data.api.mapped import Mapped

__all__ = ["make_batched_features_dataset", "parse_example_dataset"]


def parse_example_dataset(
    features: object, num_parallel_calls: TensorLike = 1, deterministic: bool | None = None
) -> Callable[[Any], Any]:
    """Batches of serialized Examples to dicts of tensors, for ``Dataset.apply``.

    ``features`` is as in ``tf.parse_example``; the elements of the dataset are vectors of strings,
    so ``batch`` comes first. ``num_parallel_calls`` batches are parsed at once; ``deterministic``
    keeps their order.
    """
    from headrace.ops.io.parsing_features import parse_example

    if features is None:
        raise ValueError("Missing: features was None.")

    def apply(dataset: Mapped) -> Any:
        spec = dataset.element_spec
        if (
            not isinstance(spec, TensorSpec)
            or spec.dtype is not dtypes.string
            or spec.shape.rank != 1
        ):
            raise TypeError("Input dataset should be a dataset of vectors of strings.")
        return dataset.map(
            lambda records: parse_example(records, features),
            None if num_parallel_calls == 1 else num_parallel_calls,
            deterministic,
        )

    return apply


def make_batched_features_dataset(
    file_pattern: str,
    batch_size: int,
    features: dict[str, Any],
    reader: Any = None,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
    kind: type[Any] | None = None,
) -> Any:
    """Batches of parsed Examples from files: dicts, or (dict, label) with ``label_key``.

    ``features`` describes the columns as for ``tf.parse_example``; ``reader`` makes a dataset of
    records from a file name (TFRecordDataset). Records are shuffled and repeated forever unless
    ``shuffle=False`` and ``num_epochs`` say otherwise.
    """
    if reader is None:
        is_v1 = kind is None or issubclass(kind, DatasetV1)
        reader = TFRecordDatasetV1 if is_v1 else TFRecordDatasetV2
    if label_key is not None and label_key not in features:
        raise ValueError(
            f"The `label_key` provided ({label_key!r}) must be one of the `features` "
            f"keys: {features.keys()}."
        )
    base: Any = getattr(reader, "_base", DatasetV1)
    names = base.from_tensor_slices(_file_names(file_pattern, shuffle, shuffle_seed))
    extra = list(reader_args or ())
    read = lambda name: reader(name, *extra)
    if reader_num_threads is not None and reader_num_threads > 1:
        dataset = names._parallel_interleave(
            read, reader_num_threads, 1, sloppy_ordering, None, None
        )
    else:
        dataset = names.flat_map(read)
    if not isinstance(dataset.element_spec, TensorSpec):  # (key, value): the values
        dataset = dataset.map(lambda _, value: value)
    dataset = _repeated(dataset, shuffle, shuffle_buffer_size, shuffle_seed, num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    threads = 2 if parser_num_threads is None else parser_num_threads
    dataset = dataset.apply(parse_example_dataset(features, threads))
    if label_key is not None:
        dataset = dataset.map(lambda parsed: (parsed, parsed.pop(label_key)))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
