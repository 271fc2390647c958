"""``tf.contrib.opt``: optimizers around another one (averages, clipped variables, stale gradients,
several tasks), and LARS.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_any
from headrace.core.convert import convert_to_tensor
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import lookup
from headrace.core.scopes import colocate_with, control_dependencies, name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.basic import identity, no_op
from headrace.ops.array.filling import zeros
from headrace.ops.array.gathering import gather
from headrace.ops.array.selecting import where
from headrace.ops.control.control_flow import cond
from headrace.ops.control.dependencies import group
from headrace.ops.linalg.norms import norm
from headrace.ops.math.clip import clip_by_global_norm, clip_by_norm, global_norm
from headrace.ops.math.comparison import equal, greater, less_equal
from headrace.ops.math.reductions import reduce_all
from headrace.train.global_step import get_global_step
from headrace.train.moving_averages import ExponentialMovingAverage
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.saver import Saver
from headrace.train.summaries.summary_functions import scalar
from headrace.train.tensor_helpers import cast
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_lists import global_variables
from headrace.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation
    from headrace.variables.variable import Variable


__all__ = [
    "DropStaleGradientOptimizer", "LARSOptimizer", "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper", "VariableClippingOptimizer", "clip_gradients_by_global_norm",
]  # fmt: skip


class _Wrapping(Optimizer):
    """An optimizer around ``opt``, which computes gradients and owns the slots."""

    def __init__(self, opt: Optimizer, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As of the wrapped optimizer."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, var: TensorLike, name: str) -> Any:
        """A slot of the wrapped optimizer."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names()


