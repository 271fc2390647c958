"""``tf.gfile``.

TF 1's names for :mod:`headrace.api.platform.file_io`, and (lower case) ``tf.io.gfile``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace import errors
from headrace.api.platform import file_io
from headrace.api.platform.file_io import FileIO as GFile
from headrace.api.platform.file_io import copy as Copy
from headrace.api.platform.file_io import create_dir as MkDir
from headrace.api.platform.file_io import delete_file as Remove
from headrace.api.platform.file_io import delete_recursively as DeleteRecursively
from headrace.api.platform.file_io import file_exists as Exists
from headrace.api.platform.file_io import get_matching_files as Glob
from headrace.api.platform.file_io import is_directory as IsDirectory
from headrace.api.platform.file_io import list_directory as ListDirectory
from headrace.api.platform.file_io import recursive_create_dir as MakeDirs
from headrace.api.platform.file_io import rename as Rename
from headrace.api.platform.file_io import stat as Stat
from headrace.api.platform.file_io import walk as Walk
from headrace.runtime.file_paths import local_path

__all__ = [
    "Copy", "DeleteRecursively", "Exists", "FastGFile", "GFile", "Glob", "IsDirectory",
    "ListDirectory", "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Stat", "Walk",
]  # fmt: skip

Open = GFile
FastGFile = GFile


# tf.io.gfile: TF 2's parameter names


def copy_v2(src: object, dst: object, overwrite: bool = False) -> None:
    """Copy the file ``src`` to ``dst``; an existing target needs ``overwrite=True``.

    ``tf.gfile.Copy`` by its newer name. A missing source is a NotFoundError, an existing target an
    AlreadyExistsError.
    """
    file_io.copy(src, dst, overwrite)


def rename_v2(src: object, dst: object, overwrite: bool = False) -> None:
    """Rename or move ``src`` to ``dst``; an existing target needs ``overwrite=True``.

    ``tf.gfile.Rename`` by its newer name. A missing source is a NotFoundError, an existing target
    an AlreadyExistsError.
    """
    file_io.rename(src, dst, overwrite)


def exists_v2(path: object) -> bool:
    """True if the path is a file or a directory."""
    return file_io.file_exists(path)


def glob_v2(pattern: object) -> list[str]:
    """The paths that match a pattern or a list of patterns: ``*``, ``?`` and ``[a-z]``."""
    return file_io.get_matching_files(pattern)


def isdir_v2(path: object) -> bool:
    """True if the path is a directory."""
    return file_io.is_directory(path)


def listdir_v2(path: str) -> list[str]:
    """The names of a directory's entries, without the path of the directory."""
    return file_io.list_directory(path)


def makedirs_v2(path: object) -> None:
    """Make a directory and its parents; one that exists already is no error."""
    file_io.recursive_create_dir(path)


def mkdir_v2(path: object) -> None:
    """Make one directory, whose parent must exist."""
    file_io.create_dir(path)


def remove_v2(path: object) -> None:
    """Delete one file; a missing one is a NotFoundError."""
    file_io.delete_file(path)


def rmtree_v2(path: object) -> None:
    """Delete a directory with everything below it."""
    file_io.delete_recursively(path)


def stat_v2(path: object) -> file_io.FileStatistics:
    """Length in bytes, time of the last change and whether the path is a directory."""
    return file_io.stat(path)


def walk_v2(
    top: str,
    topdown: bool = True,
    onerror: Callable[[errors.OpError], object] | None = None,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (directory, its subdirectories, its files) for a directory and all below it.

    ``topdown=False`` yields subdirectories before their parent. ``onerror`` gets the error of a
    directory that cannot be read; without it such directories are left out.
    """
    yield from file_io._walked(local_path(top), topdown, onerror, ())


def __dir__() -> list[str]:
    return __all__
