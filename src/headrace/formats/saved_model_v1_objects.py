"""A SavedModel of TF 1 as TF 2's ``tf.saved_model.load`` gives it: an object whose signatures can
be called.

The MetaGraph is imported into a graph with a session of its own; a signature runs in that session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.formats.signatures import get_tensor_from_tensor_info
from headrace.functions.wrapped_function import of_session
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.session.session import Session

if TYPE_CHECKING:
    from headrace.formats.saved_model import SavedModelLoader


__all__ = ["SessionSignature", "load_v1_objects"]


class SessionSignature:
    """Named inputs to named outputs, computed in a session."""

    def __init__(self, session: Session, signature: Any) -> None:
        self._session = session
        self.structured_input_signature = ((), dict(sorted(signature.inputs.items())))
        graph: Any = session.graph
        self._inputs = _tensors(signature.inputs, graph)
        #: The results by name, as tensors of the model's graph.
        self.structured_outputs = _tensors(signature.outputs, graph)

    @property
    def inputs(self) -> list[Any]:
        """The tensors that are fed."""
        return nest.flatten(self._inputs, expand_composites=True)

    @property
    def outputs(self) -> list[Any]:
        """The tensors that are computed."""
        return nest.flatten(self.structured_outputs, expand_composites=True)

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The outputs by name, as eager tensors."""
        if not get_default_graph()._is_eager:
            raise NotImplementedError(
                "a signature of a TF-1 SavedModel is run in a session of its own: call it "
                "eagerly, or load the model with "
                "tf.compat.v1.saved_model.loader.load into your graph"
            )
        if len(args) > 1 or (args and len(self._inputs) != 1):
            raise TypeError(f"give the inputs {list(self._inputs)} by name")
        given = {**dict(zip(self._inputs, args)), **kwargs}
        if set(given) != set(self._inputs):
            raise TypeError(f"the signature takes {list(self._inputs)}, {sorted(given)} were given")
        feeds = {self._inputs[k]: _array(v) for k, v in given.items()}
        found = self._session.run(self.structured_outputs, feeds)
        return {k: _eager(self.structured_outputs[k], v) for k, v in found.items()}


def _tensors(infos: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    return {k: get_tensor_from_tensor_info(v, graph) for k, v in sorted(infos.items())}


def _array(value: Any) -> Any:
    """What a session is fed for an eager value."""
    if isinstance(value, SparseTensor):
        parts = (value.indices, value.values, value.dense_shape)
        return SparseTensorValue(*[_array(t) for t in parts])
    return value.numpy() if hasattr(value, "numpy") else value


def _eager(fetched: Any, value: Any) -> Any:
    if isinstance(value, SparseTensorValue):
        return SparseTensor(value.indices, value.values, value.dense_shape)
    return convert_to_tensor(value, getattr(fetched, "dtype", None))


def load_v1_objects(loader: SavedModelLoader, meta: Any) -> Any:
    from headrace.formats.saved_model_load import LoadedObject, SignatureMap

    graph = Graph()
    session = Session(graph=graph)
    with graph.as_default():
        loader.load(session, list(meta.meta_info_def.tags))
    root = LoadedObject()
    root.__dict__["variables"] = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    root.__dict__["prune"] = of_session(session, [], [], [], "loaded").prune
    hidden = ("__saved_model_init_op", "__saved_model_train_op")
    root.__dict__["signatures"] = SignatureMap(
        (k, SessionSignature(session, s)) for k, s in meta.signature_def.items() if k not in hidden
    )
    root.__dict__["graph"] = graph
    root.__dict__["tensorflow_version"] = meta.meta_info_def.tensorflow_version
    return root
