"""Functions of ``contrib.distributions``: percentiles, autocorrelation, moving statistics, seeds,
conjugate normal distributions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.graph_keys import GraphKeys
from headrace.core.infer import static_value
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.location_scale import Normal
from headrace.layers import layer_ops as ops
from headrace.ops.array.selecting import top_k
from headrace.ops.control.assertions import (
    assert_greater_equal,
    assert_less_equal,
    assert_rank,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.diagonals import matrix_diag
from headrace.ops.math.fft import fft, ifft
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "SeedStream",
    "assign_log_moving_mean_exp",
    "assign_moving_mean_variance",
    "auto_correlation",
    "moving_mean_variance",
    "normal_conjugates_known_scale_posterior",
    "normal_conjugates_known_scale_predictive",
    "percentile",
    "tridiag",
]


class SeedStream:
    """Seeds one after the other: a call gives the next one, which follows from seed and salt."""

    def __init__(self, seed: int | SeedStream | None, salt: str) -> None:
        self._seed = seed.original_seed if isinstance(seed, SeedStream) else seed
        self._salt, self._counter = salt, 0

    def __call__(self) -> int | None:
        self._counter += 1
        if self._seed is None:
            return None
        text = str((self._seed, self._counter, self._salt)).encode()
        return int(hashlib.sha512(text).hexdigest(), 16)

    @property
    def original_seed(self) -> int | None:
        """The seed that was given first."""
        return self._seed

    @property
    def salt(self) -> str:
        """What tells this stream from others of the same seed."""
        return self._salt


def _flat_end(x: Tensor, axis: object) -> tuple[Any, list[int] | None]:
    """``x`` with the given axes as one last axis, and these axes."""
    if axis is None:
        return ops.reshape(x, [-1]), None
    known = static_value(convert_to_tensor(axis, name="axis"))
    if known is None:
        raise ValueError(f"Expected argument 'axis' to be statically available.  Found: {axis}")
    rank = x.shape.ndims
    if rank is None or rank < 1:
        raise ValueError(f"Expected argument 'x' to have ndims >= 1.  Found tensor {x}")
    axes = []
    for a in np.atleast_1d(known).tolist():
        if not -rank <= a < rank:
            raise ValueError(f"dim {a} not in the interval [-{rank}, {rank - 1}].")
        axes.append(a % rank)
    front = [i for i in range(rank) if i not in axes]
    turned = ops.transpose(x, front + axes)
    outer = ops.shape(turned)[: len(front)]
    found: Any = ops.reshape(turned, ops.concat([outer, [-1]], 0))
    sizes = x.shape.as_list()
    last = [sizes[a] for a in axes]
    whole = None if None in last else int(np.prod(last))
    found.set_shape([*(sizes[i] for i in front), whole])
    return found, axes


def percentile(
    x: TensorLike,
    q: TensorLike,
    axis: TensorLike | None = None,
    interpolation: str | None = None,
    keep_dims: bool = False,
    validate_args: bool = False,
    name: str | None = None,
) -> Any:
    """The ``q``-th percentile, over all elements or some axes.

    ``interpolation``: which neighbour is taken, "lower", "higher" or "nearest" (the default).
    """
    way = "nearest" if interpolation is None else interpolation
    functions = {"lower": ops.ceil, "higher": ops.floor, "nearest": ops.round}
    if way not in functions:
        raise ValueError(
            f"Argument 'interpolation' must be in {set(functions)}.  Found {interpolation}"
        )
    with name_scope(name or "percentile", values=[x, q]):
        given: Any = convert_to_tensor(x, name="x")
        rate: Any = ops.cast(q, dtypes.float64, name="q")
        if rate.shape.ndims not in (None, 0):
            raise ValueError("Expected argument q to have ndims 0: a scalar.")
        if rate.shape.ndims is None and validate_args:
            scalar = assert_rank(rate, 0, message="Expected argument q to have ndims 0.")
            rate = with_dependencies([scalar], rate)
        if validate_args:
            low, high = (ops.constant(v, dtypes.float64) for v in (0.0, 100.0))
            rate = with_dependencies(
                [assert_greater_equal(rate, low), assert_less_equal(rate, high)], rate
            )
        y, axes = _flat_end(given, axis)
        count = ops.shape(y)[-1]
        place = functions[way]((ops.cast(count, dtypes.float64) - 1) * (1.0 - rate / 100.0))
        index = ops.clip_by_value(ops.cast(place, dtypes.int32), 0, count - 1)
        found: Any = top_k(y, k=count)[0][..., index]
        found.set_shape(y.shape[:-1])
        if keep_dims:
            if axes is None:
                return found * ops.ones([1] * given.shape.ndims, given.dtype)
            for i in sorted(axes):
                found = ops.expand_dims(found, i)
        return found


def auto_correlation(
    x: TensorLike,
    axis: int = -1,
    max_lags: int | None = None,
    center: bool = True,
    normalize: bool = True,
    name: str = "auto_correlation",
) -> Tensor:
    """How much values along an axis have to do with those some steps later, for 0 to ``max_lags``
    steps.

    ``center`` takes the mean away first; ``normalize`` divides by the variance.
    """
    with name_scope(name, values=[x]):
        given: Any = convert_to_tensor(x, name="x")
        kind = given.dtype
        if not (kind.is_complex or kind.is_floating):
            raise TypeError(f"Argument x must have either float or complex dtype found: {kind}")
        order, back = _turns(given, axis)
        turned: Any = ops.transpose(given, order)
        if center:
            turned -= ops.reduce_mean(turned, -1, keepdims=True)
        found = _lagged_products(turned, max_lags)
        if normalize:
            found /= found[..., :1]
        return ops.transpose(found, back)


def _turns(x: Tensor, axis: int) -> tuple[Any, Any]:
    """The orders of axes that put one at the end, and back."""
    rank = x.shape.ndims
    if rank is not None:
        last = axis % rank
        order = [*(i for i in range(rank) if i != last), last]
        return order, np.argsort(order).tolist()
    many: Any = ops.rank(x)
    place: Any = axis % many
    before = ops.range(place)
    to_end = ops.concat([before, ops.range(place + 1, many), [place]], 0)
    return to_end, ops.concat([before, [many - 1], ops.range(place, many - 1)], 0)


def _lagged_products(x: Any, max_lags: int | None) -> Any:
    """The mean products of values of the last axis and those some steps later."""
    kind = x.dtype
    count: Any = None if x.shape.ndims is None else x.shape.as_list()[-1]
    size: Any
    most: Any
    terms: Any
    if count is None:
        count = ops.shape(x)[-1]
        size = 2 * count
        most = count - 1 if max_lags is None else ops.minimum(count - 1, int(max_lags))
        terms = ops.cast(ops.range(count, count - most - 1, -1), kind)
    else:
        size = 2 ** int(np.ceil(np.log2(count * 2)))
        most = count - 1 if max_lags is None else min(count - 1, int(max_lags))
        terms = np.arange(count, count - most - 1, -1).astype(kind.as_numpy_dtype)
    more = ops.zeros(ops.concat([ops.shape(x)[:-1], [size - count]], 0), kind)
    padded = ops.concat([x, more], -1)
    if not kind.is_complex:
        padded = ops.complex(padded, ops.zeros_like(padded))
    spectrum = fft(padded)
    products: Any = ifft(spectrum * ops.conj(spectrum))
    if not kind.is_complex:
        products = ops.real(products)
    return products[..., : most + 1] / terms


def assign_moving_mean_variance(
    mean_var: Any,
    variance_var: Any,
    value: TensorLike,
    decay: TensorLike,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Moves a mean and a variance towards those of ``value``, by 1 - ``decay``."""
    with name_scope(name, "assign_moving_mean_variance", [variance_var, mean_var, value, decay]):
        kind = mean_var.dtype.base_dtype
        if not kind.is_floating:
            raise TypeError(f"mean_var.base_dtype({kind.name}) does not have float type `dtype`.")
        other = variance_var.dtype.base_dtype
        if kind != other:
            raise TypeError(
                f"mean_var.base_dtype({kind.name}) != variance_var.base_dtype({other.name})"
            )
        new: Any = convert_to_tensor(value, kind, "value")
        rate: Any = convert_to_tensor(decay, kind, "decay")
        delta = new - mean_var
        with control_dependencies([delta]):
            mean = mean_var.assign_add((1.0 - rate) * delta)
            less = (1.0 - rate) * (variance_var - rate * ops.square(delta))
            return mean, variance_var.assign_sub(less)


