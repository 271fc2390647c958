"""Which element-wise ops have native code, for which types: a list that costs nothing to load.

The code is in element_rules.py; a test compares both. Kinds: f float32, d float64, i signed and u
unsigned integers, b booleans.

    >>> has_code("Tanh", "float64")
    True
"""

from __future__ import annotations

__all__ = ["ELEMENTWISE", "has_code", "kind_of"]

_BY_KINDS = {
    "fdi": "Abs",
    "fdiu": "AccumulateNV2 Add AddN AddV2 BiasAdd ClipByValue Greater GreaterEqual Less LessEqual "
    "Maximum Minimum Mul Neg Relu Relu6 Relu6Grad ReluGrad Sign Square SquaredDifference Sub",
    "iu": "BitwiseAnd BitwiseOr BitwiseXor",
    "fdiub": "Cast Equal Identity NotEqual OnesLike PreventGradient Select SelectV2 StopGradient "
    "ZerosLike",
    "fd": "Ceil Div DivNoNan Elu EluGrad Exp Expm1 Floor FloorDiv Inv InvGrad IsFinite IsInf IsNan "
    "LeakyRelu LeakyReluGrad Log Log1p MulNoNan RealDiv Reciprocal ReciprocalGrad Rint Round Rsqrt "
    "RsqrtGrad Selu SeluGrad Sigmoid SigmoidGrad Softplus SoftplusGrad Softsign SoftsignGrad Sqrt "
    "SqrtGrad Tanh TanhGrad TruncateDiv Xdivy Xlogy",
    "f": "Cos Erf Pow Sin",
    "iub": "Invert LogicalNot",
    "b": "LogicalAnd LogicalOr",
}
#: Op -> kinds of all its inputs (but for a condition).
ELEMENTWISE = {op: kinds for kinds, ops in _BY_KINDS.items() for op in ops.split()}
_KINDS = {"float32": "f", "float64": "d", "bool": "b"}
_KINDS |= {f"int{b}": "i" for b in (8, 16, 32, 64)} | {f"uint{b}": "u" for b in (8, 16, 32, 64)}


def kind_of(dtype: str) -> str:
    """The kind of a type; empty if it has none of these."""
    return _KINDS.get(dtype, "")


def has_code(op: str, *dtypes: str) -> bool:
    """Whether an element-wise op of inputs of these types has native code."""
    kinds = ELEMENTWISE.get(op)
    if kinds is None:
        return False
    if op in ("Select", "SelectV2"):
        dtypes = dtypes[1:]
    return all((_KINDS.get(d) or "-") in kinds for d in dtypes)
