"""Choosing and ordering: where, select, unique, top-k, sorting, searching.

>>> tf.where(x > 0, x, -x); values, indices = tf.nn.top_k(x, k=3); tf.unique([3, 1, 3])
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import NOT_DIFFERENTIABLE, define, lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, shape
from headrace.ops.array.filling import _all_axes, zeros_like

__all__ = [
    "argsort",
    "edit_distance",
    "in_top_k",
    "in_top_k_v2",
    "is_non_decreasing",
    "is_strictly_increasing",
    "listdiff",
    "lower_bound",
    "nth_element",
    "searchsorted",
    "setdiff1d",
    "sort",
    "top_k",
    "unique",
    "unique_with_counts",
    "upper_bound",
    "where",
    "where_v2",
]


# Where and Select -------------------------------------------------------------------------------


def _where_shape(c: Inference) -> list[Shape]:
    return [(None, c.rank(0))]


def _where_kernel(xp: Any, x: Any) -> Any:
    if not 1 <= x.ndim <= 8:
        raise invalid(f"WhereOp : Unhandled input dimensions: {x.ndim}")
    return np.argwhere(x)


WHERE = define(
    "Where",
    "input: T -> index: int64; T: type=bool",
    shape=_where_shape,
    kernel=_where_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)


def _select_shape(c: Inference) -> list[Shape]:
    cond, out = c.shape(0), shapes.merge(c.shape(1), c.shape(2))
    if cond is None or out is None or cond == ():
        return [out]
    if len(cond) == 1 and len(out) > 1:
        if cond[0] is not None and out[0] is not None and cond[0] != out[0]:
            raise ValueError(
                f"Dimension 0 in both shapes must be equal, but are {cond[0]} and {out[0]}"
            )
        return [out]
    return [shapes.merge(out, cond)]


def _select_kernel(xp: Any, cond: Any, t: Any, e: Any) -> Any:
    """Element-wise; a vector condition chooses whole rows, a scalar one everything."""
    if t.shape != e.shape:
        raise invalid(
            "'then' and 'else' must have the same size.  but received: "
            f"{shapes.show(t.shape)} vs. {shapes.show(e.shape)}"
        )
    if cond.shape != t.shape and cond.ndim:
        if cond.ndim != 1 or not t.ndim or cond.shape[0] != t.shape[0]:
            raise invalid(
                "'cond' must be a scalar or a vector as long as the first dimension of "
                "'then', or have its shape: "
                f"{shapes.show(cond.shape)} vs. {shapes.show(t.shape)}"
            )
        cond = cond.reshape(cond.shape + (1,) * (t.ndim - 1))
    return xp.where(cond, t, e)


def _select_grad(op: Operation, grad: Any) -> list[Any]:
    cond = op.inputs[0]
    zeros = zeros_like(op.inputs[1])
    return [None, apply(SELECT, cond, grad, zeros), apply(SELECT, cond, zeros, grad)]


SELECT = define(
    "Select",
    "condition: bool, t: T, e: T -> output: T",
    shape=_select_shape,
    kernel=_select_kernel,
    grad=_select_grad,
)


def _select_v2_shape(c: Inference) -> list[Shape]:
    return [shapes.broadcast(shapes.broadcast(c.shape(0), c.shape(1)), c.shape(2))]


def _select_v2_grad(op: Operation, grad: Any) -> list[Any]:
    cond, x, y = op.inputs
    zeros = zeros_like(convert_to_tensor(grad))
    gx, gy = apply(SELECT_V2, cond, grad, zeros), apply(SELECT_V2, cond, zeros, grad)
    return [None, _reduced(gx, x), _reduced(gy, y)]


def _reduced(grad: Tensor, x: Tensor) -> Any:
    """Sum over the axes along which x was repeated."""
    have, full = shapes.known(x._shape), shapes.known(grad._shape)
    if have is not None and have == full:
        return grad
    size = shape(x)
    _, axes = apply_many(lookup("BroadcastGradientArgs"), shape(grad), size)
    return apply_op("Reshape", apply_op("Sum", grad, axes, keep_dims=False), size)


SELECT_V2 = define(
    "SelectV2",
    "condition: bool, t: T, e: T -> output: T",
    shape=_select_v2_shape,
    ufunc="where",
    grad=_select_v2_grad,
    elementwise=True,
)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """With one argument the indices of what is true; with three, elements of x or y."""
    if x is None and y is None:
        return apply(WHERE, condition, name=name or "Where")
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply(SELECT, condition, x, y, name=name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """``where`` with NumPy's broadcasting."""
    if x is None and y is None:
        return apply(WHERE, condition, name=name or "Where")
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply(SELECT_V2, condition, x, y, name=name)


