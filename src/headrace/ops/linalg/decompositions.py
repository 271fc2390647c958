"""Decompositions, solves, determinants and matrix functions.

Gradients follow Giles (2008), "An extended collection of matrix derivative results", as
TensorFlow's do.

    tf.cholesky_solve(tf.cholesky(a), b)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert
from headrace.core.build import apply, apply_list, apply_many, apply_named, apply_op
from headrace.core.dtypes import bfloat16, complex64, complex128, int32
from headrace.core.opdef import GROUPS, NO_GRADIENT_YET, define, lookup
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.linalg import decomposition_kernels as kernels
from headrace.ops.linalg.matmul import adjoint, matmul, matrix_transpose

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "cholesky",
    "expm",
    "logdet",
    "logm",
    "lu",
    "matrix_determinant",
    "matrix_inverse",
    "matrix_rank",
    "pinv",
    "qr",
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "slogdet",
    "sqrtm",
    "svd",
]

GROUPS["half_single_double"] = (GROUPS["float"] or frozenset()) - {bfloat16}
GROUPS["matrix"] = (GROUPS["inexact"] or frozenset()) - {bfloat16}
GROUPS["complex"] = frozenset([complex64, complex128])

# gradients --------------------------------------------------------------------------------------


def _inverse_grad(op: Operation, g: Tensor) -> list[Any]:
    inverse = op._outputs[0]
    if op._attrs["adjoint"]:
        return [-matmul(inverse, matmul(adjoint(g), inverse))]
    return [-matmul(inverse, matmul(g, inverse, adjoint_b=True), adjoint_a=True)]


def _per_matrix(x: Tensor) -> Tensor:
    """One number per matrix, with two axes added."""
    return apply_op("ExpandDims", apply_op("ExpandDims", x, -1), -1)


def _determinant_grad(op: Operation, g: Tensor) -> list[Any]:
    inverse = apply_op("MatrixInverse", op._inputs[0], adjoint=True)
    return [_per_matrix(g * op._outputs[0]) * inverse]


def _log_determinant_grad(op: Operation, g_sign: Tensor, g: Tensor) -> list[Any]:
    if g is None:
        return [None]
    return [_per_matrix(g) * apply_op("MatrixInverse", op._inputs[0], adjoint=True)]


def _eye_like(x: Tensor) -> Tensor:
    diagonal = apply_op("OnesLike", apply_op("MatrixDiagPart", x))
    return apply_op("MatrixDiag", diagonal)


def _halved_diagonal(x: Tensor) -> Tensor:
    return apply_op("MatrixSetDiag", x, 0.5 * apply_op("MatrixDiagPart", x))


def _band(x: Tensor, lower: int, upper: int) -> Tensor:
    return apply_op("MatrixBandPart", x, lower, upper)


def _cholesky_grad(op: Operation, g: Tensor) -> list[Any]:
    low = op._outputs[0]
    inverse = apply_op("MatrixTriangularSolve", low, _eye_like(low), lower=True)
    middle = _band(_halved_diagonal(matmul(low, g, adjoint_a=True)), -1, 0)
    out = matmul(matmul(inverse, middle, adjoint_a=True), inverse)
    return [(out + adjoint(out)) * 0.5]


def _zeros_if_none(g: Tensor, like: Tensor) -> Tensor:
    return apply_op("ZerosLike", like) if g is None else convert.convert(g)


def _qr_grad(op: Operation, dq: Tensor, dr: Tensor) -> list[Any]:
    q, r = op._outputs
    if q._dtype._kind == "c":
        raise NotImplementedError(f"QrGrad not implemented for dtype: {q.dtype}")
    if r._shape is None or None in r._shape[-2:]:
        raise NotImplementedError("QrGrad not implemented with dynamic shapes.")
    if r._shape[-2] != r._shape[-1]:
        raise NotImplementedError(
            "QrGrad not implemented when ncols > nrows or full_matrices is true and ncols != nrows."
        )
    dq, dr = _zeros_if_none(dq, q), _zeros_if_none(dr, r)
    qdq = matmul(q, dq, adjoint_a=True)
    rdr = matmul(r, dr, adjoint_b=True)
    lower = _band(qdq - adjoint(qdq) + rdr - adjoint(rdr), -1, 0)
    return [matmul(q, dr + _times_inverse(lower, r)) + _times_inverse(dq - matmul(q, qdq), r)]


def _times_inverse(x: Tensor, r: Tensor) -> Tensor:
    """x r^-H for upper triangular r."""
    return adjoint(apply_op("MatrixTriangularSolve", r, adjoint(x), lower=False))


def _reciprocal_gaps(values: Tensor) -> Tensor:
    """f[i, j] = 1 / (values[j] - values[i]), zero on the diagonal.

    The added identity keeps it differentiable.
    """
    gaps = apply_op("ExpandDims", values, -2) - apply_op("ExpandDims", values, -1)
    safe = apply_op("Reciprocal", gaps + apply_op("MatrixDiag", apply_op("OnesLike", values)))
    return apply_op("MatrixSetDiag", safe, apply_op("ZerosLike", values))


def _eigh_grad(op: Operation, g_e: Tensor, g_v: Tensor) -> list[Any]:
    e, v = op._outputs
    diagonal = apply_op("MatrixDiag", _zeros_if_none(g_e, e))
    if not op._attrs["compute_v"]:
        v = apply_many(lookup("SelfAdjointEigV2"), op._inputs[0], compute_v=True)[1]
    elif g_v is not None:
        diagonal = diagonal + _reciprocal_gaps(e) * matmul(v, g_v, adjoint_a=True)
    out = matmul(v, matmul(diagonal, v, adjoint_b=True))
    # the op reads the lower triangle only
    return [_halved_diagonal(_band(out + adjoint(out), -1, 0))]


def _svd_grad(op: Operation, g_s: Tensor, g_u: Tensor, g_v: Tensor) -> list[Any]:
    a = op._inputs[0]
    s, u, v = op._outputs
    diagonal = apply_op("MatrixDiag", _zeros_if_none(g_s, s))
    if not op._attrs["compute_uv"]:
        _, u, v = apply_many(lookup("Svd"), a, compute_uv=True)
        return [matmul(u, matmul(diagonal, v, adjoint_b=True))]
    if a._dtype._kind == "c":
        raise NotImplementedError(
            "SVD gradient is not implemented for complex types and compute_uv=True."
        )
    if a._shape is None or a._shape[-2] is None or a._shape[-1] is None:
        raise NotImplementedError(
            "SVD gradient has not been implemented for input with unknown inner matrix shape."
        )
    m, n = int(a._shape[-2]), int(a._shape[-1])
    full = op._attrs["full_matrices"]
    if full and abs(m - n) > 1:
        raise NotImplementedError(
            "svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True"
        )
    g_u, g_v = _zeros_if_none(g_u, u), _zeros_if_none(g_v, v)
    if m > n:  # the same for the transpose
        return [matrix_transpose(_wide_svd_grad(n, m, full, s, v, u, diagonal, g_v, g_u))]
    return [_wide_svd_grad(m, n, full, s, u, v, diagonal, g_u, g_v)]


def _wide_svd_grad(
    m: int,
    n: int,
    full: bool,
    s: Tensor,
    u: Tensor,
    v: Tensor,
    diagonal: Tensor,
    g_u: TensorLike,
    g_v: Tensor,
) -> Tensor:
    """For m <= n; v1 are the first m columns of v."""
    gaps = _reciprocal_gaps(apply_op("Square", s))
    scale = apply_op("MatrixDiag", s)
    v1, g_v1 = (v[..., :, :m], g_v[..., :, :m]) if full and n > m else (v, g_v)
    f_u = gaps * matmul(u, g_u, adjoint_a=True)
    f_v = gaps * matmul(v1, g_v1, adjoint_a=True)
    inner = diagonal + matmul(f_u + adjoint(f_u), scale) + matmul(scale, f_v + adjoint(f_v))
    out = matmul(u, matmul(inner, v1, adjoint_b=True))
    if m == n:
        return out
    g_v1_t = matrix_transpose(g_v1)
    rest = g_v1_t - matmul(matmul(g_v1_t, v1), v1, adjoint_b=True)
    if full:
        v2, g_v2 = v[..., :, m:n], g_v[..., :, m:n]
        rest = rest - matmul(matmul(v1, g_v2, adjoint_a=True), v2, adjoint_b=True)
    u_over_s = matmul(u, apply_op("MatrixDiag", apply_op("Reciprocal", s)))
    return out + matmul(u_over_s, rest)


def _function_grad(op: Operation, g: Tensor) -> list[Any]:
    """The derivative of a matrix function f at a in direction e is the upper right block of f([[a,
    e], [0, a]]).
    """
    a = adjoint(op._inputs[0])
    zero = apply_op("ZerosLike", a)
    rows = [apply_op("ConcatV2", [a, g], -1), apply_op("ConcatV2", [zero, a], -1)]
    blocks = apply_op(op.type, apply_op("ConcatV2", rows, -2))
    right = apply_list(lookup("Split"), -1, blocks, num_split=2)[1]
    return [apply_list(lookup("Split"), -2, right, num_split=2)[0]]


# definitions ------------------------------------------------------------------------------------

MATRIX_INVERSE = define(
    "MatrixInverse",
    "input: T -> output: T; adjoint: bool=False, T: type(matrix)",
    shape=kernels.same_square,
    kernel=kernels.inverse_kernel,
    grad=_inverse_grad,
)
MATRIX_DETERMINANT = define(
    "MatrixDeterminant",
    "input: T -> output: T; T: type(matrix)",
    shape=kernels.batch_only,
    kernel=kernels.determinant_kernel,
    grad=_determinant_grad,
)
LOG_MATRIX_DETERMINANT = define(
    "LogMatrixDeterminant",
    "input: T -> sign: T, log_abs_determinant: T; T: type(matrix)",
    shape=kernels.batch_only,
    kernel=kernels.log_determinant_kernel,
    grad=_log_determinant_grad,
)
CHOLESKY = define(
    "Cholesky",
    "input: T -> output: T; T: type(matrix)",
    shape=kernels.same_square,
    kernel=kernels.cholesky_kernel,
    grad=_cholesky_grad,
)
CHOLESKY_GRAD = define(
    "CholeskyGrad",
    "l: T, grad: T -> output: T; T: type(half_single_double)",
    shape=kernels.same_square,
    kernel=kernels.cholesky_grad_kernel,
    grad=NO_GRADIENT_YET,
)
QR = define(
    "Qr",
    "input: T -> q: T, r: T; full_matrices: bool=False, T: type(matrix)",
    shape=kernels.qr_shape,
    kernel=kernels.qr_kernel,
    grad=_qr_grad,
)
SVD = define(
    "Svd",
    "input: T -> s: T, u: T, v: T; compute_uv: bool=True, full_matrices: bool=False, T: "
    "type(matrix)",
    shape=kernels.svd_shape,
    kernel=kernels.svd_kernel,
    grad=_svd_grad,
)
SELF_ADJOINT_EIG_V2 = define(
    "SelfAdjointEigV2",
    "input: T -> e: T, v: T; compute_v: bool=True, T: type(matrix)",
    shape=kernels.eigh_shape,
    kernel=kernels.eigh_kernel,
    grad=_eigh_grad,
)
MATRIX_EXPONENTIAL = define(
    "MatrixExponential",
    "input: T -> output: T; T: type(matrix)",
    shape=kernels.same_square,
    kernel=kernels.matrix_function("expm"),
    grad=_function_grad,
    host_only=True,
    removed=(27, "Use Python implementation tf.linalg.matrix_exponential instead."),
)
MATRIX_LOGARITHM = define(
    "MatrixLogarithm",
    "input: T -> output: T; T: type(complex)",
    shape=kernels.same_square,
    kernel=kernels.matrix_function("logm"),
    grad=_function_grad,
    host_only=True,
)
MATRIX_SQUARE_ROOT = define(
    "MatrixSquareRoot",
    "input: T -> output: T; T: type(matrix)",
    shape=kernels.same_square,
    kernel=kernels.matrix_function("sqrtm"),
    grad=_function_grad,
    host_only=True,
)
LU = define(
    "Lu",
    "input: T -> lu: T, p: output_idx_type; T: type(matrix), output_idx_type: type(index)=int32",
    shape=kernels.lu_shape,
    kernel=kernels.lu_kernel,
    grad=NO_GRADIENT_YET,
    host_only=True,
)


# what users call --------------------------------------------------------------------------------


def matrix_inverse(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Inverses of square matrices (of their adjoints, with ``adjoint``)."""
    return apply(MATRIX_INVERSE, input, adjoint=adjoint, name=name)


