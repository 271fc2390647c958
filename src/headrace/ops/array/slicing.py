"""Slices of tensors: ``Slice``, ``StridedSlice`` and what ``tensor[...]`` builds.

TensorFlow's strided slices and Python's agree in everything but the out-of-range index of a single
element, so a kernel turns begin, end, strides and masks into a NumPy index and is done.

    >>> x[1:, ..., tf.newaxis, -1]      # StridedSlice with an ellipsis, a new axis and a shrunk one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import shapes
from headrace.core.build import apply, apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import define, lookup
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, invalid, shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.variables.variable import Variable

__all__ = ["slice", "strided_slice"]

_py_slice = slice
_MASKS = (
    "begin_mask: int=0, end_mask: int=0, ellipsis_mask: int=0, new_axis_mask: int=0, "
    "shrink_axis_mask: int=0"
)
_ALL = _py_slice(None)


# Slice ------------------------------------------------------------------------------------------


def _slice_shape(c: Inference) -> list[Shape]:
    source, begin, size = (
        c.shape(0),
        known_elements(c.op._inputs[1]),
        known_elements(c.op._inputs[2]),
    )
    n = None if source is None else len(source)
    for i in (1, 2):
        vector = c.require_rank(i, 1)
        length = vector[0]
        if n is not None and length is not None and length != n:
            raise ValueError(f"Shape must be rank {length} but is rank {n}")
        n = length if n is None else n
    if n is None:
        return [None]
    dims = source or (None,) * n
    begin, size = begin or [None] * n, size or [None] * n
    return [tuple(_slice_dim(d, b, s) for d, b, s in zip(dims, begin, size))]


def _slice_dim(d: int | None, begin: int | None, size: int | None) -> int | None:
    """The dimension of a slice. As in TensorFlow, a slice that leaves the tensor is refused when
    it runs.
    """
    if begin is not None and begin < -1:
        raise ValueError(f"Invalid value in tensor used for shape: {begin}")
    if size is None:
        return None
    if size < -1:
        raise ValueError(
            f"Out of bounds slicing on a dimension of length {d}: sizes vector cannot be < -1, "
            f"but was {size}"
        )
    if size > -1:
        return size
    if d is None or begin is None or begin == -1:
        return None
    if begin > d:
        raise ValueError(f"Negative dimension size caused by subtracting {begin} from {d}")
    return d - begin


def _slice_kernel(xp: ArrayNamespace, x: Array, begin: Array, size: Array) -> Array:
    index = []
    for i, (d, b, s) in enumerate(zip(x.shape, begin.tolist(), size.tolist())):
        if not 0 <= b <= d:
            raise invalid(f"Expected begin[{i}] in [0, {d}], but got {b}")
        if s == -1:
            s = d - b
        elif not 0 <= s <= d - b:
            raise invalid(f"Expected size[{i}] in [0, {d - b}], but got {s}")
        index.append(_py_slice(b, b + s))
    if len(index) != x.ndim or len(begin) != len(index) or len(size) != len(index):
        raise invalid(
            f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, but got shapes "
            f"{shapes.show(begin.shape)} and {shapes.show(size.shape)} instead."
        )
    return x[tuple(index)] if index else x


def _slice_grad(op: Operation, grad: Tensor) -> list[Any]:
    """Zeros around: before as many as ``begin``, after what is left."""
    x, begin, _ = op.inputs
    known, at, out = shapes.known(x._shape), static_value(begin), shapes.known(op.outputs[0]._shape)
    if known is not None and at is not None and out is not None:
        after = [d - int(b) - o for d, b, o in zip(known, at, out)]
        return [apply_op("Pad", grad, const([[int(b), a] for b, a in zip(at, after)])), None, None]
    after_t = apply_op(
        "Sub",
        apply_op(
            "Sub", shape(x, out_type=begin._dtype), shape(op.outputs[0], out_type=begin._dtype)
        ),
        begin,
    )
    return [apply_op("Pad", grad, apply_op("Pack", [begin, after_t], axis=1)), None, None]


SLICE = define(
    "Slice",
    "input: T, begin: Index, size: Index -> output: T; Index: type(index)",
    shape=_slice_shape,
    kernel=_slice_kernel,
    grad=_slice_grad,
    view=True,
    known_inputs=(1, 2),
    rearranges=True,
)


def slice(
    input_: TensorLike, begin: TensorLike, size: TensorLike, name: str | None = None
) -> Tensor:
    """``size`` elements from ``begin`` on, in every dimension; a size of -1 goes to the end.

    ``begin`` and ``size`` have a number for each dimension. Python's ``tensor[a:b]`` is the shorter
    spelling.

        tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [-1, 2])  # [[2, 3], [5, 6]]
    """
    return apply(SLICE, input_, begin, size, name=name)


# StridedSlice -----------------------------------------------------------------------------------


def known_elements(vector: Tensor) -> list[int | None] | None:
    """The elements of a vector as far as they are known, None if not even its length is."""
    value = static_value(vector)
    if value is not None:
        return value.tolist() if value.ndim == 1 else None
    if vector._op.type == "Pack" and vector._op._attrs["axis"] == 0 and vector._rank() == 1:
        parts = [static_value(t) for t in vector._op._inputs]
        return [None if p is None else int(p) for p in parts]
    length = vector._shape[0] if vector._shape is not None and len(vector._shape) == 1 else None
    return None if length is None else [None] * length


def to_index(
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> tuple[Any, ...]:
    """The NumPy index that a strided slice is.

    It always holds an ellipsis, so that NumPy answers with an array.
    """
    index: list[Any] = []
    for i, step in enumerate(strides):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            if step <= 0:
                raise invalid("only stride 1 allowed on non-range indexing.")
            index.append(begin[i])
        else:
            if step == 0:
                raise invalid(f"strides[{i}] must be non-zero")
            first = None if begin_mask & bit else begin[i]
            last = None if end_mask & bit else end[i]
            index.append(_py_slice(first, last, step))
    if not ellipsis_mask:
        index.append(Ellipsis)
    elif ellipsis_mask & (ellipsis_mask - 1):
        raise invalid("Multiple ellipses in slice spec not allowed")
    return tuple(index)


def _checked_index(
    begin: Array, end: Array, strides: Array, masks: tuple[int, ...]
) -> tuple[Any, ...]:
    """:func:`to_index` of three arrays, which must have one size."""
    if not begin.shape == end.shape == strides.shape:
        first, second, third = (shapes.show(v.shape) for v in (begin, end, strides))
        raise invalid(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"{first}, {second}, and {third} instead."
        )
    return to_index(begin.tolist(), end.tolist(), strides.tolist(), *masks)


def _strided_slice_kernel(
    xp: ArrayNamespace,
    x: Array,
    begin: Array,
    end: Array,
    strides: Array,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    index = _checked_index(begin, end, strides, masks)
    try:
        return x[index]
    except IndexError:
        raise _index_error(index, x.shape) from None


def _index_error(index: tuple[Any, ...], dims: Sequence[int]) -> Exception:
    used = sum(i is not None and i is not Ellipsis for i in index)
    if used > len(dims):
        return invalid(
            f"Index out of range using input dim {len(dims)}; input has only {len(dims)} dims"
        )
    at = 0
    for item in index:
        if item is Ellipsis:
            at += len(dims) - used
        elif item is not None:
            if isinstance(item, int) and not -dims[at] <= item < dims[at]:
                real = item + dims[at] if item < 0 else item
                return invalid(f"slice index {real} of dimension {at} out of bounds.")
            at += 1
    return invalid(f"slice {index} does not fit shape {shapes.show(tuple(dims))}")


_MASK_NAMES = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _strided_shape(c: Inference) -> list[Shape]:
    for mask in _MASK_NAMES:
        if not -(2**31) <= c.attr(mask) < 2**31:
            raise ValueError(f"Attr {mask} has value {c.attr(mask)} out of range for an int32")
    length: Shape = None
    for i in (1, 2, 3):
        length = shapes.merge(length, c.require_rank(i, 1))
    begin, end, strides = (known_elements(t) for t in c.op._inputs[1:4])
    count = next((len(v) for v in (begin, end, strides) if v is not None), None)
    source = c.shape(0)
    if count is None or strides is None or None in strides:
        return [None]  # as TensorFlow, which checks the indices when it runs
    parts: list[Any] = [v if v is not None else [None] * count for v in (begin, end, strides)]
    if any(len(p) != count for p in parts):
        raise ValueError("Expected begin, end and strides to be 1D tensors of one length")
    masks = [c.attr(n) for n in _MASK_NAMES]
    return [_sliced(source, parts[0], parts[1], parts[2], *masks)]


def _sliced(
    source: Shape,
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[Any],
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Shape:
    count = len(strides)
    if ellipsis_mask & (ellipsis_mask - 1):
        if None in strides:  # TensorFlow looks at nothing before it runs
            return None
        raise ValueError("Multiple ellipses in slice spec not allowed")
    if source is None:
        return None
    used = sum(
        not ((ellipsis_mask | (new_axis_mask & ~ellipsis_mask)) >> i & 1) for i in range(count)
    )
    if used > len(source):
        raise ValueError(
            f"Index out of range using input dim {len(source)}; input has only {len(source)} dims"
        )
    out: list[int | None] = []
    at = 0
    for i in range(count):
        bit = 1 << i
        if ellipsis_mask & bit:
            out.extend(source[at : at + len(source) - used])
            at += len(source) - used
            continue
        if new_axis_mask & bit:
            out.append(1)
            continue
        dim = source[at]
        if shrink_axis_mask & bit:
            _check_single(begin[i], strides[i], dim, at)
        else:
            first, last = (bool(begin_mask & bit), bool(end_mask & bit))
            out.append(_length(dim, begin[i], end[i], strides[i], first, last, i))
        at += 1
    out.extend(source[at:])
    return tuple(out)


def _check_single(index: int | None, step: int | None, dim: int | None, at: int) -> None:
    if step is not None and step <= 0:
        raise ValueError("only stride 1 allowed on non-range indexing.")
    if index is not None and dim is not None and not -dim <= index < dim:
        raise ValueError(
            f"slice index {index + dim if index < 0 else index} of dimension {at} out of bounds."
        )


def _length(
    dim: int | None,
    begin: int | None,
    end: int | None,
    step: int | None,
    from_start: bool,
    to_end: bool,
    i: int,
) -> int | None:
    if step == 0:
        raise ValueError(f"strides[{i}] must be non-zero")
    if (
        dim is None
        or step is None
        or (begin is None and not from_start)
        or (end is None and not to_end)
    ):
        return None
    chosen = _py_slice(None if from_start else begin, None if to_end else end, step)
    return len(range(dim)[chosen])


def _mask_attrs(op: Operation) -> dict[str, Any]:
    return {k: v for k, v in op._attrs.items() if k.endswith("_mask")}


def _strided_slice_grad(op: Operation, grad: IndexedSlices | Tensor) -> list[Any]:
    x, begin, end, strides = op.inputs
    size = shape(x, out_type=begin._dtype)
    return [
        apply(STRIDED_SLICE_GRAD, size, begin, end, strides, grad, **_mask_attrs(op)),
        None,
        None,
        None,
    ]


STRIDED_SLICE = define(
    "StridedSlice",
    "input: T, begin: Index, end: Index, strides: Index -> output: T; Index: type(index), "
    + _MASKS,
    shape=_strided_shape,
    kernel=_strided_slice_kernel,
    grad=_strided_slice_grad,
    view=True,
    known_inputs=(1, 2, 3),
    rearranges=True,
)


def _strided_slice_grad_kernel(
    xp: ArrayNamespace,
    shape: Array,
    begin: Array,
    end: Array,
    strides: Array,
    dy: Array,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Array:
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    index = _checked_index(begin, end, strides, masks)
    out = xp.zeros(shape.tolist(), dy.dtype)
    try:
        if xp.name != "numpy":
            return xp.index_set(out, index, dy)
        if (wanted := out[index].shape) != dy.shape:
            raise invalid(
                f"shape of dy was {shapes.show(dy.shape)} instead of {shapes.show(wanted)}"
            )
        out[index] = dy
    except (IndexError, ValueError):
        raise invalid(
            f"shape of dy was {shapes.show(dy.shape)}, which is not that of the slice of "
            f"shape {shape.tolist()}"
        ) from None
    return out


def _strided_slice_grad_grad(op: Operation, grad: Tensor) -> list[Any]:
    _, begin, end, strides, _ = op.inputs
    return [
        None,
        None,
        None,
        None,
        apply(STRIDED_SLICE, grad, begin, end, strides, **_mask_attrs(op)),
    ]


STRIDED_SLICE_GRAD = define(
    "StridedSliceGrad",
    "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T; Index: "
    "type(index), " + _MASKS,
    shape=lambda c: [c.shape_value(0)],
    kernel=_strided_slice_grad_kernel,
    grad=_strided_slice_grad_grad,
    known_inputs=(0, 1, 2, 3),
)


def strided_slice(
    input_: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Variable | None = None,
    name: str | None = None,
) -> Tensor:
    """``input_[begin:end:strides]``, what ``tensor[...]`` calls.

    Bit i of a mask is about the i-th entry: ``begin_mask`` and ``end_mask`` ignore it,
    ``ellipsis_mask`` makes it ``...``, ``new_axis_mask`` a new axis, ``shrink_axis_mask`` an index
    that drops the axis. Given a variable as ``var``, the result has ``assign``.
    """
    if strides is None:
        from headrace.ops.array.filling import ones_like

        strides = ones_like(begin)
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    out = apply(STRIDED_SLICE, input_, begin, end, strides, name=name, **masks)
    if var is not None:
        _attach_assign(out, var, begin, end, strides, masks)
    return out


def _attach_assign(
    out: Tensor, var: Any, begin: Any, end: Any, strides: Any, masks: dict[str, int]
) -> None:
    def assign(value: Any, name: str | None = None) -> Any:
        """Write ``value`` into this slice of the variable."""
        handle = getattr(var, "handle", None)
        name = name or (out._op.name or "strided_slice") + "_assign"
        if handle is not None:
            value = convert_to_tensor(value, var.dtype)
            op = apply_operation(
                lookup("ResourceStridedSliceAssign"),
                handle,
                begin,
                end,
                strides,
                value,
                name=name,
                **masks,
            )
            return var._lazy_read(op)
        return apply_op(
            "StridedSliceAssign", var._ref(), begin, end, strides, value, name=name, **masks
        )

    vars(out)["assign"] = assign


# tensor[...] ------------------------------------------------------------------------------------
