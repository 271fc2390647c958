"""``contrib.distributions.bijectors``: invertible functions with the logarithm of their
derivative's determinant, for TransformedDistribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.ops.array.array_shape import shape
from headrace.ops.array.basic import constant, identity
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones, ones_like
from headrace.ops.array.gathering import gather
from headrace.ops.array.ranges import range as range_of
from headrace.ops.array.selecting import where_v2
from headrace.ops.array.sorting import sort
from headrace.ops.control.assertions import assert_equal, assert_none_equal
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.math.comparison import greater, less, logical_or
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.math.unary import abs as abs_of
from headrace.ops.math.unary import atanh, exp, expm1, log, log1p, sigmoid, tanh
from headrace.ops.nn.activations import softplus

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.tensor import Tensor

__all__ = [
    "AffineScalar",
    "Bijector",
    "Chain",
    "Exp",
    "Identity",
    "Invert",
    "Permute",
    "Sigmoid",
    "Softplus",
    "Tanh",
    "softplus_inverse",
]


def softplus_inverse(x: TensorLike, name: str | None = None) -> Tensor:
    """``log(exp(x) - 1)``, without overflow."""
    with name_scope(name, "softplus_inverse", values=[x]):
        x = convert_to_tensor(x, name="x")
        threshold = np.log(np.finfo(x.dtype.as_numpy_dtype).eps) + 2.0
        too_small, too_large = less(x, np.exp(threshold)), greater(x, -threshold)
        safe = where_v2(logical_or(too_small, too_large), ones_like(x), x)
        inner = safe + log(-expm1(-safe))
        return where_v2(too_small, log(x), where_v2(too_large, x, inner))


class Bijector:
    """An invertible function.

    Subclasses define ``_forward``, ``_inverse`` and one of ``_forward_log_det_jacobian`` and
    ``_inverse_log_det_jacobian``, over the last ``forward_min_event_ndims`` axes.
    """

    def __init__(
        self,
        graph_parents: Sequence[Any] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: DTypeLike | None = None,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str | None = None,
    ) -> None:
        first, second = forward_min_event_ndims, inverse_min_event_ndims
        if first is None:
            first = second
        if second is None:
            second = first
        if first is None or second is None:
            raise ValueError(
                "Must specify at least one of `forward_min_event_ndims` and "
                "`inverse_min_event_ndims`."
            )
        self._forward_min, self._inverse_min = first, second
        self._graph_parents = list(graph_parents or [])
        self._is_constant_jacobian = is_constant_jacobian
        self._validate_args = validate_args
        self._dtype = dtype
        self._name = name or _snake(type(self).__name__)
        # what was computed: y by x, x by y, and the tensors, so that their ids stay theirs
        self._known: dict[tuple[str, Any], Any] = {}
        self._cached: list[Any] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def graph_parents(self) -> list[Any]:
        return self._graph_parents

    @property
    def forward_min_event_ndims(self) -> int:
        """How many of the last axes the function works on."""
        return self._forward_min

    @property
    def inverse_min_event_ndims(self) -> int:
        return self._inverse_min

    @property
    def is_constant_jacobian(self) -> bool:
        """Whether the derivative is the same everywhere."""
        return self._is_constant_jacobian

    @property
    def validate_args(self) -> bool:
        return self._validate_args

    def forward(self, x: TensorLike, name: str = "forward") -> Tensor:
        """The function."""
        with self._scope(name, x):
            given = convert_to_tensor(x, name="x", preferred_dtype=self.dtype)
            y: Tensor = self._remembered("forward", given, lambda: self._forward(given))
            return y

    def inverse(self, y: TensorLike, name: str = "inverse") -> Tensor:
        """The inverse."""
        with self._scope(name, y):
            given = convert_to_tensor(y, name="y", preferred_dtype=self.dtype)
            x: Tensor = self._remembered("inverse", given, lambda: self._inverse(given))
            return x

    def _remembered(
        self, way: str, x: Tensor, compute: Callable[[], Any], condition: Any = ()
    ) -> Any:
        """``compute()``, or what `forward` or `inverse` was given when it gave ``x``: the inverse
        of a sample is what it was made of, as in TensorFlow.
        """
        if get_default_graph()._is_eager or not self._is_injective:
            return compute()
        found = self._known.get((way, (id(x), condition)))
        if found is None:
            found = compute()
            other = "inverse" if way == "forward" else "forward"
            self._known[way, (id(x), condition)] = found
            self._known[other, (id(found), condition)] = x
            self._cached += [x, found]
        return found

    @property
    def _is_injective(self) -> bool:
        """Whether every value has one inverse."""
        return True

    def forward_log_det_jacobian(
        self, x: TensorLike, event_ndims: int | Tensor, name: str = "forward_log_det_jacobian"
    ) -> Tensor:
        """The logarithm of the determinant of the derivative, summed over the last
        ``event_ndims`` axes.
        """
        with self._scope(name, x):
            x = convert_to_tensor(x, name="x", preferred_dtype=self.dtype)
            try:
                found = self._forward_log_det_jacobian(x)
            except NotImplementedError:
                there = self._remembered("forward", x, lambda: self._forward(x))
                found = -self._inverse_log_det_jacobian(there)
            return self._reduced(found, x, event_ndims, self._forward_min)

    def inverse_log_det_jacobian(
        self, y: TensorLike, event_ndims: int | Tensor, name: str = "inverse_log_det_jacobian"
    ) -> Tensor:
        """The same of the inverse."""
        with self._scope(name, y):
            y = convert_to_tensor(y, name="y", preferred_dtype=self.dtype)
            try:
                found = self._inverse_log_det_jacobian(y)
            except NotImplementedError:
                back = self._remembered("inverse", y, lambda: self._inverse(y))
                found = -self._forward_log_det_jacobian(back)
            return self._reduced(found, y, event_ndims, self._inverse_min)

    def _reduced(self, found: Tensor, x: Tensor, event_ndims: int | Tensor, least: int) -> Tensor:
        """The sum over the axes of an event that the function does not work on as a whole."""
        known = event_ndims if isinstance(event_ndims, int) else static_count(event_ndims)
        if known is None:
            return self._summed(found, x, event_ndims, least)
        axes = int(known) - least
        if axes < 0:
            raise ValueError(f"event_ndims is smaller than {type(self).__name__}'s: {least}")
        if axes == 0:
            return found
        if self._is_constant_jacobian:  # one number for each part of an event
            parts = shape(x)[-int(known) :][:axes]
            found = found * ones(parts, x.dtype)
        return reduce_sum(found, list(range(-axes, 0)))

    def _summed(self, found: Any, x: Tensor, event_ndims: Any, least: int) -> Tensor:
        """:meth:`_reduced` for a number of axes that is known when the graph runs."""
        if self._is_constant_jacobian:
            size, rank = shape(x), shape(shape(x))[0]
            found = found * ones(size[rank - event_ndims : rank - least], x.dtype)
        return reduce_sum(found, range_of(least - event_ndims, 0))

    def forward_event_shape(self, input_shape: TensorLike) -> TensorShape:
        """The event shape after the function, as far as it is known in the graph."""
        return TensorShape(self._forward_event_shape(TensorShape(input_shape)))

    def inverse_event_shape(self, output_shape: TensorLike) -> TensorShape:
        return TensorShape(self._inverse_event_shape(TensorShape(output_shape)))

    def forward_event_shape_tensor(
        self, input_shape: TensorLike, name: str = "forward_event_shape_tensor"
    ) -> Tensor:
        """The event shape after the function, as a vector that is known when the graph runs."""
        with self._scope(name, input_shape):
            given = convert_to_tensor(input_shape, dtypes.int32, "input_shape")
            return identity(self._forward_event_shape_tensor(given))

    def inverse_event_shape_tensor(
        self, output_shape: TensorLike, name: str = "inverse_event_shape_tensor"
    ) -> Tensor:
        with self._scope(name, output_shape):
            given = convert_to_tensor(output_shape, dtypes.int32, "output_shape")
            return identity(self._inverse_event_shape_tensor(given))

    def _forward_event_shape(self, input_shape: TensorShape) -> Any:
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> Any:
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return output_shape

    def _scope(self, name: str, value: TensorLike) -> name_scope:
        return name_scope(f"{self.name}/{name}", values=[value, *self._graph_parents])

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"forward not implemented: {type(self).__name__}")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"inverse not implemented: {type(self).__name__}")

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"forward_log_det_jacobian: {type(self).__name__}")

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"inverse_log_det_jacobian: {type(self).__name__}")


def static_count(number: TensorLike) -> int | None:
    known = static_value(convert_to_tensor(number, dtypes.int32))
    return None if known is None else int(known)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class Identity(Bijector):
    """What it is given: ``forward(x)`` and ``inverse(x)`` are ``x``."""

    def __init__(self, validate_args: bool = False, name: str = "identity") -> None:
        super().__init__(
            is_constant_jacobian=True,
            validate_args=validate_args,
            forward_min_event_ndims=0,
            name=name,
        )

    def _forward(self, x: Tensor) -> Tensor:
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return constant(0.0, dtype=x.dtype)


class Exp(Bijector):
    """``exp(x)`` of every element; the inverse is the logarithm."""

    def __init__(self, validate_args: bool = False, name: str = "exp") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=0, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        return exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return identity(x)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -log(y)


class Sigmoid(Bijector):
    """``sigmoid(x)`` of every element: from all numbers to (0, 1)."""

    def __init__(self, validate_args: bool = False, name: str = "sigmoid") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=0, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        return sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y) - log1p(-y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class Tanh(Bijector):
    """``tanh(x)`` of every element: from all numbers to (-1, 1)."""

    def __init__(self, validate_args: bool = False, name: str = "tanh") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=0, name=name)

    def _forward(self, x: Tensor) -> Any:
        return tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return atanh(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return 2.0 * (np.log(2.0) - x - softplus(-2.0 * x))


class Softplus(Bijector):
    """hinge_softness * softplus(x / hinge_softness)."""

    def __init__(
        self, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus"
    ) -> None:
        with name_scope(name, values=[hinge_softness]):
            self._hinge_softness = (
                None
                if hinge_softness is None
                else convert_to_tensor(hinge_softness, name="hinge_softness")
            )
            if validate_args and self._hinge_softness is not None:
                text = "hinge_softness must be non-zero"
                check = assert_none_equal(self._hinge_softness, 0.0, message=text)
                self._hinge_softness = with_dependencies([check], self._hinge_softness)
        super().__init__(validate_args=validate_args, forward_min_event_ndims=0, name=name)

    @property
    def hinge_softness(self) -> Tensor | None:
        return self._hinge_softness

    def _scaled(self, x: Tensor) -> Tensor:
        return x if self._hinge_softness is None else x / cast(self._hinge_softness, x.dtype)

    def _back(self, x: Tensor) -> Tensor:
        return x if self._hinge_softness is None else x * cast(self._hinge_softness, x.dtype)

    def _forward(self, x: Tensor) -> Tensor:
        return self._back(softplus(self._scaled(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._back(softplus_inverse(self._scaled(y)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -log(-expm1(-self._scaled(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -softplus(-self._scaled(x))


class AffineScalar(Bijector):
    """scale * x + shift, with numbers.

    A missing ``shift`` is 0, a missing ``scale`` 1. Both may be tensors that broadcast with x: each
    element is mapped by itself, so the log determinant is the logarithm of ``abs(scale)``.
    """

    def __init__(
        self,
        shift: Any = None,
        scale: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "affine_scalar",
    ) -> None:
        with name_scope(name, values=[scale, shift]):
            self._shift = None if shift is None else convert_to_tensor(shift, name="shift")
            self._scale = None if scale is None else convert_to_tensor(scale, name="scale")
        super().__init__(
            is_constant_jacobian=True,
            validate_args=validate_args,
            forward_min_event_ndims=0,
            name=name,
        )

    @property
    def shift(self) -> Tensor | None:
        return self._shift

    @property
    def scale(self) -> Any:
        return self._scale

    def _forward(self, x: Tensor) -> Tensor:
        y = x if self._scale is None else x * self._scale
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Tensor) -> Tensor:
        x = y if self._shift is None else y - self._shift
        return x if self._scale is None else x / self._scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if self._scale is None:
            return constant(0.0, dtype=x.dtype)
        return log(abs_of(self._scale))


class Permute(Bijector):
    """The elements of vectors in another order."""

    def __init__(
        self, permutation: Any, validate_args: bool = False, name: str | None = None
    ) -> None:
        with name_scope(name, "permute", values=[permutation]):
            self._permutation = convert_to_tensor(permutation, name="permutation")
            if validate_args:
                message = "Permutation over `d` must contain each of 0 to d - 1 once."
                known = static_value(self._permutation)
                if known is not None and sorted(known.tolist()) != list(range(len(known))):
                    raise ValueError(message)
                given = self._permutation
                check = assert_equal(sort(given), range_of(shape(given)[-1]), message=message)
                self._permutation = with_dependencies([check], given)
        super().__init__(
            is_constant_jacobian=True,
            validate_args=validate_args,
            forward_min_event_ndims=1,
            name=name or "permute",
        )

    @property
    def permutation(self) -> Tensor:
        return self._permutation

    def _forward(self, x: Tensor) -> Tensor:
        return gather(x, self._permutation, axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        from headrace.ops.array.gathering import invert_permutation

        return gather(y, invert_permutation(self._permutation), axis=-1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return constant(0.0, dtype=x.dtype)


class Invert(Bijector):
    """The inverse of another bijector."""

    def __init__(
        self, bijector: Bijector, validate_args: bool = False, name: str | None = None
    ) -> None:
        self._bijector = bijector
        super().__init__(
            graph_parents=bijector.graph_parents,
            is_constant_jacobian=bijector.is_constant_jacobian,
            validate_args=validate_args,
            dtype=bijector.dtype,
            forward_min_event_ndims=bijector.inverse_min_event_ndims,
            inverse_min_event_ndims=bijector.forward_min_event_ndims,
            name=name or f"invert_{bijector.name}",
        )

    @property
    def bijector(self) -> Bijector:
        return self._bijector

    def _forward(self, x: Tensor) -> Tensor:
        return self._bijector._inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._bijector._forward(y)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return self._bijector.inverse_event_shape(input_shape)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return self._bijector.forward_event_shape(output_shape)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self._bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self._bijector.forward_event_shape_tensor(output_shape)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._bijector.inverse_log_det_jacobian(x, self._bijector.inverse_min_event_ndims)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return self._bijector.forward_log_det_jacobian(y, self._bijector.forward_min_event_ndims)


def _least_ndims(steps: Sequence[tuple[int, int]]) -> int:
    """How many axes an event of a chain has at least, for (axes before, after) of its parts."""
    least = have = 0
    for before, after in steps:
        least += max(before - have, 0)
        have = max(before, have) - before + after
    return least


class Chain(Bijector):
    """One bijector after the other, the last first: ``bijectors[0](bijectors[1](… x))``."""

    def __init__(
        self,
        bijectors: Sequence[Bijector] | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        self._bijectors = list(bijectors or ())
        names = "_of_".join(b.name for b in self._bijectors)
        steps = [(b.forward_min_event_ndims, b.inverse_min_event_ndims) for b in self._bijectors]
        super().__init__(
            graph_parents=[p for b in self._bijectors for p in b.graph_parents],
            is_constant_jacobian=all(b.is_constant_jacobian for b in self._bijectors),
            validate_args=validate_args,
            forward_min_event_ndims=_least_ndims(steps[::-1]),
            inverse_min_event_ndims=_least_ndims([(b, a) for a, b in steps]),
            name=name or (f"chain_of_{names}" if names else "identity"),
        )

    @property
    def bijectors(self) -> list[Bijector]:
        return self._bijectors

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        for bijector in reversed(self._bijectors):
            input_shape = bijector.forward_event_shape(input_shape)
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        for bijector in self._bijectors:
            output_shape = bijector.inverse_event_shape(output_shape)
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        for bijector in reversed(self._bijectors):
            input_shape = bijector.forward_event_shape_tensor(input_shape)
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        for bijector in self._bijectors:
            output_shape = bijector.inverse_event_shape_tensor(output_shape)
        return output_shape

    def _forward(self, x: Tensor) -> Tensor:
        for bijector in reversed(self._bijectors):
            x = bijector.forward(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for bijector in self._bijectors:
            y = bijector.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        total = constant(0.0, dtype=x.dtype, name="fldj")
        ndims = self._forward_min
        for bijector in reversed(self._bijectors):
            total += bijector.forward_log_det_jacobian(x, ndims)
            ndims += bijector.inverse_min_event_ndims - bijector.forward_min_event_ndims
            x = bijector.forward(x)
        return total

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        total = constant(0.0, dtype=y.dtype, name="ildj")
        ndims = self._inverse_min
        for bijector in self._bijectors:
            total += bijector.inverse_log_det_jacobian(y, ndims)
            ndims += bijector.forward_min_event_ndims - bijector.inverse_min_event_ndims
            y = bijector.inverse(y)
        return total
