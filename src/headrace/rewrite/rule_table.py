"""The rules, in the order in which they are tried on each node; ``docs/rewrites.md`` is their
table.

A rule's pattern ends at a node of one of its op types, inputs already rewritten. ``EXACT_RULES``
are those that keep every bit (``Session(exact=True)``), ``VALUE_FREE_RULES`` those that do not look
at the values of constants (shared_code.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.ops.array import array_shape as _array_shape  # noqa: F401  the rules make operations of these families
from headrace.ops.array import basic as _basic  # noqa: F401
from headrace.ops.array import broadcast_shapes as _broadcast_shapes  # noqa: F401
from headrace.ops.array import filling as _filling  # noqa: F401
from headrace.ops.array import joining as _joining  # noqa: F401
from headrace.ops.array import padding as _padding  # noqa: F401
from headrace.ops.internal import fused_gradients as _fused_gradients  # noqa: F401
from headrace.ops.internal import fused_ops as _fused_ops  # noqa: F401
from headrace.ops.internal import loop_sums as _loop_sums  # noqa: F401
from headrace.ops.math import binary as _math_binary  # noqa: F401
from headrace.ops.math import unary as _math_unary  # noqa: F401
from headrace.program.binding_times import is_computation
from headrace.program.nodes import Node
from headrace.rewrite.engine import ALL_CONSTANT, BRANCH, CONSTANT, LOOP, ROUNDS, UNROLL, Rule
from headrace.rewrite.rewrite_state import RewriteState
from headrace.rewrite.rules import algebra, attention, composites, conditionals, loop_cells
from headrace.rewrite.rules import concat_gradients as joined
from headrace.rewrite.rules import fused_products as products
from headrace.rewrite.rules import loop_invariants as loops
from headrace.rewrite.rules import loop_product_sums as sums
from headrace.rewrite.rules import loop_rounds as rounds
from headrace.rewrite.rules import norm_patterns as normalisation
from headrace.rewrite.rules import pairwise_distances as distances
from headrace.rewrite.rules import pool_gradients as windows
from headrace.rewrite.rules import rearrangements as layout
from headrace.rewrite.rules import resolved_lists as lists
from headrace.rewrite.rules import shape_rules as shapes
from headrace.rewrite.rules import thin_products as thin
from headrace.rewrite.simplifications import SIMPLIFICATIONS

__all__ = ["EXACT_RULES", "RULES", "VALUE_FREE_RULES", "bits_depend_on_values", "rules_for"]


def _share(node: Node, state: RewriteState) -> tuple[int, ...] | None:
    """The same op on the same inputs is computed once."""
    if not is_computation(node) or node.opdef.traits.reads:
        return None
    if state.mutable and not state.mutable.isdisjoint(node.inputs):
        return None
    attributes = state.attributes_key(node.attrs)
    if attributes is None:
        return None
    key = (node.opdef.name, node.inputs, attributes)
    found = state.lookup(key)
    if found is not None:
        return found.outputs
    state.scopes[-1][key] = node
    return None


RULES: tuple[Rule, ...] = (
    Rule(
        rounds.RULE,
        (UNROLL,),
        rounds.rounds_of,
        "A short loop of products whose number of rounds is known is written out, and "
        "TensorArrays that are read and written at known indices become values.",
        "for i in 20 rounds: h = tanh(xs.read(i) @ w + h @ u) -> 20 times tanh(x_i @ w + h @ u)",
    ),
    # composites with their gradients
    Rule(
        "softmax in training",
        ("Softmax", "RealDiv", "Div"),
        composites.softmax,
        "Softmax, also written with exp and sum, and its gradient are one step each.",
        "e / reduce_sum(e), e = exp(x - max); gradients -> Softmax, _SoftmaxGrad",
        exact=False,
        training=True,
    ),
    Rule(
        "gelu in training",
        ("Mul",),
        composites.gelu,
        "Gelu, with tanh or erf, and its gradient are one step each.",
        "0.5 * x * (1 + tanh(…)); gradients -> _Gelu, _GeluGrad",
        exact=False,
        training=True,
    ),
    Rule(
        "layer norm in training",
        ("+",),
        composites.layer_norm,
        "Normalisation of the last axis and its gradient are one step each.",
        "(x - u) * rsqrt(s + e) * g + b; gradients -> _LayerNormTraining, _LayerNormGrad",
        exact=False,
        training=True,
    ),
    Rule(
        "LSTM layer",
        (composites.LAYER,),
        composites.lstm_layer,
        "Unrolled steps of an LSTM with one kernel are one step, and their gradient "
        "another: the products with all inputs are one.",
        "for x in xs: h, c = cell(x, h, c) -> _LSTMLayer(xs, h, c, kernel, bias)",
        exact=False,
        training=True,
    ),
    Rule(
        "LSTM cell",
        ("Mul",),
        composites.lstm_cell,
        "The element-wise part of an LSTM cell is one step (_LSTMCell), in training its "
        "gradient another.",
        "i, j, f, o = split(…, 4, 1); c = c0 * sigmoid(f + 1) + sigmoid(i) * tanh(j); h = "
        "tanh(c) * sigmoid(o) -> _LSTMCell",
        exact=False,
        training=True,
    ),
    # what changes nothing
    Rule(
        "pass-through",
        (
            "Identity",
            "StopGradient",
            "PreventGradient",
            "PlaceholderWithDefault",
            "Snapshot",
            "IdentityN",
        ),
        layout.pass_through,
        "Operations that only pass their input on go.",
        "identity(x) -> x",
        value_free=True,
    ),
    Rule(
        "known shape",
        ("Shape", "Size", "Rank", "ShapeN"),
        shapes.known_shape,
        "Shape, size and rank of a tensor whose static shape is complete are constants.",
        "tf.shape(x) -> [3, 4]",
        value_free=True,
    ),
    Rule(
        "known size of a list",
        ("TensorArraySizeV3",),
        lists.known_size,
        "The size of a TensorArray that does not grow is known if it was made with a constant.",
        "tf.TensorArray(tf.float32, 4).size() -> 4",
    ),
    Rule(
        "known part of a shape",
        (
            "StridedSlice",
            "Pack",
            "ConcatV2",
            "Slice",
            "GatherV2",
            "Gather",
            "Prod",
            "Cast",
            "Squeeze",
            "ExpandDims",
        ),
        shapes.known_parts,
        "Elements of a shape that are known though the whole shape is not are constants.",
        "tf.shape(x)[1] -> 4, for x of shape [?, 4]",
    ),
    Rule(
        "known broadcast",
        ("BroadcastGradientArgs",),
        shapes.broadcast_axes,
        "The axes over which a gradient is summed are constants where it is certain which "
        "lengths are equal.",
        "BroadcastGradientArgs(shape(x), shape(tanh(x))) -> [], []",
    ),
    Rule(
        "select of one shape",
        ("Select",),
        shapes.select_of_one_shape,
        "A choice between elements of arrays of one shape is element-wise and joins other such "
        "operations.",
        "tf.where(x > 0, x, tf.zeros_like(x)) -> SelectV2(x > 0, x, zeros_like(x))",
    ),
    Rule(
        "length at its source",
        ("StridedSlice",),
        shapes.length_at_source,
        "The length of an axis is asked of the value that it comes from.",
        "tf.shape(tanh(x))[0] -> tf.shape(x)[0]",
    ),
    Rule(
        "part of a joined gradient",
        ("Slice",),
        joined.part_of_joined,
        "Where the parts of a concatenation's gradient begin and end is known before the run.",
        "slice(g, concat_offset(1, shapes)[1], shapes[1]) -> slice(g, [0, 200], [-1, 200])",
    ),
    Rule(
        "nothing to do",
        layout.CHANGES_NOTHING,
        layout.nothing_to_do,
        "Casts, transposes, reshapes, slices, paddings, repetitions and reductions that "
        "change nothing go.",
        "reshape(x, [-1, 4]) -> x, for x of shape [?, 4]",
    ),
    Rule(
        "sum of nothing",
        ("Sum", "Mean"),
        layout.reduces_nothing,
        "Sums and means of floats over no axis, or over axes of length 1, go (but for the "
        "sign of zero).",
        "reduce_sum(x, 1, keepdims=True) -> x, for x of shape [?, 1]",
        exact=False,
    ),
    Rule(
        "one part",
        ("ConcatV2", "Concat", "AddN", "Split", "SplitV"),
        layout.gathered,
        "Joining one part, or splitting into one, goes.",
        "concat([x], 0) -> x",
    ),
    Rule(
        "dead branch",
        ("Merge", "RefMerge", BRANCH),
        conditionals.merge_of_known,
        "A branch whose predicate is known is run without asking, or dropped.",
        "cond(True, f, g) -> f()",
    ),
    *SIMPLIFICATIONS,
    # recognised spellings
    Rule(
        "softmax",
        ("RealDiv", "Div"),
        normalisation.softmax_spelled_out,
        "Softmax written with exp and sum is Softmax.",
        "e = exp(x - max(x)); e / sum(e) -> softmax(x)",
        exact=False,
        after=("Exp",),
    ),
    Rule(
        "gelu",
        ("Mul",),
        normalisation.gelu,
        "Gelu, with tanh or erf, is one step (_Gelu).",
        "0.5 * x * (1 + tanh(0.79788 * (x + 0.044715 * x ** 3))) -> _Gelu(x)",
        exact=False,
        after=("+", "*"),
    ),
    Rule(
        "layer norm",
        ("+",),
        normalisation.layer_norm,
        "Normalisation of the last axis is one step (_LayerNorm).",
        "(x - u) * rsqrt(s + e) * g + b -> _LayerNorm(x, g, b)",
        exact=False,
        after=("Mul",),
    ),
    Rule(
        "attention",
        ("BatchMatMul", "BatchMatMulV2"),
        attention.attention,
        "Softmax of a product, times values, is one step (_Attention) that never holds all scores.",
        "matmul(softmax(matmul(q, k) * s + m), v) -> _Attention(q, k, v, s, m)",
        exact=False,
        after=("Softmax",),
    ),
    Rule(
        "LSTM cell in a loop",
        ("Mul",),
        loop_cells.lstm_cell_in_loop,
        "The element-wise part of an LSTM cell is one step (_LSTMCell) in a loop, too, "
        "unless it has a gradient.",
        "while …: c = c * sigmoid(f) + sigmoid(i) * tanh(j); h = tanh(c) * sigmoid(o) -> "
        "while …: h, c = _LSTMCell(…, c)",
        exact=False,
        after=("Tanh",),
    ),
    Rule(
        "even loss gradient",
        ("Mul",),
        products.even_loss_gradient,
        "The gradient of a mean of cross entropies is a scalar times what the forward op left.",
        "expand_dims(broadcast_to(g, shape(loss))) * backprop -> g * backprop",
        after=("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"),
    ),
    # into products and convolutions
    Rule(
        "batch norm after a convolution",
        ("batch norm",),
        normalisation.batch_norm_inference,
        "Batch normalisation with given statistics is a scale and a shift of the "
        "convolution before it.",
        "fused_batch_norm(conv2d(x, w), …, is_training=False) -> conv2d(x, w) * s + t",
        exact=False,
        value_free=True,
    ),
    Rule(
        "scaled convolution",
        ("Mul",),
        products.conv_scale,
        "A factor for each channel goes into the weights.",
        "conv2d(x, w) * s -> conv2d(x, w * s)",
        exact=False,
        value_free=True,
        after=("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative"),
    ),
    Rule(
        "convolution and bias",
        ("+", "BiasAdd"),
        products.conv_bias,
        "A convolution and the vector added to it are one step.",
        "conv2d(x, w) + b -> _FusedConv2D(x, w, b)",
        exact=False,
        value_free=True,
        after=("Conv2D", "_FusedConv2D"),
    ),
    Rule(
        "convolution and sum",
        ("+",),
        products.conv_sum,
        "What is added to a convolution with bias, the shortcut of a residual block, is "
        "added in its pass.",
        "conv2d(x, w) + b + shortcut -> _FusedConv2D(x, w, b, shortcut)",
        exact=False,
        value_free=True,
        after=("_FusedConv2D",),
    ),
    Rule(
        "convolution and relu",
        ("Relu", "Maximum"),
        products.conv_activation,
        "Relu after a convolution with bias is part of it.",
        "relu(_FusedConv2D(x, w, b)) -> _FusedConv2D(x, w, b, relu)",
        exact=False,
        after=("_FusedConv2D",),
    ),
    Rule(
        "matmul and bias",
        ("+", "BiasAdd"),
        products.matmul_bias,
        "A product and the vector added to it are one step.",
        "matmul(x, w) + b -> _FusedMatMul(x, w, b)",
        exact=False,
        value_free=True,
        after=("MatMul",),
    ),
    Rule(
        "bias before reshape",
        ("+", "BiasAdd"),
        products.bias_before_reshape,
        "A dense layer's bias is added before its result gets its axes back.",
        "reshape(matmul(x, w), s) + b -> reshape(matmul(x, w) + b, s)",
        value_free=True,
        after=("Reshape",),
    ),
    Rule(
        "product and activation",
        ("activation", "_Gelu", "Maximum"),
        products.activated_product,
        "An activation after a product with bias is computed with it.",
        "relu(_FusedMatMul(x, w, b)) -> _FusedMatMul(x, w, b, relu)",
        exact=False,
        after=("_FusedMatMul", "Reshape"),
    ),
    Rule(
        "sum of products",
        ("AddN",),
        products.sum_of_products,
        "Products over the rows of several steps, added up, are one product over all rows.",
        "a1.T @ b1 + a2.T @ b2 + a3.T @ b3 -> concat(a).T @ concat(b)",
        exact=False,
        after=("MatMul",),
    ),
    # (anywhere before common subexpressions)
    Rule(
        "relu before max pooling's gradient",
        ("ReluGrad",),
        windows.relu_before_pooling,
        "The gradient of relu is taken on the pooled array.",
        "relu_grad(max_pool_grad(x, y, g), x) -> max_pool_grad(x, y, relu_grad(g, y))",
        exact=False,
        value_free=True,
        after=("max pool gradient",),
    ),
    Rule(
        "sum before max pooling's gradient",
        ("BiasAddGrad", "Sum"),
        windows.sum_before_spreading,
        "The gradient of a bias is summed on the pooled array.",
        "bias_add_grad(max_pool_grad(x, y, g)) -> bias_add_grad(g)",
        exact=False,
        after=("max pool gradient",),
    ),
    Rule(
        "products with a common factor",
        ("+", "AddN"),
        thin.common_factor,
        "Products with the same matrix, added up, are one product of the sum.",
        "a1.T @ b + a2.T @ b -> (a1 + a2).T @ b",
        exact=False,
        after=("MatMul",),
    ),
    Rule(
        "product over one number",
        ("MatMul",),
        thin.outer_product,
        "A column times a row is an element-wise product, which joins others.",
        "matmul(x, w), x: [n, 1], w: [1, m] -> x * w",
        exact=False,
    ),
    Rule(
        "distances of pairs",
        ("Sum",),
        distances.short_axis_distances,
        "Sums over the few numbers of a point, of differences between all pairs of points, are a "
        "sum of terms.",
        "sum(square(a[None] - b[:, None]), 2) -> square(a0 - b0) + square(a1 - b1)",
        exact=False,
        after=("Square", "Abs", "SquaredDifference"),
    ),
    # rounding
    Rule(
        "constants together",
        ("+", "*"),
        algebra.constants_together,
        "Two constants in a chain of sums or products are one.",
        "(x * 2.0) * 3.0 -> x * 6.0",
        exact=False,
        after=(CONSTANT,),
    ),
    Rule(
        "division by a constant",
        ("RealDiv",),
        algebra.reciprocal_of_constant,
        "Multiplying is faster.",
        "x / 3.0 -> x * 0.33333",
        exact=False,
        after=(CONSTANT,),
    ),
    # everything
    Rule(
        "equal constants",
        (
            "StridedSlice",
            "Slice",
            "Pack",
            "ConcatV2",
            "Range",
            "Prod",
            "GatherV2",
            "ExpandDims",
            "Fill",
        ),
        shapes.equal_constants,
        "Small constants in computations with shapes are one if they are equal.",
        "tf.shape(x)[0], tf.shape(x)[0] -> n, n",
        after=(CONSTANT,),
    ),
    Rule(
        "constant folding",
        (),
        shapes.fold,
        "What depends on constants alone is computed once, unless it is large.",
        "x * (2.0 + 1.0) -> x * 3.0",
        after=ALL_CONSTANT,
    ),
    Rule(
        "common subexpression",
        (),
        _share,
        "The same operation on the same inputs is computed once.",
        "exp(x) + exp(x) -> e + e, e = exp(x)",
        value_free=True,
    ),
    Rule(
        "loop invariant",
        (LOOP,),
        loops.invariant,
        "What is the same in every round of a loop is computed before it.",
        "while …: a = a + tanh(x) -> t = tanh(x); while …: a = a + t",
    ),
    Rule(
        "product summed over rounds",
        (ROUNDS,),
        sums.sums_over_rounds,
        "A loop that adds products of a few rows keeps the rows of its rounds, and they "
        "are multiplied at once.",
        "while …: w = w + a.T @ b -> while …: keep(a, b); w = w + concat(a).T @ concat(b)",
        exact=False,
    ),
)

EXACT_RULES: tuple[Rule, ...] = tuple(r for r in RULES if r.exact)
#: Without those that make plans larger: for the first plan of a program.
_FIRST_RULES: tuple[Rule, ...] = tuple(r for r in RULES if UNROLL not in r.ops)
_FIRST_EXACT: tuple[Rule, ...] = tuple(r for r in _FIRST_RULES if r.exact)
VALUE_FREE_RULES: tuple[Rule, ...] = tuple(r for r in RULES if r.value_free)
_EXACT_VALUE_FREE: tuple[Rule, ...] = tuple(r for r in EXACT_RULES if r.value_free)


_VALUES_CHANGE_BITS = frozenset(r.name for r in RULES if not r.exact and not r.value_free)


def bits_depend_on_values(notes: Mapping[str, int]) -> bool:
    """A rule fired (``notes`` counts them) that changes bits and looks at the values of
    constants.
    """
    return not _VALUES_CHANGE_BITS.isdisjoint(notes)


def rules_for(
    exact: bool = False, value_free: bool = False, often: bool = False
) -> tuple[Rule, ...]:
    """The rules that may be used; all of them for a program that has run ``often``."""
    if value_free:
        return _EXACT_VALUE_FREE if exact else VALUE_FREE_RULES
    if often:
        return EXACT_RULES if exact else RULES
    return _FIRST_EXACT if exact else _FIRST_RULES
