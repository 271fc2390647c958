"""Shapes of tensors: asking for them and changing them without touching the elements.

What is known while the graph is built is not computed at run time: ``tf.shape(x)`` of a static
shape is a constant. (filling.py, broadcast_shapes.py)

    >>> x = tf.placeholder(tf.float32, [None, 4])
    >>> tf.reshape(x, [tf.shape(x)[0], 2, -1]).shape
    TensorShape([Dimension(None), Dimension(2), Dimension(2)])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_list, apply_op
from headrace.core.convert import convert_to_tensor, make_const
from headrace.core.dispatch import dispatched
from headrace.core.dtypes import DType, as_dtype
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array import autopacking as _autopacking  # noqa: F401  defines lists as tensors
from headrace.ops.array.reshape_kernel import reshape_kernel

if TYPE_CHECKING:
    from headrace.core.annotations import (
        Array,
        ArrayNamespace,
        AxisLike,
        DTypeLike,
        ShapeLike,
        TensorLike,
    )
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.opdef import KernelNode

__all__ = [
    "conjugate_transpose",
    "ensure_shape",
    "expand_dims",
    "expand_dims_v2",
    "guarantee_const",
    "matrix_transpose",
    "newaxis",
    "one_number",
    "rank",
    "reshape",
    "shape",
    "shape_n",
    "shape_v2",
    "size",
    "size_v2",
    "squeeze",
    "squeeze_v2",
    "transpose",
    "transpose_v2",
]

newaxis = None

#: ``tf.zeros`` and ``tf.ones`` of fewer elements than this are constants, as in TF 1.15.
_MAX_CONSTANT_ELEMENTS = 1000


def invalid(message: str) -> errors.InvalidArgumentError:
    """The run-time error of a kernel; the executor adds the op and the user's line."""
    return errors.InvalidArgumentError(None, None, message)


def one_number(value: Array, refusal: str) -> Any:
    """The number in an input that must be a scalar, also where its shape was not known before.

    ``refusal`` says so; it may name the ``{shape}`` and the ``{rank}``.
    """
    if value.ndim:
        raise invalid(refusal.format(shape=shapes.show(value.shape), rank=value.ndim))
    return value.item()


def const(value: object, dtype: DType = dtypes.int32, name: str = "Const") -> Tensor:
    """A constant, for gradients and wrappers."""
    graph = get_default_graph()
    array = np.array(value, dtype.np_dtype)
    return make_const(graph, array, dtype, graph._full_name(name))


# asking for shapes ------------------------------------------------------------------------------

SHAPE = define(
    "Shape",
    "input: T -> output: out_type; out_type: type(index)=int32",
    shape=lambda c: [(c.rank(0),)],
    kernel=lambda xp, x, *, out_type: np.array(x.shape, out_type.np_dtype),
    grad=NOT_DIFFERENTIABLE,
    of_shape=True,
    fails="never",
    static_value=True,
)


def _shape_n_kernel(
    xp: ArrayNamespace, *inputs: Array, out_type: DType
) -> Array | tuple[Array, ...]:
    found = tuple(np.array(x.shape, out_type.np_dtype) for x in inputs)
    return found if len(found) > 1 else found[0]


SHAPE_N = define(
    "ShapeN",
    "input: N*T -> output: N*out_type; out_type: type(index)=int32",
    shape=lambda c: [(c.rank(i),) for i in range(c.n_inputs)],
    kernel=_shape_n_kernel,
    grad=NOT_DIFFERENTIABLE,
    of_shape=True,
    fails="never",
)
SIZE = define(
    "Size",
    "input: T -> output: out_type; out_type: type(index)=int32",
    shape=shape_fns.scalar,
    kernel=lambda xp, x, *, out_type: np.array(x.size, out_type.np_dtype),
    grad=NOT_DIFFERENTIABLE,
    of_shape=True,
    fails="never",
    static_value=True,
)
RANK = define(
    "Rank",
    "input: T -> output: int32",
    shape=shape_fns.scalar,
    kernel=lambda xp, x: np.array(x.ndim, np.int32),
    grad=NOT_DIFFERENTIABLE,
    of_shape=True,
    fails="never",
    static_value=True,
)


def shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The shape of a tensor, as a vector; a constant if it is known already."""
    sparse = getattr(input, "dense_shape", None)
    if sparse is not None and not isinstance(input, Tensor):
        return apply_op("Cast", sparse, DstT=out_type, name=name)
    tensor = input if isinstance(input, Tensor) else convert_to_tensor(input)
    known = shapes.known(tensor._shape)
    if known is not None:
        return const(known, as_dtype(out_type), name or "Shape")
    return apply(SHAPE, tensor, out_type=out_type, name=name)


def shape_v2(input: TensorLike, out_type: DType = dtypes.int32, name: str | None = None) -> Tensor:
    """The shape of a tensor as an int32 (or int64) vector; see ``tf.shape``."""
    return shape(input, name, out_type)


def shape_n(
    input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None
) -> list[Tensor]:
    """The shapes of several tensors, as a list of vectors."""
    return apply_list(SHAPE_N, input, out_type=out_type, name=name)


@dispatched("size")
def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements as a scalar (int32, or ``out_type``); of a known shape a constant."""
    sparse = getattr(input, "dense_shape", None)
    if sparse is not None and not isinstance(input, Tensor):
        dims = apply_op("Cast", sparse, DstT=out_type)
        return apply_op("Prod", dims, const(0), keep_dims=False, name=name)
    tensor = convert_to_tensor(input)
    known = shapes.num_elements(tensor._shape)
    if known is not None:
        return const(known, as_dtype(out_type), name or "Size")
    return apply(SIZE, tensor, out_type=out_type, name=name)


def size_v2(input: TensorLike, out_type: DType = dtypes.int32, name: str | None = None) -> Tensor:
    """The number of elements of a tensor; see ``tf.size``."""
    return size(input, name, out_type)


@dispatched("rank")
def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """The number of dimensions as an int32 scalar; of a known rank it is a constant."""
    sparse = getattr(input, "dense_shape", None)
    if sparse is not None and not isinstance(input, Tensor):
        return size(sparse, name=name)
    tensor = convert_to_tensor(input)
    if tensor._shape is not None:
        return const(len(tensor._shape), name=name or "Rank")
    return apply(RANK, tensor, name=name)


# reshaping --------------------------------------------------------------------------------------


def _to_input_shape(op: Operation, grad: IndexedSlices | Tensor) -> Tensor:
    """The gradient of ops that only arrange elements anew: back into the shape of the first
    input.
    """
    return apply(RESHAPE, grad, shape(op.inputs[0]))


def _reshape_shape(c: Inference) -> list[Shape]:
    c.require_rank(1, 1)
    source, target = c.shape(0), c.shape_value(1)
    if target is None:
        return [None]
    total = shapes.num_elements(source)
    unknown = [i for i, d in enumerate(target) if d is None]
    if total is None or len(unknown) > 1:
        return [target]
    known = 1
    for d in target:
        if d is not None:
            known *= d
    if not unknown:
        if known != total:
            raise ValueError(
                f"Cannot reshape a tensor with {total} elements to shape "
                f"{shapes.show(target)} ({known} elements)"
            )
        return [target]
    if known == 0:
        if total:
            raise ValueError(
                f"Cannot reshape a tensor with {total} elements to shape "
                f"{shapes.show(target)} (0 elements)"
            )
        return [target]
    if total % known:
        raise ValueError(f"Dimension size must be evenly divisible by {known} but is {total}")
    out = list(target)
    out[unknown[0]] = total // known
    return [tuple(out)]


RESHAPE = define(
    "Reshape",
    "tensor: T, shape: Tshape -> output: T; Tshape: type(index)=int32",
    shape=_reshape_shape,
    kernel=reshape_kernel,
    grad=lambda op, g: [_to_input_shape(op, g), None],
    view=True,
    known_inputs=(1,),
    whole=True,
    fails="arguments",
    rearranges=True,
    role="reshape",
)


