"""Gamma, Poisson and bounded normal numbers.

The numbers are TensorFlow's for the same seeds (``ParameterizedTruncatedNormal``: those it makes on
one thread; split over several it starts each part elsewhere in the stream).

    x = random_gamma([10], alpha=[0.5, 2.0], seed=1)  # shape (10, 2)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert
from headrace.core.dtypes import DType
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.kernel_context import Runtime
from headrace.core.opdef import NO_GRADIENT_YET, NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.scopes import name_scope
from headrace.core.shape_fns import broadcast
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.numpy import philox
from headrace.kernels.numpy import rejection_sampling as rejection
from headrace.ops.array.array_shape import shape as shape_op
from headrace.ops.array.filling import zeros_like
from headrace.ops.random.random_ops import generator, op_seeds, shape_input, shape_of, shape_tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, ShapeLike, TensorLike

__all__ = ["parameterized_truncated_normal", "random_gamma", "random_poisson", "random_poisson_v2"]

# kernels ----------------------------------------------------------------------------------------


def _gamma_kernel(
    xp: ArrayNamespace, shape: Array, alpha: Array, *, rt: Runtime, node: KernelNode
) -> Array:
    wanted = shape_of(shape)
    samples, alphas = math.prod(wanted), np.asarray(alpha)
    full = wanted + alphas.shape
    if not samples or not alphas.size:
        return np.empty(full, alphas.dtype)
    start = generator(rt, node).reserve(philox.PER_NUMBER * samples * alphas.size)
    drawn = rejection.gamma(start, alphas.reshape(-1), samples)
    drawn = np.where(np.isnan(drawn), 0, drawn)  # of NaN and of negative numbers
    return drawn.T.reshape(full).astype(alphas.dtype)


def _gamma_grad_kernel(xp: ArrayNamespace, alpha: Array, sample: Array) -> Array:
    return rejection.gamma_grad(np.asarray(alpha), np.asarray(sample)).astype(sample.dtype)


def _poisson_kernel(
    xp: ArrayNamespace, shape: Array, rate: Array, *, dtype: DType, rt: Runtime, node: KernelNode
) -> Array:
    wanted = shape_of(shape)
    samples, rates = math.prod(wanted), np.asarray(rate)
    full = wanted + rates.shape
    if not samples or not rates.size:
        return np.empty(full, dtype.np_dtype)
    start = generator(rt, node).reserve(philox.PER_NUMBER * samples * rates.size)
    drawn = rejection.poisson(start, rates.reshape(-1), samples)
    return drawn.T.reshape(full).astype(dtype.np_dtype)


#: Numbers in a batch when all of them have the same parameters.
_BATCH = 100
_NAMES = ("means", "stddevs", "minvals", "maxvals")


def _bounded_kernel(
    xp: ArrayNamespace,
    shape: Array,
    means: Array,
    stdevs: Array,
    minvals: Array,
    maxvals: Array,
    *,
    dtype: DType,
    rt: Runtime,
    node: KernelNode,
) -> Array:
    wanted = shape_of(shape)
    if not wanted:
        raise errors.InvalidArgumentError(None, None, "Shape tensor must not be empty, got []")
    count = math.prod(wanted)
    params = [np.asarray(p) for p in (means, stdevs, minvals, maxvals)]
    batches, size = wanted[0], math.prod(wanted[1:])
    shared = params[0].size == params[1].size == 1 and params[2].ndim == params[3].ndim == 0
    if shared:
        batches, size = -(-count // _BATCH), _BATCH
    _check_bounds(params, batches)
    start = generator(rt, node).reserve(batches * 2 * 1000 * (size + 3) // 4)
    out = np.empty(count, dtype.np_dtype)
    for b in range(batches if count else 0):
        mean, stddev, low, high = (p.reshape(-1)[0 if p.size == 1 else b] for p in params)
        if not (stddev > 0 and low < high and (np.isfinite(low) or np.isfinite(high))):
            raise errors.InvalidArgumentError(None, None, "Invalid parameters")
        lo, hi = b * size, min((b + 1) * size, count)
        try:
            out[lo:hi], start = rejection.bounded_normal(start, hi - lo, mean, stddev, low, high)
        except rejection.NotAccepted:
            raise errors.InternalError(
                None,
                None,
                f"TruncatedNormal rejection sampler failed to accept a sample in [{low}, {high}].",
            ) from None
    return out.reshape(wanted)


def _check_bounds(params: list[Any], batches: int) -> None:
    for name, p in zip(_NAMES, params):
        given = shapes.show(p.shape).replace(" ", "")
        if p.ndim > 1:
            raise errors.InvalidArgumentError(
                None, None, f"Input {name} should be a scalar or vector, got shape: {given}"
            )
        if p.size not in (1, batches):
            raise errors.InvalidArgumentError(
                None, None, f"Input {name} should have length 1 or shape[0], got shape: {given}"
            )


# gradients --------------------------------------------------------------------------------------


def _gamma_gradient(op: Operation, grad: Tensor) -> list[Any]:
    """At a fixed value of the distribution function, summed over the samples of each alpha."""
    shape, alpha = op.inputs
    sample = op.outputs[0]
    with get_default_graph().control_dependencies([grad]):
        count = apply_op("Size", shape, out_type=dtypes.int32)
        ones = apply_op("Fill", apply_op("Reshape", count, [1]), 1)
        spread = apply_op("ConcatV2", [ones, shape_op(alpha)], 0)
        partial = apply(RANDOM_GAMMA_GRAD, apply_op("Reshape", alpha, spread), sample)
        axes = apply_op("Range", 0, count, 1)
        return [None, apply_op("Sum", apply_op("Mul", grad, partial), axes, keep_dims=False)]


# definitions ------------------------------------------------------------------------------------


def _per_parameter(c: Inference) -> list[Shape]:
    c.require_rank(0, 1)
    samples, parameters = c.shape_value(0), c.shape(1)
    return [None if samples is None or parameters is None else tuple(samples) + tuple(parameters)]


_SEEDS = "seed: int=0, seed2: int=0"

RANDOM_GAMMA = define(
    "RandomGamma",
    f"shape: S, alpha: T -> output: T; {_SEEDS}, S: type(index), T: type(float)",
    shape=_per_parameter,
    kernel=_gamma_kernel,
    grad=_gamma_gradient,
    stateful=True,
    random=True,
    known_inputs=(0,),
    host_only=True,
)
RANDOM_GAMMA_GRAD = define(
    "RandomGammaGrad",
    "alpha: T, sample: T -> output: T; T: type(float)",
    shape=broadcast,
    kernel=_gamma_grad_kernel,
    grad=NO_GRADIENT_YET,
    elementwise=True,
    host_only=True,
)
RANDOM_POISSON_V2 = define(
    "RandomPoissonV2",
    f"shape: S, rate: R -> output: dtype; {_SEEDS}, S: type(index), "
    "R: type(real)=float64, dtype: type(real)=int64",
    shape=_per_parameter,
    kernel=_poisson_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    known_inputs=(0,),
    host_only=True,
)
PARAMETERIZED_TRUNCATED_NORMAL = define(
    "ParameterizedTruncatedNormal",
    "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype; "
    f"{_SEEDS}, dtype: type(float), T: type(index)",
    shape=shape_input,
    kernel=_bounded_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    known_inputs=(0,),
    host_only=True,
)

# wrappers ---------------------------------------------------------------------------------------


def parameterized_truncated_normal(
    shape: ShapeLike,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers between bounds; a parameter is one number or one for each row."""
    dtype = dtypes.as_dtype(dtype)
    with name_scope(
        name, "parameterized_truncated_normal", [shape, means, stddevs, minvals, maxvals]
    ):
        shape = shape_tensor(shape)
        values = (means, stddevs, minvals, maxvals)
        params = [convert(v, dtype, n) for v, n in zip(values, _NAMES)]
        return apply(PARAMETERIZED_TRUNCATED_NORMAL, shape, *params, **op_seeds(seed))


