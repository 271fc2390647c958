"""``tf.data`` of TensorFlow 2."""

import typing as _typing

from headrace.api.v2.data import experimental
from headrace.api.v2.name_lookup import module_getattr
from headrace.data.api.dataset import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    DatasetSpec,
)
from headrace.data.api.dataset import DatasetV2 as Dataset
from headrace.data.api.iterators import IteratorBase as Iterator
from headrace.data.api.iterators import IteratorSpec
from headrace.data.api.options import AutotuneOptions, Options, ThreadingOptions
from headrace.data.api.readers import FixedLengthRecordDatasetV2 as FixedLengthRecordDataset
from headrace.data.api.readers import TextLineDatasetV2 as TextLineDataset
from headrace.data.api.readers import TFRecordDatasetV2 as TFRecordDataset
from headrace.data.api.statistics import measure, stats

__all__ = [
    "AUTOTUNE", "AutotuneOptions", "Dataset", "DatasetSpec", "FixedLengthRecordDataset",
    "INFINITE_CARDINALITY", "Iterator", "IteratorSpec", "Options", "TFRecordDataset",
    "TextLineDataset", "ThreadingOptions", "UNKNOWN_CARDINALITY", "experimental", "measure",
    "stats",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("data", __name__)
