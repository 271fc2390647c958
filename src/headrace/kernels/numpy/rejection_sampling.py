"""Gamma, Poisson and bounded normal numbers by TensorFlow's rejection methods, on its random
stream.

Where each output has a stretch of the stream to itself (gamma, Poisson), all outputs are worked on
at once: a round draws one candidate for every output that is still open. :class:`_Streams` keeps
how far each has read.

    >>> gamma(Philox(1, 2, 0), np.array([0.5, 3.0]), 4).shape
    (2, 4)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.kernels.numpy import philox
from headrace.kernels.numpy.philox import Philox

__all__ = ["bounded_normal", "gamma", "gamma_grad", "poisson"]

Array = np.ndarray[Any, Any]
#: Positions of the stream that belong to one output.
_STRETCH = 256


class _Streams:
    """One stream per output. Numbers are made in groups and read from them, last one first."""

    def __init__(self, gen: Philox, n: int) -> None:
        self._gen = gen
        self._next = np.arange(n, dtype=np.uint64) * np.uint64(_STRETCH)

    def groups(self, which: Array) -> Array:
        words = philox.groups_at(self._gen, self._next[which])
        self._next[which] += np.uint64(1)
        return words

    def reader(self, width: int, convert: Callable[[Array], Array]) -> Callable[[Array], Array]:
        held = np.empty((self._next.size, width), np.float64)
        left = np.zeros(self._next.size, np.intp)

        def read(which: Array) -> Array:
            empty = which[left[which] == 0]
            if empty.size:
                held[empty] = convert(self.groups(empty))
                left[empty] = width
            left[which] -= 1
            return held[which, left[which]]

        return read


# gamma ------------------------------------------------------------------------------------------


def gamma(gen: Philox, alpha: Array, samples: int) -> Array:
    """(alphas, samples) numbers in float64, by Marsaglia and Tsang; alpha 1 is exponential."""
    shape_param = np.repeat(alpha.astype(np.float64), samples)
    out = np.empty(shape_param.size)
    streams = _Streams(gen, out.size)
    uniforms = streams.reader(2, philox.uniform_double)
    plain = np.flatnonzero(shape_param == 1.0)
    if plain.size:
        out[plain] = -np.log1p(-uniforms(plain))
    normals = streams.reader(2, philox.box_muller_double)
    small = shape_param < 1.0
    d = shape_param + np.where(small, 2.0 / 3, -1.0 / 3)
    c = 1.0 / 3 / np.sqrt(d)
    left = np.flatnonzero(shape_param != 1.0)
    while left.size:
        x = normals(left)
        v = 1.0 + c[left] * x
        positive = ~(
            v <= 0.0
        )  # a NaN goes on: it is the result for an alpha that is negative or no number
        tried, x, v = left[positive], x[positive], v[positive] ** 3
        u = uniforms(tried)
        square = x * x
        good = u < 1.0 - 0.0331 * square * square
        good |= np.log(u) < 0.5 * square + d[tried] * (1.0 - v + np.log(v))
        done = tried[good]
        out[done] = d[done] * v[good]
        boosted = done[small[done]]
        if boosted.size:
            out[boosted] *= uniforms(boosted) ** (1.0 / shape_param[boosted])
        left = np.setdiff1d(left, done, assume_unique=True)
    return out.reshape(alpha.size, samples)


def gamma_grad(alpha: Array, sample: Array) -> Array:
    """d sample / d alpha at a fixed value of the distribution function: -(dP/dalpha) / density.

    Where the sample is below alpha, P comes from its power series, above from the continued
    fraction of 1 - P; both are differentiated term by term, with the density's factor already
    divided out.
    """
    alpha, sample = np.broadcast_arrays(alpha.astype(np.float64), sample.astype(np.float64))
    out = np.full(alpha.shape, np.nan)
    usable = (alpha > 0) & (sample > 0) & np.isfinite(alpha) & np.isfinite(sample)
    out[(alpha > 0) & (sample == 0)] = 0.0
    low = usable & ((sample <= 1) | (sample <= alpha))
    high = usable & ~low
    if low.any():
        out[low] = _gamma_grad_series(alpha[low], sample[low])
    if high.any():
        out[high] = _gamma_grad_fraction(alpha[high], sample[high])
    return out


_ROUNDS = 10000


def _gamma_grad_series(a: Array, x: Array) -> Array:
    """P = x^a e^-x / Gamma(a+1) * (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)."""
    from scipy.special import digamma

    term = np.ones_like(a)
    slope = np.zeros_like(a)  # d term / da
    total, total_slope = term.copy(), slope.copy()
    r = a.copy()
    for _ in range(_ROUNDS):
        r += 1
        slope = (slope - term / r) * x / r
        term = term * x / r
        total += term
        total_slope += slope
        if np.all(np.abs(slope) <= 1e-16 * np.abs(total_slope)):
            break
    grads: np.ndarray[Any, Any]
    grads = -x / a * (total_slope + total * (np.log(x) - digamma(a + 1)))
    return grads


def _gamma_grad_fraction(a: Array, x: Array) -> Array:
    """1 - P = x^a e^-x / Gamma(a) * f, f = 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...)))."""
    from scipy.special import digamma

    # numerators p and denominators q of the convergents, and their derivatives in a
    p0, p1 = np.zeros_like(a), np.ones_like(a)
    q0, q1 = np.ones_like(a), x + 1 - a
    dp0, dp1 = np.zeros_like(a), np.zeros_like(a)
    dq0, dq1 = np.zeros_like(a), -np.ones_like(a)
    slope = np.zeros_like(a)
    for n in range(1, _ROUNDS):
        top, bottom = -n * (n - a), x + 2 * n + 1 - a
        p0, p1, dp0, dp1 = p1, bottom * p1 + top * p0, dp1, bottom * dp1 - p1 + top * dp0 + n * p0
        q0, q1, dq0, dq1 = q1, bottom * q1 + top * q0, dq1, bottom * dq1 - q1 + top * dq0 + n * q0
        before, slope = slope, (dp1 - p1 / q1 * dq1) / q1
        if np.all(np.abs(slope - before) <= 1e-15 * np.abs(slope)):
            break
        large = np.abs(q1) > 1e100
        if large.any():  # keep the convergents in range
            scale = np.where(large, 1e-100, 1.0)
            p0, p1, q0, q1 = p0 * scale, p1 * scale, q0 * scale, q1 * scale
            dp0, dp1, dq0, dq1 = dp0 * scale, dp1 * scale, dq0 * scale, dq1 * scale
    grads: np.ndarray[Any, Any] = x * (slope + p1 / q1 * (np.log(x) - digamma(a)))
    return grads


# Poisson ----------------------------------------------------------------------------------------


def poisson(gen: Philox, rate: Array, samples: int) -> Array:
    """(rates, samples) counts in float64: Knuth's product of uniforms below rate 10, else
    Hoermann's rejection.

    A negative rate gives 0, an infinite one NaN, as in TensorFlow.
    """
    rates = np.repeat(rate.astype(np.float64), samples)
    out = np.zeros(rates.size)
    uniforms = _Streams(gen, out.size).reader(2, philox.uniform_double)
    low = rates < 10
    _poisson_low(uniforms, rates, np.flatnonzero(low & (rates > 0)), out)
    _poisson_high(uniforms, rates, np.flatnonzero(~low & np.isfinite(rates)), out)
    out[~(rates < np.inf)] = np.nan
    return out.reshape(rate.size, samples)


def _poisson_low(uniforms: Callable[[Array], Array], rates: Array, left: Array, out: Array) -> None:
    limit = np.exp(-rates)
    product = np.ones_like(rates)
    while left.size:
        product[left] *= uniforms(left)
        left = left[product[left] > limit[left]]
        out[left] += 1


def _poisson_high(
    uniforms: Callable[[Array], Array], rates: Array, left: Array, out: Array
) -> None:
    if not left.size:
        return
    from scipy.special import gammaln

    b = 0.931 + 2.53 * np.sqrt(rates)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    log_rate = np.log(rates)
    while left.size:
        u = uniforms(left) - 0.5
        v = uniforms(left)
        shifted = 0.5 - np.abs(u)
        k = np.floor((2.0 * a[left] / shifted + b[left]) * u + rates[left] + 0.43)
        good = (shifted >= 0.07) & (v <= squeeze[left])
        maybe = (k >= 0) & ~((shifted < 0.013) & (v > shifted))
        s = np.log(v * inverse_alpha[left] / (a[left] / (shifted * shifted) + b[left]))
        good |= maybe & (s <= -rates[left] + k * log_rate[left] - gammaln(k + 1.0))
        out[left[good]] = k[good]
        left = left[~good]


# normal numbers between bounds ------------------------------------------------------------------

#: Plain normals are drawn when at least this many standard deviations lie inside the bounds.
_PLAIN_FROM = 1.3
_MAX_REJECTED = 1000


class NotAccepted(Exception):
    """No candidate was accepted in a thousand tries."""


def bounded_normal(
    gen: Philox, count: int, mean: Any, stddev: Any, low: Any, high: Any
) -> tuple[Array, Philox]:
    """``count`` normal numbers in [low, high] and the place behind what was read."""
    kind = type(mean)
    if (np.isinf(low) and low < 0) or high < mean:  # make the bounded side the lower one
        low, high, stddev = high, low, -stddev
    lower, upper = (low - mean) / stddev, (high - mean) / stddev
    root = np.sqrt(lower * lower + kind(4))
    cutoff = kind(2) * np.exp(kind(0.5) + lower * (lower - root) / kind(4)) / (lower + root)
    inside = kind(_PLAIN_FROM)
    dtype = np.dtype(kind)
    if (lower < -inside and upper >= 0) or (upper > inside and lower <= 0):
        propose = _plain_proposals(lower, upper, dtype)
    elif upper - lower < cutoff:
        propose = _uniform_proposals(lower, upper, dtype)
    else:
        propose = _exponential_proposals(lower, upper, dtype)
    values, gen = _accepted(gen, count, *propose)
    return values * stddev + mean, gen


Proposals = tuple[int, Callable[[Philox, int], tuple[Array, Array]]]


def _plain_proposals(lower: np.generic, upper: np.generic, dtype: np.dtype[Any]) -> Proposals:
    width = 2 if dtype == np.float64 else 4

    def propose(gen: Philox, rounds: int) -> tuple[Array, Array]:
        z = philox.normal(gen, rounds * width, dtype).reshape(rounds, width)
        return z, (z >= lower) & (z <= upper)

    return 1, propose


def _uniform_proposals(lower: Any, upper: Any, dtype: np.dtype[Any]) -> Proposals:
    width = 2 if dtype == np.float64 else 4
    two = dtype.type(2)
    plus = dtype.type(0) if lower < 0 else lower * lower

    def propose(gen: Philox, rounds: int) -> tuple[Array, Array]:
        drawn = philox.uniform(gen, 2 * rounds * width, dtype).reshape(rounds, 2, width)
        z = drawn[:, 0] * (upper - lower) + lower
        return z, drawn[:, 1] <= np.exp((plus - z * z) / two)

    return 2, propose


def _exponential_proposals(lower: Any, upper: np.generic, dtype: np.dtype[Any]) -> Proposals:
    width = 2 if dtype == np.float64 else 4
    two = dtype.type(2)
    alpha = (lower + np.sqrt(lower * lower + dtype.type(4))) / two

    def propose(gen: Philox, rounds: int) -> tuple[Array, Array]:
        drawn = philox.uniform(gen, rounds * width, dtype).reshape(rounds, width // 2, 2)
        z = -np.log(drawn[..., 0]) / alpha + lower
        x = alpha - z if lower < alpha else np.full_like(z, lower - alpha)
        return z, (drawn[..., 1] <= np.exp(-x * x / two)) & (z < upper)

    return 1, propose


def _accepted(
    gen: Philox, count: int, groups: int, propose: Callable[[Philox, int], tuple[Array, Array]]
) -> tuple[Array, Philox]:
    """The first ``count`` accepted candidates. A round reads ``groups`` groups, always whole."""
    parts: list[Array] = []
    rounds = max(8, count // 2)
    while True:
        z, good = propose(gen, rounds)
        places = np.flatnonzero(good)[:count]
        parts.append(z.reshape(-1)[places])
        count -= places.size
        if not count:
            used = int(places[-1]) // z.shape[1] + 1
            return np.concatenate(parts), gen.skip(used * groups)
        if not places.size and good.size >= _MAX_REJECTED:
            raise NotAccepted
        gen = gen.skip(rounds * groups)
        rounds = max(rounds, 64) if places.size else rounds * 4
