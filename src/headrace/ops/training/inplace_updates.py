"""The dense update rules on NumPy arrays, in place: one pass over memory in cache-sized blocks on
all cores.

Each function has the parameters of the rule of the same name in update_rules.py and gives the
same values up to rounding (BLAS updates multiply and add in one step); it overwrites the arrays of
the variables and allocates nothing of their size. Blocks are small enough that all arrays of a
block and the scratch stay in the second-level cache.

    >>> adam(var, m, v, b1p, b2p, lr, b1, b2, eps, grad, use_nesterov=False)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import abs as absolute
from numpy import add, divide, exp, maximum, minimum, multiply, power, sign, sqrt, subtract

from headrace.kernels.accel import library
from headrace.kernels.numpy.blocks import over_blocks
from headrace.kernels.numpy.openblas import axpby, axpy, hold_blas

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["INPLACE", "in_blocks", "scratch"]

#: Elements in a block. Larger than the second-level cache would like: every ufunc call takes the
#: interpreter lock anew, and with two threads and shorter blocks they wait for each other (Adam,
#: 670k floats: 16k 2.4 ms, 64k 1.1, 128k 1.0).
BLOCK = 128 * 1024
#: Up to this many elements the arrays are used as they are.
MAX_WITHOUT_BLOCKS = 1024


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.buffers: dict[np.dtype[Any], Array] = {}


_scratch = _Scratch()


def scratch(like: Array) -> Array:
    """Three arrays of the type and shape of a block, this thread's own until the next call."""
    if like.size <= MAX_WITHOUT_BLOCKS:
        return np.empty((3, *like.shape), like.dtype)
    buffers = _scratch.buffers.get(like.dtype)
    if buffers is None or buffers.shape[1] < like.size:
        buffers = _scratch.buffers[like.dtype] = np.empty((3, like.size), like.dtype)
    return buffers[:, : like.size]


def in_blocks(function: Callable[..., None], variables: tuple[Array, ...], grad: Array) -> None:
    """``function(*variables, grad)`` over flat blocks.

    What is not contiguous is copied (and copied back).
    """
    if grad.size <= MAX_WITHOUT_BLOCKS and grad.ndim:
        function(*variables, grad)
        return
    hold_blas()
    flat = [v.reshape(-1) for v in variables]
    over_blocks(function, [*flat, grad.reshape(-1)], BLOCK)
    for v, f in zip(variables, flat):
        if not v.flags.c_contiguous:
            v[...] = f.reshape(v.shape)


def gradient_descent(var: Array, alpha: Array, delta: Array) -> None:
    def block(var: Array, g: Array) -> None:
        axpy(-alpha, g, var, scratch(g)[0])

    in_blocks(block, (var,), delta)


