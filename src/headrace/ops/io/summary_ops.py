"""Summary ops: tensors to serialized ``Summary`` messages, as TensorBoard reads them.

The histogram has TensorFlow's buckets: limits that grow by a tenth from 1e-12 to 1e20 on both sides
of zero; runs of empty buckets are written as one.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from headrace import errors
from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.dtypes import as_dtype
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape

__all__ = [
    "HISTOGRAM_SUMMARY",
    "MERGE_SUMMARY",
    "SCALAR_SUMMARY",
    "TENSOR_SUMMARY",
    "add_histogram",
    "add_tensor",
    "new_summary",
]


def message_bytes(message: Any) -> bytes:
    """The bytes of a protocol message."""
    data: bytes = message.SerializeToString()
    return data


def new_summary() -> Any:
    """An empty Summary message."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary()


def _scalar(_: Inference) -> list[Shape]:
    return [()]


def _text(tag: Any) -> str:
    value = tag.item() if isinstance(tag, np.ndarray) else tag
    return value.decode() if isinstance(value, bytes) else str(value)


def _scalar_kernel(xp: ArrayNamespace, tags: Array, values: Array) -> bytes:
    tags, values = np.asarray(tags, object), np.asarray(values)
    if tags.shape != values.shape and not (tags.size == 1 and values.size == 1):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"tags and values not the same shape: {list(tags.shape)} != {list(values.shape)}",
        )
    summary = new_summary()
    for tag, value in zip(tags.ravel(), values.ravel()):
        summary.value.add(tag=_text(tag), simple_value=float(value))
    return message_bytes(summary)


#: Above this number of values it is quicker to sort them and look up the limits among them.
_WORTH_SORTING = 1000


@functools.cache
def _limits() -> Array:
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    limits.append(sys.float_info.max)
    return np.array([*(-x for x in reversed(limits)), 0.0, *limits])


def histogram_of(values: Array) -> Any:
    """A HistogramProto of finite values, in TensorFlow's buckets."""
    from tensorboard.compat.proto.summary_pb2 import HistogramProto

    flat = np.asarray(values, np.float64).ravel()
    limits = _limits()
    counts = _bucket_counts(flat, limits)
    # a run of empty buckets is one, with the last one's limit
    kept = counts > 0
    kept[:-1] |= kept[1:]
    kept[-1] = True
    largest = sys.float_info.max
    with np.errstate(over="ignore"):
        squares = flat * flat
    return HistogramProto(
        min=float(flat.min()) if flat.size else largest,
        max=float(flat.max()) if flat.size else -largest,
        num=float(flat.size),
        sum=_sum_in_order(flat),
        sum_squares=_sum_in_order(squares),
        bucket_limit=limits[kept].tolist(),
        bucket=counts[kept].astype(np.float64).tolist(),
    )


def _bucket_counts(flat: Array, limits: Array) -> Array:
    """How many values each bucket has: bucket i is from limit i-1 to below limit i."""
    if flat.size < _WORTH_SORTING:
        found = np.searchsorted(limits, flat, side="right")
        return np.bincount(found, minlength=len(limits))[: len(limits)]
    below = np.searchsorted(np.sort(flat), limits, side="left")
    return np.diff(below, prepend=0)


def _sum_in_order(flat: Array) -> float:
    """The sum, added one after the other as TensorFlow does; np.sum adds in pairs."""
    with np.errstate(over="ignore"):
        return float(np.cumsum(flat)[-1]) if flat.size else 0.0


def add_histogram(summary: Any, tag: Array, values: Array) -> None:
    """Add the distribution of finite values to a Summary message."""
    name, numbers = _text(tag), np.asarray(values).astype(np.float64)
    if np.isnan(numbers).any():
        raise errors.InvalidArgumentError(None, None, f"Nan in summary histogram for: {name}")
    if np.isinf(numbers).any():
        raise errors.InvalidArgumentError(None, None, f"Infinity in summary histogram for: {name}")
    summary.value.add(tag=name).histo.CopyFrom(histogram_of(numbers))


def add_tensor(summary: Any, tag: Array, tensor: Array, metadata: Array) -> None:
    """Add a tensor as it is; ``metadata`` is a serialized SummaryMetadata."""
    array = np.asarray(tensor)
    value = summary.value.add(tag=_text(tag))
    message = value.tensor
    message.dtype = as_dtype(array.dtype if array.dtype != object else "string")._enum
    message.tensor_shape.SetInParent()
    for size in array.shape:
        message.tensor_shape.dim.add().size = size
    if array.dtype == object:
        message.string_val.extend(array.ravel().tolist())
    else:
        message.tensor_content = np.ascontiguousarray(array).tobytes()
    serialized = metadata.item() if isinstance(metadata, np.ndarray) else metadata
    if serialized:
        value.metadata.ParseFromString(serialized)


def _histogram_kernel(xp: ArrayNamespace, tag: Array, values: Array) -> bytes:
    summary = new_summary()
    add_histogram(summary, tag, values)
    return message_bytes(summary)


def _tensor_kernel(
    xp: ArrayNamespace, tag: Array, tensor: Array, serialized_summary_metadata: Array
) -> bytes:
    summary = new_summary()
    add_tensor(summary, tag, tensor, serialized_summary_metadata)
    return message_bytes(summary)


def _merge_kernel(xp: ArrayNamespace, *inputs: Array) -> bytes:
    merged, seen = new_summary(), set()
    for serialized in inputs:
        for text in np.asarray(serialized, object).ravel():
            part = new_summary()
            part.ParseFromString(text)
            for value in part.value:
                if value.tag and value.tag in seen:
                    raise errors.InvalidArgumentError(
                        None, None, f"Duplicate tag {value.tag} found in summary inputs"
                    )
                seen.add(value.tag)
                merged.value.add().CopyFrom(value)
    return message_bytes(merged)


SCALAR_SUMMARY = define(
    "ScalarSummary",
    "tags: string, values: T -> summary: string; T: type(real)",
    shape=_scalar,
    kernel=_scalar_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
HISTOGRAM_SUMMARY = define(
    "HistogramSummary",
    "tag: string, values: T -> summary: string; T: type(real)=float32",
    shape=_scalar,
    kernel=_histogram_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
MERGE_SUMMARY = define(
    "MergeSummary",
    "inputs: N*string -> summary: string",
    shape=_scalar,
    kernel=_merge_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
TENSOR_SUMMARY = define(
    "TensorSummaryV2",
    "tag: string, tensor: T, serialized_summary_metadata: string -> summary: string; T: type",
    shape=_scalar,
    kernel=_tensor_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
