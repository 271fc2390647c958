"""Optimizers with l1 and l2 penalties built into the update.

Ftrl, the proximal ones, dual averaging.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.scopes import colocate_with
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant, identity
from headrace.ops.training.update_rules import RULES, Rule
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.rule_optimizer import RuleOptimizer
from headrace.train.tensor_helpers import op_of

if TYPE_CHECKING:
    from headrace.core.annotations import Hyperparameter
    from headrace.variables.variable import Variable

__all__ = [
    "AdagradDAOptimizer",
    "FtrlOptimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
]


def _full(var: Variable, value: float) -> Tensor:
    """A constant in the shape of a variable."""
    return constant(value, dtype=var.dtype.base_dtype, shape=var.get_shape())


def _regularized(name: str) -> str:
    """The attribute that holds the tensor of an input of the regularized rules."""
    names = {
        "lr": "learning_rate",
        "alpha": "learning_rate",
        "lr_power": "learning_rate_power",
        "l1": "l1_regularization_strength",
        "l2": "l2_regularization_strength",
        "l2_shrinkage": "l2_shrinkage_regularization_strength",
    }
    return f"_{names[name]}_tensor"


class _RegularizedOptimizer(RuleOptimizer):
    """A rule with learning rate and l1, l2 penalties, kept as ``_<name>_tensor``."""

    __slots__ = ()

    _learning_rate: Any
    _l1_regularization_strength: Any
    _l2_regularization_strength: Any

    def _scalar(self, name: str) -> Any:
        return getattr(self, _regularized(name))

    def _prepare(self) -> None:
        for name in self._hyperparameters():
            setattr(self, f"_{name}_tensor", self._tensor(getattr(self, f"_{name}"), name))

    def _hyperparameters(self) -> tuple[str, ...]:
        return ("learning_rate", "l1_regularization_strength", "l2_regularization_strength")


class FtrlOptimizer(_RegularizedOptimizer, Optimizer):
    """Follow the regularized leader, with l1, l2 and shrinkage-type l2 penalties."""

    def __init__(
        self,
        learning_rate: Hyperparameter,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        if learning_rate_power > 0.0:
            raise ValueError(
                f"learning_rate_power {learning_rate_power:f} needs to be negative or zero"
            )
        for label, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{label} {value:f} needs to be positive or zero")
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _rule(self) -> Rule:
        return RULES["FtrlV2" if self._l2_shrinkage_regularization_strength > 0.0 else "Ftrl"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("accum", "linear")

    def _hyperparameters(self) -> tuple[str, ...]:
        return (
            *super()._hyperparameters(),
            "l2_shrinkage_regularization_strength",
            "learning_rate_power",
        )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            with colocate_with(op_of(v)):
                start = _full(v, self._initial_accumulator_value)
                self._get_or_make_slot(v, start, "accum", self._accum_name or self._name)
                self._zeros_slot(v, "linear", self._linear_name or self._name)


class ProximalGradientDescentOptimizer(_RegularizedOptimizer, Optimizer):
    """Gradient descent followed by the proximal step of the l1 and l2 penalties."""

    def __init__(
        self,
        learning_rate: Hyperparameter,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _rule(self) -> Rule:
        return RULES["ProximalGradientDescent"]


class ProximalAdagradOptimizer(_RegularizedOptimizer, Optimizer):
    """Adagrad followed by the proximal step of the l1 and l2 penalties."""

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _rule(self) -> Rule:
        return RULES["ProximalAdagrad"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("accumulator",)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            with colocate_with(op_of(v)):
                start = _full(v, self._initial_accumulator_value)
            self._get_or_make_slot(v, start, "accumulator", self._name)


class AdagradDAOptimizer(_RegularizedOptimizer, Optimizer):
    """Adagrad with dual averaging.

    Each variable is computed anew from its summed gradients and the step.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        global_step: Variable | Tensor,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_gradient_squared_accumulator_value = (
            initial_gradient_squared_accumulator_value
        )
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._global_step = global_step
        self._learning_rate_tensor: Any = None
        self._global_step_on_worker: Any = None

    def _rule(self) -> Rule:
        return RULES["AdagradDA"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("gradient_accumulator", "gradient_squared_accumulator")

    def _scalar(self, name: str) -> Any:
        if name == "global_step":
            return self._global_step_here
        return (
            self._learning_rate_tensor
            if name == "lr"
            else getattr(self, f"_{name}_regularization_strength")
        )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            with colocate_with(op_of(v)):
                zeros = _full(v, 0.0)
                squares = _full(v, self._initial_gradient_squared_accumulator_value)
            self._get_or_make_slot(v, zeros, "gradient_accumulator", self._name)
            self._get_or_make_slot(v, squares, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        with colocate_with(op_of(self._learning_rate_tensor)):
            self._global_step_on_worker = identity(self._global_step) + 1

    def _update(
        self, prefix: str, var: Variable, grad: Tensor, indices: Tensor | None, dtype: dtypes.DType
    ) -> Any:
        self._global_step_here = identity(self._global_step_on_worker)
        return super()._update(prefix, var, grad, indices, dtype)
