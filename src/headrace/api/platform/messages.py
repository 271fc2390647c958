"""TensorFlow's protocol messages, imported when one is asked for: from tensorboard, and Example and
its parts our own.

``find("ConfigProto")`` gives the class; ``module("core.protobuf.config_pb2")`` gives the module
that TensorFlow has under that path.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

__all__ = ["MESSAGES", "TRAIN_MESSAGES", "find", "module", "paths"]

_PACKAGE = "tensorboard.compat.proto"

#: Message classes that ``tf`` itself exports, and the module they are in.
MESSAGES: dict[str, str] = {
    "AttrValue": "attr_value_pb2",
    "ConfigProto": "config_pb2",
    "Event": "event_pb2",
    "GPUOptions": "config_pb2",
    "GraphDef": "graph_pb2",
    "GraphOptions": "config_pb2",
    "HistogramProto": "histogram_pb2",
    "LogMessage": "event_pb2",
    "MetaGraphDef": "meta_graph_pb2",
    "NameAttrList": "attr_value_pb2",
    "NodeDef": "node_def_pb2",
    "OptimizerOptions": "config_pb2",
    "RunMetadata": "config_pb2",
    "RunOptions": "config_pb2",
    "SessionLog": "event_pb2",
    "Summary": "summary_pb2",
    "SummaryMetadata": "summary_pb2",
    "TensorInfo": "meta_graph_pb2",
}

#: The same for ``tf.train``.
TRAIN_MESSAGES: dict[str, str] = {
    "BytesList": "feature_pb2",
    "ClusterDef": "cluster_pb2",
    "Example": "example_pb2",
    "Feature": "feature_pb2",
    "FeatureList": "feature_pb2",
    "FeatureLists": "feature_pb2",
    "Features": "feature_pb2",
    "FloatList": "feature_pb2",
    "Int64List": "feature_pb2",
    "JobDef": "cluster_pb2",
    "SaverDef": "saver_pb2",
    "SequenceExample": "example_pb2",
}

#: Modules of messages that tensorboard does not have.
_EXAMPLE = "headrace.wire.example_messages"
_OWN = {"example_pb2": _EXAMPLE, "feature_pb2": _EXAMPLE}

#: Which of TensorFlow's packages each message module is in.
_PROTOBUF = (
    "cluster", "config", "debug", "meta_graph", "rewriter_config", "saved_object_graph", "saver",
    "struct", "trackable_object_graph", "verifier_config",
)  # fmt: skip
_UTIL = ("event",)
_FRAMEWORK = (
    "allocation_description", "api_def", "attr_value", "cost_graph", "function", "graph",
    "node_def", "op_def", "resource_handle", "step_stats", "summary", "tensor",
    "tensor_description", "tensor_shape", "types", "variable", "versions",
)  # fmt: skip


def paths() -> dict[str, str]:
    """TensorFlow's path of each message module -> ours."""
    groups = (("core.protobuf", _PROTOBUF), ("core.util", _UTIL), ("core.framework", _FRAMEWORK))
    found = {
        f"{package}.{n}_pb2": f"{_PACKAGE}.{n}_pb2" for package, names in groups for n in names
    }
    found.update((f"core.example.{n}", where) for n, where in _OWN.items())
    found["core.protobuf.control_flow_pb2"] = "headrace.wire.control_flow_messages"
    return found


def module(path: str) -> ModuleType:
    """The message module that TensorFlow has at ``tensorflow.<path>``."""
    return importlib.import_module(paths()[path])


def find(name: str, table: Mapping[str, str] = MESSAGES) -> Any:
    """A message class by TensorFlow's name; KeyError if there is none."""
    place = table[name]
    return getattr(importlib.import_module(_OWN.get(place, f"{_PACKAGE}.{place}")), name)
