"""Learning-rate schedules: tensors that depend on the global step.

    rate = exponential_decay(0.1, global_step, decay_steps=1000, decay_rate=0.96, staircase=True)

The step may be a number, a tensor or a variable; results have the type of the initial learning
rate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op, named_result
from headrace.core.convert import convert_n_to_tensor, convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, count_more, ops_counted
from headrace.core.tensor import Tensor
from headrace.ops.array import casting
from headrace.ops.array.basic import constant
from headrace.ops.random.random_ops import random_normal
from headrace.train.tensor_helpers import cast

if TYPE_CHECKING:
    from headrace.core.annotations import Hyperparameter, TensorLike

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]


def _late_when_eager(schedule: Callable[..., Any]) -> Callable[..., Any]:
    """Eagerly a schedule is a function without arguments, which an optimizer calls with every
    step.
    """

    @functools.wraps(schedule)
    def decorated(*args: object, **kwargs: object) -> Any:
        if not get_default_graph()._is_eager:
            return schedule(*args, **kwargs)

        def now() -> Any:
            rate = schedule(*args, **kwargs)
            return rate() if callable(rate) else rate

        return now

    return decorated


def _initial(learning_rate: object) -> Tensor:
    return convert_to_tensor(learning_rate, name="initial_learning_rate")


@_late_when_eager
def exponential_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``.

    With ``staircase`` in whole steps: the quotient is rounded down. Give the result to an
    optimizer, and the same ``global_step`` to its ``minimize``.

        rate = tf.train.exponential_decay(0.1, global_step, 1000, 0.96, staircase=True)
    """
    with name_scope(name or "ExponentialDecay") as scope:
        start = _initial(learning_rate)
        dtype = start.dtype.base_dtype
        steps, rate = cast(decay_steps, dtype), cast(decay_rate, dtype)
        p = cast(global_step, dtype) / steps
        if staircase:
            p = apply_op("Floor", p)
        return apply_op("Mul", start, apply_op("Pow", rate, p), name=scope)


@_late_when_eager
def natural_exp_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``.

    ``staircase`` rounds ``global_step / decay_steps`` down, so that the rate falls in steps.

        tf.train.natural_exp_decay(1.0, global_step=10, decay_steps=10, decay_rate=1.0)  # 0.36788
    """
    rate = apply_op("Exp", apply_op("Neg", decay_rate))
    decayed: Tensor = exponential_decay(
        learning_rate, global_step, decay_steps, rate, staircase, name
    )
    return decayed


@_late_when_eager
def inverse_time_decay(
    learning_rate: object,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``.

    ``staircase`` rounds ``global_step / decay_steps`` down, so that the rate falls in steps.

        tf.train.inverse_time_decay(0.5, global_step=10, decay_steps=10, decay_rate=1.0)  # 0.25
    """
    with name_scope(name or "InverseTimeDecay") as scope:
        start = _initial(learning_rate)
        dtype = start.dtype.base_dtype
        steps, rate = cast(decay_steps, dtype), cast(decay_rate, dtype)
        p: Any = cast(global_step, dtype) / steps
        if staircase:
            p = apply_op("Floor", p)
        one = cast(constant(1), dtype)
        denominator = apply_op("Add", one, apply_op("Mul", rate, p))
        return apply_op("RealDiv", start, denominator, name=scope)


