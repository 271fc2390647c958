"""``bijectors.Affine``: ``scale @ x + shift`` with a scale that is a sum of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import control_dependencies, name_scope
from headrace.distributions.bijectors import Bijector
from headrace.layers import layer_ops as ops
from headrace.linear_operators.composed_operators import LinearOperatorLowRankUpdate
from headrace.linear_operators.dense_operators import LinearOperatorLowerTriangular
from headrace.linear_operators.diagonal_operators import LinearOperatorDiag
from headrace.ops.control.assertions import assert_none_equal
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.linalg.diagonals import matrix_band_part, matrix_diag_part, matrix_set_diag

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["Affine"]


class Affine(Bijector):
    """``scale @ x + shift`` of vectors.

    The scale is the sum of what is given: a multiple of one, a diagonal, a lower triangular
    matrix, and ``factor @ diag(perturb_diag) @ factor^T``; one if nothing else is given beside the
    last.

    >>> affine = tf.contrib.distributions.bijectors.Affine([1.0, -1.0], scale_diag=[2.0, 1.0])
    >>> affine.forward([1.0, 1.0])  # [3., 0.]
    """

    def __init__(
        self,
        shift: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_tril: TensorLike | None = None,
        scale_perturb_factor: TensorLike | None = None,
        scale_perturb_diag: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "affine",
    ) -> None:
        if scale_perturb_diag is not None and scale_perturb_factor is None:
            raise ValueError(
                "When scale_perturb_diag is specified, scale_perturb_factor must be specified."
            )
        given: dict[str, Any] = {
            "identity_multiplier": scale_identity_multiplier,
            "diag": scale_diag,
            "tril": scale_tril,
            "perturb_factor": scale_perturb_factor,
            "perturb_diag": scale_perturb_diag,
        }
        with name_scope(f"{name}/init", values=[shift, *given.values()]):
            self._shift: Any = None if shift is None else convert_to_tensor(shift, name="shift")
            parts = {
                k: None if v is None else convert_to_tensor(v, name=k) for k, v in given.items()
            }
            kinds = {t.dtype.base_dtype for t in parts.values() if t is not None}
            kind: Any = dtypes.float32 if self._shift is None else self._shift.dtype.base_dtype
            if self._shift is not None and kinds - {kind}:
                scales = sorted(k.name for k in kinds)
                raise TypeError(
                    f"shift.dtype({self._shift.dtype}) is incompatible with scale.dtype({scales})."
                )
            kind = next(iter(kinds), kind)
            self._number: Any = None  # the scale, if it is a multiple of one and nothing else
            self._operator: Any = None
            if all(v is None for k, v in parts.items() if k != "identity_multiplier"):
                self._number = _multiplier(parts["identity_multiplier"], kind, validate_args)
            else:
                self._operator = _operator(parts, kind, validate_args)
        super().__init__(
            graph_parents=[t for t in (self._shift, *parts.values()) if t is not None],
            is_constant_jacobian=True,
            validate_args=validate_args,
            dtype=kind,
            forward_min_event_ndims=1,
            name=name,
        )

    @property
    def shift(self) -> Tensor | None:
        """What is added."""
        found: Tensor | None = self._shift
        return found

    @property
    def scale(self) -> Any:
        """A linear operator, or a number if the scale is a multiple of one."""
        return self._operator if self._number is None else self._number

    def _checks(self) -> list[Any]:
        return [self._operator.assert_non_singular()] if self.validate_args else []

    def _forward(self, x: Tensor) -> Any:
        if self._number is not None:
            y: Any = x * self._number
        else:
            with control_dependencies(self._checks()):
                y = self._operator.matvec(x)
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Tensor) -> Any:
        x: Any = y if self._shift is None else y - self._shift
        return self._operator.solvevec(x) if self._number is None else x / self._number

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        if self._number is None:
            return self._operator.log_abs_determinant()
        size = ops.cast(ops.shape(x)[-1], self._number.dtype)
        return ops.log(ops.abs(self._number)) * size


def _multiplier(number: Any, kind: Any, validate_args: bool) -> Any:
    if number is None:
        return ops.ones([], kind)
    if not validate_args:
        return number
    zero = ops.zeros([], number.dtype)
    check = assert_none_equal(number, zero, message="identity_multiplier should be non-zero.")
    return with_dependencies([check], number)


def _without_zeros(x: Any, diag: Any) -> Any:
    zeros = ops.zeros_like(diag)
    check = assert_none_equal(diag, zeros, message="diagonal part must be non-zero")
    return with_dependencies([check], x)


def _operator(parts: dict[str, Any], kind: Any, validate_args: bool) -> Any:
    """The linear operator that is the sum of the parts."""
    number, diag, tril = (parts[k] for k in ("identity_multiplier", "diag", "tril"))
    factor, inner = parts["perturb_factor"], parts["perturb_diag"]
    along = None if number is None else number[..., None]  # beside every diagonal
    if diag is not None:
        along = diag if along is None else along + diag
    base: Any
    if tril is not None:
        low = matrix_band_part(tril, -1, 0)
        if along is not None:
            low = matrix_set_diag(low, matrix_diag_part(low) + along)
        if validate_args:
            low = _without_zeros(low, matrix_diag_part(low))
        base = LinearOperatorLowerTriangular(low, is_non_singular=True)
    else:
        if diag is None:
            size = ops.shape(factor)[-2:-1]
            along = ops.ones(size, kind) * (1.0 if along is None else along)
        if validate_args:
            along = _without_zeros(along, along)
        base = LinearOperatorDiag(along, is_non_singular=True)
    if factor is None:
        return base
    return LinearOperatorLowRankUpdate(
        base,
        u=factor,
        diag_update=inner,
        is_diag_update_positive=inner is None,
        is_non_singular=True,
        is_self_adjoint=True,
        is_positive_definite=True,
        is_square=True,
    )
