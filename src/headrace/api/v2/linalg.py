"""``tf.linalg``: linear algebra, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.ops.array.array_shape import matrix_transpose
from headrace.ops.math.clip import global_norm
from headrace.ops.linalg.contraction import einsum, tensordot
from headrace.ops.linalg.diagonals import (
    diag as tensor_diag, diag_part as tensor_diag_part, matrix_band_part as band_part,
)
from headrace.ops.linalg.banded_diagonals import (
    matrix_diag_part_v2 as diag_part, matrix_diag_v2 as diag, matrix_set_diag_v2 as set_diag,
)
from headrace.ops.linalg.matmul import adjoint, matmul, matvec
from headrace.ops.linalg.decompositions import (
    cholesky, expm, logdet, logm, lu, matrix_determinant as det, matrix_inverse as inv, matrix_rank,
    pinv, qr, self_adjoint_eig as eigh, self_adjoint_eigvals as eigvalsh, slogdet, sqrtm, svd,
)
from headrace.ops.linalg.solving import (
    cholesky_solve, matrix_solve as solve, matrix_solve_ls as lstsq, matrix_triangular_solve as
    triangular_solve,
)
from headrace.ops.linalg.tridiagonal import tridiagonal_matmul, tridiagonal_solve
from headrace.ops.linalg.norms import eye, norm, normalize, trace
from headrace.ops.nn.normalization import l2_normalize_v2 as l2_normalize
from headrace.ops.array.ranges import cross

__all__ = [
    "adjoint", "band_part", "cholesky", "cholesky_solve", "cross", "det", "diag", "diag_part",
    "eigh", "eigvalsh", "einsum", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet",
    "logm", "lstsq", "lu", "matmul", "matrix_rank", "matrix_transpose", "matvec", "norm",
    "normalize", "pinv", "qr", "set_diag", "slogdet", "solve", "sqrtm", "svd", "tensor_diag",
    "tensor_diag_part", "tensordot", "trace", "triangular_solve",
    "tridiagonal_matmul", "tridiagonal_solve",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("linalg", __name__)
