"""``import headrace.compat.v1 as tf``: at run time this name is the module headrace.api.v1
itself.
"""

import sys

from headrace.api import v1 as _v1
from headrace.api.v1 import *  # noqa: F403
from headrace.api.v1 import __all__ as __all__

sys.modules[__name__] = _v1
