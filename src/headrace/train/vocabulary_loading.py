"""Initial values from a checkpoint for matrices whose rows or columns stand for the words of a
vocabulary that has changed: ``tf.contrib.framework.load_and_remap_matrix_initializer`` and its
like.

tf.get_variable("embeddings", [4 + 2, 8], initializer=load_embedding_initializer(
    checkpoint, "embeddings", new_vocab_size=4, embedding_dim=8, old_vocab_file="old.txt",
    new_vocab_file="new.txt", num_oov_buckets=2))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import as_dtype, float32, int64
from headrace.ops.array.joining import concat
from headrace.ops.array.ranges import range as number_range
from headrace.ops.io import vocabulary_remapping as remapping
from headrace.variables.initializers import truncated_normal_initializer, zeros_initializer

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = [
    "load_and_remap_matrix",
    "load_and_remap_matrix_initializer",
    "load_embedding_initializer",
    "load_linear_multiclass_bias_initializer",
    "load_variable_slot_initializer",
]


def _check_axis(old: Any, new: Any, buckets: int, what: str) -> None:
    if buckets < 0:
        raise ValueError(f"num_{what}_oov_buckets must be >= 0, but received {buckets}")
    if bool(old) != bool(new):
        raise ValueError(
            f"old_{what}_vocab_file and new_{what}_vocab_file must both be specified or left "
            f"unspecified. old_{what}_vocab_file='{old}', new_{what}_vocab_file='{new}'"
        )


def load_and_remap_matrix(
    ckpt_path: str,
    old_tensor_name: str,
    new_row_vocab_offset: int,
    num_rows_to_load: int,
    new_col_vocab_size: int,
    initializer: Callable[[Any], Any],
    old_row_vocab_size: int = -1,
    old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    max_rows_in_memory: int = -1,
) -> Tensor:
    """A matrix of a checkpoint in the order of new vocabularies.

    Rows or columns of words that the old vocabulary does not have, and those of the buckets for
    unknown words, which come last, are made by ``initializer``.
    """
    _check_axis(old_row_vocab_file, new_row_vocab_file, num_row_oov_buckets, "row")
    _check_axis(old_col_vocab_file, new_col_vocab_file, num_col_oov_buckets, "col")
    if not new_row_vocab_file and not new_col_vocab_file:
        raise ValueError(
            "Must provide either row or column vocab files. If no remapping is necessary, consider "
            "using `tf.contrib.framework.init_from_checkpoint` instead."
        )
    rows: Any
    rows_present: Any = num_rows_to_load
    if new_row_vocab_file:
        rows, rows_present = remapping.generate_vocab_remapping(
            new_row_vocab_file,
            old_row_vocab_file,
            new_row_vocab_offset,
            num_rows_to_load,
            old_row_vocab_size,
        )
    else:
        end = new_row_vocab_offset + num_rows_to_load
        rows = number_range(new_row_vocab_offset, end, dtype=int64)
    cols: Any = convert_to_tensor([], int64)
    cols_present: Any = new_col_vocab_size
    if new_col_vocab_file:
        cols, cols_present = remapping.generate_vocab_remapping(
            new_col_vocab_file, old_col_vocab_file, 0, new_col_vocab_size
        )
    missing = num_rows_to_load * new_col_vocab_size - rows_present * cols_present
    matrix = remapping.load_and_remap_matrix(
        ckpt_path,
        old_tensor_name,
        rows,
        cols,
        initializer([missing, 1]),
        num_rows_to_load,
        new_col_vocab_size,
        max_rows_in_memory,
    )
    if num_row_oov_buckets:
        further = convert_to_tensor(initializer([num_row_oov_buckets, new_col_vocab_size]))
        matrix = concat([matrix, further], 0)
    if num_col_oov_buckets:
        shape = [num_rows_to_load + num_row_oov_buckets, num_col_oov_buckets]
        matrix = concat([matrix, convert_to_tensor(initializer(shape))], 1)
    return matrix


def load_and_remap_matrix_initializer(
    ckpt_path: str,
    old_tensor_name: str,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_size: int = -1,
    old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer for a variable, whole or in parts of rows; see :func:`load_and_remap_matrix`.

    ``initializer`` makes what the checkpoint does not have, zeros without it.
    """
    missing: Any = zeros_initializer() if initializer is None else initializer
    if not callable(missing):
        raise TypeError(
            f"initializer must be callable, instead of being {missing} of type {type(missing)}."
        )

    def initialize(shape: Sequence[Any], dtype: Any = float32, partition_info: Any = None) -> Any:
        shape = [int(d) for d in shape]
        _check_shape(shape, dtype, new_col_vocab_size + num_col_oov_buckets)
        offset = 0 if partition_info is None else partition_info.single_offset(shape)
        end, whole = offset + shape[0], new_row_vocab_size + num_row_oov_buckets
        if end > whole:
            raise ValueError(
                f"Trying to initialize {shape[0]} additional rows after {offset} rows have already "
                f"been initialized, which would exceed expected total row count of {whole}."
            )
        unknown = min(shape[0], max(0, end - new_row_vocab_size))
        if offset > new_row_vocab_size:
            return missing(shape)
        return load_and_remap_matrix(
            ckpt_path,
            old_tensor_name,
            offset,
            shape[0] - unknown,
            new_col_vocab_size,
            missing,
            old_row_vocab_size,
            old_row_vocab_file,
            new_row_vocab_file,
            old_col_vocab_file,
            new_col_vocab_file,
            unknown,
            num_col_oov_buckets,
            max_rows_in_memory,
        )

    return initialize