def assign_log_moving_mean_exp(
    log_mean_exp_var: Any, log_value: TensorLike, decay: TensorLike, name: str | None = None
) -> Any:
    """Moves ``log(mean(exp(values)))`` towards ``log_value``."""
    with name_scope(name, "assign_log_moving_mean_exp", [log_mean_exp_var, log_value, decay]):
        kind = log_mean_exp_var.dtype.base_dtype
        if not kind.is_floating:
            raise TypeError(
                f"log_mean_exp_var.base_dtype({kind.name}) does not have float type `dtype`."
            )
        new: Any = convert_to_tensor(log_value, kind, "log_value")
        rate: Any = convert_to_tensor(decay, kind, "decay")
        delta = new - log_mean_exp_var
        parts = [ops.log(rate) * ops.ones_like(delta), delta + ops.log1p(-rate)]
        return log_mean_exp_var.assign_add(ops.reduce_logsumexp(ops.stack(parts), 0))


def moving_mean_variance(
    value: TensorLike,
    decay: TensorLike,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """`assign_moving_mean_variance` with variables ``moving_mean`` and ``moving_variance``."""
    kept = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
    with variable_scope(name, "moving_mean_variance", [value, decay]):
        new: Any = convert_to_tensor(value, name="value")
        kind = new.dtype.base_dtype
        if not kind.is_floating:
            raise TypeError(f"value.base_dtype({kind.name}) does not have float type `dtype`.")
        rate = convert_to_tensor(decay, kind, "decay")
        variance, mean = (
            get_variable(
                f"moving_{what}",
                shape=new.shape,
                dtype=new.dtype,
                initializer=zeros_initializer(),
                trainable=False,
                collections=kept,
            )
            for what in ("variance", "mean")
        )
        return assign_moving_mean_variance(mean, variance, new, rate)


def _posterior(prior: Normal, scale: Any, s: Any, n: Any) -> tuple[Any, Any, Any]:
    """Mean and variance of the posterior, and the variance of one value."""
    if not isinstance(prior, Normal):
        raise TypeError("Expected prior to be an instance of type Normal")
    if s.dtype != prior.dtype:
        raise TypeError(
            f"Observation sum s.dtype does not match prior dtype: {s.dtype} vs. {prior.dtype}"
        )
    count: Any = ops.cast(n, prior.dtype)
    before: Any = ops.square(prior.scale)
    each: Any = ops.square(scale)
    variance = 1.0 / (1 / before + count / each)
    return (prior.loc / before + s / each) * variance, variance, each


def normal_conjugates_known_scale_posterior(
    prior: Normal, scale: TensorLike, s: object, n: TensorLike
) -> Normal:
    """What is known of the mean after ``n`` values with sum ``s`` and known ``scale``."""
    mean, variance, _ = _posterior(prior, scale, s, n)
    return Normal(loc=mean, scale=ops.sqrt(variance))


def normal_conjugates_known_scale_predictive(
    prior: Normal, scale: TensorLike, s: object, n: TensorLike
) -> Normal:
    """The distribution of the next value after ``n`` values with sum ``s``."""
    mean, variance, each = _posterior(prior, scale, s, n)
    return Normal(loc=mean, scale=ops.sqrt(variance + each))


def tridiag(
    below: TensorLike | None = None,
    diag: TensorLike | None = None,
    above: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """Matrices with up to three diagonals, as given."""

    def beside(d: object, low: bool) -> Tensor:
        inner = matrix_diag(convert_to_tensor(d))
        pads = [[0, 0]] * ((inner.shape.ndims or 2) - 2)
        return ops.pad(inner, [*pads, [1, 0], [0, 1]] if low else [*pads, [0, 1], [1, 0]])

    with name_scope(name, "tridiag", [below, diag, above]):
        parts = []
        if below is not None:
            parts.append(beside(below, True))
        if diag is not None:
            parts.append(matrix_diag(diag))
        if above is not None:
            parts.append(beside(above, False))
        if not parts:
            raise ValueError("Must specify at least one of below, diag, above.")
        total: Any = parts[0]
        for part in parts[1:]:
            total = total + part
        return total
