"""Kernels and shape rules of decompositions, solves and determinants, over the last two axes.

LAPACK through NumPy; SciPy for triangular solves, LU and matrix functions. Half precision is
computed in float32.

    solve_kernel(xp, matrix, rhs, adjoint=False)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.infer import Inference
from headrace.core.shapes import Dim, Shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType

__all__ = [
    "batch_only",
    "cholesky_grad_kernel",
    "cholesky_kernel",
    "determinant_kernel",
    "eigh_kernel",
    "eigh_shape",
    "inverse_kernel",
    "least_squares_kernel",
    "least_squares_shape",
    "log_determinant_kernel",
    "lu_kernel",
    "lu_shape",
    "matrix_function",
    "qr_kernel",
    "qr_shape",
    "same_square",
    "solve_kernel",
    "solve_shape",
    "svd_kernel",
    "svd_shape",
    "triangular_solve_kernel",
]


# kernels ----------------------------------------------------------------------------------------


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _at_least_float32(x: Array) -> np.ndarray[Any, Any]:
    """LAPACK has no half precision."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _square(x: Array) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise _invalid(f"Input matrix must be square, got shape {shapes.show(x.shape)}")


def _adjoint(xp: ArrayNamespace, x: Array) -> Array:
    x = xp.swapaxes(x, -1, -2)
    return x.conj() if x.dtype.kind == "c" else x


def _require_pivot(xp: ArrayNamespace, x: Array, message: str) -> None:
    """A NaN in the first place is a pivot that no comparison accepts.

    Any later NaN spreads through the result.
    """
    if xp.name == "numpy" and x.size and np.isnan(x[..., 0, 0]).any():
        raise _invalid(f"{message} (its first element is NaN)")


def _spread_nan(xp: ArrayNamespace, x: Array, out: Array) -> Array:
    """A matrix with a NaN has no inverse with a number in it, whichever rows LAPACK did not
    touch.
    """
    if xp.name == "numpy" and x.size:
        bad = np.isnan(x).any((-1, -2))
        if bad.any():
            out[bad] = np.nan
    return out


def inverse_kernel(xp: ArrayNamespace, x: Array, *, adjoint: bool) -> Array:
    _square(x)
    _require_pivot(xp, x, "Input is not invertible.")
    try:
        out = xp.linalg.inv(_at_least_float32(_adjoint(xp, x) if adjoint else x))
    except np.linalg.LinAlgError:
        raise _invalid("Input is not invertible.") from None
    return _spread_nan(xp, x, out).astype(x.dtype)


def _slogdet(xp: ArrayNamespace, x: Array) -> tuple[Any, Any]:
    """Sign and logarithm.

    Where the logarithm is not finite the sign is 0 and the logarithm an infinity.
    """
    sign, log = xp.linalg.slogdet(x)
    finite = xp.isfinite(log)
    return xp.where(finite, sign, 0), xp.where(finite, log, xp.where(log > 0, np.inf, -np.inf))


def determinant_kernel(xp: ArrayNamespace, x: Array) -> Any:
    _square(x)
    wide = _at_least_float32(x)
    out = xp.linalg.det(wide)
    if xp.name == "numpy" and not np.isfinite(out).all():
        sign, log = _slogdet(xp, wide)
        out = np.where(np.isfinite(out), out, sign * np.exp(log))
    return out.astype(x.dtype)


def log_determinant_kernel(xp: ArrayNamespace, x: Array) -> tuple[Array, Array]:
    _square(x)
    sign, log = _slogdet(xp, _at_least_float32(x))
    return sign.astype(x.dtype), log.astype(x.dtype)


def cholesky_kernel(xp: ArrayNamespace, x: Array) -> Any:
    _square(x)
    try:
        return xp.linalg.cholesky(_at_least_float32(x)).astype(x.dtype)
    except np.linalg.LinAlgError:
        raise _invalid(
            "Cholesky decomposition was not successful. The input might not be valid."
        ) from None


