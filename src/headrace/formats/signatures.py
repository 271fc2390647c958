"""Signatures of SavedModels: named inputs and outputs of a MetaGraph, and the TensorInfo messages
that they consist of.

predict_signature_def({"x": x}, {"y": y})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.graph import Graph, get_default_graph
from headrace.core.nest import is_composite
from headrace.core.specs import type_spec_from_value
from headrace.core.tensor import Tensor
from headrace.formats.attr_values import encode_shape
from headrace.formats.structured_values import decode_structure, encode_structure
from headrace.ops.sparse.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from tensorboard.compat.proto.meta_graph_pb2 import SignatureDef, TensorInfo

__all__ = [
    "CLASSIFY_INPUTS",
    "CLASSIFY_METHOD_NAME",
    "CLASSIFY_OUTPUT_CLASSES",
    "CLASSIFY_OUTPUT_SCORES",
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "PREDICT_INPUTS",
    "PREDICT_METHOD_NAME",
    "PREDICT_OUTPUTS",
    "REGRESS_INPUTS",
    "REGRESS_METHOD_NAME",
    "REGRESS_OUTPUTS",
    "build_signature_def",
    "build_tensor_info",
    "classification_signature_def",
    "get_tensor_from_tensor_info",
    "is_valid_signature",
    "predict_signature_def",
    "regression_signature_def",
]

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
CLASSIFY_INPUTS = "inputs"
CLASSIFY_METHOD_NAME = "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES = "classes"
CLASSIFY_OUTPUT_SCORES = "scores"
PREDICT_INPUTS = "inputs"
PREDICT_METHOD_NAME = "tensorflow/serving/predict"
PREDICT_OUTPUTS = "outputs"
REGRESS_INPUTS = "inputs"
REGRESS_METHOD_NAME = "tensorflow/serving/regress"
REGRESS_OUTPUTS = "outputs"


def build_tensor_info(tensor: Any) -> TensorInfo:
    """A TensorInfo: name, type and shape of a tensor (dense, sparse or ragged)."""
    from tensorboard.compat.proto.meta_graph_pb2 import TensorInfo

    if get_default_graph()._is_eager:
        raise RuntimeError("build_tensor_info is not supported in Eager mode.")
    if is_composite(tensor) and not isinstance(tensor, SparseTensor):
        return _composite_info(tensor)
    info = TensorInfo(dtype=dtypes.as_dtype(tensor.dtype).base_dtype.as_datatype_enum)
    if isinstance(tensor, SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    encode_shape(tensor.get_shape()._plain, info.tensor_shape)
    return info


def _composite_info(value: Any) -> TensorInfo:
    """A TensorInfo of what consists of several tensors (a RaggedTensor, IndexedSlices)."""
    from tensorboard.compat.proto.meta_graph_pb2 import TensorInfo
    from tensorboard.compat.proto.struct_pb2 import StructuredValue

    spec = type_spec_from_value(value)
    encoded = StructuredValue()
    encode_structure(spec, encoded)
    info = TensorInfo()
    info.composite_tensor.type_spec.CopyFrom(encoded.type_spec_value)
    for part in spec.to_components(value):
        info.composite_tensor.components.add().CopyFrom(build_tensor_info(part))
    return info


def get_tensor_from_tensor_info(
    tensor_info: TensorInfo, graph: Graph | None = None, import_scope: str | None = None
) -> Any:
    """The tensor of a graph that a TensorInfo names.

    ``graph`` defaults to the current one; ``import_scope`` is the scope into which the graph was
    loaded. A TensorInfo of a sparse or composite tensor gives such a
    tensor.
    """
    graph = get_default_graph() if graph is None else graph

    def element(name: str) -> Tensor:
        found: Tensor = graph.get_tensor_by_name(f"{import_scope}/{name}" if import_scope else name)
        return found

    kind = tensor_info.WhichOneof("encoding")
    if kind == "name":
        return element(tensor_info.name)
    if kind == "coo_sparse":
        sparse = tensor_info.coo_sparse
        return SparseTensor(
            element(sparse.indices_tensor_name),
            element(sparse.values_tensor_name),
            element(sparse.dense_shape_tensor_name),
        )
    if kind == "composite_tensor":
        from tensorboard.compat.proto.struct_pb2 import StructuredValue

        composite = tensor_info.composite_tensor
        spec = decode_structure(StructuredValue(type_spec_value=composite.type_spec))
        with graph.as_default():
            return spec.from_components([element(c.name) for c in composite.components])
    raise ValueError(f"Invalid TensorInfo.encoding: {kind}")


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> SignatureDef:
    """A SignatureDef of TensorInfos by key: ``inputs``, ``outputs`` and the ``method_name``.

    ``inputs`` and ``outputs`` map keys to TensorInfos (``tf.saved_model.build_tensor_info``);
    ``method_name`` is such as "tensorflow/serving/predict". The other functions of this module do
    both in one.
    """
    from tensorboard.compat.proto.meta_graph_pb2 import SignatureDef

    message = SignatureDef()
    for given, target in ((inputs, message.inputs), (outputs, message.outputs)):
        for key, info in (given or {}).items():
            target[key].CopyFrom(info)
    if method_name is not None:
        message.method_name = method_name
    return message


def _infos(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {k: build_tensor_info(t) for k, t in tensors.items()}


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """For TF Serving's Predict: any tensors to any tensors."""
    if not inputs:
        raise ValueError("Prediction inputs cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction outputs cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), PREDICT_METHOD_NAME)


def regression_signature_def(examples: object, predictions: Tensor) -> SignatureDef:
    """A SignatureDef of the method Regress: serialized Examples in, float32 predictions out."""
    if examples is None:
        raise ValueError("Regression examples cannot be None.")
    if not isinstance(examples, Tensor):
        raise ValueError("Regression examples must be a string Tensor.")
    if predictions is None:
        raise ValueError("Regression predictions cannot be None.")
    if examples.dtype is not dtypes.string:
        raise ValueError("Regression input tensors must be of type string")
    if predictions.dtype is not dtypes.float32:
        raise ValueError("Regression output tensors must be of type float")
    return build_signature_def(
        {REGRESS_INPUTS: build_tensor_info(examples)},
        {REGRESS_OUTPUTS: build_tensor_info(predictions)},
        REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples: object, classes: Tensor, scores: Tensor) -> SignatureDef:
    """For Classify: serialized Examples to class names and scores.

    ``examples`` is a string tensor [batch]; of ``classes`` (strings) and ``scores`` (float32), both
    [batch, classes], one may be None. Other types are ValueErrors, as in TensorFlow.
    """
    if examples is None:
        raise ValueError("Classification examples cannot be None.")
    if not isinstance(examples, Tensor):
        raise ValueError("Classification examples must be a string Tensor.")
    if classes is None and scores is None:
        raise ValueError("Classification classes and scores cannot both be None.")
    if examples.dtype is not dtypes.string:
        raise ValueError("Classification input tensors must be of type string")
    outputs = {}
    if classes is not None:
        if classes.dtype is not dtypes.string:
            raise ValueError("Classification classes must be of type string Tensor")
        outputs[CLASSIFY_OUTPUT_CLASSES] = build_tensor_info(classes)
    if scores is not None:
        if scores.dtype is not dtypes.float32:
            raise ValueError("Classification scores must be a float tensor.")
        outputs[CLASSIFY_OUTPUT_SCORES] = build_tensor_info(scores)
    return build_signature_def(
        {CLASSIFY_INPUTS: build_tensor_info(examples)}, outputs, CLASSIFY_METHOD_NAME
    )


def is_valid_signature(signature_def: SignatureDef) -> bool:
    """Whether TF Serving can serve it.

    A known method, with the inputs and outputs that the method has.
    """
    if signature_def is None:
        return False
    string, floating = dtypes.string.as_datatype_enum, dtypes.float32.as_datatype_enum
    inputs = {k: v.dtype for k, v in signature_def.inputs.items()}
    outputs = {k: v.dtype for k, v in signature_def.outputs.items()}
    method = signature_def.method_name
    if method == PREDICT_METHOD_NAME:
        return bool(inputs) and bool(outputs)
    if method == REGRESS_METHOD_NAME:
        return inputs == {REGRESS_INPUTS: string} and outputs == {REGRESS_OUTPUTS: floating}
    if method == CLASSIFY_METHOD_NAME:
        allowed = {CLASSIFY_OUTPUT_CLASSES: string, CLASSIFY_OUTPUT_SCORES: floating}
        return (
            inputs == {CLASSIFY_INPUTS: string}
            and bool(outputs)
            and all(allowed.get(k) == t for k, t in outputs.items())
        )
    return False
