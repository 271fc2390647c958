"""``tf.audio``: WAV files."""

from headrace.api.missing import module_getattr
from headrace.ops.io.audio_ops import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]

__getattr__ = module_getattr("audio", __name__)
