"""``BatchReshape``: the batch of another distribution in another shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.distributions.distribution import Distribution
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import (
    assert_equal,
    assert_greater_equal,
    assert_less_equal,
    assert_rank,
)
from headrace.ops.control.dependencies import with_dependencies

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["BatchReshape"]

_SIZES = "`batch_shape` elements must be >=-1."


class BatchReshape(Distribution):
    """The batch of another distribution in another shape; one size may be -1.

    What the graph does not know is checked when it runs, with ``validate_args``.
    """

    def __init__(
        self,
        distribution: Distribution,
        batch_shape: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:
        given = dict(locals())
        self._distribution = distribution
        with name_scope(name or f"BatchReshape{distribution.name}", values=[batch_shape]) as name:
            shape = convert_to_tensor(batch_shape, dtypes.int32, "batch_shape")
            if shape.shape.ndims not in (None, 1):
                raise ValueError("`batch_shape` must be a vector.")
            self._static = _known_batch(distribution.batch_shape, static_value(shape))
            self._wanted: Any = self._filled(shape, validate_args)
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            allow_nan_stats,
            given,
            [shape, *distribution._graph_parents],
            name,
        )

    def _filled(self, shape: Any, validate_args: bool) -> Any:
        """The batch shape as a vector without -1."""
        if self._static.is_fully_defined():
            return ops.constant(self._static.as_list(), dtypes.int32)
        if validate_args:
            vector = assert_rank(shape, 1, message="`batch_shape` must be a vector.")
            shape = with_dependencies([vector], shape)
            unknown = ops.reduce_sum(ops.cast(ops.equal(shape, -1), dtypes.int32))
            text = "`batch_shape` elements may have at most one -1."
            checks = [
                assert_greater_equal(shape, -1, message=_SIZES),
                assert_less_equal(unknown, 1, message=text),
            ]
            shape = with_dependencies(checks, shape)
        count = ops.reduce_prod(self._distribution.batch_shape_tensor())
        others = ops.reduce_prod(ops.where_v2(ops.equal(shape, -1), ops.ones_like(shape), shape))
        fill = ops.ones_like(shape) * (count // ops.maximum(others, 1))
        found: Any = ops.where_v2(ops.equal(shape, -1), fill, shape)
        if validate_args:
            same = assert_equal(ops.reduce_prod(found), count, message="Shape sizes do not match.")
            found = with_dependencies([same], found)
        return found

    @property
    def distribution(self) -> Distribution:
        """The one whose batch has another shape."""
        return self._distribution

    def _batch_shape(self) -> TensorShape:
        return self._static

    def _batch_shape_tensor(self) -> Any:
        return ops.identity(self._wanted)

    def _event_shape(self) -> TensorShape:
        return self._distribution.event_shape

    def _event_shape_tensor(self) -> Any:
        return self._distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = self._distribution.sample(n, seed=seed)
        return ops.reshape(drawn, ops.concat([[n], self._wanted, self.event_shape_tensor()], 0))

    def _checked(self, x: Any) -> Any:
        """``x``, whose last axes must be batch and event: there is no broadcasting."""
        whole = self._static.concatenate(self.event_shape)
        if whole.ndims is not None and x.shape.ndims is not None:
            if x.shape.ndims < whole.ndims:
                raise NotImplementedError(
                    "Broadcasting is not supported; too few batch and event dims "
                    f"({x.shape.ndims} < {whole.ndims})."
                )
            last = x.shape[x.shape.ndims - whole.ndims :]
            if not last.is_compatible_with(whole):
                raise NotImplementedError(
                    "Broadcasting is not supported; unexpected batch and event shape "
                    f"({last}, expected {whole})."
                )
            if last.is_fully_defined() and whole.is_fully_defined():
                return x
        if not self.validate_args:
            return x
        wanted = ops.concat([self._wanted, self.event_shape_tensor()], 0)
        least = ops.shape(wanted)[0]
        text = "Broadcasting is not supported; too few batch and event dims."
        x = with_dependencies([assert_greater_equal(ops.rank(x), least, message=text)], x)
        size = ops.shape(x)
        text = "Broadcasting is not supported; unexpected batch and event shape."
        same = assert_equal(size[ops.shape(size)[0] - least :], wanted, message=text)
        return with_dependencies([same], x)

    def _of_values(self, function: Callable[[Any], Any], x: Any) -> Any:
        x = self._checked(x)
        inner, event = self._distribution.batch_shape_tensor(), self.event_shape_tensor()
        size = ops.shape(x)
        axes = ops.shape(self._wanted)[0] + ops.shape(event)[0]
        outer = size[: ops.shape(size)[0] - axes]
        found = function(ops.reshape(x, ops.concat([outer, inner, event], 0)))
        result: Any = ops.reshape(found, ops.concat([outer, self._wanted], 0))
        rank = self._static.ndims
        event_rank = self.event_shape.ndims
        if x.shape.ndims is not None and rank is not None and event_rank is not None:
            samples = x.shape[: x.shape.ndims - rank - event_rank]
            result.set_shape(samples.concatenate(self._static))
        return result

    def _log_prob(self, x: Any) -> Any:
        return self._of_values(self._distribution.log_prob, x)

    def _prob(self, x: Any) -> Any:
        return self._of_values(self._distribution.prob, x)

    def _log_cdf(self, x: Any) -> Any:
        return self._of_values(self._distribution.log_cdf, x)

    def _cdf(self, x: Any) -> Any:
        return self._of_values(self._distribution.cdf, x)

    def _log_survival_function(self, x: Any) -> Any:
        return self._of_values(self._distribution.log_survival_function, x)

    def _survival_function(self, x: Any) -> Any:
        return self._of_values(self._distribution.survival_function, x)

    def _statistic(self, found: Any, event: list[Any]) -> Any:
        result: Any = ops.reshape(found, ops.concat([self._wanted, *event], 0))
        inner = self.event_shape
        for _ in event[1:]:
            inner = inner.concatenate(self.event_shape)
        result.set_shape(self._static.concatenate(inner) if event else self._static)
        return result

    def _entropy(self) -> Any:
        return self._statistic(self._distribution.entropy(), [])

    def _mean(self) -> Any:
        return self._statistic(self._distribution.mean(), [self.event_shape_tensor()])

    def _mode(self) -> Any:
        return self._statistic(self._distribution.mode(), [self.event_shape_tensor()])

    def _stddev(self) -> Any:
        return self._statistic(self._distribution.stddev(), [self.event_shape_tensor()])

    def _variance(self) -> Any:
        return self._statistic(self._distribution.variance(), [self.event_shape_tensor()])

    def _covariance(self) -> Any:
        event = self.event_shape_tensor()
        return self._statistic(self._distribution.covariance(), [event, event])


def _known_batch(batch: TensorShape, wanted: Any) -> TensorShape:
    """What the graph knows of the new batch shape; sizes that cannot be are refused."""
    if wanted is None:
        return TensorShape(None)
    sizes = [int(n) for n in wanted]
    if any(n < -1 for n in sizes) or (-1 in sizes and 0 in sizes):
        raise ValueError(_SIZES)
    if sizes.count(-1) > 1:
        raise ValueError("`batch_shape` elements may have at most one -1.")
    count, others = batch.num_elements(), int(np.prod([n for n in sizes if n != -1]))
    if count is None:
        return TensorShape([None if n == -1 else n for n in sizes])
    if -1 in sizes:
        if count % others:
            raise ValueError(f"`batch_shape` {sizes} does not divide the batch of size {count}")
        return TensorShape([None if n == -1 else n for n in sizes])  # as in TensorFlow
    if others != count:
        raise ValueError(
            f"`batch_shape` size ({others}) must match `distribution.batch_shape` size ({count})"
        )
    return TensorShape(sizes)
