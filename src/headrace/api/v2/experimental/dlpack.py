"""``tf.experimental.dlpack``: tensors to and from other array libraries."""

from headrace.eager.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