@_late_when_eager
def piecewise_constant(
    x: TensorLike, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """``values[0]`` up to and including ``boundaries[0]``, then ``values[1]``, and so on.

    A chain of selections, where TensorFlow makes a ``case`` of conditional branches: the values are
    there anyway, and choosing among them costs less than branching.
    """
    limits = convert_n_to_tensor(boundaries)
    rates = convert_n_to_tensor(values)
    step = convert_to_tensor(x)
    limits = [_as_limit(b, step.dtype.base_dtype) for b in limits]
    for v in rates[1:]:
        if v.dtype.base_dtype is not rates[0].dtype.base_dtype:
            raise ValueError(
                "Values must have elements all with the same dtype "
                f"({rates[0].dtype.base_dtype} vs {v.dtype.base_dtype})."
            )
    if len(limits) != len(rates) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with name_scope(name or "PiecewiseConstant") as scope:
        n = len(limits)
        count_more(step._op.graph, n * n + 9 * n + 25)
        chosen = rates[-1]
        for limit, rate in zip(reversed(limits), reversed(rates[:-1])):
            chosen = apply_op("Select", apply_op("LessEqual", step, limit), rate, chosen)
        return named_result(chosen, f"{scope}case/cond/Merge/")


piecewise_constant_decay = piecewise_constant


def _as_limit(boundary: Tensor, dtype: dtypes.DType) -> Tensor:
    """A boundary in the type of the step; only int32 to int64 loses nothing."""
    if boundary.dtype.base_dtype is dtype:
        return boundary
    if boundary.dtype.base_dtype is dtypes.int32 and dtype is dtypes.int64:
        return casting.cast(boundary, dtype)
    raise ValueError(
        f"Boundaries ({boundary.dtype.base_dtype}) must have the same dtype as x ({dtype})."
    )


@_late_when_eager
def polynomial_decay(
    learning_rate: Hyperparameter,
    global_step: TensorLike,
    decay_steps: TensorLike,
    end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From ``learning_rate`` to ``end_learning_rate`` in ``decay_steps``, along ``(1 - step /
    decay_steps) ** power``.

    It stays there; with ``cycle`` it starts again over twice, three times as many steps.
    """
    with name_scope(name or "PolynomialDecay") as scope:
        start = _initial(learning_rate)
        if cycle:
            count_more(start._op.graph, 6)  # TF makes the number of steps twice
        dtype = start.dtype.base_dtype
        end, exponent = cast(end_learning_rate, dtype), cast(power, dtype)
        step, steps = cast(global_step, dtype), cast(decay_steps, dtype)
        if cycle:
            round_ = apply_op("Ceil", step / steps)
            first = apply_op("Equal", step, 0)
            steps = apply_op("Mul", steps, apply_op("Select", first, cast(1.0, dtype), round_))
        else:
            step = apply_op("Minimum", step, decay_steps)
        p = step / steps
        fall = apply_op("Mul", start - end, apply_op("Pow", 1 - p, exponent))
        return apply_op("Add", fall, end, name=scope)


def _cosine(fraction: Tensor) -> Tensor:
    """From 1 at fraction 0 to 0 at fraction 1."""
    return 0.5 * (1.0 + apply_op("Cos", constant(math.pi, dtype=fraction.dtype) * fraction))


@_late_when_eager
def cosine_decay(
    learning_rate: Hyperparameter,
    global_step: TensorLike,
    decay_steps: TensorLike,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half a cosine from ``learning_rate`` to ``alpha * learning_rate`` in ``decay_steps``.

    It stays there (https://arxiv.org/abs/1608.03983).
    """
    with name_scope(name or "CosineDecay"):
        start = _initial(learning_rate)
        dtype = start.dtype.base_dtype
        steps = cast(decay_steps, dtype)
        step = apply_op("Minimum", cast(global_step, dtype), steps)
        decayed = (1 - alpha) * _cosine(step / steps) + alpha
        return apply_op("Mul", start, decayed)


@_late_when_eager
def cosine_decay_restarts(
    learning_rate: Hyperparameter,
    global_step: TensorLike,
    first_decay_steps: TensorLike,
    t_mul: TensorLike = 2.0,
    m_mul: TensorLike = 1.0,
    alpha: TensorLike = 0.0,
    name: str | None = None,
) -> Tensor:
    """Cosine decay that starts again.

    The first cycle has ``first_decay_steps`` steps; each further one is ``t_mul`` times as long and
    begins ``m_mul`` times as high. ``alpha`` is the lowest rate as a share of ``learning_rate``.
    """
    with name_scope(name or "SGDRDecay") as scope:
        start = _initial(learning_rate)
        dtype = start.dtype.base_dtype
        first, floor = cast(first_decay_steps, dtype), cast(alpha, dtype)
        longer, lower = cast(t_mul, dtype), cast(m_mul, dtype)
        before = ops_counted(start._op.graph)
        restart, fraction = _restarts(cast(global_step, dtype) / first, longer, t_mul)
        count_as(start._op.graph, before, 33)  # TF branches on ``t_mul``
        height = apply_op("Pow", lower, restart)
        decayed = (1 - floor) * (height * _cosine(fraction)) + floor
        return apply_op("Mul", start, decayed, name=scope)


def _restarts(done: Tensor, longer: TensorLike, t_mul: object) -> tuple[Any, Any]:
    """How many restarts there were, and which part of the current period is over."""
    if not isinstance(t_mul, (int, float)):
        even, odd = _equal_periods(done), _growing_periods(done, longer)
        same = apply_op("Equal", longer, 1.0)
        return apply_op("Select", same, even[0], odd[0]), apply_op("Select", same, even[1], odd[1])
    return _equal_periods(done) if t_mul == 1 else _growing_periods(done, longer)


def _equal_periods(done: Tensor) -> tuple[Any, Any]:
    restart = apply_op("Floor", done)
    return restart, done - restart


def _growing_periods(done: TensorLike, longer: Any) -> tuple[Any, Any]:
    """Periods 1, t, t², …: n of them take (1 - tⁿ) / (1 - t)."""
    restart = apply_op(
        "Floor", apply_op("Log", 1.0 - done * (1.0 - longer)) / apply_op("Log", longer)
    )
    period = apply_op("Pow", longer, restart)
    before = (1.0 - period) / (1.0 - longer)
    return restart, (done - before) / period


@_late_when_eager
def linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    num_periods: TensorLike = 0.5,
    alpha: TensorLike = 0.0,
    beta: TensorLike = 0.001,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * ((alpha + linear) * cosine + beta)`` (https://arxiv.org/abs/1709.07417).

    Over ``decay_steps`` steps ``linear`` falls from 1 to 0, while ``cosine`` goes through
    ``num_periods`` periods.
    """
    return _linear_cosine(
        learning_rate,
        global_step,
        decay_steps,
        None,
        num_periods,
        alpha,
        beta,
        name or "LinearCosineDecay",
    )


@_late_when_eager
def noisy_linear_cosine_decay(
    learning_rate: float,
    global_step: object,
    decay_steps: object,
    initial_variance: TensorLike = 1.0,
    variance_decay: TensorLike = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """``linear_cosine_decay`` with normal noise added to its linear part.

    The noise has variance ``initial_variance / (1 + global_step) ** variance_decay``. The other
    arguments are those of ``tf.train.linear_cosine_decay``.
    """
    noise = (initial_variance, variance_decay)
    return _linear_cosine(
        learning_rate,
        global_step,
        decay_steps,
        noise,
        num_periods,
        alpha,
        beta,
        name or "NoisyLinearCosineDecay",
    )


def _linear_cosine(
    learning_rate: Hyperparameter,
    global_step: Any,
    decay_steps: object,
    noise: Any,
    num_periods: object,
    alpha: object,
    beta: object,
    name: str,
) -> Tensor:
    with name_scope(name) as scope:
        start = _initial(learning_rate)
        dtype = start.dtype.base_dtype
        steps, periods = cast(decay_steps, dtype), cast(num_periods, dtype)
        alpha, beta = cast(alpha, dtype), cast(beta, dtype)
        step = apply_op("Minimum", cast(global_step, dtype), steps)
        linear = (steps - step) / steps
        if noise is not None:
            variance = cast(noise[0], dtype) / apply_op("Pow", 1.0 + step, cast(noise[1], dtype))
            linear = linear + _normal(linear, apply_op("Sqrt", variance))
        fraction = 2.0 * periods * (step / steps)
        return apply_op("Mul", start, (alpha + linear) * _cosine(fraction) + beta, name=scope)


def _normal(like: Tensor, deviation: Tensor) -> Tensor:
    return random_normal(like.shape, stddev=deviation, dtype=like.dtype.base_dtype)
