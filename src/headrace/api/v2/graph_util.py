"""TF 2's ``tf.graph_util``."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.formats.graphdef_reader import import_graph_def

__all__ = ["import_graph_def"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("graph_util", __name__)
