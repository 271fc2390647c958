"""A tensor of numbers that is still in its file.

    stored = reader.locate("w")        # its bytes were compared with the checksum
    stored.read_into(array)            # later, from the same file, replaced on disk or not

New memory costs more than reading: the system hands it out page by page. So what is restored goes
into memory that a variable has already, once all that is restored is known to be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from headrace import errors
from headrace.runtime.allocator import allow_huge_pages, empty_small_pages
from headrace.wire import crc
from headrace.wire.bundle_entries import Entry, damaged
from headrace.wire.checked_arrays import Advance, read_array, sum_file

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["OpenFile", "StoredTensor", "check_place", "wrong_sum"]


class OpenFile:
    """A data file, closed with the last tensor that is read from it."""

    def __init__(self, path: str) -> None:
        try:
            self.file: BinaryIO = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError as error:
            raise errors.NotFoundError(
                None, None, f"{error.filename}; No such file or directory"
            ) from None

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


class StoredTensor(NamedTuple):
    """Where a tensor of numbers is."""

    opened: OpenFile
    entry: Entry
    name: str
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.entry.shape

    def check(self, advance: Advance | None = None) -> None:
        """DataLossError unless its bytes have their checksum."""
        entry = self.entry
        self._compare(sum_file(self.opened.file, entry.offset, entry.size, advance))

    def read(self, advance: Advance | None = None) -> Array:
        """A new array."""
        # the array itself, not a view of one: a caller that keeps it need not copy it
        out = empty_small_pages(self.entry.shape, self.dtype)
        self.read_into(out, advance)
        allow_huge_pages(out)
        return out

    def read_into(self, out: Array, advance: Advance | None = None) -> None:
        """Fill an array of its shape and type; after a DataLossError that has no sound value."""
        self._compare(read_array(self.opened.file, self.entry.offset, out, advance))

    def _compare(self, checksum: int | None) -> None:
        if checksum is None:
            raise damaged(f"'{self.name}' is cut off")
        if crc.mask(checksum) != self.entry.checksum:
            raise wrong_sum(self.name)


def check_place(file: BinaryIO, entry: Entry, name: str) -> None:
    """DataLossError unless the entry lies in the file."""
    size = file.seek(0, 2)
    if entry.offset + entry.size > size:
        raise damaged(f"'{name}' lies outside of the data file ({size} bytes)")


def wrong_sum(name: str) -> errors.DataLossError:
    """The error for bytes that are not those that were written."""
    return errors.DataLossError(
        None,
        None,
        f"TensorBundle: the checksum of '{name}' does not match: the data file is damaged",
    )
