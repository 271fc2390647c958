"""The optimizers of ``tf.train``.

Most are a rule of ``ops.training_rules`` with a few slots: :class:`_RuleOptimizer` builds the four kinds of update
(dense or sparse, reference or resource) from the rule's signature; a class says which slot and which tensor stands for
which input. Hyperparameters may be numbers, tensors or functions that give either.

    train_op = AdamOptimizer(1e-3).minimize(loss)
"""

from __future__ import annotations

from typing import Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import colocate_with, control_dependencies
from headrace.core.tensor import Tensor
from headrace.ops import training_resource  # noqa: F401  (defines the ops)
from headrace.ops.basic import constant, identity
from headrace.ops.training_rules import RULES, Rule
from headrace.train.optimizer import Optimizer

__all__ = [
    "AdadeltaOptimizer", "AdagradDAOptimizer", "AdagradOptimizer", "AdamOptimizer", "FtrlOptimizer",
    "GradientDescentOptimizer", "MomentumOptimizer", "ProximalAdagradOptimizer", "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
]  # fmt: skip


def _cast(value: Any, dtype: dtypes.DType) -> Any:
    """``value`` (tensor, variable or number) as a tensor of a type; nothing is added where it has that type."""
    if getattr(value, "dtype", None) is None:
        value = convert_to_tensor(value, name="Cast/x")
    return value if value.dtype.base_dtype is dtype else apply_op("Cast", value, DstT=dtype)


class _RuleOptimizer(Optimizer):
    """An optimizer whose update of a variable is one training op."""

    def _rule(self) -> Rule:
        raise NotImplementedError

    def _slot_names(self) -> tuple[str, ...]:
        """The slots, in the order of the rule's variables after ``var``."""
        return ()

    def _scalar(self, name: str) -> Any:
        """The tensor for one of the rule's other inputs."""
        raise NotImplementedError

    def _attrs(self) -> dict[str, Any]:
        return {}

    def _update(self, prefix: str, var: Any, grad: Any, indices: Any, dtype: dtypes.DType) -> Any:
        rule = self._rule()
        variables = [var, *(self.get_slot(var, name) for name in self._slot_names())]
        resource = prefix.startswith("Resource")
        inputs: list[Any] = [v.handle if resource else v._ref() for v in variables]
        for name in rule.rest:
            if name == rule.gradient:
                inputs += [grad] if indices is None else [grad, indices]
            elif name == "global_step":
                inputs.append(self._scalar(name))
            else:
                inputs.append(_cast(self._scalar(name), dtype))
        made = apply_op(prefix + rule.name, *inputs, use_locking=self._use_locking, **self._attrs())
        return made.op if isinstance(made, Tensor) else made

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._update("Apply", var, grad, None, var.dtype.base_dtype)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._update("ResourceApply", handle, grad, None, grad.dtype.base_dtype)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._update("SparseApply", var, grad.values, grad.indices, var.dtype.base_dtype)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._update("ResourceSparseApply", handle, grad, indices, grad.dtype.base_dtype)

    def _tensor(self, value: Any, name: str) -> Tensor:
        return convert_to_tensor(self._call_if_callable(value), name=name)


