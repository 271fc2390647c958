"""Sparse tensors: three dense tensors (coordinates, values, dense shape) that travel together.

    >>> x = tf.SparseTensor(indices=[[0, 1], [2, 0]], values=[1.0, 2.0], dense_shape=[3, 4])
    >>> tf.sparse_tensor_dense_matmul(x, w)

Coordinates are expected in row-major order; ``sparse_reorder`` brings them into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import convert, dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType
from headrace.core.indexed_slices import IndexedSlices, SparseTensorValue
from headrace.core.infer import partial_shape
from headrace.core.scopes import name_scope
from headrace.core.shapes import known_dims
from headrace.core.specs import SparseTensorSpec, register_type_spec
from headrace.core.stacks import session_for
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array import basic
from headrace.ops.array.array_shape import const, shape
from headrace.ops.sparse import sparse_ops as ops

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike, SparseLike, TensorLike

__all__ = [
    "SparseTensor",
    "SparseTensorValue",
    "convert_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_sparse_tensor",
    "sparse_eye",
    "sparse_from_dense",
    "sparse_map_values",
    "sparse_placeholder",
    "sparse_tensor_dense_matmul",
    "sparse_tensor_to_dense",
    "sparse_to_dense",
]


class SparseTensor:
    """A tensor by the elements that are not zero: ``dense[indices[i]] = values[i]``.

    ``indices`` is [n, rank] of int64, in row-major order for most operations
    (``tf.sparse_reorder``); ``values`` has n elements; ``dense_shape`` is the shape. It can be fed
    (``tf.sparse_placeholder``) and fetched (a ``SparseTensorValue``).
    """

    #: What is known of the shape though the tensor that gives it does not tell (an argument of a
    #: function).
    _known_shape: shapes.TensorShape | None = None

    def __init__(self, indices: object, values: object, dense_shape: object) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, dtypes.int64, "indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, "dense_shape")
        entries = self._indices.shape.with_rank(2)
        size = self._dense_shape.shape.with_rank(1)
        rows, rank = known_dims(entries)
        rows.merge_with(known_dims(self._values.shape.with_rank(1))[0])
        rank.merge_with(known_dims(size)[0])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        return self._dense_shape

    @property
    def shape(self) -> shapes.TensorShape:
        found = shapes.from_plain(partial_shape(self._dense_shape))
        return found if self._known_shape is None else found.merge_with(self._known_shape)

    def get_shape(self) -> shapes.TensorShape:
        return self.shape

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def graph(self) -> Any:
        return self._indices.graph

    @property
    def name(self) -> str:
        return self._values.name

    @property
    def _graph_anchor(self) -> Tensor:
        return self._values

    # as a structure (core/nest.py with expand_composites)
    def _to_components(self) -> tuple[Tensor, ...]:
        return (self._indices, self._values, self._dense_shape)

    def _from_components(self, tensors: Sequence[Any]) -> SparseTensor:
        return SparseTensor(*tensors)

    def consumers(self) -> list[Operation]:
        return self._values.consumers()

    def eval(self, feed_dict: TensorLike | None = None, session: object = None) -> Any:
        return session_for(session, self.graph, "evaluate a tensor using `eval()`").run(
            self, feed_dict
        )

    def __mul__(self, other: TensorLike) -> SparseTensor:
        return self._with_dense("SparseDenseCwiseMul", other)

    def __truediv__(self, other: TensorLike) -> SparseTensor:
        if self.dtype.is_integer:
            wide = dtypes.float32 if self.dtype.size <= 2 else dtypes.float64
            real = SparseTensor(
                self._indices, apply_op("Cast", self._values, DstT=wide), self._dense_shape
            )
            return real._with_dense("SparseDenseCwiseDiv", apply_op("Cast", other, DstT=wide))
        return self._with_dense("SparseDenseCwiseDiv", other)

    __div__ = __truediv__

    def _with_dense(self, op: str, other: object) -> SparseTensor:
        dense = convert_to_tensor(other, self.dtype.base_dtype)
        values = apply_op(op, self._indices, self._values, self._dense_shape, dense)
        return SparseTensor(self._indices, values, self._dense_shape)

    def __repr__(self) -> str:
        parts = (self._indices, self._values, self._dense_shape)
        indices, values, shape = (str(t) for t in parts)  # a tensor's format() is that of its value
        return f"SparseTensor(indices={indices}, values={values}, dense_shape={shape})"

    __str__ = __repr__


SparseTensorSpec.value_type = SparseTensor
register_type_spec(SparseTensor, SparseTensorSpec.from_value)


convert.register_tensor_like(SparseTensor)


def _refuse(
    value: Tensor, dtype: DTypeLike | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    raise TypeError(
        f"Failed to convert object of type {type(value)} to Tensor. Contents: {value}. "
        "Use tf.sparse_tensor_to_dense to make it dense."
    )


convert.register_tensor_conversion_function(SparseTensor, _refuse)


def as_sparse_tensor(value: object) -> SparseTensor:
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, tuple) and len(value) == 3:
        return SparseTensor(*value)
    raise TypeError(f"Input must be a SparseTensor, not {value!r}.")


def convert_to_tensor_or_sparse_tensor(
    value: object, dtype: DType | None = None, name: str | None = None
) -> Tensor | SparseTensor:
    """A SparseTensor as it is, everything else as a tensor."""
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        found = as_sparse_tensor(value)
        if dtype is not None and found.dtype.base_dtype is not dtype.base_dtype:
            raise RuntimeError(
                f"Sparse dtype: requested = {dtype.name}, actual = {found.dtype.name}"
            )
        return found
    return convert_to_tensor(value, dtype, name)


def convert_to_tensor_or_indexed_slices(
    value: object, dtype: DTypeLike | None = None, name: str | None = None
) -> Any:
    """IndexedSlices and sparse tensors as they are, everything else as a tensor."""
    if isinstance(value, SparseTensorValue):
        value = as_sparse_tensor(value)
    if not isinstance(value, (IndexedSlices, SparseTensor)):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not value.dtype.is_compatible_with(dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype} for Tensor with dtype "
            f"{value.dtype.name}: {str(value)!r}"
        )
    return value


def sparse_placeholder(
    dtype: DTypeLike, shape: TensorLike | None = None, name: str | None = None
) -> SparseTensor:
    """A sparse tensor that is fed as a SparseTensorValue or a tuple (indices, values,
    dense_shape).
    """
    base = None if name is None else name + "/"
    names = [None if base is None else base + part for part in ("shape", "values", "indices")]
    rank: int | None = None
    known: Any = None
    if shape is None:
        dims = basic.placeholder(dtypes.int64, [None], names[0])
    else:
        if not isinstance(shape, Tensor):
            known = shapes.to_plain(shape) or ()
            if None not in known:
                shape = const(list(known), dtypes.int64, names[0] or "Const")
        if isinstance(shape, Tensor):
            rank = None if shape._shape is None else shape._shape[0]
            dims = shape
        else:
            rank, known = len(known), None
            dims = basic.placeholder(dtypes.int64, [rank], names[0])
    values = basic.placeholder(dtype, [None], names[1])
    sparse = SparseTensor(basic.placeholder(dtypes.int64, [None, rank], names[2]), values, dims)
    if known is not None:
        sparse._known_shape = shapes.from_plain(known)
    return sparse


# to and from dense ------------------------------------------------------------------------------


def sparse_to_dense(
    sparse_indices: TensorLike,
    output_shape: ShapeLike,
    sparse_values: TensorLike,
    default_value: object = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A dense tensor of ``output_shape`` with ``sparse_values`` at ``sparse_indices``.

    The other elements are ``default_value``. ``sparse_values`` may be one number for all. Indices
    must be in row-major order, without repetition, unless ``validate_indices`` is False.
    """
    values = convert_to_tensor(sparse_values)
    if type(default_value) is int and values._dtype._base._kind in "sb":
        default_value = "" if values._dtype._base is dtypes.string else bool(default_value)
    indices = convert_to_tensor(sparse_indices)
    size = convert_to_tensor(
        output_shape, indices._dtype._base if not isinstance(output_shape, Tensor) else None
    )
    return apply(
        ops.SPARSE_TO_DENSE,
        indices,
        size,
        values,
        default_value,
        validate_indices=validate_indices,
        name=name,
    )


