"""``tf.saved_model.load`` of TF 2: the objects of a SavedModel, with their variables and functions.

    model = load("/tmp/model")
    model(x); model.signatures["serving_default"](x=x); model.variables

Objects come back as :class:`LoadedObject`, lists and dicts as such, functions as callables that
choose among the traces that were saved. A function is built (its body becomes a graph) when it is
first called. Code is never loaded: what an object's Python class did besides its saved functions is
gone.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.specs import component_specs, from_components
from headrace.eager.eager_context import eager_mode
from headrace.eager.module import Module
from headrace.formats.function_calls import FunctionLibrary
from headrace.formats.registered_gradients import register_saved_gradients
from headrace.formats.saved_assets import SavedAsset
from headrace.formats.saved_model import SavedModelLoader, asset_path
from headrace.formats.saved_model_options import LoadOptions
from headrace.formats.structured_values import decode_structure
from headrace.formats.tensor_proto import to_array, to_shape
from headrace.functions.concrete_function import ConcreteFunction
from headrace.functions.function_signature import Signature
from headrace.functions.tracing import TracedFunction
from headrace.ops.control.dependencies import group
from headrace.ops.state.lookup_tables import import_entries
from headrace.variables.variable import Variable, VariableAggregation, VariableSynchronization
from headrace.wire.tensor_bundle import BundleReader

__all__ = ["LoadedFunction", "LoadedObject", "LoadedSignature", "SignatureMap", "load_v2"]


class LoadedResource(Module):
    """A table of a SavedModel. Its saved functions make it and fill it when the model is loaded."""

    def __init__(self) -> None:
        super().__init__(name="loaded_resource")
        self.resource_handle: Any = None
        #: Of a table whose entries are in the checkpoint: the types of keys and values.
        self.entry_dtypes: tuple[DType, DType] | None = None

    def make(self) -> None:
        """Make the resource, empty."""
        create = self.__dict__.get("_create_resource")
        if create is None:
            raise ValueError("a resource of the model has no function that makes it")
        self.resource_handle = create()

    def fill(self, keys: Any, values: Any) -> None:
        """Give a table that can be changed the entries of the checkpoint."""
        self.entry_dtypes = (as_dtype(keys.dtype), as_dtype(values.dtype))
        _at_initialization(lambda: import_entries(self.resource_handle, keys, values))

    def initialize(self) -> None:
        """Run the saved initializer (of a static table: it reads its vocabulary)."""
        found = self.__dict__.get("_initialize")
        if found is not None:
            _at_initialization(found)


def _at_initialization(call: Callable[[], Any]) -> None:
    """Eagerly now; in a graph when its tables are initialized."""
    graph = get_default_graph()
    before = len(graph._ops)
    call()
    if not graph._is_eager:
        made = group(*graph._ops[before:], name="initialize_table")
        graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)


class _Computed:
    """A property of modules that hides behind what was saved under its name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        return vars(Module)[self._name].__get__(instance, owner)


class LoadedObject(Module):
    """An object of a SavedModel: its attributes are what was saved."""

    variables, trainable_variables, submodules = _Computed(), _Computed(), _Computed()

    def __init__(self) -> None:
        super().__init__(name="loaded_object")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self.__dict__.get("__call__")
        if found is None:
            raise TypeError(
                "This object was not callable when it was saved: call one of its "
                "functions, or a signature "
                f"({', '.join(self.__dict__.get('signatures', {})) or 'there is none'})"
            )
        return found(*args, **kwargs)


