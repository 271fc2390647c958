"""``Dataset.save``, ``Dataset.load``, ``Dataset.snapshot`` and ``TFRecordWriter``: datasets to files and back.

The directory that ``save`` writes is Headrace's own form: ``elements`` (runtime/saved.py) and ``spec.json``, the structure of
the elements, so that ``load(path)`` needs nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from headrace import errors
from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.specs import TensorSpec
from headrace.data.api import structure

__all__ = ["TFRecordWriter", "load", "save", "snapshot"]

_SPEC = "spec.json"


def save(dataset: Any, path: str, compression: str | None = None) -> None:
    """Write all elements to a directory."""
    if not get_default_graph()._is_eager:
        raise RuntimeError("`tf.data.Dataset.save()` is only supported in eager mode.")
    described = json.dumps(_to_json(dataset.element_spec))
    os.makedirs(path, exist_ok=True)
    apply_op(
        "_SaveDataset", dataset._prepared()._variant_tensor, path, compression=compression or ""
    )
    with open(os.path.join(path, _SPEC), "w") as file:
        file.write(described)


def load(kind: Any, path: str, element_spec: Any = None, compression: str | None = None) -> Any:
    """The dataset that was saved in a directory."""
    if element_spec is None:
        element_spec = _saved_spec(path)
    variant = apply_op(
        "_LoadDataset", path, compression=compression or "",
        output_types=structure.component_types(element_spec),
        output_shapes=structure.component_shapes(element_spec),
    )  # fmt: skip
    return kind._base(variant, element_spec)


def snapshot(dataset: Any, path: Any, compression: str = "AUTO") -> Any:
    """The dataset; the elements of its first complete pass are kept in a directory and read from there later."""
    return dataset._unary("SnapshotDataset", path, compression="" if compression in (None, "AUTO", "NONE") else compression)  # fmt: skip


def _saved_spec(path: str) -> Any:
    try:
        with open(os.path.join(path, _SPEC)) as file:
            return _from_json(json.load(file))
    except FileNotFoundError:
        raise errors.NotFoundError(
            None, None, f"{path}: no dataset was saved there (or give `element_spec`)."
        ) from None


def _to_json(spec: Any) -> Any:
    """Tuples, dicts and specs of dense tensors."""
    if isinstance(spec, TensorSpec):
        shape = None if spec.shape.rank is None else spec.shape.as_list()
        return {"tensor": [shape, spec.dtype.name]}
    if isinstance(spec, Mapping):
        return {"dict": [[k, _to_json(v)] for k, v in spec.items()]}
    if isinstance(spec, tuple) and not nest.is_namedtuple(spec):
        return {"tuple": [_to_json(s) for s in spec]}
    raise TypeError(
        f"Elements with {spec!r} cannot be saved: only dense tensors in tuples and dicts can."
    )


def _from_json(described: Any) -> Any:
    ((kind, inside),) = described.items()
    if kind == "tensor":
        return TensorSpec(inside[0], dtypes.as_dtype(inside[1]))
    if kind == "dict":
        return {k: _from_json(v) for k, v in inside}
    return tuple(_from_json(s) for s in inside)


class TFRecordWriter:
    """``tf.data.experimental.TFRecordWriter``: writes a dataset of strings to a TFRecord file."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        self._compression = convert_to_tensor(compression_type or "", dtypes.string)

    def write(self, dataset: Any) -> Any:
        """An operation that writes the dataset (in eager mode it is written at once)."""
        from headrace.data.api.dataset import DatasetV2

        if not isinstance(dataset, DatasetV2):
            raise TypeError(
                f"Invalid `dataset.` Expected a `tf.data.Dataset` object but got {type(dataset)}."
            )
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype is not dtypes.string:
            raise TypeError(f"Invalid `dataset`. Expected a `dtype` of `tf.string`, got {spec}.")
        if spec.shape.rank not in (0, None):
            raise TypeError(f"Invalid `dataset`. Expected scalar elements, got {spec}.")
        return apply_op(
            "DatasetToTFRecord",
            dataset._prepared()._variant_tensor,
            self._filename,
            self._compression,
        )
