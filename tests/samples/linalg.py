"""Samples of matrix products, decompositions, diagonals and Fourier transforms."""

import numpy as np

from tests.samples.base import Sample, bf16, boolean, c64, f32, f64, i32, i64


def f16(*shape, **kw):
    return f32(*shape, **kw).astype(np.float16)


def c128(*shape, **kw):
    return c64(*shape, **kw).astype(np.complex128)


def scalar(value, dtype=np.int32):
    return np.array(value, dtype)


def _last_turned(x):
    return np.ascontiguousarray(np.swapaxes(x, -1, -2))


# products ---------------------------------------------------------------------------------------

SAMPLES = []
for _ta in (False, True):
    for _tb in (False, True):
        _a, _b = f32(2, 3), f32(3, 4, salt=1)
        _ca, _cb = c64(2, 3), c64(3, 4, salt=1)
        _inputs = dict(a=_a.T.copy() if _ta else _a, b=_b.T.copy() if _tb else _b)
        _complex = dict(a=_ca.T.copy() if _ta else _ca, b=_cb.T.copy() if _tb else _cb)
        _attrs = dict(transpose_a=_ta, transpose_b=_tb)
        _id = "MatMul-%d%d" % (_ta, _tb)
        SAMPLES += [
            Sample("MatMul", _inputs, _attrs, grad=["a", "b"], id=_id),
            Sample("MatMul", _complex, _attrs, grad=["a", "b"], id=_id + "-complex"),
        ]
        _x, _y = f32(2, 2, 3), f32(2, 3, 4, salt=1)
        _cx, _cy = c64(2, 2, 3), c64(2, 3, 4, salt=1)
        _attrs = dict(adj_x=_ta, adj_y=_tb)
        _inputs = dict(x=_last_turned(_x) if _ta else _x, y=_last_turned(_y) if _tb else _y)
        _complex = dict(x=_last_turned(_cx) if _ta else _cx, y=_last_turned(_cy) if _tb else _cy)
        _one = dict(x=_inputs["x"][:1], y=_inputs["y"])
        for _op in ("BatchMatMul", "BatchMatMulV2"):
            _id = "%s-%d%d" % (_op, _ta, _tb)
            SAMPLES += [
                Sample(_op, _inputs, _attrs, grad=["x", "y"], id=_id),
                Sample(_op, _complex, _attrs, grad=["x", "y"], id=_id + "-complex"),
            ]
        SAMPLES.append(
            Sample("BatchMatMulV2", _one, _attrs, grad=["x", "y"], id=_id + "-broadcast")
        )
_attrs = dict(transpose_a=False, transpose_b=False)
SAMPLES += [
    Sample("MatMul", dict(a=f64(3, 2), b=f64(2, 2)), _attrs, grad=["a", "b"], id="MatMul-double"),
    Sample("MatMul", dict(a=i32(2, 3), b=i32(3, 2, salt=1)), _attrs, id="MatMul-int32"),
    Sample(
        "MatMul",
        dict(a=i64(2, 3), b=i64(3, 2, salt=1)),
        dict(transpose_a=True, transpose_b=True),
        id="MatMul-int64",
    ),
    Sample("MatMul", dict(a=f16(2, 3), b=f16(3, 2, salt=1)), _attrs, id="MatMul-half"),
    Sample("MatMul", dict(a=bf16(2, 3), b=bf16(3, 2, salt=1)), _attrs, id="MatMul-bfloat16"),
    Sample("MatMul", dict(a=f32(2, 0), b=f32(0, 3)), _attrs, id="MatMul-empty-inner"),
    Sample("MatMul", dict(a=f32(0, 2), b=f32(2, 3)), _attrs, id="MatMul-empty"),
    Sample(
        "BatchMatMulV2",
        dict(x=f32(3, 2, 3), y=f32(3, 4)),
        grad=["x", "y"],
        id="BatchMatMulV2-matrix",
    ),
    Sample(
        "BatchMatMulV2",
        dict(x=f32(2, 2, 2, 3), y=f32(4, 3)),
        dict(adj_y=True),
        grad=["x", "y"],
        id="BatchMatMulV2-matrix-adjoint",
    ),
    Sample(
        "BatchMatMulV2",
        dict(x=c64(3, 2, 3), y=c64(3, 4)),
        grad=["x", "y"],
        id="BatchMatMulV2-matrix-complex",
    ),
    Sample("BatchMatMulV2", dict(x=f32(0, 2, 3), y=f32(3, 4)), id="BatchMatMulV2-matrix-empty"),
    Sample(
        "BatchMatMulV2",
        dict(x=f32(2, 1, 2, 3), y=f32(3, 3, 2)),
        grad=["x", "y"],
        id="BatchMatMulV2-both-broadcast",
    ),
    Sample("BatchMatMulV2", dict(x=i32(2, 2, 2), y=i32(2, 2, 2, salt=1)), id="BatchMatMulV2-int"),
    Sample(
        "BatchMatMulV2", dict(x=f32(2, 3), y=f32(3, 2)), grad=["x", "y"], id="BatchMatMulV2-plain"
    ),
    Sample("BatchMatMulV2", dict(x=f32(0, 2, 3), y=f32(0, 3, 2)), id="BatchMatMulV2-empty"),
    Sample(
        "SparseMatMul",
        dict(a=f32(2, 3), b=f32(3, 4)),
        dict(a_is_sparse=True, b_is_sparse=False),
        grad=["a", "b"],
        single=True,
    ),
    Sample(
        "SparseMatMul",
        dict(a=f32(3, 2), b=f32(4, 3)),
        dict(transpose_a=True, transpose_b=True, b_is_sparse=True),
        grad=["a", "b"],
        single=True,
        id="SparseMatMul-transposed",
    ),
    Sample(
        "SparseMatMul",
        dict(a=bf16(2, 3), b=f32(3, 4)),
        dict(a_is_sparse=True),
        id="SparseMatMul-mixed",
    ),
]


