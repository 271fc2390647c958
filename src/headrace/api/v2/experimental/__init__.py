"""``tf.experimental``."""

import typing as _typing

from headrace.api.v2.experimental import dlpack
from headrace.api.v2.name_lookup import module_getattr

__all__ = ["dlpack"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("experimental", __name__)
