"""Matrices of a checkpoint whose rows and columns follow the lines of vocabulary files: the
operations that find the old line of each new word, and that read the matrix in the new order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.build import apply, apply_many
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.io.checkpoint_ops import open_checkpoint
from headrace.runtime.file_paths import local_path

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["generate_vocab_remapping", "load_and_remap_matrix"]


def _words(path: str, count: int) -> list[bytes]:
    """The first ``count`` lines of a file (all if negative)."""
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise errors.os_error(path, error) from None
    return lines if count < 0 else lines[:count]


def _remapping_kernel(
    xp: ArrayNamespace,
    new_vocab_file: Array,
    old_vocab_file: Array,
    *,
    new_vocab_offset: int,
    num_new_vocab: int,
    old_vocab_size: int,
) -> tuple[Array, Array]:
    old: dict[bytes, int] = {}
    for i, word in enumerate(_words(local_path(old_vocab_file.item()), old_vocab_size)):
        old.setdefault(word, i)
    path = local_path(new_vocab_file.item())
    new = _words(path, -1)[new_vocab_offset : new_vocab_offset + num_new_vocab]
    if len(new) < num_new_vocab:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{path} has {new_vocab_offset + len(new)} words; {num_new_vocab} from number "
            f"{new_vocab_offset} on are wanted",
        )
    found = np.array([old.get(word, -1) for word in new], np.int64)
    return found, np.asarray((found >= 0).sum(), np.int32)


def _positions(remapping: Array, count: int, what: str) -> Array:
    if remapping.size and remapping.size != count:
        raise errors.InvalidArgumentError(
            None, None, f"Size of {what}_remapping is {remapping.size} instead of num_{what}s"
        )
    known = remapping[remapping >= 0]
    if known.size != np.unique(known).size:
        raise errors.UnimplementedError(
            None, None, f"{what}_remapping names a {what} of the old matrix more than once"
        )
    return remapping if remapping.size else np.arange(count)


def _matrix_kernel(
    xp: ArrayNamespace,
    ckpt_path: Array,
    old_tensor_name: Array,
    row_remapping: Array,
    col_remapping: Array,
    initializing_values: Array,
    *,
    num_rows: int,
    num_cols: int,
    max_rows_in_memory: int,
) -> Array:
    del max_rows_in_memory  # the file is read in pieces anyway, checked as a whole
    if row_remapping.size != num_rows:
        raise errors.InvalidArgumentError(
            None, None, f"Size of row_remapping is {row_remapping.size} instead of num_rows"
        )
    rows = _positions(row_remapping, num_rows, "row")
    cols = _positions(col_remapping, num_cols, "col")
    reader, name = open_checkpoint(local_path(ckpt_path.item())), local_path(old_tensor_name.item())
    if name not in reader:
        raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint")
    old = reader.read(name)
    if old.ndim != 2 or old.dtype != np.float32:
        raise errors.InvalidArgumentError(
            None, None, f"Tensor {name} must be 2-D of type float, has shape {list(old.shape)}"
        )
    if rows.max(initial=-1) >= old.shape[0] or cols.max(initial=-1) >= old.shape[1]:
        raise errors.InvalidArgumentError(
            None, None, f"{name} of shape {list(old.shape)} has no such row or column"
        )
    out = np.empty((num_rows, num_cols), np.float32)
    known = (rows >= 0)[:, None] & (cols >= 0)[None, :]
    missing = int(known.size - known.sum())
    if initializing_values.size != missing:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{missing} elements are not in {name}, initializing_values has "
            f"{initializing_values.size}",
        )
    out[np.ix_(rows >= 0, cols >= 0)] = old[np.ix_(rows[rows >= 0], cols[cols >= 0])]
    out[~known] = initializing_values.reshape(-1)
    return out


def _remapping_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 0)
    c.require_rank(1, 0)
    return [(c.attr("num_new_vocab"),), ()]


def _matrix_shape(c: Inference) -> list[Shape]:
    return [(c.attr("num_rows"), c.attr("num_cols"))]


# A file may change between two runs: nothing here is folded or shared.
GENERATE_VOCAB_REMAPPING = define(
    "GenerateVocabRemapping",
    "new_vocab_file: string, old_vocab_file: string -> remapping: int64, num_present: int32; "
    "new_vocab_offset: int, num_new_vocab: int, old_vocab_size: int=-1",
    shape=_remapping_shape,
    kernel=_remapping_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
)
LOAD_AND_REMAP_MATRIX = define(
    "LoadAndRemapMatrix",
    "ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64, "
    "initializing_values: float32 -> output_matrix: float32; "
    "num_rows: int, num_cols: int, max_rows_in_memory: int=-1",
    shape=_matrix_shape,
    kernel=_matrix_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
)


def generate_vocab_remapping(
    new_vocab_file: TensorLike,
    old_vocab_file: TensorLike,
    new_vocab_offset: int,
    num_new_vocab: int,
    old_vocab_size: int = -1,
    name: str | None = None,
) -> Sequence[Any]:
    """(line of each new word in the old file or -1, how many are there)."""
    return apply_many(
        GENERATE_VOCAB_REMAPPING,
        new_vocab_file,
        old_vocab_file,
        new_vocab_offset=new_vocab_offset,
        num_new_vocab=num_new_vocab,
        old_vocab_size=old_vocab_size,
        name=name,
    )


def load_and_remap_matrix(
    ckpt_path: TensorLike,
    old_tensor_name: TensorLike,
    row_remapping: TensorLike,
    col_remapping: TensorLike,
    initializing_values: TensorLike,
    num_rows: int,
    num_cols: int,
    max_rows_in_memory: int = -1,
    name: str | None = None,
) -> Tensor:
    """A matrix of a checkpoint with its rows and columns in a new order; elements that it does not
    have are taken from ``initializing_values``, row by row.
    """
    return apply(
        LOAD_AND_REMAP_MATRIX,
        ckpt_path,
        old_tensor_name,
        row_remapping,
        col_remapping,
        initializing_values,
        num_rows=num_rows,
        num_cols=num_cols,
        max_rows_in_memory=max_rows_in_memory,
        name=name,
    )