def _einsum(equation, *arrays, **kw):
    return Sample(
        "Einsum", dict(inputs=list(arrays)), dict(equation=equation), id="Einsum " + equation, **kw
    )


SAMPLES += [
    _einsum("ij,jk->ik", f32(2, 3), f32(3, 4), grad=["inputs"]),
    _einsum("bhqd,bhkd->bhqk", f32(2, 2, 3, 4), f32(2, 2, 5, 4), grad=["inputs"]),
    _einsum("btd,dhk->bthk", f32(2, 3, 4), f32(4, 2, 2), grad=["inputs"]),
    _einsum("...ij,...jk->...ik", f32(2, 1, 2, 3), f32(4, 3, 2), grad=["inputs"]),
    _einsum("ijk->j", f32(2, 3, 4), grad=["inputs"]),
    _einsum("ij->ji", c64(2, 3), grad=["inputs"]),
    _einsum("ij,jk->ki", c64(2, 3), c64(3, 2), grad=["inputs"]),
    _einsum("ii->i", f32(3, 3)),
    _einsum("i,j->ij", f64(2), f64(3), grad=["inputs"]),
    _einsum("ij,kj->", f32(2, 3), f32(4, 3), grad=["inputs"]),
]


# decompositions ---------------------------------------------------------------------------------


def _definite(*shape, **kw):
    """Symmetric, positive definite, well apart from singular."""
    x = f64(*shape, **kw)
    out = np.matmul(x, np.swapaxes(x, -1, -2)) + np.eye(shape[-1])
    return out.astype(np.float32)


def _hermitian(n):
    x = c128(n, n)
    return (np.matmul(x, x.conj().T) + np.eye(n)).astype(np.complex64)


def _regular(*shape, **kw):
    return (f64(*shape, **kw) + 2 * np.eye(shape[-1])).astype(np.float32)


def _same_up_to_phase(got, want):
    """Values equal.

    Each vector equal but for a factor of absolute value one, the same one for left and right
    vectors.
    """
    np.testing.assert_allclose(got[0], want[0], 1e-4, 1e-5)
    count = got[0].shape[-1]
    factors = []
    for g, w in zip(got[1:], want[1:]):
        factor = np.sum(np.conj(w) * g, axis=-2, keepdims=True)  # the columns have length 1
        np.testing.assert_allclose(np.abs(factor), 1, 1e-4)
        np.testing.assert_allclose(g, w * factor, 1e-4, 1e-5)
        factors.append(factor[..., :count])
    if len(factors) == 2:
        np.testing.assert_allclose(factors[0], factors[1], 1e-4, 1e-5)


def _first_only(got, want):
    """TensorFlow leaves the other outputs unset."""
    np.testing.assert_allclose(got[0], want[0], 1e-4, 1e-5)


