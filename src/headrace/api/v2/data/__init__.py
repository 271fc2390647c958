"""``tf.data`` of TensorFlow 2."""

from headrace.api.v2.data import experimental
from headrace.api.v2.lookup import module_getattr
from headrace.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, DatasetSpec
from headrace.data.dataset import DatasetV2 as Dataset
from headrace.data.iterators import IteratorBase as Iterator
from headrace.data.iterators import IteratorSpec
from headrace.data.options import AutotuneOptions, Options, ThreadingOptions
from headrace.data.readers import FixedLengthRecordDatasetV2 as FixedLengthRecordDataset
from headrace.data.readers import TextLineDatasetV2 as TextLineDataset
from headrace.data.readers import TFRecordDatasetV2 as TFRecordDataset
from headrace.data.statistics import measure, stats

__all__ = [
    "AUTOTUNE", "AutotuneOptions", "Dataset", "DatasetSpec", "FixedLengthRecordDataset", "INFINITE_CARDINALITY", "Iterator",
    "IteratorSpec", "Options", "TFRecordDataset", "TextLineDataset", "ThreadingOptions", "UNKNOWN_CARDINALITY",
    "experimental", "measure", "stats",
]  # fmt: skip

__getattr__ = module_getattr("data", __name__)
