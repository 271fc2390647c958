"""Activations written over their input, in blocks over threads where that is large.

>>> in_place("Relu", x)      # x is now max(x, 0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.accel import ask
from headrace.kernels.numpy.blocks import over_blocks

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["ACTIVATIONS", "FLOAT32", "ZERO", "gelu", "in_place", "name_inside"]

#: Elements from which blocks over threads pay.
THREADS_FROM = 64 * 1024
LARGE_RELU = 512 * 1024  # a comparison costs less than to bring another thread in
BLOCK = 32 * 1024

_ROOT = math.sqrt(2 / math.pi)
#: NumPy takes half a microsecond to make an array of the number 0, as long as small functions take.
FLOAT32, ZERO = np.dtype(np.float32), np.zeros((), np.float32)
ZERO.flags.writeable = False


def _relu(x: Array) -> None:
    # of two zeros the second is taken: -0 stays, as in TensorFlow
    np.maximum(ZERO if x.dtype is FLOAT32 else 0, x, out=x)


def _relu6(x: Array) -> None:
    np.maximum(0, x, out=x)
    np.minimum(x, 6, out=x)


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


def _sigmoid(x: Array) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)


def _gelu_tanh(x: Array) -> None:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))."""
    t = x * x
    t *= 0.044715 * _ROOT
    t += _ROOT
    t *= x
    np.tanh(t, out=t)
    t += 1
    x *= 0.5
    x *= t


#: exp(z^2) erfc(z) = t P(t) with t = 1 / (1 + 0.35 z), for z >= 0: a least-squares fit, relative
#: error below 5e-8.
_TAIL = (
    0.1974663448,
    0.1974686782,
    0.1852780922,
    0.1626201667,
    0.1160231003,
    0.1360758314,
    -0.0772475283,
    0.2108309414,
    -0.1678885886,
    0.0393729142,
)


def _gelu_erf(x: Array) -> None:
    """x/2 * (1 + erf(x / sqrt(2))).

    In single precision as max(x, 0) - |x|/2 * erfc(|x| / sqrt(2)): ten times as fast as SciPy's
    erf, and without the loss of figures in ``1 + erf`` for negative x.
    """
    if x.dtype != np.float32 or not math.isfinite(np.vdot(x, x)):
        from scipy.special import erf

        t = x * math.sqrt(0.5)
        erf(t, out=t)
        t += 1
        x *= 0.5
        x *= t
        return
    size = np.abs(x)
    np.minimum(size, 30, out=size)  # beyond, erfc is 0, and infinity times that would be NaN
    t = size * (0.35 * math.sqrt(0.5))
    t += 1
    np.reciprocal(t, out=t)
    p = t * _TAIL[-1]
    for c in _TAIL[-2:0:-1]:
        p += c
        p *= t
    p += _TAIL[0]
    p *= t
    np.multiply(size, size, out=t)
    t *= -0.5
    np.exp(t, out=t)
    p *= t
    p *= size
    p *= 0.5
    np.maximum(x, 0, out=x)
    x -= p


class Activation(NamedTuple):
    """A function in place, and the library's names of it where that is several times as fast.

    ``inside`` is its name where a product applies it in its own pass. (The library's relu turns NaN
    into 0: that one is done afterwards.)
    """

    function: Callable[[Any], None]
    library: str | None = None
    inside: str | None = None


#: By the name that stands in ``fused_ops``.
ACTIVATIONS: dict[str, Activation] = {
    "Relu": Activation(_relu),
    "Relu6": Activation(_relu6),
    "Tanh": Activation(_tanh, "Tanh", "tanh"),
    "Sigmoid": Activation(_sigmoid, "Sigmoid", "sigmoid"),
    "GeluApproximate": Activation(_gelu_tanh, "Gelu", "gelu"),
    "GeluExact": Activation(_gelu_erf, "GeluErf", "gelu_erf"),
}


def name_inside(activation: str) -> str | None:
    """What the library calls an activation that it applies in a product's own pass."""
    found = ACTIVATIONS.get(activation)
    return None if found is None else found.inside


def _by_library(name: str, x: Array, out: Array | None = None) -> Any:
    called = ACTIVATIONS[name].library
    if called is None or not x.flags.c_contiguous:
        return None
    if name == "GeluExact" and not math.isfinite(np.dot(x.reshape(-1), x.reshape(-1))):
        return None  # the library's is NaN at infinity
    return ask("unary", called, x, out)


def in_place(name: str, x: Array) -> None:
    """Apply an activation to an array of our own."""
    function = ACTIVATIONS[name].function
    if x.size < (LARGE_RELU if name == "Relu" else THREADS_FROM) or not x.flags.c_contiguous:
        function(np.atleast_1d(x))
    elif _by_library(name, x, x) is not None:
        return
    else:
        over_blocks(function, [x], BLOCK)


def gelu(x: Array, approximate: bool) -> Any:
    """The Gaussian error linear unit of an array, as a new one."""
    name = "GeluApproximate" if approximate else "GeluExact"
    function = ACTIVATIONS[name].function
    found = None if x.size < THREADS_FROM else _by_library(name, x)
    if found is not None:
        return found
    if x.size < THREADS_FROM or not x.flags.c_contiguous:
        out = np.array(x)
        function(np.atleast_1d(out))  # what NumPy computes of a scalar array is no array
        return out if x.ndim else out[()]
    out = np.empty_like(x)

    def block(source: Any, target: Any) -> None:
        np.copyto(target, source)
        function(target)

    over_blocks(block, [x, out], BLOCK)
    return out
