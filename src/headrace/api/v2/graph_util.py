"""TF 2's ``tf.graph_util``."""

from headrace.api.missing import module_getattr
from headrace.formats.graphdef_reader import import_graph_def

__all__ = ["import_graph_def"]

__getattr__ = module_getattr("graph_util", __name__)
