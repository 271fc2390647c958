"""``tf.strings.split`` and ``bytes_split``: a row of parts for each string.

>>> sess.run(tf.strings.split(["a b", "c"], result_type="RaggedTensor")).to_list()
[[b'a', b'b'], [b'c']]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_many, apply_op
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import one_of
from headrace.ops.ragged.ragged_tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.strings.string_ops import STRING_SPLIT, string_split_v2

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike

__all__ = ["bytes_split", "rows_of_sparse", "split_v1", "split_v2"]


def rows_of_sparse(sparse: SparseTensor, known: Array | None = None) -> RaggedTensor:
    """The rows of a sparse matrix without gaps, as the kernels of splitting make it; of a constant
    their number is ``known``, as in TensorFlow.
    """
    rows = RaggedTensor.from_value_rowids(
        sparse.values, sparse.indices[:, 0], sparse.dense_shape[0], validate=False
    )
    if known is not None:
        rows.row_splits.set_shape([len(known) + 1])
    return rows


def _split_each(value: Any, split: Callable[[Any], SparseTensor], scope: str) -> Any:
    """The parts of one string, or rows of parts of a (ragged) tensor of strings."""
    if isinstance(value, RaggedTensor):
        with name_scope(None, scope, [value]):
            parts = _split_each(value.flat_values, split, scope)
        return value.with_flat_values(parts)
    rank = value.shape.ndims
    if rank is None:
        raise ValueError("input must have a known rank.")
    if rank == 0:
        return rows_of_sparse(split(apply_op("Pack", [value]))).values
    if rank == 1:
        return rows_of_sparse(split(value), static_value(value))
    matrix = RaggedTensor.from_tensor(value, ragged_rank=rank - 1)
    with name_scope(None, scope, [value]):
        return _split_each(matrix, split, scope)


def split_v1(
    input: TensorLike | None = None,
    sep: TensorLike | None = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """Python's ``str.split`` of each string; the result is sparse or ragged.

    ``sep`` None splits at white space, as Python does; ``maxsplit`` limits the number of cuts.
    ``result_type`` is "SparseTensor" or "RaggedTensor"; ``source`` is the older name of ``input``.

        tf.strings.split(["a b", "c"], result_type="RaggedTensor")  # [["a", "b"], ["c"]]
    """
    given = one_of("input", input, "source", source)
    with name_scope(name, "StringSplit", [given]):
        strings = convert_to_tensor_or_ragged_tensor(given, dtypes.string, "input")
        if result_type == "SparseTensor" and strings.shape.ndims == 1:
            return string_split_v2(strings, sep, maxsplit)
        rows = split_v2(strings, sep, maxsplit)
        if result_type == "SparseTensor":
            return rows.to_sparse()
        if result_type == "RaggedTensor":
            return rows
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")


def split_v2(
    input: TensorLike, sep: TensorLike | None = None, maxsplit: int = -1, name: str | None = None
) -> Any:
    """Python's ``str.split``: a tensor of the parts of one string, rows of parts of several.

    Strings of unknown rank are taken for a vector, as in TF 1.15.
    """
    with name_scope(name, "StringSplit", [input]):
        strings = convert_to_tensor_or_ragged_tensor(input, dtypes.string, "input")
        if strings.shape.ndims is None:
            return rows_of_sparse(string_split_v2(strings, sep, maxsplit))
        return _split_each(strings, lambda x: string_split_v2(x, sep, maxsplit), "StringSplit")


def _bytes_of(strings: Tensor) -> SparseTensor:
    return SparseTensor(*apply_many(STRING_SPLIT, strings, "", skip_empty=True))


def bytes_split(input: TensorLike, name: str | None = None) -> Tensor | RaggedTensor:
    """The bytes of one string, or a row of bytes for each of several."""
    with name_scope(name, "StringsByteSplit", [input]):
        strings = convert_to_tensor_or_ragged_tensor(input, name="input")
        if strings.dtype.base_dtype is not dtypes.string:
            raise TypeError(
                f"Input 'input' of 'StringSplit' Op has type {strings.dtype.name} that does not "
                "match expected type of string."
            )
        found: Tensor | RaggedTensor = _split_each(strings, _bytes_of, "StringsByteSplit")
        return found