def matrix_determinant(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinants of square matrices [..., n, n]: [...]."""
    return apply(MATRIX_DETERMINANT, input, name=name)


def slogdet(input: TensorLike, name: str | None = None) -> Any:
    """Sign and logarithm of the absolute value of determinants."""
    return apply_named(LOG_MATRIX_DETERMINANT, input, name=name)


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangular factor of a positive definite matrix."""
    return apply(CHOLESKY, input, name=name)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of a positive definite matrix."""
    with name_scope(name, "logdet", [matrix]):
        logs = apply_op("Log", _real(apply_op("MatrixDiagPart", cholesky(matrix))))
        return 2.0 * apply_op("Sum", logs, [-1])


def qr(input: Tensor, full_matrices: bool = False, name: str | None = None) -> Any:
    """Matrices [..., m, n] as an orthogonal ``q`` times an upper triangular ``r``.

    ``full_matrices=True`` makes ``q`` square, otherwise it has min(m, n) columns.
    """
    return apply_named(QR, input, full_matrices=full_matrices, name=name)


def svd(
    tensor: TensorLike,
    full_matrices: bool = False,
    compute_uv: bool = True,
    name: str | None = None,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Singular values and vectors: ``s, u, v`` with ``tensor = u @ diag(s) @ v^H``.

    ``tensor`` is [..., m, n], ``s`` [..., min(m, n)] in descending order. ``full_matrices`` makes
    ``u`` and ``v`` square; ``compute_uv=False`` gives ``s`` alone. NumPy's ``svd`` returns ``u, s,
    v^H`` instead.
    """
    s, u, v = apply_many(SVD, tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    return (_real(s), u, v) if compute_uv else _real(s)


def _real(x: Tensor) -> Tensor:
    """Singular values and eigenvalues have a real type, though the op gives them in the type of
    the matrix.
    """
    return apply_op("Real", x, Tout=x._dtype._base.real_dtype) if x._dtype._kind == "c" else x


def self_adjoint_eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, ...]:
    """Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices.

    Only the lower triangle is read.
    """
    return apply_many(SELF_ADJOINT_EIG_V2, tensor, compute_v=True, name=name)


def self_adjoint_eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The eigenvalues of symmetric (Hermitian) matrices, ascending: [..., n].

    Only the lower triangle is read.
    """
    return apply_many(SELF_ADJOINT_EIG_V2, tensor, compute_v=False, name=name)[0]


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The matrix exponential of square matrices [..., n, n]."""
    with name_scope(name or "matrix_exponential"):
        input = convert.convert(input)
        kind = input.dtype.base_dtype
        if kind is bfloat16 or not (kind.is_floating or kind.is_complex):
            apply_op("Abs", input)  # TensorFlow measures the matrix before it looks at its type
            raise ValueError(f"tf.linalg.expm does not support matrices of type {kind!r}")
        return apply(MATRIX_EXPONENTIAL, input, name="Reshape_1")


def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """The logarithms of complex square matrices [..., n, n]."""
    return apply(MATRIX_LOGARITHM, input, name=name)


def sqrtm(input: TensorLike, name: str | None = None) -> Tensor:
    """Square matrices whose product with themselves is the input."""
    return apply(MATRIX_SQUARE_ROOT, input, name=name)


def lu(input: Tensor, output_idx_type: DType = int32, name: str | None = None) -> Any:
    """The LU decomposition with row exchanges: (both factors in one matrix, permutation ``p``)."""
    return apply_named(LU, input, output_idx_type=output_idx_type, name=name)


def _matrix(a: Tensor, validate_args: bool) -> Tensor:
    """``a`` with at least two axes.

    Checked now where the rank is known, else when it runs if ``validate_args``.
    """
    from headrace.ops.control.assertions import assert_rank_at_least

    a = convert.convert(a, name="a")
    if not a._dtype._base.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name}).")
    if a._shape is not None:
        if len(a._shape) < 2:
            raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {len(a._shape)}).")
        return a
    if not validate_args:
        return a
    with control_dependencies(
        [assert_rank_at_least(a, 2, message="Input `a` must have at least 2 dimensions.")]
    ):
        return apply_op("Identity", a)