def momentum(
    var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool
) -> None:
    def block(var: Array, accum: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        axpby(1, g, momentum, accum, t)
        if use_nesterov:
            axpy(-lr, g, var, t)
            axpy(-lr * momentum, accum, var, u)
        else:
            axpy(-lr, accum, var, t)

    in_blocks(block, (var, accum), grad)


def keras_momentum(
    var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, *, use_nesterov: bool
) -> None:
    def block(var: Array, accum: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        multiply(g, lr, t)
        multiply(accum, momentum, accum)
        subtract(accum, t, accum)
        if use_nesterov:
            multiply(accum, momentum, u)
            subtract(u, t, u)
            add(var, u, var)
        else:
            add(var, accum, var)

    in_blocks(block, (var, accum), grad)


def _average(average: Array, value: Array, rate: Array, t: Array) -> None:
    """The average moved toward the value by ``rate``; ``t`` may be ``value``."""
    axpby(rate, value, 1 - rate, average, t)


def adam(
    var: Array,
    m: Array,
    v: Array,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
    *,
    use_nesterov: bool,
) -> None:
    rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
    if not use_nesterov and var.size > MAX_WITHOUT_BLOCKS:
        found = library()
        if found is not None and found.adam(var, m, v, rate, beta1, beta2, epsilon, grad):
            return
    rest1, rest2 = 1 - beta1, 1 - beta2

    def block(var: Array, m: Array, v: Array, g: Array) -> None:
        t, u, w = scratch(g)
        _average(m, g, rest1, t)
        multiply(g, g, t)
        _average(v, t, rest2, t)
        sqrt(v, t)
        add(t, epsilon, t)
        if use_nesterov:
            multiply(g, rest1, u)
            multiply(m, beta1, w)
            add(u, w, u)
            divide(u, t, u)
        else:
            divide(m, t, u)
        axpy(-rate, u, var, u)

    in_blocks(block, (var, m, v), grad)


def adam_with_amsgrad(
    var: Array,
    m: Array,
    v: Array,
    vhat: Array,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
    rest1, rest2 = 1 - beta1, 1 - beta2

    def block(var: Array, m: Array, v: Array, vhat: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        _average(m, g, rest1, t)
        multiply(g, g, t)
        _average(v, t, rest2, t)
        maximum(vhat, v, out=vhat)
        sqrt(vhat, t)
        add(t, epsilon, t)
        multiply(m, rate, u)
        divide(u, t, u)
        subtract(var, u, var)

    in_blocks(block, (var, m, v, vhat), grad)


def ada_max(
    var: Array,
    m: Array,
    v: Array,
    beta1_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    rate, rest = lr / (1 - beta1_power), 1 - beta1

    def block(var: Array, m: Array, v: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        _average(m, g, rest, t)
        multiply(v, beta2, v)
        absolute(g, t)
        maximum(v, t, out=v)
        add(v, epsilon, t)
        divide(m, t, u)
        multiply(u, rate, u)
        subtract(var, u, var)

    in_blocks(block, (var, m, v), grad)


def rms_prop(
    var: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    rest = 1 - rho

    def block(var: Array, ms: Array, mom: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        multiply(g, g, t)
        _average(ms, t, rest, t)
        add(ms, epsilon, t)
        _rms_step(var, mom, g, t, u, lr, momentum)

    in_blocks(block, (var, ms, mom), grad)


def _rms_step(
    var: Array, mom: Array, g: Array, t: Array, u: Array, lr: Array, momentum: Array
) -> None:
    """mom = mom * momentum + g * lr / sqrt(t); var -= mom."""
    sqrt(t, t)
    multiply(g, lr, u)
    divide(u, t, u)
    multiply(mom, momentum, mom)
    add(mom, u, mom)
    subtract(var, mom, var)


def centered_rms_prop(
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    rest = 1 - rho

    def block(var: Array, mg: Array, ms: Array, mom: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        multiply(g, g, t)
        _average(ms, t, rest, t)
        _average(mg, g, rest, t)
        multiply(mg, mg, t)
        subtract(ms, t, t)
        add(t, epsilon, t)
        _rms_step(var, mom, g, t, u, lr, momentum)

    in_blocks(block, (var, mg, ms, mom), grad)


def adagrad(var: Array, accum: Array, lr: Array, grad: Array, *, update_slots: bool) -> None:
    _adagrad(var, accum, lr, None, grad, update_slots)


def adagrad_v2(
    var: Array,
    accum: Array,
    lr: Array,
    epsilon: Array,
    grad: Array,
    *,
    update_slots: bool,
) -> None:
    _adagrad(var, accum, lr, epsilon, grad, update_slots)


def _adagrad(
    var: Array, accum: Array, lr: Array, epsilon: Array | None, grad: Array, update_slots: bool
) -> None:
    def block(var: Array, accum: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        if update_slots:
            multiply(g, g, t)
            add(accum, t, accum)
        sqrt(accum, t)
        if epsilon is not None:
            add(t, epsilon, t)
        multiply(g, lr, u)
        divide(u, t, u)
        subtract(var, u, var)

    in_blocks(block, (var, accum), grad)


def adadelta(
    var: Array,
    accum: Array,
    accum_update: Array,
    lr: Array,
    rho: Array,
    epsilon: Array,
    grad: Array,
) -> None:
    rest = 1 - rho

    def decay(average: Array, squared: Array, t: Array) -> None:
        """average = average * rho + squared² * (1 - rho)"""
        multiply(squared, squared, t)
        multiply(t, rest, t)
        multiply(average, rho, average)
        add(average, t, average)

    def block(var: Array, accum: Array, accum_update: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        decay(accum, g, t)
        add(accum_update, epsilon, u)
        sqrt(u, u)
        add(accum, epsilon, t)
        sqrt(t, t)
        divide(u, t, u)
        multiply(u, g, u)
        decay(accum_update, u, t)
        multiply(u, lr, u)
        subtract(var, u, var)

    in_blocks(block, (var, accum, accum_update), grad)


def _shrink(x: Array, by: np.generic | Array, t: Array) -> None:
    """Soft threshold of x in place."""
    absolute(x, t)
    subtract(t, by, t)
    maximum(t, x.dtype.type(0), out=t)
    sign(x, x)
    multiply(x, t, x)


def proximal_gradient_descent(var: Array, alpha: Array, l1: Array, l2: Array, delta: Array) -> None:
    by, scale = alpha * maximum(l1, 0 * l1), 1 + l2 * alpha

    def block(var: Array, g: Array) -> None:
        t, _, _ = scratch(g)
        multiply(g, alpha, t)
        subtract(var, t, var)
        _shrink(var, by, t)
        divide(var, scale, var)

    in_blocks(block, (var,), delta)


def proximal_adagrad(
    var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array
) -> None:
    def block(var: Array, accum: Array, g: Array) -> None:
        t, rate, by = scratch(g)
        multiply(g, g, t)
        add(accum, t, accum)
        sqrt(accum, rate)
        divide(lr, rate, rate)
        multiply(g, rate, t)
        subtract(var, t, var)
        multiply(rate, l1, by)
        maximum(by, g.dtype.type(0), out=by)
        _shrink(var, by, t)
        multiply(rate, l2, rate)
        add(rate, 1, rate)
        divide(var, rate, var)

    in_blocks(block, (var, accum), grad)


def adagrad_da(
    var: Array,
    gradient_accumulator: Array,
    gradient_squared_accumulator: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    global_step: Array,
) -> None:
    steps = np.asarray(global_step).astype(lr.dtype)
    by, rate, extra = maximum(steps * l1, 0 * lr), -lr, l2 * steps * lr

    def block(var: Array, total: Array, squares: Array, g: Array) -> None:
        t, _, _ = scratch(g)
        add(total, g, total)
        multiply(g, g, t)
        add(squares, t, squares)
        var[...] = total
        _shrink(var, by, t)
        multiply(var, rate, var)
        sqrt(squares, t)
        add(t, extra, t)
        divide(var, t, var)

    in_blocks(block, (var, gradient_accumulator, gradient_squared_accumulator), grad)


def ftrl(
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    lr_power: Array,
) -> None:
    _ftrl(var, accum, linear, grad, lr, l1, l2, None, lr_power)


def ftrl_v2(
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    l2_shrinkage: Array,
    lr_power: Array,
) -> None:
    _ftrl(var, accum, linear, grad, lr, l1, l2, 2 * l2_shrinkage, lr_power)


def _ftrl(
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    pull: Array | None,
    lr_power: Array,
) -> None:
    squared, exponent = bool(lr_power == -0.5), -lr_power

    def root(x: Array, out: Array) -> None:
        if squared:
            sqrt(x, out)
        else:
            power(x, exponent, out)

    def block(var: Array, accum: Array, linear: Array, g: Array) -> None:
        t, rooted, u = scratch(g)
        root(accum, t)
        multiply(g, g, u)
        add(accum, u, accum)
        root(accum, rooted)
        subtract(rooted, t, t)
        divide(t, lr, t)
        multiply(t, var, t)
        if pull is None:
            subtract(g, t, t)
        else:
            multiply(var, pull, u)
            add(g, u, u)
            subtract(u, t, t)
        add(linear, t, linear)
        maximum(linear, -l1, out=t)
        minimum(t, l1, out=t)
        subtract(t, linear, t)
        divide(rooted, lr, rooted)
        add(rooted, 2 * l2, rooted)
        divide(t, rooted, var)

    in_blocks(block, (var, accum, linear), grad)


def _sign_average(m: Array, g: Array, beta: Array, rest: Array, t: Array, u: Array) -> None:
    """m = m * beta + g * rest; t = sign(g) * sign(m)."""
    multiply(m, beta, m)
    multiply(g, rest, t)
    add(m, t, m)
    sign(g, t)
    sign(m, u)
    multiply(t, u, t)


def add_sign(
    var: Array, m: Array, lr: Array, alpha: Array, sign_decay: Array, beta: Array, grad: Array
) -> None:
    rest = 1 - beta

    def block(var: Array, m: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        _sign_average(m, g, beta, rest, t, u)
        multiply(t, sign_decay, t)
        add(t, alpha, t)
        multiply(t, lr, t)
        multiply(t, g, t)
        subtract(var, t, var)

    in_blocks(block, (var, m), grad)


def power_sign(
    var: Array,
    m: Array,
    lr: Array,
    logbase: Array,
    sign_decay: Array,
    beta: Array,
    grad: Array,
) -> None:
    rest, scale = 1 - beta, logbase * sign_decay

    def block(var: Array, m: Array, g: Array) -> None:
        t, u, _ = scratch(g)
        _sign_average(m, g, beta, rest, t, u)
        multiply(t, scale, t)
        exp(t, t)
        multiply(t, lr, t)
        multiply(t, g, t)
        subtract(var, t, var)

    in_blocks(block, (var, m), grad)


#: By the name of the rule.
INPLACE: dict[str, Callable[..., None]] = {
    "GradientDescent": gradient_descent,
    "Momentum": momentum,
    "KerasMomentum": keras_momentum,
    "Adam": adam,
    "AdamWithAmsgrad": adam_with_amsgrad,
    "AdaMax": ada_max,
    "RMSProp": rms_prop,
    "CenteredRMSProp": centered_rms_prop,
    "Adagrad": adagrad,
    "AdagradV2": adagrad_v2,
    "Adadelta": adadelta,
    "ProximalGradientDescent": proximal_gradient_descent,
    "ProximalAdagrad": proximal_adagrad,
    "AdagradDA": adagrad_da,
    "Ftrl": ftrl,
    "FtrlV2": ftrl_v2,
    "AddSign": add_sign,
    "PowerSign": power_sign,
}
