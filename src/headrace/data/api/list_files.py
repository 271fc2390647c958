"""``list_files``: names of files by pattern, found when the dataset is gone through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["matching_names"]


def matching_names(file_pattern: TensorLike) -> Tensor:
    """A string vector of the names; running it without any match is an error."""
    from headrace.core.scopes import control_dependencies
    from headrace.ops.control.assertions import Assert

    pattern = convert_to_tensor(file_pattern, dtypes.string, name="file_pattern")
    names = apply_op("MatchingFiles", pattern)
    if getattr(names, "_is_eager", False):
        if not len(names._static):
            raise errors.InvalidArgumentError(
                None, None, f"No files matched pattern: {_shown(pattern._static)}"
            )
        return names
    some = apply_op("Greater", apply_op("Size", names, out_type=dtypes.int32), 0)
    with control_dependencies([Assert(some, ["No files matched pattern: ", pattern])]):
        return apply_op("Identity", names)


def _shown(pattern: Array) -> str:
    return ", ".join(p.decode() for p in np.asarray(pattern, object).reshape(-1))
