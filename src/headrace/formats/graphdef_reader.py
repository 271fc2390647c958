"""``tf.import_graph_def``: the nodes of a GraphDef become operations of a graph.

    (logits,) = tf.import_graph_def(
        graph_def, input_map={"x:0": x}, return_elements=["logits:0"], name="net"
    )

Nothing of the file is executed. Calls of functions and TF-2 control flow (If, While, Case) are
expanded where they stand (function_calls.py); TF-1 control flow gets its contexts back
(program/flow_structure.py).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import shapes, trace
from headrace.core.call_records import note_library
from headrace.core.convert import convert_to_tensor
from headrace.core.device_spec import DeviceSpec
from headrace.core.graph import Graph, get_default_graph
from headrace.core.op_rollback import all_or_nothing
from headrace.core.tensor import Operation, Tensor
from headrace.formats.attr_values import FunctionName, decode
from headrace.formats.function_calls import FunctionLibrary
from headrace.formats.graphdef_nodes import NodeImporter, check_ops, op_definition
from headrace.formats.graphdef_writer import (
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    TF_VERSION,
)
from headrace.ops.array.basic import PLACEHOLDER

if TYPE_CHECKING:
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    from headrace.data.functions.user_functions import DataFunction

#: Names of nodes, one in a line; ``>`` is TensorFlow 2's.
_VALID_NAMES = re.compile(
    r"[A-Za-z0-9.][A-Za-z0-9_.\\\-/>]*(?:\n[A-Za-z0-9.][A-Za-z0-9_.\\\-/>]*)*"
)

__all__ = ["import_graph_def", "is_graph_def", "parse_graph_def", "read_graph_def"]


def is_graph_def(message: object) -> bool:
    descriptor = getattr(message, "DESCRIPTOR", None)
    return getattr(descriptor, "full_name", "").rpartition(".")[2] == "GraphDef"


def parse_graph_def(data: bytes, where: str = "the data") -> GraphDef:
    """A GraphDef from its bytes, binary or text. ValueError if it is neither."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    message = GraphDef()
    try:
        message.ParseFromString(data)
        if message.ByteSize() and not message.node and not message.HasField("library"):
            raise DecodeError("no nodes")
        return message
    except DecodeError as error:
        reason = error
    try:
        return text_format.Parse(data.decode("utf-8"), GraphDef())
    except (UnicodeDecodeError, text_format.ParseError, RecursionError):
        raise ValueError(
            f"{where} does not hold a GraphDef, neither binary ({reason}) nor text "
            f"({len(data)} bytes)"
        ) from None


def read_graph_def(path: str | os.PathLike[str]) -> GraphDef:
    """The GraphDef in a file, binary or text."""
    with open(os.fspath(path), "rb") as file:
        return parse_graph_def(file.read(), f"'{os.fspath(path)}'")


def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: object = None,
    producer_op_list: object = None,
) -> list[Any] | None:
    """Add the nodes of ``graph_def`` to the default graph, below the name scope ``name`` ("import"
    if None; "" for none).

    ``input_map`` connects inputs of nodes ("x:0", "x", "^x") to tensors of the graph instead.
    ``return_elements`` names operations ("x") and tensors ("x:0") that are returned.
    ``producer_op_list``, the OpList of the program that wrote the graph, tells the defaults of
    attributes that are not known here. ``op_dict`` is accepted for old callers; TF 1.15 ignores it
    too.
    """
    if not is_graph_def(graph_def):
        raise TypeError("graph_def must be a GraphDef proto.")
    mapped = _checked_map(input_map)
    wanted = _checked_elements(return_elements)
    graph = get_default_graph()
    if graph._is_eager:
        raise RuntimeError(
            "import_graph_def needs a graph to add to: use `with "
            "tf.Graph().as_default():` or tf.compat.v1.wrap_function"
        )
    _check_versions(graph_def.versions)
    if graph_def.versions.producer > GRAPH_DEF_VERSION:
        graph._has_later_types = True
    prefix, scope = "", None
    if name != "":
        with graph.name_scope("import" if name is None else name) as scope:
            prefix = scope.rstrip("/")
    if name == "" and not all(isinstance(v, (Tensor, Operation)) for v in mapped.values()):
        raise ValueError(
            "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor "
            "values. Try calling tf.convert_to_tensor() on `input_map` values before calling "
            "tf.import_graph_def()."
        )
    with graph.name_scope(f"{prefix}/" if prefix else None):
        values = _converted(mapped, graph)
    importer = _GraphImporter(graph, graph_def, prefix, values, producer_op_list)
    importer.frames = trace.capture(2)
    with all_or_nothing(graph):
        importer.run(list(graph_def.node))
        found = None if wanted is None else [importer.element(e) for e in wanted]
    unused = [
        k for k in mapped if k not in importer.used and k[:1] != "^" and not importer.has_output(k)
    ]
    if unused:
        raise ValueError(
            "Attempted to map inputs that were not found in graph_def: "
            f"[{', '.join(map(str, unused))}]"
        )
    return found


