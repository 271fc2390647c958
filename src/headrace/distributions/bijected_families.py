"""Distributions made by a bijector: ``Kumaraswamy``, ``SinhArcsinh``, ``VectorExponentialDiag``,
``VectorLaplaceDiag``, ``VectorSinhArcsinhDiag``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.distributions import scalar_bijectors as numbers
from headrace.distributions.affine_bijector import Affine
from headrace.distributions.bijectors import AffineScalar, Chain
from headrace.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from headrace.distributions.gamma_family import Exponential
from headrace.distributions.location_scale import Laplace, Normal, Uniform
from headrace.distributions.transformed_families import TransformedDistribution
from headrace.distributions.vector_bijectors import AffineLinearOperator
from headrace.layers import layer_ops as ops
from headrace.linear_operators.diagonal_operators import LinearOperatorDiag
from headrace.ops.control.assertions import assert_less
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.diagonals import matrix_diag
from headrace.ops.math.special import digamma, lgamma

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "Kumaraswamy",
    "SinhArcsinh",
    "VectorExponentialDiag",
    "VectorLaplaceDiag",
    "VectorSinhArcsinhDiag",
]


def _batch_of(*tensors: Any) -> Any:
    """The shape of all together: numbers, or a tensor if the graph does not know them."""
    shape = tensors[0].shape
    for other in tensors[1:]:
        shape = ops.broadcast_static_shape(shape, other.shape)
    if shape.is_fully_defined():
        return shape.as_list()
    size = ops.shape(tensors[0])
    for other in tensors[1:]:
        size = ops.broadcast_dynamic_shape(size, ops.shape(other))
    return size


class Kumaraswamy(TransformedDistribution):
    """1 - (1 - x ** concentration1) ** concentration0 is its distribution function, on [0, 1]."""

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Kumaraswamy",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[concentration1, concentration0]) as name:
            first: Any = convert_to_tensor(concentration1, name="concentration1")
            second: Any = convert_to_tensor(concentration0, name="concentration0")
            base = Uniform(
                ops.zeros([], first.dtype),
                ops.ones([], first.dtype),
                allow_nan_stats=allow_nan_stats,
            )
            bijector = numbers.Kumaraswamy(first, second, validate_args=validate_args)
        super().__init__(base, bijector, batch_shape=_batch_of(first, second), name=name)
        self._parameters = {k: v for k, v in given.items() if k not in ("self", "__class__")}
        self._reparameterization_type = FULLY_REPARAMETERIZED

    concentration1 = property(lambda self: self.bijector.concentration1)
    concentration0 = property(lambda self: self.bijector.concentration0)

    def _entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) - digamma(ops.ones([], b.dtype))
        return (1 - 1.0 / a) + (1 - 1.0 / b) * harmonic + ops.log(a) + ops.log(b)

    def _moment(self, n: int) -> Tensor:
        total = self.concentration1 + self.concentration0
        a, b = (ops.ones_like(total) * c for c in (self.concentration1, self.concentration0))
        first = 1 + n / a
        return ops.exp(ops.log(b) + lgamma(first) + lgamma(b) - lgamma(first + b))

    def _mean(self) -> Tensor:
        found: Tensor = self._moment(1)
        return found

    def _variance(self) -> Tensor:
        found: Tensor = self._moment(2) - ops.square(self._moment(1))
        return found

    def _mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** (1.0 / a)
        if self.allow_nan_stats:
            nan = ops.fill(self.batch_shape_tensor(), np.array(np.nan, mode.dtype.as_numpy_dtype))
            return ops.where_v2(ops.logical_and(a > 1.0, b > 1.0), mode, nan)
        one = ops.ones([], a.dtype)
        checks = [
            assert_less(one, c, message=f"Mode undefined for {n} <= 1.")
            for c, n in ((a, "concentration1"), (b, "concentration0"))
        ]
        return with_dependencies(checks, mode)


def _scaled(skewness: Any, tailweight: Any, scale: Any, plain: bool) -> tuple[Any, Any]:
    """The bijector, and the scale after which 2 stays 2 ``scale`` without skewness."""
    bent = numbers.SinhArcsinh(skewness=skewness, tailweight=tailweight)
    straight = bent
    if not plain:
        zero = skewness.dtype.as_numpy_dtype(0.0)
        straight = numbers.SinhArcsinh(skewness=zero, tailweight=tailweight)
    return bent, 2 * scale / straight.forward(ops.constant(2, dtype=scale.dtype))


def _standard_normal(dtype: Any, allow_nan_stats: bool) -> Normal:
    return Normal(ops.zeros([], dtype), ops.ones([], dtype), allow_nan_stats=allow_nan_stats)


class _Bent(TransformedDistribution):
    """Has the four parameters of a SinhArcsinh distribution."""

    _loc: Any
    _scale: Any
    _tailweight: Any
    _skewness: Any

    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._scale)
    tailweight = property(lambda self: self._tailweight)
    skewness = property(lambda self: self._skewness)


class SinhArcsinh(_Bent):
    """A normal number made skew and heavy-tailed, around ``loc`` with ``scale``."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        skewness: TensorLike | None = None,
        tailweight: TensorLike | None = None,
        distribution: Distribution | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "SinhArcsinh",
    ) -> None:
        given = dict(locals())
        with name_scope(name, values=[loc, scale, skewness, tailweight]) as name:
            self._loc = convert_to_tensor(loc, name="loc")
            kind = self._loc.dtype
            self._scale = convert_to_tensor(scale, kind, "scale")
            weight = 1.0 if tailweight is None else tailweight
            self._tailweight = convert_to_tensor(weight, kind, "tailweight")
            skew = 0.0 if skewness is None else skewness
            self._skewness = convert_to_tensor(skew, kind, "skewness")
            batch = _batch_of(self._loc, self._scale, self._tailweight, self._skewness)
            base = distribution or _standard_normal(kind, allow_nan_stats)
            bent, factor = _scaled(self._skewness, self._tailweight, self._scale, skewness is None)
            affine = AffineScalar(self._loc, factor, validate_args=validate_args)
        super().__init__(
            base,
            Chain([affine, bent]),
            batch_shape=batch,
            validate_args=validate_args,
            name=name,
        )
        self._parameters = {k: v for k, v in given.items() if k not in ("self", "__class__")}


