"""Reductions: Sum, Mean, Max, ArgMax and their like.

Axes arrive as a tensor (a scalar or a vector, negative ones count from the end). A reduction keeps
the dtype of its input. A gradient is broadcast back, never tiled.

    tf.reduce_mean(x, axis=[1, 2])  # ops: Const (the axes), Mean
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert, shape_fns
from headrace.core.build import apply, apply_op
from headrace.core.dispatch import dispatched
from headrace.core.dtypes import as_dtype, bfloat16, int32, int64, string
from headrace.core.dtypes import bool as bool_
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.opdef import GROUPS, NOT_DIFFERENTIABLE, OpDef, add_traits, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.math import reduction_gradients as gradients
from headrace.ops.math import reduction_kernels as kernels

if TYPE_CHECKING:
    from headrace.core.annotations import Array, AxisLike, DTypeLike, TensorLike
    from headrace.core.opdef import _Marker

__all__ = [
    "count_nonzero",
    "count_nonzero_v2",
    "l2_loss",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
]

GROUPS["half_single_double"] = (GROUPS["float"] or frozenset()) - {bfloat16}

# shapes -----------------------------------------------------------------------------------------


def _reduced(c: Inference) -> list[Shape]:
    rank = c.rank(1)
    if rank is not None and rank > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {rank}")
    return shape_fns.reduction(c)


def _without_axis(c: Inference) -> list[Shape]:
    c.require_rank(1, 0)
    shape, axis = c.shape(0), c.value(1)
    if shape is None:
        return [None]
    if len(shape) <= 1:
        return [()]  # whatever the axis: a wrong one is refused when it runs
    if axis is None:
        return [(None,) * (len(shape) - 1)]
    a = int(axis)
    if not -len(shape) <= a < len(shape):
        raise ValueError(
            f"Dimension ({a}) must be in the range [{-len(shape)}, {len(shape)}), where "
            f"{len(shape)} is the number of dimensions in the input."
        )
    a %= len(shape)
    return [shape[:a] + shape[a + 1 :]]


# definitions ------------------------------------------------------------------------------------

_REDUCTION = (
    "input: T, reduction_indices: Tidx -> output: T; keep_dims: bool=False, T: type(number), "
    "Tidx: type(index)=int32"
)
_BOOL_REDUCTION = (
    "input: bool, reduction_indices: Tidx -> output: bool; keep_dims: bool=False, Tidx: "
    "type(index)=int32"
)


def _define_reduction(
    name: str,
    kernel: Callable[..., Any],
    grad: Callable[..., Any] | _Marker,
    signature: str = _REDUCTION,
    dense: bool = False,
) -> OpDef:
    return define(
        name,
        signature,
        shape=_reduced,
        kernel=kernel,
        grad=grad,
        known_inputs=(1,),
        dense=dense,
        renamed=(("reduction_indices", "axis"),),
    )


SUM = _define_reduction("Sum", kernels.sum_kernel, gradients.sum_grad, dense=True)
MEAN = _define_reduction("Mean", kernels.mean_kernel, gradients.mean_grad, dense=True)
PROD = _define_reduction("Prod", kernels.prod_kernel, gradients.prod_grad, dense=True)
MAX = _define_reduction("Max", kernels.max_kernel, gradients.extreme_grad, dense=True)
MIN = _define_reduction("Min", kernels.min_kernel, gradients.extreme_grad)
EUCLIDEAN_NORM = _define_reduction(
    "EuclideanNorm", kernels.euclidean_norm_kernel, gradients.euclidean_norm_grad
)
ALL = _define_reduction("All", kernels.all_kernel, NOT_DIFFERENTIABLE, _BOOL_REDUCTION)
ANY = _define_reduction("Any", kernels.any_kernel, NOT_DIFFERENTIABLE, _BOOL_REDUCTION)


L2_LOSS = define(
    "L2Loss",
    "t: T -> output: T; T: type(float)",
    shape=shape_fns.scalar,
    kernel=kernels.l2_loss_kernel,
    grad=lambda op, g: [op._inputs[0] * g],
    dense=True,
)


# what users call --------------------------------------------------------------------------------


def one_of(new: str, value: object, old: str, deprecated: object) -> Any:
    """The value of an argument that has an older name."""
    if deprecated is None:
        return value
    if value is not None:
        raise ValueError(f"Cannot specify both '{old}' and '{new}'")
    return deprecated


def _reduce(
    opdef: OpDef,
    x: object,
    axis: object,
    keep: object,
    name: str | None,
    old_axis: object = None,
    old_keep: object = None,
) -> Tensor:
    axis = one_of("axis", axis, "reduction_indices", old_axis)
    given = one_of("keepdims", keep, "keep_dims", old_keep)
    keep = False if given is None else given
    if not isinstance(x, Tensor):
        if axis is None:
            _count_rank(x)
        x = convert.convert(x, name="input_tensor")
    if axis is not None:
        return apply(opdef, x, axis, keep_dims=keep, name=name)
    out = apply(opdef, x, _all_axes(x), keep_dims=keep, name=name)
    if not keep and out._shape is None:
        out.set_shape(())
    return out


def _count_rank(x: object) -> None:
    """TF makes the axes of what is no tensor yet (a variable, a list) of its rank, in the graph."""
    graph = get_default_graph()
    if graph._is_eager:
        return
    graph.unique_name("Rank")
    graph.unique_name("range")
    # the rank, start, step and range for one constant; values and resources are converted twice
    count_more(graph, 3 if hasattr(x, "_ref") and not hasattr(x, "handle") else 4)


def _all_axes(x: Tensor) -> Tensor:
    if x._shape is None:
        return apply_op("Range", 0, apply_op("Rank", x), 1, name="range")
    graph = get_default_graph()
    return convert.make_const(
        graph, np.arange(len(x._shape), dtype=np.int32), int32, graph._full_name("Const")
    )


@dispatched("reduce:Sum")
def reduce_sum(
    input_tensor: object,
    axis: object = None,
    keepdims: object = None,
    name: str | None = None,
    reduction_indices: object = None,
    keep_dims: object = None,
) -> Tensor:
    """The sum along ``axis``: one dimension, a list of them, or None for all.

    Summed dimensions go unless ``keepdims``, which leaves them with size 1. ``reduction_indices``
    and ``keep_dims`` are the old names of ``axis`` and ``keepdims``.

        tf.reduce_sum([[1, 2], [3, 4]], axis=0)     # [4, 6]
    """
    return _reduce(SUM, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched("reduce:Mean")
def reduce_mean(
    input_tensor: object,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: object = None,
) -> Tensor:
    """The mean along ``axis``: one dimension, a list of them, or None for all.

    ``keepdims`` leaves the dimensions with size 1; ``reduction_indices`` and ``keep_dims`` are the
    old names. The type is that of the input, so the mean of integers is an integer, rounded towards
    zero: cast first.
    """
    return _reduce(MEAN, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched("reduce:Prod")
def reduce_prod(
    input_tensor: object,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: object = None,
) -> Tensor:
    """The product of the elements along ``axis`` (None: of all), of the input's type.

    The arguments are those of ``tf.reduce_sum``.

    ``keepdims`` keeps the reduced axes with length 1; ``reduction_indices`` and ``keep_dims`` are
    old names.

        tf.reduce_prod([[1, 2], [3, 4]], axis=1)                # [2, 12]
    """
    return _reduce(PROD, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched("reduce:Max")
def reduce_max(
    input_tensor: TensorLike,
    axis: object = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The largest element along ``axis`` (None: of all); NaN if one is NaN.

    Of nothing it is minus infinity, or the smallest integer. Equal maxima share the gradient.

    ``keepdims`` keeps the reduced axes with length 1; ``reduction_indices`` and ``keep_dims`` are
    old names.

        tf.reduce_max([[1.0, 5.0], [3.0, 2.0]], axis=0)         # [3.0, 5.0]
    """
    return _reduce(MAX, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched("reduce:Min")
def reduce_min(
    input_tensor: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: object = None,
) -> Tensor:
    """The smallest element along ``axis`` (None: of all); NaN if one is NaN.

    Of nothing it is infinity, or the largest integer. Equal minima share the gradient.

    ``keepdims`` keeps the reduced axes with length 1; ``reduction_indices`` and ``keep_dims`` are
    old names.
    """
    return _reduce(MIN, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _booleans(x: object, axis: object) -> Any:
    """The type is fixed, so it is the type of what has none, such as an empty list."""
    if not isinstance(x, (list, tuple, bool)):
        return x
    if axis is None:
        _count_rank(x)
    return convert.convert(x, bool_)


@dispatched("reduce:All")
def reduce_all(
    input_tensor: object,
    axis: AxisLike | None = None,
    keepdims: object = None,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: object = None,
) -> Tensor:
    """True where all booleans along ``axis`` are True; of nothing True.

    ``axis`` is a number, a list, or None for all. ``keepdims`` keeps the reduced axes with length
    1; ``reduction_indices`` and ``keep_dims`` are old names.

        tf.reduce_all([[True, False], [True, True]], axis=1)    # [False, True]
    """
    return _reduce(
        ALL, _booleans(input_tensor, axis), axis, keepdims, name, reduction_indices, keep_dims
    )


@dispatched("reduce:Any")
def reduce_any(
    input_tensor: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """True where a boolean along ``axis`` is True; of nothing False.

    ``axis`` is a number, a list, or None for all. ``keepdims`` keeps the reduced axes with length
    1; ``reduction_indices`` and ``keep_dims`` are old names.

        tf.reduce_any([[True, False], [False, False]], axis=1)  # [True, False]
    """
    return _reduce(
        ANY, _booleans(input_tensor, axis), axis, keepdims, name, reduction_indices, keep_dims
    )


def reduce_euclidean_norm(
    input_tensor: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """The square root of the sum of squares along ``axis`` (None: of all).

    ``keepdims`` keeps reduced dimensions with size 1. Of integers the result is an integer, cut
    off.

        tf.math.reduce_euclidean_norm([[3.0, 4.0]], axis=1)  # [5.0]
    """
    return _reduce(EUCLIDEAN_NORM, input_tensor, axis, keepdims, name)


def reduce_logsumexp(
    input_tensor: TensorLike,
    axis: AxisLike | None = None,
    keepdims: object = None,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """``log(sum(exp(x)))`` along ``axis``, without overflow for large elements.

    ``axis`` is a number, a list, or None for all. ``keepdims`` keeps the reduced axes with length
    1; ``reduction_indices`` and ``keep_dims`` are old names.

        tf.reduce_logsumexp([[1000.0, 1000.0]], axis=1)         # [1000.6931]
    """
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    given = one_of("keepdims", keepdims, "keep_dims", keep_dims)
    keep = False if given is None else given
    with name_scope(name, "ReduceLogSumExp", [input_tensor]):
        x = convert.convert(input_tensor, name="input_tensor")
        raw = reduce_max(x, axis, True)
        finite = apply_op("SelectV2", apply_op("IsFinite", raw), raw, apply_op("ZerosLike", raw))
        top = apply_op("StopGradient", finite)
        out = apply_op("Log", reduce_sum(apply_op("Exp", apply_op("Sub", x, top)), axis, keep))
        if not keep:
            top = apply_op("Reshape", top, gradients.shape_tensor(out))
        return apply_op("Add", out, top)


def reduce_variance(
    input_tensor: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """The mean squared distance from the mean along ``axis``, divided by n, not n - 1.

    ``axis`` None takes all elements; ``keepdims`` keeps reduced dimensions with size 1. Of complex
    numbers it is a real number.

        tf.math.reduce_variance([1.0, 3.0])  # 1.0
    """
    with name_scope(name or "reduce_variance"):
        if axis is None and not isinstance(input_tensor, Tensor):
            _count_rank(input_tensor)
        x = convert.convert(input_tensor)
        mean = reduce_mean(x, axis, True)
        if x._dtype._base.is_complex:  # the squared distance, a real number
            squares = apply_op("SquaredDifference", x, mean)
        else:
            squares = apply_op("Square", x - mean)
        return reduce_mean(squares, axis, keepdims)


def reduce_std(
    input_tensor: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """The standard deviation along ``axis``: the square root of ``reduce_variance``.

    ``keepdims`` keeps reduced dimensions with size 1. Divided by n, not n - 1; the gradient at 0 is
    not finite.

        tf.math.reduce_std([1.0, 3.0])  # 1.0
    """
    with name_scope(name or "reduce_std"):
        return apply_op("Sqrt", reduce_variance(input_tensor, axis, keepdims))


def count_nonzero(
    input_tensor: Tensor | None = None,
    axis: object = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = int64,
    name: str | None = None,
    reduction_indices: AxisLike | None = None,
    keep_dims: bool | None = None,
    input: object = None,
) -> Tensor:
    """How many elements along ``axis`` (None: of all) differ from zero, as ``dtype`` (int64).

    Of strings, how many are not empty. The other arguments are those of ``tf.reduce_sum``.

    ``keep_dims`` and ``reduction_indices`` are old names.

        tf.math.count_nonzero([[0, 1], [2, 3]], axis=1)         # [1, 2]
    """
    keep = one_of("keepdims", keepdims, "keep_dims", keep_dims)
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    return count_nonzero_v2(
        one_of("input_tensor", input_tensor, "input", input), axis, keep, dtype, name
    )


def count_nonzero_v2(
    input: Tensor,
    axis: object = None,
    keepdims: object = None,
    dtype: DTypeLike = int64,
    name: str | None = None,
) -> Tensor:
    """How many elements along ``axis`` (None: of all) are not zero (not empty strings).

    ``keepdims`` keeps reduced dimensions with size 1; ``dtype`` is the type of the counts. TF 1 has
    ``dtype`` and ``name`` in another order, and older names of arguments.
    """
    with name_scope(name, "count_nonzero", [input]):
        x = convert.convert(input, name="input")
        if x._dtype._base is bool_:
            differs = x
        else:
            differs = apply_op("NotEqual", x, b"" if x._dtype._base is string else _zero(x))
        total = reduce_sum(apply_op("Cast", differs, DstT=int64), axis, keepdims)
        return total if as_dtype(dtype) is int64 else apply_op("Cast", total, DstT=dtype)


def _zero(x: Tensor) -> Array:
    return np.zeros((), x._dtype._base.np_dtype)


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Half the sum of squares."""
    return apply(L2_LOSS, t, name=name)


# traits ------------------------------------------------------------------------------------------

add_traits("Sum Mean Max Min", role="reduction", fails="arguments")
for _name in ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any"):
    add_traits(_name, reduces=_name.lower())
