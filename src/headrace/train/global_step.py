"""The global step: the integer variable that counts training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.graph import Graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, control_dependencies
from headrace.core.tensor import Tensor
from headrace.ops.state.ref_state import assign_add
from headrace.train.tensor_helpers import op_of, state_graph
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = [
    "assert_global_step",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
]

#: The collection that holds the tensor which reads the global step before a run changes it.
GLOBAL_STEP_READ_KEY = "global_step_read_op_cache"


def global_step(sess: Any, global_step_tensor: TensorLike) -> int:
    """The value of the global step in a session."""
    return int(sess.run(global_step_tensor))


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step.

    From its collection, or the tensor ``global_step:0``; None if there is none.
    """
    graph = graph or state_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        import logging

        logging.getLogger("tensorflow").error("Multiple tensors in global_step collection.")
        return None
    if found:
        step = found[0]
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(step)
    return step


def create_global_step(graph: Graph | None = None) -> Any:
    """Make the global step (int64, zero at first); ValueError if there is one."""
    graph = graph or state_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The graph's global step, an int64 variable that optimizers count up; made if missing."""
    graph = graph or state_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor: Tensor) -> None:
    """TypeError unless it is an integer scalar, variable or tensor."""
    step = global_step_tensor
    if not isinstance(step, Tensor) and not hasattr(step, "initializer"):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {step}.')
    if not step.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {step.dtype}')
    shape = step.get_shape()
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')


def _get_global_step_read(graph: Graph | None = None) -> Tensor | None:
    found = (graph or state_graph()).get_collection(GLOBAL_STEP_READ_KEY)
    if len(found) > 1:
        raise RuntimeError(
            f"There are multiple items in collection {GLOBAL_STEP_READ_KEY}. There should "
            "be only one."
        )
    return found[0] if found else None


def _get_or_create_global_step_read(graph: Graph | None = None) -> Any:
    """A tensor with the step's value as it was before anything that depends on it changes it."""
    graph = graph or state_graph()
    read = _get_global_step_read(graph)
    if read is not None:
        return read
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default(), graph.name_scope(None), graph.name_scope(op_of(step).name + "/"):
        value = step if isinstance(step, Tensor) else step.initialized_value()
        add_to_collection(GLOBAL_STEP_READ_KEY, value + 0)
    return _get_global_step_read(graph)


def _increment_global_step(increment: int, graph: Graph | None = None) -> Any:
    """The op that adds to the global step after it was read."""
    graph = graph or state_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError(
            "Global step tensor should be created by tf.train.get_or_create_global_step "
            "before calling increment."
        )
    read = _get_or_create_global_step_read(graph)
    with graph.as_default(), graph.name_scope(None), graph.name_scope(op_of(step).name + "/"):
        with control_dependencies([read]):
            return assign_add(step, increment)
