"""Masks: the rows where a mask is True, and masks of sequences of given lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, shapes
from headrace.core.build import apply_op
from headrace.core.convert import (
    convert_to_tensor,
)
from headrace.core.dispatch import dispatched
from headrace.core.graph import get_default_graph
from headrace.core.infer import known_int
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, count_more, ops_counted
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, shape
from headrace.ops.array.filling import _all_axes
from headrace.ops.array.gathering import gather

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, DTypeLike, TensorLike

__all__ = ["boolean_mask", "boolean_mask_v2", "sequence_mask"]


@dispatched("boolean_mask")
def boolean_mask(
    tensor: TensorLike, mask: object, name: str = "boolean_mask", axis: Any = None
) -> Tensor:
    """The slices whose mask is True, in order: [n, ...] with a mask [n] gives [k, ...].

    ``mask`` may have several dimensions; its shape must be that of ``tensor`` from ``axis`` on.
    """
    with name_scope(name, "boolean_mask", [tensor, mask]):
        tensor, mask = (
            convert_to_tensor(tensor, name="tensor"),
            convert_to_tensor(mask, name="mask"),
        )
        before = ops_counted(tensor._op.graph)
        dims, mask_dims = tensor._shape, mask._shape
        if mask_dims == ():
            raise ValueError("mask cannot be scalar.")
        if mask_dims is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are "
                "None.  E.g. shape=[None] is "
                "ok, but shape=None is not."
            )
        at = 0 if axis is None else axis if isinstance(axis, int) else known_int(axis)
        n = len(mask_dims)
        if dims is not None and not shapes.compatible(dims[at : at + n], mask_dims):
            raise ValueError(
                f"Shapes {shapes.from_plain(dims[at : at + n])} and {mask.shape} are incompatible"
            )
        if n == 1:
            flat = apply_op("Reshape", tensor, shape(tensor))  # makes the gather's gradient dense
            flat.set_shape(dims)
        else:
            full = shape(tensor)
            lead = apply_op("Prod", full[at : at + n], const([0]), keep_dims=False)
            target = apply_op(
                "ConcatV2",
                [full[:at], apply_op("Reshape", lead, const([1])), full[at + n :]],
                const(0),
            )
            flat = apply_op("Reshape", tensor, target)
            if dims is not None:
                known = shapes.num_elements(dims[at : at + n])
                flat.set_shape(dims[:at] + (known,) + dims[at + n :])
            mask = apply_op("Reshape", mask, const([-1]))
        places = apply_op("Squeeze", apply_op("Where", mask), squeeze_dims=(1,))
        result = gather(flat, places, axis=at)
        count_as(tensor._op.graph, before, 27)
        return result


def boolean_mask_v2(
    tensor: TensorLike, mask: TensorLike, axis: AxisLike | None = None, name: str = "boolean_mask"
) -> Tensor:
    """The elements of ``tensor`` for which ``mask`` is True, along ``axis`` on.

    See ``tf.boolean_mask``.
    """
    return boolean_mask(tensor, mask, name, axis)


def sequence_mask(
    lengths: TensorLike,
    maxlen: TensorLike | None = None,
    dtype: DTypeLike = dtypes.bool,
    name: str | None = None,
) -> Tensor:
    """True at the first ``lengths[i]`` positions of row i.

    ``maxlen`` (default: the largest length) is the size of the last dimension of the result, whose
    shape is ``lengths.shape + [maxlen]``. ``dtype`` other than bool gives 1 and 0.

        tf.sequence_mask([1, 3], dtype=tf.int32)  # [[1, 0, 0], [1, 1, 1]]
    """
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            longest = apply_op("Max", lengths, _all_axes(lengths), keep_dims=False)
            maxlen = apply_op("Maximum", const(0, lengths._dtype), longest)
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen._rank() not in (0, None):
            raise ValueError("maxlen must be scalar for sequence_mask")
        row = apply_op("Range", const(0, maxlen._dtype), maxlen, const(1, maxlen._dtype))
        column = apply_op("ExpandDims", lengths, const(-1))
        if column._dtype._base is not maxlen._dtype._base:
            column = apply_op("Cast", column, DstT=maxlen._dtype._base)
        else:
            count_more(column._op.graph, 1)  # TF casts in any case
            get_default_graph().unique_name("Cast")
        mask = apply_op("Less", row, column)
        if dtype is None or dtypes.as_dtype(dtype) is dtypes.bool:
            return mask
        return apply_op("Cast", mask, DstT=dtype)
