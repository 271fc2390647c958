"""Random tensors that are functions of a seed tensor: the same seed gives the same numbers, in
every run.

x = stateless_random_normal([2, 3], seed=[1, 2])
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert, convert_to_tensor
from headrace.core.dtypes import DType
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.kernels.numpy import philox
from headrace.ops.random.random_ops import (
    check_draw,
    draw,
    draw_shape,
    int_range,
    shape_input,
    shape_of,
    shape_tensor,
    uniform_bounds,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, ShapeLike, TensorLike
    from headrace.core.opdef import OpDef

__all__ = [
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_random_normal",
    "stateless_random_uniform",
    "stateless_truncated_normal",
]

# kernels ----------------------------------------------------------------------------------------


def _stream(seed: Array) -> philox.Philox:
    if np.shape(seed) != (2,):
        given = shapes.show(np.shape(seed)).replace(" ", "")
        raise errors.InvalidArgumentError(None, None, f"seed must have shape [2], not {given}")
    return philox.stateless(seed.tolist())


def _uniform_kernel(xp: ArrayNamespace, shape: Array, seed: Array, *, dtype: DType) -> Array:
    wanted = shape_of(shape)
    return philox.uniform(_stream(seed), math.prod(wanted), dtype.np_dtype).reshape(wanted)


def _normal_kernel(xp: ArrayNamespace, shape: Array, seed: Array, *, dtype: DType) -> Array:
    wanted = shape_of(shape)
    return philox.normal(_stream(seed), math.prod(wanted), dtype.np_dtype).reshape(wanted)


def _truncated_kernel(xp: ArrayNamespace, shape: Array, seed: Array, *, dtype: DType) -> Array:
    wanted = shape_of(shape)
    return philox.truncated_normal(_stream(seed), math.prod(wanted), dtype.np_dtype).reshape(wanted)


def _int_kernel(
    xp: ArrayNamespace, shape: Array, seed: Array, minval: Array, maxval: Array, *, dtype: DType
) -> Array:
    wanted = shape_of(shape)
    low, high = int_range(minval, maxval)
    bits = philox.words(_stream(seed), math.prod(wanted), dtype.np_dtype)
    return philox.into_range(bits, low, high, dtype.np_dtype).reshape(wanted)


def _multinomial_kernel(
    xp: ArrayNamespace, logits: Array, num_samples: Array, seed: Array, *, output_dtype: DType
) -> Any:
    count = check_draw(logits, num_samples)
    return draw(_stream(seed), logits, count, output_dtype.np_dtype)


# definitions ------------------------------------------------------------------------------------


def _check_seed(c: Inference, i: int) -> None:
    seed = c.require_rank(i, 1)
    if seed is not None and seed[0] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {seed[0]}")


def _stateless_shape(c: Inference) -> list[Shape]:
    out = shape_input(c)
    _check_seed(c, 1)
    return out


def _stateless_int_shape(c: Inference) -> list[Shape]:
    c.require_rank(2, 0)
    c.require_rank(3, 0)
    return _stateless_shape(c)


def _stateless_draw_shape(c: Inference) -> list[Shape]:
    out = draw_shape(c)
    _check_seed(c, 2)
    return out


_FLOAT = "dtype: type(float)=float32, T: type(index)=int32, Tseed: type(index)=int64"

STATELESS_UNIFORM = define(
    "StatelessRandomUniform",
    f"shape: T, seed: Tseed -> output: dtype; {_FLOAT}",
    shape=_stateless_shape,
    kernel=_uniform_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0,),
    shape_input=0,
    host_only=True,
)
STATELESS_NORMAL = define(
    "StatelessRandomNormal",
    f"shape: T, seed: Tseed -> output: dtype; {_FLOAT}",
    shape=_stateless_shape,
    kernel=_normal_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0,),
    shape_input=0,
    host_only=True,
)
STATELESS_TRUNCATED = define(
    "StatelessTruncatedNormal",
    f"shape: T, seed: Tseed -> output: dtype; {_FLOAT}",
    shape=_stateless_shape,
    kernel=_truncated_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0,),
    shape_input=0,
    host_only=True,
)
STATELESS_INT = define(
    "StatelessRandomUniformInt",
    "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype; "
    "dtype: type(index), T: type(index), Tseed: type(index)=int64",
    shape=_stateless_int_shape,
    kernel=_int_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(0,),
    shape_input=0,
    host_only=True,
)
STATELESS_MULTINOMIAL = define(
    "StatelessMultinomial",
    "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype; "
    "T: type(real), Tseed: type(index)=int64, output_dtype: type(index)=int64",
    shape=_stateless_draw_shape,
    kernel=_multinomial_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(1,),
    host_only=True,
)

# wrappers ---------------------------------------------------------------------------------------


def stateless_random_uniform(
    shape: ShapeLike,
    seed: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Numbers in [minval, maxval) that depend on ``seed`` (two integers) alone.

    ``maxval`` is 1 for floats by default and must be given for integers. Equal arguments give equal
    numbers, in every run, and the same ones as in TensorFlow.
    """
    dtype = dtypes.as_dtype(dtype)
    maxval = uniform_bounds(dtype, maxval)
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        shape = shape_tensor(shape)
        low = convert(minval, dtype, "min")
        high = convert(maxval, dtype, "max")
        if dtype.is_integer:
            return apply(STATELESS_INT, shape, seed, low, high, name=scope)
        drawn = apply(STATELESS_UNIFORM, shape, seed, dtype=dtype)
        scaled = apply_op("Mul", drawn, apply_op("Sub", high, low, name="sub"), name="mul")
        return apply_op("Add", scaled, low, name=scope)


