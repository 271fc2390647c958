"""tf.data: datasets, their transformations, and the pipelines that run them.

``ops`` defines the dataset ops (their values are stages), ``runtime`` goes through stages,
``functions`` runs the users' functions, ``api`` is what a user sees. Nothing here is imported by
``import headrace``.

Importing any of these modules makes ``headrace.data`` this package, so it has the names of
``tf.data`` as well (TensorFlow 1's version), each imported when it is first used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "INFINITE_CARDINALITY",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "UNKNOWN_CARDINALITY",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
    "measure",
    "stats",
]

_NAMES = {
    "AUTOTUNE": "dataset:AUTOTUNE",
    "Dataset": "dataset_v1:DatasetV1",
    "DatasetSpec": "dataset:DatasetSpec",
    "FixedLengthRecordDataset": "readers:FixedLengthRecordDatasetV1",
    "INFINITE_CARDINALITY": "dataset:INFINITE_CARDINALITY",
    "Iterator": "iterators:IteratorV1",
    "Options": "options:Options",
    "TFRecordDataset": "readers:TFRecordDatasetV1",
    "TextLineDataset": "readers:TextLineDatasetV1",
    "UNKNOWN_CARDINALITY": "dataset:UNKNOWN_CARDINALITY",
    "get_output_classes": "dataset_v1:get_legacy_output_classes",
    "get_output_shapes": "dataset_v1:get_legacy_output_shapes",
    "get_output_types": "dataset_v1:get_legacy_output_types",
    "make_initializable_iterator": "dataset_v1:make_initializable_iterator",
    "make_one_shot_iterator": "dataset_v1:make_one_shot_iterator",
    "measure": "statistics:measure",
    "stats": "statistics:stats",
}

#: Set by the api: what to say about a name that is not here.
explain: Callable[[str], str] | None = None


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return importlib.import_module("headrace.data.api.data_experimental")
    place = _NAMES.get(name)
    if place is None:
        text = None if explain is None or name.startswith("__") else explain(name)
        raise AttributeError(text or f"module 'headrace.data' has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    value = getattr(importlib.import_module(f"headrace.data.api.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
