"""``tf.keras``: of Keras, Headrace's v2 API has the optimizers and initializers."""

import typing as _typing

from headrace.api.v2 import initializers, optimizers
from headrace.api.v2.name_lookup import module_getattr

__all__ = ["initializers", "optimizers"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("keras", __name__)