def reshape(tensor: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """The same elements in another shape; one dimension may be -1."""
    return apply(RESHAPE, tensor, shape, name=name)


def _expand_shape(c: Inference) -> list[Shape]:
    shape = c.shape(0)
    axis = c.value(1)
    if shape is None:
        return [None]
    if axis is None:
        return [(None,) * (len(shape) + 1)]
    if axis.size != 1:
        raise ValueError("'dim' input must be a tensor with a single value")
    n = len(shape) + 1
    at = axis.item()
    if not -n <= at < n:
        raise ValueError(f"dim {at} not in the interval [{-n}, {n - 1}].")
    at %= n
    return [shape[:at] + (1,) + shape[at:]]


def _expand_kernel(xp: ArrayNamespace, x: Array, dim: Array) -> Array:
    if dim.size != 1:
        raise invalid("'dim' input must be a tensor with a single value")
    at = dim.item()
    old = x.shape
    n = len(old) + 1
    if not -n <= at < n:
        raise invalid(f"Tried to expand dim index {at} for tensor with {n - 1} dimensions.")
    if at < 0:
        at += n
    return x.reshape(old[:at] + (1,) + old[at:])


EXPAND_DIMS = define(
    "ExpandDims",
    "input: T, dim: Tdim -> output: T; Tdim: type(index)=int32",
    shape=_expand_shape,
    kernel=_expand_kernel,
    renamed=(("dim", "axis"),),
    grad=lambda op, g: [_to_input_shape(op, g), None],
    view=True,
    known_inputs=(1,),
    whole=True,
    fails="arguments",
    rearranges=True,
)


@dispatched("expand_dims")
def expand_dims(
    input: TensorLike, axis: TensorLike | None = None, name: str | None = None, dim: object = None
) -> Tensor:
    """Insert a dimension of size 1 at ``axis`` (formerly ``dim``).

    A negative ``axis`` counts from the end: ``tf.expand_dims([1, 2], -1)`` is [[1], [2]].
    """
    axis = one_of("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return apply(EXPAND_DIMS, input, axis, name=name)


def expand_dims_v2(input: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """The tensor with a dimension of size 1 inserted before ``axis`` (negative: from the end)."""
    return expand_dims(input, axis, name)


def one_of(new_name: str, new: object, old_name: str, old: object) -> Any:
    """An argument that has a deprecated second name."""
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old


def _squeezed(shape: Sequence[Any], dims: tuple[int, ...]) -> list[Any]:
    n = len(shape)
    gone = set()
    for d in dims:
        if not -n <= d < n:
            raise ValueError(f"Tried to squeeze dim index {d} for tensor with {n} dimensions.")
        at = d % n
        if shape[at] is not None and shape[at] != 1:
            raise ValueError(
                f"Can not squeeze dim[{at}], expected a dimension of 1, got {shape[at]}"
            )
        gone.add(at)
    return [d for i, d in enumerate(shape) if i not in gone]


def _squeeze_shape(c: Inference) -> list[Shape]:
    shape, dims = c.shape(0), c.attr("squeeze_dims")
    if shape is None:
        return [None]
    if dims:
        return [tuple(_squeezed(shape, dims))]
    return [None if None in shape else tuple(d for d in shape if d != 1)]


def _squeeze_kernel(xp: ArrayNamespace, x: Array, *, squeeze_dims: tuple[int, ...]) -> Array:
    if not squeeze_dims:
        return x.reshape([d for d in x.shape if d != 1])
    try:
        return x.reshape(_squeezed(x.shape, squeeze_dims))
    except ValueError as error:
        raise invalid(str(error)) from None


SQUEEZE = define(
    "Squeeze",
    "input: T -> output: T; squeeze_dims: list(int)=()",
    shape=_squeeze_shape,
    kernel=_squeeze_kernel,
    renamed=(("squeeze_dims", "axis"),),
    grad=lambda op, g: [_to_input_shape(op, g)],
    view=True,
    whole=True,
    rearranges=True,
)


@dispatched("squeeze")
def squeeze(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    squeeze_dims: object = None,
) -> Tensor:
    """Remove dimensions of size 1: all, or those in ``axis``.

    ``axis`` (older: ``squeeze_dims``) is one number or a list, of dimensions of size 1 only.

        tf.squeeze([[[1], [2]]])  # [1, 2]
    """
    given = one_of("axis", axis, "squeeze_dims", squeeze_dims)
    axis = () if given is None else given
    if not isinstance(axis, (list, tuple)):
        axis = (axis,)
    return apply(SQUEEZE, input, squeeze_dims=axis, name=name)


@dispatched("squeeze")
def squeeze_v2(input: TensorLike, axis: AxisLike | None = None, name: str | None = None) -> Tensor:
    """The tensor without its dimensions of size 1, or without those in ``axis``."""
    return squeeze(input, axis, name)


# transposing ------------------------------------------------------------------------------------


def _transpose_shape(c: Inference) -> list[Shape]:
    c.require_rank(1, 1)
    shape, perm, length = c.shape(0), c.value(1), c.shape(1)
    if shape is None and perm is None:
        known = None if length is None or len(length) != 1 else length[0]
        return [None if known is None or known < 2 else (None,) * known]
    if perm is None:
        if shape is not None and length is not None and length[0] not in (len(shape), None):
            raise ValueError(f"Dimension must be {len(shape)} but is {length[0]}")
        return [(None,) * len(shape)]  # type: ignore[arg-type]
    order = [int(p) for p in perm]
    if shape is None and len(order) < 2:
        return [None]  # one number may belong to a scalar, too
    dims = (None,) * len(order) if shape is None else shape
    n = len(dims)
    if len(order) != n:
        raise ValueError(f"Dimension must be {len(order)} but is {n}")
    for p in order:
        if not -n <= p < n:
            raise ValueError(f"perm dim {p} is out of range of input rank {n}")
    return [tuple(dims[p] for p in order)]


def _transpose_kernel(xp: ArrayNamespace, x: Array, perm: Array) -> Array:
    if perm.ndim != 1:
        raise invalid(f"perm must be a vector, not {shapes.show(perm.shape)}")
    try:
        return x.transpose(perm.tolist())
    except ValueError:
        order = perm.tolist()
        if len(order) != x.ndim:
            raise invalid(
                f"transpose expects a vector of size {x.ndim}. But input(1) is a vector "
                f"of size {len(order)}"
            ) from None
        missing = next((i for i in range(x.ndim) if i not in {p % x.ndim for p in order}), order)
        raise invalid(
            f"{missing} is missing from {{{','.join(map(str, order))}}}: not a "
            "permutation of the dimensions of a tensor "
            f"of rank {x.ndim}"
        ) from None


def _inverse_perm(perm: Tensor) -> Tensor:
    value = static_value(perm)
    if value is not None:
        return const(np.argsort(value % value.size) if value.size else value, perm._dtype)
    return apply_op("InvertPermutation", perm)


TRANSPOSE = define(
    "Transpose",
    "x: T, perm: Tperm -> y: T; Tperm: type(index)=int32",
    shape=_transpose_shape,
    kernel=_transpose_kernel,
    grad=lambda op, g: [
        apply_op("Transpose", g, _inverse_perm(op.inputs[1]), name="transpose"),
        None,
    ],
    view=True,
    known_inputs=(1,),
    fails="arguments",
    rearranges=True,
    role="transpose",
)


def _conjugate_transpose_kernel(xp: ArrayNamespace, x: Array, perm: Array) -> Any:
    turned = _transpose_kernel(xp, x, perm)
    return xp.conjugate(turned) if x.dtype.kind == "c" else turned


CONJUGATE_TRANSPOSE = define(
    "ConjugateTranspose",
    "x: T, perm: Tperm -> y: T; Tperm: type(index)=int32",
    shape=_transpose_shape,
    kernel=_conjugate_transpose_kernel,
    grad=lambda op, g: [apply_op("ConjugateTranspose", g, _inverse_perm(op.inputs[1])), None],
    view=True,
    known_inputs=(1,),
)


def transpose(
    a: TensorLike, perm: object = None, name: str = "transpose", conjugate: bool = False
) -> Tensor:
    """Permute the dimensions: dimension ``i`` of the result is ``perm[i]`` of ``a``. Without
    ``perm`` their order is reversed; ``conjugate`` also conjugates complex values.
    """
    a = convert_to_tensor(a)
    opdef = CONJUGATE_TRANSPOSE if conjugate and a.dtype.is_complex else TRANSPOSE
    if perm is not None:
        return apply(opdef, a, perm, name=name or "transpose")
    if a._shape is not None:
        order = np.arange(len(a._shape) - 1, -1, -1, dtype=np.int32)
        return apply(opdef, a, order, name=name or "transpose")
    with name_scope(name, "transpose", [a]) as scope:
        n = rank(a)
        descending = (n - 1) - apply_op("Range", const(0), n, const(1))
        return apply(opdef, a, descending, name=scope)


def transpose_v2(
    a: TensorLike, perm: TensorLike | None = None, conjugate: bool = False, name: str = "transpose"
) -> Tensor:
    """The tensor with its dimensions permuted; without ``perm`` reversed.

    Dimension i of the result is dimension ``perm[i]`` of ``a``. ``conjugate``: of complex numbers.
    """
    return transpose(a, perm, name, conjugate)


def conjugate_transpose(x: TensorLike, perm: TensorLike, name: str | None = None) -> Tensor:
    return apply(CONJUGATE_TRANSPOSE, x, perm, name=name)


def matrix_transpose(
    a: TensorLike, name: str = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """The last two dimensions exchanged; leading ones are a batch."""
    with name_scope(name, values=[a]):
        a = convert_to_tensor(a, name="a")
        n = a._rank()
        if n is not None:
            if n < 2:
                raise ValueError(
                    f"Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: {a.shape}"
                )
            perm: Any = list(range(n - 2)) + [n - 1, n - 2]
        else:
            r: Any = rank(a)
            head = apply_op("Range", const(0), r - 2, const(1))
            perm = apply_op("ConcatV2", [head, apply_op("Pack", [r - 1, r - 2])], const(0))
        return transpose(a, perm=perm, conjugate=conjugate)


# checks -----------------------------------------------------------------------------------------


def _ensure_shape_kernel(xp: ArrayNamespace, x: Array, *, shape: Shape, node: KernelNode) -> Array:
    if not shapes.compatible(x.shape, shape):
        raise invalid(
            f"Shape of tensor {node.name} {shapes.show(x.shape)} is not compatible with "
            f"expected shape {shapes.show(shape)}."
        )
    return x


ENSURE_SHAPE = define(
    "EnsureShape",
    "input: T -> output: T; shape: shape",
    shape=lambda c: [shapes.merge(c.shape(0), c.attr("shape"))],
    kernel=_ensure_shape_kernel,
    grad=lambda op, g: [g],
    view=True,
    whole=True,
)


def _guarantee_const(xp: ArrayNamespace, x: Array, *, T: dtypes.DType) -> Array:
    if T is dtypes.resource:
        raise invalid(
            "Input tensor to GuaranteeConst cannot be a resource variable handle, as the handle "
            "would still refer to a (mutable) variable."
        )
    return x


GUARANTEE_CONST = define(
    "GuaranteeConst",
    "input: T -> output: T",
    shape=shape_fns.unchanged,
    kernel=_guarantee_const,
    grad=lambda op, g: [g],
    view=True,
    stateful=True,
)


def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """The tensor itself, checked against ``shape`` now as far as possible and when it runs."""
    return apply(ENSURE_SHAPE, x, shape=shapes.to_plain(shape), name=name or "EnsureShape")


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """The tensor, with the promise that it is the same in every run."""
    return apply(GUARANTEE_CONST, input, name=name)
