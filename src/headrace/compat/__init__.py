"""``headrace.compat``.

``import headrace.compat.v1 as tf`` is ``import headrace.api.v1 as tf``, the very same module.
"""

import sys

from headrace.api import v1
from headrace.api.missing import module_getattr
from headrace.api.v1.compat import *  # noqa: F403
from headrace.api.v1.compat import __all__ as __all__

sys.modules[__name__ + ".v1"] = v1

__getattr__ = module_getattr("compat", __name__, modules={"v2": "headrace.api.v2"})