def stateless_random_normal(
    shape: TensorLike,
    seed: TensorLike | None,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers that depend on ``seed`` (two integers) alone.

    ``mean`` and ``stddev`` are numbers or tensors that broadcast to ``shape``. Equal arguments give
    equal numbers, in every run, and the same ones as in TensorFlow.
    """
    with name_scope(name, "stateless_random_normal", [shape, seed, mean, stddev]) as scope:
        return _scaled(STATELESS_NORMAL, shape, seed, mean, stddev, dtypes.as_dtype(dtype), scope)


def stateless_truncated_normal(
    shape: TensorLike,
    seed: TensorLike | None,
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Truncated normal numbers that depend on ``seed`` (two integers) alone.

    Numbers further than two deviations from ``mean`` are drawn again. ``mean`` and ``stddev`` are
    numbers or tensors that broadcast to ``shape``. Equal arguments give equal numbers, in every
    run.
    """
    with name_scope(name, "stateless_truncated_normal", [shape, seed, mean, stddev]) as scope:
        return _scaled(
            STATELESS_TRUNCATED, shape, seed, mean, stddev, dtypes.as_dtype(dtype), scope
        )


def _scaled(
    opdef: OpDef,
    shape: TensorLike,
    seed: object,
    mean: object,
    stddev: object,
    dtype: DType,
    scope: str,
) -> Tensor:
    shape = shape_tensor(shape)
    mean = convert(mean, dtype, "mean")
    stddev = convert(stddev, dtype, "stddev")
    drawn = apply(opdef, shape, seed, dtype=dtype)
    return apply_op("Add", apply_op("Mul", drawn, stddev, name="mul"), mean, name=scope)


def stateless_multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Class numbers for each row of log-probabilities, a function of ``seed``.

    The older name of ``stateless_categorical``: ``output_dtype`` is its ``dtype``. Equal arguments
    give equal numbers, in every run.
    """
    with name_scope(name, "stateless_multinomial", [logits, seed]):
        logits = convert_to_tensor(logits, name="logits")
        return apply(STATELESS_MULTINOMIAL, logits, num_samples, seed, output_dtype=output_dtype)


def stateless_categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Class numbers for each row of log-probabilities, a function of ``seed``.

    ``logits`` is [batch, classes], ``seed`` two integers; the result is [batch, num_samples] of
    ``dtype``. Equal arguments give equal numbers, in every run.
    """
    with name_scope(name, "stateless_categorical", [logits, seed]):
        logits = convert_to_tensor(logits, name="logits")
        return apply(STATELESS_MULTINOMIAL, logits, num_samples, seed, output_dtype=dtype)
