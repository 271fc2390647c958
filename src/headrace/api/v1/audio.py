"""``tf.audio``: WAV files."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.io.audio_ops import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("audio", __name__)
