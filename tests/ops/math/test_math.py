"""Operators on tensors, wrappers, casting and clipping.

Names and rules as in TF 1.15, values through a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import headrace.ops  # noqa: F401 (defines all ops)
from headrace import errors
from headrace.autodiff.gradients import gradients
from headrace.core import dtypes
from headrace.core.graph import Graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import ALL_OPS, KernelNode, bind_kernel
from headrace.kernels.numpy import numpy_xp
from headrace.ops.array import casting
from headrace.ops.array.basic import constant, placeholder, placeholder_with_default
from headrace.ops.internal import gradient_helpers as gradutil
from headrace.ops.math import binary as math_binary
from headrace.ops.math import bitwise, clip, comparison, special
from headrace.ops.math import unary as math_unary
from headrace.ops.math.add_n import accumulate_n, add_n
from headrace.session.session import Session


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as g:
        yield g


def run(fetches: Any, feed_dict: Any = None, graph: Graph | None = None) -> Any:
    from headrace.core.graph import get_default_graph

    with Session(graph=graph or get_default_graph()) as session:
        return session.run(fetches, feed_dict)


def unknown(value: Any, dtype: Any = np.float32) -> Any:
    """A tensor whose shape is not known while building."""
    return placeholder_with_default(np.asarray(value, dtype), None)


def made(graph: Graph) -> list[str]:
    return [f"{op.name}:{op.type}" for op in graph.get_operations() if op.name not in ("x", "y")]


# names of what operators make -------------------------------------------------------------------

NAMES: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda x, y: x + y, "add:AddV2"),
    (lambda x, y: x + 1, "add/y:Const add:AddV2"),
    (lambda x, y: 1 + x, "add/x:Const add:AddV2"),
    (lambda x, y: 1 - x, "sub/x:Const sub:Sub"),
    (lambda x, y: 2 * x, "mul/x:Const mul:Mul"),
    (lambda x, y: x * [1, 2], "mul/y:Const mul:Mul"),
    (lambda x, y: np.ones(2) * x, "mul/x:Const mul:Mul"),
    (lambda x, y: np.float64(2) * x, "mul/x:Const mul:Mul"),
    (lambda x, y: x / 2, "truediv/y:Const truediv:RealDiv"),
    (lambda x, y: 2 / x, "truediv/x:Const truediv:RealDiv"),
    (lambda x, y: x // 2, "floordiv/y:Const floordiv:FloorDiv"),
    (lambda x, y: 2 % x, "mod/x:Const mod:FloorMod"),
    (lambda x, y: x**2, "pow/y:Const pow:Pow"),
    (lambda x, y: -x, "Neg:Neg"),
    (lambda x, y: abs(x), "Abs:Abs"),
    (lambda x, y: x < 1, "Less/y:Const Less:Less"),
    (lambda x, y: 1 < x, "Greater/y:Const Greater:Greater"),  # noqa: SIM300 (the reflected form)
    (lambda x, y: x >= y, "GreaterEqual:GreaterEqual"),
    (lambda x, y: math_binary.add(x, y), "Add:Add"),
    (lambda x, y: math_binary.div(x, y), "div:RealDiv"),
    (lambda x, y: math_binary.divide(x, 2, name="d"), "d/y:Const d:RealDiv"),
    (lambda x, y: math_binary.mod(x, y), "FloorMod:FloorMod"),
    (lambda x, y: casting.cast(x, "int32"), "Cast:Cast"),
    (lambda x, y: casting.cast(x, "float32"), ""),
    (lambda x, y: casting.to_int32(x), "ToInt32:Cast"),
    (
        lambda x, y: clip.clip_by_value(x, 0, 1),
        "clip_by_value/Minimum/y:Const clip_by_value/Minimum:Minimum "
        "clip_by_value/y:Const clip_by_value:Maximum",
    ),
    (lambda x, y: add_n([x]), ""),
    (lambda x, y: add_n([x], name="q"), "q:Identity"),
]


@pytest.mark.parametrize(
    ("build", "names"), NAMES, ids=[n or str(i) for i, (_, n) in enumerate(NAMES)]
)
def test_names(graph: Graph, build: Callable[[Any, Any], Any], names: str) -> None:
    x, y = (placeholder("float32", [2], name=n) for n in "xy")
    build(x, y)
    assert " ".join(made(graph)) == names


def test_integer_division_names(graph: Graph) -> None:
    x = placeholder("int32", [2], name="x")
    assert (x / 2).dtype is dtypes.float64
    assert made(graph) == [
        "truediv/y:Const",
        "truediv/Cast:Cast",
        "truediv/Cast_1:Cast",
        "truediv:RealDiv",
    ]


def test_xor_makes_four_ops(graph: Graph) -> None:
    x = placeholder("bool", [2], name="x")
    _ = x ^ True
    assert made(graph) == [
        "xor/y:Const",
        "xor/LogicalOr:LogicalOr",
        "xor/LogicalAnd:LogicalAnd",
        "xor/LogicalNot:LogicalNot",
        "xor:LogicalAnd",
    ]


# values of operators ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_operators_compute_what_numpy_does(dtype: str) -> None:
    a, b = np.array([7, -7, 5], dtype), np.array([2, 2, -3], dtype)
    x, y = constant(a), constant(b)
    got = run([x + y, x - y, x * y, x // y, x % y, -x, abs(x), x < y, x >= y, 3 - x, 3 * x, x + 1])
    want = [a + b, a - b, a * b, a // b, a % b, -a, abs(a), a < b, a >= b, 3 - a, 3 * a, a + 1]
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
        assert g.dtype == w.dtype


def test_true_division_of_integers() -> None:
    x = constant([7, 8])
    np.testing.assert_array_equal(run(x / 2), [3.5, 4])
    np.testing.assert_array_equal(run(1 / x), [1 / 7, 1 / 8])
    assert (constant([1], "uint8") / 2).dtype is dtypes.float32
    with pytest.raises(TypeError, match="same dtype"):
        math_binary.truediv(x, 2.5)
    with pytest.raises(TypeError, match="Invalid dtype"):
        math_binary.truediv(constant([True]), constant([True]))


def test_division_of_plain_numbers_is_pythons() -> None:
    assert math_binary.divide(4, 3) == 4 / 3


def test_logic_on_booleans() -> None:
    x, y = constant([True, False, True]), constant([True, True, False])
    a, b = np.array([1, 0, 1], bool), np.array([1, 1, 0], bool)
    for got, want in zip(
        run([x & y, x | y, x ^ y, ~x, True & x, False | x, True ^ x]),
        [a & b, a | b, a ^ b, ~a, a, a, ~a],
    ):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(TypeError):
        _ = ~constant([1])


def test_strings_add(graph: Graph) -> None:
    assert run(constant(["a", "b"]) + constant("z")).tolist() == [b"az", b"bz"]
    with Session(graph=graph, executor="reference") as session:
        assert session.run(constant("a") + "b") == b"ab"


def test_scalar_strings_add_on_the_numpy_executor() -> None:
    assert run(constant("a") + "b") == b"ab"


def test_equality_stays_identity_and_truth_an_error() -> None:
    x, y = constant(1), constant(1)
    assert (x == y) is False and (x == x) is True
    with pytest.raises(TypeError, match="bool"):
        bool(x < y)


def test_matmul_and_slices() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = constant(a)
    np.testing.assert_array_equal(run(x @ constant(a.T)), a @ a.T)
    np.testing.assert_array_equal(run(a.T @ x), a.T @ a)
    np.testing.assert_array_equal(run(x[:, 1:]), a[:, 1:])


def test_types_must_match() -> None:
    with pytest.raises(TypeError):
        _ = constant([1.0]) + constant([1])
    with pytest.raises(TypeError):
        _ = constant([1]) + 1.5
    with pytest.raises(TypeError):
        _ = constant([1.0]) + "a"


def test_a_foreign_class_may_take_over() -> None:
    class Foreign:
        def __radd__(self, other: Any) -> str:
            return "mine"

    assert constant([1.0]) + Foreign() == "mine"


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
        _ = constant([1.0, 2.0]) + constant([1.0, 2.0, 3.0])
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs. \[3\]"):
        run(unknown([1, 2]) * unknown([1, 2, 3]))


# errors when running ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        math_binary.floordiv,
        math_binary.mod,
        math_binary.div,
    ],
)
def test_integer_division_by_zero(function: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Integer division by zero"):
        run(function(constant([1, 2]), unknown([0, 1], np.int32)))


@pytest.mark.parametrize("function", [math_binary.truncatediv, math_binary.truncatemod])
def test_truncated_integer_division_by_zero(function: Any) -> None:
    with pytest.raises(errors.InternalError, match="binary operator"):
        run(function(constant([1, 2]), unknown([0, 1], np.int32)))


def test_negative_integer_power() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="negative integer powers"):
        run(unknown([2], np.int32) ** -1)


def test_add_n_needs_one_shape() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="same size and shape"):
        run(add_n([unknown([1, 2]), unknown([1])]))
    with pytest.raises(ValueError):
        add_n([constant([1.0, 2.0]), constant([1.0, 2.0, 3.0])])
    for wrong in ([], constant([1.0]), 3):
        with pytest.raises(ValueError, match="at least one"):
            add_n(wrong)


def test_check_numerics() -> None:
    np.testing.assert_array_equal(run(clip.check_numerics(unknown([1, 2]), "m")), [1, 2])
    for values, text in [([np.nan], "NaN"), ([np.inf], "Inf"), ([np.inf, np.nan], "Inf and NaN")]:
        with pytest.raises(errors.InvalidArgumentError, match=f"hello : Tensor had {text} values"):
            run(clip.check_numerics(unknown(values), "hello"))
    with pytest.raises(errors.InvalidArgumentError, match="bad"):
        run(clip.verify_tensor_all_finite(unknown([np.nan]), "bad"))


def test_strings_are_not_cast() -> None:
    with pytest.raises(errors.UnimplementedError, match="Cast string to int32 is not supported"):
        run(casting.cast(placeholder_with_default(["1"], [1]), "int32"))


# casting and complex numbers --------------------------------------------------------------------


def slices(values: Any) -> IndexedSlices:
    return IndexedSlices(constant(values), constant([0, 2]), constant([3]))


def test_cast_keeps_the_container() -> None:
    s = casting.cast(slices([1.5, 2.5]), "int32")
    assert isinstance(s, IndexedSlices) and run(s.values).tolist() == [1, 2]
    assert run(casting.cast([1, 2], "float32")).dtype == np.float32
    x = constant([1.0])
    assert casting.cast(x, "float32") is x and casting.to_float(x) is x


def test_saturate_cast() -> None:
    got = run(casting.saturate_cast(constant([-3.0, 7.9, 300.0]), "uint8"))
    assert got.tolist() == [0, 7, 255] and got.dtype == np.uint8
    assert run(casting.saturate_cast(constant([300, -300]), "int8")).tolist() == [127, -128]


def test_parts_of_complex_numbers() -> None:
    z = np.array([1 + 2j, -3j], np.complex64)
    x = constant(z)
    got = run(
        [casting.real(x), casting.imag(x), casting.conj(x), casting.angle(x), math_unary.abs(x)]
    )
    for g, w in zip(got, [z.real, z.imag, z.conj(), np.angle(z), abs(z)]):
        np.testing.assert_allclose(g, w, rtol=1e-6)
        assert g.dtype == w.dtype
    r = constant([1.0])
    assert casting.real(r) is r and casting.conj(r) is r
    assert run(casting.imag(r)).tolist() == [0]
    with pytest.raises(TypeError, match="incorrect types"):
        casting.complex(constant([1]), constant([1]))


def test_rounding_returns_integers_as_they_are() -> None:
    x = constant([1, 2])
    assert math_unary.round(x) is x
    assert run(math_unary.round([0.5, 1.5, 2.5])).tolist() == [0, 2, 2]


def test_bfloat16_and_half_stay_what_they_are() -> None:
    """No kernel may widen its result, whether it is given arrays or scalars."""
    attrs = {"incompatible_shape_error": True, "tolerance": 1e-5}
    for name, opdef in ALL_OPS.items():
        allowed = opdef.attrs["T"].allowed if "T" in opdef.attrs else None
        if not opdef.traits.elementwise or allowed is None or dtypes.bfloat16 not in allowed:
            continue
        if opdef.kernel.__module__.rpartition(".")[2] not in (
            "math_unary",
            "math_binary",
            "special",
            "opdef",
            "clip",
        ):
            continue
        kernel = bind_kernel(opdef, KernelNode("n", name, attrs), numpy_xp)
        for kind in (ml_dtypes.bfloat16, np.float16, np.float32):
            array = np.array([0.5, 0.25, 0.75], kind)
            for value in (array, array[0]):
                n = 3 if opdef.inputs[0].is_list else len(opdef.inputs)
                with np.errstate(all="ignore"):
                    out = kernel(*[value] * n)
                assert out.dtype in (np.dtype(kind), np.dtype(bool)), (name, kind)


# gradients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3,)),
        ((2, 3), ()),
        ((), (2,)),
        ((2, 1), (1, 3)),
        ((3, 1, 2), (4, 1)),
        ((1, 1), (1,)),
        ((2, 3), (2, 3)),
        ((1, 2, 1), (3, 1, 1, 1)),
        ((0, 2), (2,)),
    ],
)
def test_gradients_of_broadcast_inputs(a: Any, b: Any, known: bool) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=a), rng.normal(size=b)
    x, y = (placeholder("float64", s if known else None) for s in (a, b))
    got = run(gradients(x * y, [x, y]), {x: u, y: v})
    full = np.ones(np.broadcast_shapes(a, b))
    for g, other, shape in zip(got, (v, u), (a, b)):
        lead = full.ndim - len(shape)
        axes = tuple(range(lead)) + tuple(lead + i for i, d in enumerate(shape) if d == 1)
        want = (full * other).sum(axes, keepdims=True).reshape(shape)
        assert g.shape == shape
        np.testing.assert_allclose(g, want)


def test_known_shapes_need_no_reduction_ops(graph: Graph) -> None:
    x, b = placeholder("float32", [None, 3]), placeholder("float32", [3])
    gradients(x + b, [x, b])
    types = [op.type for op in graph.get_operations()]
    assert (
        "BroadcastGradientArgs" not in types and types.count("Sum") == 1 and "Reshape" not in types
    )


def test_axes_that_static_shapes_tell() -> None:
    f = gradutil._repeated_axes
    assert f((2, 3), (3,)) == () and f((3,), (2, 3)) == (0,) and f((2, 1), (2, None)) == (1,)
    assert (
        f((None, 3), (3,)) == ()
        and f((None,), (None,)) is None
        and f(None, (2,)) is None
        and f(None, ()) == ()
    )


def test_ties_go_to_the_first_input() -> None:
    x, y = constant([1.0, 2.0]), constant([1.0, 3.0])
    np.testing.assert_array_equal(
        run(gradients(math_binary.maximum(x, y), [x, y])), [[1, 0], [0, 1]]
    )
    np.testing.assert_array_equal(
        run(gradients(math_binary.minimum(x, y), [x, y])), [[1, 1], [0, 0]]
    )


def test_power_gradient_is_finite_at_zero() -> None:
    x, y = constant([0.0, 2.0]), constant([2.0, 2.0])
    gx, gy = run(gradients(x**y, [x, y]))
    np.testing.assert_allclose(gx, [0, 4])
    np.testing.assert_allclose(gy, [0, 4 * np.log(2)], rtol=1e-6)


def test_complex_gradients_are_tensorflows() -> None:
    z = constant(np.array([1 + 2j, 0], np.complex128))
    np.testing.assert_allclose(
        run(gradients(math_unary.abs(z), z))[0], [0.4472135955 + 0.894427191j, 0]
    )
    w = constant(np.array([1 + 2j, 3], np.complex128))
    np.testing.assert_allclose(run(gradients(casting.angle(w), w))[0], [-0.4 + 0.2j, 1j / 3])
    np.testing.assert_allclose(run(gradients(casting.imag(w), w))[0], [1j, 1j])


def test_what_has_no_gradient() -> None:
    x = constant([1.5])
    steps = [
        math_unary.floor(x),
        math_unary.round(x),
        casting.cast(casting.cast(x, "int32"), "float32"),
    ]
    assert [gradients(y, x) for y in steps] == [[None]] * 3
    assert run(gradients(math_unary.sign(x), x))[0].tolist() == [0]


@pytest.mark.parametrize(
    "function",
    [
        math_unary.tanh,
        math_unary.sigmoid,
        math_unary.sqrt,
        math_unary.rsqrt,
        math_unary.reciprocal,
        math_unary.exp,
        math_unary.log,
        special.erf,
        math_unary.square,
        lambda x: x**3,
    ],
)
def test_second_derivatives(function: Any) -> None:
    at = np.array([0.4, 1.3])
    x = placeholder("float64", [2])
    first = gradients(function(x), x)[0]
    second = gradients(first, x)[0]
    step = 1e-6
    with Session(graph=x.graph) as session:
        high, low = (session.run(first, {x: at + s}) for s in (step, -step))
        np.testing.assert_allclose(
            session.run(second, {x: at}), (high - low) / (2 * step), rtol=1e-5
        )


# lists, clipping --------------------------------------------------------------------------------


def test_sums_of_lists() -> None:
    parts = [constant([1.0, 2.0]), constant([3.0, 4.0]), constant([5.0, 6.0])]
    assert run(add_n(parts)).tolist() == [9, 12]
    assert run(accumulate_n(parts, shape=[2], tensor_dtype="float32")).tolist() == [
        9,
        12,
    ]
    with pytest.raises(TypeError, match="tensor_dtype"):
        accumulate_n(parts, tensor_dtype="float64")
    assert run(add_n([slices([1.0, 2.0]), constant([1.0, 1.0, 1.0])])).tolist() == [
        2,
        1,
        3,
    ]


def test_scalar_mul() -> None:
    s = math_binary.scalar_mul(2, slices([1.0, 2.0]))
    assert isinstance(s, IndexedSlices) and run(s.values).tolist() == [2, 4]
    assert run(math_binary.scalar_mul(2, constant([1.0, 2.0]))).tolist() == [2, 4]
    with pytest.raises(ValueError, match="Only scalar multiply works"):
        math_binary.scalar_mul(constant([1.0]), constant([1.0]))


def test_clip_by_norm() -> None:
    x = constant([3.0, 4.0])
    np.testing.assert_allclose(run(clip.clip_by_norm(x, 1.0)), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(run(clip.clip_by_norm(x, 9.0)), [3, 4], rtol=1e-6)
    rows = run(clip.clip_by_norm(constant([[3.0, 4.0], [0.0, 0.0]]), 1.0, axes=[1]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]], rtol=1e-6)
    zero = constant([0.0, 0.0])
    assert np.isfinite(run(gradients(clip.clip_by_norm(zero, 1.0), zero))[0]).all()
    np.testing.assert_allclose(run(clip.clip_by_average_norm(x, 1.0)), [1.2, 1.6], rtol=1e-6)


def test_clip_by_global_norm() -> None:
    clipped, norm = clip.clip_by_global_norm([constant([3.0]), None, slices([4.0, 0.0])], 1.0)
    assert clipped[1] is None and isinstance(clipped[2], IndexedSlices)
    first, rows, n = run([clipped[0], clipped[2].values, norm])
    np.testing.assert_allclose(first, [0.6], rtol=1e-6)
    np.testing.assert_allclose(rows, [0.8, 0], rtol=1e-6)
    assert n == 5
    spoiled, _ = clip.clip_by_global_norm([constant([np.inf, 1.0])], 1.0)
    assert np.isnan(run(spoiled[0])).all()
    with pytest.raises(TypeError, match="sequence"):
        clip.global_norm(constant([1.0]))


def test_clip_by_value_does_not_grow_its_input() -> None:
    assert run(clip.clip_by_value(constant([-2.0, 0.5, 2.0]), -1, 1)).tolist() == [-1, 0.5, 1]
    with pytest.raises(ValueError):
        clip.clip_by_value(constant([1.0, 2.0]), [0.0], [[1.0, 2.0]])
    s = clip.clip_by_value(slices([-2.0, 2.0]), -1, 1)
    assert isinstance(s, IndexedSlices) and run(s.values).tolist() == [-1, 1]


# the rest ---------------------------------------------------------------------------------------


def test_sparse_values_are_mapped() -> None:
    class Sparse:
        def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
            self.indices, self.values, self.dense_shape = indices, values, dense_shape

        @property
        def dtype(self) -> Any:
            return self.values.dtype

    s = Sparse(constant([[0]]), constant([-4.0]), constant([1]))
    for function, want in [(math_unary.abs, 4), (math_unary.negative, 4), (math_unary.square, 16)]:
        out = function(s)
        assert isinstance(out, Sparse) and run(out.values).tolist() == [want]
    assert casting.cast(s, "int32").values.dtype is dtypes.int32


def test_sigmoid_keeps_small_results_and_does_not_warn() -> None:
    x = np.array([-1000, -80, -20, 0, 20, 1000], np.float32)
    got = run(math_unary.sigmoid(constant(x)))
    np.testing.assert_allclose(
        got, 1 / (1 + np.exp(-x.astype(np.float64).clip(-700))), rtol=1e-6, atol=1e-45
    )


def test_special_combinations() -> None:
    x = np.array([0.5, 2.0])
    c = constant(x)
    from scipy import special as sp

    np.testing.assert_allclose(run(special.bessel_i0(c)), sp.i0(x))
    np.testing.assert_allclose(run(special.bessel_i1(c)), sp.i1(x))
    np.testing.assert_allclose(run(special.lbeta(c)), sp.betaln(0.5, 2.0))
    np.testing.assert_allclose(run(math_binary.polyval([c, 2 * c, c], c)), x**3 + 2 * x**2 + x)
    np.testing.assert_allclose(run(math_unary.log_sigmoid(c)), np.log(sp.expit(x)))
    assert run(math_unary.reciprocal_no_nan(constant([0.0, 2.0]))).tolist() == [0, 0.5]


def test_bits() -> None:
    x = constant([5, -1])
    assert run(bitwise.bitwise_and(x, 3)).tolist() == [1, 3]
    assert run(bitwise.invert(x)).tolist() == [-6, 0]
    assert run(bitwise.population_count(x)).tolist() == [2, 32]


def test_equality_of_shapes_that_do_not_fit() -> None:
    from headrace.core.build import apply

    x, y = unknown([1, 2]), unknown([1, 2, 3])
    assert run(apply(comparison.EQUAL, x, y, incompatible_shape_error=False)) == np.False_
    assert run(apply(comparison.NOT_EQUAL, x, y, incompatible_shape_error=False)) == np.True_
