"""Which of oneDNN's ways a matrix product takes, by class of CPU; measured by ``python -m
tools.product_choices``.

``dnnl_sgemm`` is the usual way. Others win for some shapes, and not for the same on every CPU: the
matmul primitive has code of its own for AVX-512 and calls the same gemm, with a pass for the bias
behind it, on AVX2.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.runtime.cpu_features import cpu_class

__all__ = ["Choices", "choices_for"]


class Choices(NamedTuple):
    """Limits between the ways."""

    few: int  # up to so many rows times a large transposed matrix are computed as (b.T @ a.T).T
    large: int  # elements from which that matrix is large
    transposed: bool  # whether a large transposed left side is the primitive's
    bias_rows: int  # rows from which a product with bias is one primitive,
    bias_elements: int  # and elements of the right side up to which it is


#: AVX-512: 64 x 1024 x 3136 takes 1.7 ms swapped, 2.6 ms directly; 4096 x 1024 x 256 with a
#: transposed left side 8.1 ms by the primitive, 11.9 ms by gemm. AVX2: 64 x 1024 x 3136 takes 10.9
#: ms swapped, 8.4 ms directly; 128 x 512 x 512 with a bias 1.18 ms by the primitive, 0.84 ms by
#: gemm.
_CHOICES = {
    "avx512": Choices(96, 1 << 21, True, 64, 1 << 19),
    "avx2": Choices(32, 1 << 21, False, 64, 0),
}


def choices_for(isa: int) -> Choices:
    """For an instruction set (cpu_features.py)."""
    return _CHOICES[cpu_class(isa)]