def sparse_tensor_to_dense(
    sp_input: SparseLike,
    default_value: object = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """The dense tensor, with ``default_value`` (0) where there is no entry.

    ``validate_indices`` checks that the coordinates are in order and occur once.
    """
    sp = as_sparse_tensor(sp_input)
    if default_value is None:
        default_value = {"s": "", "b": False}.get(sp.dtype.base_dtype._kind, 0)
    dense = sparse_to_dense(
        sp.indices, sp.dense_shape, sp.values, default_value, validate_indices, name
    )
    if sp._known_shape is not None:
        dense.set_shape(sp._known_shape)
    return dense


def sparse_map_values(op: Callable[..., Any], *args: object, **kwargs: object) -> SparseTensor:
    """``op`` of the values of sparse tensors that all have the same indices, and of other
    arguments as they are.
    """
    given = [a for a in (*args, *kwargs.values()) if isinstance(a, SparseTensor)]
    if not given:
        raise ValueError("No SparseTensor in argument list of map_values")

    def values(argument: Any) -> Tensor:
        return argument.values if isinstance(argument, SparseTensor) else argument

    made = op(*map(values, args), **{k: values(v) for k, v in kwargs.items()})
    return SparseTensor(given[0].indices, made, given[0].dense_shape)


def sparse_from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements that are not zero."""
    with name_scope(name, "dense_to_sparse", [tensor]):
        tensor = convert_to_tensor(tensor)
        zero = "" if tensor._dtype._base is dtypes.string else False if tensor._dtype.is_bool else 0
        places = apply_op(
            "Where", apply_op("NotEqual", tensor, convert_to_tensor(zero, tensor._dtype._base))
        )
        return SparseTensor(
            places, apply_op("GatherNd", tensor, places), shape(tensor, out_type=dtypes.int64)
        )


def sparse_tensor_dense_matmul(
    sp_a: object,
    b: TensorLike,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """A sparse matrix times a dense one: [m, n] and [n, k] give [m, k].

    ``adjoint_a`` and ``adjoint_b`` use the conjugate transposes.
    """
    sp = as_sparse_tensor(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp, b]):
        b = convert_to_tensor(b, name="b")
        return apply(
            ops.SPARSE_MATMUL,
            sp.indices,
            sp.values,
            sp.dense_shape,
            b,
            adjoint_a=adjoint_a,
            adjoint_b=adjoint_b,
        )


def sparse_eye(
    num_rows: TensorLike,
    num_columns: TensorLike | None = None,
    dtype: DType = dtypes.float32,
    name: str | None = None,
) -> SparseTensor:
    """A sparse matrix with ones on the diagonal.

    ``num_columns`` is ``num_rows`` by default.

        tf.sparse.to_dense(tf.sparse.eye(2, 3))  # [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    with name_scope(name, "eye", [num_rows, num_columns]):
        rows = convert_to_tensor(num_rows, dtypes.int64)
        columns = rows if num_columns is None else convert_to_tensor(num_columns, dtypes.int64)
        count = apply_op("Minimum", rows, columns)
        line = apply_op("Range", const(0, dtypes.int64), count, const(1, dtypes.int64))
        size = apply_op("Reshape", count, const([1]))
        ones = apply_op("Fill", size, const(1, dtypes.as_dtype(dtype)))
        return SparseTensor(
            apply_op("Pack", [line, line], axis=1), ones, apply_op("Pack", [rows, columns])
        )
