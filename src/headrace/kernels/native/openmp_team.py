"""Kernels spread over OpenMP's threads, which the kernel library keeps ready.

One team for products and compiled loops: the second thread has just ended its part of a product and
takes over its part of the next loop within a microsecond, where a thread of a pool of our own would
first have to get the core from it. Threads take the next piece that no thread has begun (an atomic
counter), so what each computes depends on time, what is computed does not.

On contended cores OpenMP's threads sleep between regions (kernels/onednn/openmp_waiting.py). Tried
there, and no better than the team: the pool, one thread for everything, products in parts that
threads take in turn. What decides is on which core the system lets the threads run.
"""

from __future__ import annotations

import functools
import platform
from typing import Any

from headrace.kernels.native.llvm_library import load
from headrace.runtime.openmp_runtime import parallel_address
from headrace.runtime.thread_pool import is_worker

__all__ = ["OpenMPTeam", "openmp_team"]


_CONTROL = {
    "declare": "declare void @llvm.x86.sse.ldmxcsr(ptr)\ndeclare void @llvm.x86.sse.stmxcsr(ptr)",
    "keep": "call void @llvm.x86.sse.stmxcsr(ptr %kept)",
    "take": "call void @llvm.x86.sse.ldmxcsr(ptr %control)",
    "back": "call void @llvm.x86.sse.ldmxcsr(ptr %kept)",
    "note": "call void @llvm.x86.sse.stmxcsr(ptr %control)",
}

#: ``work`` is what each thread does; ``start`` begins a region. Threads treat denormal numbers as
#: the one that starts the region does.
_SOURCE = """
{declare}
define void @work(ptr %job) {{
  %kept = alloca i32
  %share_at = getelementptr i64, ptr %job, i64 1
  %items_at = getelementptr i64, ptr %job, i64 2
  %operands_at = getelementptr i64, ptr %job, i64 3
  %sizes_at = getelementptr i64, ptr %job, i64 4
  %kernel_at = getelementptr i64, ptr %job, i64 5
  %control = getelementptr i64, ptr %job, i64 6
  %share = load i64, ptr %share_at
  %items = load i64, ptr %items_at
  %operands = load ptr, ptr %operands_at
  %sizes = load ptr, ptr %sizes_at
  %kernel = load ptr, ptr %kernel_at
  {keep}
  {take}
  br label %next
next:
  %first = atomicrmw add ptr %job, i64 %share monotonic
  %is_over = icmp sge i64 %first, %items
  br i1 %is_over, label %over, label %piece
piece:
  %last = add i64 %first, %share
  %is_whole = icmp slt i64 %last, %items
  %end = select i1 %is_whole, i64 %last, i64 %items
  call void %kernel(ptr %operands, ptr %sizes, i64 %first, i64 %end)
  br label %next
over:
  {back}
  ret void
}}
define void @start(ptr %job, ptr %parallel, i32 %threads) {{
  %control = getelementptr i64, ptr %job, i64 6
  {note}
  call void %parallel(ptr @work, ptr %job, i32 %threads, i32 0)
  ret void
}}
"""


class OpenMPTeam:
    """Runs kernels on the caller's thread and OpenMP's."""

    def __init__(self, parallel: int) -> None:
        llvm = load()
        on_x86 = platform.machine() in ("x86_64", "AMD64")
        control = _CONTROL if on_x86 else dict.fromkeys(_CONTROL, "")
        self.code = llvm.compile(_SOURCE.format(**control))
        self.ffi = llvm.ffi
        self.parallel = self.ffi.cast("void*", parallel)
        self.start = llvm.function(self.code, "start", "void(*)(int64_t*, void*, int32_t)")

    def run(
        self, kernel: int, operands: Any, sizes: Any, items: int, share: int, threads: int
    ) -> None:
        """Compute all items in pieces of ``share``; ``kernel`` is an address (kernel.py)."""
        self.start(self.job(kernel, operands, sizes, items, share), self.parallel, threads)

    def job(self, kernel: int, operands: object, sizes: object, items: int, share: int) -> Any:
        """What ``repeat`` runs, one at a time; ``operands`` and ``sizes`` must live as long."""
        number = self.ffi.cast
        return self.ffi.new(
            "int64_t[]",
            [
                0,
                share,
                items,
                int(number("intptr_t", operands)),
                int(number("intptr_t", sizes)),
                kernel,
                0,
            ],
        )

    def repeat(self, job: Any, threads: int) -> None:
        """Run a job again."""
        job[0] = 0
        self.start(job, self.parallel, threads)


@functools.lru_cache(maxsize=1)
def _team(parallel: int) -> OpenMPTeam:
    return OpenMPTeam(parallel)


def openmp_team() -> OpenMPTeam | None:
    """The team of the calling thread; None without an OpenMP runtime, and on the pool's own
    threads, which would each start a team.
    """
    parallel = parallel_address()
    if not parallel or is_worker():
        return None
    return _team(parallel)
