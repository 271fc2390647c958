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


#: Inputs of update rules -> the hyperparameters that they are given.
_HYPERPARAMETERS = {
    "lr": "learning_rate",
    "alpha": "learning_rate",
    "lr_power": "learning_rate_power",
    "l1": "l1_regularization_strength",
    "l2": "l2_regularization_strength",
    "l2_shrinkage": "l2_shrinkage_regularization_strength",
}


class _RegularizedOptimizer(RuleOptimizer):
    """A rule with hyperparameters: kept as ``_<name>``, with tensors ``_<name>_tensor``.

    A mixin, as RuleOptimizer is: its classes have ``tf.train.Optimizer`` as their ``__base__``.
    """

    __slots__ = ()

    _learning_rate: Any
    _learning_rate_tensor: Any

    def __init__(self, use_locking: bool, name: str, **hyperparameters: Hyperparameter) -> None:
        super().__init__(use_locking, name)
        self._hyperparameters = tuple(hyperparameters)
        for label, value in hyperparameters.items():
            setattr(self, f"_{label}", value)

    def _scalar(self, name: str) -> Any:
        return getattr(self, f"_{_HYPERPARAMETERS[name]}_tensor")

    def _prepare(self) -> None:
        for label in self._hyperparameters:
            setattr(self, f"_{label}_tensor", self._tensor(getattr(self, f"_{label}"), label))

    def _create_filled_slots(self, var: Variable, values: dict[str, float]) -> None:
        """Slots of a variable, each filled with its value."""
        with colocate_with(op_of(var)):
            starts = {slot: _full(var, value) for slot, value in values.items()}
        for slot, start in starts.items():
            self._get_or_make_slot(var, start, slot, self._name)


def _refuse_not_positive(label: str, value: float) -> None:
    if value <= 0.0:
        raise ValueError(f"{label} must be positive: {value}")


def _refuse_negative(**values: float) -> None:
    for label, value in values.items():
        if value < 0.0:
            raise ValueError(f"{label} {value:f} needs to be positive or zero")


class FtrlOptimizer(_RegularizedOptimizer, Optimizer):
    """Follow the regularized leader: sparse linear models with l1 and l2 penalties.

    ``learning_rate_power`` (-0.5) shapes the fall of the learning rate;
    ``l1_regularization_strength`` makes weights exactly zero;
    ``l2_shrinkage_regularization_strength`` shrinks them in each step.

    ``initial_accumulator_value`` begins the sum of squared gradients,
    ``l2_regularization_strength`` is the l2 penalty; ``accum_name`` and ``linear_name`` name the
    two slots. ``learning_rate`` is a number or a tensor, such as ``tf.train.exponential_decay``
    gives. ``use_locking`` has no effect: concurrent updates are never lost.
    """

    _l2_shrinkage_regularization_strength: float

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
        penalties = {
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            **penalties,
            learning_rate_power=learning_rate_power,
        )
        if learning_rate_power > 0.0:
            raise ValueError(
                f"learning_rate_power {learning_rate_power:f} needs to be negative or zero"
            )
        _refuse_negative(initial_accumulator_value=initial_accumulator_value, **penalties)
        self._initial_accumulator_value = initial_accumulator_value
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _rule(self) -> Rule:
        return RULES["FtrlV2" if self._l2_shrinkage_regularization_strength > 0.0 else "Ftrl"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("accum", "linear")

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            with colocate_with(op_of(v)):
                start = _full(v, self._initial_accumulator_value)
                self._get_or_make_slot(v, start, "accum", self._accum_name or self._name)
                self._zeros_slot(v, "linear", self._linear_name or self._name)


class _ProximalOptimizer(_RegularizedOptimizer):
    """Hyperparameters are float32 as they are: TensorFlow casts them for sparse updates of
    resource variables alone, and refuses variables of other types otherwise.
    """

    __slots__ = ()

    def _casts(self, prefix: str) -> bool:
        return prefix == "ResourceSparseApply"


class ProximalGradientDescentOptimizer(_ProximalOptimizer, Optimizer):
    """Gradient descent followed by the proximal step of an l1 and an l2 penalty.

    ``l1_regularization_strength`` and ``l2_regularization_strength`` are the penalties: the first
    makes weights exactly zero, the second shrinks them. ``learning_rate`` is a number or a tensor,
    such as ``tf.train.exponential_decay`` gives. ``use_locking`` has no effect: concurrent updates
    are never lost.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )

    def _rule(self) -> Rule:
        return RULES["ProximalGradientDescent"]


class ProximalAdagradOptimizer(_ProximalOptimizer, Optimizer):
    """Adagrad followed by the proximal step of an l1 and an l2 penalty.

    ``l1_regularization_strength`` and ``l2_regularization_strength`` are the penalties: the first
    makes weights exactly zero, the second shrinks them. ``initial_accumulator_value`` begins the
    sum of squared gradients. ``learning_rate`` is a number or a tensor, such as
    ``tf.train.exponential_decay`` gives. ``use_locking`` has no effect: concurrent updates are
    never lost.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        _refuse_not_positive("initial_accumulator_value", initial_accumulator_value)
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        self._initial_accumulator_value = initial_accumulator_value

    def _rule(self) -> Rule:
        return RULES["ProximalAdagrad"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("accumulator",)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            self._create_filled_slots(v, {"accumulator": self._initial_accumulator_value})


class AdagradDAOptimizer(_RegularizedOptimizer, Optimizer):
    """Adagrad with dual averaging, for sparse linear models.

    Each variable is computed anew from the sum of its gradients, the sum of their squares (from
    ``initial_gradient_squared_accumulator_value`` on) and the ``global_step``, with penalties
    ``l1_regularization_strength`` and ``l2_regularization_strength``. ``learning_rate`` is a number
    or a tensor, such as ``tf.train.exponential_decay`` gives. ``use_locking`` has no effect:
    concurrent updates are never lost.
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
        first = initial_gradient_squared_accumulator_value
        _refuse_not_positive("initial_gradient_squared_accumulator_value", first)
        super().__init__(
            use_locking,
            name,
            learning_rate=learning_rate,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        self._initial_gradient_squared_accumulator_value = first
        self._global_step = global_step
        self._global_step_on_worker: Any = None
        self._global_step_here: Any = None

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
            else getattr(self, f"_{_HYPERPARAMETERS[name]}")
        )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            squares = self._initial_gradient_squared_accumulator_value
            values = {"gradient_accumulator": 0.0, "gradient_squared_accumulator": squares}
            self._create_filled_slots(v, values)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        with colocate_with(op_of(self._learning_rate_tensor)):
            self._global_step_on_worker = identity(self._global_step) + 1

    def _update(
        self, prefix: str, var: Variable, grad: Tensor, indices: Tensor | None, dtype: dtypes.DType
    ) -> Any:
        self._global_step_here = identity(self._global_step_on_worker)
        return super()._update(prefix, var, grad, indices, dtype)