# Unique -----------------------------------------------------------------------------------------


def _uniques(x: Any) -> tuple[Any, Any, Any]:
    """(places of first occurrence in order, number of each element, counts) for a vector."""
    if x.size <= 64 or x.dtype.kind == "O":
        seen: dict[Any, int] = {}
        inverse = [seen.setdefault(v, len(seen)) for v in x.tolist()]
        numbers = np.array(inverse, np.int64)
        count = len(seen)
        first = np.empty(count, np.int64)
        first[numbers[::-1]] = np.arange(len(inverse) - 1, -1, -1)
        return first, numbers, np.bincount(numbers, minlength=count)
    _, first, inverse_, counts = np.unique(x, True, True, True, equal_nan=False)
    return _by_occurrence(first, inverse_, counts)


def _by_occurrence(first: Any, inverse: Any, counts: Any) -> tuple[Any, Any, Any]:
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[inverse.reshape(-1)], counts[order]


def _unique_kernel(xp: Any, x: Any, *, out_idx: Any) -> Any:
    if x.ndim != 1:
        raise invalid("unique expects a 1D vector.")
    first, inverse, _ = _uniques(x)
    return x[first], inverse.astype(out_idx.np_dtype)


def _unique_counts_kernel(xp: Any, x: Any, *, out_idx: Any) -> Any:
    if x.ndim != 1:
        raise invalid("unique expects a 1D vector.")
    first, inverse, counts = _uniques(x)
    return x[first], inverse.astype(out_idx.np_dtype), counts.astype(out_idx.np_dtype)


def _unique_along(x: Any, axis: Any) -> tuple[Any, Any, Any]:
    if not axis.size:
        if x.ndim != 1:
            raise invalid("unique expects a 1D vector.")
        first, inverse, counts = _uniques(x)
        return x[first], inverse, counts
    at = axis.item()
    if not -x.ndim <= at < x.ndim:
        raise invalid(f"axis has to be between [0, {x.ndim})")
    if x.ndim == 1:
        first, inverse, counts = _uniques(x)
    else:
        _, first, inverse, counts = np.unique(x, True, True, True, axis=at)
        first, inverse, counts = _by_occurrence(first, inverse, counts)
    return x.take(first, at), inverse, counts


def _unique_v2_kernel(xp: Any, x: Any, axis: Any, *, out_idx: Any) -> Any:
    y, inverse, _ = _unique_along(x, axis)
    return y, inverse.astype(out_idx.np_dtype)


def _unique_counts_v2_kernel(xp: Any, x: Any, axis: Any, *, out_idx: Any) -> Any:
    y, inverse, counts = _unique_along(x, axis)
    return y, inverse.astype(out_idx.np_dtype), counts.astype(out_idx.np_dtype)


def _unique_shape(n: int) -> Callable[[Inference], list[Shape]]:
    def infer(c: Inference) -> list[Shape]:
        s = c.shape(0)
        found: list[Shape] = [None, (None,), (None,)]
        if c.n_inputs == 1:
            if n == 2:  # TensorFlow's UniqueWithCounts finds out when it runs
                c.require_rank(0, 1)
            found[:2] = [(None,), s]
        elif s is not None and c.value(1) is not None:
            axis = c.value(1)
            assert axis is not None
            at = axis.item() % len(s) if axis.size else 0
            found[:2] = [s[:at] + (None,) + s[at + 1 :], (s[at],)]
        return found[:n]

    return infer


_IDX = "out_idx: type(index)=int32"
UNIQUE = define(
    "Unique",
    f"x: T -> y: T, idx: out_idx; {_IDX}",
    shape=_unique_shape(2),
    kernel=_unique_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)
