"""``tf.train.experimental``: losses that are multiplied before their gradients are taken, so that
small float16 gradients do not vanish.

optimizer = enable_mixed_precision_graph_rewrite(tf.train.AdamOptimizer(1e-3), "dynamic")
optimizer.minimize(loss)

TensorFlow's rewrite to float16 takes place on GPUs only; on a CPU, there as here, operations keep
their types, and the optimizer that scales the loss is all that changes.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import float32, int64
from headrace.core.indexed_slices import IndexedSlices
from headrace.eager.eager_context import executing_eagerly
from headrace.ops.array.basic import no_op
from headrace.ops.control.control_flow import cond, smart_cond
from headrace.ops.control.dependencies import group
from headrace.ops.math.binary import maximum
from headrace.ops.math.comparison import is_finite
from headrace.ops.math.reductions import reduce_all
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.optimizer_v2 import OptimizerV2
from headrace.train.tracked_objects import Tracking
from headrace.variables.variable import create_variable

if TYPE_CHECKING:
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "MixedPrecisionLossScaleOptimizer",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
]


class LossScale(Tracking, metaclass=abc.ABCMeta):
    """Base: calling it gives the scale, ``update`` adapts it to the gradients of a step."""

    @abc.abstractmethod
    def __call__(self) -> Tensor:
        """The scale, a scalar of float32."""

    @abc.abstractmethod
    def update(self, grads: Any) -> tuple[Any, Any]:
        """(operation that adapts the scale, whether the gradients shall be applied)."""

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LossScale:
        """A scale of this class from ``get_config()``."""
        return cls(**config)

    def _add_weight(self, name: str, initial_value: float, dtype: DType | None = None) -> Variable:
        """A variable that checkpoints know by ``name``."""
        if name in self.__dict__:
            raise RuntimeError(f"Duplicate variables detected. {name}")
        made: Variable = create_variable(
            initial_value, trainable=False, name=name, dtype=dtype, use_resource=True
        )
        setattr(self, name, made)
        return made


class FixedLossScale(LossScale):
    """Always the same number, 1 or more."""

    def __init__(self, loss_scale_value: float) -> None:
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        return convert_to_tensor(self._loss_scale_value)

    def update(self, grads: Any) -> tuple[Any, Any]:
        """Nothing changes; all gradients are applied."""
        del grads
        return no_op(), True

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"loss_scale_value": self._loss_scale_value}

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"


def _effect(value: Any) -> Any:
    """The operation of a tensor in a graph; eagerly the value."""
    return value if executing_eagerly() else value.op


class DynamicLossScale(LossScale):
    """Grows after ``increment_period`` steps whose gradients were all finite, and shrinks after a
    step with an infinite one or a NaN, which is left out.
    """

    _TF_MODULE_IGNORED_PROPERTIES = frozenset(
        (*Tracking._TF_MODULE_IGNORED_PROPERTIES, "_scale", "_good")
    )

    def __init__(
        self,
        initial_loss_scale: float = 2**15,
        increment_period: int = 2000,
        multiplier: float = 2.0,
    ) -> None:
        self._initial = float(initial_loss_scale)
        self._period = int(increment_period)
        self._multiplier = float(multiplier)
        self._scale: Any = self._add_weight("current_loss_scale", self._initial, float32)
        self._good: Any = self._add_weight("good_steps", 0, int64)

    @property
    def initial_loss_scale(self) -> float:
        """The first scale."""
        return self._initial

    @property
    def increment_period(self) -> int:
        """After how many good steps the scale grows."""
        return self._period

    @property
    def multiplier(self) -> float:
        """What the scale is multiplied with, or divided by."""
        return self._multiplier

    def __call__(self) -> Tensor:
        return convert_to_tensor(self._scale)

    def update(self, grads: Any) -> tuple[Any, Any]:
        """Adapt the scale; gradients are applied if all of them are finite."""
        given = [g for g in nest.flatten(grads) if g is not None]
        parts = [g.values if isinstance(g, IndexedSlices) else g for g in given]
        finite = reduce_all([reduce_all(is_finite(g)) for g in parts])
        return cond(finite, self._after_a_good_step, self._after_a_bad_step), finite

    def _after_a_good_step(self) -> Any:
        def grow() -> Any:
            larger = self._scale * self._multiplier
            written = cond(is_finite(larger), lambda: _effect(self._scale.assign(larger)), no_op)
            return group(written, self._good.assign(0))

        return cond(self._good + 1 >= self._period, grow, lambda: _effect(self._good.assign_add(1)))

    def _after_a_bad_step(self) -> Any:
        smaller = maximum(self._scale / self._multiplier, 1)
        return group(self._good.assign(0), self._scale.assign(smaller))

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {
            "initial_loss_scale": self._initial,
            "increment_period": self._period,
            "multiplier": self._multiplier,
        }

    def __repr__(self) -> str:
        state = ""
        if executing_eagerly():
            state = (
                f"current_loss_scale={self._scale.numpy()}, num_good_steps={self._good.numpy()}, "
            )
        return (
            f"DynamicLossScale({state}initial_loss_scale={self._initial}, "
            f"increment_period={self._period}, multiplier={self._multiplier})"
        )


def _loss_scale(identifier: Any) -> Any:
    """The LossScale that a number, "dynamic" or a LossScale stands for."""
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if identifier == "dynamic":
        return DynamicLossScale()
    if identifier is None or isinstance(identifier, LossScale):
        return identifier
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """An optimizer around ``opt``: the loss is multiplied by ``loss_scale`` (a number, "dynamic" or
    a LossScale), the gradients are divided by it.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        self._loss_scale = _loss_scale(loss_scale)
        #: What checkpoints of objects find below the optimizer.
        self._tracked = {"base_optimizer": opt, "loss_scale": self._loss_scale}

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """(gradient, variable) pairs of the loss, computed through the scaled loss."""
        scale = self._loss_scale()
        scaled: Any = (lambda: loss() * scale) if callable(loss) else loss * scale
        pairs = self._optimizer.compute_gradients(scaled, *args, **kwargs)
        inverse = 1 / self._loss_scale()
        return [(None if g is None else _scaled(g, inverse), v) for g, v in pairs]

    def apply_gradients(
        self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None
    ) -> Any:
        """One step of the wrapped optimizer; with a dynamic scale only if all gradients are
        finite.
        """
        pairs = list(grads_and_vars)
        if not isinstance(self._loss_scale, DynamicLossScale):
            return self._optimizer.apply_gradients(pairs, global_step, name)
        name = self.get_name() if name is None else name
        update, finite = self._loss_scale.update([g for g, _ in pairs])

        def step() -> Any:
            return self._optimizer.apply_gradients(pairs, global_step, f"{name}-wrapped")

        apply: Callable[[], Any] = no_op
        return group(smart_cond(finite, step, apply), update, name=name)


def _scaled(grad: Any, factor: Tensor) -> Any:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
    return grad * factor


def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """``opt`` with loss scaling. No operation changes its type: that is done on GPUs only."""
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError(
            '"opt" must not already be an instance of a MixedPrecisionLossScaleOptimizer. '
            "`enable_mixed_precision_graph_rewrite` will automatically wrap the optimizer with a "
            "MixedPrecisionLossScaleOptimizer."
        )
    if isinstance(opt, Optimizer):
        return MixedPrecisionLossScaleOptimizer(opt, loss_scale)
    if isinstance(opt, OptimizerV2):
        raise NotImplementedError(
            "enable_mixed_precision_graph_rewrite of a Keras optimizer: Headrace has no "
            "LossScaleOptimizer for these; use the optimizer of tf.train of the same name"
        )
    raise ValueError(
        '"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, '
        f"but got: {opt}"
    )


def disable_mixed_precision_graph_rewrite() -> None:
    """Nothing is rewritten, so there is nothing to disable; optimizers stay as they are."""