class SignatureMap(dict[str, Any]):
    """The functions that a model is served by, by name; nobody changes them."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError(f"the signatures of a model cannot be changed: {key!r}")


def load_v2(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """Load a SavedModel as objects. Of a TF-1 SavedModel the signatures can be called.

    ``export_dir`` is the directory; ``tags`` choose a graph where there are several (a TF-1 model:
    "serve" by default). A model saved by TF 2 comes back with its variables and functions as
    attributes, ready to be called; ``signatures`` has the functions for serving by name.
    ``options`` is a ``tf.saved_model.LoadOptions``. In a graph the variables and tables are the
    graph's: run ``global_variables_initializer`` and ``tables_initializer``, which give them what
    was saved.
    """
    options = options or LoadOptions()
    loader = SavedModelLoader(export_dir)
    metas = loader.saved_model.meta_graphs
    if tags is not None:
        meta = loader.get_meta_graph_def_from_tags(tags)
    elif len(metas) == 1:
        meta = metas[0]
    else:
        raise ValueError(
            "Importing a SavedModel with `tf.saved_model.load` requires a `tags=` argument if "
            f"there is more than one MetaGraph. Got `tags=None`, but there are {len(metas)} "
            f"MetaGraphs with the tags {[sorted(m.meta_info_def.tags) for m in metas]}."
        )
    if get_default_graph()._is_function:  # objects outlive the function that is being traced
        with eager_mode():
            return _loaded(loader, meta, options)
    return _loaded(loader, meta, options)


def _loaded(loader: SavedModelLoader, meta: Any, options: LoadOptions) -> Any:
    if not meta.object_graph_def.nodes:
        from headrace.formats.saved_model_v1_objects import load_v1_objects

        return load_v1_objects(loader, meta)
    return _Objects(loader, meta, options).root()


class _Objects:
    def __init__(self, loader: SavedModelLoader, meta: Any, options: LoadOptions) -> None:
        self.loader = loader
        self.options = options
        #: Where variables and tables are: the eager context, or a graph that is being built.
        self.graph = get_default_graph()
        self.meta = meta
        self.saved = meta.object_graph_def
        self.library = FunctionLibrary(
            meta.graph_def.library.function, meta.graph_def.library.gradient
        )
        self.values: dict[int, Any] = {}
        self.tables: dict[tuple[int, str], Any] = {}
        if not options.experimental_skip_checkpoint:
            self.values, self.tables = _checkpoint_values(loader.variables_path, self.saved)
        self.made: dict[int, Any] = {}
        self.concrete: dict[str, ConcreteFunction] = {}
        registered = meta.graph_def.library.registered_gradients
        register_saved_gradients(self.library, registered, self.saved, self._bound)

    def root(self) -> Any:
        for i, node in enumerate(self.saved.nodes):
            self.made[i] = self._object(i, node)
        for i, node in enumerate(self.saved.nodes):
            self._connect(self.made[i], node)
        self._make_resources()
        root = self.made[0]
        root.__dict__.setdefault("signatures", SignatureMap())
        root.__dict__["tensorflow_version"] = self.meta.meta_info_def.tensorflow_version
        root.__dict__["graph_debug_info"] = None
        self._initialize(root)
        return root

    # objects --------------------------------------------------------------------------------------
    def _object(self, i: int, node: Any) -> Any:
        kind = node.WhichOneof("kind")
        if kind == "variable":
            return self._variable(i, node.variable)
        if kind == "function":
            return LoadedFunction(self, node.function)
        if kind == "bare_concrete_function":
            return LoadedSignature(self, node.bare_concrete_function)
        if kind == "constant":
            return convert_to_tensor(self._constant(node.constant.operation))
        if kind == "asset":
            return self._asset(node.asset.asset_file_def_index)
        if kind == "captured_tensor":
            if node.captured_tensor.concrete_function:  # register_saved_gradients finds it there
                return _Unsupported(f"tensor '{node.captured_tensor.name}' of a function's body")
            return convert_to_tensor(self._constant(node.captured_tensor.name.partition(":")[0]))
        if kind == "resource":
            return LoadedResource()
        if kind == "user_object":
            return _CONTAINERS.get(node.user_object.identifier, LoadedObject)()
        return _Unsupported(kind or "object")

    def _variable(self, i: int, saved: Any) -> Any:
        dtype = as_dtype(saved.dtype)
        value = self.values.get(i)
        shape = to_shape(saved.shape)
        if value is None:
            self._check_missing(saved.name)
            value = np.zeros([d or 0 for d in shape or ()], dtype.np_dtype)
        made = Variable(
            value,
            trainable=saved.trainable,
            name=saved.name.rpartition("/")[2] or None,
            dtype=dtype,
            shape=shape,
            synchronization=VariableSynchronization(saved.synchronization),
            aggregation=VariableAggregation(saved.aggregation),
            use_resource=True,
        )
        if not self.graph._is_eager:  # a program that trains the model lists its variables
            trained = self.graph.get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
            trained[:] = [v for v in trained if v is not made]
        return made

    def _check_missing(self, name: str) -> None:
        options = self.options
        if not (options.allow_partial_checkpoint or options.experimental_skip_checkpoint):
            raise AssertionError(
                f"the checkpoint of the SavedModel has no value for the variable '{name}'; load "
                "with tf.saved_model.LoadOptions(allow_partial_checkpoint=True) to get zeros"
            )

    def _constant(self, name: str) -> np.ndarray[Any, Any]:
        for node in self.meta.graph_def.node:
            if node.name == name and node.op == "Const":
                return to_array(node.attr["value"].tensor)
        raise ValueError(f"the constant '{name}' is not in the model's graph")

    def _asset(self, index: int) -> Any:
        if not 0 <= index < len(self.meta.asset_file_def):
            raise ValueError(f"the model has no asset number {index}")
        name = self.meta.asset_file_def[index].filename
        return SavedAsset(asset_path(self.loader.export_dir, name))

    def _connect(self, target: object, node: Any) -> None:
        for child in node.children:
            if child.node_id not in self.made:
                raise ValueError(f"the model's object '{child.local_name}' is not there")
            value = self.made[child.node_id]
            if isinstance(target, list):
                _put(target, child.local_name, value)
            elif isinstance(target, dict):
                dict.__setitem__(target, child.local_name, value)
            elif isinstance(target, (LoadedObject, LoadedResource)):
                target.__dict__[child.local_name] = value

    def _make_resources(self) -> None:
        """Tables are made, get the entries that the checkpoint has, and are initialized."""
        found = [(i, r) for i, r in self.made.items() if isinstance(r, LoadedResource)]
        for _, resource in found:
            resource.make()
        for i, resource in found:
            if (i, "-keys") in self.tables:
                resource.fill(self.tables[i, "-keys"], self.tables[i, "-values"])
        for _, resource in found:
            resource.initialize()

    def _initialize(self, root: object) -> None:
        """Run the initializer that the model was saved with, if any."""
        found = root.__dict__.get("__saved_model_init_op")
        initializer = getattr(found, "__dict__", {}).get("init_op") if found is not None else None
        if callable(initializer):
            _at_initialization(initializer)

    # functions ------------------------------------------------------------------------------------
    def function(self, name: str, signature: Signature) -> ConcreteFunction:
        """The trace of that name, built when it is first wanted."""
        known = self.concrete.get(name)
        if known is None:
            if name not in self.saved.concrete_functions:
                raise ValueError(f"the function '{name}' was not saved")
            with self.graph.as_default():
                known = self.concrete[name] = self._build(name, signature)
        return known

    def _build(self, name: str, signature: Signature) -> ConcreteFunction:
        saved = self.saved.concrete_functions[name]
        pair = decode_structure(saved.canonicalized_input_signature)
        args, kwargs = pair if isinstance(pair, tuple) and len(pair) == 2 else ((), {})
        specs = component_specs((args, kwargs))
        title = name.removeprefix("__inference_").rpartition("_")[0] or name
        graph = FuncGraph(title, None if self.graph._is_eager else self.graph)
        with graph.as_default():
            inputs = [graph.add_input(s.dtype, s.shape, s.name or "arg") for s in specs]
            captured = [graph.capture(self._bound(i)) for i in saved.bound_inputs]
            results, effects = self.library.instantiate(name, graph, [*inputs, *captured], "")
            graph.finish(results)
            graph.control_outputs = list(dict.fromkeys([*effects, *graph.control_outputs]))
        wanted = decode_structure(saved.output_signature)
        flat = component_specs(wanted)
        if len(flat) != len(results):
            raise ValueError(
                f"the function '{name}' gives {len(results)} results, {len(flat)} are declared"
            )
        for tensor, spec in zip(results, flat):
            tensor._shape = spec.shape._plain if tensor._shape is None else tensor._shape
        with graph.as_default():
            packed = None if wanted is None else from_components(wanted, results)
            given = from_components((args, kwargs), inputs)
        graph.structured_outputs = packed
        return ConcreteFunction(
            TracedFunction(graph, given, packed), signature, tuple(args), dict(kwargs)
        )

    def _bound(self, i: int) -> Any:
        """What a function takes from outside: the handle of a variable, or a constant."""
        value = self.made.get(i)
        if isinstance(value, Variable):
            return value.handle
        if isinstance(value, LoadedResource):
            return value.resource_handle
        if isinstance(value, SavedAsset):
            return value.asset_path
        if value is None or isinstance(value, _Unsupported):
            raise NotImplementedError(f"the function uses a {value}, which Headrace cannot load")
        return value


def _put(target: list[Any], number: str, value: Any) -> None:
    """An element of a list; what was no object of TensorFlow is None."""
    at = int(number) if number.isdecimal() and len(number) < 6 else -1
    if at < 0:
        return
    target.extend([None] * (at + 1 - len(target)))
    target[at] = value


class _Unsupported:
    """A part of a model that cannot be loaded (an iterator, a resource of later TensorFlows).

    An error when a function needs it.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"{self.kind} of the saved model"


