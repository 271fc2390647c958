"""Optimizers whose update of a variable is one training op.

The four kinds of update (dense or sparse, reference or resource) are built from the signature of a
rule of ops/training/update_rules.py; a subclass says which slot and which tensor stands for which
input.

``RuleOptimizer`` is a mixin: ``class AdamOptimizer(RuleOptimizer, Optimizer)``. As in TensorFlow,
``tf.train.AdamOptimizer.__base__`` is then ``tf.train.Optimizer``, which packages look at; Python
takes the base with the larger layout, and the mixin has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_any
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import lookup
from headrace.core.tensor import Tensor
from headrace.ops.training import resource_apply  # noqa: F401  (defines the ops)
from headrace.ops.training.update_rules import Rule
from headrace.train.tensor_helpers import cast

if TYPE_CHECKING:
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.train.optimizers.optimizer import Optimizer
    from headrace.variables.variable import Variable

__all__ = ["RuleOptimizer"]


if TYPE_CHECKING:
    _Mixin = Optimizer
else:

    class _Mixin:
        __slots__ = ()


class RuleOptimizer(_Mixin):
    """What makes an optimizer's update of a variable one training op."""

    __slots__ = ()

    def _rule(self) -> Rule:
        raise NotImplementedError

    def _slot_names(self) -> tuple[str, ...]:
        """The slots, in the order of the rule's variables after ``var``."""
        return ()

    def _scalar(self, name: str) -> Tensor:
        """The tensor for one of the rule's other inputs."""
        raise NotImplementedError

    def _casts(self, prefix: str) -> bool:
        """Whether hyperparameters get the variable's type; otherwise they must have it."""
        return True

    def _attrs(self) -> dict[str, Any]:
        return {}

    def _update(
        self, prefix: str, var: Variable, grad: Tensor, indices: Tensor | None, dtype: dtypes.DType
    ) -> Any:
        rule = self._rule()
        variables = [var, *(self.get_slot(var, name) for name in self._slot_names())]
        resource = prefix.startswith("Resource")
        inputs: list[Any] = [v.handle if resource else v._ref() for v in variables]
        for name in rule.rest:
            if name == rule.gradient:
                inputs += [grad] if indices is None else [grad, indices]
            elif name == "global_step" or not self._casts(prefix):
                inputs.append(self._scalar(name))
            else:
                inputs.append(cast(self._scalar(name), dtype))
        made = apply_any(
            lookup(prefix + rule.name), *inputs, use_locking=self._use_locking, **self._attrs()
        )
        return made.op if isinstance(made, Tensor) else made

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        return self._update("Apply", var, grad, None, var.dtype.base_dtype)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._update("ResourceApply", handle, grad, None, grad.dtype.base_dtype)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
        return self._update("SparseApply", var, grad.values, grad.indices, var.dtype.base_dtype)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._update("ResourceSparseApply", handle, grad, indices, grad.dtype.base_dtype)

    def _tensor(self, value: Any, name: str) -> Tensor:
        return convert_to_tensor(self._call_if_callable(value), name=name)