class MovingAverageOptimizer(_Wrapping):
    """Keeps moving averages of the variables that it trains.

    ``swapping_saver`` saves the averages under the variables' names. ``sequential_update``:
    averages are updated after the variables, not beside them.
    """

    def __init__(
        self,
        opt: Optimizer,
        average_decay: float = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        super().__init__(opt, False, "MovingAverage")
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._swapped: dict[str, str] | None = None
        self._sequential_update = sequential_update

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """The wrapped optimizer's step, and the averages'."""
        pairs = list(grads_and_vars)
        step = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
        trained = [v for g, v in pairs if g is not None]
        with control_dependencies([step] if self._sequential_update else []):
            averages = self._ema.apply(trained)
        self._swapped = {}
        for v in trained:
            average: Any = self._ema.average(v)
            self._swapped[v.op.name] = average.op.name
            self._swapped[average.op.name] = v.op.name
        return group(step, averages, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A Saver that writes averages where it would write variables, and the other way round."""
        if self._swapped is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        given = global_variables() if var_list is None else var_list
        named = given if isinstance(given, dict) else {v.op.name: v for v in given}
        return Saver({n: self._swapped_variable(named, n) for n in named}, name=name, **kwargs)

    def _swapped_variable(self, named: dict[str, Any], name: str) -> Any:
        assert self._swapped is not None
        other = self._swapped.get(name)
        if other is None:
            return named[name]
        if other not in named:
            raise ValueError(
                f"Variable to swap {other} is not part of variables to save. "
                "This breaks MovingAverageOptimizer."
            )
        return named[other]


class VariableClippingOptimizer(_Wrapping):
    """Clips variables to ``max_norm`` after each step.

    ``vars_to_clip_dims``: variable -> the dimensions over which its norm is taken.
    """

    def __init__(
        self,
        opt: Optimizer,
        vars_to_clip_dims: dict[Any, list[int]],
        max_norm: TensorLike,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(opt, use_locking, name)
        self._dims = {id(v): list(dims) for v, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Tensor | Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """The wrapped optimizer's step, then the clipping."""
        pairs = list(grads_and_vars)
        with name_scope(name, self._name) as scope:
            step = self._opt.apply_gradients(pairs, global_step=global_step)
            clipped = []
            with control_dependencies([step]):
                for grad, var in pairs:
                    if grad is not None and id(var) in self._dims:
                        with name_scope("clip_" + var.op.name):
                            clipped.append(self._clip(grad, var))
            return group(step, *clipped, name=scope)

    @contextlib.contextmanager
    def _colocated_with(self, var: TensorLike) -> Iterator[None]:
        if not self._colocate:
            yield
            return
        with colocate_with(var):
            yield

    def _clip(self, grad: IndexedSlices | Tensor, var: Variable) -> Any:
        dims = self._dims[id(var)]
        if isinstance(grad, Tensor) or 0 in dims:
            with self._colocated_with(var):
                value: Any = var.read_value()
                delta = value - clip_by_norm(value, self._max_norm, dims)
            with colocate_with(var):
                return var.assign_sub(delta, use_locking=self._use_locking)
        with colocate_with(var):
            rows: Any = gather(var, grad.indices)
        with self._colocated_with(var):
            over = rows - clip_by_norm(rows, self._max_norm, dims)
            slices = IndexedSlices(over, grad.indices, grad.dense_shape)
        with colocate_with(var):
            return var.scatter_sub(slices, use_locking=self._use_locking)


class DropStaleGradientOptimizer(_Wrapping):
    """Drops gradients that are more than ``staleness`` steps old when they are applied.

    ``opt`` is the optimizer that applies the others. Gradients grow old when several threads or
    workers train the same variables. ``apply_gradients`` needs ``global_step``.
    """

    def __init__(
        self,
        opt: Optimizer,
        staleness: int,
        use_locking: bool = False,
        name: str = "DropStaleGradient",
    ) -> None:
        super().__init__(opt, use_locking, name)
        self._staleness = staleness

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """As of the wrapped optimizer; notes the step at which the gradients are computed."""
        with colocate_with(loss):
            step: Any = get_global_step()
            self._local_step = step + 0
        with control_dependencies([self._local_step]):
            return self._opt.compute_gradients(identity(loss), *args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """The wrapped optimizer's step, unless the gradients are stale: these are counted."""
        pairs = list(grads_and_vars)
        with colocate_with(global_step):
            stale: Any = get_variable(
                "stale_counter", [], initializer=zeros_initializer(), trainable=False
            )

        def accept() -> Tensor:
            step = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
            with control_dependencies([step]):
                return identity(0.0)

        computed = [g if isinstance(g, Tensor) else g.op for g, _ in pairs if g is not None]
        with control_dependencies(computed), colocate_with(global_step):
            age = reshape(global_step - self._local_step, shape=())
        update = stale.assign_add(
            cond(less_equal(age, self._staleness), accept, lambda: identity(1.0))
        )
        scalar("Gradient staleness percentage", stale / cast(global_step + 1, dtypes.float32))
        return update


class LARSOptimizer(Optimizer):
    """Momentum whose rate is scaled by layer to the norms of weights and gradients.

    ``eeta``: the scale; ``skip_list``: parts of names of variables without it, and without
    ``weight_decay`` (https://arxiv.org/abs/1708.03888).
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: list[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(False, name)
        self._learning_rate, self._momentum, self._weight_decay = (
            learning_rate, momentum, weight_decay,
        )  # fmt: skip
        self._eeta, self._epsilon, self._skip_list = eeta, epsilon, skip_list
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        rate, momentum = (v() if callable(v) else v for v in (self._learning_rate, self._momentum))
        self._rate_t: Any = convert_to_tensor(rate, name="learning_rate")
        self._momentum_t: Any = convert_to_tensor(momentum, name="momentum")

    def compute_lr(self, grad: Tensor, var: Tensor | Variable) -> tuple[Any, Any]:
        """The rate for a variable, and its gradient with the decay."""
        rate = self._learning_rate
        if self._skip_list is not None and any(v in var.name for v in self._skip_list):
            return rate, grad
        weights: Any = norm(var, ord=2)
        gradient: Any = norm(grad, ord=2)
        ratio = self._eeta * weights / (gradient + self._weight_decay * weights + self._epsilon)
        trust: Any = where(greater(weights, 0), where(greater(gradient, 0), ratio, 1.0), 1.0)
        return rate * trust, grad + self._weight_decay * var

    def _momentum_step(self, op: str, var: Any, rate: Any, *gradient: object) -> Operation:
        slot = self.get_slot(var, "momentum")
        resource = op.startswith("Resource")
        refs = [v.handle if resource else v._ref() for v in (var, slot)]
        momentum = cast(self._momentum_t, var.dtype.base_dtype)
        made = apply_any(
            lookup(op),
            *refs,
            rate,
            *gradient,
            momentum,
            use_locking=False,
            use_nesterov=self._use_nesterov,
        )
        return made.op if isinstance(made, Tensor) else made

    def _dense(self, op: str, grad: Tensor, var: Tensor | Variable) -> Operation:
        rate, grad = self.compute_lr(grad, var)
        one = convert_to_tensor(1.0, var.dtype.base_dtype)
        return self._momentum_step(op, var, one, grad * rate)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        return self._dense("ApplyMomentum", grad, var)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._dense("ResourceApplyMomentum", grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Tensor | Variable) -> Any:
        rate = cast(self._rate_t, var.dtype.base_dtype)
        return self._momentum_step("SparseApplyMomentum", var, rate, grad.values, grad.indices)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: TensorLike) -> Any:
        rate = cast(self._rate_t, grad.dtype)
        return self._momentum_step("ResourceSparseApplyMomentum", handle, rate, grad, indices)


def _all_zero(grad: TensorLike) -> Tensor:
    values = grad.values if isinstance(grad, IndexedSlices) else grad
    return reduce_all(equal(values, 0))


def _unless_zero(apply: Callable[..., Any]) -> Callable[..., Any]:
    def update(grad: Any, *args: Any) -> Any:
        return cond(_all_zero(grad), no_op, lambda: apply(grad, *args)).op

    return update


class MultitaskOptimizerWrapper:
    """Leaves variables, slots included, alone where a gradient is all zeros."""

    def __init__(self, opt: object) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt: Any = opt
        for name in ("_apply_dense", "_resource_apply_dense", "_apply_sparse",
                     "_resource_apply_sparse"):  # fmt: skip
            setattr(opt, name, _unless_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def clip_gradients_by_global_norm(
    gradients_variables: Sequence[Any], clip_norm: float = 20.0
) -> tuple[list[tuple[Any, Any]], Any]:
    """Clip by the norm of all gradients; gradients of zeros do not count for it."""
    gradients, variables = zip(*gradients_variables)

    def counted(grad: Tensor) -> Tensor:
        if grad is None:
            return None
        return cond(_all_zero(grad), lambda: zeros([], dtype=grad.dtype), lambda: grad)

    total = global_norm([counted(g) for g in gradients])
    clipped, _ = clip_by_global_norm(list(gradients), clip_norm, use_norm=total)
    return list(zip(clipped, variables)), total
