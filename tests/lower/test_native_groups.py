"""Fused groups as native kernels: the same numbers as the reference executor, in every type and
shape; when steps become native, and why they do not.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import headrace as tf
from headrace.core.build import apply_op
from headrace.kernels.native import llvm_library
from headrace.kernels.native.element_rules import ANY, BOOL, FLOAT, RULES
from headrace.kernels.native.group_kernels import group_kernel
from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE
from headrace.lower import native_groups

needs_llvm = pytest.mark.skipif(
    llvm_library.available() is None, reason=f"no LLVM: {llvm_library.status()}"
)
DTYPES = {e: tf.as_dtype(n) for n, e in ELEMENT_OF_DTYPE.items()}
ROWS, COLUMNS = 130, 129  # above the least size of a group


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setenv("HEADRACE_NATIVE", "always")


def special(element, seed, shape=(ROWS, COLUMNS)):
    """Numbers of a type: usual ones with zeros, infinities, NaN and extremes among them."""
    dtype = DTYPES[element].as_numpy_dtype
    rng = np.random.default_rng(seed)
    if element == "bool":
        return rng.random(shape) < 0.5
    if element in FLOAT:
        x = rng.normal(0, 3, shape).astype(dtype)
        odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 65504.0, -1e-3, 6.0, 2.0]
    else:
        info = np.iinfo(dtype)
        x = rng.integers(max(info.min, -1000), min(info.max, 1000), shape).astype(dtype)
        odd = [0, 1, 2, info.min, info.max, 6]
    at = rng.random(shape) < 0.3
    x[at] = rng.choice(np.array(odd, dtype), at.sum())
    return x


def run(fetch, feeds, executor=None, times=1):
    with tf.Session(executor=executor) if executor else tf.Session() as session:
        for _ in range(times):
            found = session.run(fetch, feeds)
        return found, session.explain(fetch, [*feeds]) if executor is None else None


def distance(a, b):
    """In units of the last place; 0 for equal numbers and two NaNs."""
    wide = np.float64
    a, b = a.astype(wide), b.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0, np.abs(a - b))


ARITY = {"Select": 3, "SelectV2": 3, "ClipByValue": 3, "AddN": 3, "AccumulateNV2": 3}
BINARY = [
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "Maximum",
    "Minimum",
    "Less",
    "LessEqual",
    "Greater",
    "GreaterEqual",
    "Equal",
    "NotEqual",
    "LogicalAnd",
    "LogicalOr",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "RealDiv",
    "Div",
    "TruncateDiv",
    "FloorDiv",
    "DivNoNan",
    "MulNoNan",
    "Xdivy",
    "Xlogy",
    "SquaredDifference",
    "Pow",
    "ReluGrad",
    "Relu6Grad",
    "LeakyReluGrad",
    "EluGrad",
    "SeluGrad",
    "SoftplusGrad",
    "SoftsignGrad",
    "TanhGrad",
    "SigmoidGrad",
    "SqrtGrad",
    "RsqrtGrad",
    "ReciprocalGrad",
    "InvGrad",
]
#: Rules of ops that are no element-wise ops yet, or only pass their input on.
NOT_HERE = [
    "BiasAdd",
    "Identity",
    "StopGradient",
    "PreventGradient",
    "ZerosLike",
    "OnesLike",
    "Select",
    "Cast",
]
CASES = [
    (op, element)
    for op, rule in RULES.items()
    if op not in NOT_HERE
    for element in sorted(rule.types)
]


def graph_of(op, dtypes):
    """Placeholders and an op of them, with a second one that makes it a group."""
    inputs = [tf.placeholder(DTYPES[e], [None, COLUMNS]) for e in dtypes]
    y = apply_op(op, inputs) if op in ("AddN", "AccumulateNV2") else apply_op(op, *inputs)
    return inputs, tf.logical_and(y, y) if y.dtype == tf.bool else apply_op("Maximum", y, y)


def expected_of(op, dtypes, arrays):
    """The reference's result; of 16-bit numbers it is computed in float32 and rounded once."""
    half = [e in ("f16", "bf16") for e in dtypes]
    wide = ["f32" if h else e for e, h in zip(dtypes, half)]
    inputs, y = graph_of(op, wide)
    feeds = {i: a.astype(np.float32) if h else a for i, a, h in zip(inputs, arrays, half)}
    found, _ = run(y, feeds, "reference")
    is_number = any(half) and found.dtype != bool
    return found.astype(arrays[-1].dtype) if is_number else found


