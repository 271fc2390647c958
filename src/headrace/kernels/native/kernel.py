"""A compiled kernel as a Python function of arrays, spread over the process's threads.

Every kernel has the same signature:

    void kernel(void** operands, int64_t* sizes, int64_t first, int64_t end)

``operands`` are the addresses of its arrays (inputs, then outputs), ``sizes`` numbers that it wants
to know (a row's length), and it computes the items ``first`` to ``end``: elements, rows or blocks.
Items are independent of each other, so the number of threads and where work was cut change nothing.
A sum is made of blocks whose size is part of the kernel; their results are joined in a fixed order.

    >>> kernel = Kernel(source, "scale")
    >>> kernel.run([x, y], sizes=[x.shape[1]], items=len(x), grain=64)

Arrays must be C-contiguous and have the dtypes that the kernel was made for: the caller checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from headrace.kernels.native.llvm_library import Code, load
from headrace.kernels.native.openmp_team import openmp_team
from headrace.runtime.helper_cores import helpers_wait
from headrace.runtime.thread_pool import PIECES, parallel, thread_count

__all__ = ["SIGNATURE", "Kernel"]

SIGNATURE = "void(*)(void**, int64_t*, int64_t, int64_t)"


class Kernel:
    """A function of a compiled module. ``call`` is the bare cffi function."""

    __slots__ = ("_buffer", "_new", "address", "call", "code")

    def __init__(self, source: str, name: str, vectorize: bool = False) -> None:
        llvm = load()
        self.code: Code = llvm.compile(source, vectorize)
        self.address = self.code.address(name)
        self.call = llvm.ffi.cast(SIGNATURE, self.address)
        self._new, self._buffer = llvm.ffi.new, llvm.ffi.from_buffer

    def operands(self, arrays: Sequence[Any]) -> Any:
        """The arrays' addresses. They are good as long as the arrays live."""
        return self._new("void*[]", [self._buffer(a) for a in arrays])

    def sizes(self, sizes: Sequence[int]) -> Any:
        """Numbers for a kernel."""
        return self._new("int64_t[]", list(sizes) or [0])

    def run(self, arrays: Sequence[Any], sizes: Sequence[int], items: int, grain: int) -> None:
        """Compute all items; threads take at least ``grain`` of them at a time.

        Fewer than two grains never wait for a second thread.
        """
        self.run_bound(self.operands(arrays), self.sizes(sizes), items, grain)

    def run_bound(self, operands: object, sizes: object, items: int, grain: int) -> None:
        """The same with arguments that were made before."""
        threads = min(thread_count(), items // grain)
        if threads < 2 or helpers_wait():
            self.call(operands, sizes, 0, items)
            return
        share = max(grain, -(-items // (threads * PIECES * grain)) * grain)
        self.share(operands, sizes, items, share, threads)

    def share(self, operands: object, sizes: object, items: int, share: int, threads: int) -> None:
        """Compute all items in pieces of ``share``, on the threads that are best now."""
        team = openmp_team()
        if team is not None:
            team.run(self.address, operands, sizes, items, share, threads)
            return
        parallel(
            [
                partial(self.call, operands, sizes, lo, min(lo + share, items))
                for lo in range(0, items, share)
            ]
        )
