"""Optimizers of ``tf.contrib.opt``: Adam whose corrections follow the global step, and Adagrad
whose accumulators may be left alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.ops.array.basic import identity
from headrace.ops.math.binary import pow as power
from headrace.train.optimizers.adam_variants import LazyAdamOptimizer
from headrace.train.optimizers.standard import AdagradOptimizer, AdamOptimizer
from headrace.train.tensor_helpers import cast

if TYPE_CHECKING:
    from headrace.core.annotations import Hyperparameter, TensorLike
    from headrace.variables.variable import Variable

__all__ = ["AdamGSOptimizer", "LazyAdamGSOptimizer", "RegAdagradOptimizer"]


class AdamGSOptimizer(AdamOptimizer):
    """Adam without variables for the powers of its betas: they are those of the global step + 1.

    ``global_step`` is a tensor or variable (0: always the first step).
    """

    def __init__(
        self,
        global_step: TensorLike | None = 0,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._global_step = global_step
        self._exponent: Any = None

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        return power(self._beta1_t, self._exponent), power(self._beta2_t, self._exponent)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        super()._prepare()
        self._exponent = cast(identity(self._global_step) + 1, dtypes.float32)

    def _finish(self, update_ops: Any, name_scope: str) -> Any:
        """No powers to update: the updates themselves."""
        return super(AdamOptimizer, self)._finish(update_ops, name_scope)


class LazyAdamGSOptimizer(AdamGSOptimizer, LazyAdamOptimizer):
    """``AdamGSOptimizer`` that changes nothing but the rows of a sparse gradient.

    ``global_step`` is the variable that counts the steps; the other arguments are
    ``tf.train.AdamOptimizer``'s.
    """


class RegAdagradOptimizer(AdagradOptimizer):
    """Adagrad that, within ``avoid_updating_slots()``, leaves its accumulators as they are.

    So a regularizer's gradient does not change the rates of the loss's gradient.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "RegAdagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._should_update_slots = True

    @contextlib.contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """``apply_gradients`` inside does not change accumulators."""
        before = self._should_update_slots
        self._should_update_slots = False
        try:
            yield
        finally:
            self._should_update_slots = before

    def _attrs(self) -> dict[str, Any]:
        return {"update_slots": self._should_update_slots}
