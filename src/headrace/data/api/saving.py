"""``Dataset.save``, ``Dataset.load``, ``Dataset.snapshot`` and ``TFRecordWriter``: datasets to
files and back.

The directory that ``save`` writes is Headrace's own form (runtime/saved.py): a file for each shard
and ``spec.json``, the structure of the elements, so that ``load(path)`` needs nothing else.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, nest
from headrace.core.build import apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import lookup
from headrace.core.specs import TensorSpec
from headrace.data.api import structure
from headrace.data.functions.user_functions import DataFunction, traced
from headrace.data.runtime.saved import spec_path

if TYPE_CHECKING:
    from headrace.core.specs import TypeSpec
    from headrace.core.tensor import Operation
    from headrace.data.api.dataset import DatasetV2
    from headrace.data.api.mapped import Mapped

__all__ = ["TFRecordWriter", "load", "save", "snapshot"]


def save(
    dataset: DatasetV2,
    path: str,
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: object = None,
) -> Any:
    """Write all elements to a directory.

    In a graph, the operation that does. ``shard_func(element)`` gives a file's number.
    """
    if checkpoint_args:
        raise NotImplementedError(
            "Dataset.save does not write checkpoints of itself: leave `checkpoint_args` out."
        )
    shard = _shard_function(shard_func, dataset.element_spec, "save()")
    return apply_operation(
        lookup("_SaveDataset"),
        dataset._prepared()._variant_tensor,
        path,
        shard.captured,
        compression=compression or "",
        shard_func=shard,
        use_shard_func=shard_func is not None,
        element_spec=json.dumps(_to_json(dataset.element_spec)),
    )


def _shard_function(
    shard_func: Callable[..., Any] | None,
    spec: TypeSpec | Sequence[TypeSpec] | Mapping[str, Any],
    what: str,
) -> DataFunction:
    """Of one element: the number of its shard."""

    def number(*element: object) -> Any:
        given = np.int64(0) if shard_func is None else shard_func(*element)
        tensor = convert_to_tensor(given)
        if tensor.dtype.base_dtype not in (dtypes.int32, dtypes.int64) or tensor.shape.rank not in (
            0,
            None,
        ):
            raise TypeError(f"`shard_func` must return a scalar int64. Got {tensor}.")
        return apply_op("Cast", tensor, DstT=dtypes.int64)

    return traced(number, spec, what)


def _reader_function(reader_func: Any, spec: object, what: str) -> DataFunction:
    """Of a dataset of datasets (the shards): the dataset of their elements."""
    from headrace.data.api.dataset import DatasetSpec

    function = traced(reader_func or _interleaved, DatasetSpec(DatasetSpec(spec)), what)
    if not isinstance(function.output_spec, DatasetSpec):
        raise TypeError(
            f"`reader_func` must return a `Dataset` object. Got {function.output_spec}."
        )
    return function


def _interleaved(shards: Mapped) -> Mapped:
    return shards.interleave(lambda shard: shard, os.cpu_count() or 1)


def load(
    kind: type[Any],
    path: str,
    element_spec: object = None,
    compression: str | None = None,
    reader_func: object = None,
    wait: bool = False,
) -> Any:
    """The dataset that was saved in a directory. ``wait``: until it was saved."""
    while wait and not os.path.exists(spec_path(path)):
        time.sleep(0.1)
    if element_spec is None:
        element_spec = _saved_spec(path)
    reader = _reader_function(reader_func, element_spec, "load()")
    variant = apply_op(
        "LoadDataset",
        path,
        reader.captured,
        compression=compression or "",
        reader_func=reader,
        output_types=structure.component_types(element_spec),
        output_shapes=structure.component_shapes(element_spec),
    )
    return kind._base(variant, element_spec)


def snapshot(
    dataset: DatasetV2,
    path: str,
    compression: str = "AUTO",
    reader_func: Callable[..., Any] | None = None,
    shard_func: Callable[..., Any] | None = None,
    settings: Mapping[str, int] = {},
) -> Any:
    """The dataset.

    The elements of its first complete pass are kept in a directory and read from there later.
    """
    kind = "" if compression in (None, "AUTO", "NONE") else compression
    if reader_func is None and shard_func is None:
        return dataset._unary("SnapshotDataset", path, compression=kind, **settings)
    spec = dataset.element_spec
    reader = _reader_function(reader_func, spec, "snapshot()")
    shard = _shard_function(shard_func, spec, "snapshot()")
    return dataset._unary(
        "SnapshotDatasetV2",
        path,
        reader.captured,
        shard.captured,
        compression=kind,
        reader_func=reader,
        shard_func=shard,
    )


def _saved_spec(path: str) -> TensorSpec | tuple[TensorSpec, TensorSpec] | dict[str, Any]:
    place = spec_path(path)
    try:
        with open(place) as file:
            return _from_json(json.load(file))
    except FileNotFoundError:
        raise errors.NotFoundError(
            None, None, f"{path}: no dataset was saved there (or give `element_spec`)."
        ) from None
    except OSError as error:
        raise errors.os_error(place, error) from None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise errors.DataLossError(
            None,
            None,
            f"{place} does not describe elements ({error}). Give `element_spec`, or save anew.",
        ) from None


def _to_json(spec: TypeSpec | Sequence[TypeSpec] | Mapping[str, Any]) -> dict[Any, Any]:
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


def _from_json(described: Any) -> dict[Any, Any] | TensorSpec | tuple[Any, ...]:
    ((kind, inside),) = described.items()
    if kind == "tensor":
        return TensorSpec(inside[0], dtypes.as_dtype(inside[1]))
    if kind == "dict":
        return {k: _from_json(v) for k, v in inside}
    return tuple(_from_json(s) for s in inside)


class TFRecordWriter:
    """``tf.data.experimental.TFRecordWriter``: writes a dataset of strings to a TFRecord file."""

    def __init__(self, filename: object, compression_type: object = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        self._compression = convert_to_tensor(compression_type or "", dtypes.string)

    def write(self, dataset: Any) -> Operation | None:
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
        return apply_operation(
            lookup("DatasetToTFRecord"),
            dataset._prepared()._variant_tensor,
            self._filename,
            self._compression,
        )
