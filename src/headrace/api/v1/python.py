"""``tf.python``.

TensorFlow's inner modules, as far as they exist here (see :mod:`headrace.api.paths`).
"""

from typing import Any

from headrace.api import facades

_inner = facades.facade("python", "headrace.api.v1")


def __getattr__(name: str) -> Any:
    return getattr(_inner, name)
