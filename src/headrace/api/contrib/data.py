"""``tf.contrib.data``: the names that moved to ``tf.data`` and ``tf.data.experimental``."""

from headrace.api.missing import module_getattr
from headrace.data.api.data_experimental import *  # noqa: F403
from headrace.data.api.data_experimental import __all__ as _names
from headrace.data.api.dataset_v1 import DatasetV1 as Dataset
from headrace.data.api.iterators import IteratorV1 as Iterator
from headrace.data.api.readers import FixedLengthRecordDatasetV1 as FixedLengthRecordDataset
from headrace.data.api.readers import TextLineDatasetV1 as TextLineDataset
from headrace.data.api.readers import TFRecordDatasetV1 as TFRecordDataset

__all__ = [
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    *_names,
]

__getattr__ = module_getattr("contrib.data", __name__)