def cholesky_grad_kernel(xp: ArrayNamespace, l: Array, grad: Array) -> Any:  # noqa: E741 (TensorFlow's name)
    """l^-H (tril(l^H g) with its diagonal halved) l^-1, made symmetric."""
    if l.ndim != grad.ndim:
        raise _invalid("All input tensors must have the same rank.")
    low, g = _at_least_float32(l), _at_least_float32(grad)
    middle = xp.tril(_adjoint(xp, low) @ g)
    middle = middle - 0.5 * (middle * xp.eye(low.shape[-1], dtype=low.dtype))
    inverse = xp.linalg.inv(low)
    out = _adjoint(xp, inverse) @ middle @ inverse
    return (0.5 * (out + _adjoint(xp, out))).astype(l.dtype)


def qr_kernel(xp: ArrayNamespace, x: Array, *, full_matrices: bool) -> tuple[Array, Array]:
    q, r = xp.linalg.qr(_at_least_float32(x), mode="complete" if full_matrices else "reduced")
    return q.astype(x.dtype), r.astype(x.dtype)


def svd_kernel(
    xp: ArrayNamespace, x: Any, *, compute_uv: bool, full_matrices: bool
) -> tuple[Array, Array, Array]:
    """A matrix with an infinity or a NaN gives NaN.

    LAPACK may iterate on it forever, or refuse it.
    """
    wide, bad = _at_least_float32(x), None
    if xp.name == "numpy" and not np.isfinite(wide).all():
        bad = ~np.isfinite(wide).all((-1, -2))
        wide = np.where(bad[..., None, None], 0, wide).astype(wide.dtype)
    if not compute_uv:
        s = xp.linalg.svd(wide, compute_uv=False)
        if bad is not None:
            s[bad] = np.nan
        nothing = xp.zeros((0,), x.dtype)
        return s.astype(x.dtype), nothing, nothing
    u, s, vh = xp.linalg.svd(wide, full_matrices=full_matrices)
    if bad is not None:
        u[bad], s[bad], vh[bad] = np.nan, np.nan, np.nan
    return s.astype(x.dtype), u.astype(x.dtype), _adjoint(xp, vh).astype(x.dtype)


def eigh_kernel(xp: ArrayNamespace, x: Array, *, compute_v: bool) -> tuple[Array, Array]:
    _square(x)
    if xp.name == "numpy" and x.shape[-1] > 1 and not np.isfinite(np.tril(x)).all():
        raise _invalid(
            "Self-adjoint eigen decomposition was not successful. The input might not be "
            "valid: its lower triangle "
            "has an infinity or a NaN."
        )
    try:
        if not compute_v:
            return xp.linalg.eigvalsh(_at_least_float32(x)).astype(x.dtype), xp.zeros((0,), x.dtype)
        e, v = xp.linalg.eigh(_at_least_float32(x))
    except np.linalg.LinAlgError as error:
        raise _invalid(f"Self-adjoint eigen decomposition was not successful: {error}") from None
    return e.astype(x.dtype), v.astype(x.dtype)


def _check_right_side(matrix: Array, rhs: Array) -> None:
    if matrix.shape[:-2] != rhs.shape[:-2] or matrix.shape[-2] != rhs.shape[-2]:
        raise _invalid(
            f"Input matrix and right-hand side must have the same number of rows and batches: "
            f"{shapes.show(matrix.shape)} vs. {shapes.show(rhs.shape)}"
        )


def solve_kernel(xp: ArrayNamespace, matrix: Array, rhs: Array, *, adjoint: bool) -> Array:
    _square(matrix)
    _check_right_side(matrix, rhs)
    _require_pivot(xp, matrix, "Input matrix is not invertible.")
    try:
        out = xp.linalg.solve(
            _at_least_float32(_adjoint(xp, matrix) if adjoint else matrix), _at_least_float32(rhs)
        )
    except np.linalg.LinAlgError:
        raise _invalid("Input matrix is not invertible.") from None
    return _spread_nan(xp, matrix, out).astype(matrix.dtype)


