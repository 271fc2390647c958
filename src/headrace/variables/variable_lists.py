"""Lists of variables by collection, and the operations that initialise or check whole lists.

>>> sess.run(global_variables_initializer())
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import constant, no_op
from headrace.ops.state.ref_state import is_variable_initialized

if TYPE_CHECKING:
    from headrace.variables.variable import Variable

__all__ = [
    "all_variables",
    "assert_variables_initialized",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_tables",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "metric_variables",
    "model_variables",
    "moving_average_variables",
    "report_uninitialized_variables",
    "tables_initializer",
    "trainable_variables",
    "variables_initializer",
]


def _collected(key: str, scope: str | None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def global_variables(scope: str | None = None) -> list[Any]:
    """Variables that are shared and saved: where new variables go unless they say otherwise."""
    return _collected(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """The pre-1.0 spelling of :func:`global_variables`."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """Variables of one process, not saved: counters and metrics."""
    return _collected(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables of the collection MODEL_VARIABLES: those that inference needs."""
    return _collected(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers train by default, of a scope if one is given.

    Those made with ``trainable=False`` are not among them.
    """
    return _collected(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Variables that have a moving average."""
    return _collected(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def metric_variables(scope: str | None = None) -> list[Any]:
    return _collected(GraphKeys.METRIC_VARIABLES, scope)


# initialising -----------------------------------------------------------------------------------


def variables_initializer(
    var_list: Sequence[Variable] | None, name: str | None = "init"
) -> Operation:
    """One operation that runs the initialisers of a list of variables."""
    if not var_list:
        return no_op(name=name)
    from headrace.ops.control.dependencies import group

    return group(*[v.initializer for v in var_list], name=name)


def initialize_variables(
    var_list: Sequence[Variable] | None, name: str | None = "init"
) -> Operation:
    """The pre-1.0 spelling of :func:`variables_initializer`."""
    return variables_initializer(var_list, name)


def global_variables_initializer() -> Operation:
    """An operation that gives every global variable its initial value; run it once, first."""
    return variables_initializer(global_variables())


def initialize_all_variables() -> Operation:
    """The pre-1.0 spelling of :func:`global_variables_initializer`."""
    return global_variables_initializer()


def local_variables_initializer() -> Operation:
    """An operation that initialises local variables (of metrics, input epochs)."""
    return variables_initializer(local_variables())


def initialize_local_variables() -> Operation:
    """The pre-1.0 spelling of :func:`local_variables_initializer`."""
    return local_variables_initializer()


def tables_initializer(name: str | None = "init_all_tables") -> Operation:
    """One operation that initialises all lookup tables."""
    initializers = _collected(GraphKeys.TABLE_INITIALIZERS, None)
    if not initializers:
        return no_op(name=name)
    from headrace.ops.control.dependencies import group

    return group(*initializers, name=name)


def initialize_all_tables(name: str | None = "init_all_tables") -> Operation:
    """The pre-1.0 spelling of :func:`tables_initializer`."""
    return tables_initializer(name)


# checking ---------------------------------------------------------------------------------------


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str | None = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that have no value in the session, as a vector of strings."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    with name_scope(name, "report_uninitialized_variables"):
        if not var_list:
            return constant([], dtype="string")
        known = apply_op("Pack", [is_variable_initialized(v) for v in var_list])
        missing = apply_op("LogicalNot", known)
        names = constant([v.op.name for v in var_list])
        at = apply_op("Squeeze", apply_op("Where", missing), squeeze_dims=[1])
        count_more(names._op.graph, 23)  # TF masks with general shapes
        return apply_op("GatherV2", names, at, 0)


def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Tensor | None:
    """A tensor that fails with FailedPreconditionError, when run, if one of the variables has no
    value.
    """
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    ranks = [_rank(v) for v in var_list]
    return ranks[0] if len(ranks) == 1 else apply_op("Pack", ranks, axis=0)


def _rank(variable: Variable) -> Tensor:
    """The rank of a variable, computed so that its value is read (a rank is known without)."""
    first = apply_op("StridedSlice", apply_op("Reshape", variable, [-1]), [0], [1], [1])
    seen = apply_op("Cast", apply_op("Equal", first, first), DstT=dtypes.int32)
    nothing = apply_op("Minimum", apply_op("Sum", seen, [0]), 0)
    return apply_op("AddV2", apply_op("Rank", variable), nothing)
