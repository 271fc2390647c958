"""Messages of TensorFlow's profiler (package ``tensorflow.tfprof``), made when first asked for.

Field names, numbers and types are TensorFlow's; a pool of their own keeps them apart from
TensorFlow itself. Shapes of tensors are not among the fields that Headrace fills.
"""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["MESSAGES", "profile_class"]

MESSAGES = ("AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogEntry", "OpLogProto")
_PACKAGE = "tensorflow.tfprof"
_INT64, _STRING, _MESSAGE = 3, 9, 11

_GRAPH_NODE = {
    "run_count": 21, "exec_micros": 2, "accelerator_exec_micros": 17, "cpu_exec_micros": 18,
    "requested_bytes": 3, "peak_bytes": 24, "residual_bytes": 25, "output_bytes": 26,
    "parameters": 4, "float_ops": 13, "total_definition_count": 23, "total_run_count": 22,
    "total_exec_micros": 6, "total_accelerator_exec_micros": 19, "total_cpu_exec_micros": 20,
    "total_requested_bytes": 7, "total_peak_bytes": 27, "total_residual_bytes": 28,
    "total_output_bytes": 29, "total_parameters": 8, "total_float_ops": 14,
}  # fmt: skip
_MULTI_NODE = {
    "exec_micros": 2, "accelerator_exec_micros": 12, "cpu_exec_micros": 13, "requested_bytes": 3,
    "peak_bytes": 16, "residual_bytes": 17, "output_bytes": 18, "parameters": 4, "float_ops": 5,
    "total_exec_micros": 6, "total_accelerator_exec_micros": 14, "total_cpu_exec_micros": 15,
    "total_requested_bytes": 7, "total_peak_bytes": 19, "total_residual_bytes": 20,
    "total_output_bytes": 21, "total_parameters": 8, "total_float_ops": 9,
}  # fmt: skip


def profile_class(name: str) -> Any:
    """A message class by its name; KeyError if there is none."""
    return _classes()[name]


def __getattr__(name: str) -> Any:
    if name in MESSAGES:
        return profile_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _field(message: Any, name: str, number: int, kind: int, many: bool, of: str = "") -> None:
    message.field.add(
        name=name,
        number=number,
        type=kind,
        label=3 if many else 1,
        type_name=f".{_PACKAGE}.{of}" if of else None,
    )


def _file() -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(name="headrace/tfprof.proto", package=_PACKAGE, syntax="proto2")
    node = file.message_type.add(name="GraphNodeProto")
    multi = file.message_type.add(name="MultiGraphNodeProto")
    for message, numbers in ((node, _GRAPH_NODE), (multi, _MULTI_NODE)):
        _field(message, "name", 1, _STRING, False)
        for name, number in numbers.items():
            _field(message, name, number, _INT64, False)
    _field(node, "devices", 10, _STRING, True)
    _field(node, "children", 12, _MESSAGE, True, "GraphNodeProto")
    _field(multi, "graph_nodes", 10, _MESSAGE, True, "GraphNodeProto")
    _field(multi, "children", 11, _MESSAGE, True, "MultiGraphNodeProto")
    entry = file.message_type.add(name="OpLogEntry")
    _field(entry, "name", 1, _STRING, False)
    _field(entry, "float_ops", 2, _INT64, False)
    _field(entry, "types", 3, _STRING, True)
    log = file.message_type.add(name="OpLogProto")
    _field(log, "log_entries", 1, _MESSAGE, True, "OpLogEntry")
    file.message_type.add(name="AdviceProto")
    return file


@functools.cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    file = _file()
    pool.AddSerializedFile(file.SerializeToString())
    found: dict[str, Any] = {}
    for message in file.message_type:
        descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
        found[message.name] = message_factory.GetMessageClass(descriptor)
    return found