SAMPLES += [
    Sample("MatrixInverse", dict(input=_regular(3, 3)), dict(adjoint=False), grad=["input"]),
    Sample(
        "MatrixInverse",
        dict(input=_regular(2, 3, 3)),
        dict(adjoint=True),
        grad=["input"],
        id="MatrixInverse-adjoint",
    ),
    Sample("MatrixInverse", dict(input=c64(2, 2)), dict(adjoint=True), id="MatrixInverse-complex"),
    Sample("MatrixInverse", dict(input=f32(0, 3, 3)), id="MatrixInverse-empty"),
    Sample("MatrixDeterminant", dict(input=_regular(3, 3)), grad=["input"]),
    Sample(
        "MatrixDeterminant",
        dict(input=_regular(2, 2, 2)),
        grad=["input"],
        id="MatrixDeterminant-batch",
    ),
    Sample("MatrixDeterminant", dict(input=c64(3, 3)), id="MatrixDeterminant-complex"),
    Sample("MatrixDeterminant", dict(input=f32(0, 0)), id="MatrixDeterminant-nothing"),
    Sample("LogMatrixDeterminant", dict(input=_regular(3, 3)), grad=["input"]),
    Sample(
        "LogMatrixDeterminant",
        dict(input=-_regular(2, 3, 3)),
        grad=["input"],
        id="LogMatrixDeterminant-negative",
    ),
    Sample("Cholesky", dict(input=_definite(3, 3))),
    Sample("Cholesky", dict(input=_definite(2, 2, 2).astype(np.float64)), id="Cholesky-batch"),
    Sample("Cholesky", dict(input=_hermitian(3)), id="Cholesky-complex"),
    Sample("CholeskyGrad", dict(l=np.tril(_regular(3, 3)), grad=np.tril(f32(3, 3, salt=1)))),
    Sample("Qr", dict(input=f32(4, 3)), dict(full_matrices=False), grad=["input"]),
    Sample(
        "Qr",
        dict(input=f32(2, 3, 3)),
        dict(full_matrices=True),
        grad=["input"],
        id="Qr-full-square",
    ),
    Sample("Qr", dict(input=f32(4, 2)), dict(full_matrices=True), id="Qr-full"),
    Sample("Qr", dict(input=f32(2, 4)), id="Qr-wide"),
    Sample("Qr", dict(input=c64(3, 2)), id="Qr-complex"),
    Sample("Svd", dict(input=f32(3, 3)), grad=["input"], check=_same_up_to_phase),
    Sample("Svd", dict(input=f32(4, 2)), grad=["input"], check=_same_up_to_phase, id="Svd-tall"),
    Sample(
        "Svd",
        dict(input=f32(2, 2, 4)),
        grad=["input"],
        check=_same_up_to_phase,
        id="Svd-wide-batch",
    ),
    Sample(
        "Svd",
        dict(input=f32(3, 2)),
        dict(full_matrices=True),
        grad=["input"],
        check=_same_up_to_phase,
        id="Svd-full",
    ),
    Sample(
        "Svd",
        dict(input=f32(3, 2)),
        dict(compute_uv=False),
        grad=["input"],
        check=_first_only,
        id="Svd-values",
    ),
    Sample("Svd", dict(input=c64(2, 3)), check=_same_up_to_phase, id="Svd-complex"),
    Sample(
        "SelfAdjointEigV2", dict(input=_definite(3, 3)), grad=["input"], check=_same_up_to_phase
    ),
    Sample(
        "SelfAdjointEigV2",
        dict(input=_definite(2, 3, 3, salt=3)),
        dict(compute_v=False),
        grad=["input"],
        check=_first_only,
        id="SelfAdjointEigV2-values",
    ),
    Sample(
        "SelfAdjointEigV2",
        dict(input=_hermitian(3)),
        check=_same_up_to_phase,
        id="SelfAdjointEigV2-complex",
    ),
    Sample("Lu", dict(input=_regular(3, 3))),
    Sample("Lu", dict(input=f64(2, 4, 4)), dict(output_idx_type="int64"), id="Lu-batch"),
]
for _flip in (False, True):
    _attrs = dict(adjoint=_flip)
    SAMPLES += [
        Sample(
            "MatrixSolve",
            dict(matrix=_regular(3, 3), rhs=f32(3, 2)),
            _attrs,
            grad=["matrix", "rhs"],
            id="MatrixSolve-%d" % _flip,
        ),
        Sample(
            "MatrixSolve",
            dict(matrix=_regular(2, 2, 2), rhs=f32(2, 2, 3)),
            _attrs,
            grad=["matrix", "rhs"],
            id="MatrixSolve-batch-%d" % _flip,
        ),
        Sample(
            "MatrixSolve",
            dict(matrix=c64(2, 2), rhs=c64(2, 3)),
            _attrs,
            grad=["matrix", "rhs"],
            id="MatrixSolve-complex-%d" % _flip,
        ),
    ]
    for _lower in (False, True):
        _attrs = dict(adjoint=_flip, lower=_lower)
        _id = "MatrixTriangularSolve-%d%d" % (_flip, _lower)
        SAMPLES += [
            Sample(
                "MatrixTriangularSolve",
                dict(matrix=_regular(3, 3), rhs=f32(3, 2)),
                _attrs,
                grad=["matrix", "rhs"],
                id=_id,
            ),
            Sample(
                "MatrixTriangularSolve",
                dict(matrix=_regular(2, 2, 2) + 1j * c64(2, 2, 2), rhs=c64(2, 2, 3)),
                _attrs,
                grad=["matrix", "rhs"],
                id=_id + "-complex",
            ),
        ]
