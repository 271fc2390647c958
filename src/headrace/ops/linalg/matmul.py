"""Matrix products: MatMul, BatchMatMul(V2), SparseMatMul, and what users write for them.

Transposed operands are views, so BLAS gets flags instead of copies. Half types are multiplied in
float32 and rounded once.

    tf.matmul(a, b, transpose_b=True)  # MatMul; BatchMatMulV2 if either has more than two axes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import convert, shapes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.dtypes import bfloat16, float32, int32, int64
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.opdef import GROUPS, OpDef, define, lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import Dim, Dims, Shape
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.indexed_slices import IndexedSlices

__all__ = ["adjoint", "batch_matmul", "matmul", "matrix_transpose", "matvec", "sparse_matmul"]

GROUPS["matmul"] = (GROUPS["inexact"] or frozenset()) | {int32, int64}
GROUPS["single_or_bfloat16"] = frozenset([float32, bfloat16])

# kernels ----------------------------------------------------------------------------------------


def _product(xp: ArrayNamespace, a: Array, b: Array) -> Array:
    dtype = a.dtype
    if dtype.itemsize == 2:  # half types
        return xp.matmul(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    return xp.matmul(a, b)


def _matmul_kernel(
    xp: ArrayNamespace, a: Array, b: Array, *, transpose_a: bool, transpose_b: bool
) -> Array:
    try:
        x, y = a.T if transpose_a else a, b.T if transpose_b else b
        if x.ndim == 2 == y.ndim:
            return _product(xp, x, y) if x.dtype.itemsize == 2 else xp.matmul(x, y)
    except ValueError:
        pass
    raise errors.InvalidArgumentError(None, None, _mismatch(a, b))


def _mismatch(a: Array, b: Array) -> str:
    for i, x in enumerate((a, b)):
        if x.ndim != 2:
            return f"In[{i}] is not a matrix. Instead it has shape {shapes.show(x.shape)}"
    return f"Matrix size-incompatible: In[0]: {shapes.show(a.shape)}, In[1]: {shapes.show(b.shape)}"


def _adjoint(xp: ArrayNamespace, x: Array) -> Array:
    x = xp.swapaxes(x, -1, -2)
    return x.conj() if x.dtype.kind == "c" else x


def _batch_matmul_kernel(
    xp: ArrayNamespace, x: Array, y: Array, *, adj_x: bool, adj_y: bool
) -> Array:
    try:
        a = _adjoint(xp, x) if adj_x else x
        b = _adjoint(xp, y) if adj_y else y
        if (
            b.ndim == 2 < a.ndim and not adj_x and a.size
        ):  # one product instead of one per matrix of a
            return _product(xp, a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
        if a.ndim >= 2 and b.ndim >= 2:
            return _product(xp, a, b)
    except ValueError:
        pass
    raise errors.InvalidArgumentError(None, None, _batch_mismatch(x, y, adj_x, adj_y))


def _batch_mismatch(x: Array, y: Array, adj_x: bool, adj_y: bool) -> str:
    both = f"{shapes.show(x.shape)} vs. {shapes.show(y.shape)}"
    for i, v in enumerate((x, y)):
        if v.ndim < 2:
            return f"In[{i}] ndims must be >= 2: {v.ndim}"
    inner_x, inner_y = x.shape[-2 if adj_x else -1], y.shape[-1 if adj_y else -2]
    if inner_x != inner_y:
        return (
            f"In[0] mismatch In[1] shape: {inner_x} vs. {inner_y}: {both.replace(' vs.', '')} "
            f"{int(adj_x)} {int(adj_y)}"
        )
    return f"In[0] and In[1] must have compatible batch dimensions: {both}"


def _equal_batch_matmul_kernel(
    xp: ArrayNamespace, x: Array, y: Array, *, adj_x: bool, adj_y: bool
) -> Array:
    if x.shape[:-2] != y.shape[:-2]:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"In[0] and In[1] must have the same batch dimensions: {shapes.show(x.shape)} "
            f"vs {shapes.show(y.shape)}",
        )
    return _batch_matmul_kernel(xp, x, y, adj_x=adj_x, adj_y=adj_y)


def _sparse_matmul_kernel(
    xp: ArrayNamespace, a: Array, b: Array, *, transpose_a: bool, transpose_b: bool
) -> Array:
    wide = (a.astype(np.float32), b.astype(np.float32))
    return _matmul_kernel(xp, *wide, transpose_a=transpose_a, transpose_b=transpose_b)


# shapes -----------------------------------------------------------------------------------------


def _contracted(rows: Dim, left: Dim, right: Dim, cols: Dim) -> tuple[Dim, Dim]:
    if left is not None and right is not None and left != right:
        raise ValueError(f"Dimensions must be equal, but are {left} and {right}")
    return rows, cols


def _matmul_shape(c: Inference) -> list[Shape]:
    a, b = c.require_rank(0, 2), c.require_rank(1, 2)
    assert a is not None and b is not None
    if c.attr("transpose_a"):
        a = a[::-1]
    if c.attr("transpose_b"):
        b = b[::-1]
    return [_contracted(a[0], a[1], b[0], b[1])]


def _batch_matmul_shape(c: Inference) -> list[Shape]:
    x, y = c.require_rank_at_least(0, 2), c.require_rank_at_least(1, 2)
    if c.op.type == "BatchMatMul" and (x is None) != (y is None):
        known: Dims = x if x is not None else shapes.ranked(y)
        x, y = (s if s is not None else (*known[:-2], None, None) for s in (x, y))
    if x is None or y is None:
        return [None]
    rows, left = x[:-3:-1] if c.attr("adj_x") else x[-2:]
    right, cols = y[:-3:-1] if c.attr("adj_y") else y[-2:]
    if c.op.type == "BatchMatMul":
        batch = shapes.merge(x[:-2], y[:-2])
    else:
        batch = shapes.broadcast(x[:-2], y[:-2])
    return [(batch or ()) + _contracted(rows, left, right, cols)]


# gradients --------------------------------------------------------------------------------------


def _conj(x: Tensor) -> Tensor:
    return apply_op("Conj", x) if x._dtype._kind == "c" else x


def _products(
    op_type: str,
    g: IndexedSlices | Tensor,
    a: Tensor,
    b: Tensor,
    ta: bool,
    tb: bool,
    flags: tuple[str, str],
    skip: frozenset[int] = frozenset(),
) -> tuple[Any, Any]:
    """Gradients of ``op(a) @ op(b)``.

    Four cases, none of which needs a transpose. ``skip``: which are not wanted.
    """

    def product(x: TensorLike, y: TensorLike, tx: bool, ty: bool) -> Tensor:
        attrs: dict[str, Any] = {flags[0]: tx, flags[1]: ty}
        return apply_op(op_type, x, y, **attrs)

    grad_a = grad_b = None
    if 0 not in skip:
        grad_a = product(b, g, tb, True) if ta else product(g, b, False, not tb)
    if 1 not in skip:
        grad_b = product(g, a, True, ta) if tb else product(a, g, not ta, False)
    return grad_a, grad_b


def _matmul_grad(op: Operation, g: Tensor) -> list[Any]:
    a, b = _conj(op._inputs[0]), _conj(op._inputs[1])
    ta, tb = op._attrs["transpose_a"], op._attrs["transpose_b"]
    flags = ("transpose_a", "transpose_b")
    return list(_products("MatMul", g, a, b, ta, tb, flags, op._skip))


def _batch_matmul_grad(op: Operation, g: IndexedSlices | Tensor) -> list[Any]:
    x, y = op._inputs
    attrs = op._attrs
    if _is_one_product(op):
        grad_x = apply_op(op.type, g, y, adj_x=False, adj_y=not attrs["adj_y"])
        return [grad_x, _matrix_grad(x, g, attrs["adj_y"])]
    grads = _products(op.type, g, x, y, attrs["adj_x"], attrs["adj_y"], ("adj_x", "adj_y"))
    if op.type == "BatchMatMul" or _same_batch(x._shape, y._shape):
        return list(grads)
    shape_x, shape_y = apply_op("Shape", x), apply_op("Shape", y)
    axes = apply_many(lookup("BroadcastGradientArgs"), shape_x[:-2], shape_y[:-2])
    return [
        apply_op("Reshape", apply_op("Sum", grad, over), shape)
        for grad, over, shape in zip(grads, axes, (shape_x, shape_y))
    ]


def _is_one_product(op: Operation) -> bool:
    """Many matrices times one: a dense layer over several leading axes."""
    x, y = op._inputs[0]._shape, op._inputs[1]._shape
    if op.type == "BatchMatMul" or op._attrs["adj_x"] or op._inputs[0]._dtype._kind == "c":
        return False
    return (
        x is not None
        and y is not None
        and len(y) == 2 < len(x)
        and bool(x[-1])
        and bool(y[0])
        and bool(y[1])
    )


def _matrix_grad(x: Tensor, g: Any, adj_y: bool) -> Tensor:
    """The gradient of the one matrix, from all rows at once.

    No product per matrix of x and no sum over them.
    """
    rows = apply_op("Reshape", x, [-1, shapes.ranked(x._shape)[-1]])
    row_grads = apply_op("Reshape", g, [-1, g._shape[-1]])
    left, right = (row_grads, rows) if adj_y else (rows, row_grads)
    return apply_op("MatMul", left, right, transpose_a=True)


def _same_batch(x: Shape, y: Shape) -> bool:
    return x is not None and y is not None and x[:-2] == y[:-2] and None not in x[:-2]


def _sparse_matmul_grad(op: Operation, g: Tensor) -> list[Any]:
    """Gradients in the types of the inputs; dense products give the same numbers."""
    a, b = (
        apply_op("Cast", t, DstT=float32) if t._dtype._base is bfloat16 else t for t in op._inputs
    )
    ta, tb = op._attrs["transpose_a"], op._attrs["transpose_b"]
    grads = _products("MatMul", g, a, b, ta, tb, ("transpose_a", "transpose_b"))
    return [
        apply_op("Cast", grad, DstT=bfloat16) if t._dtype._base is bfloat16 else grad
        for grad, t in zip(grads, op._inputs)
    ]


# definitions ------------------------------------------------------------------------------------

MATMUL: OpDef = define(
    "MatMul",
    "a: T, b: T -> product: T; transpose_a: bool=False, transpose_b: bool=False, T: type(matmul)",
    shape=_matmul_shape,
    kernel=_matmul_kernel,
    grad=_matmul_grad,
    dense=True,
    role="matmul",
    packed_as="_PackedMatMul",
    packed_from=16384,
)
BATCH_MATMUL = define(
    "BatchMatMul",
    "x: T, y: T -> output: T; T: type(matmul), adj_x: bool=False, adj_y: bool=False",
    shape=_batch_matmul_shape,
    kernel=_equal_batch_matmul_kernel,
    grad=_batch_matmul_grad,
    role="batch matmul",
)
BATCH_MATMUL_V2 = define(
    "BatchMatMulV2",
    "x: T, y: T -> output: T; T: type(matmul), adj_x: bool=False, adj_y: bool=False",
    shape=_batch_matmul_shape,
    kernel=_batch_matmul_kernel,
    grad=_batch_matmul_grad,
    role="batch matmul",
)
SPARSE_MATMUL = define(
    "SparseMatMul",
    "a: Ta, b: Tb -> product: float32; transpose_a: bool=False, transpose_b: bool=False, "
    "a_is_sparse: bool=False, "
    "b_is_sparse: bool=False, Ta: type(single_or_bfloat16)=float32, Tb: "
    "type(single_or_bfloat16)=float32",
    shape=_matmul_shape,
    kernel=_sparse_matmul_kernel,
    grad=_sparse_matmul_grad,
)


# what users call --------------------------------------------------------------------------------


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product of the last two axes; leading axes are batches, which broadcast.

    ``transpose_a`` and ``adjoint_a`` use the (conjugate) transpose of ``a``; one of the two may be
    set. ``a_is_sparse`` and ``b_is_sparse`` are hints of TensorFlow's; products are computed
    densely. ``a @ b`` is the same.

        tf.matmul(x, w)                     # [n, k] and [k, m] give [n, m]
        tf.matmul(x, w, transpose_b=True)   # [n, k] and [m, k] give [n, m]
    """
    if name is None and not (
        transpose_a or transpose_b or adjoint_a or adjoint_b or a_is_sparse or b_is_sparse
    ):
        graph = get_default_graph()
        made = graph._multiply(a, b) if graph._is_eager else None
        if made is not None:
            return made
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        graph = get_default_graph()
        if graph._is_eager:
            if name is None:  # (what a scope of that name would be called)
                name = f"{graph.unique_name('MatMul')}/"
                a, b = _eager_value(a, "a"), _eager_value(b, "b")
            else:
                with graph.name_scope(name) as scope:
                    a, b, name = _eager_value(a, "a"), _eager_value(b, "b"), scope
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        with name_scope(name, "MatMul", [a, b]) as scope:
            x = convert.convert(a, name="a")
            y = convert.convert(b, name="b")
            how = (transpose_a, transpose_b, adjoint_a, adjoint_b, a_is_sparse, b_is_sparse)
            return matmul(x, y, *how, scope)
    if a._dtype is b._dtype and not (
        transpose_a or transpose_b or adjoint_a or adjoint_b or a_is_sparse or b_is_sparse
    ):
        left, right = a._shape, b._shape
        if left is not None and right is not None and len(left) <= 2 and len(right) <= 2:
            return apply(MATMUL, a, b, transpose_a=False, transpose_b=False, name=name)
    if transpose_a and adjoint_a:
        raise ValueError("Only one of transpose_a and adjoint_a can be True.")
    if transpose_b and adjoint_b:
        raise ValueError("Only one of transpose_b and adjoint_b can be True.")
    sparse = a_is_sparse or b_is_sparse
    if not sparse and (
        a._shape is None or b._shape is None or len(a._shape) > 2 or len(b._shape) > 2
    ):
        # only adjoints here, so a transpose is the adjoint of the conjugate
        a, b = _conj(a) if transpose_a else a, _conj(b) if transpose_b else b
        adj_x, adj_y = bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b)
        return apply(BATCH_MATMUL_V2, a, b, adj_x=adj_x, adj_y=adj_y, name=name or "MatMul")
    a, b = _conj(a) if adjoint_a else a, _conj(b) if adjoint_b else b
    transpose_a = True if adjoint_a else transpose_a
    transpose_b = True if adjoint_b else transpose_b
    kinds = {a._dtype._base, b._dtype._base}
    if (sparse and kinds <= {bfloat16, float32}) or (len(kinds) == 2 and bfloat16 in kinds):
        return _via_sparse(a, b, transpose_a, transpose_b, a_is_sparse, b_is_sparse, name)
    return apply(MATMUL, a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=name)