_CONTAINERS: dict[str, Any] = {
    "trackable_list_wrapper": list,
    "trackable_tuple_wrapper": list,
    "trackable_dict_wrapper": dict,
    "signature_map": SignatureMap,
}


def _python_signature(spec: Any, is_method: bool = False) -> Signature:
    """The parameters of a saved function, from its FullArgSpec."""
    kinds = inspect.Parameter
    lost = [f for f in inspect.FullArgSpec._fields[:6] if not hasattr(spec, f)]
    if lost:
        raise ValueError(f"a saved function's parameters are damaged: {', '.join(lost)}")
    names = list(spec.args or ())[1 if is_method else 0 :]
    defaults = list(spec.defaults or ())
    first = len(names) - len(defaults)
    parameters = [
        kinds(
            n,
            kinds.POSITIONAL_OR_KEYWORD,
            default=defaults[i - first] if i >= first else kinds.empty,
        )
        for i, n in enumerate(names)
    ]
    if spec.varargs:
        parameters.append(kinds(spec.varargs, kinds.VAR_POSITIONAL))
    for name in spec.kwonlyargs or ():
        default = (spec.kwonlydefaults or {}).get(name, kinds.empty)
        parameters.append(kinds(name, kinds.KEYWORD_ONLY, default=default))
    if spec.varkw:
        parameters.append(kinds(spec.varkw, kinds.VAR_KEYWORD))

    def call(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a saved function has no Python code")

    vars(call)["__signature__"] = inspect.Signature(parameters)
    return Signature(call)


class LoadedFunction:
    """A ``tf.function`` of a SavedModel: chooses among its saved traces by the arguments."""

    def __init__(self, objects: _Objects, saved: Any) -> None:
        self._objects = objects
        self._names = list(saved.concrete_functions)
        spec = saved.function_spec
        self._signature = _python_signature(decode_structure(spec.fullargspec), spec.is_method)
        #: What the function declared that it takes, or None.
        self.input_signature = decode_structure(spec.input_signature)

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The saved traces."""
        return [self._objects.function(n, self._signature) for n in self._names]

    @property
    def function_spec(self) -> Signature:
        """The parameters that the Python function had."""
        return self._signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        reasons = []
        for concrete in self.concrete_functions:
            try:
                tensors = concrete._structured(args, kwargs)
            except (TypeError, ValueError) as error:
                reasons.append(f"  {concrete._signature_text()}: {error}".splitlines()[0])
                continue
            return concrete.call_tensors(tensors)
        listed = "\n".join(reasons)
        raise ValueError(
            "Could not find matching concrete function to call loaded from the "
            f"SavedModel. Got:\n  Positional arguments {args}\n"
            f"  Keyword arguments: {kwargs}\n\n Expected these arguments to match one of "
            f"the following:\n{listed}"
        )

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The saved trace for these specs or values (the only one, if none are given)."""
        found = self.concrete_functions
        if not args and not kwargs and len(found) == 1:
            return found[0]
        for concrete in found:
            try:
                concrete._structured(args, kwargs)
            except (TypeError, ValueError):
                continue
            return concrete
        raise ValueError(
            f"none of the {len(found)} saved traces fits the arguments {args} {kwargs}"
        )

    def __repr__(self) -> str:
        return f"<LoadedFunction with {len(self._names)} traces>"


class LoadedSignature:
    """One saved trace with named arguments: what ``model.signatures`` holds."""

    def __init__(self, objects: _Objects, saved: Any) -> None:
        self._objects = objects
        self._name = saved.concrete_function_name
        self._keywords = list(saved.argument_keywords)
        self._positional = saved.allowed_positional_arguments
        spec = (
            decode_structure(saved.function_spec.fullargspec)
            if saved.HasField("function_spec")
            else None
        )
        self._signature = (
            _python_signature(spec) if spec is not None else _keywords_only(self._keywords)
        )

    @property
    def concrete(self) -> ConcreteFunction:
        return self._objects.function(self._name, self._signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with tensors, by position as far as that was allowed when it was saved, or by
        name.
        """
        if len(args) > max(self._positional, len(self._keywords) == 1):
            raise TypeError(
                f"{self._name} takes {self._positional} positional arguments but got {len(args)}"
            )
        given = {**dict(zip(self._keywords, args)), **kwargs}
        concrete = self.concrete
        missing = [k for k in self._keywords if k not in given]
        extra = [k for k in given if k not in self._keywords]
        if missing or extra:
            raise TypeError(
                f"{self._name}: missing arguments {missing}, unexpected arguments "
                f"{extra}; it takes {self._keywords}"
            )
        tensors = []
        for name, placeholder in zip(self._keywords, concrete.graph.inputs):
            tensors.append(convert_to_tensor(given[name], placeholder.dtype))
        return concrete.call_tensors(tensors)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.concrete, name)

    def __repr__(self) -> str:
        return f"<LoadedSignature {self._name}({', '.join(self._keywords)})>"


def _keywords_only(names: Sequence[str]) -> Signature:
    import collections

    spec = collections.namedtuple("spec", "args varargs varkw defaults kwonlyargs kwonlydefaults")
    return _python_signature(spec((), None, None, None, list(names), None))


# values -------------------------------------------------------------------------------------------


def _checkpoint_values(
    prefix: str, saved: Any
) -> tuple[dict[int, Any], dict[tuple[int, str], Any]]:
    """Values of variables by the number of their object, and keys and values of tables.

    The checkpoint has an object graph of its own, matched by names.
    """
    out: dict[int, Any] = {}
    tables: dict[tuple[int, str], Any] = {}
    if not os.path.exists(f"{prefix}.index"):
        return out, tables
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    reader = BundleReader(prefix)
    if "_CHECKPOINTABLE_OBJECT_GRAPH" not in reader:
        return out, tables
    graph = TrackableObjectGraph()
    graph.ParseFromString(reader.read("_CHECKPOINTABLE_OBJECT_GRAPH").item())
    seen: set[int] = set()
    stack = [(0, 0)]
    while stack:
        here, there = stack.pop()
        if here in seen or here >= len(saved.nodes) or there >= len(graph.nodes):
            continue
        seen.add(here)
        for attribute in graph.nodes[there].attributes:
            if (
                attribute.name == "VARIABLE_VALUE"
                and saved.nodes[here].WhichOneof("kind") == "variable"
            ):
                out[here] = reader.read(attribute.checkpoint_key)
            for part in ("-keys", "-values"):
                if attribute.checkpoint_key + part in reader:
                    tables[here, part] = reader.read(attribute.checkpoint_key + part)
        names: Mapping[str, int] = {c.local_name: c.node_id for c in graph.nodes[there].children}
        stack += [
            (c.node_id, names[c.local_name])
            for c in saved.nodes[here].children
            if c.local_name in names
        ]
    return out, tables
