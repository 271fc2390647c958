"""Elements in another order: reversed, reversed per sequence, rolled.

>>> tf.reverse(x, [1]); tf.roll(x, shift=2, axis=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import shapes
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import invalid, one_of

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike

__all__ = ["reverse", "reverse_sequence", "reverse_sequence_v2", "reverse_v2", "roll"]


# Reverse ----------------------------------------------------------------------------------------


def _reverse_shape(c: Inference) -> list[Shape]:
    s, axes = c.shape(0), c.value(1)
    c.require_rank(1, 1)
    if s is not None and axes is not None:
        seen = set()
        for a in axes.tolist():
            if not -len(s) <= a < len(s):
                raise ValueError(f"'axis' = {a} is out of valid range [{-len(s)}, {len(s)})")
            if a % len(s) in seen:
                raise ValueError(f"axis {a % len(s)} specified more than once")
            seen.add(a % len(s))
    return [s]


def _reverse_kernel(xp: ArrayNamespace, x: Array, axis: Array) -> Any:
    if not x.ndim:  # TensorFlow returns a scalar before it looks at the axes
        return x
    index: list[Any] = [slice(None)] * x.ndim
    for a in axis.tolist():
        if not -x.ndim <= a < x.ndim:
            raise invalid(f"'axis'[{a}] = {a} is out of valid range [0, {x.ndim - 1}]")
        if index[a].step is not None:
            raise invalid(f"axis {a % x.ndim} specified more than once.")
        index[a] = slice(None, None, -1)
    return x[tuple(index)]


def _reverse_v1_kernel(xp: ArrayNamespace, x: Array, dims: Array) -> Array:
    if dims.size != x.ndim:
        raise invalid(
            f"dims must have as many elements as the rank of the tensor: {dims.size} vs. {x.ndim}"
        )
    return x[tuple(slice(None, None, -1 if d else None) for d in dims.tolist())] if x.ndim else x


REVERSE = define(
    "ReverseV2",
    "tensor: T, axis: Tidx -> output: T; Tidx: type(index)=int32",
    shape=_reverse_shape,
    kernel=_reverse_kernel,
    grad=lambda op, g: [apply_op("ReverseV2", g, op.inputs[1]), None],
    view=True,
    known_inputs=(1,),
    rearranges=True,
)


def _reverse_v1_shape(c: Inference) -> list[Shape]:
    count = c.require_rank(1, 1)[0]
    if count is not None:
        c.require_rank(0, count)
    return [c.shape(0)]


REVERSE_V1 = define(
    "Reverse",
    "tensor: T, dims: bool -> output: T",
    shape=_reverse_v1_shape,
    kernel=_reverse_v1_kernel,
    grad=lambda op, g: [apply_op("Reverse", g, op.inputs[1]), None],
    view=True,
    known_inputs=(1,),
)


def reverse(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Reverse the order of the elements along the dimensions in ``axis``, a list.

    tf.reverse([[1, 2], [3, 4]], [1])                       # [[2, 1], [4, 3]]
    """
    return apply(REVERSE, tensor, axis, name=name)


reverse_v2 = reverse


def _sequence_dims(rank: int, seq_dim: int, batch_dim: int) -> tuple[int, int]:
    seq = seq_dim + rank if seq_dim < 0 else seq_dim
    batch = batch_dim + rank if batch_dim < 0 else batch_dim
    wrong = next((d for d, at in ((batch_dim, batch), (seq_dim, seq)) if at < 0), None)
    if wrong is not None:
        raise ValueError(f"Out of range dim_index {wrong} for shape with {rank} dimensions")
    if seq >= rank or batch >= rank:
        raise ValueError(
            f"{'seq_dim' if seq >= rank else 'batch_dim'} must be < input rank "
            f"({seq_dim}, {batch_dim} vs. {rank})"
        )
    return seq, batch


def _reverse_sequence_shape(c: Inference) -> list[Shape]:
    s = c.shape(0)
    lengths = c.require_rank(1, 1)
    if s is None:
        return [None]
    _, batch = _sequence_dims(len(s), c.attr("seq_dim"), c.attr("batch_dim"))
    known = lengths[0]
    if known is not None and s[batch] is not None and known != s[batch]:
        raise ValueError(f"Dimensions must be equal, but are {s[batch]} and {known}")
    return [s[:batch] + (known if s[batch] is None else s[batch],) + s[batch + 1 :]]


