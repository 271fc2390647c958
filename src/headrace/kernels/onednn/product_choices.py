"""Which of oneDNN's functions computes a matrix product, by class of CPU; measured by ``python -m
tools.product_choices``.

``dnnl_sgemm`` is the usual choice. Others win for some shapes, and not for the same on every CPU:
the matmul primitive has code of its own for AVX-512 and calls the same gemm, with a pass for the
bias behind it, on AVX2.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.runtime.cpu_features import cpu_class

__all__ = ["Choices", "choices_for"]


#: Rows from which the gemm's own packing of the weights costs little.
MANY_ROWS = 32


class Choices(NamedTuple):
    """Limits between the ways."""

    few: int  # up to so many rows times a large transposed matrix are computed as (b.T @ a.T).T
    large: int  # elements from which that matrix is large
    transposed: bool  # whether a large transposed left side is the primitive's
    bias_rows: int  # rows from which a product with bias is one primitive,
    bias_elements: int  # and elements of the right side up to which it is
    pixel_rows: int = 0  # rows up to which a product with packed weights is a convolution
    row_elements: int = 0  # and elements of the weights up to which one row is
    wide: int = 0  # columns from which MANY_ROWS are not
    behind: int = 1 << 62  # elements from which a compiled activation behind a product is faster

    def is_slow_inside(self, activation: str, elements: int) -> bool:
        """Whether compiled code is faster behind a product than oneDNN's within it."""
        return elements >= self.behind and activation in ("gelu", "tanh", "sigmoid")

    def as_pixels(self, rows: int, k: int, n: int) -> bool:
        """Whether a product with packed weights is a convolution (pixel_products.py)."""
        if rows == 1:
            return k * n <= self.row_elements
        return rows <= self.pixel_rows and (rows < MANY_ROWS or n < self.wide)


#: AVX-512: 64 x 1024 x 3136 takes 1.7 ms swapped, 2.6 ms directly; 4096 x 1024 x 256 with a
#: transposed left side 8.1 ms by the primitive, 11.9 ms by gemm. AVX2: 64 x 1024 x 3136 takes 10.9
#: ms swapped, 8.4 ms directly; 128 x 512 x 512 with a bias 1.18 ms by the primitive, 0.84 ms by
#: gemm. Packed weights on AVX2 (AMD EPYC, two threads), as a convolution and by matmul, in
#: microseconds: 1 x 784 x 512 27 and 30, 8 x 512 x 512 38 and 63, 64 x 784 x 512 388 and 549, 64 x
#: 3136 x 1024 3058 and 5400, 512 x 512 x 512 1674 and 2173; but 1 x 512 x 4096 248 and 165, 64 x
#: 256 x 10000 2402 and 2161, 8192 x 256 x 768 24.7 and 22.7 ms. Activations within a product and
#: behind it (AMD EPYC, Zen 5): AVX2 64 x 512 x 512 with gelu 166 and 144, one thread 2.0 and 0.39
#: ns an element; AVX-512 71 and 73, 256 x 512 x 512 265 and 263.
_CHOICES = {
    "avx512": Choices(96, 1 << 21, True, 64, 1 << 19),
    "avx512 AMD": Choices(96, 1 << 21, True, 64, 1 << 19),
    "avx2": Choices(32, 1 << 21, False, 64, 0, 512, 1 << 19, 4096, 1 << 13),
}


def choices_for(isa: int) -> Choices:
    """For an instruction set (cpu_features.py)."""
    return _CHOICES[cpu_class(isa)]
