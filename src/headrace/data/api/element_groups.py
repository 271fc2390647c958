"""group_by_window, bucket_by_sequence_length and group_by_reducer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Tensor
from headrace.data.functions.user_functions import DataFunction, traced

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.core.specs import TypeSpec
    from headrace.data.api.dataset import DatasetV2
    from headrace.data.api.dataset_v1 import DatasetV1

__all__ = ["Reducer", "bucket_by_sequence_length", "group_by_reducer", "group_by_window"]


def _as_int64(value: np.generic | Tensor) -> Tensor:
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is dtypes.int64 else apply_op("Cast", tensor, DstT=dtypes.int64)


def _int64_number(value: TensorLike) -> Any:
    """Numbers of Python and NumPy are what is asked for; other values say what they are."""
    if isinstance(value, (int, np.number)):
        return convert_to_tensor(value, dtypes.int64)
    return convert_to_tensor(value)


def _number(
    fn: Callable[..., Any], spec: TypeSpec, name: str, any_int: bool = False
) -> DataFunction:
    convert = _as_int64 if any_int else _int64_number
    f = traced(fn, spec, f"tf.data.experimental.{name}()", convert=convert)
    leaf = f.output_spec
    if (
        not isinstance(leaf, TensorSpec)
        or leaf.dtype is not dtypes.int64
        or leaf.shape.rank not in (0, None)
    ):
        raise ValueError(f"`{name}` must return a single tf.int64 tensor. Got {leaf}.")
    return f


def group_by_window(
    dataset: Any,
    key_func: Any,
    reduce_func: Any,
    window_size: Any = None,
    window_size_func: Any = None,
) -> Any:
    """``reduce_func(key, group)`` makes a dataset of every group of elements with one key."""
    from headrace.data.api.dataset import DatasetSpec

    if (window_size is None) == (window_size_func is None):
        raise ValueError(
            "Either the `window_size` argument or the `window_size_func` argument must be "
            "specified."
        )
    size = window_size_func if window_size_func is not None else lambda _: np.int64(window_size)
    scalar = TensorSpec((), dtypes.int64)
    key = _number(key_func, dataset.element_spec, "key_func")
    window = _number(size, scalar, "window_size_func", any_int=True)
    reduce = traced(
        reduce_func, (scalar, DatasetSpec(dataset.element_spec)), "group_by_window()", several=True
    )
    if not isinstance(reduce.output_spec, DatasetSpec):
        raise TypeError("`reduce_func` must return a `Dataset` object.")
    return dataset._unary(
        "GroupByWindowDataset",
        key.captured,
        reduce.captured,
        window.captured,
        key_func=key,
        reduce_func=reduce,
        window_size_func=window,
        spec=reduce.output_spec.element_spec,
    )


def bucket_by_sequence_length(
    dataset: Any,
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Sequence[Any] | None = None,
    padding_values: object = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Any:
    """Batches of elements whose lengths are between the same boundaries."""
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1`")
    edges = np.array(bucket_boundaries, np.int32)
    sizes = np.array(bucket_batch_sizes, np.int64)

    def bucket(*element: Tensor) -> Any:
        length = apply_op("Cast", element_length_func(*element), DstT=dtypes.int32)
        below = apply_op("GreaterEqual", length, edges)
        return apply_op("Sum", apply_op("Cast", below, DstT=dtypes.int64), [0], keep_dims=False)

    def batched(number: TensorLike, group: Any) -> Any:
        size = apply_op("GatherV2", sizes, number, 0)
        if no_padding:
            return group.batch(size, drop_remainder=drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = nest.map_structure(lambda s: s.shape, dataset.element_spec)
        if pad_to_bucket_boundary:
            shapes = _to_boundary(dataset.element_spec, shapes, number, edges)
        return group.padded_batch(size, shapes, padding_values, drop_remainder=drop_remainder)

    return group_by_window(
        dataset,
        bucket,
        batched,
        window_size_func=lambda number: apply_op("GatherV2", sizes, number, 0),
    )


def _to_boundary(spec: TypeSpec, shapes: object, number: TensorLike, edges: Array) -> Any:
    """Unknown dimensions filled up to the last length that belongs to the bucket."""
    from headrace.data.api.transformed import _beside
    from headrace.ops.control.assertions import assert_less

    check = assert_less(
        number,
        np.int64(len(edges)),
        message="When pad_to_bucket_boundary=True, elements must have length < "
        "max(bucket_boundaries).",
    )
    from headrace.core.scopes import control_dependencies

    with control_dependencies([check] if check is not None else []):
        number = apply_op("Identity", number)
    last = apply_op("GatherV2", edges.astype(np.int64) - 1, number, 0)

    def filled(shape: TensorShape) -> Any:
        dims = as_shape(
            TensorShape([None if d == -1 else d for d in as_shape(shape).as_list()])
        ).as_list()
        parts = [last if d is None else np.int64(d) for d in dims]
        return apply_op("Pack", parts, axis=0) if parts else np.zeros(0, np.int64)

    return nest.pack_sequence_as(spec, [filled(s) for s in _beside(spec, shapes)])


class Reducer(NamedTuple):
    """How a group is reduced.

    ``init_func(key)``, ``reduce_func(state, element)``, ``finalize_func(state)``.
    """

    init_func: Any
    reduce_func: Any
    finalize_func: Any


def group_by_reducer(
    dataset: DatasetV2, key_func: Callable[..., Any], reducer: Reducer
) -> DatasetV1 | DatasetV2:
    """One element for each key."""
    from headrace.data.api.reducing import _settled

    key = _number(key_func, dataset.element_spec, "key_func")
    init = traced(reducer.init_func, TensorSpec((), dtypes.int64), "init_func")
    reduce, state = _settled(
        reducer.reduce_func, init.output_spec, dataset.element_spec, "reduce_func", lambda s: s
    )
    final = traced(reducer.finalize_func, state, "finalize_func")
    return dataset._unary(
        "GroupByReducerDataset",
        key.captured,
        init.captured,
        reduce.captured,
        final.captured,
        key_func=key,
        init_func=init,
        reduce_func=reduce,
        finalize_func=final,
        spec=final.output_spec,
    )