def _diagonal(loc: Any, diag: Any, multiplier: Any) -> tuple[Any, Any, Any, Any]:
    """``loc``, the diagonal of the scale, and the shapes of batch and event."""
    shift: Any = None if loc is None else convert_to_tensor(loc, name="loc")
    kind = None if shift is None else shift.dtype
    found: Any = None if diag is None else convert_to_tensor(diag, kind, "scale_diag")
    if multiplier is not None:
        times: Any = convert_to_tensor(multiplier, kind, "scale_identity_multiplier")
        wide = ops.ones(ops.shape(shift if found is None else found)[-1:], times.dtype)
        found = (0.0 if found is None else found) + times[..., None] * wide
    if found is None:
        found = ops.ones(ops.shape(shift)[-1:], kind)
    whole = _batch_of(found, *([] if shift is None else [shift]))
    return shift, found, whole[:-1], whole[-1:]


class _VectorDiag(TransformedDistribution):
    """``loc + scale_diag * x`` for vectors of independent numbers x."""

    def _build(
        self,
        base: Any,
        loc: Any,
        scale_diag: Any,
        multiplier: Any,
        validate_args: bool,
        allow_nan_stats: bool,
        given: dict[str, Any],
        name: str,
    ) -> None:
        with name_scope(name, values=[loc, scale_diag, multiplier]) as name:
            with name_scope("init", values=[loc, scale_diag, multiplier]):
                self._loc, self._diag, batch, event = _diagonal(loc, scale_diag, multiplier)
            inner = base(self._diag.dtype, allow_nan_stats)
            affine = AffineLinearOperator(self._loc, self.scale, validate_args=validate_args)
        TransformedDistribution.__init__(
            self,
            inner,
            affine,
            batch_shape=batch,
            event_shape=event,
            validate_args=validate_args,
            name=name,
        )
        self._parameters = {k: v for k, v in given.items() if k not in ("self", "__class__")}

    loc = property(lambda self: self._loc)

    @property
    def scale(self) -> Any:
        """The scale as a linear operator."""
        return LinearOperatorDiag(self._diag, is_non_singular=True)

    def _wide(self, x: Any) -> Any:
        shape = ops.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return x + ops.zeros(shape, self.dtype)


