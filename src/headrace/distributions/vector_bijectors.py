"""Bijectors of vectors and matrices: ``FillTriangular``, ``ScaleTriL``, ``Ordered`` …"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.distributions.bijectors import Bijector, Chain, Softplus
from headrace.distributions.triangular import fill_triangular, fill_triangular_inverse
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import (
    assert_equal,
    assert_none_equal,
    assert_positive,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.decompositions import cholesky
from headrace.ops.linalg.diagonals import matrix_band_part, matrix_diag_part, matrix_set_diag
from headrace.ops.linalg.norms import eye
from headrace.ops.linalg.solving import matrix_triangular_solve

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "AffineLinearOperator",
    "CholeskyOuterProduct",
    "FillTriangular",
    "Inline",
    "MatrixInverseTriL",
    "Ordered",
    "ScaleTriL",
    "TransformDiagonal",
]


class AffineLinearOperator(Bijector):
    """``scale @ x + shift`` for a ``tf.linalg.LinearOperator`` as scale."""

    def __init__(
        self,
        shift: TensorLike | None = None,
        scale: Any = None,
        validate_args: bool = False,
        name: str = "affine_linear_operator",
    ) -> None:
        from headrace.linear_operators.operator_base import LinearOperator

        kind: Any = dtypes.float32
        parents: list[Any] = []
        with name_scope(f"{name}/init", values=[shift]):
            self._shift: Any = None if shift is None else convert_to_tensor(shift, name="shift")
        if self._shift is not None:
            kind = self._shift.dtype.base_dtype
            parents.append(self._shift)
        if scale is not None:
            if not isinstance(scale, LinearOperator):
                raise TypeError("scale is not an instance of tf.LinearOperator")
            if self._shift is not None and kind != scale.dtype.base_dtype:
                raise TypeError(
                    f"shift.dtype({self._shift.dtype}) is incompatible with "
                    f"scale.dtype({scale.dtype})."
                )
            if validate_args and not scale.is_non_singular:
                raise ValueError("Scale matrix must be non-singular.")
            kind = scale.dtype.base_dtype
            parents += list(scale.graph_parents)
        self._scale = scale
        super().__init__(
            graph_parents=parents,
            is_constant_jacobian=True,
            validate_args=validate_args,
            dtype=kind,
            forward_min_event_ndims=1,
            name=name,
        )

    shift = property(lambda self: self._shift)
    scale = property(lambda self: self._scale)

    def _forward(self, x: Tensor) -> Tensor:
        y = x
        if self._scale is not None:
            checks = [self._scale.assert_non_singular()] if self.validate_args else []
            with control_dependencies(checks):
                y = self._scale.matvec(x)
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Tensor) -> Tensor:
        x = y if self._shift is None else y - self._shift
        return x if self._scale is None else self._scale.solvevec(x)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        if self._scale is None:
            return ops.zeros([], x.dtype.base_dtype)
        return self._scale.log_abs_determinant()


class CholeskyOuterProduct(Bijector):
    """``x @ x^T`` of lower triangular matrices with positive diagonals."""

    def __init__(self, validate_args: bool = False, name: str = "cholesky_outer_product") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=2, name=name)

    def _square(self, x: Tensor) -> Tensor:
        if not self.validate_args:
            return x
        size = ops.shape(x)
        return with_dependencies([assert_equal(size[-2], size[-1])], x)

    def _forward(self, x: Tensor) -> Tensor:
        low = matrix_band_part(self._square(x), -1, 0)
        return ops.matmul(low, low, adjoint_b=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return cholesky(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        diagonal: Any = matrix_diag_part(self._square(x))
        if self.validate_args:
            message = "Input must be positive definite."
            diagonal = with_dependencies([assert_positive(diagonal, message=message)], diagonal)
        n = ops.shape(x)[-1]
        size = ops.cast(n, x.dtype)
        weights = size - ops.cast(ops.range(n), x.dtype)
        return size * np.log(2.0) + ops.reduce_sum(ops.log(diagonal) * weights, -1)


def _side(d: int | None) -> int | None:
    """The n with n (n + 1) / 2 = d."""
    if d is None:
        return None
    n = (-1 + np.sqrt(1 + 8 * d)) / 2.0
    if float(int(n)) != n:
        raise ValueError("Vector length is not a triangular number.")
    return int(n)


class FillTriangular(Bijector):
    """Vectors as lower (upper) triangular matrices, filled in a spiral."""

    def __init__(
        self, upper: bool = False, validate_args: bool = False, name: str = "fill_triangular"
    ) -> None:
        self._upper = upper
        super().__init__(
            is_constant_jacobian=True,
            validate_args=validate_args,
            forward_min_event_ndims=1,
            inverse_min_event_ndims=2,
            name=name,
        )

    def _forward(self, x: Tensor) -> Tensor:
        return fill_triangular(x, upper=self._upper)

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = fill_triangular_inverse(y, upper=self._upper)
        return found

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        found: Tensor = ops.zeros_like(x[..., 0])
        return found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        found: Tensor = ops.zeros_like(y[..., 0, 0])
        return found

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        dims = input_shape.as_list()
        n = _side(dims[-1])
        return TensorShape([*dims[:-1], n, n])

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        *outer, rows, columns = output_shape.as_list()
        if rows is not None and columns is not None and rows != columns:
            raise ValueError("Matrix must be square")
        n = columns if rows is None else rows
        return TensorShape([*outer, None if n is None else n * (n + 1) // 2])

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        length: Any = input_shape[-1:]
        known = static_value(length)
        side: Any
        if known is not None and not self.validate_args:
            side = [_side(int(known[0]))]
        else:
            root = ops.sqrt(1.0 + 8.0 * ops.cast(length, dtypes.float32))
            side = ops.cast(ops.round((root - 1.0) / 2.0), dtypes.int32)
            if self.validate_args:
                message = "Vector length is not a triangular number."
                half = side * (side + 1) // 2
                side = with_dependencies([assert_equal(half, length, message=message)], side)
        found: Tensor = ops.concat([input_shape[:-1], side, side], 0)
        return found

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        n: Any = output_shape[-1:]
        if self.validate_args:
            same = assert_equal(output_shape[-2:-1], n, message="Matrix must be square.")
            n = with_dependencies([same], n)
        found: Tensor = ops.concat([output_shape[:-2], n * (n + 1) // 2], 0)
        return found


class MatrixInverseTriL(Bijector):
    """The inverse of lower triangular matrices."""

    def __init__(self, validate_args: bool = False, name: str = "matrix_inverse_tril") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=2, name=name)

    def _checks(self, x: Tensor) -> list[Any]:
        if not self.validate_args:
            return []
        if x.shape.ndims is not None and x.shape.ndims < 2:
            raise ValueError("Input must have rank at least 2.")
        size = ops.shape(x)
        diagonal = matrix_diag_part(x)
        above = matrix_band_part(matrix_set_diag(x, ops.zeros_like(diagonal)), 0, -1)
        zeros = ops.zeros_like(diagonal)
        return [
            assert_equal(size[-2], size[-1], message="Input must be a square matrix."),
            assert_equal(above, ops.zeros_like(above), message="Input must be lower triangular."),
            assert_none_equal(
                diagonal, zeros, message="Input must have all diagonal entries nonzero."
            ),
        ]

    def _forward(self, x: Tensor) -> Tensor:
        with control_dependencies(self._checks(x)):
            size = ops.shape(x)
            one = eye(size[-1], batch_shape=size[:-2], dtype=x.dtype)
            return matrix_triangular_solve(x, one, lower=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._forward(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        with control_dependencies(self._checks(x)):
            size = ops.cast(ops.shape(x)[-1], x.dtype.base_dtype)
            logs = ops.log(ops.abs(matrix_diag_part(x)))
            return -2.0 * size * ops.reduce_sum(logs, -1)


class Ordered(Bijector):
    """Growing vectors as the first element and the logarithms of the steps."""

    def __init__(self, validate_args: bool = False, name: str = "ordered") -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=1, name=name)

    def _steps(self, x: Tensor) -> Tensor:
        steps = x[..., 1:] - x[..., :-1]
        if not self.validate_args:
            return steps
        message = "Forward transformation input must be strictly increasing."
        return with_dependencies([assert_positive(steps, message=message)], steps)

    def _forward(self, x: Tensor) -> Tensor:
        found: Tensor = ops.concat([x[..., :1], ops.log(self._steps(x))], -1)
        return found

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = ops.cumsum(ops.concat([y[..., :1], ops.exp(y[..., 1:])], -1), axis=-1)
        return found

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        found: Tensor = ops.reduce_sum(y[..., 1:], -1)
        return found

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        found: Tensor = -ops.reduce_sum(ops.log(self._steps(x)), -1)
        return found


class TransformDiagonal(Bijector):
    """A bijector of vectors, applied to the diagonal of matrices."""

    def __init__(
        self,
        diag_bijector: Bijector,
        validate_args: bool = False,
        name: str = "transform_diagonal",
    ) -> None:
        self._diag_bijector = diag_bijector
        super().__init__(validate_args=validate_args, forward_min_event_ndims=2, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        return matrix_set_diag(x, self._diag_bijector.forward(matrix_diag_part(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return matrix_set_diag(y, self._diag_bijector.inverse(matrix_diag_part(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._diag_bijector.forward_log_det_jacobian(matrix_diag_part(x), 1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        found: Tensor = self._diag_bijector.inverse_log_det_jacobian(matrix_diag_part(y), 1)
        return found


class ScaleTriL(Chain):
    """Vectors as lower triangular matrices with positive diagonals: ``diag_bijector`` (softplus)
    plus ``diag_shift``.
    """

    def __init__(
        self,
        diag_bijector: Bijector | None = None,
        diag_shift: TensorLike | None = 1e-5,
        validate_args: bool = False,
        name: str = "scale_tril",
    ) -> None:
        from headrace.distributions.bijectors import AffineScalar

        inner = Softplus(validate_args=validate_args) if diag_bijector is None else diag_bijector
        if diag_shift is not None:
            inner = Chain([AffineScalar(shift=diag_shift), inner])
        super().__init__(
            [TransformDiagonal(diag_bijector=inner), FillTriangular()],
            validate_args=validate_args,
            name=name,
        )


class Inline(Bijector):
    """A bijector of functions."""

    def __init__(
        self,
        forward_fn: Callable[[Any], Any] | None = None,
        inverse_fn: Callable[[Any], Any] | None = None,
        inverse_log_det_jacobian_fn: Callable[[Any], Any] | None = None,
        forward_log_det_jacobian_fn: Callable[[Any], Any] | None = None,
        forward_event_shape_fn: Callable[[Any], Any] | None = None,
        forward_event_shape_tensor_fn: Callable[[Any], Any] | None = None,
        inverse_event_shape_fn: Callable[[Any], Any] | None = None,
        inverse_event_shape_tensor_fn: Callable[[Any], Any] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str = "inline",
    ) -> None:
        super().__init__(
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
            name=name,
        )
        given = {
            "_forward": forward_fn,
            "_inverse": inverse_fn,
            "_inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
            "_forward_log_det_jacobian": forward_log_det_jacobian_fn,
            "_forward_event_shape": forward_event_shape_fn,
            "_forward_event_shape_tensor": forward_event_shape_tensor_fn,
            "_inverse_event_shape": inverse_event_shape_fn,
            "_inverse_event_shape_tensor": inverse_event_shape_tensor_fn,
        }
        for method, function in given.items():
            if function is not None:
                setattr(self, method, function)