_weight = scalar(0.5, np.float64)
SAMPLES += [
    Sample(
        "MatrixSolveLs",
        dict(matrix=f32(4, 2), rhs=f32(4, 3), l2_regularizer=_weight),
        grad=["matrix", "rhs"],
    ),
    Sample(
        "MatrixSolveLs",
        dict(matrix=f32(2, 4), rhs=f32(2, 3), l2_regularizer=_weight),
        grad=["matrix", "rhs"],
        id="MatrixSolveLs-wide",
    ),
    Sample(
        "MatrixSolveLs",
        dict(matrix=f64(2, 4, 2), rhs=f64(2, 4, 1), l2_regularizer=scalar(0.0, np.float64)),
        grad=["matrix", "rhs"],
        id="MatrixSolveLs-batch",
    ),
    Sample(
        "MatrixSolveLs",
        dict(matrix=f64(4, 2), rhs=f64(4, 1), l2_regularizer=scalar(0.0, np.float64)),
        dict(fast=False),
        id="MatrixSolveLs-slow",
    ),
    Sample(
        "MatrixExponential",
        dict(input=np.array([[0, 1], [-1, 0]], np.float64)),
        grad=["input"],
    ),
    Sample(
        "MatrixExponential",
        dict(input=np.array([[[0, 0], [0, 1]], [[1, 0], [0, 2]]], np.float32)),
        grad=["input"],
        id="MatrixExponential-batch",
    ),
    Sample(
        "MatrixLogarithm",
        dict(input=_hermitian(3)),
        grad=["input"],
        tol=1e-4,
        why="Schur forms differ",
    ),
    Sample(
        "MatrixSquareRoot",
        dict(input=_definite(3, 3)),
        grad=["input"],
        tol=1e-4,
        why="Schur forms differ",
    ),
    Sample(
        "MatrixSquareRoot",
        dict(input=_definite(2, 2, 2).astype(np.float64)),
        grad=["input"],
        id="MatrixSquareRoot-batch",
    ),
]


# diagonals --------------------------------------------------------------------------------------

_BANDED = []
for _version, _attrs in (("V2", {}), ("V3", {"align": "RIGHT_LEFT"})):
    _band, _why = np.array([-1, 1], np.int32), "compared in diagonal_cases and v2_ragged"
    _sizes = dict(num_rows=scalar(4), num_cols=scalar(-1), padding_value=scalar(0.5, np.float32))
    _BANDED += [
        Sample(
            "MatrixDiag" + _version,
            dict(_sizes, diagonal=f32(2, 3, 4), k=_band),
            _attrs,
            grad=["diagonal"],
            const=["k", "num_rows", "num_cols"],
            golden=False,
            why=_why,
        ),
        Sample(
            "MatrixDiagPart" + _version,
            dict(input=f32(2, 3, 4), k=_band, padding_value=scalar(0.5, np.float32)),
            _attrs,
            grad=["input"],
            const=["k"],
            golden=False,
            why=_why,
        ),
        Sample(
            "MatrixSetDiag" + _version,
            dict(input=f32(2, 3, 4), diagonal=f32(2, 3, 3, salt=1), k=_band),
            _attrs,
            grad=["input", "diagonal"],
            const=["k"],
            golden=False,
            why=_why,
        ),
    ]
