"""The update rules of the optimizers as pure formulas, and the table that the ops are made from.

A rule is a kernel in the input order of its dense op: ``rule(xp, *variables, *rest, **attrs)``
returns the new values of the variables. The dense op, its sparse form (the rule on some rows) and
both resource forms come from the one rule; inplace_updates.py has a blocked NumPy version with
the same order of operations, so that the bits are the same.

    >>> gradient_descent(np, np.float32(1.0), np.float32(0.5), np.float32(1.0))
    np.float32(0.5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.kernels.native.ir_values import Value

__all__ = ["RULES", "Rule"]


class Rule(NamedTuple):
    """One optimizer's update: the names in the op's signature, and the formula."""

    name: str  # Apply<name>
    variables: tuple[str, ...]  # the inputs that are updated; they come first
    rest: tuple[str, ...]  # the other inputs, in order
    update: Callable[..., Any]
    attrs: str = ""  # attributes after use_locking
    forms: str = "ref sparse resource"  # which ops TensorFlow registers: see apply_ops.py
    #: Numbers that have to be "positive", "non-negative" or "non-positive".
    signs: tuple[tuple[str, str], ...] = ()

    @property
    def gradient(self) -> str:
        return "delta" if "delta" in self.rest else "grad"

    def wrong_number(self, numbers: Mapping[str, Any]) -> str:
        """What is wrong with a number that has a limit; empty if nothing is."""
        for name, sign in self.signs:
            if not _HOLDS[sign](numbers[name]):
                return f"{name} is not a {sign} scalar: {numbers[name]}"
        return ""


_HOLDS: dict[str, Callable[[Any], Any]] = {
    "positive": lambda x: x > 0,
    "non-negative": lambda x: x >= 0,
    "non-positive": lambda x: x <= 0,
}


def gradient_descent(xp: ArrayNamespace, var: Array, alpha: Array, delta: Array) -> Any:
    return var - delta * alpha


def momentum(
    xp: ArrayNamespace,
    var: Array,
    accum: Array,
    lr: Array,
    grad: Array,
    momentum: Array,
    *,
    use_nesterov: bool,
) -> tuple[Array, Array]:
    accum = accum * momentum + grad
    if use_nesterov:
        return var - (grad * lr + accum * momentum * lr), accum
    return var - accum * lr, accum


def keras_momentum(
    xp: ArrayNamespace,
    var: Array,
    accum: Array,
    lr: Array,
    grad: Array,
    momentum: Array,
    *,
    use_nesterov: bool,
) -> tuple[Array, Array]:
    """Keras keeps the step itself, learning rate included, in the accumulator."""
    step = grad * lr
    accum = accum * momentum - step
    if use_nesterov:
        return var + (accum * momentum - step), accum
    return var + accum, accum


def adam(
    xp: ArrayNamespace,
    var: Any,
    m: Array | Value,
    v: Any,
    beta1_power: Array,
    beta2_power: Array,
    lr: Array,
    beta1: Array | Value,
    beta2: Array,
    epsilon: Any,
    grad: Array | Value,
    *,
    use_nesterov: bool,
) -> Any:
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    if xp.name == "numpy" and not use_nesterov and type(grad) is np.ndarray and grad.ndim:
        return _adam_in_few_arrays(var, m, v, rate, 1 - beta1, 1 - beta2, epsilon, grad)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    step = grad * (1 - beta1) + m * beta1 if use_nesterov else m
    return var - step * rate / (xp.sqrt(v) + epsilon), m, v


def _adam_in_few_arrays(
    var: Array,
    m: object,
    v: Array,
    rate: np.generic,
    rest1: object,
    rest2: object,
    epsilon: Array | np.generic,
    grad: Array,
) -> tuple[Array, Array, Array]:
    """The same operations in the same order, each into an array that is there already."""
    new_m = grad - m
    new_m *= rest1
    new_m += m
    new_v = grad * grad
    new_v -= v
    new_v *= rest2
    new_v += v
    scale = np.sqrt(new_v)
    scale += epsilon
    step = new_m * rate
    step /= scale
    return np.subtract(var, step, step), new_m, new_v


def adam_with_amsgrad(
    xp: ArrayNamespace,
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
) -> tuple[Array, Array, Array, Array]:
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    vhat = xp.maximum(vhat, v)
    return var - m * rate / (xp.sqrt(vhat) + epsilon), m, v, vhat


def ada_max(
    xp: ArrayNamespace,
    var: Array,
    m: Array,
    v: Array,
    beta1_power: Array,
    lr: Array,
    beta1: Array,
    beta2: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array]:
    m = m + (grad - m) * (1 - beta1)
    v = xp.maximum(v * beta2, xp.abs(grad))
    return var - m / (v + epsilon) * (lr / (1 - beta1_power)), m, v


def rms_prop(
    xp: ArrayNamespace,
    var: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rms_prop(
    xp: ArrayNamespace,
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array, Array]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def adagrad(
    xp: ArrayNamespace, var: Array, accum: Array, lr: Array, grad: Array, *, update_slots: bool
) -> tuple[Array, Array]:
    if update_slots:
        accum = accum + grad * grad
    return var - grad * lr / xp.sqrt(accum), accum


def adagrad_v2(
    xp: ArrayNamespace,
    var: Array,
    accum: Array,
    lr: Array,
    epsilon: Array,
    grad: Array,
    *,
    update_slots: bool,
) -> tuple[Array, Array]:
    if update_slots:
        accum = accum + grad * grad
    return var - grad * lr / (xp.sqrt(accum) + epsilon), accum


def adadelta(
    xp: ArrayNamespace,
    var: Array,
    accum: Array,
    accum_update: Array,
    lr: Array,
    rho: Array,
    epsilon: Array,
    grad: Array,
) -> tuple[Array, Array, Array]:
    accum = accum * rho + grad * grad * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    accum_update = accum_update * rho + update * update * (1 - rho)
    return var - update * lr, accum, accum_update


def shrunk(xp: ArrayNamespace, x: Array, by: Array) -> Array:
    """Soft threshold: x moved towards zero by ``by``."""
    return xp.sign(x) * xp.maximum(xp.abs(x) - by, 0 * by)


def proximal_gradient_descent(
    xp: ArrayNamespace, var: Array, alpha: Array, l1: Array, l2: Array, delta: Array
) -> Any:
    by = alpha * xp.maximum(l1, 0 * l1)  # (a negative rate moves away from zero, as in TensorFlow)
    return shrunk(xp, var - delta * alpha, by) / (1 + l2 * alpha)


def proximal_adagrad(
    xp: ArrayNamespace, var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array
) -> tuple[Array, Array]:
    accum = accum + grad * grad
    rate = lr / xp.sqrt(accum)
    return shrunk(xp, var - grad * rate, rate * l1) / (rate * l2 + 1), accum


def adagrad_da(
    xp: ArrayNamespace,
    var: Array,
    gradient_accumulator: Array,
    gradient_squared_accumulator: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    global_step: Array,
) -> tuple[Array, Array, Array]:
    """Dual averaging: the variable is a function of the accumulated gradients alone."""
    steps = global_step if xp.name == "native" else xp.asarray(global_step).astype(lr.dtype)
    total = gradient_accumulator + grad
    squares = gradient_squared_accumulator + grad * grad
    new = (
        shrunk(xp, total, steps * xp.maximum(l1, 0 * l1))
        * -lr
        / (xp.sqrt(squares) + l2 * steps * lr)
    )
    return new, total, squares


def root(xp: ArrayNamespace, x: Array | Value, lr_power: Any) -> Array:
    """x ** -lr_power; the usual -0.5 is a square root."""
    if xp.name == "numpy" and lr_power == -0.5:
        return xp.sqrt(x)
    return xp.power(x, -lr_power)


def ftrl(
    xp: ArrayNamespace,
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    lr_power: Array,
) -> tuple[Array, Array, Array]:
    return _ftrl(xp, var, accum, linear, grad, grad, lr, l1, l2, lr_power)


def ftrl_v2(
    xp: ArrayNamespace,
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    l2_shrinkage: Array,
    lr_power: Array,
) -> tuple[Array, Array, Array]:
    """The gradient of the shrinkage term enters ``linear`` but not ``accum``."""
    pulled = grad + var * (2 * l2_shrinkage)
    return _ftrl(xp, var, accum, linear, grad, pulled, lr, l1, l2, lr_power)


def _ftrl(
    xp: ArrayNamespace,
    var: object,
    accum: Any,
    linear: Array | Value,
    grad: Array | Value,
    pulled: object,
    lr: Any,
    l1: Array | Value,
    l2: Any,
    lr_power: object,
) -> tuple[Any, Any, Any]:
    new = accum + grad * grad
    rooted = root(xp, new, lr_power)
    linear = linear + (pulled - (rooted - root(xp, accum, lr_power)) / lr * var)
    bounded = xp.minimum(xp.maximum(linear, -l1), l1)
    return (bounded - linear) / (rooted / lr + 2 * l2), new, linear


def add_sign(
    xp: ArrayNamespace,
    var: Array,
    m: Array,
    lr: Array,
    alpha: Array,
    sign_decay: Array,
    beta: Array,
    grad: Array,
) -> tuple[Array, Array]:
    m = m * beta + grad * (1 - beta)
    agree = xp.sign(grad) * xp.sign(m)
    return var - (agree * sign_decay + alpha) * lr * grad, m


def power_sign(
    xp: ArrayNamespace,
    var: Array,
    m: Array,
    lr: Array,
    logbase: Array,
    sign_decay: Array,
    beta: Array,
    grad: Array,
) -> tuple[Array, Array]:
    m = m * beta + grad * (1 - beta)
    agree = xp.sign(grad) * xp.sign(m)
    return var - xp.exp(agree * (logbase * sign_decay)) * lr * grad, m


def _rule(
    name: str,
    variables: str,
    rest: str,
    update: Callable[..., Any],
    attrs: str = "",
    forms: str = "ref sparse resource",
    signs: str = "",
) -> Rule:
    """``signs``: "lr>0 l1>=0 power<=0"."""
    limits = tuple([_limit(text) for text in signs.split()])
    return Rule(name, tuple(variables.split()), tuple(rest.split()), update, attrs, forms, limits)


_LIMITS = {">": "positive", ">=": "non-negative", "<=": "non-positive"}


def _limit(text: str) -> tuple[str, str]:
    name, sign = text[:-1].rstrip("<>="), text[:-1].lstrip("abcdefghijklmnopqrstuvwxyz_0123456789")
    return name, _LIMITS[sign]


_NESTEROV = "use_nesterov: bool=False"
_SLOTS = "update_slots: bool=True"
_RATES = "lr>0 l1>=0 l2>=0"
_DA = "var gradient_accumulator gradient_squared_accumulator"

#: By the name after "Apply". The gradient (``grad`` or ``delta``) is where it is in TensorFlow's
#: op; the sparse forms have ``indices`` right after it. ``forms`` without "ref" are only there for
#: resource variables.
RULES: dict[str, Rule] = {
    r.name: r
    for r in (
        _rule("GradientDescent", "var", "alpha delta", gradient_descent, forms="ref resource"),
        _rule("Momentum", "var accum", "lr grad momentum", momentum, _NESTEROV),
        _rule(
            "KerasMomentum",
            "var accum",
            "lr grad momentum",
            keras_momentum,
            _NESTEROV,
            "sparse resource",
        ),
        _rule(
            "Adam",
            "var m v",
            "beta1_power beta2_power lr beta1 beta2 epsilon grad",
            adam,
            _NESTEROV,
            "ref resource",
        ),
        _rule(
            "AdamWithAmsgrad",
            "var m v vhat",
            "beta1_power beta2_power lr beta1 beta2 epsilon grad",
            adam_with_amsgrad,
            forms="resource",
        ),
        _rule(
            "AdaMax",
            "var m v",
            "beta1_power lr beta1 beta2 epsilon grad",
            ada_max,
            forms="ref resource",
        ),
        _rule("RMSProp", "var ms mom", "lr rho momentum epsilon grad", rms_prop),
        _rule(
            "CenteredRMSProp", "var mg ms mom", "lr rho momentum epsilon grad", centered_rms_prop
        ),
        _rule("Adagrad", "var accum", "lr grad", adagrad, _SLOTS),
        _rule("AdagradV2", "var accum", "lr epsilon grad", adagrad_v2, _SLOTS),
        _rule("Adadelta", "var accum accum_update", "lr rho epsilon grad", adadelta),
        _rule("ProximalGradientDescent", "var", "alpha l1 l2 delta", proximal_gradient_descent),
        _rule("ProximalAdagrad", "var accum", "lr l1 l2 grad", proximal_adagrad, signs=_RATES),
        _rule("AdagradDA", _DA, "grad lr l1 l2 global_step", adagrad_da),
        _rule(
            "Ftrl",
            "var accum linear",
            "grad lr l1 l2 lr_power",
            ftrl,
            signs=f"{_RATES} lr_power<=0",
        ),
        _rule(
            "FtrlV2",
            "var accum linear",
            "grad lr l1 l2 l2_shrinkage lr_power",
            ftrl_v2,
            signs=f"{_RATES} l2_shrinkage>=0 lr_power<=0",
        ),
        _rule("AddSign", "var m", "lr alpha sign_decay beta grad", add_sign, forms="ref resource"),
        _rule(
            "PowerSign",
            "var m",
            "lr logbase sign_decay beta grad",
            power_sign,
            forms="ref resource",
        ),
    )
}