def _reverse_sequence_kernel(
    xp: ArrayNamespace, x: Array, lengths: Array, *, seq_dim: int, batch_dim: int
) -> Array:
    """Position s of row b comes from ``lengths[b] - 1 - s`` where s is inside the sequence."""
    seq, batch = _sequence_dims(x.ndim, seq_dim, batch_dim)
    if seq == batch:
        raise invalid(f"batch_dim == seq_dim == {seq}")
    if lengths.size != x.shape[batch]:
        raise invalid(
            f"Length of seq_lengths != input.dims({batch}), ({lengths.size} vs. {x.shape[batch]})"
        )
    if xp.name == "numpy" and lengths.size:
        if lengths.min() < 0:
            raise invalid(f"seq_lens({int(lengths.argmin())}) < 0")
        if lengths.max() > x.shape[seq]:
            raise invalid(f"seq_lens({int(lengths.argmax())}) > input.dims({seq})")
    at = xp.arange(x.shape[seq])
    ends = lengths[:, None]
    source = xp.where(at < ends, ends - 1 - at, at)  # (batch, seq)
    if batch > seq:
        source = source.T
    index = source.reshape([d if i in (seq, batch) else 1 for i, d in enumerate(x.shape)])
    return xp.take_along_axis(x, index, seq)


REVERSE_SEQUENCE = define(
    "ReverseSequence",
    "input: T, seq_lengths: Tlen -> output: T; seq_dim: int, batch_dim: int=0, Tlen: "
    "type(index)=int64",
    shape=_reverse_sequence_shape,
    kernel=_reverse_sequence_kernel,
    grad=lambda op, g: [
        apply_op(
            "ReverseSequence",
            g,
            op.inputs[1],
            seq_dim=op._attrs["seq_dim"],
            batch_dim=op._attrs["batch_dim"],
        ),
        None,
    ],
)


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverse the first ``seq_lengths[i]`` elements of each row, the others stay.

    ``seq_axis`` is the axis that is reversed, ``batch_axis`` (0) that of the rows; ``seq_dim`` and
    ``batch_dim`` are the old names.

        tf.reverse_sequence([[1, 2, 3]], [2], seq_axis=1)       # [[2, 1, 3]]
    """
    seq = one_of("seq_axis", seq_axis, "seq_dim", seq_dim)
    if seq is None:
        raise TypeError("reverse_sequence needs seq_axis")
    batch = one_of("batch_axis", batch_axis, "batch_dim", batch_dim) or 0
    return apply(REVERSE_SEQUENCE, input, seq_lengths, seq_dim=seq, batch_dim=batch, name=name)


def reverse_sequence_v2(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> Tensor:
    """As ``tf.reverse_sequence``, without the old names of its arguments.

    In slice i along ``batch_axis`` (default 0) the first ``seq_lengths[i]`` elements along
    ``seq_axis`` are reversed; the others stay.
    """
    return reverse_sequence(input, seq_lengths, seq_axis, batch_axis, name)


# Roll -------------------------------------------------------------------------------------------


def _roll_kernel(xp: ArrayNamespace, x: Array, shift: Array, axis: Array) -> Array:
    if not x.ndim:
        raise invalid("input must be 1-D or higher")
    for what, given in (("shift", shift), ("axis", axis)):
        if given.ndim > 1:
            raise invalid(
                f"{what} must be a scalar or a 1-D vector. Found: {shapes.show(given.shape)}"
            )
    axes = axis.reshape(-1).tolist()
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise invalid(f"axis {a} is out of range")
    if shift.shape != axis.shape:
        raise invalid("shift and axis must have the same size")
    return xp.roll(x, shift.reshape(-1).tolist(), axes)


def _roll_grad(op: Operation, grad: Tensor) -> list[Any]:
    return [apply(ROLL, grad, apply_op("Neg", op.inputs[1]), op.inputs[2]), None, None]


def _roll_shape(c: Inference) -> list[Shape]:
    c.require_rank_at_least(0, 1)
    for i in (1, 2):
        if (c.rank(i) or 0) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {c.rank(i)}")
    shapes.merge(c.shape(1), c.shape(2))
    return [c.shape(0)]


ROLL = define(
    "Roll",
    "input: T, shift: Tshift, axis: Taxis -> output: T; Tshift: type(index), Taxis: type(index)",
    shape=_roll_shape,
    kernel=_roll_kernel,
    grad=_roll_grad,
    known_inputs=(1, 2),
)


def roll(input: TensorLike, shift: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """Shift along dimensions; what leaves at one end comes in at the other.

    ``shift`` and ``axis`` are numbers or vectors of equal length; a positive shift moves to larger
    indices. Shifts of an axis that is named twice add up.

        tf.roll([1, 2, 3, 4], shift=1, axis=0)  # [4, 1, 2, 3]
    """
    return apply(ROLL, input, shift, axis, name=name)


# space and batch --------------------------------------------------------------------------------
