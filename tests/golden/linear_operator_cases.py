"""``tf.linalg.LinearOperator*``. Run on TF 1.15 (make_cases.py) and on Headrace."""

import numpy as np


def _rng():
    return np.random.RandomState(0)


def _positive(n, *batch):
    a = _rng().randn(*(batch + (n, n))).astype("f")
    return np.matmul(a, np.swapaxes(a, -1, -2)) + n * np.eye(n, dtype="f")


def _facts(tf, op, square=True, solvable=True, tensor_x=None):
    """Everything that an operator can be asked."""
    columns, rows = op.shape[-1].value, op.shape[-2].value
    batch = op.batch_shape.as_list()
    rng = np.random.RandomState(1)

    def numbers(*shape):
        values = rng.randn(*shape)
        if op.dtype.is_complex:
            values = values + 1j * rng.randn(*shape)
        return values.astype(op.dtype.as_numpy_dtype)

    x, y = numbers(*(batch + [columns, 2])), numbers(*(batch + [rows, 3]))
    x_t = np.conj(np.swapaxes(x, -1, -2))
    fetches = {
        "dense": op.to_dense(),
        "matmul": op.matmul(x),
        "matmul_adjoint": op.matmul(y, adjoint=True),
        "matmul_adjoint_arg": op.matmul(x_t, adjoint_arg=True),
        "matvec": op.matvec(x[..., 0]),
        "shape": op.shape_tensor(),
        "batch": op.batch_shape_tensor(),
        "sizes": [op.domain_dimension_tensor(), op.range_dimension_tensor()],
        "rank": op.tensor_rank_tensor(),
        "added": op.add_to_tensor(tf.constant(numbers(*(batch + [rows, columns])))),
        "adjoint": op.adjoint().to_dense(),
        "H": op.H.matmul(y),
    }
    if square:
        fetches.update(
            {
                "diag": op.diag_part(),
                "trace": op.trace(),
                "det": op.determinant(),
            }
        )
    if square and solvable:
        fetches.update(
            {
                "logdet": op.log_abs_determinant(),
                "solve": op.solve(y),
                "solve_adjoint": op.solve(y, adjoint=True),
                "solve_adjoint_arg": op.solve(np.conj(np.swapaxes(y, -1, -2)), adjoint_arg=True),
                "solvevec": op.solvevec(y[..., 0]),
                "inverse": op.inverse().to_dense(),
            }
        )
    if op.is_positive_definite and op.is_self_adjoint:
        fetches["cholesky"] = op.cholesky().to_dense()
    with tf.Session() as sess:
        values = sess.run(fetches)
    values = {k: np.round(np.asarray(v), 3) + 0 for k, v in values.items() if k != "sizes"}
    hints = [op.is_non_singular, op.is_self_adjoint, op.is_positive_definite, op.is_square]
    shapes = [op.shape.as_list(), batch, op.tensor_rank, columns, rows]
    return values, hints, shapes, op.name, op.dtype.name


def diagonal(tf):
    lin = tf.linalg
    return [
        _facts(tf, lin.LinearOperatorDiag([1.0, 2.0, 3.0])),
        _facts(tf, lin.LinearOperatorDiag([[1.0, 2.0], [3.0, -4.0]], is_non_singular=True)),
        _facts(tf, lin.LinearOperatorDiag([2.0, 5.0], is_positive_definite=True, name="d")),
        _facts(tf, lin.LinearOperatorDiag(np.array([1 + 2j, 3 - 1j], np.complex64))),
    ]


def identity(tf):
    lin = tf.linalg
    return [
        _facts(tf, lin.LinearOperatorIdentity(3)),
        _facts(tf, lin.LinearOperatorIdentity(2, batch_shape=[2], dtype=tf.float64)),
        _facts(tf, lin.LinearOperatorIdentity(2, assert_proper_shapes=True)),
        _facts(tf, lin.LinearOperatorScaledIdentity(3, 2.5, is_positive_definite=True)),
        _facts(tf, lin.LinearOperatorScaledIdentity(2, [2.0, -1.0])),
        _facts(tf, lin.LinearOperatorZeros(3), solvable=False),
        _facts(tf, lin.LinearOperatorZeros(2, batch_shape=[2]), solvable=False),
    ]