class VectorExponentialDiag(_VectorDiag):
    """``loc + scale_diag * x`` for vectors of exponential numbers x."""

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorExponentialDiag",
    ) -> None:
        self._build(
            lambda kind, nan: Exponential(ops.ones([], kind), allow_nan_stats=nan),
            loc, scale_diag, scale_identity_multiplier, validate_args, allow_nan_stats,
            dict(locals()), name,
        )  # fmt: skip

    def _mean(self) -> Any:
        found = self._wide(self._diag)
        return found if self._loc is None else self._loc + found

    def _mode(self) -> Tensor:
        found: Tensor = self._wide(0.0 if self._loc is None else self._loc)
        return found

    def _variance(self) -> Tensor:
        found: Tensor = ops.square(self._diag)
        return found

    def _stddev(self) -> Tensor:
        found: Tensor = ops.abs(self._diag)
        return found

    def _covariance(self) -> Tensor:
        return matrix_diag(ops.square(self._diag))


class VectorLaplaceDiag(_VectorDiag):
    """``loc + scale_diag * x`` for vectors of Laplace numbers x."""

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorLaplaceDiag",
    ) -> None:
        self._build(
            lambda kind, nan: Laplace(
                ops.zeros([], kind), ops.ones([], kind), allow_nan_stats=nan
            ),
            loc, scale_diag, scale_identity_multiplier, validate_args, allow_nan_stats,
            dict(locals()), name,
        )  # fmt: skip

    def _mean(self) -> Tensor:
        found: Tensor = self._wide(0.0 if self._loc is None else self._loc)
        return found

    def _mode(self) -> Tensor:
        found: Tensor = self._mean()
        return found

    def _variance(self) -> Tensor:
        found: Tensor = 2.0 * ops.square(self._diag)
        return found

    def _stddev(self) -> Tensor:
        found: Tensor = math.sqrt(2) * ops.abs(self._diag)
        return found

    def _covariance(self) -> Tensor:
        return 2.0 * matrix_diag(ops.square(self._diag))


class VectorSinhArcsinhDiag(_Bent):
    """`SinhArcsinh` of vectors: ``loc`` and a diagonal scale."""

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        skewness: TensorLike | None = None,
        tailweight: TensorLike | None = None,
        distribution: Distribution | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalLinearOperator",
    ) -> None:
        given = dict(locals())
        values = [loc, scale_diag, scale_identity_multiplier, skewness, tailweight]
        with name_scope(name, values=values) as name:
            self._loc, diag, batch, event = _diagonal(loc, scale_diag, scale_identity_multiplier)
            kind = diag.dtype
            skew = 0.0 if skewness is None else skewness
            self._skewness = convert_to_tensor(skew, kind, "skewness")
            weight = 1.0 if tailweight is None else tailweight
            self._tailweight = convert_to_tensor(weight, kind, "tailweight")
            base = distribution or _standard_normal(kind, allow_nan_stats)
            bent, factor = _scaled(self._skewness, self._tailweight, diag, skewness is None)
            affine = Affine(self._loc, scale_diag=factor, validate_args=validate_args)
        super().__init__(
            base,
            Chain([affine, bent]),
            batch_shape=batch,
            event_shape=event,
            validate_args=validate_args,
            name=name,
        )
        self._scale = LinearOperatorDiag(diag)
        self._parameters = {k: v for k, v in given.items() if k not in ("self", "__class__")}
