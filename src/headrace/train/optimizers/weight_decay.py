"""``tf.contrib.opt``: weight decay apart from the loss (https://arxiv.org/abs/1711.05101)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_operation
from headrace.core.opdef import lookup
from headrace.core.scopes import control_dependencies
from headrace.ops.array.basic import no_op
from headrace.ops.array.casting import cast
from headrace.ops.array.gathering import gather
from headrace.ops.state.ref_scatter import scatter_add
from headrace.train.optimizers.standard import AdamOptimizer, MomentumOptimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Hyperparameter, TensorLike
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.tensor import Tensor
    from headrace.train.optimizers.optimizer import Optimizer as _Mixed
    from headrace.variables.variable import Variable
else:
    _Mixed = object

__all__ = [
    "AdamWOptimizer",
    "DecoupledWeightDecayExtension",
    "MomentumWOptimizer",
    "extend_with_decoupled_weight_decay",
]


class DecoupledWeightDecayExtension(_Mixed):
    """Before an update, a variable loses ``weight_decay`` times itself.

    Mixed into an optimizer. ``decay_var_list`` of ``apply_gradients`` has the variables that decay
    (default: all). A sparse gradient decays its rows only.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._decay_var_list: set[Any] | None = None
        self._weight_decay = weight_decay
        self._weight_decay_tensor: Any = None
        super().__init__(**kwargs)

    def minimize(
        self, *args: Any, decay_var_list: Sequence[TensorLike] | None = None, **kwargs: Any
    ) -> Any:
        """As of the optimizer.

        All variables decay whatever ``decay_var_list`` says: TF 1.15 forgets it when ``minimize``
        calls ``apply_gradients``. Give it to ``apply_gradients``.
        """
        self._keep_list(decay_var_list)
        return super().minimize(*args, **kwargs)

    def apply_gradients(self, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """As of the optimizer; ``decay_var_list``: the variables that decay."""
        self._keep_list(decay_var_list)
        return super().apply_gradients(*args, **kwargs)

    def _keep_list(self, variables: Sequence[TensorLike] | None) -> None:
        self._decay_var_list = {id(v) for v in variables} if variables else None

    def _prepare(self) -> None:
        from headrace.core.convert import convert_to_tensor

        decay = self._weight_decay
        value = decay() if callable(decay) else decay
        self._weight_decay_tensor = convert_to_tensor(value, name="weight_decay")
        super()._prepare()

    def _decays(self, var: Variable) -> bool:
        return self._decay_var_list is None or id(var) in self._decay_var_list

    def _decay(self, var: Variable) -> Any:
        if not self._decays(var):
            return no_op()
        return var.assign_sub(self._amount(var) * var, self._use_locking)

    def _amount(self, var: Variable) -> Tensor:
        found: Tensor = cast(self._weight_decay_tensor, var.dtype.base_dtype)
        return found

    def _decay_rows(self, var: Variable, indices: Tensor) -> Any:
        if not self._decays(var):
            return no_op()
        rows = -self._amount(var) * gather(var, indices)
        handle = getattr(var, "handle", None)
        if handle is not None:
            return apply_operation(lookup("ResourceScatterAdd"), handle, indices, rows)
        return scatter_add(var, indices, rows, use_locking=self._use_locking)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        with control_dependencies([self._decay(var)]):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Tensor:
        with control_dependencies([self._decay(handle)]):
            return super()._resource_apply_dense(grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Tensor:
        with control_dependencies([self._decay_rows(var, grad.indices)]):
            return super()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Tensor:
        with control_dependencies([self._decay_rows(handle, indices)]):
            return super()._resource_apply_sparse(grad, handle, indices)


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """The optimizer class with weight decay: its first argument is ``weight_decay``."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):  # type: ignore[misc]
        """See :class:`DecoupledWeightDecayExtension`."""

        def __init__(self, weight_decay: object, **kwargs: object) -> None:
            super().__init__(weight_decay, **kwargs)

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum that also multiplies variables with ``1 - weight_decay`` in each step.

    ``weight_decay`` is not multiplied with the learning rate: schedule it alike. The other
    arguments are ``tf.train.MomentumOptimizer``'s; ``apply_gradients`` takes ``decay_var_list``.
    """

    def __init__(
        self,
        weight_decay: object,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam that also multiplies variables with ``1 - weight_decay`` in each step.

    Unlike an L2 loss, the decay is not scaled by Adam's moments (https://arxiv.org/abs/1711.05101).
    ``weight_decay`` is not multiplied with the learning rate: schedule it alike.
    ``apply_gradients`` takes ``decay_var_list``.
    """

    def __init__(
        self,
        weight_decay: object,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )
