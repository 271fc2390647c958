"""``tf.contrib.opt``: PowerSign and AddSign, and how their sign's weight decays.

Steps are larger while gradient and momentum agree in sign (https://arxiv.org/abs/1709.07417).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.tensor import Tensor
from headrace.ops.array.gathering import gather
from headrace.ops.array.selecting import where
from headrace.ops.control.dependencies import group
from headrace.ops.math import binary, unary
from headrace.ops.math.comparison import greater_equal
from headrace.ops.state.ref_scatter import scatter_sub
from headrace.ops.state.ref_state import assign
from headrace.ops.training.update_rules import RULES, Rule
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.rule_optimizer import RuleOptimizer
from headrace.train.tensor_helpers import cast

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.variables.variable import Variable


__all__ = [
    "AddSignOptimizer", "PowerSignOptimizer", "get_cosine_decay_fn", "get_linear_decay_fn",
    "get_restart_decay_fn",
]  # fmt: skip

DecayFn = Callable[[Any], Any]


class _SignOptimizer(RuleOptimizer):
    """What both share: one slot, and the decay of the sign's weight."""

    __slots__ = ()

    def __init__(
        self,
        learning_rate: object,
        beta: object,
        sign_decay_fn: DecayFn | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta, self._sign_decay_fn = learning_rate, beta, sign_decay_fn
        self._tensors: dict[str, Any] = {}

    def _base_number(self) -> tuple[str, Any]:
        """The name and value of the number that only this kind has."""
        raise NotImplementedError

    def _multiplier(self, own: object, agreement: object) -> Any:
        """By what a step is multiplied; ``agreement``: the decayed product of both signs."""
        raise NotImplementedError

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Tensor | Variable | None = None,
        name: str | None = None,
    ) -> Any:
        """As of every optimizer; the decay of the sign is taken at ``global_step``."""
        if self._sign_decay_fn is not None:
            decay = self._sign_decay_fn(global_step)
            self._tensors["sign_decay"] = convert_to_tensor(decay, name="sign_decay")
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "m", self._name)

    def _slot_names(self) -> tuple[str, ...]:
        return ("m",)

    def _prepare(self) -> None:
        key, value = self._base_number()
        self._tensors["lr"] = convert_to_tensor(self._lr, name="learning_rate")
        self._tensors["beta"] = convert_to_tensor(self._beta, name="beta")
        self._tensors[key] = convert_to_tensor(value, name=key)
        if self._sign_decay_fn is None:
            self._tensors["sign_decay"] = convert_to_tensor(1.0, name="sign_decay")

    def _scalar(self, name: str) -> Tensor:
        found: Tensor = self._tensors[name]
        return found

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        key, _ = self._base_number()
        lr, beta, decay, own = (
            cast(self._scalar(n), var.dtype.base_dtype) for n in ("lr", "beta", "sign_decay", key)
        )
        m = self.get_slot(var, "m")
        dense = convert_to_tensor(grad)
        m_t = assign(m, (m * beta) + (dense * (1 - beta)), use_locking=self._use_locking)
        signs: Any = gather(unary.sign(m_t), grad.indices) * unary.sign(grad.values)
        step = lr * self._multiplier(own, decay * signs) * grad.values
        update = scatter_sub(var, grad.indices, step, use_locking=self._use_locking)
        return group(update, m_t)

    def _resource_apply_sparse(self, grad: TensorLike, handle: object, indices: TensorLike) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no update for sparse gradients of resource variables, as "
            "in TensorFlow 1.15"
        )


class PowerSignOptimizer(_SignOptimizer, Optimizer):
    """Steps multiplied by ``base ** (decay * sign(gradient) * sign(momentum))``.

    ``beta`` is the decay of the momentum; ``sign_decay_fn(global_step)`` gives the decay (1 without
    it), for example ``get_cosine_decay_fn``. From https://arxiv.org/abs/1709.07417.
    """

    def __init__(
        self,
        learning_rate: object = 0.1,
        base: float = math.e,
        beta: TensorLike = 0.9,
        sign_decay_fn: DecayFn | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._logbase = math.log(base)

    def _rule(self) -> Rule:
        return RULES["PowerSign"]

    def _base_number(self) -> tuple[str, Any]:
        return "logbase", self._logbase

    def _multiplier(self, own: Any, agreement: Any) -> Tensor:
        return binary.pow(convert_to_tensor(math.e, own.dtype), own * agreement)


class AddSignOptimizer(_SignOptimizer, Optimizer):
    """Steps multiplied by ``alpha + decay * sign(gradient) * sign(momentum)``.

    ``beta`` is the decay of the momentum; ``sign_decay_fn(global_step)`` gives the decay (1 without
    it), for example ``get_linear_decay_fn``. From https://arxiv.org/abs/1709.07417.
    """

    def __init__(
        self,
        learning_rate: object = 0.1,
        alpha: object = 1.0,
        beta: TensorLike = 0.9,
        sign_decay_fn: DecayFn | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha

    def _rule(self) -> Rule:
        return RULES["AddSign"]

    def _base_number(self) -> tuple[str, Any]:
        return "alpha", self._alpha

    def _multiplier(self, own: Any, agreement: Any) -> Any:
        return own + agreement


def _float(value: TensorLike) -> Any:
    return cast(convert_to_tensor(value), dtypes.float32)


def _limited(global_step: Variable | Tensor, decay_steps: Any, what: str) -> Tensor:
    if global_step is None:
        raise ValueError(f"global_step is required for {what}.")
    return binary.minimum(global_step, decay_steps)


def _cosine(fraction: Tensor) -> Any:
    angle: Any = unary.cos(math.pi * fraction)
    return 0.5 * (1.0 + angle)


def _zero_from(decayed: Tensor, at: Tensor, limit: float | None) -> Tensor:
    return decayed if limit is None else where(greater_equal(at, limit), 0.0, decayed)


def get_linear_decay_fn(decay_steps: TensorLike) -> DecayFn:
    """A decay from 1 to 0 over ``decay_steps`` steps."""

    def decay(global_step: Variable | Tensor) -> Tensor:
        step = _limited(global_step, decay_steps, "linear_decay")
        return binary.maximum(0.0, (_float(decay_steps) - _float(step)) / _float(decay_steps))

    return decay


def get_cosine_decay_fn(
    decay_steps: TensorLike, num_periods: float = 0.5, zero_after: float | None = None
) -> DecayFn:
    """``num_periods`` waves of a cosine over ``decay_steps``; 0 after ``zero_after`` waves."""

    def decay(global_step: Variable | Tensor) -> Tensor:
        step = _limited(global_step, decay_steps, "cosine_decay")
        fraction = 2.0 * num_periods * (_float(step) / _float(decay_steps))
        limit = None if zero_after is None else 2 * zero_after
        return _zero_from(_cosine(fraction), fraction, limit)

    return decay


def get_restart_decay_fn(
    decay_steps: TensorLike, num_periods: int = 1, zero_after: float | None = None
) -> DecayFn:
    """Half a wave of a cosine, ``num_periods`` times; 0 after ``zero_after`` of them."""

    def decay(global_step: Variable | Tensor) -> Tensor:
        step = _limited(global_step, decay_steps, "cosine_decay")
        done = binary.mod(num_periods * _float(step), _float(decay_steps))
        decayed = _cosine(done / _float(decay_steps))
        return _zero_from(decayed, _float(num_periods * step) / _float(decay_steps), zero_after)

    return decay
