"""``tf.saved_model.utils``."""

from headrace.formats.signatures import build_tensor_info, get_tensor_from_tensor_info

__all__ = ["build_tensor_info", "get_tensor_from_tensor_info"]
