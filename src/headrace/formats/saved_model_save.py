"""``tf.saved_model.save`` of TF 2: a module or object with its variables and functions, for TF 2,
TF 1's loader and TF Serving.

    save(module, "/tmp/model", signatures={"serving_default": module.f.get_concrete_function(spec)})

Written are the object graph (variables, lists, dicts, modules, tables, functions with their
traces), the functions, the variables as a checkpoint of objects, vocabulary files as assets, and
for every signature a part of a plain graph that calls it. Variables and tables that functions use
must be attributes of the saved object, or of what it holds; tensors that they use are constants.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.func_graph import is_function_graph
from headrace.core.graph import get_default_graph
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Tensor
from headrace.eager.module import Module
from headrace.formats.attr_values import encode_shape
from headrace.formats.function_defs import write_function
from headrace.formats.graphdef_writer import GRAPH_DEF_VERSION, Library, write_node
from headrace.formats.op_list import stripped_op_list
from headrace.formats.saved_model import (
    SAVED_MODEL_FILENAME_PB,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
    AssetFolder,
    saved_model_message,
)
from headrace.formats.saved_model_load import LoadedFunction, LoadedSignature, SignatureMap
from headrace.formats.saved_model_options import SaveOptions
from headrace.formats.saved_objects import (
    AssetFile,
    BareFunction,
    Constant,
    SavedNode,
    SavedObjects,
    attributes_of,
    is_function,
    traces_of,
    variable_handles,
)
from headrace.formats.saved_tables import entries_of, entry_dtypes, is_table
from headrace.formats.saver_nodes import Saved, SavedTable, add_saver_for
from headrace.formats.structured_values import encode_structure
from headrace.formats.tensor_proto import to_message
from headrace.functions.concrete_function import ConcreteFunction
from headrace.functions.function import BoundFunction, Function
from headrace.ops.state.resource_state import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE
from headrace.variables.variable import Variable
from headrace.wire.graph_files import write_bytes
from headrace.wire.streams import os_errors
from headrace.wire.tensor_bundle import BundleWriter

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    from headrace.core.func_graph import FuncGraph

__all__ = ["save"]

_KEY = "/.ATTRIBUTES/VARIABLE_VALUE"
_TABLE_KEY = "/.ATTRIBUTES/table"


def save(
    obj: object,
    export_dir: Any,
    signatures: object = None,
    options: SaveOptions | None = None,
) -> None:
    """Write an object.

    ``signatures``: a function, or functions by name; a ``tf.function`` needs an input_signature.
    """
    if is_function_graph(get_default_graph()):
        raise AssertionError(
            "tf.saved_model.save is not supported inside a traced @tf.function. Move the call to "
            "the outer eagerly-executed context."
        )
    if not isinstance(obj, Module) and not hasattr(obj, "__dict__"):
        raise ValueError(f"Expected an object with attributes (a tf.Module), got {obj!r}")
    given = vars(obj).get("signatures")
    if given is not None and not isinstance(given, SignatureMap):
        raise ValueError(
            "Tried to overwrite the attribute 'signatures' of the object, which stands for the "
            "functions that a saved model is served by: give them to save(signatures=...)"
        )
    folder = os.fspath(export_dir)
    if signatures is None:
        signatures = _declared(obj)
    writer = _Writer(obj, _signatures(signatures))
    os.makedirs(os.path.join(folder, VARIABLES_DIRECTORY), exist_ok=True)
    writer.write_variables(os.path.join(folder, VARIABLES_DIRECTORY, VARIABLES_FILENAME))
    message = saved_model_message()
    message.saved_model_schema_version = 1
    meta = message.meta_graphs.add()
    writer.fill(meta)
    writer.add_aliases(meta, {} if options is None else options.function_aliases)
    writer.copy_assets(folder, meta)
    write_bytes(
        os.path.join(folder, SAVED_MODEL_FILENAME_PB), message.SerializeToString(deterministic=True)
    )


def _declared(obj: object) -> Any:
    """The signature of an object for which none is given: its only function that declares what it
    takes, or ``_default_save_signature``.
    """
    own = dict(attributes_of(obj))
    if "_default_save_signature" in own:
        return own["_default_save_signature"]
    found = [
        f
        for f in own.values()
        if is_function(f) and getattr(f, "input_signature", None) is not None
    ]
    return found[0] if len(found) == 1 else None


def _signatures(given: object) -> dict[str, ConcreteFunction]:
    if given is None:
        return {}
    named = dict(given) if isinstance(given, Mapping) else {"serving_default": given}
    return {k: _concrete(f) for k, f in named.items()}


def _concrete(function: object) -> ConcreteFunction:
    if isinstance(function, ConcreteFunction):
        return function
    if isinstance(function, LoadedSignature):
        return function.concrete
    if isinstance(function, LoadedFunction):
        return function.get_concrete_function()
    if isinstance(function, (Function, BoundFunction)):
        if function.input_signature is None and len(traces_of(function)) == 1:
            return traces_of(function)[0]
        return function.get_concrete_function()
    raise ValueError(
        f"Expected a TensorFlow function for which to generate a signature, but got {function!r}"
    )


class _Writer:
    def __init__(self, root: object, signatures: dict[str, ConcreteFunction]) -> None:
        self.signatures = signatures
        self.objects = SavedObjects(root, signatures.values())
        self.library = Library()
        self.names: dict[int, str] = {}
        #: The node of the plain graph for each variable, table, asset and constant, by number.
        self.sources: dict[int, str] = {}
        #: For each asset the node of the plain graph that reads its file's name after loading.
        self.names_read: dict[int, str] = {}

    # files --------------------------------------------------------------------------------------
    def write_variables(self, prefix: str) -> None:
        """The checkpoint of the object's variables and changing tables."""
        from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

        graph = TrackableObjectGraph()
        items: list[tuple[str, Any]] = []
        for node in self.objects.nodes:
            message = graph.nodes.add()
            for name, child in node.children:
                message.children.add(node_id=child, local_name=name)
            if isinstance(node.value, Variable):
                key = node.path + _KEY
                message.attributes.add(
                    name="VARIABLE_VALUE",
                    full_name=node.value.name.partition(":")[0],
                    checkpoint_key=key,
                )
                items.append((key, node.value.numpy()))
            elif is_table(node.value) and entry_dtypes(node.value) is not None:
                key = node.path + _TABLE_KEY
                message.attributes.add(name="table", full_name="", checkpoint_key=key)
                keys, values = entries_of(node.value)
                items += [(f"{key}-keys", keys), (f"{key}-values", values)]
        with os_errors(prefix), BundleWriter(prefix) as writer:
            blob = np.empty((), object)
            blob[()] = graph.SerializeToString(deterministic=True)
            for name, value in sorted([("_CHECKPOINTABLE_OBJECT_GRAPH", blob), *items]):
                writer.add(name, value)

    def copy_assets(self, folder: str, meta: MetaGraphDef) -> None:
        """Copy vocabulary files beside the model, and tell the loaders of TF 1 about them."""
        assets = AssetFolder(folder)
        for number, node in self.objects.assets:
            asset = meta.asset_file_def.add(filename=assets.copy(node.value.path))
            asset.tensor_info.name = f"{self.sources[number]}:0"
            index = len(meta.asset_file_def) - 1
            meta.object_graph_def.nodes[number].asset.asset_file_def_index = index

    def add_aliases(self, meta: MetaGraphDef, aliases: Mapping[str, object]) -> None:
        """Names by which tools find functions, for each of their traces."""
        for alias, function in aliases.items():
            found = [function] if isinstance(function, ConcreteFunction) else traces_of(function)
            for concrete in found:
                if id(concrete) not in self.names:
                    raise ValueError(
                        f"function_aliases: {alias!r} is a function that the saved object does not "
                        "hold"
                    )
                meta.meta_info_def.function_aliases[self.names[id(concrete)]] = alias

    # the MetaGraph --------------------------------------------------------------------------------
    def fill(self, meta: MetaGraphDef) -> None:
        objects = meta.object_graph_def
        functions = meta.graph_def.library
        meta.graph_def.versions.producer = GRAPH_DEF_VERSION
        for _ in self.objects.nodes:
            objects.nodes.add()
        self._add_sources(meta.graph_def)
        for number, node in enumerate(self.objects.nodes):
            self._object(number, node, objects, functions)
        self._add_table_nodes(meta)
        holder = objects.nodes.add()
        holder.user_object.identifier = "signature_map"
        _version(holder.user_object)
        objects.nodes[0].children.add(node_id=len(objects.nodes) - 1, local_name="signatures")
        for key, concrete in sorted(self.signatures.items()):
            self._signature(meta, key, concrete, holder)
        add_saver_for(meta, self._saved())
        meta.meta_info_def.stripped_op_list.CopyFrom(stripped_op_list(meta.graph_def))
        meta.meta_info_def.tags.append("serve")
        meta.meta_info_def.tensorflow_version = "2.15.0"
        meta.meta_info_def.tensorflow_git_version = "headrace"

    def _saved(self) -> list[Saved | SavedTable]:
        """What the graph's own saver (of TF 1's loader) restores."""
        found: list[Saved | SavedTable] = [
            Saved(
                n.path + _KEY,
                SimpleNamespace(
                    dtype=n.value.dtype,
                    op=SimpleNamespace(name=self.sources[i], type="VarHandleOp"),
                ),
                "",
            )
            for i, n in self.objects.variables
        ]
        for number in self.objects.entry_functions:
            node = self.objects.nodes[number]
            types = [d.as_datatype_enum for d in entry_dtypes(node.value) or ()]
            found.append(SavedTable(node.path + _TABLE_KEY, self.sources[number], *types))
        return sorted(found, key=lambda s: s.name)

    def _object(self, number: int, node: SavedNode, objects: Any, functions: Any) -> None:
        value, message = node.value, objects.nodes[number]
        for name, child in node.children:
            message.children.add(node_id=child, local_name=name)
        if isinstance(value, Variable):
            saved = message.variable
            saved.dtype, saved.trainable = value.dtype.as_datatype_enum, bool(value.trainable)
            saved.name = value.name.partition(":")[0]
            encode_shape(value.shape._plain, saved.shape)
            saved.synchronization = value.synchronization.value
            saved.aggregation = value.aggregation.value
        elif is_function(value):
            self._function(value, message.function, objects, functions)
        elif is_table(value):
            message.resource.SetInParent()
            if number in self.objects.entry_functions:
                saved = message.saveable_objects["table"]
                saved.save_function, saved.restore_function = self.objects.entry_functions[number]
        elif isinstance(value, BareFunction):
            self._bare_function(value.concrete, message.bare_concrete_function, objects, functions)
        elif isinstance(value, Constant):
            message.constant.operation = self.sources[number]
        elif isinstance(value, AssetFile):
            message.asset.SetInParent()
        else:
            message.user_object.identifier = _identifier(value)
            _version(message.user_object)

    def _function(self, function: Any, saved: Any, objects: Any, functions: Any) -> None:
        for concrete in traces_of(function):
            saved.concrete_functions.append(self._described(concrete, objects, functions))
        encode_structure(_arg_spec(function.function_spec), saved.function_spec.fullargspec)
        declared = _plain_structure(function.input_signature)
        encode_structure(declared, saved.function_spec.input_signature)

    def _bare_function(
        self, concrete: ConcreteFunction, saved: Any, objects: Any, functions: Any
    ) -> None:
        names = [_clean(t._op.name) for t in concrete.graph.inputs]
        saved.concrete_function_name = self._described(concrete, objects, functions)
        saved.argument_keywords.extend(names)
        saved.allowed_positional_arguments = len(names)
        spec = inspect.FullArgSpec(names, None, None, None, [], None, {})
        encode_structure(spec, saved.function_spec.fullargspec)
        encode_structure(None, saved.function_spec.input_signature)

    def _described(self, concrete: ConcreteFunction, objects: Any, functions: Any) -> str:
        """The name of a trace, which is written with what it takes from outside and gives."""
        name = self._written(concrete, functions)
        if name not in objects.concrete_functions:
            described = objects.concrete_functions[name]
            described.bound_inputs.extend(self.objects.bound(concrete))
            encode_structure(
                _plain_structure(concrete.structured_input_signature),
                described.canonicalized_input_signature,
            )
            encode_structure(
                _plain_structure(concrete.traced.output_specs), described.output_signature
            )
        return name

    def _written(self, concrete: ConcreteFunction, functions: Any) -> str:
        """The name of a trace in the library, written when first asked for."""
        known = self.names.get(id(concrete))
        if known is None:
            known = self.names[id(concrete)] = (
                f"__inference_{_clean(concrete.graph.name)}_{len(self.names)}"
            )
            graph = concrete.graph
            arguments = [*graph.inputs, *_taken_from_outside(graph)]
            write_function(graph, known, functions.function.add(), self.library, arguments)
        return known

    # the plain graph ------------------------------------------------------------------------------
    def _add_sources(self, graph_def: GraphDef) -> None:
        """A node for each variable, constant and asset."""
        for number, node in self.objects.variables:
            base = _clean(node.value.name.partition(":")[0]) or "Variable"
            made = graph_def.node.add(name=self._free(base), op="VarHandleOp")
            made.attr["dtype"].type = node.value.dtype.as_datatype_enum
            made.attr["shared_name"].s = made.name.encode()
            made.attr["container"].s = b""
            encode_shape(node.value.shape._plain, made.attr["shape"].shape)
            self.sources[number] = made.name
        for base, found in (("Const", self.objects.constants), ("asset_path", self.objects.assets)):
            for number, node in found:
                made = graph_def.node.add(name=self._free(base), op="Const")
                _constant(made, node.value.tensor._static)
                self.sources[number] = made.name

    def _keep_names(self, graph_def: GraphDef) -> list[str]:
        """Loaders of TF 1 tell the name of an asset's file only while they initialize a model:
        variables keep it. Returns the operations that write them.
        """
        writes = []
        for number, _ in self.objects.assets:
            name = self.sources[number]
            kept = graph_def.node.add(name=f"{name}/kept", op=VAR_HANDLE.name)
            kept.attr["shared_name"].s = kept.name.encode()
            kept.attr["container"].s = b""
            encode_shape((), kept.attr["shape"].shape)
            write = graph_def.node.add(name=f"{name}/write", op=ASSIGN_VARIABLE.name)
            read = graph_def.node.add(name=f"{name}/read", op=READ_VARIABLE.name, input=[kept.name])
            write.input.extend([kept.name, name])
            for node in (kept, write, read):
                node.attr["dtype"].type = dtypes.string.as_datatype_enum
            writes.append(write.name)
            self.names_read[number] = read.name
        return writes

    def _free(self, base: str) -> str:
        taken = {source.partition("/")[0] for source in self.sources.values()}
        name, n = base, 0
        while name in taken:
            n += 1
            name = f"{base}_{n}"
        return name

    def _add_table_nodes(self, meta: MetaGraphDef) -> None:
        """The tables, and one operation that fills them all."""
        filled = self._keep_names(meta.graph_def)
        for number, node in self.objects.tables:
            children = dict(node.children)
            name = self._free("table")
            creator = self._child_trace(children["_create_resource"])
            self.sources[number] = self._add_body(meta.graph_def, name, creator)
            initializer = self._child_trace(children["_initialize"])
            filled.append(self._add_call(meta.graph_def, f"{name}/initialize", initializer))
        if filled:
            meta.graph_def.node.add(name="init_tables", op="NoOp", input=[f"^{n}" for n in filled])
            meta.collection_def["saved_model_main_op"].node_list.value.append("init_tables")
            info = meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"]
            info.name = "init_tables"
            info.tensor_shape.unknown_rank = True

    def _child_trace(self, number: int) -> ConcreteFunction:
        return traces_of(self.objects.nodes[number].value)[0]

    def _add_body(self, graph_def: GraphDef, prefix: str, concrete: ConcreteFunction) -> str:
        """The operations of a trace in the plain graph; returns its only result."""
        graph = concrete.graph
        outside = (self.sources[i] for i in self.objects.bound(concrete))
        known = dict(zip(_taken_from_outside(graph), outside))

        def source(tensor: Tensor) -> str:
            return known.get(tensor) or f"{prefix}/{tensor._as_node_def_input()}"

        own = {t._op for t in known}
        for op in graph._ops:
            if op not in own:
                node = graph_def.node.add()
                write_node(op, node, self.library, inputs=lambda o: map(source, o._inputs))
                node.name = f"{prefix}/{op.name}"
                for i, text in enumerate(node.input):
                    if text.startswith("^"):
                        node.input[i] = f"^{prefix}/{text[1:]}"
        return source(concrete.outputs[0])

    def _add_call(self, graph_def: GraphDef, name: str, concrete: ConcreteFunction) -> str:
        """A call, in the plain graph, of a trace without arguments."""
        inputs = [self.sources[i] for i in self.objects.bound(concrete)]
        kinds = [t.dtype.base_dtype for t in _taken_from_outside(concrete.graph)]
        function = self._written(concrete, graph_def.library)
        results = [t.dtype.base_dtype for t in concrete.outputs]
        _call_node(graph_def.node.add(name=name, input=inputs), function, kinds, results)
        return name

    # signatures -----------------------------------------------------------------------------------
    def _signature(
        self,
        meta: MetaGraphDef,
        key: str,
        concrete: ConcreteFunction,
        holder: Any,
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
            [*inputs.values(), *_taken_from_outside(graph)],
            list(outputs),
            list(outputs.values()),
        )
        objects = meta.object_graph_def
        bound = self.objects.bound(concrete)
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
        sources = (self.names_read.get(i, self.sources[i]) for i in bound)
        further = list(zip(sources, _taken_from_outside(graph)))
        self._call(meta, key, name, inputs, outputs, further)

    def _call(
        self,
        meta: MetaGraphDef,
        key: str,
        name: str,
        inputs: dict[str, Tensor],
        outputs: dict[str, Tensor],
        further: list[tuple[str, Tensor]],
    ) -> None:
        """The signature's call in the plain graph; ``further`` arguments come from outside."""
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
            input=[*given, *(source for source, _ in further)],
        )
        kinds = [t.dtype.base_dtype for t in (*inputs.values(), *(t for _, t in further))]
        _call_node(call, name, kinds, [t.dtype.base_dtype for t in outputs.values()])
        for i, (result, tensor) in enumerate(outputs.items()):
            _info(signature.outputs[result], f"{call.name}:{i}", tensor)


