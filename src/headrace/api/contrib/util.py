"""``tf.contrib.util``: values and messages of tensors."""

from headrace.api.missing import module_getattr
from headrace.api.v1 import get_static_value as constant_value
from headrace.api.v1 import make_ndarray, make_tensor_proto

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto"]

__getattr__ = module_getattr("contrib.util", __name__)