def full(tf):
    lin, a = tf.linalg, _rng().randn(3, 3).astype("f")
    return [
        _facts(tf, lin.LinearOperatorFullMatrix(a)),
        _facts(tf, lin.LinearOperatorFullMatrix(a[:2]), square=False),
        _facts(
            tf,
            lin.LinearOperatorFullMatrix(
                _positive(3, 2), is_positive_definite=True, is_self_adjoint=True
            ),
        ),
        _facts(tf, lin.LinearOperatorLowerTriangular(a)),
        _facts(tf, lin.LinearOperatorLowerTriangular(_positive(3, 2), is_non_singular=True)),
        _facts(tf, lin.LinearOperatorHouseholder([1.0, 2.0, -2.0])),
        _facts(tf, lin.LinearOperatorToeplitz([1.0, 2.0, 3.0], [1.0, -4.0, 0.5])),
    ]


def composed(tf):
    lin, a = tf.linalg, _rng().randn(3, 3).astype("f")
    full, tril = lin.LinearOperatorFullMatrix(a), lin.LinearOperatorLowerTriangular(a + 2)
    diag = lin.LinearOperatorDiag([1.0, 2.0, 3.0], is_positive_definite=True)
    spd = lin.LinearOperatorFullMatrix(
        _positive(2), is_positive_definite=True, is_self_adjoint=True
    )
    wide = lin.LinearOperatorFullMatrix(a[:2])
    return [
        _facts(tf, lin.LinearOperatorComposition([full, tril, diag])),
        _facts(tf, lin.LinearOperatorComposition([wide, full]), square=False),
        _facts(tf, lin.LinearOperatorAdjoint(full)),
        _facts(tf, lin.LinearOperatorAdjoint(wide), square=False),
        _facts(tf, lin.LinearOperatorInversion(full)),
        _facts(tf, lin.LinearOperatorBlockDiag([full, spd])),
        _facts(tf, lin.LinearOperatorBlockDiag([diag, spd])),
        _facts(tf, lin.LinearOperatorKronecker([spd, full])),
        _facts(tf, lin.LinearOperatorKronecker([spd, diag])),
    ]


def low_rank(tf):
    lin, rng = tf.linalg, _rng()
    u, v = rng.randn(3, 2).astype("f"), rng.randn(3, 2).astype("f")
    base = lin.LinearOperatorDiag([3.0, 2.0, 4.0], is_positive_definite=True)
    return [
        _facts(tf, lin.LinearOperatorLowRankUpdate(base, u)),
        _facts(tf, lin.LinearOperatorLowRankUpdate(base, u, diag_update=[1.0, 2.0])),
        _facts(
            tf,
            lin.LinearOperatorLowRankUpdate(
                base, u, diag_update=[1.0, 2.0], is_diag_update_positive=True
            ),
        ),
        _facts(tf, lin.LinearOperatorLowRankUpdate(base, u, v=v, is_non_singular=True)),
    ]


def circulant(tf):
    lin = tf.linalg
    spectrum = np.array([3.0, 1.0, 2.0], np.float32)
    two = np.abs(_rng().randn(2, 3)).astype("f") + 1
    three = np.abs(_rng().randn(2, 2, 2)).astype("f") + 1
    found = [
        _facts(tf, lin.LinearOperatorCirculant(spectrum)),
        _facts(tf, lin.LinearOperatorCirculant(spectrum.astype(np.complex64) * (1 + 1j))),
        _facts(tf, lin.LinearOperatorCirculant([4.0, 1.0, 1.0], input_output_dtype=tf.float32)),
        _facts(tf, lin.LinearOperatorCirculant2D(two)),
        _facts(tf, lin.LinearOperatorCirculant3D(three)),
    ]
    operator = lin.LinearOperatorCirculant2D(two)
    with tf.Session() as sess:
        kernel = sess.run(operator.convolution_kernel())
    return found, kernel, operator.block_depth, operator.block_shape.as_list()


