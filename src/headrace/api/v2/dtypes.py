"""``tf.dtypes``: data types."""

import typing as _typing

from headrace.api.v1.dtypes import *  # noqa: F403
from headrace.api.v1.dtypes import __all__ as __all__
from headrace.api.v2.name_lookup import module_getattr

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("dtypes", __name__)
