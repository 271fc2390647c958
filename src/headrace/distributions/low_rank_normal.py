"""``MultivariateNormalDiagPlusLowRank``: a diagonal scale plus a product of thin matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.distributions.multivariate_normal import (
    MultivariateNormalBase,
    Triangle,
    diagonal_scale,
)
from headrace.ops.array.filling import ones_like
from headrace.ops.linalg.decompositions import slogdet
from headrace.ops.linalg.diagonals import matrix_diag
from headrace.ops.linalg.matmul import matmul
from headrace.ops.linalg.solving import matrix_solve

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["MultivariateNormalDiagPlusLowRank"]


class _Dense(Triangle):
    """A whole matrix."""

    def solvevec(self, x: Tensor) -> Tensor:
        wide: Any = self.matrix * ones_like(x[..., None])
        return matrix_solve(wide, x[..., None])[..., 0]

    def solve_matrix(self, dense: Tensor, right: Tensor) -> Tensor:
        return matrix_solve(dense, right)

    def log_abs_determinant(self) -> Any:
        return slogdet(self.matrix)[1]


class MultivariateNormalDiagPlusLowRank(MultivariateNormalBase):
    """Normal vectors with the scale ``diag(scale_diag + scale_identity_multiplier) +
    scale_perturb_factor @ diag(scale_perturb_diag) @ scale_perturb_factor^T``.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        scale_perturb_factor: TensorLike | None = None,
        scale_perturb_diag: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:
        given = dict(locals())
        values = [loc, scale_diag, scale_identity_multiplier, scale_perturb_factor]
        with name_scope(name, values=values) as name:
            around: Any = loc
            center, diagonal = diagonal_scale(
                around, scale_diag, scale_identity_multiplier, validate_args
            )
            scale: Any = diagonal
            if scale_perturb_factor is not None:
                kind = diagonal.diag.dtype
                thin: Any = convert_to_tensor(scale_perturb_factor, kind, "scale_perturb_factor")
                left = thin
                if scale_perturb_diag is not None:
                    weights: Any = convert_to_tensor(scale_perturb_diag, kind, "scale_perturb_diag")
                    left = thin * weights[..., None, :]
                product: Any = matmul(left, thin, transpose_b=True)
                scale = _Dense(matrix_diag(diagonal.diag) + product)
            elif scale_perturb_diag is not None:
                raise ValueError("scale_perturb_diag needs a scale_perturb_factor.")
        super().__init__(center, scale, validate_args, allow_nan_stats, given, name)
