"""From how many channels a convolution is faster with channels in blocks than with channels last,
by class of CPU.

Many channels over few pixels: on AVX-512 (Intel), 64 x 4 x 4 x 512 takes 13 ms in blocks and 19 ms
with channels last; on an AMD EPYC (Zen 5) channels last are faster but for gradients of 4 x 4
pixels. Measured by ``python -m tools.conv_layouts`` (one thread; AVX2 with the instruction set
limited), copies to and fro included.
"""

from __future__ import annotations

__all__ = ["BLOCKS_FROM", "blocks_win"]

#: CPU class -> what is computed -> side of the result -> the fewest channels. Sides between two
#: entries count as the larger one.
BLOCKS_FROM: dict[str, dict[str, dict[int, int]]] = {
    "avx512": {"forward": {8: 256}, "input": {8: 256}},
    "avx512 AMD": {"forward": {}, "input": {4: 256}},
    "avx2": {"forward": {}, "input": {}},
}


def blocks_win(cpu: str, what: str, side: int, channels: int) -> bool:
    """``side`` is the longer one of the result's, ``channels`` the fewer ones of input and
    output.
    """
    table = BLOCKS_FROM[cpu][what]
    larger = [s for s in table if s >= side]
    return bool(larger) and channels >= table[min(larger)]