UNIQUE_V2 = define(
    "UniqueV2",
    f"x: T, axis: Taxis -> y: T, idx: out_idx; Taxis: type(index)=int64, {_IDX}",
    shape=_unique_shape(2),
    kernel=_unique_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)
UNIQUE_WITH_COUNTS = define(
    "UniqueWithCounts",
    f"x: T -> y: T, idx: out_idx, count: out_idx; {_IDX}",
    shape=_unique_shape(3),
    kernel=_unique_counts_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)
UNIQUE_WITH_COUNTS_V2 = define(
    "UniqueWithCountsV2",
    f"x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx; Taxis: type(index)=int64, {_IDX}",
    shape=_unique_shape(3),
    kernel=_unique_counts_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)

Unique = namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])
ListDiff = namedtuple("ListDiff", ["out", "idx"])
TopKV2 = namedtuple("TopKV2", ["values", "indices"])


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """Distinct values in the order of their first occurrence, and for each element the number of
    its value.
    """
    return Unique(*apply_many(UNIQUE, x, out_idx=out_idx, name=name))


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    return UniqueWithCounts(*apply_many(UNIQUE_WITH_COUNTS, x, out_idx=out_idx, name=name))


def _list_diff_kernel(xp: Any, x: Any, y: Any, *, out_idx: Any) -> Any:
    if x.ndim != 1 or y.ndim != 1:
        raise invalid("x and y should be 1D vectors.")
    if x.size + y.size <= 64 or x.dtype.kind == "O":
        without = set(y.tolist())
        places = np.array([i for i, v in enumerate(x.tolist()) if v not in without], np.int64)
    else:
        places = np.flatnonzero(~np.isin(x, y))
    return x[places], places.astype(out_idx.np_dtype)


def _list_diff_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 1)
    c.require_rank(1, 1)
    return [(None,), (None,)]


LIST_DIFF = define(
    "ListDiff",
    f"x: T, y: T -> out: T, idx: out_idx; {_IDX}",
    shape=_list_diff_shape,
    kernel=_list_diff_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
)


def listdiff(x: Any, y: Any, out_idx: Any = None, name: str | None = None) -> Any:
    """Elements of x that are not in y, and where they are."""
    return ListDiff(*apply_many(LIST_DIFF, x, y, out_idx=out_idx or dtypes.int32, name=name))


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    return ListDiff(*apply_many(LIST_DIFF, x, y, out_idx=index_dtype, name=name))


# TopK -------------------------------------------------------------------------------------------


def _top_indices(x: Any, k: int) -> Any:
    """Positions of the k largest of each row, largest first, of equal ones the first first."""
    n = x.shape[-1]
    if k == 1:
        return x.argmax(-1)[..., None] if n else np.empty((*x.shape[:-1], 0), np.int64)
    if n > 256 and 0 < k <= n // 8:
        found = _top_by_partition(x, k)
        if found is not None:
            return found
    # stable ascending order of the reversed row, read from its end
    return n - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]