def _checked_map(input_map: Mapping[str, Any] | None) -> dict[str, Any]:
    if input_map is None:
        return {}
    if not isinstance(input_map, Mapping) or not all(
        isinstance(k, (str, bytes)) for k in input_map
    ):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    return {k.decode() if isinstance(k, bytes) else k: v for k, v in input_map.items()}


def _checked_elements(elements: Sequence[str] | None) -> list[str] | None:
    if elements is None:
        return None
    if not all(isinstance(e, (str, bytes)) for e in elements):
        raise TypeError("return_elements must be a list of strings.")
    return [e.decode() if isinstance(e, bytes) else e for e in elements]


def _check_versions(versions: Any) -> None:
    if versions.min_consumer > GRAPH_DEF_VERSION and versions.min_consumer > versions.producer:
        raise ValueError(
            f"GraphDef min consumer version {versions.min_consumer} above current version "
            f"{GRAPH_DEF_VERSION} for TensorFlow {TF_VERSION}.  Please upgrade TensorFlow."
        )
    if versions.producer < GRAPH_DEF_VERSION_MIN_PRODUCER:
        raise ValueError(
            f"GraphDef producer version {versions.producer} below min producer "
            f"{GRAPH_DEF_VERSION_MIN_PRODUCER} supported by TensorFlow {TF_VERSION}.  "
            "Please regenerate your graph."
        )
    if GRAPH_DEF_VERSION in versions.bad_consumers:
        raise ValueError(
            f"GraphDef disallows consumer version {GRAPH_DEF_VERSION}.  Please "
            "upgrade TensorFlow: this version is likely buggy."
        )


def _converted(mapped: dict[str, Any], graph: Graph) -> dict[str, Any]:
    out: dict[str, Any] = {}
    given = {k: v for k, v in mapped.items() if not isinstance(v, (Tensor, Operation))}
    if given:
        with graph.name_scope("_inputs"):
            given = {k: convert_to_tensor(v) for k, v in given.items()}
    for key, value in mapped.items():
        found = given.get(key, value)
        if key.startswith("^"):
            out[key] = found if isinstance(found, Operation) else convert_to_tensor(found)._op
        else:
            out[key] = convert_to_tensor(found)
    return out


#: From this version of GraphDef on a placeholder's shape [] means a scalar; before, any shape.
_SCALAR_SHAPES = 24


def _of_any_shape(node: NodeDef) -> NodeDef:
    """A placeholder of an old graph without its empty shape; other nodes as they are."""
    if node.op != PLACEHOLDER.name or "shape" not in node.attr or node.attr["shape"].shape.dim:
        return node
    made = type(node)()
    made.CopyFrom(node)
    made.attr["shape"].shape.unknown_rank = True
    return made


