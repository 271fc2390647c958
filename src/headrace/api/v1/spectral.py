"""``tf.spectral``: Fourier transforms."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.math.fft import (
    fft, fft2d, fft3d, ifft, ifft2d, ifft3d, irfft, irfft2d, irfft3d, rfft, rfft2d, rfft3d,
)
from headrace.ops.math.signal import dct, idct

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "idct", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d",
    "irfft3d", "rfft", "rfft2d", "rfft3d",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("spectral", __name__)