def triangular_solve_kernel(
    xp: ArrayNamespace, matrix: Array, rhs: Array, *, lower: bool, adjoint: bool
) -> Any:
    _square(matrix)
    _check_right_side(matrix, rhs)
    if xp.name != "numpy":
        triangle = xp.tril(matrix) if lower else xp.triu(matrix)
        return xp.linalg.solve(_adjoint(xp, triangle) if adjoint else triangle, rhs)
    if (np.diagonal(matrix, axis1=-2, axis2=-1) == 0).any():
        raise _invalid("Input matrix is not invertible.")
    _require_pivot(xp, matrix, "Input matrix is not invertible.")
    from scipy.linalg import solve_triangular

    a, b = _at_least_float32(matrix), _at_least_float32(rhs)
    out = np.empty(b.shape, b.dtype)
    if out.size:
        trans = ("C" if a.dtype.kind == "c" else "T") if adjoint else "N"
        for i in np.ndindex(a.shape[:-2]):
            out[i] = solve_triangular(a[i], b[i], trans=trans, lower=lower, check_finite=False)
    return out.astype(matrix.dtype)


def least_squares_kernel(
    xp: ArrayNamespace, matrix: Array, rhs: Array, l2_regularizer: Array, *, fast: bool
) -> Any:
    """``fast``: normal equations with a Cholesky factor, where the regularizer acts.

    Else a minimum-norm solution.
    """
    _check_right_side(matrix, rhs)
    a, b, weight = _at_least_float32(matrix), _at_least_float32(rhs), float(l2_regularizer)
    if weight < 0:
        raise _invalid("l2_regularizer must be >= 0.")
    if a.size == 0 or b.size == 0:
        return xp.zeros((*a.shape[:-2], a.shape[-1], b.shape[-1]), matrix.dtype)
    if not fast:
        if (
            xp.name == "numpy" and not np.isfinite(a).all()
        ):  # no direction counts as one of full rank
            bad = ~np.isfinite(a).all((-1, -2), keepdims=True)
            a = np.where(bad, 0, a).astype(a.dtype)
        return (xp.linalg.pinv(a) @ b).astype(matrix.dtype)
    ah = _adjoint(xp, a)
    tall = a.shape[-2] >= a.shape[-1]
    _require_pivot(xp, a, "Input matrix is not invertible.")
    gram = ah @ a if tall else a @ ah
    gram = gram + weight * xp.eye(gram.shape[-1], dtype=gram.dtype)
    try:
        out = xp.linalg.solve(gram, ah @ b) if tall else ah @ xp.linalg.solve(gram, b)
    except np.linalg.LinAlgError:
        raise _invalid(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False "
            "or l2_regularizer > 0."
        ) from None
    return out.astype(matrix.dtype)


def matrix_function(name: str) -> Callable[..., Any]:
    """A SciPy matrix function over batches, in double precision (SciPy warns of what single
    precision lacks).
    """

    def kernel(xp: ArrayNamespace, x: Array) -> Array:
        _square(x)
        import scipy.linalg

        if name == "expm" and not np.isfinite(x).all():
            raise _invalid("Input matrix is not invertible.")  # TensorFlow solves equations
        function = getattr(scipy.linalg, name)
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        out = np.empty(x.shape, wide.dtype)
        nothing = np.nan if out.dtype.kind != "c" else complex(np.nan, np.nan)
        if out.size:
            for i in np.ndindex(x.shape[:-2]):
                value = (
                    function(wide[i])
                    if np.isfinite(wide[i]).all()
                    else np.full_like(wide[i], nothing)
                )
                if out.dtype.kind != "c" and np.iscomplexobj(value):
                    real = np.abs(value.imag).max() <= 1e-7 * np.abs(value).max()
                    value = value.real if real else nothing  # no real matrix has this function
                out[i] = value
        return out.astype(x.dtype)

    return kernel


