"""Keeping values in bounds: clipping by value and by norm, and refusing NaN and infinity.

Gradients may be IndexedSlices: their values are clipped and they stay IndexedSlices; None in a list
stays None.

    >>> grads, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.graph import get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import Inference
from headrace.core.opdef import define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.filling import ones_like
from headrace.ops.internal import gradient_helpers as gu
from headrace.ops.math.binary import true_quotient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike

__all__ = [
    "check_numerics",
    "clip_by_average_norm",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "global_norm",
    "verify_tensor_all_finite",
    "verify_tensor_all_finite_v2",
]


# ClipByValue ------------------------------------------------------------------------------------


def _clip_shape(c: Inference) -> list[Shape]:
    for i in (1, 2):
        if c.shape(i) != ():
            shapes.merge(c.shape(0), c.shape(i))
    return [c.shape(0)]


def _clip_by_value(
    xp: ArrayNamespace, t: Array, clip_value_min: Array, clip_value_max: Array
) -> Array:
    allowed = (t.shape, ())
    if clip_value_min.shape not in allowed or clip_value_max.shape not in allowed:
        raise errors.InvalidArgumentError(
            None,
            None,
            "clip_value_min and clip_value_max must be either of the same shape as input, "
            "or a scalar. "
            f"input shape: {shapes.show(t.shape)} clip_value_min shape: "
            f"{shapes.show(clip_value_min.shape)} "
            f"clip_value_max shape: {shapes.show(clip_value_max.shape)}",
        )
    return _clipped(xp, t, clip_value_min, clip_value_max)


def _clipped(xp: ArrayNamespace, t: Array, clip_value_min: Array, clip_value_max: Array) -> Array:
    return xp.maximum(xp.minimum(t, clip_value_max), clip_value_min)


def _clip_by_value_grad(op: Operation, g: Tensor) -> list[Any]:
    """What was clipped passes its gradient to the bound."""
    t, low, high = op._inputs
    zero = gu.zeros_like(g)
    below, above = apply_op("Less", t, low), apply_op("Greater", t, high)
    outside = apply_op("LogicalOr", below, above)
    to_low = gu.reduce_to(low, t, gu.select(below, g, zero), None)[0]
    to_high = gu.reduce_to(high, t, gu.select(above, g, zero), None)[0]
    return [gu.select(outside, zero, g), to_low, to_high]


CLIP_BY_VALUE = define(
    "ClipByValue",
    "t: T, clip_value_min: T, clip_value_max: T -> output: T; T: type(number)",
    shape=_clip_shape,
    kernel=_clip_by_value,
    trusting=_clipped,
    grad=_clip_by_value_grad,
    elementwise=True,
    fails="known shapes",
    batching="elementwise",
    same_shapes=True,
    takes_numbers=True,
)


# CheckNumerics ----------------------------------------------------------------------------------


def _check_numerics(xp: ArrayNamespace, tensor: Array, *, message: str) -> Array:
    if xp.name == "numpy" and not xp.isfinite(tensor).all():
        found = [
            name for name, test in (("Inf", xp.isinf), ("NaN", xp.isnan)) if test(tensor).any()
        ]
        raise errors.InvalidArgumentError(
            None, None, f"{message} : Tensor had {' and '.join(found)} values"
        )
    return tensor


def _check_numerics_grad(op: Operation, g: Tensor) -> list[Any]:
    text = (
        f"Not a number (NaN) or infinity (Inf) values detected in gradient. {op._attrs['message']}"
    )
    return [apply(CHECK_NUMERICS, g, message=text)]


CHECK_NUMERICS = define(
    "CheckNumerics",
    "tensor: T -> output: T; T: type(float), message: str",
    shape=shape_fns.unchanged,
    kernel=_check_numerics,
    grad=_check_numerics_grad,
    view=True,
    stateful=True,  # its error is its effect: a control dependency on it must keep it
)


@dispatched("unary")
def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """The tensor itself; an error when the graph runs if it has a NaN or an infinity."""
    return apply(CHECK_NUMERICS, tensor, message=message, name=name)


def verify_tensor_all_finite(
    t: object = None,
    msg: str | None = None,
    name: str | None = None,
    x: object = None,
    message: str | None = None,
) -> Tensor:
    """``t``, after a check that no element is NaN or infinite.

    A failing check is an InvalidArgumentError with ``msg``. ``x`` and ``message`` are the same by
    their new names.
    """
    return verify_tensor_all_finite_v2(
        t if x is None else x, msg if message is None else message, name
    )


def verify_tensor_all_finite_v2(x: object, message: object, name: str | None = None) -> Tensor:
    """x, after it was checked that everything in it is finite."""
    with name_scope(name, "VerifyFinite", [x]):
        x = convert_to_tensor(x, name="x")
        checked = apply(CHECK_NUMERICS, x, message=message)
        with get_default_graph().control_dependencies([checked]):
            return apply_op("Identity", x, name="control_dependency")


# clipping ---------------------------------------------------------------------------------------


def _values(t: object) -> Tensor:
    """What there is to clip: the values of IndexedSlices, else the tensor."""
    return t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t, name="t")


def _like(t: object, values: Tensor) -> IndexedSlices | Tensor:
    return (
        IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values
    )


def _keeps_shape(values: Tensor, result: Tensor) -> None:
    """A bound may be broadcast to the values, not the other way round."""
    values.shape.assert_is_compatible_with(result.shape)


@dispatched("unary")
def clip_by_value(
    t: object, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> IndexedSlices | Tensor:
    """The elements of ``t``, at least ``clip_value_min`` and at most ``clip_value_max``.

    The bounds are broadcast to ``t``. Where an element is clipped its gradient is 0.

        tf.clip_by_value([-3.0, 0.5, 7.0], -1.0, 1.0)           # [-1.0, 0.5, 1.0]
    """
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = _values(t)
        below = apply_op("Minimum", values, clip_value_max)
        _keeps_shape(values, below)
        clipped = apply_op("Maximum", below, clip_value_min, name=scope)
        _keeps_shape(values, clipped)
    return _like(t, clipped)


def clip_by_norm(
    t: TensorLike, clip_norm: object, axes: AxisLike | None = None, name: str | None = None
) -> Any:
    """Scale t down to an L2 norm (along ``axes``) of at most ``clip_norm``.

    Without ``axes`` the norm is that of all elements. A tensor that is short enough stays;
    IndexedSlices stay IndexedSlices.

        tf.clip_by_norm([3.0, 4.0], 1.0)  # [0.6, 0.8]
    """
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t)
        squares = apply_op("Mul", values, values, name="mul")
        if axes is None:
            total = gu.sum_all(squares, keep_dims=True)
        else:
            total = apply_op("Sum", squares, axes, keep_dims=True)
        # sqrt has no derivative at 0: keep it away from there
        positive = apply_op("Greater", total, 0)
        safe = gu.select(positive, total, ones_like(total))
        norm = gu.select(positive, apply_op("Sqrt", safe), total)
        scaled = apply_op("Mul", values, clip_norm, name="mul")
        _keeps_shape(values, scaled)
        clipped = apply_op("RealDiv", scaled, apply_op("Maximum", norm, clip_norm), name="truediv")
        clipped = apply_op("Identity", clipped, name=scope)
    return _like(t, clipped)


def _sequence(t_list: object) -> list[Any]:
    if isinstance(t_list, (Tensor, str, dict)) or not isinstance(t_list, Iterable):
        raise TypeError("t_list should be a sequence")
    return list(t_list)


def global_norm(t_list: object, name: str | None = None) -> Tensor:
    """The L2 norm of all tensors of a list together; ``None`` entries are left out.

    ``tf.clip_by_global_norm`` uses it.
    """
    items = [t for t in _sequence(t_list) if t is not None]
    with name_scope(name, "global_norm", items):
        halves = [apply_op("L2Loss", _values(t)) for t in items]
        total = gu.sum_all(apply_op("Pack", halves, axis=0, name="stack"))
        two = convert_to_tensor(2.0, dtype=total.dtype.base_dtype)
        return apply_op("Sqrt", apply_op("Mul", total, two, name="mul"), name="global_norm")


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: TensorLike, use_norm: object = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """All tensors of the list ``t_list`` scaled by one factor, and their common norm before that.

    The factor makes the norm ``clip_norm`` where it is larger. ``use_norm`` is the norm if it is
    known already. Entries may be None or IndexedSlices.

        clipped, norm = tf.clip_by_global_norm(gradients, 5.0)
    """
    items = _sequence(t_list)
    norm = global_norm(items, name) if use_norm is None else use_norm
    with name_scope(
        name, "clip_by_global_norm", [*(t for t in items if t is not None), clip_norm]
    ) as scope:
        norm = convert_to_tensor(norm, name="norm")
        dtype = norm.dtype.base_dtype
        inverse = apply_op("RealDiv", 1.0, norm, T=dtype, name="truediv")
        limit = true_quotient(convert_to_tensor(1.0, dtype=dtype), clip_norm)
        scale = apply_op("Mul", clip_norm, apply_op("Minimum", inverse, limit), T=dtype, name="mul")
        # an infinite norm says that the gradients are unusable: let it be seen
        finite = apply_op("IsFinite", norm)
        scale = gu.select(finite, scale, convert_to_tensor(float("nan"), dtype=dtype))
        clipped = [
            None if t is None else _scaled(t, scale, f"{scope}_{i}") for i, t in enumerate(items)
        ]
    return clipped, norm


def _scaled(t: object, scale: TensorLike, name: str) -> IndexedSlices | Tensor:
    product = apply_op("Mul", _values(t), scale, name="mul")
    return _like(t, apply_op("Identity", product, name=name))


def clip_by_average_norm(t: TensorLike, clip_norm: TensorLike, name: str | None = None) -> Tensor:
    """Scale t down to an average L2 norm (norm / number of elements) of at most ``clip_norm``."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = convert_to_tensor(t, name="t")
        count = apply_op(
            "Cast", apply_op("Size", t), DstT=dtypes.float32
        )  # TensorFlow refuses other types
        count_more(t._op.graph, 3)  # TF makes the list of axes in the graph
        inverse = apply_op("Rsqrt", gu.sum_all(apply_op("Mul", t, t, name="mul")))
        scaled = apply_op("Mul", t, clip_norm, name="mul")
        by_norm = apply_op("Mul", inverse, count, name="mul")
        factor = apply_op("Minimum", by_norm, true_quotient(convert_to_tensor(1.0), clip_norm))
        return apply_op("Identity", apply_op("Mul", scaled, factor, name="mul"), name=scope)
