"""Choosing: where, select, top-k. (sorting.py, uniques.py, edit_distances.py)

>>> tf.where(x > 0, x, -x); values, indices = tf.nn.top_k(x, k=3)
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define, lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, shape
from headrace.ops.array.filling import zeros_like

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["in_top_k", "in_top_k_v2", "nth_element", "top_k", "where", "where_v2"]


# Where and Select -------------------------------------------------------------------------------


def _where_shape(c: Inference) -> list[Shape]:
    return [(None, c.rank(0))]


def _where_kernel(xp: ArrayNamespace, x: Array) -> Array:
    if not 1 <= x.ndim <= 8:
        raise invalid(f"WhereOp : Unhandled input dimensions: {x.ndim}")
    return np.argwhere(x)


WHERE = define(
    "Where",
    "input: T -> index: int64; T: type=bool",
    shape=_where_shape,
    kernel=_where_kernel,
    renamed=(("input", "condition"),),
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


def _select_kernel(xp: ArrayNamespace, cond: Array, t: Array, e: Array) -> Array:
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


def _select_grad(op: Operation, grad: Tensor) -> list[Any]:
    cond = op.inputs[0]
    zeros = zeros_like(op.inputs[1])
    return [None, apply(SELECT, cond, grad, zeros), apply(SELECT, cond, zeros, grad)]


SELECT = define(
    "Select",
    "condition: bool, t: T, e: T -> output: T",
    shape=_select_shape,
    kernel=_select_kernel,
    renamed=(("t", "x"), ("e", "y")),
    grad=_select_grad,
    dense=True,
    like_elementwise=True,
    role="select",
)


def _select_v2_shape(c: Inference) -> list[Shape]:
    return [shapes.broadcast(shapes.broadcast(c.shape(0), c.shape(1)), c.shape(2))]


def _select_v2_grad(op: Operation, grad: Tensor) -> list[Any]:
    cond, x, y = op.inputs
    zeros = zeros_like(convert_to_tensor(grad))
    gx, gy = apply(SELECT_V2, cond, grad, zeros), apply(SELECT_V2, cond, zeros, grad)
    return [None, _reduced(gx, x), _reduced(gy, y)]


def _reduced(grad: Tensor, x: Tensor) -> Tensor:
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
    fails="known shapes",
    batching="elementwise",
)


@dispatched("where")
def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """With one argument the indices of what is true; with three, elements of x or y.

    ``x`` and ``y`` have one shape; ``condition`` has it too, or is a vector that chooses whole
    rows. There is no broadcasting: that is ``tf.where_v2``. Indices come as int64 [count, rank].

        tf.where([True, False], [1, 2], [3, 4])  # [1, 4]
        tf.where([False, True])  # [[1]]
    """
    if x is None and y is None:
        return apply(WHERE, condition, name=name or "Where")
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply(SELECT, condition, x, y, name=name)


@dispatched("where_v2")
def where_v2(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """``x`` where the condition is True, ``y`` elsewhere, broadcast against each other.

    Without ``x`` and ``y`` the coordinates of the True elements, [n, rank].
    """
    if x is None and y is None:
        return apply(WHERE, condition, name=name or "Where")
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply(SELECT_V2, condition, x, y, name=name)


# TopK -------------------------------------------------------------------------------------------

TopKV2 = namedtuple("TopKV2", ["values", "indices"])


def _top_indices(x: Array, k: int) -> Any:
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


def _top_by_partition(x: Array, k: int) -> Array | None:
    """The same without sorting everything; None if ties at the border leave the choice open."""
    n = x.shape[-1]
    picked = np.sort(np.argpartition(x, n - k, axis=-1)[..., n - k :], axis=-1)
    values = np.take_along_axis(x, picked, -1)
    border = values.min(-1, keepdims=True)
    if (np.count_nonzero(x == border, -1) != np.count_nonzero(values == border, -1)).any():
        return None
    order = k - 1 - np.argsort(values[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.take_along_axis(picked, order, -1)


def _top_k(xp: ArrayNamespace, x: Array, k: int) -> tuple[Array, Array]:
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
        if value is not None and value.ndim:
            raise ValueError(f"Input must be scalar but has rank {value.ndim}")
        k = None if value is None else value.item()
        if k is not None and k < 0:
            raise ValueError(
                f"Dimension size, given by scalar input 1, must be non-negative but is {k}"
            )
    if s is None:
        return [None, None]
    if k is not None and s[-1] is not None and s[-1] < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {s[-1]}")
    return [s[:-1] + (k,)] * 2


def _top_k_grad(op: Operation, grad: Tensor, _: object = None) -> list[Any]:
    """Values go back to where they came from: rows numbered through, one flat scatter."""
    x, indices = op.inputs[0], op.outputs[1]
    rest = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *rest]
    dims = shape(x)
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
    removed=(7, "Use TopKV2 instead"),
)


def _top_k_v2(xp: ArrayNamespace, x: Array, k: Array) -> tuple[Array, Array]:
    if np.ndim(k):
        raise invalid(f"k must be scalar, got shape {shapes.show(np.shape(k))}")
    return _top_k(xp, x, int(k))


TOP_K_V2 = define(
    "TopKV2",
    "input: T, k: int32 -> values: T, indices: int32; sorted: bool=True, T: type(real)",
    shape=_top_k_shape,
    kernel=_top_k_v2,
    grad=_top_k_grad,
    known_inputs=(1,),
)


def top_k(
    input: TensorLike, k: TensorLike = 1, sorted: bool = True, name: str | None = None
) -> Any:
    """The k largest entries of the last dimension, largest first, and where they are.

    Returns ``(values, indices)`` as a named tuple; of equal entries the one with the smaller index
    comes first. The order is the same with ``sorted=False``, where TensorFlow promises none.

        tf.nn.top_k([1, 3, 2], k=2).indices  # [1, 2]
    """
    return TopKV2(*apply_many(TOP_K_V2, input, k, sorted=sorted, name=name))


def _nth_kernel(xp: ArrayNamespace, x: Array, n: Array, *, reverse: bool) -> Array:
    if n.ndim:
        raise invalid(f"N must be scalar, got shape {shapes.show(n.shape)}")
    at = n.item()
    if at < 0:
        raise invalid(f"Need n >= 0, got {at}")
    if not x.ndim:
        raise invalid("Input must be >= 1-D, got shape []")
    size = x.shape[-1]
    if at >= size:
        raise invalid(f"Input must have at least n+1 columns: n = {at}, columns = {size}")
    at = size - 1 - at if reverse else at
    return xp.partition(x, at, axis=-1)[..., at]


def _nth_grad(op: Operation, grad: Tensor) -> list[Any]:
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
    if c.rank(1):
        raise ValueError(f"Value must be scalar but has rank {c.rank(1)}")
    n = c.value(1)
    if n is not None and n < 0:
        raise ValueError(f"Value must be non-negative but is {n}")
    if n is not None and s is not None and s[-1] is not None and s[-1] <= n:
        raise ValueError(f"Input must have last dimension > n = {n} but is {s[-1]}")
    return [None if s is None else s[:-1]]


NTH_ELEMENT = define(
    "NthElement",
    "input: T, n: int32 -> values: T; reverse: bool=False, T: type(real)",
    shape=_nth_shape,
    kernel=_nth_kernel,
    grad=_nth_grad,
    known_inputs=(1,),
)


def nth_element(
    input: TensorLike, n: TensorLike, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The n-th smallest (``reverse``: largest) entry of the last dimension.

    ``n`` counts from 0 and must be less than the size of the dimension, which the result lacks.

        tf.contrib.nn.nth_element([3.0, 1.0, 2.0], 1)  # 2.0
    """
    return apply(NTH_ELEMENT, input, n, reverse=reverse, name=name)