def _call_node(
    node: NodeDef, function: str, given: Sequence[dtypes.DType], results: Sequence[dtypes.DType]
) -> None:
    node.op = "StatefulPartitionedCall"
    node.attr["f"].func.name = function
    node.attr["Tin"].list.type.extend([d.as_datatype_enum for d in given])
    node.attr["Tout"].list.type.extend([d.as_datatype_enum for d in results])
    for attr in ("config", "config_proto", "executor_type"):
        node.attr[attr].s = b""


def _taken_from_outside(graph: FuncGraph) -> list[Tensor]:
    """The further arguments of a trace: what it captured, then its variables."""
    return [*graph.internal_captures, *variable_handles(graph)]


def _info(message: Any, name: str, tensor: Tensor) -> None:
    message.name, message.dtype = name, tensor.dtype.base_dtype.as_datatype_enum
    encode_shape(tensor._shape, message.tensor_shape)


def _constant(node: NodeDef, value: Any) -> None:
    to_message(value, None, node.attr["value"].tensor)
    node.attr["dtype"].type = node.attr["value"].tensor.dtype


def _clean(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_")


def _version(user_object: Any) -> None:
    user_object.version.producer = user_object.version.min_consumer = 1


def _identifier(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "trackable_list_wrapper"
    return "trackable_dict_wrapper" if isinstance(value, dict) else "_generic_user_object"


def _named_results(concrete: ConcreteFunction) -> dict[str, Tensor]:
    results = concrete.structured_outputs
    if isinstance(results, Mapping):
        for key, value in results.items():
            if not isinstance(key, str) or not isinstance(value, Tensor):
                raise ValueError(
                    "Got a dictionary containing non-Tensor value or a key that is no string: "
                    f"{key!r}: {value!r} in the output of the function {concrete.graph.name} used "
                    "to generate a SavedModel signature. Dictionaries outputs for functions used "
                    "as signatures should have one Tensor output per string key."
                )
    elif isinstance(results, (list, tuple)) and any(map(nest.is_nested, results)):
        raise ValueError(
            f"Got non-flat outputs '{results}' from '{concrete.graph.name}' for SavedModel "
            "signature. Signatures have one Tensor per output, so to have predictable names Python "
            "functions used to generate these signatures should avoid outputting Tensors in nested "
            "structures."
        )
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
