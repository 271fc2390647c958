"""The messages of branches and loops in MetaGraphs: CondContextDef and WhileContextDef.

>>> control_flow_message("CondContextDef")(branch=1).SerializeToString()
b' \\x01'
"""

from __future__ import annotations

import functools
from typing import Any

from headrace.wire.message_tables import message_classes

__all__ = ["control_flow_message"]

_MESSAGES = {
    "ValuesDef": "1 values *string, 2 external_values {}",
    "ControlFlowContextDef": "1 cond_ctxt |CondContextDef, 2 while_ctxt |WhileContextDef",
    "CondContextDef": "1 context_name string, 2 pred_name string, 3 pivot_name string, "
    "4 branch int32, 5 values_def ValuesDef, 6 nested_contexts *ControlFlowContextDef",
    "WhileContextDef": "1 context_name string, 2 parallel_iterations int32, 3 back_prop bool, "
    "4 swap_memory bool, 5 pivot_name string, 6 pivot_for_pred_name string, "
    "7 pivot_for_body_name string, 8 loop_exit_names *string, 10 loop_enter_names *string, "
    "9 values_def ValuesDef, 11 maximum_iterations_name string, "
    "12 nested_contexts *ControlFlowContextDef",
}


@functools.cache
def _classes() -> dict[str, Any]:
    return message_classes({"tensorflow": _MESSAGES}, group="ctxt")


def control_flow_message(name: str) -> Any:
    """A message class by TensorFlow's name; KeyError if there is none."""
    return _classes()[name]


def __getattr__(name: str) -> Any:
    if name in _MESSAGES:
        return control_flow_message(name)
    raise AttributeError(name)
