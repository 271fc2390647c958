"""A SavedModel of TF 1 as TF 2's ``tf.saved_model.load`` gives it: an object whose signatures can
be called.

The MetaGraph is imported into a graph with a session of its own; a signature runs in that session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.session.session import Session

if TYPE_CHECKING:
    from headrace.formats.saved_model import SavedModelLoader


__all__ = ["SessionSignature", "load_v1_objects"]


class SessionSignature:
    """Named inputs to named outputs, computed in a session."""

    def __init__(self, session: Session, signature: Any) -> None:
        self._session = session
        self.structured_input_signature = ((), dict(sorted(signature.inputs.items())))
        self._inputs = {k: v.name for k, v in sorted(signature.inputs.items())}
        self._outputs = {k: v.name for k, v in sorted(signature.outputs.items())}

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
        feeds = {self._inputs[k]: v.numpy() if hasattr(v, "numpy") else v for k, v in given.items()}
        found = self._session.run(self._outputs, feeds)
        return {k: convert_to_tensor(v) for k, v in found.items()}


def load_v1_objects(loader: SavedModelLoader, meta: Any) -> Any:
    from headrace.formats.saved_model_load import LoadedObject

    graph = Graph()
    session = Session(graph=graph)
    with graph.as_default():
        loader.load(session, list(meta.meta_info_def.tags))
    root = LoadedObject()
    hidden = ("__saved_model_init_op", "__saved_model_train_op")
    root.__dict__["signatures"] = {
        k: SessionSignature(session, s) for k, s in meta.signature_def.items() if k not in hidden
    }
    root.__dict__["graph"] = graph
    root.__dict__["tensorflow_version"] = meta.meta_info_def.tensorflow_version
    return root