def lu_kernel(xp: ArrayNamespace, x: Array, *, output_idx_type: DType) -> tuple[Array, Array]:
    """Both triangles in one matrix, and the permutation of rows."""
    _square(x)
    from scipy.linalg import lu_factor

    wide = _at_least_float32(x)
    _require_pivot(xp, wide, "Input is not invertible.")
    lu = np.empty(x.shape, wide.dtype)
    p = np.empty(x.shape[:-1], output_idx_type.np_dtype)
    for i in np.ndindex(x.shape[:-2]):
        lu[i], swaps = lu_factor(wide[i], check_finite=False)
        if (np.diagonal(lu[i]) == 0).any():
            raise _invalid("Input is not invertible.")
        order = np.arange(x.shape[-1])
        for row, other in enumerate(swaps):
            order[[row, other]] = order[[other, row]]
        p[i] = order
    return lu.astype(x.dtype), p


# shapes -----------------------------------------------------------------------------------------


def _equal(a: Dim, b: Dim) -> Dim:
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return a if a is not None else b


def _square_input(c: Inference) -> Shape:
    shape = c.require_rank_at_least(0, 2)
    if shape is None:
        return None
    n = _equal(shape[-2], shape[-1])
    return (*shape[:-2], n, n)


def same_square(c: Inference) -> list[Shape]:
    return [_square_input(c)]


def batch_only(c: Inference) -> list[Shape]:
    shape = _square_input(c)
    batch = None if shape is None else shape[:-2]
    return [batch] * len(c.op._opdef.outputs)


def qr_shape(c: Inference) -> list[Shape]:
    shape = c.require_rank_at_least(0, 2)
    if shape is None:
        return [None, None]
    batch, m, n = shape[:-2], shape[-2], shape[-1]
    k = m if c.attr("full_matrices") else _smaller(m, n)
    return [(*batch, m, k), (*batch, k, n)]


def _smaller(m: Dim, n: Dim) -> Dim:
    return None if m is None or n is None else min(m, n)


def svd_shape(c: Inference) -> list[Shape]:
    shape = c.require_rank_at_least(0, 2)
    uv = c.attr("compute_uv")
    if shape is None:
        return [None, None if uv else (0,), None if uv else (0,)]
    batch, m, n = shape[:-2], shape[-2], shape[-1]
    k = _smaller(m, n)
    if not uv:
        return [(*batch, k), (0,), (0,)]
    if c.attr("full_matrices"):
        return [(*batch, k), (*batch, m, m), (*batch, n, n)]
    return [(*batch, k), (*batch, m, k), (*batch, n, k)]


def eigh_shape(c: Inference) -> list[Shape]:
    shape = _square_input(c)
    vectors = shape if c.attr("compute_v") else (0,)
    return [None if shape is None else shape[:-1], vectors]


def solve_shape(c: Inference) -> list[Shape]:
    matrix, rhs = _square_input(c), c.require_rank_at_least(1, 2)
    if matrix is None:
        return [rhs]
    if rhs is None:
        return [(*matrix[:-1], None)]
    n = _equal(matrix[-1], rhs[-2])
    return [_solution((*matrix[:-2], n, n), rhs)]


def least_squares_shape(c: Inference) -> list[Shape]:
    c.require_rank(2, 0)
    return [_solution(c.require_rank_at_least(0, 2), c.require_rank_at_least(1, 2))]


def _solution(matrix: Shape, rhs: Shape) -> Shape:
    if matrix is None or rhs is None:
        known = matrix or rhs
        if known is None:
            return None
        return (
            *known[:-2],
            None if matrix is None else known[-1],
            None if rhs is None else known[-1],
        )
    batch = shapes.merge(matrix[:-2], rhs[:-2]) or ()
    _equal(matrix[-2], rhs[-2])
    return (*batch, matrix[-1], rhs[-1])


def lu_shape(c: Inference) -> list[Shape]:
    shape = _square_input(c)
    return [shape, None if shape is None else shape[:-1]]
