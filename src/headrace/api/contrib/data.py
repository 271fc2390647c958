"""``tf.contrib.data``: the names that moved to ``tf.data`` and ``tf.data.experimental``."""

from headrace.api.missing import module_getattr
from headrace.data.dataset_v1 import DatasetV1 as Dataset
from headrace.data.experimental import *  # noqa: F403
from headrace.data.experimental import __all__ as _names
from headrace.data.iterators import IteratorV1 as Iterator
from headrace.data.readers import FixedLengthRecordDatasetV1 as FixedLengthRecordDataset
from headrace.data.readers import TextLineDatasetV1 as TextLineDataset
from headrace.data.readers import TFRecordDatasetV1 as TFRecordDataset

__all__ = [
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    *_names,
]

__getattr__ = module_getattr("contrib.data", __name__)