class _GraphImporter(NodeImporter):
    """Nodes whose inputs are ``name``, ``name:1`` and ``^name``."""

    def __init__(
        self,
        graph: Graph,
        message: GraphDef,
        prefix: str,
        mapped: dict[str, Tensor | Operation],
        producer_ops: object,
    ) -> None:
        self.library = FunctionLibrary(message.library.function, message.library.gradient)
        super().__init__(graph, self.library.call, self.library.is_call)
        self.prefix = prefix
        self.mapped = {k if ":" in k or k[:1] == "^" else f"{k}:0": v for k, v in mapped.items()}
        self.given = {k if ":" in k or k[:1] == "^" else f"{k}:0": k for k in mapped}
        self.keeps_tensors = not mapped
        self.used: set[str] = set()
        self.names: set[str] = set()  # of the nodes of the file
        self.parsed: dict[str, tuple[str, int]] = {}
        self.producer_defaults = _defaults_of(producer_ops)
        self.version: int = message.versions.producer

    def run(self, nodes: Sequence[Any]) -> None:
        check_ops(nodes, self.is_call)
        self.names = _checked_names([n.name for n in nodes])
        devices = {n.device for n in nodes}
        for device in devices:
            DeviceSpec.from_string(device)
        if self.producer_defaults:
            nodes = [self._without_defaults(n) for n in nodes]
        if self.version < _SCALAR_SHAPES:
            nodes = [_of_any_shape(n) for n in nodes]
        self.build(nodes)
        self._keep_library()
        if devices != {""}:
            self._place(nodes)
        for name, message in self.known_shapes:
            _narrow(self.ops[name], decode(message, "list(shape)"))

    def _place(self, nodes: Sequence[Any]) -> None:
        """What is colocated with another operation has the device of that one, not its own."""
        pairs = [
            (self.ops[n.name], [g[5:].decode() for g in n.attr["_class"].list.s])
            for n in nodes
            if "_class" in n.attr and n.name in self.ops
        ]
        pairs = [(op, [g for g in groups if self.ops.get(g) is not op]) for op, groups in pairs]
        moved = [(op, groups) for op, groups in pairs if groups]
        for op, _ in moved:
            op._device = ""
        for op, groups in moved:
            found = [self.ops[g]._device for g in groups if g in self.ops]
            op._device = next((d for d in found if d), "")

    def function_value(self, function: FunctionName, node: NodeDef) -> DataFunction:
        return self.library.data_function(function, node)

    def _keep_library(self) -> None:
        """The graph has the functions of the file from now on, as in TensorFlow."""
        library = self.library
        if library.functions and not self.graph._is_function:
            library.keep(library.functions)
            note_library(self.graph, library.copies, library.gradients)

    def listed_inputs(
        self, texts: list[str]
    ) -> tuple[tuple[Tensor, ...], tuple[Operation, ...]] | None:
        if self.mapped:
            return None
        inputs: list[Tensor] = []
        controls: list[Operation] = []
        ops, tensors = self.ops, self.tensors
        for text in texts:
            tensor = tensors.get(text)
            if tensor is None:
                name, _, index = text.partition(":")
                op = ops.get(name[1:] if name[:1] == "^" else name)
                if op is not None and name[:1] == "^" and not index:
                    controls.append(op)
                    continue
                if op is None or not index.isdecimal() or int(index) >= len(op._outputs):
                    return None  # to come, or wrong: the long way tells
                tensor = tensors[text] = op._outputs[int(index)]
            if controls:
                return None
            inputs.append(tensor)
        return tuple(inputs), tuple(controls)

    def sources(self, node: NodeDef) -> list[tuple[str, int]]:
        parsed = self.parsed
        out: list[tuple[str, int]] = []
        for text in node.input:
            found = parsed.get(text)
            if found is None:
                found = parsed[text] = _parse_input(text, node.name)
            if out and out[-1][1] < 0 <= found[1]:
                raise ValueError(
                    f"Node '{node.name}': Control dependencies must come after regular dependencies"
                )
            out.append(found)
        return out

    def colocation(self, group: bytes, node: NodeDef) -> bytes:
        if group[:5] == b"loc:@" and group[5:].decode("utf-8", "replace") not in self.names:
            raise ValueError(
                f"Node '{node.name}' expects to be colocated with unknown node "
                f"'{group[5:].decode('utf-8', 'replace')}'"
            )
        return super().colocation(group, node)

    def source_name(self, source: tuple[str, int]) -> str | None:
        return None if self.mapped and _text(source) in self.mapped else source[0]

    def resolve(self, source: tuple[str, int], node: NodeDef) -> Tensor | Operation:
        if self.mapped:
            text = _text(source)
            found = self.mapped.get(text)
            if found is not None:
                self.used.add(self.given[text])
                return found
        op = self.ops[source[0]]
        index = source[1]
        if index < 0:
            return op
        outputs = op._outputs
        if index >= len(outputs):
            raise ValueError(
                f"Node '{node.name}': Connecting to invalid output {index} of source node "
                f"{source[0]} which has "
                f"{len(outputs)} outputs."
            )
        return outputs[index]

    def has_output(self, text: str) -> bool:
        """Whether the file has such a tensor, taken or not."""
        name, _, index = text.partition(":")
        op = self.ops.get(name)
        return op is not None and (index or "0").isdecimal() and int(index or 0) < len(op._outputs)

    def element(self, text: str) -> Tensor | Operation:
        """What a name in return_elements stands for."""
        name, colon, index = text.partition(":")
        if colon and not index.isdigit():
            raise ValueError(f"Cannot convert {text!r} to a tensor name.")
        op = self.ops.get(name)
        if self.mapped and colon and text in self.mapped:
            self.used.add(self.given[text])
            return self.mapped[text]
        if op is None:
            raise ValueError(f"Requested return_element '{text}' not found in graph_def.")
        if not colon:
            return op
        if int(index) >= len(op._outputs):
            raise ValueError(f"Requested return_element '{text}' not found in graph_def.")
        return op._outputs[int(index)]

    def _without_defaults(self, node: NodeDef) -> Any:
        """The node without attributes that are unknown here and have the producer's default."""
        opdef = op_definition(node.op)
        defaults = self.producer_defaults.get(node.op)
        if opdef is None or not defaults:
            return node
        extra = [k for k, v in node.attr.items() if k not in opdef.attrs and defaults.get(k) == v]
        if extra:
            copy = type(node)()
            copy.CopyFrom(node)
            for key in extra:
                del copy.attr[key]
            return copy
        return node


