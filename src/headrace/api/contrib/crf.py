"""``tf.contrib.crf``."""

from headrace.api.hosting import hosted_getattr
from headrace.layers.crf import (
    CrfDecodeBackwardRnnCell,
    CrfDecodeForwardRnnCell,
    CrfForwardRnnCell,
    crf_binary_score,
    crf_decode,
    crf_log_likelihood,
    crf_log_norm,
    crf_multitag_sequence_score,
    crf_sequence_score,
    crf_unary_score,
    viterbi_decode,
)

__all__ = [
    "CrfDecodeBackwardRnnCell", "CrfDecodeForwardRnnCell", "CrfForwardRnnCell", "crf_binary_score",
    "crf_decode", "crf_log_likelihood", "crf_log_norm", "crf_multitag_sequence_score",
    "crf_sequence_score", "crf_unary_score", "viterbi_decode",
]  # fmt: skip

__getattr__ = hosted_getattr("contrib.crf", __name__, [])
