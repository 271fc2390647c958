"""``tf.data`` is the package :mod:`headrace.data` itself: importing any part of that makes it
``headrace.data`` anyway.

What this module adds is what to say about names that TensorFlow has and Headrace has not; then it
steps aside.
"""

import sys
from functools import partial

import headrace.data as _data
from headrace.api.missing import explain, module_getattr
from headrace.data.api import data_experimental as _experimental

_data.explain = partial(explain, "data", available=_data.__all__)
vars(_experimental)["__getattr__"] = module_getattr("data.experimental", _experimental.__name__)
sys.modules[__name__] = _data
