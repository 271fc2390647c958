"""``tf.resource_loader``: files that lie beside the program that asks for them."""

from __future__ import annotations

import os
import sys

from headrace.api.missing import module_getattr

__all__ = [
    "get_data_files_path", "get_path_to_datafile", "readahead_file_path",
]  # fmt: skip


def _folder_of_caller(depth: int) -> str:
    return os.path.dirname(sys._getframe(depth).f_code.co_filename)


def get_data_files_path() -> str:
    """The folder of the file whose code calls this."""
    return _folder_of_caller(2)


def get_path_to_datafile(path: str) -> str:
    """``path`` below the folder of the file whose code calls this."""
    return os.path.join(_folder_of_caller(2), path)


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """``path`` as it is, as in TensorFlow 1.15: ``readahead`` is for Google's own files."""
    del readahead
    return path


__getattr__ = module_getattr("resource_loader", __name__)
