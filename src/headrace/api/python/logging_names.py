"""``tensorflow.python.ops.logging_ops``: what it calls ``print_v2`` is ``tf.print``."""

from headrace.api.v1 import print as print_v2

__all__ = ["print_v2"]