def _eager_value(value: TensorLike, name: str) -> Tensor:
    """A tensor; a variable's value without the detour of a conversion."""
    if isinstance(value, Tensor):
        return value
    read = getattr(value, "_eager_read", None)
    return convert.convert(value, name=name) if read is None else read()


def _via_sparse(
    a: Tensor, b: Tensor, ta: bool, tb: bool, a_sparse: bool, b_sparse: bool, name: str | None
) -> Tensor:
    out = sparse_matmul(a, b, ta, tb, a_sparse, b_sparse, name or "MatMul")
    if a._dtype._base is bfloat16 is b._dtype._base:
        return apply_op("Cast", out, DstT=bfloat16)
    return out


def sparse_matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """A product of matrices that may hold many zeros (computed densely: the flags are hints).

    ``a`` and ``b`` are matrices of float32 or bfloat16; ``transpose_a`` and ``transpose_b``
    transpose them first. The result is float32.
    """
    return apply(
        SPARSE_MATMUL,
        a,
        b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
        name=name,
    )


def batch_matmul(
    x: TensorLike, y: TensorLike, adj_x: bool = False, adj_y: bool = False, name: str | None = None
) -> Tensor:
    """``tf.matmul`` of a batch, by its name before TF 1.0; ``adj_x`` and ``adj_y`` transpose.

    ``x`` is [..., m, k] and ``y`` [..., k, n], with leading dimensions that broadcast; complex
    matrices are conjugated as well.
    """
    return apply(BATCH_MATMUL_V2, x, y, adj_x=adj_x, adj_y=adj_y, name=name)


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Matrices times vectors: [..., m, n] and [..., n] give [..., m].

    ``transpose_a`` and ``adjoint_a`` use the (conjugate) transpose of the matrices.
    """
    with name_scope(name, "MatVec", [a, b]):
        x = convert.convert(a, name="a")
        column = apply_op("ExpandDims", convert.convert(b, name="b"), -1)
        out = matmul(
            x,
            column,
            transpose_a=transpose_a,
            adjoint_a=adjoint_a,
            a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )
        return apply_op("Squeeze", out, squeeze_dims=[-1], name="Squeeze")


def matrix_transpose(
    a: TensorLike, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """The last two axes exchanged."""
    with name_scope(name or "matrix_transpose", values=[a]):
        a = convert.convert(a, name="a")
        op_type = "ConjugateTranspose" if conjugate and a._dtype._kind == "c" else "Transpose"
        if a._shape is None:
            return apply_op(op_type, a, _last_two_exchanged(a), name="transpose")
        if len(a._shape) < 2:
            raise ValueError(
                "Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: "
                f"{shapes.from_plain(a._shape)}"
            )
        rank = len(a._shape)
        return apply_op(op_type, a, [*range(rank - 2), rank - 1, rank - 2], name="transpose")


def _last_two_exchanged(a: Tensor) -> Tensor:
    rank = apply_op("Rank", a)
    front = apply_op("Range", 0, rank - 2, 1)
    return apply_op("ConcatV2", [front, apply_op("Pack", [rank - 1, rank - 2])], 0)


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The conjugate transpose of the last two axes."""
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(convert.convert(matrix, name="matrix"), conjugate=True)
