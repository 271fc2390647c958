"""``tf.contrib.integrate``: ordinary differential equations dy/dt = func(y, t).

``odeint`` chooses its steps (Dormand and Prince, fifth order, with an interpolating polynomial
between steps); ``odeint_fixed`` goes by given steps. Both are loops of graph operations, so results
have gradients.

    >>> y = odeint(lambda y, t: -y, tf.constant(1.0), [0.0, 1.0, 2.0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.scopes import name_scope
from headrace.layers import layer_ops as ops

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["odeint", "odeint_fixed"]

#: Dormand-Prince: times of the stages, the stages' weights, the solution's, its midpoint's and its
#: error's (the difference of the fifth and the fourth order).
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_SOLUTION = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    _SOLUTION,
)
_MIDPOINT = (
    6025192743 / 30085553152 / 2,
    0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)
_FOURTH = (1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60)
_ERROR = tuple(a - b for a, b in zip(_FOURTH, (*_SOLUTION, 0), strict=True))


class _Step(NamedTuple):
    """Where an adaptive integration is: values at ``t1``, and the polynomial since ``t0``."""

    y1: Any
    f1: Any
    t0: Any
    t1: Any
    dt: Any
    polynomial: list[Any]


def _weighted(dt: Tensor, weights: Sequence[float], values: Sequence[Any]) -> Tensor:
    return ops.add_n([dt * w * v for w, v in zip(weights, values, strict=False) if w])


def _combined(factors: Sequence[Any], values: Sequence[Any]) -> Tensor:
    return ops.add_n([f * v for f, v in zip(factors, values, strict=True)])


def _runge_kutta(
    func: Callable[..., Any], y0: Tensor, f0: Tensor, t0: Tensor, dt: Tensor
) -> tuple[Any, Any, list[Any]]:
    """The value after ``dt``, its error, and the derivatives of all stages (the last: after)."""
    step = ops.cast(dt, y0.dtype)
    k = [f0]
    y = y0
    for time, weights in zip(_TIMES, _STAGES, strict=True):
        y = y0 + _weighted(step, weights, k)
        k.append(func(y, t0 + time * dt))
    return y, _weighted(step, _ERROR, k), k


def _fitted(y0: Tensor, y1: Tensor, k: list[Any], dt: Tensor) -> list[Any]:
    """Coefficients of the polynomial of fourth order through both ends and the middle."""
    dt = ops.cast(dt, y0.dtype)
    values = [k[0], k[-1], y0, y1, y0 + _weighted(dt, _MIDPOINT, k)]
    return [
        _combined([-2 * dt, 2 * dt, -8, -8, 16], values),
        _combined([5 * dt, -3 * dt, 18, 14, -32], values),
        _combined([-4 * dt, dt, -11, -5, 16], values),
        dt * k[0],
        y0,
    ]


def _polynomial_at(state: _Step, t: Tensor) -> Tensor:
    right = ops.Assert(
        ops.logical_and(state.t0 <= t, t <= state.t1),
        ["invalid interpolation, fails `t0 <= t <= t1`:", state.t0, t, state.t1],
    )
    kind = state.polynomial[0].dtype
    with ops.control_dependencies([right]):
        x = ops.cast((t - state.t0) / (state.t1 - state.t0), kind)
    powers = [ops.constant(1, kind), x]
    while len(powers) < len(state.polynomial):
        powers.append(powers[-1] * x)
    return _combined(state.polynomial, powers[::-1])


def _squared(x: Tensor) -> Any:
    if x.dtype.is_complex:
        return ops.square(ops.real(x)) + ops.square(ops.imag(x))
    return ops.square(x)


class _DormandPrince:
    """The adaptive method with its tolerances and limits."""

    def __init__(
        self,
        func: Callable[..., Any],
        t: Tensor,
        rtol: Tensor,
        atol: Tensor,
        safety: TensorLike = 0.9,
        ifactor: TensorLike = 10.0,
        dfactor: TensorLike = 0.2,
        max_num_steps: TensorLike = 1000,
    ) -> None:
        self.func, self.t, self.rtol, self.atol = func, t, rtol, atol
        self.safety = ops.convert_to_tensor(safety, dtype=t.dtype, name="safety")
        self.ifactor = ops.convert_to_tensor(ifactor, dtype=t.dtype, name="ifactor")
        self.dfactor = ops.convert_to_tensor(dfactor, dtype=t.dtype, name="dfactor")
        self.most = ops.convert_to_tensor(max_num_steps, dtype=dtypes.int32, name="max_num_steps")

    def next_dt(self, dt: Tensor, error: TensorLike) -> Tensor:
        """The step that would have met the tolerance, within the allowed factors of the last."""
        error = ops.cast(error, dt.dtype)
        factor = ops.minimum(error ** ops.cast(1 / 5, dt.dtype) / self.safety, 1 / self.dfactor)
        return dt / ops.maximum(1 / self.ifactor, factor)

    def step(self, state: _Step, points: Any, errors: Any, count: Tensor) -> Any:
        y0, f0, _, t0, dt, polynomial = state
        checks = [
            ops.Assert(t0 + dt > t0, ["underflow in dt", dt]),
            ops.Assert(count < self.most, ["max_num_steps exceeded"]),
            ops.Assert(
                ops.reduce_all(ops.is_finite(ops.abs(y0))), ["non-finite values in state `y`", y0]
            ),
        ]
        with ops.control_dependencies(checks):
            y1, y_error, k = _runge_kutta(self.func, y0, f0, t0, dt)
        allowed = self.atol + self.rtol * ops.maximum(ops.abs(y0), ops.abs(y1))
        error = ops.sqrt(ops.reduce_mean(_squared(y_error) / _squared(allowed)))
        good = error <= 1
        y, f, t1, *polynomial = ops.cond(
            good,
            lambda: [y1, k[-1], t0 + dt, *_fitted(y0, y1, k, dt)],
            lambda: [ops.identity(v) for v in (y0, f0, t0, *polynomial)],
        )
        after = _Step(y, f, t0, t1, self.next_dt(dt, error), polynomial)
        points = points.write(points.size(), t0 + dt)
        return after, points, errors.write(errors.size(), error), count + 1

    def interpolate(
        self, solution: Any, points: Any, errors: Any, state: _Step, i: Tensor
    ) -> tuple[Any, ...]:
        wanted = self.t[i]
        state, points, errors, _ = ops.while_loop(
            lambda state, *_: wanted > state.t1,
            self.step,
            (state, points, errors, 0),
            name="integrate_loop",
        )
        return solution.write(i, _polynomial_at(state, wanted)), points, errors, state, i + 1


def _check_types(y0: Tensor, t: Tensor, dt: Tensor | None = None) -> None:
    if not (y0.dtype.is_floating or y0.dtype.is_complex):
        raise TypeError("`y0` must have a floating point or complex floating point dtype")
    if not t.dtype.is_floating:
        raise TypeError("`t` must have a floating point dtype")
    if dt is not None and not dt.dtype.is_floating:
        raise TypeError("`dt` must have a floating point dtype")


def _increasing(t: Tensor) -> Any:
    return ops.Assert(ops.reduce_all(t[1:] > t[:-1]), ["`t` must be monotonic increasing"])


def odeint(
    func: Callable[..., Any],
    y0: TensorLike,
    t: TensorLike,
    rtol: float = 1e-6,
    atol: float = 1e-12,
    method: str | None = None,
    options: dict[str, Any] | None = None,
    full_output: bool = False,
    name: str | None = None,
) -> Any:
    """Values of y at the times ``t`` (first axis), beginning with ``y0`` at ``t[0]``.

    ``options`` (with ``method="dopri5"``): ``first_step``, ``safety``, ``ifactor``, ``dfactor``,
    ``max_num_steps``. With ``full_output`` also a dict of the steps that were tried.
    """
    if method is not None and method != "dopri5":
        raise ValueError(f"invalid method: {method!r}")
    if options is not None and method is None:
        raise ValueError("cannot supply `options` without specifying `method`")
    given = dict(options or {})
    with name_scope(name, "odeint", [y0, t, rtol, atol]) as scope:
        y = ops.convert_to_tensor(y0, name="y0")
        times = ops.convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t")
        _check_types(y, times)
        kind = ops.abs(y).dtype
        tolerances = [ops.convert_to_tensor(v, dtype=kind) for v in (rtol, atol)]
        first = given.pop("first_step", None)
        first = ops.convert_to_tensor(1.0 if first is None else first, dtype=times.dtype)
        solver = _DormandPrince(func, times, *tolerances, **given)
        with ops.control_dependencies([_increasing(times)]):
            count = ops.size(times)
        solution = ops.TensorArray(y.dtype, size=count).write(0, y)
        tried = [
            ops.TensorArray(k, size=0, dynamic_size=True, element_shape=[])
            for k in (times.dtype, kind)
        ]
        start = _Step(y, func(y, times[0]), times[0], times[0], first, [y] * 5)
        solution, points, errors, _, _ = ops.while_loop(
            lambda *state: state[-1] < count,
            solver.interpolate,
            (solution, *tried, start, 1),
            name="interpolate_loop",
        )
        result = solution.stack(name=scope)
        result.set_shape(times.shape.concatenate(y.shape))
        if not full_output:
            return result
        ends = points.stack()
        return result, {
            "num_func_evals": 6 * ops.size(ends) + 1,
            "integrate_points": ends,
            "error_ratio": errors.stack(),
        }


def _midpoint_step(func: Callable[..., Any], y: Tensor, t: Tensor, dt: Tensor) -> Any:
    step = ops.cast(dt, y.dtype)
    return step * func(y + func(y, t) * step / 2, t + dt / 2)


def _rk4_step(func: Callable[..., Any], y: Tensor, t: Tensor, dt: Tensor) -> Tensor:
    step, half = ops.cast(dt, y.dtype), t + dt / 2
    k1 = func(y, t)
    k2 = func(y + step * k1 / 2, half)
    k3 = func(y + step * k2 / 2, half)
    k4 = func(y + step * k3, t + dt)
    return ops.add_n([k1, 2 * k2, 2 * k3, k4]) * (step / 6)


_FIXED = {"midpoint": _midpoint_step, "rk4": _rk4_step}


def odeint_fixed(
    func: Callable[..., Any],
    y0: TensorLike,
    t: TensorLike,
    dt: TensorLike | None = None,
    method: str = "rk4",
    name: str | None = None,
) -> Any:
    """Values of y at the times ``t``, by steps no longer than ``dt`` (None: from time to time).

    ``method``: ``"rk4"`` or ``"midpoint"``.
    """
    with name_scope(name, "odeint_fixed", [y0, t, dt]):
        times = ops.convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t")
        y = ops.convert_to_tensor(y0, name="y0")
        spans = times[1:] - times[:-1]
        wanted = spans if dt is None else dt
        longest = ops.convert_to_tensor(wanted, preferred_dtype=dtypes.float64, name="dt")
        counts = ops.ceil(spans / longest)
        steps = spans / counts
        counts = ops.cast(counts, dtype=dtypes.int32)
        _check_types(y, times, steps)
        for values in (times, steps):
            if len(values.shape.as_list()) > 1:
                raise ValueError("t must be a 1D tensor")
        if times.shape[0] != steps.shape[0] + 1:
            raise ValueError("t and dt have incompatible lengths, must be N and N-1")
        if method not in _FIXED:
            raise ValueError(f"method not supported: {method}")
        with ops.control_dependencies([_increasing(times)]):
            return _integrated(_FIXED[method], func, y, times, steps, counts)


def _integrated(
    advance: Callable[..., Any],
    func: Callable[..., Any],
    y0: Tensor,
    t: Tensor,
    dt: Tensor,
    counts: Tensor,
) -> Any:
    total = ops.size(t)

    def interval(solution: Any, y: Tensor, now: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        step = dt[i - 1]

        def once(y: Tensor, now: Tensor, j: Tensor) -> Any:
            return y + ops.cast(advance(func, y, now, step), y.dtype), now + step, j + 1

        y, now, _ = ops.while_loop(lambda y, now, j: j < counts[i - 1], once, (y, now, 0))
        return solution.write(i, y), y, now, i + 1

    solution = ops.TensorArray(y0.dtype, total).write(0, y0)
    solution, *_ = ops.while_loop(
        lambda solution, y, now, i: i < total, interval, (solution, y0, t[0], 1)
    )
    result = solution.stack()
    result.set_shape(t.shape.concatenate(y0.shape))
    return result
