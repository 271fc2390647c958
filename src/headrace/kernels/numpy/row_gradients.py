"""Gradients of layer normalisation, softmax and gelu in one pass over the arrays.

A kernel library is asked first; otherwise rows or blocks that stay in the cache, over threads. The
pieces depend on shapes alone, and sums over rows are joined in their order: the number of threads
changes nothing.

    >>> y, mean, variance = layer_norm_training(x, scale, offset, 1e-5)
    >>> dx, dscale, doffset = layer_norm_grad(dy, x, scale, mean, variance, 1e-5)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.accel import ask
from headrace.kernels.numpy.blocks import over_blocks, over_matching_rows

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["gelu_grad", "layer_norm_grad", "layer_norm_training", "softmax_grad"]

#: Elements from which a kernel library is asked.
LIBRARY_FROM = 16 * 1024
#: Elements in a block.
BLOCK = 32 * 1024

_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def _asked(function: str, like: Array, *args: float | Array | str) -> Any:
    """What a kernel library answers, for arrays of the size and type of ``like``.

    None where it is not asked.
    """
    if like.size < LIBRARY_FROM or like.dtype != np.float32:
        return None
    return ask(function, *args)


def layer_norm_training(x: Any, scale: Any, offset: Any, epsilon: float) -> Any:
    """The normalised rows, and the mean and the variance of each row."""
    found = _asked("layer_norm", x, x, scale, offset, epsilon)
    if found is not None:
        return found
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty(rows.shape, x.dtype)
    mean, variance = np.empty(len(rows), x.dtype), np.empty(len(rows), x.dtype)

    def piece(x: Array, out: Array, mean: Array, variance: Array) -> None:
        n = x.shape[1]
        np.add.reduce(x, 1, out=mean)
        mean /= n
        np.subtract(x, mean[:, None], out=out)
        np.einsum("ij,ij->i", out, out, out=variance)
        variance /= n
        out /= np.sqrt(variance + x.dtype.type(epsilon))[:, None]
        out *= scale
        out += offset

    over_matching_rows(piece, [rows, out, mean, variance], x.shape[-1], BLOCK)
    lead = x.shape[:-1]
    return out.reshape(x.shape), mean.reshape(lead), variance.reshape(lead)


def layer_norm_grad(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, epsilon: float) -> Any:
    """The gradients of x, scale and offset."""
    found = _asked("layer_norm_grad", x, dy, x, scale, mean, variance, epsilon)
    if found is not None:
        return found
    columns = x.shape[-1]
    rows, grads = x.reshape(-1, columns), dy.reshape(-1, columns)
    dx, normal = np.empty(rows.shape, x.dtype), np.empty(rows.shape, x.dtype)
    inverse = 1 / np.sqrt(variance.reshape(-1) + x.dtype.type(epsilon))

    def piece(x: Array, dy: Array, dx: Array, normal: Array, mean: Array, inverse: Array) -> None:
        n = x.shape[1]
        np.subtract(x, mean[:, None], out=normal)
        normal *= inverse[:, None]
        np.multiply(dy, scale, out=dx)
        along = np.einsum("ij,ij->i", dx, normal)[:, None] / n
        dx -= np.add.reduce(dx, 1, keepdims=True) / n
        dx -= normal * along
        dx *= inverse[:, None]

    arrays = [rows, grads, dx, normal, mean.reshape(-1), inverse]
    over_matching_rows(piece, arrays, columns, BLOCK)
    normal *= grads
    return dx.reshape(x.shape), np.add.reduce(normal, 0), np.add.reduce(grads, 0)


def softmax_grad(y: Array, dy: Array) -> Any:
    """``(dy - sum(dy * y)) * y`` for ``y = softmax(x)`` over the last axis."""
    found = _asked("softmax_grad", y, y, dy)
    if found is not None:
        return found
    columns = y.shape[-1]
    rows, grads = y.reshape(-1, columns), dy.reshape(-1, columns)
    out = np.empty(rows.shape, y.dtype)

    def piece(y: Array, dy: Array, out: Array) -> None:
        np.multiply(dy, y, out=out)
        along = np.add.reduce(out, 1, keepdims=True)
        np.subtract(dy, along, out=out)
        out *= y

    over_matching_rows(piece, [rows, grads, out], columns, BLOCK)
    return out.reshape(y.shape)


def gelu_grad(dy: Array, x: Array, approximate: bool) -> Any:
    """``dy`` times the derivative of gelu at ``x``."""
    name = "GeluGrad" if approximate else "GeluErfGrad"
    found = _asked("gradient", x, name, x, dy)
    if found is not None:
        return found
    function = _tanh_slope if approximate else _erf_slope
    if dy.shape != x.shape or not x.flags.c_contiguous or not dy.flags.c_contiguous:
        return function(x) * dy
    out = np.empty_like(x)

    def block(x: Any, dy: Any, out: Any) -> None:
        np.multiply(function(x), dy, out=out)

    over_blocks(block, [x, dy, out], BLOCK)
    return out


def _tanh_slope(x: Array) -> Array:
    """Of x/2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3)."""
    kind = x.dtype.type
    square = x * x
    t = np.tanh((square * kind(_ROOT * _CUBIC) + kind(_ROOT)) * x)
    square *= kind(3 * _ROOT * _CUBIC)
    square += kind(_ROOT)  # du/dx
    square *= x
    square *= 1 - t * t
    square += t
    square += 1
    square *= kind(0.5)
    return square


def _erf_slope(x: Array) -> Any:
    """Of x/2 * (1 + erf(x / sqrt(2)))."""
    from scipy.special import erf

    kind = x.dtype.type
    density = np.exp(x * x * kind(-0.5))
    density *= x
    density *= kind(1 / math.sqrt(2 * math.pi))
    sigma = erf(x * kind(math.sqrt(0.5)))
    sigma += 1
    sigma *= kind(0.5)
    return sigma + density
