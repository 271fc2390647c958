"""The pooling ops and their gradients (MaxPool, AvgPool, MaxPoolWithArgmax …): kernels and shapes.

pooling.py has the functions that users call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply
from headrace.core.opdef import OpDef, add_traits, define
from headrace.core.tensor import Operation
from headrace.kernels.numpy import pooling_kernels as pooling
from headrace.kernels.numpy import windowed
from headrace.ops.nn.conv_shapes import window_dim
from headrace.ops.nn.nn_common import (
    shape_of,
    zeros_like,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__: list[str] = []

Grads = list[Any]

# kernels ----------------------------------------------------------------------------------------


def _library(xp: ArrayNamespace) -> Any:
    """Another array namespace brings its own functions of
    :mod:`headrace.kernels.numpy.pooling_kernels`.
    """
    return windowed if xp.name == "numpy" else xp.pooling


def axes_of(shape: Any, ksize: Sequence[int], strides: Sequence[int], padding: str) -> pooling.Axes:
    if ksize[0] != 1 or strides[0] != 1:
        raise errors.UnimplementedError(
            None, None, "Pooling is not yet supported on the batch dimension."
        )
    if len(shape) != len(ksize):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"tensor_in_shape must have {len(ksize) - 2} spatial dimensions, so "
            f"{len(ksize)} in all, but it is "
            f"{shapes.show(tuple(shape))}",
        )
    for size, k, stride in zip(shape, ksize, strides) if padding == "VALID" else ():
        if size - k + 2 * stride <= 0:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Computed output size would be negative: input size {size}, window size {k}",
            )
    return pooling.windows(tuple(shape), tuple(ksize), tuple(strides), padding)


def _max_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> Any:
    _check_depth_window(x.shape, ksize, strides, data_format)
    return _library(xp).maximum(x, axes_of(x.shape, ksize, strides, padding))


def _max_grad_kernel(
    xp: ArrayNamespace,
    x: Array,
    y: Array,
    g: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> Any:
    return _library(xp).maximum_grad(x, y, g, axes_of(x.shape, ksize, strides, padding))


def _max_grad_grad_kernel(
    xp: ArrayNamespace,
    x: Array,
    y: Array,
    g: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> Any:
    return _library(xp).maximum_grad_grad(x, y, g, axes_of(x.shape, ksize, strides, padding))


def _ints(values: Array) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def _max_v2_kernel(
    xp: ArrayNamespace, x: Array, ksize: Array, strides: Array, *, padding: str
) -> Any:
    windows, steps = _ints(ksize), _ints(strides)
    check_pool_attrs({"ksize": windows, "strides": steps})
    _check_depth_window(x.shape, windows, steps, "NHWC")
    return _library(xp).maximum(x, axes_of(x.shape, windows, steps, padding))


def _max_grad_v2_kernel(
    xp: ArrayNamespace, x: Array, y: Array, g: Array, ksize: Array, strides: Array, *, padding: str
) -> Any:
    return _max_grad_kernel(
        xp, x, y, g, ksize=_ints(ksize), strides=_ints(strides), padding=padding
    )


def _max_grad_grad_v2_kernel(
    xp: ArrayNamespace, x: Array, y: Array, g: Array, ksize: Array, strides: Array, *, padding: str
) -> Any:
    return _max_grad_grad_kernel(
        xp, x, y, g, ksize=_ints(ksize), strides=_ints(strides), padding=padding
    )


def _avg_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> Any:
    _check_depth_window(x.shape, ksize, strides, data_format)
    strides = _within_pictures(ksize, strides, data_format)
    return _library(xp).average(x, axes_of(x.shape, ksize, strides, padding))


def _within_pictures(
    ksize: Sequence[int], strides: Sequence[int], data_format: str
) -> Sequence[int]:
    """An average takes no step in the depth: TensorFlow does not read that stride."""
    depth = 1 if data_format[1] == "C" else len(ksize) - 1
    return strides if ksize[depth] != 1 else [*strides[:depth], 1, *strides[depth + 1 :]]


def _avg_grad_kernel(
    xp: ArrayNamespace,
    shape: Array,
    g: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> Any:
    whole = _ints(shape)
    if g.ndim != len(ksize):
        raise errors.InvalidArgumentError(
            None, None, f"out_backprop must be {len(ksize)}-dimensional"
        )
    strides = _within_pictures(ksize, strides, "NHWC")
    return _library(xp).average_grad(whole, g, axes_of(whole, ksize, strides, padding))


def _argmax_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    Targmax: DType,
    include_batch_in_index: bool,
) -> tuple[Array, Array]:
    _check_depth_window(x.shape, ksize, strides, "NHWC")
    y, at = _library(xp).first_maxima(
        x, axes_of(x.shape, ksize, strides, padding), include_batch_in_index
    )
    return y, at.astype(Targmax.np_dtype, copy=False)


def _flat_index(shape: Sequence[int], argmax: Array, with_batch: bool) -> Array:
    """Indices into the flattened batch."""
    if with_batch:
        return argmax
    per_image = int(np.prod(shape[1:]))
    first = np.arange(shape[0], dtype=np.int64) * per_image
    return argmax + first.reshape((-1,) + (1,) * (argmax.ndim - 1))


def _grad_argmax_kernel(
    xp: ArrayNamespace, x: Array, g: Array, argmax: Array, *, include_batch_in_index: bool
) -> Array:
    index = _flat_index(x.shape, argmax, include_batch_in_index)
    if index.size and not 0 <= index.min() <= index.max() < x.size:
        raise errors.InvalidArgumentError(
            None, None, f"Invalid output argmax index: {index.max()}, allowed are 0 to {x.size - 1}"
        )
    flat = xp.index_add(xp.zeros(x.size, g.dtype), index.reshape(-1), g.reshape(-1))
    return flat.reshape(x.shape)


def _grad_grad_argmax_kernel(
    xp: ArrayNamespace, x: Array, g: Array, argmax: Array, *, include_batch_in_index: bool
) -> Array:
    return g.reshape(-1)[_flat_index(x.shape, argmax, include_batch_in_index)]


# shapes -----------------------------------------------------------------------------------------


@lru_cache(1024)
def _pooled(
    x: Sequence[int | None], ksize: Sequence[int], strides: Sequence[int], padding: str
) -> shapes.Shape:
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"Attr 'padding' passed string '{padding}' not in: \"SAME\", \"VALID\"")
    if len(ksize) != len(x) or len(strides) != len(x):
        raise ValueError(
            f"ksize and strides must have {len(x)} values, but got: {len(ksize)} and {len(strides)}"
        )
    for what, values in (("ksize", ksize), ("strides", strides)):
        big = next((v for v in values if not -(2**31) <= v < 2**31), None)
        if big is not None:
            raise ValueError(f"Attr {what} has value {big} out of range for an int32")
    if 0 in ksize:
        raise ValueError("ksize cannot be zero.")
    if min(ksize) < 0:
        at = list(ksize).index(min(ksize))
        raise errors.InvalidArgumentError(
            None, None, f"Sliding window ksize for dimension {at} was zero: it is {min(ksize)}."
        )
    return tuple(
        n if k == s == 1 else window_dim(n, k, s, 1, padding, (0, 0))
        for n, k, s in zip(x, ksize, strides)
    )


def _check_depth_window(
    shape: Sequence[int], ksize: Sequence[int], strides: Sequence[int], data_format: str
) -> None:
    if not data_format.endswith("C") or ksize[-1] == 1 or len(shape) != 4:
        return
    if max(ksize[1:-1]) > 1:
        text = (
            "MaxPooling supports exactly one of pooling across depth or pooling across "
            "width/height."
        )
    elif ksize[-1] != strides[-1]:
        text = "Depthwise max pooling requires the depth window to equal the depth stride"
    elif shape[-1] % ksize[-1]:
        text = "Depthwise max pooling requires the depth window to evenly divide the input depth"
    else:
        return
    raise errors.UnimplementedError(None, None, text)


def check_pool_attrs(attrs: dict[str, Any]) -> None:
    """Windows over the batch, and over the depth of volumes, have no kernels."""
    ksize, strides = attrs["ksize"], attrs["strides"]
    if ksize[0] != 1 or strides[0] != 1:
        raise errors.UnimplementedError(
            None, None, "Pooling is not yet supported on the batch dimension."
        )
    if len(ksize) == 5:
        depth = 1 if attrs["data_format"][1] == "C" else -1
        if ksize[depth] != 1 or strides[depth] != 1:
            raise errors.UnimplementedError(
                None, None, "Pooling is not yet supported on the depth dimension."
            )


def _pool_shape(c: infer.Inference) -> list[shapes.Shape]:
    ksize, strides, x = c.attr("ksize"), c.attr("strides"), c.require_rank(0, len(c.attr("ksize")))
    flat_maximum = c.op.type.startswith("MaxPool") and "3D" not in c.op.type
    if flat_maximum or len(strides) != len(ksize):
        return [_pooled(x, ksize, strides, c.attr("padding"))]
    depth = 1 if c.attr("data_format")[1] == "C" else len(ksize) - 1
    inside = tuple(s if i not in (0, depth) else 1 for i, s in enumerate(strides))
    return [_pooled(x, ksize, inside, c.attr("padding"))]


def _argmax_shape(c: infer.Inference) -> list[shapes.Shape]:
    return _pool_shape(c) * 2


def _pool_v2_shape(c: infer.Inference, at: int = 1) -> list[shapes.Shape]:
    x = c.require_rank(0, 4)
    for i in (at, at + 1):
        shapes.merge(c.require_rank(i, 1), (4,))
    ksize, strides = c.value(at), c.value(at + 1)
    if ksize is None or strides is None:
        return [(None,) * 4]
    # windows over the batch are refused at the run
    inside = [1, *_ints(ksize)[1:]], [1, *_ints(strides)[1:]]
    return [_pooled(x, tuple(inside[0]), tuple(inside[1]), c.attr("padding"))]


def _sizes(c: infer.Inference) -> list[shapes.Shape]:
    """Of AvgPoolGrad(orig_input_shape, grad)."""
    rank, length = len(c.attr("ksize")), c.shape(0)
    if length is not None and length and length[0] not in (None, rank):
        raise ValueError(f"Shape must be rank {rank} but is rank {length[0]}")
    found = c.shape_value(0)
    return [(None,) * len(c.attr("ksize")) if found is None else found]


def _like_first(c: infer.Inference) -> list[shapes.Shape]:
    """Of MaxPoolGrad(orig_input, orig_output, grad)."""
    return [c.require_rank(0, 5 if "3D" in c.op.type else 4)]


def _like_second(c: infer.Inference) -> list[shapes.Shape]:
    """Of MaxPoolGradGrad(orig_input, orig_output, grad)."""
    pooled = _pool_v2_shape(c, 3) if c.op.type.endswith("V2") else _pool_shape(c)
    shapes.merge(c.shape(0), c.shape(2))
    return [shapes.merge(pooled[0], c.shape(1))]


def _like_third(c: infer.Inference) -> list[shapes.Shape]:
    """Of MaxPoolGradGradWithArgmax(input, grad, argmax)."""
    shapes.merge(c.shape(0), c.shape(1))
    return [shapes.merge(_pool_shape(c)[0], c.shape(2))]


# gradients --------------------------------------------------------------------------------------


def _attrs(op: Operation, *more: str) -> dict[str, Any]:
    names = ("ksize", "strides", "padding", "data_format", *more)
    return {k: op._attrs[k] for k in names if k in op._attrs}


def _max_grad(kind: str) -> Callable[..., Any]:
    """The gradient of a maximum, or of what is linear in the gradient.

    ``kind`` is the op for the next order.
    """

    def grad(op: Operation, g: TensorLike) -> Grads:
        if len(op._inputs) == 1:
            return [apply(_OPS[kind], op._inputs[0], op._outputs[0], g, **_attrs(op))]
        x, y = op._inputs[:2]
        return [zeros_like(x), zeros_like(y), apply(_OPS[kind], x, y, g, **_attrs(op))]

    return grad


def _max_v2_grad(op: Operation, g: Tensor) -> Grads:
    x, ksize, strides = op._inputs
    return [
        apply(_OPS["MaxPoolGradV2"], x, op._outputs[0], g, ksize, strides, **_attrs(op)),
        None,
        None,
    ]


def _max_grad_v2_grad(kind: str) -> Callable[..., Any]:
    def grad(op: Operation, g: TensorLike) -> Grads:
        x, y, _, ksize, strides = op._inputs
        return [
            zeros_like(x),
            zeros_like(y),
            apply(_OPS[kind], x, y, g, ksize, strides, **_attrs(op)),
            None,
            None,
        ]

    return grad


def _avg_grad(kind: str) -> Callable[..., Any]:
    return lambda op, g: [apply(_OPS[kind], shape_of(op._inputs[0]), g, **_attrs(op))]


def _avg_grad_grad(kind: str) -> Callable[..., Any]:
    return lambda op, g: [None, apply(_OPS[kind], g, **_attrs(op))]


def _argmax_grad(op: Operation, g: Tensor, _: object) -> Grads:
    kind = _OPS["MaxPoolGradWithArgmax"]
    return [apply(kind, op._inputs[0], g, op._outputs[1], **_attrs(op, "include_batch_in_index"))]


def _grad_argmax_grad(kind: str) -> Callable[..., Any]:
    def grad(op: Operation, g: TensorLike) -> Grads:
        x, _, argmax = op._inputs
        return [
            zeros_like(x),
            apply(_OPS[kind], x, g, argmax, **_attrs(op, "include_batch_in_index")),
            None,
        ]

    return grad


# definitions ------------------------------------------------------------------------------------

_WINDOW = "ksize: list(int), strides: list(int), padding: str"
_THREE = "orig_input: T, orig_output: T, grad: T -> output: T; "
_FIVE = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T; "
_WITH_ARGMAX = (
    f"input: T, grad: T, argmax: Targmax -> output: T; {_WINDOW}, include_batch_in_index: "
    "bool=False, "
)
_OPS: dict[str, OpDef] = {}


def _define(name: str, signature: str, **rest: Any) -> OpDef:
    check = check_pool_attrs if _WINDOW in signature else None
    _OPS[name] = define(name, signature, check_attrs=check, **rest)
    return _OPS[name]


MAX_POOL = _define(
    "MaxPool",
    f"input: T -> output: T; T: type(real)=float32, {_WINDOW}, data_format: str='NHWC'",
    shape=_pool_shape,
    kernel=_max_kernel,
    grad=_max_grad("MaxPoolGrad"),
)
_define(
    "MaxPoolGrad",
    f"{_THREE}{_WINDOW}, data_format: str='NHWC', T: type(real)=float32",
    shape=_like_first,
    kernel=_max_grad_kernel,
    grad=_max_grad("MaxPoolGradGrad"),
)
_define(
    "MaxPoolGradGrad",
    f"{_THREE}{_WINDOW}, data_format: str='NHWC', T: type(real)",
    shape=_like_second,
    kernel=_max_grad_grad_kernel,
    grad=_max_grad("MaxPoolGrad"),
)
_define(
    "MaxPoolV2",
    "input: T, ksize: int32, strides: int32 -> output: T; "
    "T: type(real)=float32, padding: str, data_format: str='NHWC'",
    shape=_pool_v2_shape,
    kernel=_max_v2_kernel,
    grad=_max_v2_grad,
    known_inputs=(1, 2),
)
_define(
    "MaxPoolGradV2",
    f"{_FIVE}padding: str, data_format: str='NHWC', T: type(real)=float32",
    shape=_like_first,
    kernel=_max_grad_v2_kernel,
    grad=_max_grad_v2_grad("MaxPoolGradGradV2"),
    known_inputs=(3, 4),
)
_define(
    "MaxPoolGradGradV2",
    f"{_FIVE}padding: str, data_format: str='NHWC', T: type(real)",
    shape=_like_second,
    kernel=_max_grad_grad_v2_kernel,
    grad=_max_grad_v2_grad("MaxPoolGradV2"),
    known_inputs=(3, 4),
)
MAX_POOL_ARGMAX = _define(
    "MaxPoolWithArgmax",
    f"input: T -> output: T, argmax: Targmax; {_WINDOW}, Targmax: type(index)=int64, "
    "include_batch_in_index: bool=False, T: type(real)",
    shape=_argmax_shape,
    kernel=_argmax_kernel,
    grad=_argmax_grad,
)
_define(
    "MaxPoolGradWithArgmax",
    f"{_WITH_ARGMAX}Targmax: type(index), T: type(real)",
    shape=_like_first,
    kernel=_grad_argmax_kernel,
    grad=_grad_argmax_grad("MaxPoolGradGradWithArgmax"),
)
_define(
    "MaxPoolGradGradWithArgmax",
    f"{_WITH_ARGMAX}Targmax: type(index), T: type(real)",
    shape=_like_third,
    kernel=_grad_grad_argmax_kernel,
    grad=_grad_argmax_grad("MaxPoolGradWithArgmax"),
)
AVG_POOL = _define(
    "AvgPool",
    f"value: T -> output: T; {_WINDOW}, data_format: str='NHWC', T: type(float)",
    shape=_pool_shape,
    kernel=_avg_kernel,
    grad=_avg_grad("AvgPoolGrad"),
)
_define(
    "AvgPoolGrad",
    f"orig_input_shape: int32, grad: T -> output: T; {_WINDOW}, data_format: str='NHWC', "
    "T: type(float)",
    shape=_sizes,
    kernel=_avg_grad_kernel,
    grad=_avg_grad_grad("AvgPool"),
    known_inputs=(0,),
)
MAX_POOL3D = _define(
    "MaxPool3D",
    f"input: T -> output: T; {_WINDOW}, data_format: str='NDHWC', T: type(float)",
    shape=_pool_shape,
    kernel=_max_kernel,
    grad=_max_grad("MaxPool3DGrad"),
)
_define(
    "MaxPool3DGrad",
    f"orig_input: TInput, orig_output: TInput, grad: T -> output: T; {_WINDOW}, "
    "data_format: str='NDHWC', T: type(float)=float32, TInput: type(float)=float32",
    shape=_like_first,
    kernel=_max_grad_kernel,
    grad=_max_grad("MaxPool3DGradGrad"),
)
_define(
    "MaxPool3DGradGrad",
    f"{_THREE}{_WINDOW}, data_format: str='NDHWC', T: type(real)",
    shape=_like_second,
    kernel=_max_grad_grad_kernel,
    grad=_max_grad("MaxPool3DGrad"),
)
AVG_POOL3D = _define(
    "AvgPool3D",
    f"input: T -> output: T; {_WINDOW}, data_format: str='NDHWC', T: type(float)",
    shape=_pool_shape,
    kernel=_avg_kernel,
    grad=_avg_grad("AvgPool3DGrad"),
)
_define(
    "AvgPool3DGrad",
    f"orig_input_shape: int32, grad: T -> output: T; {_WINDOW}, data_format: str='NDHWC', "
    "T: type(float)",
    shape=_sizes,
    kernel=_avg_grad_kernel,
    grad=_avg_grad_grad("AvgPool3D"),
    known_inputs=(0,),
)


# traits ------------------------------------------------------------------------------------------

add_traits("MaxPoolGrad MaxPool3DGrad", role="max pool gradient")
