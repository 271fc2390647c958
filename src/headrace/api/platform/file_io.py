"""Files, the way TensorFlow's ``file_io`` and ``gfile`` offer them, on the local file system.

Failures are ``tf.errors``: a missing file is a NotFoundError, a directory that should be a file a
FailedPreconditionError.

    >>> write_string_to_file("/tmp/a.txt", "hello")
    >>> FileIO("/tmp/a.txt", "r").read()
    'hello'
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat as stat_module
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.runtime.file_paths import local_path
from headrace.runtime.path_patterns import matching_paths

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "FileIO", "FileStatistics", "atomic_write_string_to_file", "copy", "create_dir", "delete_file",
    "delete_recursively", "file_crc32", "file_exists", "filecmp", "get_matching_files",
    "get_matching_files_v2", "is_directory", "list_directory", "read_file_to_string",
    "recursive_create_dir", "rename", "stat", "walk", "write_string_to_file",
]  # fmt: skip

#: Bytes that are compared at a time.
_BLOCK = 1 << 24
_MODES = ("r", "w", "a", "r+", "w+", "a+")


@contextlib.contextmanager
def _translated(path: object) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise errors.os_error(path, e) from None


def _path(path: Any) -> str:
    return local_path(path)


class FileIO:
    """A file that is opened at the first read or write; without one it does not come to be, as in
    TensorFlow. Text (UTF-8) unless the mode has a "b". Reading has a position of its own, which
    writing does not move.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "") not in _MODES:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"mode is not 'r', 'w', 'a', 'r+', 'w+' or 'a+' (with or without 'b'): {mode!r}",
            )
        self._name = name
        self._mode = mode
        self._reader: Any = None
        self._writer: Any = None

    @property
    def name(self) -> Any:
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def _readable(self) -> Any:
        if self._mode.replace("b", "") in ("w", "a"):
            raise errors.PermissionDeniedError(None, None, "File isn't open for reading")
        self.flush()
        if self._reader is None:
            # reading neither makes a file nor cuts it off, whatever the mode
            with _translated(self._name):
                # bytes underneath: positions and sizes are bytes, as in TensorFlow
                self._reader = open(_path(self._name), "rb")  # noqa: SIM115
        return self._reader

    def _writable(self) -> Any:
        mode = self._mode.replace("b", "")
        if mode == "r":
            raise errors.PermissionDeniedError(None, None, "File isn't open for writing")
        if self._writer is None:
            with _translated(self._name):  # ("r+" is "w+")
                self._writer = open(_path(self._name), "ab" if mode[0] == "a" else "wb")  # noqa: SIM115
        return self._writer

    def _decoded(self, data: bytes) -> bytes | str:
        return data if "b" in self._mode else data.decode("utf-8")

    def size(self) -> int:
        """Size of the file in bytes."""
        self.flush()
        return stat(self._name).length

    def read(self, n: int = -1) -> Any:
        """At most n bytes; everything that is left if n is -1."""
        return self._decoded(self._readable().read(n))

    def readline(self) -> bytes | str:
        """The next line with its ``\\n``; as in TensorFlow without any ``\\r``, in both modes."""
        return self._decoded(self._readable().readline().replace(b"\r", b""))

    def readlines(self) -> list[Any]:
        return list(self)

    def write(self, file_content: Any) -> None:
        if not isinstance(file_content, (str, bytes, bytearray)):
            raise TypeError(f"Expected binary or unicode string, got {file_content!r}")
        data = file_content.encode("utf-8") if isinstance(file_content, str) else file_content
        with _translated(self._name):
            self._writable().write(data)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """``position`` is the old name of ``offset``."""
        if offset is not None and position is not None:
            raise TypeError("seek(): offset and position may not be set simultaneously.")
        where = position if offset is None else offset
        if where is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        file = self._readable()
        where += (0, file.tell(), self.size())[whence]
        if where < 0:
            raise errors.InvalidArgumentError(
                None, None, f"Seeking to a negative position: {where}"
            )
        if where > self.size():
            raise errors.OutOfRangeError(None, None, "reached end of file")
        file.seek(where)

    def seekable(self) -> bool:
        """Files are."""
        return True

    def tell(self) -> int:
        """The position of reading; of writing if the file is only written."""
        only_written = self._mode.replace("b", "") in ("w", "a")
        return int((self._writable() if only_written else self._readable()).tell())

    def flush(self) -> None:
        if self._writer is not None:
            with _translated(self._name):
                self._writer.flush()

    def close(self) -> None:
        opened = [self._reader, self._writer]
        self._reader = self._writer = None
        with _translated(self._name):
            for file in opened:
                if file is not None:
                    file.close()

    Size, Seek, Tell, Flush, Close = size, seek, tell, flush, close

    def __enter__(self) -> FileIO:
        return self

    def __exit__(self, *exc: TensorLike | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.readline, b"" if "b" in self._mode else "")

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__


@dataclass(frozen=True)
class FileStatistics:
    """What :func:`stat` returns."""

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(filename: object) -> FileStatistics:
    """Length in bytes, time of the last change in nanoseconds and whether it is a directory.

    A missing file is a NotFoundError.
    """
    with _translated(filename):
        info = os.stat(_path(filename))
    return FileStatistics(info.st_size, info.st_mtime_ns, stat_module.S_ISDIR(info.st_mode))


def file_exists(filename: object) -> bool:
    """True if the path is a file or a directory."""
    return os.path.exists(_path(filename))


def is_directory(dirname: object) -> bool:
    """True if the path is a directory; False for files and for paths that do not exist."""
    return os.path.isdir(_path(dirname))


