"""Checksums of arrays, over threads and joined from pieces."""

from __future__ import annotations

import io
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.runtime.thread_pool import limited
from headrace.wire import checked_arrays, crc


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_checksums_of_neighbours_are_joined(first: bytes, second: bytes) -> None:
    joined = crc.combine(crc.value(first), crc.value(second), len(second))
    assert joined == crc.value(first + second)


@given(st.binary(max_size=200_000))
@settings(max_examples=20)
def test_arrays_are_summed_in_place_and_as_copies(data: bytes) -> None:
    array = np.frombuffer(data, np.uint8)
    assert crc.extend_array(7, array) == crc.extend(7, data)
    assert crc._extend_copies(7, array.ctypes.data, len(data)) == crc.extend(7, data)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 18, (1 << 18) + 1, 5_000_001])
def test_arrays_come_back_with_their_checksum(threads: int, size: int) -> None:
    array = np.random.RandomState(size % 1000).randint(0, 1 << 30, size).astype(np.int32)
    moved: list[int] = []
    with tempfile.TemporaryFile(buffering=1 << 19) as file, limited(threads):
        file.write(b"before")
        checksum = checked_arrays.write_array(file, array, moved.append)
        file.flush()
        assert checksum == crc.value(array.tobytes())
        assert sum(moved) == array.nbytes
        file.seek(0)
        assert file.read() == b"before" + array.tobytes()
        out = np.empty_like(array)
        assert checked_arrays.read_array(file, 6, out, moved.append) == checksum
        assert sum(moved) == 2 * array.nbytes
        np.testing.assert_array_equal(out, array)
        assert size == 0 or checked_arrays.read_array(file, 7, out) is None


def test_an_error_of_the_file_is_raised() -> None:
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checked_arrays.write_array(io.BufferedWriter(Full()), np.zeros(1 << 22))  # type: ignore