def checks(tf):
    lin, found = tf.linalg, []
    full = lin.LinearOperatorFullMatrix
    with tf.Session() as sess:
        for op in (
            lin.LinearOperatorDiag([1.0, 0.0]),
            lin.LinearOperatorDiag([1.0, -2.0]),
            full([[1.0, 2.0], [2.0, 4.0]]),
            full([[2.0, 1.0], [0.0, 2.0]]),
            full(_positive(3)),
            lin.LinearOperatorIdentity(2),
        ):
            for check in ("assert_non_singular", "assert_positive_definite", "assert_self_adjoint"):
                if "Full" in op.name and "definite" in check:
                    continue  # TensorFlow does not have it
                try:
                    sess.run(getattr(op, check)())
                    found.append("ok")
                except tf.errors.InvalidArgumentError:
                    found.append("refused")
    return found


def refusals(tf):
    lin, found = tf.linalg, []
    square = lin.LinearOperatorFullMatrix(np.eye(2, dtype="f"))
    wide = lin.LinearOperatorFullMatrix(np.ones([2, 3], "f"))
    for call in (
        lambda: lin.LinearOperatorDiag([1.0], is_self_adjoint=False),
        lambda: lin.LinearOperatorFullMatrix([1.0]),
        lambda: lin.LinearOperatorFullMatrix(
            np.eye(2), is_positive_definite=True, is_non_singular=False
        ),
        lambda: wide.solve(np.ones([2, 1], "f")),
        lambda: wide.determinant(),
        lambda: wide.inverse(),
        lambda: square.cholesky(),
        lambda: square.matmul(np.ones([3, 1], "f")),
        lambda: square.matmul(np.ones([2, 1])),
        lambda: lin.LinearOperatorComposition([]),
        lambda: lin.LinearOperatorIdentity(-1),
        lambda: lin.LinearOperatorIdentity(2, is_square=False),
        lambda: lin.LinearOperatorZeros(2).solve(np.ones([2, 1], "f")),
        lambda: lin.LinearOperatorHouseholder([1.0], is_self_adjoint=False),
    ):
        try:
            call()
            found.append("accepted")
        except Exception as error:
            found.append(type(error).__name__)
    return found


def products_of_operators(tf):
    lin = tf.linalg
    a = lin.LinearOperatorFullMatrix(_positive(3))
    d = lin.LinearOperatorDiag([1.0, 2.0, 3.0])
    made = [
        a.matmul(d),
        d.matmul(d),
        d.matmul(a),
        lin.LinearOperatorIdentity(3).matmul(a),
        d.solve(a),
    ]
    made.append(a.matmul(d, adjoint=True, adjoint_arg=True))
    with tf.Session() as sess:
        return [[round(float(v), 3) for v in sess.run(m.to_dense()).ravel()] for m in made]


def gradients(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    op = tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorDiag(x, is_positive_definite=True), tf.ones([3, 1])
    )
    y = tf.reduce_sum(op.solvevec([1.0, 0.0, 2.0])) + op.log_abs_determinant()
    with tf.Session() as sess:
        return sess.run(tf.gradients(y, x)[0])


def unknown_shapes(tf):
    m = tf.placeholder(tf.float32, [None, None])
    d = tf.placeholder(tf.float32, [None])
    lin = tf.linalg
    ops = [
        lin.LinearOperatorFullMatrix(m, is_square=True),
        lin.LinearOperatorDiag(d),
        lin.LinearOperatorLowerTriangular(m),
        lin.LinearOperatorComposition([lin.LinearOperatorFullMatrix(m), lin.LinearOperatorDiag(d)]),
        lin.LinearOperatorIdentity(tf.size(d)),
    ]
    feeds = {m: _positive(3), d: [1.0, 2.0, 3.0]}
    with tf.Session() as sess:
        return [
            [
                str(op.shape),
                sess.run([op.shape_tensor(), op.matvec(d), op.determinant()], feeds),
            ]
            for op in ops
        ]
