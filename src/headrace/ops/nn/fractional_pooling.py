"""Pooling with windows of two sizes: ``tf.nn.fractional_max_pool``, ``fractional_avg_pool``.

The borders of the windows are drawn by the op's generator, TensorFlow's numbers for given seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.build import apply, apply_op
from headrace.core.infer import Inference
from headrace.core.kernel_context import Runtime
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.numpy import philox
from headrace.ops.random.random_ops import generator

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["fractional_avg_pool", "fractional_max_pool"]

_SIGNATURE = (
    "value: T -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64; "
    "pooling_ratio: list(float), pseudo_random: bool=False, overlapping: bool=False, "
    "deterministic: bool=False, seed: int=0, seed2: int=0, T: type(real)"
)


def _check(attrs: dict[str, Any]) -> None:
    ratio = attrs["pooling_ratio"]
    if len(ratio) != 4:
        raise errors.InvalidArgumentError(
            None, None, "pooling_ratio field must specify 4 dimensions"
        )
    if not attrs["deterministic"] and (attrs["seed"] or attrs["seed2"]):
        raise errors.InvalidArgumentError(
            None, None, "Both seed and seed2 should be 0 if deterministic is false."
        )
    if any(r < 1 for r in ratio):
        raise errors.InvalidArgumentError(
            None, None, f"pooling_ratio cannot be smaller than 1, got: {min(ratio):g}"
        )
    if ratio[0] != 1 or ratio[3] != 1:
        raise errors.UnimplementedError(
            None,
            None,
            "Fractional pooling is not yet supported on the batch nor channel dimension.",
        )


def _shape(c: Inference) -> list[Shape]:
    given, ratio = c.require_rank(0, 4), c.attr("pooling_ratio")
    dims = given or (None,) * 4
    out = tuple(None if d is None else math.floor(d / r) for d, r in zip(dims, ratio, strict=True))
    return [out, (out[1],), (out[2],)]  # (TensorFlow says so, though they have one more)


def _words(numbers: philox.Guarded, count: int) -> list[int]:
    found: list[int] = philox.words(
        numbers.reserve(-(-count // 4)), count, np.dtype(np.int32)
    ).tolist()
    return found


def _borders(length: int, count: int, numbers: philox.Guarded, pseudo_random: bool) -> Array:
    """Where the windows along one axis begin, and the end of the last."""
    if pseudo_random:
        ratio, k = length / count, length // count
        most = min((k + 2) / ratio - 1, (length + 1 - k) / ratio - (count - 1))
        # a double in [0, 1) of two words
        high, low = _words(numbers, 2)
        draw = ((high & 0xFFFFF) << 32 | low) / 2.0**52
        u = draw * most
        inner = [math.ceil(ratio * (i + u)) for i in range(1, count)]
        return np.array([1, *inner, length + 1], np.int64) - 1
    sizes = [length // count + (i < length % count) for i in range(count)]
    draws = _words(numbers, count)
    for left, draw in zip(range(count, 1, -1), draws, strict=False):
        first, other = count - left, count - left + draw % left
        sizes[first], sizes[other] = sizes[other], sizes[first]
    return np.array([0, *np.cumsum(sizes)], np.int64)


def _windows(border: Array, length: int, overlapping: bool) -> list[slice]:
    ends = border[1:] + 1 if overlapping else border[1:]
    return [slice(int(a), int(min(b, length))) for a, b in zip(border[:-1], ends, strict=True)]


def _pooled(x: Array, rows: list[slice], cols: list[slice], average: bool) -> Array:
    take: Callable[..., Any] = np.mean if average else np.max
    whole = [[take(x[:, r, c], axis=(1, 2)) for c in cols] for r in rows]
    return np.stack([np.stack(line, 1) for line in whole], 1).astype(x.dtype, copy=False)


def _drawn(
    height: int,
    width: int,
    ratio: Sequence[float],
    pseudo_random: bool,
    deterministic: bool,
    rt: Runtime,
    node: KernelNode,
) -> list[Array]:
    """The borders of this run: new ones, or those of the first run with this size."""
    kept: dict[tuple[int, int], list[Array]] = {}
    if deterministic:
        kept = rt.session_resource(("fractional", node.key), dict)
    if (height, width) not in kept:
        numbers = generator(rt, node)
        if deterministic and (node.attrs["seed"] or node.attrs["seed2"]):
            numbers = philox.Guarded(node.attrs["seed"], node.attrs["seed2"])
        kept[height, width] = [
            _borders(n, math.floor(n / r), numbers, pseudo_random)
            for n, r in zip((height, width), ratio[1:3], strict=True)
        ]
    return kept[height, width]


def _avg_grad_kernel(
    xp: ArrayNamespace,
    dims: Array,
    grad: Array,
    rows: Array,
    cols: Array,
    *,
    overlapping: bool,
) -> Array:
    out = np.zeros(tuple(dims.tolist()), np.float64)
    for i, r in enumerate(_windows(rows, out.shape[1], overlapping)):
        for j, c in enumerate(_windows(cols, out.shape[2], overlapping)):
            size = (r.stop - r.start) * (c.stop - c.start)
            out[:, r, c] += (grad[:, i, j] / size)[:, None, None]
    return out.astype(grad.dtype)


def _max_grad_kernel(
    xp: ArrayNamespace,
    x: Array,
    y: Array,
    grad: Array,
    rows: Array,
    cols: Array,
    *,
    overlapping: bool,
) -> Array:
    """To the first of the greatest pixels of each window."""
    out = np.zeros_like(x)
    batch, channel = np.arange(len(x))[:, None], np.arange(x.shape[3])
    for i, r in enumerate(_windows(rows, x.shape[1], overlapping)):
        for j, c in enumerate(_windows(cols, x.shape[2], overlapping)):
            part = x[:, r, c]
            first = part.reshape(len(x), -1, x.shape[3]).argmax(1)
            width = c.stop - c.start
            where = (batch, r.start + first // width, c.start + first % width, channel)
            np.add.at(out, where, grad[:, i, j])
    return out


def _max_grad(op: Operation, *grads: Tensor) -> list[Any]:
    y, rows, cols = op._outputs
    flag = op._attrs["overlapping"]
    x = op._inputs[0]
    return [apply_op("FractionalMaxPoolGrad", x, y, grads[0], rows, cols, overlapping=flag)]


def _avg_grad(op: Operation, *grads: Tensor) -> list[Any]:
    _, rows, cols = op._outputs
    dims = apply_op("Shape", op._inputs[0], out_type="int64")
    flag = op._attrs["overlapping"]
    return [apply_op("FractionalAvgPoolGrad", dims, grads[0], rows, cols, overlapping=flag)]


def _define(name: str, average: bool, grad: Callable[..., Any]) -> Any:
    def kernel(
        xp: ArrayNamespace,
        x: Array,
        *,
        pooling_ratio: Sequence[float],
        pseudo_random: bool,
        overlapping: bool,
        deterministic: bool,
        rt: Runtime,
        node: KernelNode,
    ) -> tuple[Array, Array, Array]:
        height, width = x.shape[1:3]
        rows, cols = _drawn(height, width, pooling_ratio, pseudo_random, deterministic, rt, node)
        down = _windows(rows, height, overlapping)
        right = _windows(cols, width, overlapping)
        return _pooled(x, down, right, average), rows.copy(), cols.copy()

    return define(
        name,
        _SIGNATURE,
        shape=_shape,
        kernel=kernel,
        grad=grad,
        check_attrs=_check,
        host_only=True,
        stateful=True,
        random=True,
    )


MAX_POOL = _define("FractionalMaxPool", False, _max_grad)
AVG_POOL = _define("FractionalAvgPool", True, _avg_grad)

define(
    "FractionalMaxPoolGrad",
    "orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, "
    "col_pooling_sequence: int64 -> output: T; overlapping: bool=False, T: type(real)",
    shape=lambda c: [c.shape(0)],
    kernel=_max_grad_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)

define(
    "FractionalAvgPoolGrad",
    "orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, "
    "col_pooling_sequence: int64 -> output: T; overlapping: bool=False, T: type(real)",
    shape=lambda c: [c.shape_value(0)],
    kernel=_avg_grad_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0,),
    host_only=True,
)


def fractional_max_pool(
    value: TensorLike,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Tensor:
    """The greatest of windows that make images smaller by ``pooling_ratio``, between 1 and 2 as a
    rule; with where the windows begin along rows and columns.

    ``pseudo_random`` draws one number for all borders; ``overlapping`` windows share a pixel with
    the next one; ``deterministic`` draws once.
    """
    return _pool(
        MAX_POOL, value, pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2, name
    )


def fractional_avg_pool(
    value: TensorLike,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Tensor:
    """The means of windows that make images smaller by ``pooling_ratio``; see
    `fractional_max_pool`.
    """
    return _pool(
        AVG_POOL, value, pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2, name
    )


def _pool(op: Any, value: TensorLike, ratio: Sequence[float], *rest: Any) -> Tensor:
    pseudo_random, overlapping, deterministic, seed, seed2, name = rest
    return apply(
        op,
        value,
        pooling_ratio=list(ratio),
        pseudo_random=pseudo_random,
        overlapping=overlapping,
        deterministic=deterministic,
        seed=seed,
        seed2=seed2,
        name=name,
    )
