"""``import headrace.compat.v2 as tf``.

TensorFlow 2's names and behaviour. Importing it turns eager execution on.
"""

from typing import TYPE_CHECKING, Any

from headrace.api import v2 as _v2
from headrace.api.v1.context import enable_v2_behavior as _enable_v2_behavior
from headrace.api.v2 import *  # noqa: F403
from headrace.api.v2 import __all__ as __all__

_enable_v2_behavior()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_v2, name)


def __dir__() -> list[str]:
    return dir(_v2)
