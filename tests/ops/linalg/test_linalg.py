"""Reductions, contractions, linear algebra and Fourier transforms as users write them, against
NumPy; errors; gradients that the sample table cannot check (ops of one precision, symmetric
arguments).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace import errors
from headrace.autodiff.gradients import gradients
from headrace.core.graph import Graph
from headrace.ops.array import gathering, ranges
from headrace.ops.array.array_shape import shape
from headrace.ops.array.basic import constant, placeholder, placeholder_with_default
from headrace.ops.linalg import contraction, diagonals, solving
from headrace.ops.linalg import decompositions as linalg_decomp
from headrace.ops.linalg import matmul as linalg
from headrace.ops.linalg import norms as linalg_util
from headrace.ops.math import arg_reductions, fft, reductions, segments, signal
from headrace.session.session import Session

RNG = np.random.default_rng(7)
A = RNG.standard_normal((2, 3, 4)).astype(np.float32)
M = RNG.standard_normal((3, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as g:
        yield g


def run(fetches: Any, feeds: Any = None) -> Any:
    with Session() as session:
        return session.run(fetches, feeds)


def fed(value: Any, shape: Any = None) -> Any:
    return placeholder_with_default(value, shape)


# reductions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("static", [None, (None, 3, None), (2, 3, 4)])
@pytest.mark.parametrize("axis", [None, 0, [-1], [0, 2], [2, 1]])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
def test_reductions_and_their_gradients(name: str, axis: Any, static: Any) -> None:
    x = fed(A, static)
    out = getattr(reductions, f"reduce_{name}")(x, axis)
    value, grad = run([out, gradients(out, x)[0]])
    where = tuple(axis) if isinstance(axis, list) else axis
    np.testing.assert_allclose(value, getattr(np, name)(A, axis=where), 1e-5, 1e-6)
    total = getattr(np, name)(A, axis=where, keepdims=True)
    n = A.size / total.size
    expect = {
        "sum": np.ones_like(A),
        "mean": np.full_like(A, 1 / n),
        "prod": total / A,
        "max": (total == A).astype(A.dtype),
        "min": (total == A).astype(A.dtype),
    }[name]
    np.testing.assert_allclose(grad, expect, 1e-4, 1e-6)


def test_reduction_of_known_rank_takes_a_constant_and_of_unknown_rank_a_range(graph: Any) -> None:
    reductions.reduce_sum(placeholder("float32", [2, None]))
    reductions.reduce_sum(placeholder("float32"))
    types = [op.type for op in graph.get_operations()]
    assert types == [
        "Placeholder",
        "Const",
        "Sum",
        "Placeholder",
        "Rank",
        "Const",
        "Const",
        "Range",
        "Sum",
    ]
    assert [op.name for op in graph.get_operations()][1:3] == ["Const", "Sum"]


def test_old_and_new_argument_names() -> None:
    x = constant(A)
    kept = reductions.reduce_sum(x, reduction_indices=[1], keep_dims=True)
    assert kept.shape.as_list() == [2, 1, 4]
    with pytest.raises(ValueError, match="both"):
        reductions.reduce_sum(x, axis=1, reduction_indices=1)
    with pytest.raises(ValueError, match="both"):
        arg_reductions.argmax(x, axis=1, dimension=1)


def test_tied_maxima_share_the_gradient() -> None:
    x = fed(np.array([[1, 3, 3], [2, 2, 2]], np.float32))
    np.testing.assert_allclose(
        run(gradients(reductions.reduce_max(x, 1), x)[0]), [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]
    )


def test_wrong_axes_are_errors() -> None:
    with pytest.raises(
        ValueError, match="Invalid reduction dimension 5 for input with 2 dimensions"
    ):
        reductions.reduce_sum(constant(M), 5)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid reduction dimension"):
        run(reductions.reduce_sum(constant(M), fed(np.array([5], np.int32))))
    with pytest.raises(errors.InvalidArgumentError, match="is empty in shape"):
        run(arg_reductions.argmax(constant(np.zeros((0, 3), np.float32)), 0))


def test_logsumexp_of_large_and_infinite_numbers() -> None:
    values = run(
        [
            reductions.reduce_logsumexp([1000.0, 1000.0]),
            reductions.reduce_logsumexp([-np.inf, -np.inf]),
        ]
    )
    assert values[0] == pytest.approx(1000 + np.log(2))
    assert values[1] == -np.inf


def test_large_sums_agree_with_small_ones() -> None:
    """Sums through BLAS and through ``np.add.reduce``."""
    x = RNG.standard_normal((7, 40, 9, 16)).astype(np.float32)
    for axis in [(0,), (1,), (3,), (0, 1), (1, 2), (2, 3), (0, 1, 2), (1, 2, 3), (0, 2), (0, 3)]:
        got = run(reductions.reduce_sum(constant(x), list(axis)))
        np.testing.assert_allclose(got, x.astype(np.float64).sum(axis), 1e-4, 1e-4)
        turned = run(reductions.reduce_sum(fed(x.transpose(3, 1, 0, 2)), list(axis)))
        np.testing.assert_allclose(
            turned, x.transpose(3, 1, 0, 2).astype(np.float64).sum(axis), 1e-4, 1e-4
        )


# segments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: segments.segment_sum(constant([1.0, 2.0, 3.0]), [0, 3, 1]),
            "segment ids are not increasing",
        ),
        (
            lambda: segments.segment_sum(constant([1.0, 2.0, 3.0]), [-1, 0, 1]),
            "Segment id -1 out of range",
        ),
        (
            lambda: segments.segment_sum(constant([1.0, 2.0, 3.0]), [0, 0]),
            "same size as dimension 0",
        ),
        (
            lambda: segments.unsorted_segment_sum(constant([1.0, 2.0]), [0, 5], 3),
            r"segment_ids\[1\] = 5 is out of range \[0, 3\)",
        ),
        (
            lambda: segments.sparse_segment_sum(constant(M), [0, 5], [0, 0]),
            r"indices\[1\] == 5 out of range \[0, 3\)",
        ),
        (
            lambda: segments.sparse_segment_sum(constant(M), [0, 1], [0, 2], num_segments=2),
            "must be < num_segments",
        ),
    ],
)
def test_segment_errors(make: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(make())


def test_unsorted_segment_mean_and_sqrt_n() -> None:
    ids = [1, 1]
    mean, root = run(
        [
            segments.unsorted_segment_mean(constant(A), ids, 3),
            segments.unsorted_segment_sqrt_n(constant(A), ids, 3),
        ]
    )
    np.testing.assert_allclose(mean[1], A.mean(0), 1e-6)
    np.testing.assert_allclose(root[1], A.sum(0) / np.sqrt(2), 1e-5)
    assert not mean[0].any() and not mean[2].any()


# products ---------------------------------------------------------------------------------------


def test_matmul_chooses_its_op() -> None:
    a, b = constant(A), constant(M)
    assert linalg.matmul(b, b).op.type == "MatMul"
    assert linalg.matmul(a, b, transpose_a=True).op.type == "BatchMatMulV2"
    assert linalg.matmul(placeholder("float32"), b).op.type == "BatchMatMulV2"
    assert linalg.matmul(b, b, a_is_sparse=True).op.type == "SparseMatMul"
    assert linalg.matmul([[1.0, 2.0]], [[3.0], [4.0]]).op.name == "MatMul_4"


def test_matmul_errors() -> None:
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 4 and 3"):
        linalg.matmul(constant(A[0]), constant(A[0]))
    with pytest.raises(errors.InvalidArgumentError, match=r"In\[0\]: \[3,4\], In\[1\]: \[3,4\]"):
        run(linalg.matmul(fed(A[0], [None, None]), fed(A[0], [None, None])))
    with pytest.raises(errors.InvalidArgumentError, match="compatible batch dimensions"):
        run(
            linalg.matmul(
                fed(np.zeros((2, 3, 3), np.float32)), fed(np.zeros((5, 3, 3), np.float32))
            )
        )
    with pytest.raises(TypeError, match="uint8"):
        linalg.matmul(constant(M.astype(np.uint8)), constant(M.astype(np.uint8)))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("equation", "sizes"),
    [
        ("ij,jk->ik", ["ij", "jk"]),
        ("ij,jk", ["ij", "jk"]),
        ("bhqd,bhkd->bhqk", ["bhqd", "bhkd"]),
        ("bhqk,bhkd->bhqd", ["bhqk", "bhkd"]),
        ("btd,dhk->bthk", ["btd", "dhk"]),
        ("bthk,hkd->btd", ["bthk", "hkd"]),
        ("i,j->ij", ["i", "j"]),
        ("bij,bij->b", ["bij", "bij"]),
        ("bij,bij->bij", ["bij", "bij"]),
        ("ij->ji", ["ij"]),
        ("ijk->j", ["ijk"]),
        ("ijk->", ["ijk"]),
        ("ij,jk,kl->il", ["ij", "jk", "kl"]),
        ("ii->i", ["ii"]),
        ("ii->", ["ii"]),
        ("iji->j", ["iji"]),
        ("abc,acb->a", ["abc", "acb"]),
        ("abcd,dbe->ace", ["abcd", "dbe"]),
        ("ab,b->a", ["ab", "b"]),
        ("ab,cd->acbd", ["ab", "cd"]),
        ("ba,b", ["ba", "b"]),
        ("abc,cab->bc", ["abc", "cab"]),
    ],
)
def test_einsum(equation: str, sizes: list[str], known: bool) -> None:
    lengths = {label: n for n, label in enumerate("abcdefhijklqt", 2)}
    arrays = [RNG.standard_normal([lengths[s] for s in text]) for text in sizes]
    inputs = [fed(a, a.shape if known else [None] * a.ndim) for a in arrays]
    out = contraction.einsum(equation, *inputs)
    grads = gradients(out, inputs)
    value, *got = run([out, *grads])
    np.testing.assert_allclose(value, np.einsum(equation, *arrays), 1e-9, 1e-12)
    for x, g in zip(arrays, got):
        assert g.shape == x.shape
        at = (0,) * x.ndim
        moved = [a.copy() for a in arrays]
        next(m for m, a in zip(moved, arrays) if a is x)[at] += 1e-3
        slope = (np.einsum(equation, *moved).sum() - np.einsum(equation, *arrays).sum()) / 1e-3
        assert g[at] == pytest.approx(slope, rel=1e-2, abs=1e-6)


def test_einsum_with_ellipsis_and_complex_numbers() -> None:
    x, y = RNG.standard_normal((2, 1, 3, 4)), RNG.standard_normal((5, 4, 3))
    got = run(contraction.einsum("...ij,...jk->...ik", constant(x), constant(y)))
    np.testing.assert_allclose(got, np.einsum("...ij,...jk->...ik", x, y))
    z = x[:, 0] + 1j * RNG.standard_normal((2, 3, 4))
    got = run(contraction.einsum("bij,bkj->bik", constant(z), constant(z)))
    np.testing.assert_allclose(got, np.einsum("bij,bkj->bik", z, z))


def test_attention_needs_one_product(graph: Any) -> None:
    q = placeholder("float32", [2, 4, None, 8])
    contraction.einsum("bhqd,bhkd->bhqk", q, q)
    assert [op.type for op in graph.get_operations()] == ["Placeholder", "BatchMatMulV2"]


def test_einsum_errors() -> None:
    with pytest.raises(ValueError, match="Incorrect number of arguments"):
        contraction.einsum("ij,jk->ik", constant(M))
    with pytest.raises(ValueError, match="number of dimensions"):
        contraction.einsum("ijk->i", constant(M))
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 4 and 3"):
        contraction.einsum("ij,jk->ik", constant(A[0]), constant(A[0]))
    with pytest.raises(TypeError, match="invalid keyword"):
        contraction.einsum("ij->ji", constant(M), nonsense=1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("axes", [0, 1, 2, [[2], [0]], [[1, 2], [1, 0]], (-1, -3)])
def test_tensordot(axes: Any, known: bool) -> None:
    right = {2: RNG.standard_normal((3, 4, 2))}.get(
        axes if isinstance(axes, int) else -1, RNG.standard_normal((4, 3, 5))
    )
    left = A.astype(np.float64)
    x, y = (fed(v, v.shape if known else [None] * 3) for v in (left, right))
    np.testing.assert_allclose(
        run(contraction.tensordot(x, y, axes)), np.tensordot(left, right, axes)
    )


# norms and matrices -----------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("ord", "axis"),
    [
        ("euclidean", 1),
        (1, -1),
        (2, 0),
        (np.inf, 2),
        (3, 1),
        ("fro", (0, 2)),
        (1, (1, 2)),
        (2, (0, 1)),
        (np.inf, (-1, 0)),
    ],
)
def test_norm(ord: Any, axis: Any, keep: bool) -> None:
    got = run(linalg_util.norm(constant(A), ord, axis, keepdims=keep))
    wanted = np.linalg.norm(A, None if ord == "euclidean" else ord, axis, keep)
    np.testing.assert_allclose(got, wanted, 1e-5)


def test_norm_of_everything() -> None:
    assert run(linalg_util.norm(constant(A))) == pytest.approx(np.linalg.norm(A))
    with pytest.raises(ValueError, match="matrix norm"):
        linalg_util.norm(constant(A), 3, (0, 1))


def test_eye() -> None:
    square, wide, dynamic = run(
        [
            linalg_util.eye(3),
            linalg_util.eye(2, 3, batch_shape=[2], dtype="int32"),
            linalg_util.eye(shape(constant(A))[1], batch_shape=[2]),
        ]
    )
    np.testing.assert_array_equal(square, np.eye(3))
    np.testing.assert_array_equal(wide, np.stack([np.eye(2, 3)] * 2))
    np.testing.assert_array_equal(dynamic, np.stack([np.eye(3)] * 2))


def test_decompositions_put_together_again() -> None:
    x = RNG.standard_normal((2, 4, 3))
    s, u, v = linalg_decomp.svd(constant(x))
    q, r = linalg_decomp.qr(constant(x))
    definite = np.matmul(x, x.transpose(0, 2, 1)) + np.eye(4)
    e, w = linalg_decomp.self_adjoint_eig(constant(definite))
    low = linalg_decomp.cholesky(constant(definite))
    got = run(
        [
            linalg.matmul(u, linalg.matmul(diagonals.matrix_diag(s), v, adjoint_b=True)),
            linalg.matmul(q, r),
            linalg.matmul(w, linalg.matmul(diagonals.matrix_diag(e), w, adjoint_b=True)),
            linalg.matmul(low, low, transpose_b=True),
            linalg_decomp.pinv(constant(x)),
            solving.cholesky_solve(low, constant(x)),
            linalg_decomp.logdet(constant(definite)),
        ]
    )
    wanted = [
        x,
        x,
        definite,
        definite,
        np.linalg.pinv(x),
        np.linalg.solve(definite, x),
        np.linalg.slogdet(definite)[1],
    ]
    for g, w_ in zip(got, wanted):
        np.testing.assert_allclose(g, w_, 1e-9, 1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda z: linalg_decomp.matrix_inverse(z), "Input is not invertible"),
        (lambda z: linalg_decomp.cholesky(z), "Cholesky decomposition was not successful"),
        (lambda z: solving.matrix_solve(z, z), "Input matrix is not invertible"),
        (lambda z: solving.matrix_triangular_solve(z, z), "Input matrix is not invertible"),
    ],
)
def test_singular_matrices(make: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(make(constant(np.zeros((2, 2), np.float32))))


def test_ranges() -> None:
    ints, floats, cast, mixed = (
        ranges.range(2, 10, 3),
        ranges.range(0.0, 1.0, 0.25),
        ranges.range(3, dtype="float32"),
        ranges.range(constant(1), 3.5),
    )
    assert [t.dtype.name for t in (ints, floats, cast, mixed)] == [
        "int32",
        "float32",
        "float32",
        "float32",
    ]
    assert ints.op.name == "range" and ints.shape.as_list() == [3]
    values = run([ints, floats, cast, mixed])
    for v, w in zip(values, [[2, 5, 8], [0, 0.25, 0.5, 0.75], [0, 1, 2], [1, 2, 3]]):
        np.testing.assert_array_equal(v, w)
    with pytest.raises(ValueError, match="Requires delta != 0"):
        ranges.range(0, 5, 0)
    with pytest.raises(
        errors.InvalidArgumentError, match="Requires start <= limit when delta > 0: 5/0"
    ):
        run(ranges.range(fed(5, []), 0))


def test_counting() -> None:
    values = run(
        [
            ranges.bincount([1, 1, 3]),
            ranges.bincount([1, 1, 3], weights=[0.5, 1.0, 2.0]),
            ranges.bincount(constant([], "int32"), minlength=2),
            ranges.confusion_matrix([1, 2, 0], [1, 1, 0]),
            ranges.histogram_fixed_width([-1.0, 0.1, 0.9, 5.0], [0.0, 1.0], nbins=4),
            ranges.histogram_fixed_width_bins([-1.0, 0.1, 0.9, 5.0], [0.0, 1.0], nbins=4),
        ]
    )
    wanted = [
        [0, 2, 0, 1],
        [0, 1.5, 0, 2],
        [0, 0],
        [[1, 0, 0], [0, 1, 0], [0, 1, 0]],
        [2, 0, 0, 2],
        [0, 0, 3, 3],
    ]
    for v, w in zip(values, wanted):
        np.testing.assert_array_equal(v, w)


# signals ----------------------------------------------------------------------------------------


def test_frames_are_windows_into_the_signal() -> None:
    x = np.arange(10, dtype=np.float32)
    plain, padded = run(
        [signal.frame(constant(x), 4, 3), signal.frame(constant(x), 4, 3, pad_end=True)]
    )
    np.testing.assert_array_equal(plain, [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]])
    np.testing.assert_array_equal(padded[-1], [9, 0, 0, 0])


def test_inverse_stft_undoes_stft() -> None:
    x = RNG.standard_normal((2, 64)).astype(np.float32)
    spectrum = signal.stft(fed(x, [2, None]), 16, 4)
    assert spectrum.shape.as_list() == [2, None, 9]
    back = run(signal.inverse_stft(spectrum, 16, 4, window_fn=signal.inverse_stft_window_fn(4)))
    np.testing.assert_allclose(back[:, 16:-16], x[:, 16:-16], 1e-4, 1e-5)


def test_cosine_transforms() -> None:
    import scipy.fft

    x = RNG.standard_normal((2, 9)).astype(np.float32)
    for kind, norm in [(1, None), (2, None), (2, "ortho"), (3, None), (3, "ortho")]:
        got = run(signal.dct(constant(x), kind, norm=norm))
        np.testing.assert_allclose(got, scipy.fft.dct(x, kind, norm=norm), 1e-4, 1e-4)
    np.testing.assert_allclose(
        run(signal.idct(signal.dct(constant(x), norm="ortho"), norm="ortho")), x, 1e-4, 1e-4
    )


# gradients the sample table cannot check ----------------------------------------------------------


def check_adjoint(make: Any, x: Any) -> None:
    """For a linear op: <op(x), y> = <x, gradient with y>, in the real inner product."""
    tensor = fed(x, x.shape)
    out = make(tensor)
    value = run(out)
    y = RNG.standard_normal(value.shape).astype(value.real.dtype)
    if value.dtype.kind == "c":
        y = (y + 1j * RNG.standard_normal(value.shape)).astype(value.dtype)
    grad = run(gradients(out, tensor, grad_ys=[constant(y)])[0])
    assert grad.shape == x.shape and grad.dtype == x.dtype
    assert np.vdot(value, y).real == pytest.approx(np.vdot(x, grad).real, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("last", [6, 7])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_real_transforms(rank: int, last: int) -> None:
    suffix = "" if rank == 1 else f"{rank}d"
    x = RNG.standard_normal((2, 3, 4, last)).astype(np.float32)
    check_adjoint(getattr(fft, "rfft" + suffix), x)
    half = (last // 2 + 1,)
    z = (RNG.standard_normal((2, 3, 4, *half)) + 1j * RNG.standard_normal((2, 3, 4, *half))).astype(
        np.complex64
    )
    length = [*x.shape[-rank:-1], last]
    check_adjoint(lambda t: getattr(fft, "irfft" + suffix)(t, length), z)


def test_gradients_of_cropped_and_padded_transforms() -> None:
    for n in (3, 5, 9):
        check_adjoint(lambda t, n=n: fft.rfft(t, [n]), A)


def test_gradient_of_sparse_matmul() -> None:
    b = constant(M)
    check_adjoint(lambda t: linalg.sparse_matmul(t, b, transpose_a=True), M)
    check_adjoint(lambda t: linalg.sparse_matmul(b, t, transpose_b=True), M)


def test_gradient_of_cholesky() -> None:
    """The gradient is that of symmetric changes of the matrix."""
    base = M.astype(np.float64)
    weights = np.tril(RNG.standard_normal((3, 3)))

    def loss(x: Any) -> float:
        return float((np.linalg.cholesky(x @ x.T + np.eye(3)) * weights).sum())

    x = fed(base, [3, 3])
    low = linalg_decomp.cholesky(
        linalg.matmul(x, x, transpose_b=True) + linalg_util.eye(3, dtype="float64")
    )
    got = run(gradients(low * weights, x)[0])
    for at in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[at] = 1e-6
        slope = (loss(base + step) - loss(base - step)) / 2e-6
        assert got[at] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_sparse_gradients_arrive_as_they_are() -> None:
    """A gather behind a reduction or a product gives IndexedSlices."""
    x = fed(A, A.shape)
    for y in (
        reductions.reduce_sum(x, 1),
        reductions.reduce_mean(x, [1, 2], keepdims=True),
        linalg.matmul(x, x, transpose_b=True),
    ):
        rows = gathering.gather(y, [1, 1])
        assert run(gradients(rows, x)[0]).shape == A.shape


def test_second_derivatives() -> None:
    x = fed(M.astype(np.float64), [3, 3])
    first = gradients(reductions.reduce_prod(x, 0), x)[0]
    second = run(gradients(first * first, x)[0])
    base = M.astype(np.float64)

    def loss(v: Any) -> float:
        return float(((v.prod(0, keepdims=True) / v) ** 2).sum())

    for at in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[at] = 1e-6
        assert second[at] == pytest.approx(
            (loss(base + step) - loss(base - step)) / 2e-6, rel=1e-4, abs=1e-6
        )