@needs_llvm
@pytest.mark.parametrize(("op", "element"), CASES)
def test_ops_compute_what_the_reference_does(always, op, element):
    arity = ARITY.get(op, 2 if op in BINARY else 1)
    dtypes = [element] * arity
    if op == "SelectV2":
        dtypes[0] = "bool"
    arrays = [special(e, k) for k, e in enumerate(dtypes)]
    if op == "Pow":
        arrays[0] = np.abs(arrays[0])
    try:
        inputs, y = graph_of(op, dtypes)
        expected = expected_of(op, dtypes, arrays)
        found, explanation = run(y, dict(zip(inputs, arrays)))
    except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
        pytest.skip(f"no op of this type in TensorFlow: {error}")
    assert [s.by for s in explanation.steps if s.kind == "fused"] == ["native"], str(explanation)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if RULES[op].cost < 10 or expected.dtype.kind not in "fV":
        assert not distance(found, expected).max()
        return
    unit = np.finfo(np.float64 if element == "f64" else np.float32).eps
    unit = {"f16": 1e-3, "bf16": 1e-2}.get(element, 8 * unit)
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), unit, unit)


@needs_llvm
@pytest.mark.parametrize("target", sorted(ANY))
@pytest.mark.parametrize("source", ["f32", "f64", "f16", "bool", "i32", "i64", "u8"])
def test_casts(always, source, target):
    x = tf.placeholder(DTYPES[source], [None, COLUMNS])
    y = tf.logical_not(x) if source == "bool" else apply_op("Add", x, x)
    z = tf.cast(y, DTYPES[target])
    value = special(source, 1)
    if source in FLOAT and target not in FLOAT | BOOL:  # what lies outside is the CPU's affair
        low = 0 if target[0] == "u" else -100
        value = np.clip(np.nan_to_num(value, posinf=9, neginf=1), low, 100).astype(value.dtype)
    expected, _ = run(z, {x: value}, "reference")
    found, explanation = run(z, {x: value})
    twice = source == "f64" and target in ("f16", "bf16")
    assert explanation.steps[-1].by == "native" or target == source or twice
    assert not distance(found, expected).max()


@needs_llvm
@pytest.mark.parametrize("shape", [(COLUMNS,), (1, COLUMNS), (ROWS, 1), (), (1, 1), (1,)])
@pytest.mark.parametrize("static", [True, False])
def test_broadcasts(always, shape, static):
    x = tf.placeholder(tf.float32, [ROWS, COLUMNS] if static else [None, None])
    b = tf.placeholder(tf.float32, shape if static else [None] * len(shape))
    y = tf.maximum(x * b + 1.0, b)
    feeds = {x: special("f32", 0), b: special("f32", 1, shape)}
    expected, _ = run(y, feeds, "reference")
    found, explanation = run(y, feeds)
    assert np.array_equal(found, expected, equal_nan=True)
    assert explanation.steps[-1].by == "native", str(explanation)


REDUCTIONS = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min]


@needs_llvm
@pytest.mark.parametrize("function", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, -1])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [None, (1,), (COLUMNS,), (ROWS, 1)])
def test_closing_reductions(always, function, axis, keepdims, dtype, bias):
    x = tf.placeholder(dtype, [ROWS, COLUMNS])
    b = tf.placeholder(dtype, bias or [])
    y = function(tf.square(x - b) * 0.5, axis=axis, keepdims=keepdims)
    rng = np.random.default_rng(0)
    feeds = {x: rng.normal(size=(ROWS, COLUMNS)), b: rng.normal(size=bias or ())}
    for row in (5, 77):
        feeds[x][row, 3] = np.inf
    feeds[x][9, -1] = np.nan
    for _ in range(2):  # with infinities and NaN, then without
        expected, _ = run(y, feeds, "reference")
        found, explanation = run(y, feeds)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-13 if dtype == np.float64 else 2e-6)
        if axis is not None or function in REDUCTIONS[:2]:
            assert explanation.steps[-1].by == "native", str(explanation)
        feeds[x] = np.nan_to_num(feeds[x], posinf=1, nan=2)


