"""Named tensors in files of several formats: TensorFlow checkpoints, ``.npz`` and ``.safetensors``.

    >>> convert("/tmp/run/model-100", "weights.safetensors")
    >>> load_weights("weights.safetensors")["dense/kernel"]
    >>> save_weights("model", {"dense/kernel": array})     # a checkpoint for tf.train.Saver

One tensor is in memory at a time. Files get their names when they are whole. Text is no weight:
string tensors of a checkpoint are left out, with a warning that names them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from headrace import errors
from headrace.core.annotations import Array
from headrace.core.dtypes import as_dtype
from headrace.ops.io.checkpoint_ops import open_checkpoint
from headrace.train.checkpoint_files import latest_checkpoint
from headrace.wire.tensor_bundle import BundleWriter

__all__ = ["Progress", "WeightFile", "convert", "load_weights", "open_weights", "save_weights"]

_log = logging.getLogger("tensorflow")
#: Called with a tensor's name, the bytes done and all bytes.
Progress = Callable[[str, int, int], None]
#: The longest header of a safetensors file, as its own library has it.
MAX_HEADER_BYTES = 100_000_000

_KINDS: dict[str, Any] = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
_CODES = {np.dtype(kind): code for code, kind in _KINDS.items()}


class WeightFile(Protocol):
    """What can be asked of an open file."""

    def names(self) -> list[str]:
        """The tensors' names."""
        ...

    def described(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Type and shape of a tensor, without reading it."""
        ...

    def read(self, name: str) -> Array:
        """A tensor."""
        ...


def _damaged(path: str, why: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"{path}: {why}")


class _Checkpoint:
    def __init__(self, path: str) -> None:
        prefix = latest_checkpoint(path) if os.path.isdir(path) else path.removesuffix(".index")
        if prefix is None:
            raise errors.NotFoundError(None, None, f"There is no checkpoint in {path}")
        self._file = open_checkpoint(prefix)
        text = [n for n in self._file.names() if as_dtype(self._file.dtype(n)).name == "string"]
        self._names = [n for n in self._file.names() if n not in text]
        if text:
            _log.warning("%s: string tensors are left out: %s", path, ", ".join(text))

    def names(self) -> list[str]:
        return self._names

    def described(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        dtype = as_dtype(self._file.dtype(name)).as_numpy_dtype
        return np.dtype(dtype), self._file.shape(name)

    def read(self, name: str) -> Array:
        array: Array = self._file.read(name)
        return array


class _Npz:
    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise _damaged(path, str(error)) from None
        except OSError as error:
            raise errors.os_error(path, error) from None
        self._members = {i.filename.removesuffix(".npy"): i for i in self._zip.infolist()}

    def names(self) -> list[str]:
        return list(self._members)

    def described(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        with self._opened(name) as file:
            return self._header(file, name)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[Any]:
        try:
            with self._zip.open(self._members[name]) as file:
                yield file
        except (ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, OSError) as error:
            raise _damaged(self._path, f"'{name}' cannot be read: {error}") from None

    def _header(self, file: Any, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"version {version} of NumPy's format")
        shape, _, dtype = read(file)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize > self._members[name].file_size:
            raise ValueError(f"{dtype} of shape {shape} is not in this file")
        return dtype, shape

    def read(self, name: str) -> Array:
        self.described(name)  # checks the size before anything is allocated
        with self._opened(name) as file:
            return np.lib.format.read_array(file, allow_pickle=False)


class _Safetensors:
    def __init__(self, path: str) -> None:
        self._path = path
        try:
            with open(path, "rb") as file:
                self._start, self._entries = self._read_header(file)
        except OSError as error:
            raise errors.os_error(path, error) from None

    def _read_header(self, file: Any) -> tuple[int, dict[str, Any]]:
        size = os.fstat(file.fileno()).st_size
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
            raise _damaged(self._path, f"a header of {length} bytes in a file of {size}")
        try:
            found = json.loads(file.read(length))
            found.pop("__metadata__", None)
            entries = {name: self._entry(item, size - 8 - length) for name, item in found.items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _damaged(self._path, f"the header is no list of tensors ({error})") from None
        return 8 + length, entries

    @staticmethod
    def _entry(item: dict[str, Any], size: int) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        """Type, shape and place; ValueError unless these fit together and into the file."""
        dtype, shape = np.dtype(_KINDS[item["dtype"]]), tuple(item["shape"])
        begin, end = item["data_offsets"]
        numbers = (*shape, begin, end)
        if not all(type(n) is int and n >= 0 for n in numbers):
            raise ValueError(f"{numbers} are no sizes and places")
        if end > size or end - begin != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{dtype} of shape {shape} does not fit into {begin}:{end} of {size}")
        return dtype, shape, begin

    def names(self) -> list[str]:
        return list(self._entries)

    def described(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        dtype, shape, _ = self._entries[name]
        return dtype, shape

    def read(self, name: str) -> Array:
        dtype, shape, begin = self._entries[name]
        out = np.empty(math.prod(shape), dtype)
        with open(self._path, "rb") as file:
            file.seek(self._start + begin)
            if out.size and file.readinto(out.view(np.uint8).data) != out.nbytes:
                raise _damaged(self._path, f"'{name}' is cut off")
        return out.reshape(shape)


def open_weights(path: Any) -> WeightFile:
    """A reader of a file: by its ending ``.npz`` or ``.safetensors``, else of a checkpoint.

    A checkpoint is given by its prefix, its ``.index`` file or the folder whose newest it is.
    """
    place = os.fspath(path)
    kinds: dict[str, Callable[[str], WeightFile]] = {".npz": _Npz, ".safetensors": _Safetensors}
    return kinds.get(os.path.splitext(place)[1], _Checkpoint)(place)


# writing ------------------------------------------------------------------------------------------


class _Arrays:
    """Arrays in memory, as a file is asked."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = {name: np.asarray(value) for name, value in arrays.items()}

    def names(self) -> list[str]:
        return list(self._arrays)

    def described(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        return self._arrays[name].dtype, self._arrays[name].shape

    def read(self, name: str) -> Array:
        return self._arrays[name]


def _tensors(source: WeightFile, progress: Progress | None) -> Iterator[tuple[str, Array]]:
    """Tensors by name, sorted; ``progress`` is told after each."""
    sizes = {
        n: math.prod(shape) * dtype.itemsize
        for n in source.names()
        for dtype, shape in [source.described(n)]
    }
    done, total = 0, sum(sizes.values())
    for name in sorted(sizes, key=str.encode):
        yield name, source.read(name)
        done += sizes[name]
        if progress is not None:
            progress(name, done, total)


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[Any]:
    """A file that gets its name when it is whole."""
    temporary = f"{path}.tmp{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise errors.os_error(path, error) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _write_npz(path: str, source: WeightFile, progress: Progress | None) -> None:
    with _new_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in _tensors(source, progress):
            if array.dtype == ml_dtypes.bfloat16:
                raise TypeError(f"'{name}': .npz files cannot hold bfloat16; use .safetensors")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _write_safetensors(path: str, source: WeightFile, progress: Progress | None) -> None:
    header: dict[str, Any] = {}
    at = 0
    for name in sorted(source.names(), key=str.encode):
        dtype, shape = source.described(name)
        code = _CODES.get(dtype.newbyteorder("="))
        if code is None:
            raise TypeError(f"'{name}': safetensors files cannot hold {dtype}; use .npz")
        size = math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with _new_file(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in _tensors(source, progress):
            plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            file.write(plain.reshape(-1).view(np.uint8).data)


def _write_checkpoint(path: str, source: WeightFile, progress: Progress | None) -> None:
    try:
        with BundleWriter(path.removesuffix(".index")) as writer:
            for name, array in _tensors(source, progress):
                writer.add(name, array)
    except OSError as error:
        raise errors.os_error(error.filename or path, error) from None


def _write(path: Any, source: WeightFile, progress: Progress | None) -> None:
    place = os.fspath(path)
    kind = {".npz": _write_npz, ".safetensors": _write_safetensors}
    kind.get(os.path.splitext(place)[1], _write_checkpoint)(place, source, progress)


def convert(source: object, target: object, progress: Progress | None = None) -> None:
    """Copy all tensors from one file to another, formats by the files' endings.

    Args:
      source: see :func:`open_weights`.
      target: a path that ends in ``.npz`` or ``.safetensors``, else a checkpoint's prefix.
      progress: called after every tensor with its name, the bytes done and all bytes.
    """
    _write(target, open_weights(source), progress)


def save_weights(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], progress: Progress | None = None
) -> None:
    """Write arrays by name; see :func:`convert` for the formats."""
    _write(path, _Arrays(arrays), progress)


def load_weights(
    path: str | os.PathLike[str], progress: Progress | None = None
) -> dict[str, Array]:
    """All tensors of a file by name; see :func:`open_weights` for the formats."""
    return dict(_tensors(open_weights(path), progress))
