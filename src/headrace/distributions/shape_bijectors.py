"""Bijectors that change the shape of events: ``Reshape``, ``SoftmaxCentered``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape
from headrace.distributions.bijectors import Bijector
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import (
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less_equal,
)
from headrace.ops.control.dependencies import with_dependencies

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["Reshape", "SoftmaxCentered"]


class Reshape(Bijector):
    """Events of ``event_shape_in`` as events of ``event_shape_out``; each may have one -1.

    What the graph knows of shapes is checked when it is built; the rest when it runs, with
    ``validate_args``.
    """

    def __init__(
        self,
        event_shape_out: TensorLike,
        event_shape_in: TensorLike = (-1,),
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "reshape", values=[event_shape_out, event_shape_in]):
            both = [
                convert_to_tensor(given, dtypes.int32, role)
                for role, given in (
                    ("event_shape_out", event_shape_out),
                    ("event_shape_in", event_shape_in),
                )
            ]
            self._out, self._in = (_checked_shape(shape, validate_args) for shape in both)
        super().__init__(
            graph_parents=both,
            is_constant_jacobian=True,
            validate_args=validate_args,
            forward_min_event_ndims=0,
            name=name or "reshape",
        )

    def _forward(self, x: Tensor) -> Tensor:
        return self._reshaped(x, self._in, self._out)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._reshaped(y, self._out, self._in)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        found: Tensor = ops.zeros([], x.dtype)
        return found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return self._forward_log_det_jacobian(y)

    def _reshaped(self, x: Tensor, before: Any, after: Any) -> Tensor:
        """``x``, whose last axes are ``before``."""
        size = ops.shape(x)
        outer, event = self._split(size, before)
        goal = self._goal(x.shape, event, before, after)
        found: Tensor = ops.reshape(x, ops.concat([outer, goal], 0))
        found.set_shape(_static_shape(x.shape, before, after))
        return found

    def _split(self, size: Any, before: Any) -> tuple[Any, Any]:
        """A shape without the axes of the event, and these."""
        axes = before.shape.as_list()[0] if before.shape.is_fully_defined() else None
        cut = ops.shape(size)[0] - (ops.shape(before)[0] if axes is None else axes)
        return size[:cut], size[cut:]

    def _goal(self, static: TensorShape, event: Any, before: Any, after: Any) -> Any:
        """``after``, given that ``event`` is what ``before`` says."""
        known = static_value(before)
        if known is not None and static.ndims is not None:
            inner = static.as_list()[max(static.ndims - len(known), 0) :]
            fits = len(inner) == len(known) and all(
                wanted == -1 or n in (None, wanted)
                for wanted, n in zip(known.tolist(), inner, strict=True)
            )
            if not fits:
                raise ValueError(
                    f"Input `event_shape` does not match `event_shape_in`. ({inner} vs {known})"
                )
            if None not in inner:
                return after
        if not self.validate_args:
            return after
        same = ops.where_v2(ops.equal(before, -1), event, before)
        message = "Input `event_shape` does not match `event_shape_in`."
        with control_dependencies([assert_equal(same, event, message=message)]):
            return ops.identity(after)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return _static_shape(input_shape, self._in, self._out)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return _static_shape(output_shape, self._out, self._in)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self._shape_after(input_shape, self._in, self._out)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self._shape_after(output_shape, self._out, self._in)

    def _shape_after(self, size: Any, before: Any, after: Any) -> Tensor:
        """The shape that something of shape ``size`` is given, with the size for -1."""
        outer, event = self._split(size, before)
        known = static_value(size)
        goal: Any = self._goal(TensorShape(known), event, before, after)
        others = ops.reduce_prod(ops.where_v2(ops.equal(goal, -1), ops.ones_like(goal), goal))
        fill = ops.reduce_prod(event) // others
        goal = ops.where_v2(ops.equal(goal, -1), ops.ones_like(goal) * fill, goal)
        found: Tensor = ops.concat([outer, goal], 0)
        return found


def _checked_shape(shape: Any, validate_args: bool) -> Any:
    """An event shape: a vector of sizes, one of them perhaps -1."""
    if shape.shape.ndims is not None and shape.shape.ndims > 1:
        raise ValueError(f"{shape.op.name} rank should be <= 1.")
    if not validate_args:
        return shape
    unknown = ops.reduce_sum(ops.cast(ops.equal(shape, -1), dtypes.int32))
    name = shape.op.name
    message = f"{name} elements must be either positive integers or `-1`."
    checks = [
        assert_less_equal(unknown, 1, message=f"{name} elements must have at most one `-1`."),
        assert_greater_equal(shape, -1, message=message),
    ]
    with control_dependencies([c for c in checks if c is not None]):
        kept = ops.identity(shape)
    return kept


def _static_shape(given: TensorShape, before: Any, after: Any) -> TensorShape:
    """What is known of a shape after reshaping its last axes from ``before`` to ``after``."""
    goal = static_value(after)
    if given.ndims is None or goal is None or not before.shape.is_fully_defined():
        return TensorShape(None)
    dims = given.as_list()
    cut = len(dims) - before.shape.as_list()[0]
    outer, inner = dims[:cut], dims[cut:]
    others = int(np.prod([n for n in goal.tolist() if n != -1]))
    known = [n for n in inner if n is not None]
    fill = int(np.prod(known)) // others if others and len(known) == len(inner) else None
    return TensorShape([*outer, *(fill if n == -1 else n for n in goal.tolist())])


class SoftmaxCentered(Bijector):
    """The softmax of a vector and a further 0: probabilities without a spare number."""

    def __init__(self, validate_args: bool = False, name: str = "softmax_centered") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=1, name=name)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return _last(input_shape, 1)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return _last(output_shape, -1)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        found: Tensor = ops.concat([input_shape[:-1], input_shape[-1:] + 1], 0)
        return found

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Tensor:
        if self.validate_args:
            least = assert_greater(
                output_shape[-1], 1, message="Need last dimension greater than 1."
            )
            output_shape = with_dependencies([least], output_shape)
        found: Tensor = ops.concat([output_shape[:-1], output_shape[-1:] - 1], 0)
        return found

    def _forward(self, x: Tensor) -> Tensor:
        found: Tensor = ops.softmax(ops.concat([x, ops.zeros_like(x[..., :1])], -1))
        return found

    def _inverse(self, y: Tensor) -> Tensor:
        logs = ops.log(y)
        return logs[..., :-1] - logs[..., -1:]

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        found: Tensor = -ops.reduce_sum(ops.log(y), -1)
        return found

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        norm = ops.softplus(ops.reduce_logsumexp(x, -1, keepdims=True))
        return ops.squeeze(-norm + ops.reduce_sum(x - norm, -1, keepdims=True), -1)


def _last(shape: TensorShape, more: int) -> TensorShape:
    if shape.ndims is None:
        return shape
    *outer, n = shape.as_list()
    if n is not None and more < 0 and n <= 1:
        raise ValueError(f"output_shape[-1] = {n} <= 1")
    return TensorShape([*outer, None if n is None else n + more])
