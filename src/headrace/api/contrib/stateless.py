"""``tf.contrib.stateless``: the older place of ``tf.random.stateless_*``."""

from headrace.api.missing import module_getattr
from headrace.api.v1.random import (
    stateless_multinomial,
    stateless_truncated_normal,
)
from headrace.api.v1.random import stateless_normal as stateless_random_normal
from headrace.api.v1.random import stateless_uniform as stateless_random_uniform

__all__ = [
    "stateless_multinomial", "stateless_random_normal", "stateless_random_uniform",
    "stateless_truncated_normal",
]  # fmt: skip

__getattr__ = module_getattr("contrib.stateless", __name__)
