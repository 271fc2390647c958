"""``tf.linalg``: linear algebra."""

# ruff: noqa: I001, A001, A004 (one line per module keeps these tables readable)
# fmt: off

from headrace.api.missing import module_getattr
from headrace.ops.array_shape import matrix_transpose, matrix_transpose as transpose
from headrace.ops.clip import global_norm
from headrace.ops.contraction import einsum, tensordot
from headrace.ops.linalg import adjoint, matmul, matvec
from headrace.ops.math_unary import inv
from headrace.ops.nn_norm import l2_normalize
from headrace.ops.ranges import cross

__all__ = [
    "adjoint", "cross", "einsum", "global_norm", "inv", "l2_normalize", "matmul",
    "matrix_transpose", "matvec", "tensordot", "transpose",
]

__getattr__ = module_getattr("linalg", __name__)