def _top_by_partition(x: Any, k: int) -> Any:
    """The same without sorting everything; None if ties at the border leave the choice open."""
    n = x.shape[-1]
    picked = np.sort(np.argpartition(x, n - k, axis=-1)[..., n - k :], axis=-1)
    values = np.take_along_axis(x, picked, -1)
    border = values.min(-1, keepdims=True)
    if (np.count_nonzero(x == border, -1) != np.count_nonzero(values == border, -1)).any():
        return None
    order = k - 1 - np.argsort(values[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.take_along_axis(picked, order, -1)


def _top_k(xp: Any, x: Any, k: int) -> Any:
    if x.ndim < 1 or x.shape[-1] < k:
        raise invalid(
            f"input must have at least k columns. Had {x.shape[-1] if x.ndim else 0}, needed {k}"
        )
    if k < 0:
        raise invalid(f"Need k >= 0, got {k}")
    if xp.name == "numpy":
        places = _top_indices(x, k)
    else:
        n = x.shape[-1]
        places = n - 1 - xp.argsort(x[..., ::-1], axis=-1, stable=True)[..., ::-1][..., :k]
    return xp.take_along_axis(x, places, -1), places.astype(np.int32)


def _top_k_shape(c: Inference) -> list[Shape]:
    s = c.require_rank_at_least(0, 1)
    k = c.attr("k")
    if c.n_inputs == 2:
        value = c.value(1)
        k = None if value is None else value.item()
    if s is None:
        return [None, None]
    if k is not None and s[-1] is not None and s[-1] < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {s[-1]}")
    return [s[:-1] + (k,)] * 2


def _top_k_grad(op: Operation, grad: Any, _: Any = None) -> list[Any]:
    """Values go back to where they came from: rows numbered through, one flat scatter."""
    x, indices = op.inputs[0], op.outputs[1]
    rest = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *rest]
    dims: Any = shape(x)
    columns = dims[-1]
    rows = apply_op("Reshape", indices, apply_op("Pack", [const(-1), shape(indices)[-1]]))
    count = shape(rows)[0]
    start = apply_op("Mul", apply_op("Range", const(0), count, const(1)), columns)
    flat = apply_op(
        "Reshape", apply_op("Add", rows, apply_op("ExpandDims", start, const(-1))), const([-1, 1])
    )
    total = apply_op("Prod", dims, const([0]), keep_dims=False)
    values = apply_op("Reshape", grad, const([-1]))
    out = apply_op("ScatterNd", flat, values, apply_op("Reshape", total, const([1])))
    return [apply_op("Reshape", out, dims), *rest]


TOP_K = define(
    "TopK",
    "input: T -> values: T, indices: int32; k: int, sorted: bool=True, T: type(real)",
    shape=_top_k_shape,
    kernel=lambda xp, x, *, k: _top_k(xp, x, k),
    grad=_top_k_grad,
)
TOP_K_V2 = define(
    "TopKV2",
    "input: T, k: int32 -> values: T, indices: int32; sorted: bool=True, T: type(real)",
    shape=_top_k_shape,
    kernel=lambda xp, x, k: _top_k(xp, x, k.item()),
    grad=_top_k_grad,
    known_inputs=(1,),
)


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> Any:
    """The k largest entries of the last dimension, largest first, and where they are."""
    return TopKV2(*apply_many(TOP_K_V2, input, k, sorted=sorted, name=name))


def _nth_kernel(xp: Any, x: Any, n: Any, *, reverse: bool) -> Any:
    at = n.item()
    size = x.shape[-1] if x.ndim else 0
    if not 0 <= at < size:
        raise invalid(f"Input must have at least n+1 columns: n = {at}, columns = {size}")
    at = size - 1 - at if reverse else at
    return xp.partition(x, at, axis=-1)[..., at]


def _nth_grad(op: Operation, grad: Any) -> list[Any]:
    """Shared equally by all entries that have the value."""
    x, value = op.inputs[0], apply_op("ExpandDims", op.outputs[0], const(-1))
    same = apply_op("Cast", apply_op("Equal", value, x), DstT=grad._dtype._base)
    count = apply_op("Sum", same, const([-1]), keep_dims=True)
    return [
        apply_op("Mul", apply_op("RealDiv", same, count), apply_op("ExpandDims", grad, const(-1))),
        None,
    ]


def _nth_shape(c: Inference) -> list[Shape]:
    s = c.require_rank_at_least(0, 1)
    return [None if s is None else s[:-1]]


NTH_ELEMENT = define(
    "NthElement",
    "input: T, n: int32 -> values: T; reverse: bool=False, T: type(real)",
    shape=_nth_shape,
    kernel=_nth_kernel,
    grad=_nth_grad,
    known_inputs=(1,),
)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Tensor:
    """The n-th smallest (``reverse``: largest) entry of the last dimension."""
    return apply(NTH_ELEMENT, input, n, reverse=reverse, name=name)


def _in_top_k(xp: Any, predictions: Any, targets: Any, k: int) -> Any:
    """Fewer than k predictions are larger than the target's.

    Nothing is in the top of a row that is not finite.
    """
    if predictions.ndim != 2 or targets.ndim != 1 or len(targets) != len(predictions):
        raise invalid(
            f"First dimension of predictions {shapes.show(predictions.shape)} must match "
            f"length of targets {targets.size}"
        )
    inside = (targets >= 0) & (targets < predictions.shape[1])
    mine = xp.take_along_axis(predictions, xp.where(inside, targets, 0)[:, None], 1)
    larger = (predictions > mine).sum(1)
    return inside & xp.isfinite(predictions).all(1) & (larger < k)


def _in_top_k_shape(c: Inference) -> list[Shape]:
    predictions, targets = c.require_rank(0, 2), c.require_rank(1, 1)
    return [shapes.merge(targets, predictions[:1])]  # type: ignore[index]


IN_TOP_K = define(
    "InTopK",
    "predictions: float32, targets: T -> precision: bool; k: int, T: type(index)=int32",
    shape=_in_top_k_shape,
    kernel=lambda xp, p, t, *, k: _in_top_k(xp, p, t, k),
    grad=NOT_DIFFERENTIABLE,
)
IN_TOP_K_V2 = define(
    "InTopKV2",
    "predictions: float32, targets: T, k: T -> precision: bool; T: type(index)=int32",
    shape=_in_top_k_shape,
    kernel=lambda xp, p, t, k: _in_top_k(xp, p, t, k),
    grad=NOT_DIFFERENTIABLE,
)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target is among the k largest predictions of its row."""
    with name_scope(name, "in_top_k"):
        return apply(IN_TOP_K_V2, predictions, targets, k, name="InTopKV2")


def in_top_k_v2(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    return in_top_k(predictions, targets, k, name)


# sorting and searching --------------------------------------------------------------------------


def sort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """Sorted along a dimension."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, 0)


def argsort(
    values: Any,
    axis: Any = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The indices that sort along a dimension."""
    del stable  # always
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, 1)


def _sorted(values: Any, axis: Any, direction: str, which: int) -> Tensor:
    values = convert_to_tensor(values, name="values")
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Unknown direction: {direction}. Supported directions are: ASCENDING, DESCENDING"
        )
    rank = values._rank()
    at = axis if isinstance(axis, int) else int(static_value(convert_to_tensor(axis)))
    last = at == -1 or (rank is not None and at % rank == rank - 1)
    perm = None
    if not last:
        perm = _swap_with_last(values, at)
        values = apply_op("Transpose", values, perm)
    found: Tensor = _last_axis_sorted(values, direction, which)
    if perm is not None:
        found = apply_op("Transpose", found, perm)
    return found


def _swap_with_last(values: Tensor, axis: int) -> Tensor:
    """The permutation that exchanges an axis with the last one; the rank may be unknown."""
    rank = values._rank()
    if rank is not None:
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        return const(order)
    dims: Any = apply_op("Rank", values)
    at = dims + axis if axis < 0 else const(axis)
    last = dims - 1
    every = apply_op("Range", const(0), dims, const(1))
    swapped = apply_op("SelectV2", apply_op("Equal", every, last), at, every)
    return apply_op("SelectV2", apply_op("Equal", every, at), last, swapped)


def _last_axis_sorted(values: Tensor, direction: str, which: int) -> Any:
    """By top-k of everything; ascending order is the descending one of the negated values."""
    count = shape(values)[-1]
    if direction == "DESCENDING":
        return top_k(values, count)[which]
    result = top_k(apply_op("Neg", values), count)
    return result.indices if which == 1 else apply_op("Neg", result.values)


def _bound_kernel(side: str) -> Callable[..., Any]:
    def kernel(xp: Any, rows: Any, values: Any, *, out_type: Any) -> Any:
        if rows.ndim != 2 or values.ndim != 2 or len(rows) != len(values):
            raise invalid("Leading dim_size of both tensors must match.")
        found = [xp.searchsorted(r, v, side=side) for r, v in zip(rows, values)]
        return (
            xp.stack(found).astype(out_type.np_dtype)
            if found
            else np.empty(values.shape, out_type.np_dtype)
        )

    return kernel


def _bound_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 2)
    return [c.require_rank(1, 2)]


_BOUND = "sorted_inputs: T, values: T -> output: out_type; out_type: type(index)=int32"
LOWER_BOUND = define(
    "LowerBound", _BOUND, shape=_bound_shape, kernel=_bound_kernel("left"), grad=NOT_DIFFERENTIABLE
)
UPPER_BOUND = define(
    "UpperBound", _BOUND, shape=_bound_shape, kernel=_bound_kernel("right"), grad=NOT_DIFFERENTIABLE
)


def lower_bound(
    sorted_inputs: Any, values: Any, out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    return apply(LOWER_BOUND, sorted_inputs, values, out_type=out_type, name=name)


def upper_bound(
    sorted_inputs: Any, values: Any, out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    return apply(UPPER_BOUND, sorted_inputs, values, out_type=out_type, name=name)


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where values would go into sorted rows."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    sequence = convert_to_tensor(sorted_sequence)
    values = convert_to_tensor(values)
    n, m = shape(sequence)[-1], shape(values)[-1]
    rows = apply_op("Reshape", sequence, apply_op("Pack", [const(-1), n]))
    wanted = apply_op("Reshape", values, apply_op("Pack", [const(-1), m]))
    found = apply(
        LOWER_BOUND if side == "left" else UPPER_BOUND, rows, wanted, out_type=out_type, name=name
    )
    return apply_op("Reshape", found, shape(values))


def _differences(x: Any) -> Tensor:
    from headrace.ops.control.assertions import is_numeric_tensor

    x = convert_to_tensor(x, name="x")
    if not is_numeric_tensor(x):
        raise TypeError(f"Expected x to be numeric, instead found: {x}")
    flat: Any = apply_op("Reshape", x, const([-1]))
    return apply_op("Sub", flat[1:], flat[:-1])


def _all_of(x: Any, name: str) -> Tensor:
    return apply_op("All", x, _all_axes(x), keep_dims=False, name=name)


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "is_non_decreasing", [x]) as scope:
        steps = _differences(x)
        return _all_of(apply_op("LessEqual", const(0, steps._dtype), steps), scope + "All/")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "is_strictly_increasing", [x]) as scope:
        steps = _differences(x)
        return _all_of(apply_op("Less", const(0, steps._dtype), steps), scope + "All/")


# EditDistance -----------------------------------------------------------------------------------


def _levenshtein(a: list[Any], b: list[Any]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def _sequences(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    groups: dict[tuple[int, ...], list[Any]] = {}
    for key, v in zip(indices[:, :-1].tolist(), values.tolist()):
        groups.setdefault(tuple(key), []).append(v)
    return groups


def _edit_distance_kernel(
    xp: Any,
    h_indices: Any,
    h_values: Any,
    h_shape: Any,
    t_indices: Any,
    t_values: Any,
    t_shape: Any,
    *,
    normalize: bool,
) -> Any:
    dims = [max(a, b) for a, b in zip(h_shape.tolist()[:-1], t_shape.tolist()[:-1])]
    out = np.zeros(dims, np.float32)
    hypotheses, truths = _sequences(h_indices, h_values), _sequences(t_indices, t_values)
    for key in {**truths, **hypotheses}:
        a, b = hypotheses.get(key, []), truths.get(key, [])
        distance = float(_levenshtein(b, a))
        if normalize:
            distance = distance / len(b) if b else (float("inf") if a else 0.0)
        out[key] = distance
    return out


def _edit_distance_shape(c: Inference) -> list[Shape]:
    h, t = c.value(2), c.value(5)
    if h is None or t is None:
        length = (c.shape(2) or (None,))[0]
        return [None if length is None else (None,) * (length - 1)]
    return [tuple(max(a, b) for a, b in zip(h.tolist()[:-1], t.tolist()[:-1]))]


EDIT_DISTANCE = define(
    "EditDistance",
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, "
    "truth_shape: int64 -> output: float32; normalize: bool=True",
    shape=_edit_distance_shape,
    kernel=_edit_distance_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Levenshtein distance of the sequences along the last dimension of two SparseTensors."""
    for label, value in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not hasattr(value, "dense_shape"):
            raise TypeError(f"{label} must be a SparseTensor.")
    return apply(
        EDIT_DISTANCE,
        hypothesis.indices,
        hypothesis.values,
        hypothesis.dense_shape,
        truth.indices,
        truth.values,
        truth.dense_shape,
        normalize=normalize,
        name=name,
    )