def random_gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Gamma numbers of shape ``shape + (alpha + beta).shape``, differentiable in alpha and beta.

    ``alpha`` is the shape parameter and ``beta`` the inverse scale (default 1); both are positive
    and broadcast. ``seed`` makes the sequence repeatable. Samples are at least the least positive
    number, so that they have a logarithm.
    """
    dtype = dtypes.as_dtype(dtype)
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        shape = convert(shape, dtypes.int32, "shape")
        alpha = convert(alpha, dtype, "alpha")
        beta = convert(1 if beta is None else beta, dtype, "beta")
        spread = apply_op("AddV2", alpha, zeros_like(beta), name="add")
        drawn = apply(RANDOM_GAMMA, shape, spread, **op_seeds(seed))
        scaled = apply_op("RealDiv", drawn, beta, name="truediv")
        tiny = np.finfo(dtype.np_dtype).tiny  # a sample of zero would have no logarithm
        return apply_op("Maximum", tiny, scaled)


def random_poisson(
    lam: Any,
    shape: ShapeLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Poisson counts of shape ``shape + lam.shape``.

    ``lam`` are the rates, a number or a tensor; the counts have type ``dtype``, a float by default.
    ``seed`` makes the sequence repeatable. TF 2 has ``shape`` first.
    """
    return random_poisson_v2(shape, lam, dtype, seed, name)


def random_poisson_v2(
    shape: ShapeLike,
    lam: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """:func:`random_poisson` with TF 2's order of parameters."""
    with name_scope(name, "random_poisson", [lam, shape]):
        shape = convert(shape, dtypes.int32, "shape")
        return apply(RANDOM_POISSON_V2, shape, lam, dtype=dtype, **op_seeds(seed))
