"""Variables as VariableDef messages, by which MetaGraphs list them."""

from __future__ import annotations

from typing import Any

from headrace.core.collection_protos import register_proto_function
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.shapes import from_plain
from headrace.core.tensor import Tensor
from headrace.variables.ref_variable import RefVariable
from headrace.variables.resource_variable import ResourceVariable
from headrace.variables.variable import Variable, checked_distribution
from headrace.variables.variable_slices import SaveSliceInfo

__all__ = ["fill_from_proto", "slice_info_to_proto", "variable_from_proto", "variable_to_proto"]


def _messages() -> Any:
    from tensorboard.compat.proto import variable_pb2

    return variable_pb2


def _stripped(name: str, scope: str | None) -> str:
    return name.removeprefix(scope.rstrip("/") + "/") if scope else name


def _prefixed(name: str, scope: str | None) -> str:
    return f"{scope.rstrip('/')}/{name}" if scope else name


def slice_info_to_proto(info: SaveSliceInfo, export_scope: str | None = None) -> Any:
    if info.full_name is None or (export_scope and not info.full_name.startswith(export_scope)):
        return None
    return _messages().SaveSliceInfoDef(
        full_name=_stripped(info.full_name, export_scope),
        full_shape=info.full_shape,
        var_offset=info.var_offset,
        var_shape=info.var_shape,
    )


def variable_to_proto(variable: Variable, export_scope: str | None = None) -> Any:
    """A VariableDef; None if the variable is outside ``export_scope``."""
    if export_scope and not variable.name.startswith(export_scope):
        return None
    message = _messages().VariableDef(
        variable_name=_stripped(variable.name, export_scope),
        initializer_name=_stripped(variable.initializer.name, export_scope),
        trainable=variable.trainable,
        synchronization=variable.synchronization.value,
        aggregation=variable.aggregation.value,
        is_resource=isinstance(variable, ResourceVariable),
        snapshot_name=_stripped(_snapshot(variable).name, export_scope),
    )
    if variable.initial_value is not None:
        message.initial_value_name = _stripped(variable.initial_value.name, export_scope)
    info = variable._get_save_slice_info()
    if info is not None:
        message.save_slice_info_def.MergeFrom(info.to_proto(export_scope))
    return message


def _snapshot(variable: Variable) -> Tensor:
    if isinstance(variable, ResourceVariable):
        return variable._graph_element if variable._cached_value is None else variable._cached_value
    snapshot: Tensor = variable._snapshot
    return snapshot


def variable_from_proto(message: Any, import_scope: str | None = None) -> Variable:
    """The variable that a VariableDef describes, from operations that are in the default graph
    already.
    """
    kind = ResourceVariable if message.is_resource else RefVariable
    return kind(variable_def=message, import_scope=import_scope)


def fill_from_proto(variable: Any, message: Any, import_scope: str | None) -> None:
    """Set up a variable object over existing operations."""
    graph = get_default_graph()

    def element(name: str) -> Any:
        return graph.as_graph_element(_prefixed(name, import_scope))

    variable._initializer_op = element(message.initializer_name)
    variable._initial_value = (
        element(message.initial_value_name) if message.initial_value_name else None
    )
    variable._synchronization, variable._aggregation, variable._trainable = checked_distribution(
        message.synchronization, message.aggregation, message.trainable, message.variable_name
    )
    variable._constraint = None
    snapshot = element(message.snapshot_name)
    if isinstance(variable, ResourceVariable):
        handle = element(message.variable_name)
        variable._handle = handle
        variable._handle_name = handle.op.name
        variable._dtype = handle.op._attrs["dtype"]
        variable._shape = from_plain(handle.op._attrs["shape"])
        is_read = snapshot.op.type == "ReadVariableOp"
        variable._graph_element = snapshot if is_read else snapshot.op.inputs[0]
        variable._cached_value = None if is_read else snapshot
    else:
        variable._variable = element(message.variable_name)
        variable._snapshot = snapshot
    if message.HasField("save_slice_info_def"):
        variable._save_slice_info = SaveSliceInfo(
            save_slice_info_def=message.save_slice_info_def, import_scope=import_scope
        )


def _to_proto(variable: Variable, export_scope: str | None = None) -> Any:
    """A member of a collection of variables.

    A tensor among them (the global step may be one) has no VariableDef.
    """
    return variable.to_proto(export_scope=export_scope) if hasattr(variable, "to_proto") else None


for _key in (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
    GraphKeys.GLOBAL_STEP,
    GraphKeys.METRIC_VARIABLES,
):
    register_proto_function(_key, lambda: _messages().VariableDef, _to_proto, variable_from_proto)