def _in_top_k(xp: ArrayNamespace, predictions: Array, targets: Array, k: int) -> Any:
    """Fewer than k predictions are larger than the target's.

    Nothing is in the top of a row that is not finite.
    """
    if predictions.ndim != 2 or targets.ndim != 1 or len(targets) != len(predictions):
        raise invalid(
            f"First dimension of predictions {shapes.show(predictions.shape)} must match "
            f"length of targets {targets.size}"
        )
    if np.ndim(k):
        raise invalid(f"k must be 0-D, got shape {shapes.show(np.shape(k))}")
    inside = (targets >= 0) & (targets < predictions.shape[1])
    mine = xp.take_along_axis(predictions, xp.where(inside, targets, 0)[:, None], 1)
    larger = (predictions > mine).sum(1)
    return inside & xp.isfinite(predictions).all(1) & (larger < k)


def _in_top_k_shape(c: Inference) -> list[Shape]:
    predictions, targets = c.require_rank(0, 2), c.require_rank(1, 1)
    return [shapes.merge(targets, predictions[:1])]


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


def in_top_k(
    predictions: object, targets: object, k: TensorLike, name: str | None = None
) -> Tensor:
    """Whether each target is among the k largest predictions of its row.

    ``predictions`` is float32 [batch, classes], ``targets`` class numbers [batch]; the result is
    bool [batch]. Classes that tie with the k-th count as among them; a prediction that is not
    finite makes the row False.

        tf.nn.in_top_k([[0.1, 0.7, 0.2]], [2], k=2)  # [True]
    """
    with name_scope(name, "in_top_k"):
        return apply(IN_TOP_K_V2, predictions, targets, k, name="InTopKV2")


def in_top_k_v2(
    targets: TensorLike, predictions: TensorLike, k: TensorLike, name: str | None = None
) -> Tensor:
    """As ``tf.nn.in_top_k``, with ``targets`` first.

    ``targets`` is [batch] class numbers, ``predictions`` float32 [batch, classes]; the result is
    bool [batch].
    """
    return in_top_k(predictions, targets, k, name)