@needs_llvm
@pytest.mark.parametrize("columns", [1, 7, 15, 16, 17, 31, 32, 33, 512, 513, 1000, 20_000])
def test_rows_of_any_length(always, columns):
    rows = -(-20_000 // columns)
    x = tf.placeholder(tf.float32, [rows, columns])
    value = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    fetches = [tf.reduce_sum(tf.exp(x) * 2.0, -1), tf.reduce_sum(tf.exp(x) * 2.0)]
    with tf.Session() as session:
        for n, fetch in enumerate(fetches):
            exact = np.sum(np.exp(value.astype(np.float64)) * 2, axis=None if n else -1)
            np.testing.assert_allclose(session.run(fetch, {x: value}), exact, 3e-6)


@needs_llvm
@pytest.mark.parametrize("length", [3, 4])
@pytest.mark.parametrize("depth", [3, 7])
@pytest.mark.parametrize("size", [1, 31, 128, 129, 255, 4097])
def test_long_chains(always, length, depth, size):
    """Several registers are computed in turns: any number of elements may be left at the end."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = x
        for n in range(depth):
            y = tf.tanh(y * 1.1 + 0.1) if n % length else tf.exp(-tf.abs(y))
        values = special("f32", 7, (size,))
        got, want = (run(y, {x: values}, executor)[0] for executor in (None, "reference"))
    np.testing.assert_allclose(got, want, rtol=2e-6 * depth, atol=1e-6)


@needs_llvm
def test_arrays_that_are_not_contiguous(always):
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.tanh(x * 2.0 + 1.0)
    turned = special("f32", 0).T
    with tf.Session() as session:
        found = session.run(y, {x: turned})
        assert np.array_equal(found, session.run(y, {x: turned.copy()}), equal_nan=True) or (
            np.nanmax(np.abs(found - session.run(y, {x: turned.copy()}))) < 1e-6
        )


@needs_llvm
def test_two_sizes_in_turns(always):
    x = tf.placeholder(tf.float32, [None, 1000])
    y = tf.square(x) * 2.0 - x
    with tf.Session() as session:
        for rows in (3, 100, 3, 1, 250, 0, 100):
            value = special("f32", rows, (rows, 1000))
            expected = np.square(value) * np.float32(2) - value
            assert np.array_equal(session.run(y, {x: value}), expected, equal_nan=True)


@needs_llvm
def test_results_are_the_users_and_inputs_stay(always):
    x = tf.placeholder(tf.float32, [ROWS, COLUMNS])
    y = x * 2.0 + 1.0
    value = special("f32", 0)
    before = value.copy()
    with tf.Session() as session:
        a = session.run(y, {x: value})
        b = session.run(y, {x: value})
    assert not np.may_share_memory(a, b) and a.flags.writeable
    assert np.array_equal(value, before, equal_nan=True)


@needs_llvm
def test_equal_structure_with_other_constants_shares_a_kernel(always):
    def compute(scale, shift):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [ROWS, COLUMNS])
            return run(tf.tanh(x * scale + shift) - shift, {x: value})[0]

    value = special("f32", 0)
    compute(0.5, 0.25)
    kernels = group_kernel.cache_info().misses
    found = compute(3.0, -1.5)
    assert group_kernel.cache_info().misses == kernels
    expected = np.tanh(value * np.float32(3) - np.float32(1.5)) + np.float32(1.5)
    np.testing.assert_allclose(found, expected, 2e-6, 2e-6)


@needs_llvm
def test_which_run_switches_is_a_function_of_the_session(monkeypatch):
    monkeypatch.setenv("HEADRACE_NATIVE", "1")
    one_run = (1 + native_groups.HEAVY_COST) * (ROWS * COLUMNS + native_groups.COST_OF_CALL)
    monkeypatch.setattr(native_groups, "HOT_WORK", 5 * one_run)
    x = tf.placeholder(tf.float32, [ROWS, COLUMNS])
    y = tf.tanh(x + 1.0)
    value = special("f32", 0)

    def ways():
        with tf.Session() as session:
            found = []
            for _ in range(7):
                session.run(y, {x: value})
                found.append(session.explain(y, [x]).steps[-1].by)
        return found

    first = ways()
    assert first == ["NumPy or library"] * 4 + ["native"] * 3
    assert ways() == first  # another session counts anew


@needs_llvm
def test_the_same_bits_with_any_number_of_threads(always):
    x = tf.placeholder(tf.float32, [None, 1000])
    y = tf.tanh(x * 1.1 + 0.1) * tf.sigmoid(x)
    y = [y, tf.reduce_sum(tf.exp(-tf.square(x))), tf.reduce_mean(tf.square(x) + x, -1)]
    value = np.random.default_rng(0).normal(size=(2000, 1000)).astype(np.float32)
    value[::7] *= np.float32(1e-39)  # denormals count as zero, on every thread
    found = []
    for threads in (1, 2, 5):
        config = tf.ConfigProto(intra_op_parallelism_threads=threads)
        with tf.Session(config=config) as session:
            found.append(tuple(a.tobytes() for a in session.run(y, {x: value})))
    assert len(set(found)) == 1


def random_graph(rng, x, y, row, column):
    """Values of one shape, many of them used several times; some are fetched or reduced."""
    flags, pool = [x > y, y >= row], [x, y, x * column, y + row]
    unary = [tf.tanh, tf.sigmoid, tf.square, tf.nn.relu, tf.negative, tf.abs, tf.exp, tf.zeros_like]
    binary = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.squared_difference]

    def pick(values):
        return values[rng.integers(len(values))]

    for _ in range(rng.integers(5, 25)):
        kind = rng.integers(6)
        if kind < 2:
            pool.append(pick(unary)(tf.minimum(pick(pool), 5.0)))
        elif kind == 2:
            pool.append(tf.where(pick(flags), pick(pool), pick(pool)))
        elif kind == 3:
            flags.append(pick([tf.less, tf.greater_equal])(pick(pool), pick(pool)))
        elif kind == 4:
            pool.append(pick(pool) * tf.fill([ROWS, COLUMNS], np.float64(rng.normal())))
        else:
            pool.append(pick(binary)(pick(pool), pick(pool)))
    last = pool[-1]
    fetches = [
        last,
        pick(pool[4:]),
        tf.reduce_mean(tf.tanh(last)),
        tf.reduce_max(pick(pool) + 1, -1),
    ]
    gradient = tf.gradients(tf.reduce_mean(tf.tanh(last)), x)[0]
    return fetches if gradient is None else [*fetches, gradient]


@needs_llvm
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_of_large_arrays(always, seed):
    rng = np.random.default_rng(seed)
    shapes = [(ROWS, COLUMNS), (ROWS, COLUMNS), (COLUMNS,), (ROWS, 1)]
    inputs = [tf.placeholder(tf.float64, s) for s in shapes]
    fetches = random_graph(rng, *inputs)
    feeds = {i: rng.normal(size=s) for i, s in zip(inputs, shapes)}
    with tf.Session(executor="reference") as session:
        expected = session.run(fetches, feeds)
    with tf.Session() as session:
        for _ in range(2):
            found = session.run(fetches, feeds)
    for a, b in zip(found, expected):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, 1e-9, 1e-9)


@needs_llvm
@pytest.mark.parametrize("loss", ["sigmoid", "dropout"])
def test_losses_are_few_steps(always, loss):
    x, z = (tf.placeholder(tf.float32, [128, 784]) for _ in range(2))
    if loss == "sigmoid":
        y = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x))
    else:
        y = tf.reduce_sum(tf.nn.dropout(x, 0.5, seed=1) * z)
    fetches = [y, tf.gradients(y, x)[0]]
    rng = np.random.default_rng(0)
    feeds = {x: rng.normal(size=(128, 784)), z: rng.random((128, 784))}
    with tf.Session(executor="reference") as session:
        expected = session.run(fetches, feeds)
    with tf.Session() as session:
        found = session.run(fetches, feeds)
        steps = session.explain(fetches, [x, z]).steps
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, 3e-6, 3e-6)
    assert len(steps) <= 5, steps


def test_reasons(monkeypatch):
    x = tf.placeholder(tf.complex64, [ROWS, COLUMNS])
    y = tf.exp(x) * x
    with tf.Session() as session:
        reason = session.explain(y, [x]).steps[-1].why_not_native
        assert "complex64" in reason or llvm_library.status() in reason
    monkeypatch.setenv("HEADRACE_NATIVE", "0")
    with tf.Session() as session:
        explanation = session.explain(y, [x])
        assert "HEADRACE_NATIVE" in explanation.steps[-1].why_not_native
        assert "HEADRACE_NATIVE" in str(explanation)


_GRADIENTS = [
    *("tanh", "sigmoid", "sqrt", "rsqrt", "reciprocal", "exp", "abs"),
    *("nn.relu", "nn.relu6", "nn.leaky_relu", "nn.elu", "nn.selu", "nn.softplus", "nn.softsign"),
]


@pytest.mark.parametrize("rows", [3, 130])
@pytest.mark.parametrize("name", _GRADIENTS)
def test_gradients_of_means(name: str, rows: int) -> None:
    """The gradient of a mean is one number everywhere: kernels that do not broadcast take it."""
    values = np.random.RandomState(0).rand(rows, 129).astype(np.float32)
    results = []
    for executor in ("reference", "numpy"):
        with tf.Graph().as_default(), tf.Session(executor=executor) as session:
            x = tf.placeholder(tf.float32, [rows, 129])
            function = functools.reduce(getattr, name.split("."), tf)
            gradient = tf.gradients(tf.reduce_mean(function(x * 1.5 + 0.25)), x)[0]
            results += [session.run(gradient, {x: values}) for _ in range(4)]
    for found in results[1:]:
        np.testing.assert_allclose(found, results[0], rtol=2e-5, atol=1e-9)


def test_numbers_clipped_by_arrays() -> None:
    values = np.random.RandomState(0).rand(130, 129).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [130, 129])
        clipped = tf.clip_by_value(tf.fill([130, 129], tf.reduce_mean(x)), x - 0.5, x) * 2.0
        found = session.run(clipped, {x: values})
    np.testing.assert_allclose(found, np.clip(values.mean(), values - 0.5, values) * 2, rtol=1e-5)