def pinv(
    a: Tensor, rcond: object = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The Moore-Penrose inverse; singular values below ``rcond`` times the largest count as
    zero.
    """
    with name_scope(name, "pinv", [a]):
        a = _matrix(a, validate_args)
        s, u, v = svd(a)
        if rcond is None:
            rcond = _default_cutoff(a, s)
        rcond = apply_op("ExpandDims", convert.convert(rcond, s._dtype._base, "rcond"), -1)
        large = apply_op("Greater", s, rcond * apply_op("Max", s, [-1], keep_dims=True))
        inverse = apply_op("SelectV2", large, apply_op("Reciprocal", s), apply_op("ZerosLike", s))
        scaled = v * apply_op("Cast", apply_op("ExpandDims", inverse, -2), DstT=a._dtype._base)
        return matmul(scaled, u, adjoint_b=True)


def _default_cutoff(a: Any, s: Any) -> Any:
    """NumPy's 10 * max(m, n) * eps."""
    eps = float(np.finfo(s._dtype._base.np_dtype).eps)
    if a._shape is not None and None not in a._shape[-2:]:
        return 10.0 * max(a._shape[-2:]) * eps
    size = apply_op("Max", apply_op("Shape", a)[-2:], 0)
    return 10.0 * eps * apply_op("Cast", size, DstT=s._dtype._base)


def matrix_rank(
    a: Tensor, tol: object = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """How many singular values are larger than ``tol``.

    ``a`` is [..., m, n], the result int32 [...]. ``tol`` defaults to eps times the larger dimension
    times the largest singular value. ``validate_args`` checks that ``a`` is finite.

        tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])  # 1
    """
    with name_scope(name, "matrix_rank", [a]):
        a = _matrix(a, validate_args)
        s = svd(a, compute_uv=False)
        if tol is None:
            tol = _default_cutoff(a, s) * 0.1 * apply_op("Max", s, [-1], keep_dims=True)
        return apply_op("Sum", apply_op("Cast", apply_op("Greater", s, tol), DstT=int32), [-1])
