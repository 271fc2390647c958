"""Bijectors of numbers: ``contrib.distributions.bijectors.Gumbel``, ``Square``, ``SinhArcsinh`` …

With ``validate_args`` what is outside of their domain is an error at the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.distributions.bijectors import Bijector, static_count
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import (
    assert_greater,
    assert_less,
    assert_less_equal,
    assert_non_negative,
    assert_positive,
)
from headrace.ops.control.dependencies import with_dependencies

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "AbsoluteValue",
    "Gumbel",
    "Kumaraswamy",
    "PowerTransform",
    "SinhArcsinh",
    "Softsign",
    "Square",
]


class _OfNumbers(Bijector):
    """A bijector of numbers with checks of what it is given."""

    _above_zero = "Inverse transformation input must be greater than 0."
    _upto_one = "Inverse transformation input must be less than or equal to 1."

    def __init__(self, validate_args: bool, name: str, **parameters: TensorLike) -> None:
        with name_scope(f"{name}/init", values=list(parameters.values())):
            for key, value in parameters.items():
                kept = convert_to_tensor(value, name=key)
                if validate_args and key not in ("loc", "skewness"):
                    kept = with_dependencies(
                        [assert_positive(kept, message=f"Argument {key} was not positive")], kept
                    )
                setattr(self, f"_{key}", kept)
        super().__init__(validate_args=validate_args, forward_min_event_ndims=0, name=name)

    def _checked(self, x: Tensor, checks: Sequence[Any]) -> Tensor:
        return with_dependencies(list(checks), x) if checks else x

    def _unit(self, y: Tensor) -> Tensor:
        """``y``, which must be in [0, 1]."""
        if not self.validate_args:
            return y
        one = ops.ones([], y.dtype)
        return self._checked(
            y,
            [
                assert_non_negative(y, message=self._above_zero),
                assert_less_equal(y, one, message=self._upto_one),
            ],
        )

    def _not_negative(self, x: Tensor, message: str) -> Tensor:
        return self._checked(
            x, [assert_non_negative(x, message=message)] if self.validate_args else []
        )


class AbsoluteValue(_OfNumbers):
    """abs(x); the inverse is the pair (-y, y)."""

    def __init__(self, validate_args: bool = False, name: str = "absolute_value") -> None:
        super().__init__(validate_args, name)
        self._is_constant_jacobian = True

    @property
    def _is_injective(self) -> bool:
        return False

    def _forward(self, x: Tensor) -> Tensor:
        found: Tensor = ops.abs(x)
        return found

    def _inverse(self, y: Tensor) -> Any:
        y = self._not_negative(y, "Argument y was negative")
        return -y, y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        raise NotImplementedError(
            "forward_log_det_jacobian cannot be implemented for non-injective transforms."
        )

    def inverse_log_det_jacobian(
        self, y: TensorLike, event_ndims: int | Tensor, name: str = "inverse_log_det_jacobian"
    ) -> Any:
        """A pair, for both inverses."""
        with self._scope(name, y):
            given = convert_to_tensor(y, name="y", preferred_dtype=self.dtype)
            zero: Any = ops.zeros([], given.dtype)
            if self.validate_args:
                given = self._not_negative(given, "Argument y was negative")
                zero = with_dependencies([given.op], zero)
            each = [zero, zero]
            axes = static_count(event_ndims)
            if axes is None:
                raise ValueError("event_ndims must be known when the graph is built")
            if axes:
                each = [
                    ops.reduce_sum(z * ops.ones_like(given), list(range(-axes, 0))) for z in each
                ]
            return each[0], each[1]


class Gumbel(_OfNumbers):
    """exp(-exp(-(x - loc) / scale)), the distribution function."""

    def __init__(
        self,
        loc: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        validate_args: bool = False,
        name: str = "gumbel",
    ) -> None:
        super().__init__(validate_args, name, loc=loc, scale=scale)

    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._scale)

    def _forward(self, x: Tensor) -> Tensor:
        found: Tensor = ops.exp(-ops.exp(-(x - self.loc) / self.scale))
        return found

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = self.loc - self.scale * ops.log(-ops.log(self._unit(y)))
        return found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        y = self._unit(y)
        return ops.log(self.scale / (-ops.log(y) * y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        z = (x - self.loc) / self.scale
        return -z - ops.exp(-z) - ops.log(self.scale)


class Kumaraswamy(_OfNumbers):
    """(1 - (1 - x) ** (1 / concentration0)) ** (1 / concentration1): of uniform numbers."""

    _above_zero = "sample must be non-negative."
    _upto_one = "sample must be no larger than `1`."

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        name: str = "kumaraswamy",
    ) -> None:
        super().__init__(
            validate_args, name, concentration1=concentration1, concentration0=concentration0
        )

    concentration1 = property(lambda self: self._concentration1)
    concentration0 = property(lambda self: self._concentration0)

    def _forward(self, x: Tensor) -> Tensor:
        x = self._unit(x)
        inner = ops.exp(ops.log1p(-x) / self.concentration0)
        return ops.exp(ops.log1p(-inner) / self.concentration1)

    def _inverse(self, y: Tensor) -> Tensor:
        y = self._unit(y)
        return ops.exp(ops.log1p(-((1 - y**self.concentration1) ** self.concentration0)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        y = self._unit(y)
        a, b = self.concentration1, self.concentration0
        return ops.log(a) + ops.log(b) + (a - 1) * ops.log(y) + (b - 1) * ops.log1p(-(y**a))


class PowerTransform(_OfNumbers):
    """(1 + power x) ** (1 / power), or exp(x) for the power 0."""

    def __init__(
        self, power: TensorLike = 0.0, validate_args: bool = False, name: str = "power_transform"
    ) -> None:
        with name_scope(f"{name}/init", values=[power]):
            known = static_value(convert_to_tensor(power, name="power"))
        if known is None or known < 0:
            raise ValueError("`power` must be a non-negative TF constant.")
        self._power = known
        super().__init__(validate_args, name)

    power = property(lambda self: self._power)

    def _inside(self, x: Tensor) -> Tensor:
        if not self.validate_args or self.power == 0:
            return x
        least = assert_non_negative(
            1 + self.power * x,
            message=f"Forward transformation input must be at least {-1 / self.power}.",
        )
        return self._checked(x, [least])

    def _above(self, y: Tensor) -> Tensor:
        if not self.validate_args:
            return y
        return self._checked(
            y,
            [assert_positive(y, message="Inverse transformation input must be greater than 0.")],
        )

    def _forward(self, x: Tensor) -> Tensor:
        x = self._inside(x)
        if self.power == 0:
            return ops.exp(x)
        return ops.exp(ops.log1p(x * self.power) / self.power)

    def _inverse(self, y: Tensor) -> Any:
        y = self._above(y)
        if self.power == 0:
            return ops.log(y)
        return ops.expm1(ops.log(y) * self.power) / self.power

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        found: Tensor = (self.power - 1) * ops.log(self._above(y))
        return found

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        x = self._inside(x)
        if self.power == 0:
            return x
        return (1 / self.power - 1) * ops.log1p(x * self.power)


def _root_of_square_plus_one(x: Tensor) -> Tensor:
    """sqrt(x ** 2 + 1) without overflow."""
    small = ops.abs(x) * np.sqrt(np.finfo(x.dtype.as_numpy_dtype).eps) <= 1.0
    return ops.where_v2(small, ops.sqrt(x**2.0 + 1.0), ops.abs(x))


class SinhArcsinh(_OfNumbers):
    """sinh((arcsinh(x) + skewness) * tailweight)."""

    def __init__(
        self,
        skewness: TensorLike | None = None,
        tailweight: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "SinhArcsinh",
    ) -> None:
        first = convert_to_tensor(0.0 if skewness is None else skewness, name="skewness")
        weight = 1.0 if tailweight is None else tailweight
        second = convert_to_tensor(weight, first.dtype, name="tailweight")
        super().__init__(validate_args, name, skewness=first, tailweight=second)

    skewness = property(lambda self: self._skewness)
    tailweight = property(lambda self: self._tailweight)

    def _bent(self, x: Tensor) -> Any:
        return (ops.asinh(x) + self.skewness) * self.tailweight

    def _forward(self, x: Tensor) -> Tensor:
        found: Tensor = ops.sinh(self._bent(x))
        return found

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = ops.sinh(ops.asinh(y) / self.tailweight - self.skewness)
        return found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        inner = ops.cosh(ops.asinh(y) / self.tailweight - self.skewness)
        return ops.log(inner / _root_of_square_plus_one(y)) - ops.log(self.tailweight)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        ratio = ops.cosh(self._bent(x)) / _root_of_square_plus_one(x)
        return ops.log(ratio) + ops.log(self.tailweight)


class Softsign(_OfNumbers):
    """x / (1 + abs(x))."""

    def __init__(self, validate_args: bool = False, name: str = "softsign") -> None:
        super().__init__(validate_args, name)

    def _inside(self, y: Tensor) -> Tensor:
        if not self.validate_args:
            return y
        one = ops.ones([], y.dtype)
        low = "Inverse transformation input must be greater than -1."
        high = "Inverse transformation input must be less than 1."
        return self._checked(
            y, [assert_greater(y, -one, message=low), assert_less(y, one, message=high)]
        )

    def _forward(self, x: Tensor) -> Tensor:
        found: Tensor = x / (1.0 + ops.abs(x))
        return found

    def _inverse(self, y: Tensor) -> Any:
        y = self._inside(y)
        return y / (1.0 - ops.abs(y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        found: Tensor = -2.0 * ops.log1p(ops.abs(x))
        return found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        found: Tensor = -2.0 * ops.log1p(-ops.abs(self._inside(y)))
        return found


class Square(_OfNumbers):
    """x ** 2 of numbers that are not negative."""

    def __init__(self, validate_args: bool = False, name: str = "square") -> None:
        super().__init__(validate_args, name)

    def _inside(self, x: Tensor) -> Tensor:
        return self._not_negative(x, "All elements must be non-negative.")

    def _forward(self, x: Tensor) -> Tensor:
        found: Tensor = ops.square(self._inside(x))
        return found

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = ops.sqrt(self._inside(y))
        return found

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        found: Tensor = np.log(2.0) + ops.log(self._inside(x))
        return found
