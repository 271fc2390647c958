"""TF 2's optimizers: ``tf.optimizers.SGD``, ``Adam`` and the others, with Keras's hyperparameters
and defaults.

Updates are the same training operations that TF 1's optimizers use, where there is one for the
rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op, apply_operation
from headrace.core.opdef import lookup
from headrace.ops.array.casting import cast
from headrace.ops.math import binary as math_binary
from headrace.ops.math import unary as math_unary
from headrace.train.optimizers.optimizer_v2 import OptimizerV2, grouped

if TYPE_CHECKING:
    from headrace.core.annotations import Hyperparameter, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Operation, Tensor
    from headrace.variables.variable import Variable

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "RMSprop"]


def _is_nonzero(value: object) -> bool:
    return callable(value) or hasattr(value, "dtype") or bool(value)


class SGD(OptimizerV2):
    """Gradient descent: ``variable -= learning_rate * gradient``, with momentum if one is given.

    ``momentum`` is in [0, 1], and ``nesterov`` looks one step ahead. ``learning_rate`` and keyword
    arguments are as in ``Adadelta``: ``lr`` is its older name.
    """

    _hyper_names = ("momentum",)

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.01,
        momentum: Hyperparameter = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        **kwargs: object,
    ) -> None:
        super().__init__(name, **kwargs)
        self._hyper = {"learning_rate": kwargs.get("lr", learning_rate), "momentum": momentum}
        self._momentum = _is_nonzero(momentum)
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self.nesterov = nesterov

    def _create_slots(self, var_list: list[Any]) -> None:
        if self._momentum:
            for v in var_list:
                self.add_slot(v, "momentum")

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | None:
        dtype = var.dtype.base_dtype
        if not self._momentum:
            return apply_operation(
                lookup("ResourceApplyGradientDescent"), var.handle, self._rate(dtype), grad
            )
        return apply_operation(
            lookup("ResourceApplyKerasMomentum"),
            var.handle,
            self.get_slot(var, "momentum").handle,
            self._rate(dtype),
            grad,
            self._get_hyper("momentum", dtype),
            use_nesterov=self.nesterov,
        )

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: Variable) -> Any:
        dtype = var.dtype.base_dtype
        if not self._momentum:
            return apply_operation(
                lookup("ResourceScatterAdd"), var.handle, indices, -grad * self._rate(dtype)
            )
        return apply_operation(
            lookup("ResourceSparseApplyKerasMomentum"),
            var.handle,
            self.get_slot(var, "momentum").handle,
            self._rate(dtype),
            grad,
            indices,
            self._get_hyper("momentum", dtype),
            use_nesterov=self.nesterov,
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "nesterov": self.nesterov}


class _TwoMoments(OptimizerV2):
    """What Adam, Adamax and Nadam share: slots m and v, two decays."""

    _hyper_names = ("beta_1", "beta_2")

    def __init__(
        self,
        learning_rate: object,
        beta_1: object,
        beta_2: object,
        epsilon: float | None,
        name: str,
        kwargs: dict[str, Any],
    ) -> None:
        super().__init__(name, **kwargs)
        self._hyper = {
            "learning_rate": kwargs.get("lr", learning_rate),
            "beta_1": beta_1,
            "beta_2": beta_2,
        }
        self.epsilon = 1e-7 if epsilon is None else epsilon

    def _create_slots(self, var_list: list[Any]) -> None:
        for name in ("m", "v"):
            for v in var_list:
                self.add_slot(v, name)

    def _betas(self, dtype: DType) -> tuple[Any, Any, Any, Any]:
        """beta_1, beta_2 and their powers for this step."""
        found: tuple[Any, Any, Any, Any] = self._once(("betas", dtype), lambda: self._powers(dtype))
        return found

    def _powers(self, dtype: DType) -> tuple[Any, Any, Any, Any]:
        step = cast(self.iterations, dtype) + 1
        b1, b2 = self._get_hyper("beta_1", dtype), self._get_hyper("beta_2", dtype)
        return b1, b2, math_binary.pow(b1, step), math_binary.pow(b2, step)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}


class Adam(_TwoMoments):
    """Steps by running means of the gradient and of its square
    (https://arxiv.org/abs/1412.6980).
    """

    def __init__(
        self,
        learning_rate: object = 0.001,
        beta_1: object = 0.9,
        beta_2: object = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: object,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, kwargs)
        self.amsgrad = amsgrad

    def _create_slots(self, var_list: list[Any]) -> None:
        super()._create_slots(var_list)
        if self.amsgrad:
            for v in var_list:
                self.add_slot(v, "vhat")

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | None:
        dtype = var.dtype.base_dtype
        b1, b2, p1, p2 = self._betas(dtype)
        handles = [var.handle, self.get_slot(var, "m").handle, self.get_slot(var, "v").handle]
        rest = (p1, p2, self._rate(dtype), b1, b2, cast(self.epsilon, dtype), grad)
        if self.amsgrad:
            vhat = self.get_slot(var, "vhat").handle
            return apply_operation(lookup("ResourceApplyAdamWithAmsgrad"), *handles, vhat, *rest)
        return apply_operation(lookup("ResourceApplyAdam"), *handles, *rest)

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: Variable) -> Any:
        dtype = var.dtype.base_dtype
        b1, b2, p1, p2 = self._betas(dtype)
        rate = self._rate(dtype) * math_unary.sqrt(1 - p2) / (1 - p1)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = decayed_rows(m, b1, indices, grad * (1 - b1))
        v_t = decayed_rows(v, b2, indices, grad * grad * (1 - b2))
        if self.amsgrad:
            vhat = self.get_slot(var, "vhat")
            v_t = math_binary.maximum(vhat, v_t)
            vhat.assign(v_t)
        return var.assign_sub(rate * m_t / (math_unary.sqrt(v_t) + self.epsilon), read_value=False)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "amsgrad": self.amsgrad}


def decayed_rows(slot: Any, decay: Tensor, indices: Tensor, rows: Tensor) -> Any:
    """The slot times ``decay``, plus ``rows`` at ``indices``: stored, and its value."""
    after = slot.assign(slot * decay)
    handle = after.handle
    done = apply_operation(lookup("ResourceScatterAdd"), handle, indices, rows)
    return after.value() if done is None else slot._lazy_read(done).value()


class Adamax(_TwoMoments):
    """Adam with the largest absolute gradient in place of the second moment.

    ``beta_2`` is the decay of the largest gradient; the other arguments are as in ``Adam``.
    """

    def __init__(
        self,
        learning_rate: object = 0.001,
        beta_1: object = 0.9,
        beta_2: object = 0.999,
        epsilon: float = 1e-7,
        name: str = "Adamax",
        **kwargs: object,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, kwargs)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | None:
        dtype = var.dtype.base_dtype
        b1, b2, p1, _ = self._betas(dtype)
        handles = [var.handle, self.get_slot(var, "m").handle, self.get_slot(var, "v").handle]
        return apply_operation(
            lookup("ResourceApplyAdaMax"),
            *handles,
            p1,
            self._rate(dtype),
            b1,
            b2,
            cast(self.epsilon, dtype),
            grad,
        )

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: Variable) -> Any:
        dtype = var.dtype.base_dtype
        b1, b2, p1, _ = self._betas(dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = m.sparse_read(indices) * b1 + grad * (1 - b1)
        v_rows = math_binary.maximum(v.sparse_read(indices) * b2, math_unary.abs(grad))
        change = -self._rate(dtype) / (1 - p1) * (m_rows / (v_rows + self.epsilon))
        return grouped(
            apply_operation(lookup("ResourceScatterUpdate"), m.handle, indices, m_rows),
            apply_operation(lookup("ResourceScatterUpdate"), v.handle, indices, v_rows),
            apply_operation(lookup("ResourceScatterAdd"), var.handle, indices, change),
        )


class Nadam(_TwoMoments):
    """Adam with Nesterov momentum (Dozat, 2015).

    ``beta_1`` and ``beta_2`` are the decays of the two moments, ``epsilon`` is added to the
    denominator; the keyword ``schedule_decay`` (0.004) is the speed at which momentum grows. Other
    keyword arguments are as in ``Adadelta``.
    """

    def __init__(
        self,
        learning_rate: object = 0.001,
        beta_1: object = 0.9,
        beta_2: object = 0.999,
        epsilon: float = 1e-7,
        name: str = "Nadam",
        **kwargs: object,
    ) -> None:
        decay = kwargs.pop("schedule_decay", 0.004)
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, kwargs)
        self._schedule_decay = decay
        self._m_cache: Any = None
        self._now: dict[Any, tuple[Any, ...]] = {}

    def _current_rate(self, dtype: DType) -> Any:
        return cast(self._get_hyper("learning_rate"), dtype)

    def _create_slots(self, var_list: list[Any]) -> None:
        from headrace.core.convert import convert_to_tensor
        from headrace.variables.variable import create_variable

        dtype = var_list[0].dtype.base_dtype
        if self._m_cache is None:
            self._m_cache = create_variable(
                convert_to_tensor(1.0, dtype),
                trainable=False,
                name="momentum_cache",
                use_resource=True,
            )
            self._slot_list.append(self._m_cache)
        super()._create_slots(var_list)

    def _prepare(self, types: dict[Any, None]) -> None:
        cached = self._m_cache.read_value()
        for dtype in types:
            b1 = self._get_hyper("beta_1", dtype)
            step = cast(self.iterations, dtype) + 1
            base = cast(0.96, dtype)
            m_t = b1 * (1.0 - 0.5 * math_binary.pow(base, self._schedule_decay * step))
            m_next = b1 * (1.0 - 0.5 * math_binary.pow(base, self._schedule_decay * (step + 1)))
            product = cast(cached, dtype) * m_t
            if dtype is self._m_cache.dtype.base_dtype:
                product = self._m_cache.assign(product).read_value()
            self._now[dtype] = (m_t, m_next, product, product * m_next, step)

    def _step_size(self, grad: Tensor, m_t: Tensor, v_t: Tensor, dtype: DType) -> Any:
        now, then, product, product_next, step = self._now[dtype]
        b2 = self._get_hyper("beta_2", dtype)
        m_bar = (1 - now) * (grad / (1 - product)) + then * (m_t / (1 - product_next))
        v_prime = v_t / (1 - math_binary.pow(b2, step))
        return self._rate(dtype) * m_bar / (math_unary.sqrt(v_prime) + self.epsilon)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        dtype = var.dtype.base_dtype
        b1, b2 = self._get_hyper("beta_1", dtype), self._get_hyper("beta_2", dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = m.assign(b1 * m + (1 - b1) * grad).read_value()
        v_t = v.assign(b2 * v + (1 - b2) * math_unary.square(grad)).read_value()
        return var.assign_sub(self._step_size(grad, m_t, v_t, dtype), read_value=False)

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: Variable) -> Any:
        dtype = var.dtype.base_dtype
        b1, b2 = self._get_hyper("beta_1", dtype), self._get_hyper("beta_2", dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = apply_op("GatherV2", decayed_rows(m, b1, indices, grad * (1 - b1)), indices, 0)
        v_t = apply_op(
            "GatherV2", decayed_rows(v, b2, indices, math_unary.square(grad) * (1 - b2)), indices, 0
        )
        change = -self._step_size(grad, m_t, v_t, dtype)
        return apply_operation(lookup("ResourceScatterAdd"), var.handle, indices, change)


class RMSprop(OptimizerV2):
    """Gradients divided by a running root mean square.

    ``rho`` is the decay of the mean square, ``momentum`` that of past steps; ``centered`` subtracts
    the squared mean gradient. ``epsilon`` is added to the mean square. ``learning_rate`` and
    keyword arguments are as in ``Adadelta``.
    """

    _hyper_names = ("rho", "momentum")

    def __init__(
        self,
        learning_rate: object = 0.001,
        rho: object = 0.9,
        momentum: Hyperparameter = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: object,
    ) -> None:
        super().__init__(name, **kwargs)
        self._hyper = {
            "learning_rate": kwargs.get("lr", learning_rate),
            "rho": rho,
            "momentum": momentum,
        }
        self._momentum = _is_nonzero(momentum)
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self.epsilon = 1e-7 if epsilon is None else epsilon
        self.centered = centered

    def _create_slots(self, var_list: list[Any]) -> None:
        wanted = [
            "rms",
            *(["momentum"] if self._momentum else []),
            *(["mg"] if self.centered else []),
        ]
        for name in wanted:
            for v in var_list:
                self.add_slot(v, name)

    def _fused(self, prefix: str, grad: list[Any], var: Variable) -> Operation | None:
        dtype = var.dtype.base_dtype
        names = ("mg", "rms", "momentum") if self.centered else ("rms", "momentum")
        kind = "CenteredRMSProp" if self.centered else "RMSProp"
        return apply_operation(
            lookup(prefix + kind),
            var.handle,
            *(self.get_slot(var, n).handle for n in names),
            self._rate(dtype),
            self._get_hyper("rho", dtype),
            self._get_hyper("momentum", dtype),
            cast(self.epsilon, dtype),
            *grad,
        )

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        if self._momentum:
            return self._fused("ResourceApply", [grad], var)
        dtype = var.dtype.base_dtype
        rho = self._get_hyper("rho", dtype)
        rms = self.get_slot(var, "rms")
        denominator = rms.assign(rho * rms + (1 - rho) * math_unary.square(grad)).read_value()
        if self.centered:
            mg = self.get_slot(var, "mg")
            mean = mg.assign(rho * mg + (1 - rho) * grad).read_value()
            denominator = denominator - math_unary.square(mean)
        step = self._rate(dtype) * grad / (math_unary.sqrt(denominator) + self.epsilon)
        return var.assign_sub(step, read_value=False)

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: Variable) -> Any:
        if self._momentum:
            return self._fused("ResourceSparseApply", [grad, indices], var)
        dtype = var.dtype.base_dtype
        rho = self._get_hyper("rho", dtype)
        rms = decayed_rows(self.get_slot(var, "rms"), rho, indices, grad * grad * (1 - rho))
        denominator = apply_op("GatherV2", rms, indices, 0)
        if self.centered:
            mean = decayed_rows(self.get_slot(var, "mg"), rho, indices, grad * (1 - rho))
            denominator = denominator - math_unary.square(apply_op("GatherV2", mean, indices, 0))
        change = self._rate(dtype) * -grad / (math_unary.sqrt(denominator) + self.epsilon)
        return apply_operation(lookup("ResourceScatterAdd"), var.handle, indices, change)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon, "centered": self.centered}


class Adagrad(OptimizerV2):
    """Gradients divided by the root of the sum of all squared gradients.

    ``initial_accumulator_value`` is where the sums begin, ``epsilon`` is added to the root (TF 1
    has none). ``learning_rate`` and keyword arguments are as in ``Adadelta``.
    """

    def __init__(
        self,
        learning_rate: object = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        name: str = "Adagrad",
        **kwargs: object,
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise ValueError(
                f"initial_accumulator_value must be non-negative: {initial_accumulator_value}"
            )
        super().__init__(name, **kwargs)
        self._hyper = {"learning_rate": kwargs.get("lr", learning_rate)}
        self._initial_accumulator_value = initial_accumulator_value
        self.epsilon = 1e-7 if epsilon is None else epsilon

    def _create_slots(self, var_list: list[Any]) -> None:
        for v in var_list:
            self.add_slot(v, "accumulator", self._initial_accumulator_value)

    def _inputs(self, var: Any) -> list[Any]:
        dtype = var.dtype.base_dtype
        return [
            var.handle,
            self.get_slot(var, "accumulator").handle,
            self._rate(dtype),
            cast(self.epsilon, dtype),
        ]

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | None:
        return apply_operation(lookup("ResourceApplyAdagradV2"), *self._inputs(var), grad)

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: TensorLike) -> Any:
        return apply_operation(
            lookup("ResourceSparseApplyAdagradV2"), *self._inputs(var), grad, indices
        )

    def get_config(self) -> dict[str, Any]:
        own = {
            "initial_accumulator_value": self._initial_accumulator_value,
            "epsilon": self.epsilon,
        }
        return {**super().get_config(), **own}


class Adadelta(OptimizerV2):
    """Steps in units of the running mean of past steps (https://arxiv.org/abs/1212.5701).

    ``rho`` is the decay of both means, ``epsilon`` is added to them (TF 1: 1e-8). ``learning_rate``
    is a number, a tensor, a function or a schedule; keyword arguments are ``clipnorm``,
    ``clipvalue``, ``global_clipnorm``, ``decay`` and ``lr``.
    """

    _hyper_names = ("rho",)

    def __init__(
        self,
        learning_rate: object = 0.001,
        rho: object = 0.95,
        epsilon: float = 1e-7,
        name: str = "Adadelta",
        **kwargs: object,
    ) -> None:
        super().__init__(name, **kwargs)
        self._hyper = {"learning_rate": kwargs.get("lr", learning_rate), "rho": rho}
        self.epsilon = 1e-7 if epsilon is None else epsilon

    def _create_slots(self, var_list: list[Any]) -> None:
        for v in var_list:
            self.add_slot(v, "accum_grad")
        for v in var_list:
            self.add_slot(v, "accum_var")

    def _inputs(self, var: Any) -> list[Any]:
        dtype = var.dtype.base_dtype
        return [
            var.handle,
            self.get_slot(var, "accum_grad").handle,
            self.get_slot(var, "accum_var").handle,
            self._rate(dtype),
            self._get_hyper("rho", dtype),
            cast(self.epsilon, dtype),
        ]

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | None:
        return apply_operation(lookup("ResourceApplyAdadelta"), *self._inputs(var), grad)

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: TensorLike) -> Any:
        return apply_operation(
            lookup("ResourceSparseApplyAdadelta"), *self._inputs(var), grad, indices
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}


class Ftrl(OptimizerV2):
    """Follow the regularised leader: sparse linear models with L1 and L2 penalties.

    ``learning_rate_power`` (at most 0) is the power of the step count in the rate. The L2 shrinkage
    changes the loss itself, the L2 strength only the solution; ``beta`` adds to the L2 strength as
    the step grows. ``learning_rate`` and keyword arguments are as in ``Adadelta``.
    """

    _hyper_names = (
        "learning_rate_power",
        "l1_regularization_strength",
        "l2_regularization_strength",
    )

    def __init__(
        self,
        learning_rate: object = 0.001,
        learning_rate_power: Any = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: object = 0.0,
        l2_regularization_strength: object = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **kwargs: object,
    ) -> None:
        super().__init__(name, **kwargs)
        if initial_accumulator_value < 0.0:
            raise ValueError(
                f"initial_accumulator_value {initial_accumulator_value} needs to be "
                "positive or zero"
            )
        if learning_rate_power > 0.0:
            raise ValueError(
                f"learning_rate_power {learning_rate_power} needs to be negative or zero"
            )
        self._hyper = {
            "learning_rate": kwargs.get("lr", learning_rate),
            "learning_rate_power": learning_rate_power,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        self._initial_accumulator_value = initial_accumulator_value
        self._shrinkage = l2_shrinkage_regularization_strength
        self._beta = beta

    def _create_slots(self, var_list: list[Any]) -> None:
        for v in var_list:
            self.add_slot(v, "accumulator", self._initial_accumulator_value)
            self.add_slot(v, "linear")

    def _updated(self, prefix: str, grad: list[Any], var: Any) -> Operation | None:
        dtype = var.dtype.base_dtype
        rate = self._rate(dtype)
        l2 = self._get_hyper("l2_regularization_strength", dtype)
        if self._beta:
            l2 = l2 + self._beta / (2.0 * rate)
        strengths = [self._get_hyper("l1_regularization_strength", dtype), l2]
        kind = "Ftrl"
        if self._shrinkage > 0.0:
            kind, strengths = "FtrlV2", [*strengths, cast(self._shrinkage, dtype)]
        return apply_operation(
            lookup(prefix + kind),
            var.handle,
            self.get_slot(var, "accumulator").handle,
            self.get_slot(var, "linear").handle,
            *grad,
            rate,
            *strengths,
            self._get_hyper("learning_rate_power", dtype),
        )

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | None:
        return self._updated("ResourceApply", [grad], var)

    def _apply_sparse(self, grad: Tensor, indices: Tensor, var: TensorLike) -> Any:
        return self._updated("ResourceSparseApply", [grad, indices], var)

    def get_config(self) -> dict[str, Any]:
        own = {
            "initial_accumulator_value": self._initial_accumulator_value,
            "l2_shrinkage_regularization_strength": self._shrinkage,
        }
        return {**super().get_config(), **own}