def _defaults_of(op_list: Any) -> dict[str, dict[str, Any]]:
    if op_list is None:
        return {}
    return {
        op.name: {a.name: a.default_value for a in op.attr if a.HasField("default_value")}
        for op in op_list.op
    }


def _checked_names(names: list[str]) -> set[str]:
    """The names of a file's nodes, which are valid and unique."""
    if names and (not _VALID_NAMES.fullmatch("\n".join(names)) or "\n" in "".join(names)):
        wrong = next(n for n in names if "\n" in n or not _VALID_NAMES.fullmatch(n))
        raise ValueError(f"Node '{wrong}': Node name contains invalid characters")
    found = set(names)
    if len(found) < len(names):
        twice = next(n for n, count in Counter(names).items() if count > 1)
        raise ValueError(f"Node '{twice}' is not unique")
    return found


def _parse_input(text: str, node: str) -> tuple[str, int]:
    """(node, output); -1 is a control input."""
    if text[:1] == "^":
        return text[1:], -1
    name, colon, index = text.rpartition(":")
    if not colon:
        return text, 0
    if not index.isdigit() or len(index) > 9 or not name:
        raise ValueError(f"Node '{node}': invalid input '{text}'")
    return name, int(index)


def _text(source: tuple[str, int]) -> str:
    return f"^{source[0]}" if source[1] < 0 else f"{source[0]}:{source[1]}"


def _narrow(op: Operation, known: Iterable[Any]) -> None:
    """Shapes that the writer knew."""
    for t, shape in zip(op._outputs, known):
        try:
            t._shape = shapes.merge(t._shape, shape)
        except ValueError:
            if (
                t._dtype._base.name == "string"
            ):  # old graphs say that handles of barriers are scalars
                continue
            raise ValueError(
                f"Node '{op.name}' ({op.type}) has an _output_shapes attribute "
                "inconsistent with the GraphDef for output "
                f"#{t._value_index}: {shapes.show(t._shape)} and {shapes.show(shape)}"
            ) from None
