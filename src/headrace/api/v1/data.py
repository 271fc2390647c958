"""``tf.data`` is the package :mod:`headrace.data` itself: importing any part of that makes it
``headrace.data`` anyway.

What this module adds is what to say about names that TensorFlow has and Headrace has not; then it
steps aside.
"""

import sys
import typing as _typing
from functools import partial

import headrace.data as _data
from headrace.api.missing import explain, module_getattr
from headrace.data.api import data_experimental as _experimental

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.data.api import data_experimental as experimental
    from headrace.data.api.dataset import AUTOTUNE as AUTOTUNE
    from headrace.data.api.dataset import INFINITE_CARDINALITY as INFINITE_CARDINALITY
    from headrace.data.api.dataset import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
    from headrace.data.api.dataset import DatasetSpec as DatasetSpec
    from headrace.data.api.dataset_v1 import DatasetV1 as Dataset
    from headrace.data.api.dataset_v1 import get_legacy_output_classes as get_output_classes
    from headrace.data.api.dataset_v1 import get_legacy_output_shapes as get_output_shapes
    from headrace.data.api.dataset_v1 import get_legacy_output_types as get_output_types
    from headrace.data.api.dataset_v1 import (
        make_initializable_iterator as make_initializable_iterator,
    )
    from headrace.data.api.dataset_v1 import make_one_shot_iterator as make_one_shot_iterator
    from headrace.data.api.iterators import IteratorV1 as Iterator
    from headrace.data.api.options import Options as Options
    from headrace.data.api.readers import FixedLengthRecordDatasetV1 as FixedLengthRecordDataset
    from headrace.data.api.readers import TextLineDatasetV1 as TextLineDataset
    from headrace.data.api.readers import TFRecordDatasetV1 as TFRecordDataset
    from headrace.data.api.statistics import measure as measure
    from headrace.data.api.statistics import stats as stats

    __all__ = ["Dataset", "FixedLengthRecordDataset", "Iterator", "TFRecordDataset"]
    __all__ += ["TextLineDataset", "experimental", "get_output_classes", "get_output_shapes"]
    __all__ += ["get_output_types"]
# static names: end

_data.explain = partial(explain, "data", available=_data.__all__)
vars(_experimental)["__getattr__"] = module_getattr("data.experimental", _experimental.__name__)
sys.modules[__name__] = _data
