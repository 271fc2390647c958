"""``tf.config``: devices and functions."""

import typing as _typing

from headrace.api.v1.config import *  # noqa: F403
from headrace.api.v2.name_lookup import module_getattr

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("config", __name__)
