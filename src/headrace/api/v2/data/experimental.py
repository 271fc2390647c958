"""``tf.data.experimental`` of TensorFlow 2."""

import functools
import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.data.api.csv_files import CsvDatasetV2
from headrace.data.api.data_experimental import *  # noqa: F403
from headrace.data.api.data_experimental import __all__ as __all__
from headrace.data.api.dataset import DatasetV2

CsvDataset = CsvDatasetV2  # type: ignore[misc,assignment]
make_csv_dataset = functools.partial(make_csv_dataset, kind=DatasetV2)  # noqa: F405
make_batched_features_dataset = functools.partial(make_batched_features_dataset, kind=DatasetV2)  # noqa: F405
Counter = DatasetV2.counter
RandomDataset = DatasetV2.random  # type: ignore[misc,assignment]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("data.experimental", __name__)
