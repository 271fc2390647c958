"""``tf.contrib.graph_editor``."""

from headrace.api.missing import module_getattr
from headrace.graph_editor.copying import (
    Transformer,
    TransformerInfo,
    copy,
    copy_op_handler,
    copy_with_input_replacements,
    graph_replace,
    keep_t_if_possible_handler,
    make_placeholder_from_dtype_and_shape,
    make_placeholder_from_tensor,
    placeholder_name,
    replace_t_with_placeholder_handler,
)
from headrace.graph_editor.graph_selection import (
    ControlOutputs,
    compute_boundary_ts,
    filter_ops,
    filter_ops_from_regex,
    filter_ts,
    filter_ts_from_regex,
    get_backward_walk_ops,
    get_consuming_ops,
    get_forward_walk_ops,
    get_generating_ops,
    get_name_scope_ops,
    get_ops_ios,
    get_tensors,
    get_walks_intersection_ops,
    get_walks_union_ops,
    get_within_boundary_ops,
    make_list_of_op,
    make_list_of_t,
    select_ops,
    select_ops_and_ts,
    select_ts,
)
from headrace.graph_editor.rerouting import (
    add_control_inputs,
    bypass,
    connect,
    detach,
    detach_control_inputs,
    detach_control_outputs,
    detach_inputs,
    detach_outputs,
    remove_control_inputs,
    reroute_inputs,
    reroute_ios,
    reroute_outputs,
    reroute_ts,
    swap_inputs,
    swap_ios,
    swap_outputs,
    swap_ts,
)
from headrace.graph_editor.subgraph_views import SubGraphView, make_view, make_view_from_scope

ph = make_placeholder_from_dtype_and_shape
sgv = make_view
sgv_scope = make_view_from_scope

__all__ = [
    "ControlOutputs", "SubGraphView", "Transformer", "TransformerInfo", "add_control_inputs",
    "bypass", "compute_boundary_ts", "connect", "copy", "copy_op_handler",
    "copy_with_input_replacements", "detach", "detach_control_inputs", "detach_control_outputs",
    "detach_inputs", "detach_outputs", "filter_ops", "filter_ops_from_regex", "filter_ts",
    "filter_ts_from_regex", "get_backward_walk_ops", "get_consuming_ops", "get_forward_walk_ops",
    "get_generating_ops", "get_name_scope_ops", "get_ops_ios", "get_tensors",
    "get_walks_intersection_ops", "get_walks_union_ops", "get_within_boundary_ops",
    "graph_replace", "keep_t_if_possible_handler", "make_list_of_op", "make_list_of_t",
    "make_placeholder_from_dtype_and_shape", "make_placeholder_from_tensor", "make_view",
    "make_view_from_scope", "ph", "placeholder_name", "remove_control_inputs",
    "replace_t_with_placeholder_handler", "reroute_inputs", "reroute_ios", "reroute_outputs",
    "reroute_ts", "select_ops", "select_ops_and_ts", "select_ts", "sgv", "sgv_scope",
    "swap_inputs", "swap_ios", "swap_outputs", "swap_ts",
]  # fmt: skip

__getattr__ = module_getattr("contrib.graph_editor", __name__)
