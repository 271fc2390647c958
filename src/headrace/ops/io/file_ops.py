"""Whole files in a graph: reading, writing, and finding them by a pattern.

>>> image = tf.image.decode_png(tf.read_file("photo.png"))
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.build import apply, apply_operation
from headrace.core.graph_keys import GraphKeys
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import one_number
from headrace.ops.strings.string_ops import object_array
from headrace.runtime.file_paths import local_path
from headrace.runtime.path_patterns import matching_paths

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Operation
    from headrace.variables.variable import Variable

__all__ = ["match_filenames_once", "matching_files", "read_bytes", "read_file", "write_file"]


def _contents(path: str | bytes) -> bytes:
    """With as few calls of the system as possible.

    Each gives the interpreter's lock away, and threads that read wait for it.
    """
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        size = os.fstat(file).st_size
        data = os.read(file, size + 1) if size else b""
        if size and len(data) == size:  # a read that is short is the end of an ordinary file
            return data
        parts = [data]
        while parts[-1] or len(parts) == 1:
            parts.append(os.read(file, 1 << 20))
        return b"".join(parts)
    finally:
        os.close(file)


def read_bytes(path: str | bytes) -> bytes:
    """What a file holds; TensorFlow's error classes."""
    try:
        return _contents(path)
    except OSError as error:
        raise errors.os_error(path, error) from None


_ONE_NAME = "Input filename tensor must be scalar, but had shape: {shape}"


def _read_kernel(xp: ArrayNamespace, filename: Array) -> Array:
    path = local_path(one_number(filename, _ONE_NAME))
    out = np.empty((), object)
    out[()] = read_bytes(path)
    return out


def _write_kernel(xp: ArrayNamespace, filename: Array, contents: Array) -> tuple[()]:
    path = local_path(one_number(filename, _ONE_NAME.replace("Input f", "F")))
    data = one_number(contents, "Contents tensor must be scalar, but had shape: {shape}")
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise errors.os_error(path, error) from None
    return ()


def _matching_kernel(xp: ArrayNamespace, pattern: Array) -> Array:
    """Sorted; what fits two patterns is there twice.

    A folder that is not there is an error, as in TensorFlow; no file that fits is not.
    """
    found: list[bytes] = []
    for text in pattern.reshape(-1).tolist():
        try:
            found += map(os.fsencode, matching_paths(local_path(text)))
        except OSError as error:
            raise errors.os_error(error.filename, error) from None
    return object_array(sorted(found), len(found))


def _matching_shape(c: Inference) -> list[Shape]:
    shape = c.shape(0)
    if shape is not None and len(shape) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(shape)}")
    return [(None,)]


def _scalar_inputs(n_outputs: int) -> Callable[..., Any]:
    def shape(c: Inference) -> list[Shape]:
        for i in range(c.n_inputs):
            c.require_rank(i, 0)
        return [()] * n_outputs

    return shape


# A file may change between two runs: reading is neither folded nor shared.
READ_FILE = define(
    "ReadFile",
    "filename: string -> contents: string",
    shape=_scalar_inputs(1),
    kernel=_read_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
)
WRITE_FILE = define(
    "WriteFile",
    "filename: string, contents: string -> ",
    shape=_scalar_inputs(0),
    kernel=_write_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
    writes_files=True,
)
MATCHING_FILES = define(
    "MatchingFiles",
    "pattern: string -> filenames: string",
    shape=_matching_shape,
    kernel=_matching_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
    repeatable=True,
)


def read_file(filename: TensorLike, name: str | None = None) -> Tensor:
    """The whole contents of a file, as a string tensor; the file is read in every run."""
    return apply(READ_FILE, filename, name=name)


def write_file(filename: TensorLike, contents: str, name: str | None = None) -> Operation:
    """Writes a file, making its folder if it is not there."""
    return apply_operation(WRITE_FILE, filename, contents, name=name)


def matching_files(pattern: TensorLike, name: str | None = None) -> Tensor:
    """The names of the files that fit one or several patterns."""
    return apply(MATCHING_FILES, pattern, name=name)


def match_filenames_once(pattern: str, name: str | None = None) -> Variable:
    """The files that fit, found once and kept in a local variable."""
    from headrace.variables.variable import Variable

    with name_scope(name, "matching_filenames", [pattern]) as scope:
        make = Variable
        return make(
            initial_value=matching_files(pattern),
            trainable=False,
            name=scope,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )
