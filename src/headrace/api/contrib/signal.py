"""``tf.contrib.signal``: the older place of ``tf.signal``."""

from headrace.api.missing import module_getattr
from headrace.api.v1.signal import (
    frame,
    hamming_window,
    hann_window,
    inverse_stft,
    inverse_stft_window_fn,
    linear_to_mel_weight_matrix,
    mfccs_from_log_mel_spectrograms,
    overlap_and_add,
    stft,
)

__all__ = [
    "frame", "hamming_window", "hann_window", "inverse_stft", "inverse_stft_window_fn",
    "linear_to_mel_weight_matrix", "mfccs_from_log_mel_spectrograms", "overlap_and_add", "stft",
]  # fmt: skip

__getattr__ = module_getattr("contrib.signal", __name__)
