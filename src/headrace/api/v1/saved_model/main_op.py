"""``tf.saved_model.main_op``: the operation that a loaded model runs first."""

from typing import Any

from headrace.core.graph import get_default_graph
from headrace.core.tensor import Operation
from headrace.ops.control.dependencies import group
from headrace.variables.variable_lists import (
    global_variables_initializer,
    local_variables_initializer,
)

__all__ = ["main_op", "main_op_with_restore"]


def main_op() -> Operation:
    """Initialises global and local variables and tables."""
    return group(global_variables_initializer(), local_variables_initializer(), _tables())


def main_op_with_restore(restore_op_name: str) -> Operation:
    """As ``main_op``, then the operation of that name."""
    with get_default_graph().control_dependencies([main_op()]):
        restore: Any = get_default_graph().as_graph_element(restore_op_name)
        return group(restore)


def _tables() -> Operation:
    import headrace.api.v1 as tf

    return tf.tables_initializer()
