"""Headrace runs TensorFlow-1 style programs on NumPy, without TensorFlow.

    import headrace as tf

    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as sess:
        print(sess.run(2 * x, {x: [1, 2]}))

The names are those of TensorFlow 1.15 (:mod:`headrace.api.v1`); ``HEADRACE_VERSION`` is our own
version.
"""

import gc as _gc
import sys as _sys
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any


class _Namespace(_ModuleType):
    """``tf`` itself.

    ``tf.layers`` is TensorFlow's namespace also after ``headrace.layers``, a package of ours, was
    imported for the first time, when Python binds the package to its name here.
    """

    def __setattr__(self, name: str, value: object) -> None:
        own = isinstance(value, _ModuleType) and value.__name__ == f"{__name__}.{name}"
        if not own or name not in ("distributions", "layers", "profiler", "train"):
            super().__setattr__(name, value)


# Importing makes many objects and no garbage: collections in between only cost time. At the end the
# new objects go to the oldest generation as they are (freeze and unfreeze move them without looking
# at them).
_collecting = _gc.isenabled()
_gc.disable()
try:
    from headrace.runtime.numpy_threads import import_numpy as _import_numpy

    _import_numpy()
    _sys.modules[__name__].__class__ = _Namespace
    from headrace.api import v1 as _v1
    from headrace.api.v1 import __all__ as __all__

    if TYPE_CHECKING:
        from headrace.api.v1 import *  # noqa: F403
    globals().update({k: v for k, v in vars(_v1).items() if k[:1] != "_" or k in __all__})
finally:
    if _collecting:
        if _gc.get_freeze_count() == 0:
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()


if TYPE_CHECKING:
    from headrace import cli as cli
    from headrace import dropin as dropin
    from headrace.data.api.progress import progress as progress
    from headrace.wire.transfer_progress import file_progress as file_progress
else:

    def __getattr__(name: str) -> Any:
        if name in (
            "cli",
            "compat",
            "dropin",
        ):  # our own packages that are imported when first used
            import importlib

            return importlib.import_module(f"headrace.{name}")
        if name == "progress":
            from headrace.data.api.progress import progress as value
        elif name == "file_progress":
            from headrace.wire.transfer_progress import file_progress as value
        else:
            value = getattr(_v1, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return dir(_v1)


def load_ipython_extension(ipython: object) -> None:
    """``%load_ext headrace`` (see :mod:`headrace.dropin.notebook`)."""
    from headrace.dropin.notebook import load

    load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """``%unload_ext headrace``."""
    from headrace.dropin.notebook import unload

    unload(ipython)
