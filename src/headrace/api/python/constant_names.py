"""``tensorflow.python.framework.constant_op``: its ``constant`` is TensorFlow 2's.

constant_op.constant([1, 2, 3], shape=[5])       # TypeError; constant_v1 repeats the last one
"""

from headrace.api.v2.adapted import constant
from headrace.ops.array.basic import constant as constant_v1

__all__ = ["constant", "constant_v1"]
