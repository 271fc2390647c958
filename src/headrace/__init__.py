"""Headrace runs TensorFlow-1 style programs on NumPy, without TensorFlow.

    import headrace as tf

    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as sess:
        print(sess.run(2 * x, {x: [1, 2]}))

The names are those of TensorFlow 1.15 (:mod:`headrace.api.v1`); ``HEADRACE_VERSION`` is our own version.
"""

import gc as _gc
from typing import Any

# Importing makes many objects and no garbage: collections in between only cost time. At the end the new objects
# go to the oldest generation as they are (freeze and unfreeze move them without looking at them).
_collecting = _gc.isenabled()
_gc.disable()
try:
    from headrace.api import v1 as _v1
    from headrace.api.v1 import *  # noqa: F403
    from headrace.api.v1 import __all__ as __all__
    from headrace.api.v1 import (
        train as train,  # the namespace, not the package headrace.train that implements it
    )
finally:
    if _collecting:
        if _gc.get_freeze_count() == 0:
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()


def __getattr__(name: str) -> Any:
    if name in ("cli", "compat", "dropin"):  # our own packages that are imported when first used
        import importlib

        return importlib.import_module(f"headrace.{name}")
    return getattr(_v1, name)


def __dir__() -> list[str]:
    return dir(_v1)
