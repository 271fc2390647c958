"""``tf.signal``: signal processing, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.ops.math.fft import (
    fft, fft2d, fft3d, fftshift, ifft, ifft2d, ifft3d, ifftshift, irfft, irfft2d, irfft3d, rfft,
    rfft2d, rfft3d,
)
from headrace.ops.math.signal import (
    dct, frame, hamming_window, hann_window, idct, inverse_stft, inverse_stft_window_fn,
    linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms, overlap_and_add, stft,
)

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftshift", "frame", "hamming_window", "hann_window", "idct",
    "ifft", "ifft2d", "ifft3d", "ifftshift", "inverse_stft", "inverse_stft_window_fn", "irfft",
    "irfft2d", "irfft3d", "linear_to_mel_weight_matrix", "mfccs_from_log_mel_spectrograms",
    "overlap_and_add", "rfft", "rfft2d", "rfft3d", "stft",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("signal", __name__)
