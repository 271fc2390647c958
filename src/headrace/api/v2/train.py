"""``tf.train`` of the v2 API: what of it is not bound to sessions."""

from headrace.api.v2.name_lookup import module_getattr
from headrace.train.moving_averages import ExponentialMovingAverage

__all__ = ["ExponentialMovingAverage"]

__getattr__ = module_getattr("train", __name__, fallback="headrace.api.v1.train")