SAMPLES += [
    Sample("Diag", dict(diagonal=f32(3)), grad=["diagonal"]),
    Sample("Diag", dict(diagonal=i32(2, 3)), id="Diag-matrix"),
    Sample("Diag", dict(diagonal=c64(2)), grad=["diagonal"], id="Diag-complex"),
    Sample("DiagPart", dict(input=f32(3, 3)), grad=["input"]),
    Sample("DiagPart", dict(input=i32(2, 3, 2, 3)), id="DiagPart-rank-4"),
    Sample("MatrixDiag", dict(diagonal=f32(2, 3)), grad=["diagonal"]),
    Sample("MatrixDiag", dict(diagonal=boolean(3)), id="MatrixDiag-bool"),
    Sample("MatrixDiag", dict(diagonal=f32(2, 0)), id="MatrixDiag-empty"),
    *_BANDED,
    Sample("MatrixDiagPart", dict(input=f32(2, 3, 3)), grad=["input"]),
    Sample("MatrixDiagPart", dict(input=f32(2, 3, 4)), grad=["input"], id="MatrixDiagPart-wide"),
    Sample("MatrixDiagPart", dict(input=i32(4, 2)), id="MatrixDiagPart-tall"),
    Sample(
        "MatrixSetDiag", dict(input=f32(2, 3, 3), diagonal=f32(2, 3)), grad=["input", "diagonal"]
    ),
    Sample(
        "MatrixSetDiag",
        dict(input=f32(3, 4), diagonal=f32(3)),
        grad=["input", "diagonal"],
        id="MatrixSetDiag-wide",
    ),
    Sample(
        "MatrixSetDiag",
        dict(input=i32(2, 4, 2), diagonal=i32(2, 2, low=20, high=30)),
        id="MatrixSetDiag-tall",
    ),
]
for _l, _u in ((-1, 0), (0, -1), (1, 1), (0, 0), (-1, -1), (2, 0)):
    _inputs = dict(
        input=f32(2, 3, 4), num_lower=scalar(_l, np.int64), num_upper=scalar(_u, np.int64)
    )
    SAMPLES.append(
        Sample(
            "MatrixBandPart",
            _inputs,
            grad=["input"],
            const=["num_lower", "num_upper"],
            id="MatrixBandPart%+d%+d" % (_l, _u),
        )
    )
SAMPLES.append(
    Sample(
        "MatrixBandPart",
        dict(input=boolean(4, 4), num_lower=scalar(1), num_upper=scalar(0)),
        id="MatrixBandPart-bool",
    )
)


# Fourier transforms -----------------------------------------------------------------------------

_TRANSFORM_TOL = dict(tol=1e-4, why="float32 transforms by other algorithms")
for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _shape = (2, 3, 4, 3)[: _rank + 1]
    for _op in ("FFT" + _suffix, "IFFT" + _suffix):
        SAMPLES += [
            Sample(_op, dict(input=c64(*_shape)), grad=["input"], **_TRANSFORM_TOL),
            Sample(_op, dict(input=c128(*_shape)), id=_op + "-complex128"),
        ]
    for _last in (4, 5):
        _shape = (2, 3, 2, _last) if _rank == 3 else (2, 3, _last) if _rank == 2 else (2, _last)
        _length = np.array(_shape[1:], np.int32)
        _half = _shape[:-1] + (_last // 2 + 1,)
        _id = "%d" % _last
        SAMPLES += [
            Sample(
                "RFFT" + _suffix,
                dict(input=f32(*_shape), fft_length=_length),
                const=["fft_length"],
                grad=["input"],
                single=True,
                id="RFFT%s-%s" % (_suffix, _id),
                **_TRANSFORM_TOL,
            ),
            Sample(
                "IRFFT" + _suffix,
                dict(input=c64(*_half), fft_length=_length),
                const=["fft_length"],
                grad=["input"],
                single=True,
                id="IRFFT%s-%s" % (_suffix, _id),
                **_TRANSFORM_TOL,
            ),
        ]
SAMPLES += [
    Sample("FFT", dict(input=c64(3, 0)), id="FFT-empty"),
    Sample(
        "RFFT",
        dict(input=f32(2, 6), fft_length=np.array([4], np.int32)),
        id="RFFT-cropped",
        **_TRANSFORM_TOL,
    ),
    Sample(
        "IRFFT",
        dict(input=c64(2, 6), fft_length=np.array([4], np.int32)),
        id="IRFFT-cropped",
        **_TRANSFORM_TOL,
    ),
]
