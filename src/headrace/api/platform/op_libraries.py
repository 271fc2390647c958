"""``tf.load_op_library`` and its relatives: native libraries cannot be loaded, and say so."""

from __future__ import annotations

import os
from typing import NoReturn

from headrace import errors

__all__ = ["load_file_system_library", "load_library", "load_op_library"]


def _refuse(path: object, what: str, instead: str) -> NoReturn:
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else str(path)
    if not os.path.exists(text):
        raise errors.NotFoundError(
            None, None, f"{text}: cannot open shared object file: No such file or directory"
        )
    raise errors.UnimplementedError(
        None,
        None,
        f"{text} holds {what} compiled against TensorFlow's C++ interface. Headrace has no such "
        f"interface and cannot load it. {instead}",
    )


_WRITE_IT = (
    "Write the operation in Python: tf.py_func (NumPy arrays in and out) with its gradient by "
    "tf.custom_gradient or tf.RegisterGradient, or compose it from tf operations."
)


def load_op_library(library_filename: str) -> NoReturn:
    """NotFoundError if there is no such file, else UnimplementedError that says what to do."""
    _refuse(library_filename, "operations", _WRITE_IT)


def load_library(library_location: str) -> NoReturn:
    """As :func:`load_op_library`, for a library or a folder of them."""
    _refuse(library_location, "operations", _WRITE_IT)


def load_file_system_library(library_filename: str) -> NoReturn:
    """As :func:`load_op_library`, for file systems."""
    _refuse(
        library_filename,
        "a file system",
        "Copy the files to a local disk, or read them in Python and feed them.",
    )