class GradientDescentOptimizer(_RuleOptimizer):
    """``var -= learning_rate * grad``."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Any = None

    def _rule(self) -> Rule:
        return RULES["GradientDescent"]

    def _scalar(self, name: str) -> Any:
        return self._learning_rate_tensor

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        """The rule is additive: repeated indices need no summing."""
        rate = _cast(self._learning_rate_tensor, var.dtype.base_dtype)
        delta = IndexedSlices(grad.values * rate, grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        rate = self._learning_rate
        if not isinstance(rate, (int, float)):
            rate = _cast(self._learning_rate_tensor, grad.dtype.base_dtype)
        return apply_op("ResourceScatterAdd", handle.handle, indices, -grad * rate)


class MomentumOptimizer(_RuleOptimizer):
    """``accum = momentum * accum + grad; var -= learning_rate * accum``; with Nesterov the step looks ahead."""

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
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

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        self._momentum_tensor = self._tensor(self._momentum, "momentum")


class AdamOptimizer(_RuleOptimizer):
    """Adam (https://arxiv.org/abs/1412.6980). A sparse gradient decays the moments of all rows."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
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
        graph = get_default_graph()
        return (
            self._get_non_slot_variable("beta1_power", graph=graph),
            self._get_non_slot_variable("beta2_power", graph=graph),
        )

    def _create_slots(self, var_list: Any) -> None:
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

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        from headrace.ops.control import group
        from headrace.ops.state import assign, assign_sub

        dtype = var.dtype.base_dtype
        beta1_power, beta2_power = (_cast(b, dtype) for b in self._get_beta_accumulators())
        lr, beta1, beta2 = (_cast(t, dtype) for t in (self._lr_t, self._beta1_t, self._beta2_t))
        epsilon = _cast(self._epsilon_t, dtype)
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

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        from headrace.ops.state import scatter_add

        add = lambda ref, indices, rows: scatter_add(ref, indices, rows, use_locking=self._use_locking)
        return self._apply_sparse_shared(grad.values, var, grad.indices, add)

    def _resource_scatter_add(self, x: Any, i: Any, v: Any) -> Any:
        with control_dependencies([apply_op("ResourceScatterAdd", x.handle, i, v)]):
            return x.value()

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_sparse_shared(grad, handle, indices, self._resource_scatter_add)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        from headrace.ops.control import group

        with control_dependencies(update_ops):
            beta1_power, beta2_power = self._get_beta_accumulators()
            with colocate_with(beta1_power.op):
                update_beta1 = beta1_power.assign(
                    beta1_power * self._beta1_t, use_locking=self._use_locking
                )
                update_beta2 = beta2_power.assign(
                    beta2_power * self._beta2_t, use_locking=self._use_locking
                )
        return group(*update_ops, update_beta1, update_beta2, name=name_scope)


class RMSPropOptimizer(_RuleOptimizer):
    """Gradients divided by a running root mean square; ``centered`` takes the mean off (a running variance)."""

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
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

    def _create_slots(self, var_list: Any) -> None:
        from headrace.ops.initializers import ones_initializer

        for v in var_list:
            dtype = v.dtype.base_dtype
            shape = v.get_shape()
            ones = ones_initializer(dtype=dtype) if shape.is_fully_defined() else apply_op("OnesLike", v)
            self._get_or_make_slot_with_initializer(v, ones, shape, dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        self._decay_tensor = self._tensor(self._decay, "decay")
        self._momentum_tensor = self._tensor(self._momentum, "momentum")
        self._epsilon_tensor = self._tensor(self._epsilon, "epsilon")


class AdagradOptimizer(_RuleOptimizer):
    """Gradients divided by the root of the sum of all squared gradients."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
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

    def _create_slots(self, var_list: Any) -> None:
        from headrace.ops.initializers import constant_initializer

        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.get_shape().is_fully_defined():
                start: Any = constant_initializer(self._initial_accumulator_value, dtype=dtype)
            else:
                start = self._init_constant_op(v, dtype)
            self._get_or_make_slot_with_initializer(
                v, start, v.get_shape(), dtype, "accumulator", self._name
            )

    def _init_constant_op(self, v: Any, dtype: Any) -> Any:
        """The start of a slot whose shape is only known when it runs."""
        return lambda: _cast(
            apply_op("Fill", apply_op("Shape", v), self._initial_accumulator_value), dtype
        )

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")


class AdadeltaOptimizer(_RuleOptimizer):
    """Steps in units of the running mean of past steps (https://arxiv.org/abs/1212.5701)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
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

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self) -> None:
        self._lr_t = self._tensor(self._lr, "lr")
        self._rho_t = self._tensor(self._rho, "rho")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")


def _full(var: Any, value: float) -> Tensor:
    """A constant in the shape of a variable."""
    return constant(value, dtype=var.dtype.base_dtype, shape=var.get_shape())


def _regularized(name: str) -> str:
    """The attribute that holds the tensor of an input of the regularized rules."""
    names = {
        "lr": "learning_rate", "alpha": "learning_rate", "lr_power": "learning_rate_power",
        "l1": "l1_regularization_strength", "l2": "l2_regularization_strength",
        "l2_shrinkage": "l2_shrinkage_regularization_strength",
    }  # fmt: skip
    return f"_{names[name]}_tensor"


class _RegularizedOptimizer(_RuleOptimizer):
    """A rule with learning rate and l1, l2 penalties, kept as ``_<name>_tensor``."""

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


class FtrlOptimizer(_RegularizedOptimizer):
    """Follow the regularized leader, with l1, l2 and shrinkage-type l2 penalties."""

    def __init__(
        self,
        learning_rate: Any,
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
            raise ValueError(f"learning_rate_power {learning_rate_power:f} needs to be negative or zero")
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
        return (*super()._hyperparameters(), "l2_shrinkage_regularization_strength", "learning_rate_power")

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            with colocate_with(v.op):
                start = _full(v, self._initial_accumulator_value)
                self._get_or_make_slot(v, start, "accum", self._accum_name or self._name)
                self._zeros_slot(v, "linear", self._linear_name or self._name)


class ProximalGradientDescentOptimizer(_RegularizedOptimizer):
    """Gradient descent followed by the proximal step of the l1 and l2 penalties."""

    def __init__(
        self,
        learning_rate: Any,
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


class ProximalAdagradOptimizer(_RegularizedOptimizer):
    """Adagrad followed by the proximal step of the l1 and l2 penalties."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _rule(self) -> Rule:
        return RULES["ProximalAdagrad"]

    def _slot_names(self) -> tuple[str, ...]:
        return ("accumulator",)

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            with colocate_with(v.op):
                start = _full(v, self._initial_accumulator_value)
            self._get_or_make_slot(v, start, "accumulator", self._name)


class AdagradDAOptimizer(_RegularizedOptimizer):
    """Adagrad with dual averaging: each variable is computed anew from its summed gradients and the step."""

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
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
        self._initial_gradient_squared_accumulator_value = initial_gradient_squared_accumulator_value
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
        return self._learning_rate_tensor if name == "lr" else getattr(self, f"_{name}_regularization_strength")

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            with colocate_with(v.op):
                zeros = _full(v, 0.0)
                squares = _full(v, self._initial_gradient_squared_accumulator_value)
            self._get_or_make_slot(v, zeros, "gradient_accumulator", self._name)
            self._get_or_make_slot(v, squares, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        with colocate_with(self._learning_rate_tensor.op):
            self._global_step_on_worker = identity(self._global_step) + 1

    def _update(self, prefix: str, var: Any, grad: Any, indices: Any, dtype: dtypes.DType) -> Any:
        self._global_step_here = identity(self._global_step_on_worker)
        return super()._update(prefix, var, grad, indices, dtype)