def _check_shape(shape: Sequence[int], dtype: Any, columns: int) -> None:
    if as_dtype(dtype) is not float32:
        raise TypeError(f"Currently, only float32 is supported. Received dtype: {dtype}")
    if len(shape) != 2:
        raise ValueError(f"Expected 2-dim shape, but received: {shape}")
    if shape[0] <= 0:
        raise ValueError(f"Expected 1st dim of shape to be > 0, but received shape: {shape}")
    if shape[1] != columns:
        raise ValueError(
            f"Expected 2nd dim of shape to be new_col_vocab_size + num_col_oov_buckets = {columns},"
            f" but received shape: {shape}"
        )


def load_embedding_initializer(
    ckpt_path: str,
    embedding_tensor_name: str,
    new_vocab_size: int,
    embedding_dim: int,
    old_vocab_file: Any,
    new_vocab_file: Any,
    old_vocab_size: int = -1,
    num_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer for embeddings, one row a word; new words get truncated normal values."""
    if initializer is None:
        initializer = truncated_normal_initializer(stddev=1.0 / embedding_dim**0.5)
    return load_and_remap_matrix_initializer(
        ckpt_path,
        embedding_tensor_name,
        new_vocab_size,
        embedding_dim,
        old_row_vocab_size=old_vocab_size,
        old_row_vocab_file=old_vocab_file,
        new_row_vocab_file=new_vocab_file,
        num_row_oov_buckets=num_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )


def load_linear_multiclass_bias_initializer(
    ckpt_path: str,
    bias_tensor_name: str,
    new_class_vocab_size: int,
    old_class_vocab_file: Any,
    new_class_vocab_file: Any,
    num_class_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer for the biases of a linear model, a column with one row a class."""
    return load_and_remap_matrix_initializer(
        ckpt_path,
        bias_tensor_name,
        new_class_vocab_size,
        1,
        old_row_vocab_file=old_class_vocab_file,
        new_row_vocab_file=new_class_vocab_file,
        num_row_oov_buckets=num_class_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )


def load_variable_slot_initializer(
    ckpt_path: str,
    old_tensor_name: str,
    primary_partition_info: Any,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Any = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer for a slot: it is cut as its variable is (``primary_partition_info``)."""
    made = load_and_remap_matrix_initializer(
        ckpt_path,
        old_tensor_name,
        new_row_vocab_size,
        new_col_vocab_size,
        old_row_vocab_file=old_row_vocab_file,
        new_row_vocab_file=new_row_vocab_file,
        old_col_vocab_file=old_col_vocab_file,
        new_col_vocab_file=new_col_vocab_file,
        num_row_oov_buckets=num_row_oov_buckets,
        num_col_oov_buckets=num_col_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )

    def initialize(shape: Sequence[Any], dtype: Any = float32, partition_info: Any = None) -> Any:
        del partition_info  # a slot is no part of a variable of its own
        return made(shape, dtype, partition_info=primary_partition_info)

    return initialize