def delete_file(filename: object) -> None:
    """Delete one file; a missing one is a NotFoundError."""
    with _translated(filename):
        os.remove(_path(filename))


def delete_recursively(dirname: object) -> None:
    """Delete a directory with everything below it; a file is a FailedPreconditionError."""
    with _translated(dirname):
        shutil.rmtree(_path(dirname))


def create_dir(dirname: object) -> None:
    """Make one directory, whose parent must exist; one that exists already is no error."""
    with _translated(dirname), contextlib.suppress(FileExistsError):
        os.mkdir(_path(dirname))


def recursive_create_dir(dirname: object) -> None:
    """Make a directory and its parents; what exists already is no error, as in TF 1.15."""
    with _translated(dirname), contextlib.suppress(FileExistsError):
        os.makedirs(_path(dirname), exist_ok=True)


def list_directory(dirname: str) -> list[str]:
    """Names of the entries, without "." and ".."."""
    if not is_directory(dirname):
        raise errors.NotFoundError(None, None, f"Could not find directory {_path(dirname)}")
    with _translated(dirname):
        return os.listdir(_path(dirname))


def get_matching_files(filename: object) -> list[str]:
    """Paths that match a pattern, or any of a list of patterns, sorted.

    NotFoundError where the folder before the first wildcard is not there.
    """
    patterns = filename if isinstance(filename, (list, tuple)) else [filename]
    try:
        return sorted({path for p in patterns for path in matching_paths(_path(p))})
    except OSError as error:
        raise errors.os_error(error.filename, error) from None


def get_matching_files_v2(pattern: object) -> list[str]:
    """As ``get_matching_files``."""
    return get_matching_files(pattern)


def _check_free(path: object, overwrite: bool) -> None:
    if not overwrite and file_exists(path):
        raise errors.AlreadyExistsError(None, None, "file already exists")


def copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copy a file; an existing target is an AlreadyExistsError unless ``overwrite`` is True.

    ``oldpath`` and ``newpath`` are paths of this machine, as strings, bytes or path objects. A
    missing source is a NotFoundError.
    """
    _check_free(newpath, overwrite)
    try:
        shutil.copyfile(_path(oldpath), _path(newpath))
    except OSError as error:
        raise errors.os_error(error.filename or oldpath, error) from None


def rename(oldname: object, newname: object, overwrite: bool = False) -> None:
    """Rename or move a file; an existing target is an error unless ``overwrite`` is True.

    Within one file system the target is replaced at once: a reader sees the old or the new file. A
    missing source is a NotFoundError, an existing target an AlreadyExistsError.
    """
    _check_free(newname, overwrite)
    with _translated(oldname):
        os.replace(_path(oldname), _path(newname))


def walk(top: str, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """(directory, its directories, its files), from the top down or (``in_order`` False) from the
    bottom up. Links to directories are followed, but for those that lead back above themselves.
    """
    for directory, directories, files in _walked(_path(top), in_order, None, ()):
        yield directory, sorted(directories), sorted(files)


def _walked(
    top: str,
    top_down: bool,
    onerror: Callable[[errors.OpError], object] | None,
    above: tuple[tuple[int, int], ...],
) -> Iterator[tuple[str, list[str], list[str]]]:
    """``os.walk`` in TensorFlow's way: links are followed, an error is one of ``tf.errors``."""
    try:
        names = sorted(os.listdir(top))
        status = os.stat(top)
    except OSError as error:
        if onerror is not None:
            onerror(errors.os_error(top, error))
        return
    own = (status.st_dev, status.st_ino)
    if own in above:
        return
    directories = [n for n in names if os.path.isdir(os.path.join(top, n))]
    inner = set(directories)
    row = (top, directories, [n for n in names if n not in inner])
    if top_down:
        yield row
    for name in directories:
        yield from _walked(os.path.join(top, name), top_down, onerror, (*above, own))
    if not top_down:
        yield row


def filecmp(filename_a: object, filename_b: object) -> bool:
    """Whether two files have the same content."""
    if stat(filename_a).length != stat(filename_b).length:
        return False
    with FileIO(filename_a, "rb") as a, FileIO(filename_b, "rb") as b:
        while piece := a.read(_BLOCK):
            if piece != b.read(_BLOCK):
                return False
    return True


def file_crc32(filename: object, block_size: int = 1 << 24) -> str:
    """The CRC32 of a file's content (zlib's) in hexadecimal, read in blocks of ``block_size``."""
    crc = 0
    with FileIO(filename, "rb") as file:
        while piece := file.read(block_size):
            crc = zlib.crc32(piece, crc)
    return hex(crc & 0xFFFFFFFF)


def read_file_to_string(filename: object, binary_mode: bool = False) -> Any:
    with FileIO(filename, "rb" if binary_mode else "r") as f:
        return f.read()


def write_string_to_file(filename: str, file_content: object) -> None:
    with FileIO(filename, "w") as f:
        f.write(file_content)


def atomic_write_string_to_file(filename: object, contents: object, overwrite: bool = True) -> None:
    """Readers see the old file or the new one, never a part."""
    _check_free(filename, overwrite)
    path = _path(filename)
    with _translated(filename):
        handle, temporary = tempfile.mkstemp(
            prefix=os.path.basename(path) + ".tmp", dir=os.path.dirname(path) or "."
        )
        os.close(handle)
    try:
        write_string_to_file(temporary, contents)
        rename(temporary, path, overwrite=True)
    except errors.OpError:
        delete_file(temporary)
        raise
