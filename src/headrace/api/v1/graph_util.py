"""``tf.graph_util``: GraphDefs cut, frozen and imported."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.formats.freezing import convert_variables_to_constants
from headrace.formats.graphdef_reader import import_graph_def
from headrace.formats.subgraphs import (
    extract_sub_graph,
    must_run_on_cpu,
    remove_training_nodes,
    tensor_shape_from_node_def_name,
)

__all__ = [
    "convert_variables_to_constants", "extract_sub_graph", "import_graph_def", "must_run_on_cpu",
    "remove_training_nodes", "tensor_shape_from_node_def_name",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("graph_util", __name__)
