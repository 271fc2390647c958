"""``tf.saved_model.save`` of TF 2: a module or object with its variables and functions, for TF 2,
TF 1's loader and TF Serving.

    save(module, "/tmp/model", signatures={"serving_default": module.f.get_concrete_function(spec)})

Written are the object graph (variables, lists, dicts, modules, functions with their traces), the
functions, the variables as a checkpoint of objects, and for every signature a part of a plain graph
that calls it. Variables that functions use must be attributes of the saved object, or of what it
holds.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import nest
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Tensor
from headrace.eager.module import Module
from headrace.formats.attr_values import encode_shape
from headrace.formats.function_defs import write_function
from headrace.formats.graphdef_writer import GRAPH_DEF_VERSION, Library
from headrace.formats.op_list import stripped_op_list
from headrace.formats.saved_model import (
    SAVED_MODEL_FILENAME_PB,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
    saved_model_message,
)
from headrace.formats.saver_nodes import Saved, add_saver_for
from headrace.formats.structured_values import encode_structure
from headrace.formats.tensor_proto import to_message
from headrace.functions.concrete_function import ConcreteFunction
from headrace.functions.function import BoundFunction, Function
from headrace.variables.variable import Variable
from headrace.wire.graph_files import write_bytes
from headrace.wire.streams import os_errors
from headrace.wire.tensor_bundle import BundleWriter

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    from headrace.core.graph import Graph

__all__ = ["save"]

_KEY = "/.ATTRIBUTES/VARIABLE_VALUE"


class _Node(NamedTuple):
    value: Any
    path: str
    children: list[tuple[str, int]]


def save(obj: object, export_dir: Any, signatures: object = None, options: object = None) -> None:
    """Write an object.

    ``signatures``: a function, or functions by name; a ``tf.function`` needs an input_signature.
    """
    del options  # about devices, debug info and custom namespaces
    if not isinstance(obj, Module) and not hasattr(obj, "__dict__"):
        raise ValueError(f"Expected an object with attributes (a tf.Module), got {obj!r}")
    folder = os.fspath(export_dir)
    writer = _Writer(obj, _signatures(signatures))
    os.makedirs(os.path.join(folder, VARIABLES_DIRECTORY), exist_ok=True)
    writer.write_variables(os.path.join(folder, VARIABLES_DIRECTORY, VARIABLES_FILENAME))
    message = saved_model_message()
    message.saved_model_schema_version = 1
    writer.fill(message.meta_graphs.add())
    write_bytes(
        os.path.join(folder, SAVED_MODEL_FILENAME_PB), message.SerializeToString(deterministic=True)
    )


def _signatures(given: object) -> dict[str, ConcreteFunction]:
    if given is None:
        return {}
    named = dict(given) if isinstance(given, Mapping) else {"serving_default": given}
    return {k: _concrete(f) for k, f in named.items()}


def _concrete(function: object) -> ConcreteFunction:
    if isinstance(function, ConcreteFunction):
        return function
    if isinstance(function, (Function, BoundFunction)):
        if function.input_signature is None and len(_traces(function)) == 1:
            return _traces(function)[0]
        return function.get_concrete_function()
    raise ValueError(
        f"Expected a TensorFlow function for which to generate a signature, but got {function!r}"
    )


def _traces(function: Any) -> list[ConcreteFunction]:
    if isinstance(function, BoundFunction):
        function = function._function
    found = list(dict.fromkeys(function._cache().values()))
    if not found and function.input_signature is not None:
        found = [function.get_concrete_function()]
    return found


class _Writer:
    def __init__(self, root: Any, signatures: dict[str, ConcreteFunction]) -> None:
        self.signatures = signatures
        self.nodes: list[_Node] = []
        self.ids: dict[int, int] = {}
        self.library = Library()
        self.names: dict[int, str] = {}
        self.constants: list[tuple[str, Any]] = []
        self._walk(root)

    # objects --------------------------------------------------------------------------------------
    def _walk(self, root: object) -> None:
        self._add(root, "")
        at = 0
        while at < len(self.nodes):
            node = self.nodes[at]
            for name, value in _children(node.value):
                path = f"{node.path}/{name}" if node.path else name
                node.children.append((name, self._add(value, path)))
            at += 1
        self.variables = [(i, n) for i, n in enumerate(self.nodes) if isinstance(n.value, Variable)]
        self.by_handle = {n.value.handle._op._attrs["shared_name"]: i for i, n in self.variables}

    def _add(self, value: object, path: str) -> int:
        key = id(value._function) if isinstance(value, BoundFunction) else id(value)
        known = self.ids.get(key)
        if known is None:
            known = self.ids[key] = len(self.nodes)
            self.nodes.append(_Node(value, path, []))
        return known

    def write_variables(self, prefix: str) -> None:
        from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

        graph = TrackableObjectGraph()
        for node in self.nodes:
            message = graph.nodes.add()
            for name, child in node.children:
                message.children.add(node_id=child, local_name=name)
            if isinstance(node.value, Variable):
                message.attributes.add(
                    name="VARIABLE_VALUE",
                    full_name=node.value.name.partition(":")[0],
                    checkpoint_key=node.path + _KEY,
                )
        with os_errors(prefix), BundleWriter(prefix) as writer:
            blob = np.empty((), object)
            blob[()] = graph.SerializeToString(deterministic=True)
            items = [(n.path + _KEY, n.value.numpy()) for _, n in self.variables]
            for name, value in sorted([("_CHECKPOINTABLE_OBJECT_GRAPH", blob), *items]):
                writer.add(name, value)

    # the MetaGraph --------------------------------------------------------------------------------
    def fill(self, meta: MetaGraphDef) -> None:
        objects = meta.object_graph_def
        functions = meta.graph_def.library
        meta.graph_def.versions.producer = GRAPH_DEF_VERSION
        for node in self.nodes:
            self._object(node, objects.nodes.add(), objects, functions)
        holder = objects.nodes.add()
        holder.user_object.identifier = "signature_map"
        _version(holder.user_object)
        objects.nodes[0].children.add(node_id=len(objects.nodes) - 1, local_name="signatures")
        handles = self._handles(meta.graph_def)
        for key, concrete in sorted(self.signatures.items()):
            self._signature(meta, key, concrete, holder, handles)
        for name, value in self.constants:
            _constant(meta.graph_def.node.add(name=name, op="Const"), value)
        saved = [
            Saved(
                n.path + _KEY,
                SimpleNamespace(
                    dtype=n.value.dtype, op=SimpleNamespace(name=handles[i], type="VarHandleOp")
                ),
                "",
            )
            for i, n in self.variables
        ]
        add_saver_for(meta, sorted(saved, key=lambda s: s.name))
        meta.meta_info_def.stripped_op_list.CopyFrom(stripped_op_list(meta.graph_def))
        meta.meta_info_def.tags.append("serve")
        meta.meta_info_def.tensorflow_version = "2.15.0"
        meta.meta_info_def.tensorflow_git_version = "headrace"

    def _object(self, node: _Node, message: Any, objects: Any, functions: Any) -> None:
        value = node.value
        for name, child in node.children:
            message.children.add(node_id=child, local_name=name)
        if isinstance(value, Variable):
            saved = message.variable
            saved.dtype, saved.trainable = value.dtype.as_datatype_enum, bool(value.trainable)
            saved.name = value.name.partition(":")[0]
            encode_shape(value.shape._plain, saved.shape)
        elif isinstance(value, (Function, BoundFunction)):
            self._function(value, message.function, objects, functions)
        else:
            message.user_object.identifier = _identifier(value)
            _version(message.user_object)

    def _function(self, function: Any, saved: Any, objects: Any, functions: Any) -> None:
        traces = _traces(function)
        for concrete in traces:
            name = self._written(concrete, functions)
            saved.concrete_functions.append(name)
            if name not in objects.concrete_functions:
                described = objects.concrete_functions[name]
                described.bound_inputs.extend(self._bound(concrete))
                encode_structure(
                    _plain_structure(concrete.structured_input_signature),
                    described.canonicalized_input_signature,
                )
                encode_structure(
                    _plain_structure(concrete.traced.output_specs), described.output_signature
                )
        signature = function.function_spec
        encode_structure(_arg_spec(signature), saved.function_spec.fullargspec)
        encode_structure(None, saved.function_spec.input_signature)

    def _written(self, concrete: ConcreteFunction, functions: Any) -> str:
        """The name of a trace in the library, written when first asked for."""
        known = self.names.get(id(concrete))
        if known is None:
            known = self.names[id(concrete)] = (
                f"__inference_{_clean(concrete.graph.name)}_{len(self.names)}"
            )
            graph = concrete.graph
            arguments = [*graph.inputs, *graph.internal_captures, *_handles_of(graph)]
            write_function(graph, known, functions.function.add(), self.library, arguments)
        return known

    def _bound(self, concrete: ConcreteFunction) -> list[int]:
        graph = concrete.graph
        if graph.internal_captures:
            raise ValueError(
                f"The function '{graph.name}' uses eager tensors from outside "
                f"({len(graph.internal_captures)}): keep them in variables "
                "of the saved object, or make them with tf.constant inside of the function"
            )
        out = []
        for handle in _handles_of(graph):
            key = handle._op._attrs["shared_name"]
            if key not in self.by_handle:
                raise AssertionError(
                    "Tried to export a function which references an 'untracked' "
                    f"resource: variable '{handle._op.name}' must be an "
                    "attribute of the saved object (or of something that it holds)"
                )
            out.append(self.by_handle[key])
        return out

    def _handles(self, graph_def: GraphDef) -> dict[int, str]:
        """A node for each variable; returns their names."""
        taken: set[str] = set()
        out = {}
        for i, node in self.variables:
            base = _clean(node.value.name.partition(":")[0]) or "Variable"
            name, n = base, 0
            while name in taken:
                n += 1
                name = f"{base}_{n}"
            taken.add(name)
            out[i] = name
            made = graph_def.node.add(name=name, op="VarHandleOp")
            made.attr["dtype"].type = node.value.dtype.as_datatype_enum
            made.attr["shared_name"].s = name.encode()
            made.attr["container"].s = b""
            encode_shape(node.value.shape._plain, made.attr["shape"].shape)
        return out

    # signatures -----------------------------------------------------------------------------------
    def _signature(
        self,
        meta: MetaGraphDef,
        key: str,
        concrete: ConcreteFunction,
        holder: Any,
        handles: dict[int, str],
    ) -> None:
        """A function with named arguments and results, and a call of it in the plain graph."""
        graph = concrete.graph
        inputs = dict(sorted((_clean(t._op.name), t) for t in graph.inputs))
        outputs = dict(sorted(_named_results(concrete).items()))
        name = f"__inference_signature_wrapper_{_clean(key)}_{len(self.names)}"
        self.names[-len(self.names) - 1] = name
        message = meta.graph_def.library.function.add()
        write_function(
            graph,
            name,
            message,
            self.library,
            [*inputs.values(), *_handles_of(graph)],
            list(outputs),
            list(outputs.values()),
        )
        objects = meta.object_graph_def
        bound = self._bound(concrete)
        described = objects.concrete_functions[name]
        described.bound_inputs.extend(bound)
        specs = {k: TensorSpec(t.shape, t.dtype, k) for k, t in inputs.items()}
        encode_structure(((), specs), described.canonicalized_input_signature)
        results = {k: TensorSpec(t.shape, t.dtype, k) for k, t in outputs.items()}
        encode_structure(results, described.output_signature)
        node = objects.nodes.add()
        node.bare_concrete_function.concrete_function_name = name
        node.bare_concrete_function.argument_keywords.extend(inputs)
        node.bare_concrete_function.allowed_positional_arguments = 1 if len(inputs) == 1 else 0
        holder.children.add(node_id=len(objects.nodes) - 1, local_name=key)
        self._call(meta, key, name, inputs, outputs, [handles[i] for i in bound])

    def _call(
        self,
        meta: MetaGraphDef,
        key: str,
        name: str,
        inputs: dict[str, Tensor],
        outputs: dict[str, Tensor],
        handles: list[str],
    ) -> None:
        graph_def, signature = meta.graph_def, meta.signature_def[key]
        signature.method_name = "tensorflow/serving/predict"
        given = []
        for argument, tensor in inputs.items():
            node = graph_def.node.add(name=f"{key}_{argument}", op="Placeholder")
            node.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
            encode_shape(tensor._shape, node.attr["shape"].shape)
            given.append(node.name)
            _info(signature.inputs[argument], f"{node.name}:0", tensor)
        count = sum(n.op == "StatefulPartitionedCall" for n in graph_def.node)
        call = graph_def.node.add(
            name="StatefulPartitionedCall" + (f"_{count}" if count else ""),
            op="StatefulPartitionedCall",
            input=[*given, *handles],
        )
        call.attr["f"].func.name = name
        kinds = [t.dtype.base_dtype.as_datatype_enum for t in inputs.values()] + [20] * len(handles)
        call.attr["Tin"].list.type.extend(kinds)
        call.attr["Tout"].list.type.extend(
            [t.dtype.base_dtype.as_datatype_enum for t in outputs.values()]
        )
        for attr in ("config", "config_proto", "executor_type"):
            call.attr[attr].s = b""
        for i, (result, tensor) in enumerate(outputs.items()):
            _info(signature.outputs[result], f"{call.name}:{i}", tensor)


def _info(message: Any, name: str, tensor: Tensor) -> None:
    message.name, message.dtype = name, tensor.dtype.base_dtype.as_datatype_enum
    encode_shape(tensor._shape, message.tensor_shape)


def _constant(node: NodeDef, value: Any) -> None:
    to_message(value, None, node.attr["value"].tensor)
    node.attr["dtype"].type = node.attr["value"].tensor.dtype


def _handles_of(graph: Graph) -> list[Tensor]:
    return [op._outputs[0] for op in graph._ops if op.type == "VarHandleOp"]


def _clean(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_")


def _version(user_object: Any) -> None:
    user_object.version.producer = user_object.version.min_consumer = 1


def _identifier(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "trackable_list_wrapper"
    return "trackable_dict_wrapper" if isinstance(value, dict) else "_generic_user_object"


def _children(value: object) -> list[tuple[str, Any]]:
    """What an object holds that is saved with it."""
    if isinstance(value, (Variable, Function, BoundFunction)):
        return []
    if isinstance(value, (list, tuple)):
        return [(str(i), v) for i, v in enumerate(value) if _is_saved(v)]
    if isinstance(value, dict):
        return [(k, v) for k, v in value.items() if isinstance(k, str) and _is_saved(v)]
    ignored: frozenset[str] = getattr(value, "_TF_MODULE_IGNORED_PROPERTIES", frozenset())
    own = [
        (k, v)
        for k, v in vars(value).items()
        if k not in ignored and k != "signatures" and _is_saved(v)
    ]
    seen = {k for k, _ in own}
    for kind in type(value).__mro__:
        for name, attribute in vars(kind).items():
            if isinstance(attribute, Function) and name not in seen:
                seen.add(name)
                own.append((name, getattr(value, name)))
    return own


def _is_saved(value: object) -> bool:
    if isinstance(value, (Variable, Function, BoundFunction, Module)):
        return True
    if isinstance(value, (list, tuple)):
        return any(_is_saved(v) for v in value)
    return isinstance(value, dict) and any(_is_saved(v) for v in value.values())


def _named_results(concrete: ConcreteFunction) -> dict[str, Tensor]:
    results = concrete.structured_outputs
    if isinstance(results, dict) and all(
        isinstance(k, str) and isinstance(v, Tensor) for k, v in results.items()
    ):
        order = sorted(results)
        return dict(zip(order, [t for t in concrete.outputs]))
    return {f"output_{i}": t for i, t in enumerate(concrete.outputs)}


def _plain_structure(value: Any) -> Any:
    """A structure that a signature may hold: other containers as tuples and dicts."""
    if isinstance(value, TensorSpec) or not nest.is_nested(value):
        return value
    if isinstance(value, Mapping):
        return {k: _plain_structure(v) for k, v in value.items()}
    if hasattr(value, "_fields"):
        return type(value)(*[_plain_structure(v) for v in value])
    made = [_plain_structure(v) for v in value]
    return made if isinstance(value, list) else tuple(made)


def _arg_spec(signature: Any) -> Any:
    names = list(signature.names)
    if names[:1] == ["self"]:
        names = names[1:]
    defaults = tuple(d for d in signature.defaults if d is not inspect.Parameter.empty) or None
    only = signature.keyword_only
    given = {k: d for k, d in only.items() if d is not inspect.Parameter.empty} or None
    return inspect.FullArgSpec(
        names, signature.varargs, signature.varkw, defaults, list(only), given, {}
    )
