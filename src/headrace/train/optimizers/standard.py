"""The optimizers of ``tf.train``. Hyperparameters may be numbers, tensors or functions that give
either.

train_op = AdamOptimizer(1e-3).minimize(loss)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op, apply_operation
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import lookup
from headrace.core.scopes import colocate_with, control_dependencies
from headrace.ops.control.dependencies import group
from headrace.ops.state.ref_scatter import scatter_add
from headrace.ops.state.ref_state import assign, assign_sub
from headrace.ops.training.update_rules import RULES, Rule
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.regularized import (
    AdagradDAOptimizer,
    FtrlOptimizer,
    ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer,
)
from headrace.train.optimizers.rule_optimizer import RuleOptimizer
from headrace.train.tensor_helpers import cast, op_of, state_graph
from headrace.variables.initializers import constant_initializer, ones_initializer

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.core.annotations import Hyperparameter, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Operation, Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
]


class GradientDescentOptimizer(RuleOptimizer, Optimizer):
    """``variable -= learning_rate * gradient``; the rate may be a tensor."""

    def __init__(
        self,
        learning_rate: Hyperparameter,
        use_locking: bool = False,
        name: str = "GradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Any = None

    def _rule(self) -> Rule:
        return RULES["GradientDescent"]

    def _scalar(self, name: str) -> Any:
        return self._learning_rate_tensor

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Any:
        """The rule is additive: repeated indices need no summing."""
        rate = cast(self._learning_rate_tensor, var.dtype.base_dtype)
        delta = IndexedSlices(grad.values * rate, grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Operation | None:
        rate = self._learning_rate
        if not isinstance(rate, (int, float)):
            rate = cast(self._learning_rate_tensor, grad.dtype.base_dtype)
        return apply_operation(lookup("ResourceScatterAdd"), handle.handle, indices, -grad * rate)


class MomentumOptimizer(RuleOptimizer, Optimizer):
    """Gradient descent with momentum: ``accum = momentum * accum + grad; var -= learning_rate *
    accum``.

    With ``use_nesterov`` the step is ``learning_rate * (grad + momentum * accum)``.
    ``learning_rate`` is a number or a tensor, such as ``tf.train.exponential_decay`` gives.
    ``use_locking`` has no effect: concurrent updates are never lost.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov
        self._learning_rate_tensor: Any = None
        self._momentum_tensor: Any = None

    def _rule(self) -> Rule:
        return RULES["Momentum"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("momentum",)

    def _scalar(self, name: str) -> Any:
        return self._learning_rate_tensor if name == "lr" else self._momentum_tensor

    def _attrs(self) -> dict[str, Any]:
        return {"use_nesterov": self._use_nesterov}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        self._momentum_tensor = self._tensor(self._momentum, "momentum")


class AdamOptimizer(RuleOptimizer, Optimizer):
    """Adam (https://arxiv.org/abs/1412.6980): steps by running means of the gradient and its
    square.

    ``beta1`` and ``beta2`` are their decays; ``epsilon`` is added to the root, outside of the bias
    correction as in TF. A sparse gradient decays the moments of all rows.

    ``learning_rate`` is a number or a tensor, such as ``tf.train.exponential_decay`` gives.
    ``use_locking`` has no effect: concurrent updates are never lost.

        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._lr_t: Any = None
        self._beta1_t: Any = None
        self._beta2_t: Any = None
        self._epsilon_t: Any = None

    def _rule(self) -> Rule:
        return RULES["Adam"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("m", "v")

    def _scalar(self, name: str) -> Any:
        if name.endswith("_power"):
            return self._get_beta_accumulators()[name == "beta2_power"]
        return getattr(self, f"_{name}_t")

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        graph = state_graph()
        return (
            self._get_non_slot_variable("beta1_power", graph=graph),
            self._get_non_slot_variable("beta2_power", graph=graph),
        )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda v: str(v.name))
        self._create_non_slot_variable(self._beta1, name="beta1_power", colocate_with=first)
        self._create_non_slot_variable(self._beta2, name="beta2_power", colocate_with=first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._tensor(self._lr, "learning_rate")
        self._beta1_t = self._tensor(self._beta1, "beta1")
        self._beta2_t = self._tensor(self._beta2, "beta2")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")

    def _apply_sparse_shared(
        self, grad: Tensor, var: Variable, indices: Tensor, scatter_add: Callable[..., Any]
    ) -> Operation | None:
        dtype = var.dtype.base_dtype
        beta1_power, beta2_power = (cast(b, dtype) for b in self._get_beta_accumulators())
        lr, beta1, beta2 = (cast(t, dtype) for t in (self._lr_t, self._beta1_t, self._beta2_t))
        epsilon = cast(self._epsilon_t, dtype)
        rate = lr * apply_op("Sqrt", 1 - beta2_power) / (1 - beta1_power)
        m = self.get_slot(var, "m")
        m_rows = grad * (1 - beta1)
        m_t = assign(m, m * beta1, use_locking=self._use_locking)
        with control_dependencies([m_t]):
            m_t = scatter_add(m, indices, m_rows)
        v = self.get_slot(var, "v")
        v_rows = (grad * grad) * (1 - beta2)
        v_t = assign(v, v * beta2, use_locking=self._use_locking)
        with control_dependencies([v_t]):
            v_t = scatter_add(v, indices, v_rows)
        root = apply_op("Sqrt", v_t)
        update = assign_sub(var, rate * m_t / (root + epsilon), use_locking=self._use_locking)
        return group(update, m_t, v_t)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        add = lambda ref, indices, rows: scatter_add(
            ref, indices, rows, use_locking=self._use_locking
        )
        return self._apply_sparse_shared(grad.values, var, grad.indices, add)

    def _resource_scatter_add(self, x: Variable, i: TensorLike, v: TensorLike) -> Tensor:
        with control_dependencies([apply_operation(lookup("ResourceScatterAdd"), x.handle, i, v)]):
            return x.value()

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply_sparse_shared(grad, handle, indices, self._resource_scatter_add)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        with control_dependencies(update_ops):
            beta1_power, beta2_power = self._get_beta_accumulators()
            with colocate_with(op_of(beta1_power)):
                update_beta1 = beta1_power.assign(
                    beta1_power * self._beta1_t, use_locking=self._use_locking
                )
                update_beta2 = beta2_power.assign(
                    beta2_power * self._beta2_t, use_locking=self._use_locking
                )
        return group(*update_ops, update_beta1, update_beta2, name=name_scope)


class RMSPropOptimizer(RuleOptimizer, Optimizer):
    """Gradients divided by the root of a running mean of their squares.

    ``decay`` is that mean's; ``centered`` subtracts the square of the mean gradient; ``momentum``
    accumulates steps; ``epsilon`` is added inside of the root.

    ``learning_rate`` is a number or a tensor, such as ``tf.train.exponential_decay`` gives.
    ``use_locking`` has no effect: concurrent updates are never lost.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        decay: Hyperparameter = 0.9,
        momentum: Hyperparameter = 0.0,
        epsilon: Hyperparameter = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered
        self._learning_rate_tensor: Any = None
        self._decay_tensor: Any = None
        self._momentum_tensor: Any = None
        self._epsilon_tensor: Any = None

    def _rule(self) -> Rule:
        return RULES["CenteredRMSProp" if self._centered else "RMSProp"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("mg", "rms", "momentum") if self._centered else ("rms", "momentum")

    def _scalar(self, name: str) -> Any:
        name = {"lr": "learning_rate", "rho": "decay"}.get(name, name)
        return getattr(self, f"_{name}_tensor")

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            shape = v.get_shape()
            ones = (
                ones_initializer(dtype=dtype)
                if shape.is_fully_defined()
                else apply_op("OnesLike", v)
            )
            self._get_or_make_slot_with_initializer(v, ones, shape, dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        self._decay_tensor = self._tensor(self._decay, "decay")
        self._momentum_tensor = self._tensor(self._momentum, "momentum")
        self._epsilon_tensor = self._tensor(self._epsilon, "epsilon")


class AdagradOptimizer(RuleOptimizer, Optimizer):
    """Gradients divided by the root of the sum of all squared gradients.

    The sum begins with ``initial_accumulator_value``. ``learning_rate`` is a number or a tensor,
    such as ``tf.train.exponential_decay`` gives. ``use_locking`` has no effect: concurrent updates
    are never lost.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._learning_rate_tensor: Any = None

    def _rule(self) -> Rule:
        return RULES["Adagrad"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("accumulator",)

    def _scalar(self, name: str) -> Any:
        return self._learning_rate_tensor

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.get_shape().is_fully_defined():
                start: Any = constant_initializer(self._initial_accumulator_value, dtype=dtype)
            else:
                start = self._init_constant_op(v, dtype)
            self._get_or_make_slot_with_initializer(
                v, start, v.get_shape(), dtype, "accumulator", self._name
            )

    def _init_constant_op(self, v: TensorLike, dtype: DType) -> Any:
        """The start of a slot whose shape is only known when it runs."""
        return lambda: cast(
            apply_op("Fill", apply_op("Shape", v), self._initial_accumulator_value), dtype
        )

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")


class AdadeltaOptimizer(RuleOptimizer, Optimizer):
    """Steps in units of the running mean of past steps (https://arxiv.org/abs/1212.5701).

    ``rho`` is the decay of both means, ``epsilon`` is added inside of the roots. The paper's
    learning rate is 1; TF's default of 0.001 is small.

    ``learning_rate`` is a number or a tensor, such as ``tf.train.exponential_decay`` gives.
    ``use_locking`` has no effect: concurrent updates are never lost.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        rho: Hyperparameter = 0.95,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon
        self._lr_t: Any = None
        self._rho_t: Any = None
        self._epsilon_t: Any = None

    def _rule(self) -> Rule:
        return RULES["Adadelta"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("accum", "accum_update")

    def _scalar(self, name: str) -> Any:
        return getattr(self, f"_{name}_t")

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._tensor(self._lr, "lr")
        self._rho_t = self._tensor(self._rho, "rho")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")
