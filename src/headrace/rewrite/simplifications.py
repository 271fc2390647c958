"""The rules that make less of one or two operations in a row: a part of ``rule_table.RULES``.

``cast(cast(x))``, ``x * 1``, ``-(-x)``: what they match is one operation and the one before it, and
what they give is never larger.
"""

from __future__ import annotations

from headrace.rewrite.engine import CONSTANT, Rule
from headrace.rewrite.rules import algebra
from headrace.rewrite.rules import rearrangements as layout
from headrace.rewrite.rules import shape_rules as shapes

__all__ = ["SIMPLIFICATIONS"]

SIMPLIFICATIONS: tuple[Rule, ...] = (
    # two in a row
    Rule(
        "cast of a cast",
        ("Cast",),
        layout.cast_chain,
        "A cast of a cast that lost nothing goes straight to the last type.",
        "cast(cast(x, float64), float32) -> x, for float32 x",
        value_free=True,
        after=("Cast",),
    ),
    Rule(
        "transpose of a transpose",
        ("Transpose", "ConjugateTranspose"),
        layout.repeated_transpose,
        "Two transposes are one, or none.",
        "transpose(transpose(x)) -> x",
        after=("Transpose", "ConjugateTranspose"),
    ),
    Rule(
        "reshape of a reshape",
        ("Reshape", "Squeeze", "ExpandDims"),
        layout.repeated_reshape,
        "Only the last of several shapes counts, if the others cannot be wrong.",
        "squeeze(expand_dims(x, 1), 1) -> x",
        after=("Reshape", "Squeeze", "ExpandDims"),
    ),
    Rule(
        "transposed factor",
        ("MatMul", "BatchMatMul", "BatchMatMulV2"),
        layout.transposed_factor,
        "A transpose before a product becomes the product's flag.",
        "matmul(transpose(a), b) -> matmul(a, b, transpose_a=True)",
        after=("Transpose", "ConjugateTranspose"),
    ),
    Rule(
        "size as float",
        ("Cast",),
        shapes.size_as_float,
        "The divisor of a mean's gradient is one step.",
        "cast(size(x), float32) -> size(x, float32)",
        value_free=True,
        after=("Size",),
    ),
    Rule(
        "inverse size",
        ("RealDiv",),
        shapes.inverse_size,
        "The gradient of a mean, one over the size, is one step (_InverseSize).",
        "1.0 / size(x, float32) -> _InverseSize(x)",
        after=("Size",),
    ),
    # arithmetic
    Rule(
        "neutral element",
        ("+", "-", "*", "/", "Div", "TruncateDiv", "Pow"),
        algebra.neutral_element,
        "x * 1, x / 1, x - 0, x ** 1 and x + (-0.0) are x; x + 0 is for integers.",
        "x * 1.0 -> x",
        after=(CONSTANT,),
    ),
    Rule(
        "zero added",
        ("+",),
        algebra.zero_added,
        "x + 0.0 is x, but for the sign of zero.",
        "x + 0.0 -> x",
        exact=False,
        after=(CONSTANT,),
    ),
    Rule(
        "zero factor",
        ("Mul",),
        algebra.zero_factor,
        "x * 0 is 0 for integers (a float may be NaN).",
        "n * 0 -> zeros_like(n)",
        after=(CONSTANT,),
    ),
    Rule(
        "special power",
        ("Pow",),
        algebra.powers,
        "Powers 2, 0.5 and -1 are operations of their own.",
        "x ** 2 -> square(x)",
        after=(CONSTANT,),
    ),
    Rule(
        "double inverse",
        ("Neg", "LogicalNot", "Conj"),
        algebra.double_inverse,
        "Two negations are none.",
        "-(-x) -> x",
        value_free=True,
        after=("Neg", "LogicalNot", "Conj"),
    ),
    Rule(
        "negation",
        ("+", "-", "*", "/"),
        algebra.negations,
        "Negations go into sums, differences and products.",
        "a + (-b) -> a - b",
        value_free=True,
        after=("Neg",),
    ),
    Rule(
        "sum of two",
        ("AddN",),
        algebra.sum_of_two,
        "AddN of two equal shapes is an addition.",
        "add_n([a, b]) -> a + b",
    ),
    Rule(
        "division by a power of two",
        ("RealDiv",),
        algebra.division_by_constant,
        "Multiplying is faster, and here the same.",
        "x / 4.0 -> x * 0.25",
        after=(CONSTANT,),
    ),
    Rule(
        "reciprocal root",
        ("RealDiv", "Reciprocal"),
        algebra.reciprocal_root,
        "1 / sqrt(x) is rsqrt(x), computed so.",
        "1.0 / sqrt(x) -> rsqrt(x)",
        after=("Sqrt",),
    ),
)
