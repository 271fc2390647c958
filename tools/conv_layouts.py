"""Which convolutions are faster with channels in blocks than with channels last, copies to and fro
included, on this CPU.

    python -m tools.conv_layouts                                      # this CPU
    python -m tests.instruction_sets avx2 tools.conv_layouts         # as if it had AVX2 only

Prints one line a case (one thread, the best of many calls), and the rule for
kernels/onednn/conv_layouts.py: the fewest channels from which blocks win, by the largest number of
pixels along a side.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from headrace.kernels import accel
from headrace.kernels.numpy.im2col import Geometry
from headrace.kernels.onednn import conv_primitives as convs
from headrace.kernels.onednn.primitive import aligned
from headrace.runtime import thread_pool

BATCH, KERNEL = 16, 3
SIDES, CHANNELS = (4, 8, 16, 32), (64, 128, 256, 512)
#: Larger cases take long, and are far from few pixels.
MAX_SIZE = 16 * 256
#: Blocks must be so much faster to be worth the memory of the copies.
MARGIN = 0.95


def fastest(calls: list[tuple[Any, list[Any]]], seconds: float = 0.8) -> list[float]:
    """The shortest time of each call.

    They take turns, so that other work on the machine disturbs all alike.
    """
    found = [float("inf")] * len(calls)
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 5:
        for n, (call, arrays) in enumerate(calls):
            start = time.perf_counter()
            call(*arrays)
            found[n] = min(found[n], time.perf_counter() - start)
        rounds += 1
    return found


def measure(api: Any, what: str, side: int, channels: int) -> list[float]:
    """Seconds with channels last, and in blocks."""
    g = Geometry((side, side), (KERNEL, KERNEL), (1, 1), (1, 1), ((1, 1), (1, 1)), (side, side))
    shape = (BATCH, side, side, channels)
    calls = []
    for blocks in (False, True):
        convs.wants_blocks = lambda case, cpu, _blocks=blocks: _blocks
        step = convs.Step(api, convs._Case(what, shape, channels, 1, g, 1))
        weights = aligned(step.filter_size)
        weights[...] = 0
        calls.append((step, [np.ones(shape, np.float32), weights, np.ones(shape, np.float32)]))
    return fastest(calls)


def rule_of(gains: dict[int, dict[int, float]]) -> dict[int, int]:
    """By side: the fewest channels from which blocks win, and go on winning."""
    rule = {}
    for side, by_channels in gains.items():
        for channels in sorted(by_channels):
            if all(gain > 1 / MARGIN for c, gain in by_channels.items() if c >= channels):
                rule[side] = channels
                break
    return rule


def main() -> None:
    library = accel.library()
    assert library is not None, accel.status()
    thread_pool.set_threads(1)
    library.set_threads(1)
    for what in ("forward", "input"):
        gains: dict[int, dict[int, float]] = {side: {} for side in SIDES}
        for side in SIDES:
            for channels in CHANNELS:
                if side * channels > MAX_SIZE:
                    continue
                last, blocks = measure(library.api, what, side, channels)
                gains[side][channels] = last / blocks
                times = f"last {last * 1e3:7.2f} ms, blocks {blocks * 1e3:7.2f} ms"
                print(
                    f"{what:8} {side:2} x {side:<2} {channels:3} channels: {times} "
                    f"({last / blocks:.2f}x)"
                )
        print(f"{library.name}, {what}: fewest channels by side: {rule_of(gains)}", flush=True)


if __name__ == "__main__":
    main()
