"""``tf.contrib.opt``: LazyAdam, Nadam and AdaMax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op
from headrace.core.scopes import colocate_with, control_dependencies
from headrace.ops.array.gathering import gather
from headrace.ops.control.dependencies import group
from headrace.ops.math.binary import maximum
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import sqrt, square
from headrace.ops.state.ref_scatter import scatter_add, scatter_sub, scatter_update
from headrace.ops.state.ref_state import assign
from headrace.ops.training.update_rules import RULES, Rule
from headrace.train.optimizers.standard import AdamOptimizer
from headrace.train.tensor_helpers import cast, op_of, state_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.core.annotations import Hyperparameter, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.tensor import Operation, Tensor
    from headrace.variables.variable import Variable

__all__ = ["AdaMaxOptimizer", "LazyAdamOptimizer", "NadamOptimizer"]


class _Rows:
    """Row-wise writes of a variable of either kind; each gives the variable after the write."""

    def __init__(self, optimizer: AdamOptimizer, indices: Tensor) -> None:
        self._locking = optimizer._use_locking
        self._indices = indices

    def _write(
        self, kind: str, function: Callable[..., Any], variable: Variable, rows: TensorLike
    ) -> Any:
        handle = getattr(variable, "handle", None)
        if handle is None:
            return function(variable, self._indices, rows, use_locking=self._locking)
        write = apply_op(f"ResourceScatter{kind}", handle, self._indices, rows)
        with control_dependencies([write]):
            return variable.value()

    def update(self, variable: Variable, rows: Tensor) -> Any:
        return self._write("Update", scatter_update, variable, rows)

    def add(self, variable: Variable, rows: TensorLike) -> Any:
        return self._write("Add", scatter_add, variable, rows)

    def sub(self, variable: Variable, rows: Tensor) -> Any:
        return self._write("Sub", scatter_sub, variable, rows)


class _SparseRows(AdamOptimizer):
    """Adam with another update for sparse gradients."""

    def _update_rows(self, grad: Tensor, var: Variable, indices: Tensor) -> Any:
        raise NotImplementedError

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        return self._update_rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._update_rows(grad, handle, indices)

    def _hyper(self, dtype: DType) -> tuple[Any, Any, Any, Any]:
        """The rate with its corrections, both betas and epsilon."""
        beta1_power, beta2_power = (cast(b, dtype) for b in self._get_beta_accumulators())
        rate, beta1, beta2, epsilon = (
            cast(t, dtype) for t in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        return rate * sqrt(1 - beta2_power) / (1 - beta1_power), beta1, beta2, epsilon


class LazyAdamOptimizer(_SparseRows):
    """Adam that changes nothing but the rows of a sparse gradient, moments included.

    The arguments are ``tf.train.AdamOptimizer``'s. Faster for large embeddings, but not the same
    numbers: Adam's moments decay for all rows in every step.
    """

    def _update_rows(self, grad: Tensor, var: Variable, indices: Tensor) -> Operation:
        rate, beta1, beta2, epsilon = self._hyper(var.dtype.base_dtype)
        rows = _Rows(self, indices)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = rows.update(m, beta1 * gather(m, indices) + (1 - beta1) * grad)
        v_t = rows.update(v, beta2 * gather(v, indices) + (1 - beta2) * square(grad))
        step = rate * gather(m_t, indices) / (sqrt(gather(v_t, indices)) + epsilon)
        return group(rows.sub(var, step), m_t, v_t)


class NadamOptimizer(_SparseRows):
    """Adam with Nesterov momentum (Dozat, 2015).

    The arguments are ``tf.train.AdamOptimizer``'s. The update uses the moment as the next step will
    see it.
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
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _attrs(self) -> dict[str, Any]:
        return {"use_nesterov": True}

    def _update_rows(self, grad: Tensor, var: Variable, indices: Tensor) -> Operation:
        rate, beta1, beta2, epsilon = self._hyper(var.dtype.base_dtype)
        rows = _Rows(self, indices)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        scaled = grad * (1 - beta1)
        m_t = assign(m, m * beta1, use_locking=self._use_locking)
        with control_dependencies([m_t]):
            m_t = rows.add(m, scaled)
            ahead = scaled + beta1 * gather(m_t, indices)
        v_t = assign(v, v * beta2, use_locking=self._use_locking)
        with control_dependencies([v_t]):
            v_t = rows.add(v, (grad * grad) * (1 - beta2))
        root = sqrt(gather(v_t, indices))
        return group(rows.sub(var, rate * ahead / (root + epsilon)), ahead, v_t)


class AdaMaxOptimizer(_SparseRows):
    """Adam by the largest gradient instead of the mean square (https://arxiv.org/abs/1412.6980).

    ``beta1`` is the decay of the mean gradient, ``beta2`` that of the largest; ``epsilon`` is added
    to the denominator. All may be tensors or functions. Of a sparse gradient only its rows change.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _rule(self) -> Rule:
        return RULES["AdaMax"]

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power", graph=state_graph())

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda v: str(v.name))
        self._create_non_slot_variable(self._beta1, name="beta1_power", colocate_with=first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _scalar(self, name: str) -> Any:
        if name == "beta1_power":
            return self._get_beta_accumulators()
        return getattr(self, f"_{name}_t")

    def _update_rows(self, grad: Tensor, var: Variable, indices: Tensor) -> Operation:
        dtype = var.dtype.base_dtype
        power = cast(self._get_beta_accumulators(), dtype)
        rate, beta1, beta2, epsilon = (
            cast(t, dtype) for t in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        rows = _Rows(self, indices)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * gather(m, indices) + (1 - beta1) * grad
        v_rows = maximum(beta2 * gather(v, indices), abs_of(grad))
        step = -rate / (1 - power) * (m_rows / (v_rows + epsilon))
        return group(rows.add(var, step), rows.update(m, m_rows), rows.update(v, v_rows))

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        with control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            with colocate_with(op_of(power)):
                updated = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return group(*update_ops, updated, name=name_scope)
