"""NodeDefs made into operations: the part that GraphDefs and FunctionDefs have in common.

:class:`NodeImporter` takes nodes in any order, makes each as soon as its inputs are there (a loop's
Merge does not wait for the NextIteration behind it) and then gives the branches and loops among
them their contexts (program/flow_structure.py). What it cannot do it refuses before or while
building, with the node's name: ops that are not defined here, inputs that do not exist, cycles,
types that do not fit, calls of Python functions.
"""

from __future__ import annotations

import functools
import gc
import json
import operator
from collections import deque
from collections.abc import Callable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import shapes
from headrace.core.convert import CONST
from headrace.core.device_names import _merge_devices
from headrace.core.dtypes import DType
from headrace.core.graph import Graph
from headrace.core.infer import Inference
from headrace.core.opdef import ALL_OPS, LOADERS, Attr, OpDef, lookup, traits_of
from headrace.core.plain_ops import add_plain_op, has_open_scopes
from headrace.core.stacks import UNSET
from headrace.core.tensor import Operation, Tensor
from headrace.formats.attr_values import FunctionName, decode, decode_any, dtypes_by_number
from headrace.formats.node_forms import NodeForm, NodeForms
from headrace.program.flow_structure import find_structure

if TYPE_CHECKING:
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

__all__ = ["NodeImporter", "check_ops", "op_definition"]

_DTYPE = operator.attrgetter("_dtype")

#: Makes the operations of a call (function_calls.py): (importer, node, op type, inputs, controls,
#: name) -> operation.
CallMaker = Callable[[Any, Any, tuple[Tensor, ...], tuple[Operation, ...], str], Operation]


@functools.cache
def _later_attrs() -> dict[str, dict[str, Any]]:
    """Attributes that TensorFlow added after 1.15, by op.

    Their default, "*" where any value means the same here, or "kept" where kernels look at it.
    """
    text = resources.files(__package__).joinpath("later_attrs.json").read_text()
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def _is_number(dtype: DType) -> bool:
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def op_definition(name: str) -> OpDef | None:
    """The definition of an op, with those loaded that are imported late; None if there is none."""
    found = ALL_OPS.get(name)
    while found is None and LOADERS:
        LOADERS.pop()()
        found = ALL_OPS.get(name)
    return found


def check_ops(nodes: Sequence[Any], is_call: Callable[[str], bool]) -> None:
    """Refuse, all at once, ops that cannot be built."""
    wrong = {
        op
        for op in {node.op for node in nodes}
        if op == "GeneratorDataset"
        or traits_of(op).calls_user
        or not (is_call(op) or op_definition(op) is not None)
    }
    missing: dict[str, list[str]] = {}
    for node in nodes if wrong else ():
        op = node.op
        if op not in wrong:
            continue
        if traits_of(op).calls_user or op == "GeneratorDataset":
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Node '{node.name}' ({op}) calls a Python function of the process that "
                "wrote the graph. A file cannot hold "
                "that code, and Headrace never runs Python on behalf of a file: build "
                "that part of the graph in your program, "
                "and connect it with import_graph_def(input_map=...).",
            )
        missing.setdefault(op, []).append(node.name)
    if missing:
        raise _missing_ops(missing)


def _missing_ops(missing: dict[str, list[str]]) -> errors.NotFoundError:
    import difflib

    lines = []
    for op, names in sorted(missing.items()):
        near = difflib.get_close_matches(op, ALL_OPS, 3, 0.75)
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        hint = f" (near: {', '.join(near)})" if near else ""
        lines.append(f"  {op}{hint}: {', '.join(repr(n) for n in names[:2])}{more}")
    first = next(iter(sorted(missing)))
    text = "\n".join(lines)
    return errors.NotFoundError(
        None,
        None,
        f"Op type not registered '{first}' in this version of Headrace. No op named {first} in "
        "defined operations. The graph needs "
        f"{len(missing)} op types that are not "
        f"defined here:\n{text}\nIf the outputs you want do not depend on them, cut them away with "
        "tf.graph_util.extract_sub_graph before importing.",
    )


class NodeImporter:
    """Makes operations from NodeDefs in one graph."""

    def __init__(
        self,
        graph: Graph,
        call: CallMaker | None = None,
        is_call: Callable[[str], bool] | None = None,
    ) -> None:
        self.graph = graph
        self.call = call
        self.is_call = is_call if is_call is not None else lambda _: False
        self.ops: dict[str, Operation] = {}
        #: Tensors by the names that inputs have, if these mean the same everywhere in the file.
        self.tensors: dict[str, Tensor] = {}
        self.keeps_tensors = False
        self.renames = False
        self.is_plain = False  # no scope changes the operations that are made
        self.forms: dict[str, NodeForms] = {}
        self.types: dict[OpDef, dict[str, dict[int, DType]]] = {}
        self.made: list[Operation] = []
        self.prefix = ""
        self.frames: tuple[Any, ...] = ()
        #: What operations with effects wait for, in the body of a function that is called.
        self.entry: tuple[Operation, ...] = ()
        self.attr_values: dict[str, Any] = {}  # what placeholders of attributes stand for
        self.unique = False  # names that are taken get a number (else: an error)
        self.merges: list[tuple[Operation, Any, list[Any]]] = []
        self.has_structure = False
        self.known_shapes: list[tuple[str, Any]] = []  # what _output_shapes attributes say

    # to be given by the kind of file --------------------------------------------------------------
    def sources(self, node: object) -> list[Any]:
        """The inputs of a node, parsed."""
        raise NotImplementedError

    def source_name(self, source: Any) -> str | None:
        """The node that must be there first; None for what is there anyway."""
        raise NotImplementedError

    def resolve(self, source: Any, node: NodeDef) -> Tensor | Operation:
        raise NotImplementedError

    def function_value(self, function: FunctionName, node: NodeDef) -> Any:
        """What an attribute that names a function holds."""
        return function

    def _is_later_type(self, dtype: DType, allowed: frozenset[DType]) -> bool:
        """Whether a newer TensorFlow than 1.15 may have added the type to an op that takes numbers
        (``Maximum`` of uint8).
        """
        return self._has_later_types() and _is_number(dtype) and any(map(_is_number, allowed))

    def _has_later_types(self) -> bool:
        """Whether a newer TensorFlow than 1.15 wrote the graph, or the one around it."""
        graph = self.graph
        while not graph._has_later_types and getattr(graph, "outer_graph", None) is not None:
            graph = graph.outer_graph  # type: ignore[attr-defined]
        return graph._has_later_types

    # building -------------------------------------------------------------------------------------
    def build(self, nodes: Sequence[Any]) -> None:
        """Make all nodes, in their order as far as inputs allow."""
        collecting = gc.isenabled()
        # thousands of objects that stay: looking for garbage among them would take a third of the
        # time
        gc.disable()
        try:
            self._build(nodes)
        finally:
            if collecting:
                gc.enable()
        self.graph._imported = True
        if self.has_structure:
            find_structure(self.made, self.graph._context)
            self._settle_loop_shapes()

    def _build(self, nodes: Sequence[Any]) -> None:
        kinds: dict[str, str] = {}
        waiting: dict[str, list[Any]] = {}
        left = 0
        ops, tensors = self.ops, self.tensors
        keeps = self.keeps_tensors
        if not self.unique:
            self._reserve([node.name for node in nodes])
        self.renames = bool(self.prefix) or self.unique
        self.is_plain = not (self.unique or self.entry or has_open_scopes(self.graph))
        for node in nodes:
            name, texts = node.name, node.input[:]
            controls: tuple[Operation, ...] = ()
            try:
                inputs = tuple(map(tensors.__getitem__, texts))
            except KeyError:
                ready = self.listed_inputs(texts)
                if ready is None:
                    kinds = kinds or _kinds(nodes)
                    sources = self.sources(node)
                    missing = self._missing(node, sources, kinds)
                    if missing:
                        entry = [len(missing), node, sources]
                        left += 1
                        for awaited in missing:
                            waiting.setdefault(awaited, []).append(entry)
                        continue
                    self._node(node, sources)
                    if waiting:
                        left -= self._wake(name, waiting)
                    continue
                inputs, controls = ready
            op = ops[name] = self._operation(node, name, texts, inputs, controls)
            if keeps and op._outputs:
                tensors[name] = op._outputs[0]
            if waiting:
                left -= self._wake(name, waiting)
        if left:
            raise ValueError(self._cycle(waiting))
        self._close_loops()

    def _reserve(self, names: list[str]) -> None:
        """Refuse names that are taken, and take the rest, before operations are made."""
        graph, prefix = self.graph, self.prefix
        full = [f"{prefix}/{name}" for name in names] if prefix else names
        taken = graph._by_name.keys() & full if graph._by_name else ()
        for name in full if taken else ():
            if name in taken:
                raise ValueError(f"Node name '{name}' already exists in the Graph")
        in_use = graph._names_in_use
        for lowered in "\n".join(full).lower().split("\n"):
            in_use.setdefault(lowered, 1)

    def listed_inputs(
        self, texts: list[str]
    ) -> tuple[tuple[Tensor, ...], tuple[Operation, ...]] | None:
        """Inputs and control inputs with these names if all of them are there.

        None sends the node the long way.
        """
        return None

    def _missing(self, node: NodeDef, sources: list[Any], kinds: dict[str, str]) -> set[str] | None:
        ops = self.ops
        found: set[str] | None = None
        for source in sources:
            name = self.source_name(source)
            if name is None or name in ops:
                continue
            if name not in kinds:
                raise ValueError(f"Node '{node.name}': Unknown input node '{name}'")
            if traits_of(kinds[name]).role == "next" and traits_of(node.op).role == "merge":
                continue
            found = found or set()
            found.add(name)
        return found

    def _wake(self, name: str, waiting: dict[str, list[Any]]) -> int:
        """Make what only waited for ``name``, and what waited for that."""
        done = 0
        ready = deque([name])
        while ready:
            for entry in waiting.pop(ready.popleft(), ()):
                entry[0] -= 1
                if entry[0] == 0:
                    self._node(entry[1], entry[2])
                    ready.append(entry[1].name)
                    done += 1
        return done

    def _cycle(self, waiting: dict[str, list[Any]]) -> str:
        names = sorted({e[1].name for entries in waiting.values() for e in entries})
        shown = ", ".join(repr(n) for n in names[:5])
        return (
            f"{len(names)} nodes form a cycle or depend on one "
            f"({shown}{', …' if len(names) > 5 else ''}). Only the "
            "NextIteration of a loop may be used before it is made."
        )

    def _node(self, node: NodeDef, sources: list[Any]) -> None:
        inputs: list[Tensor] = []
        controls: list[Operation] = []
        later = False
        for source in sources:
            try:
                found = self.resolve(source, node)
            except KeyError:  # the NextIteration behind a loop's Merge
                later = True
                continue
            if type(found) is Operation:
                controls.append(found)
            else:
                inputs.append(found)  # type: ignore[arg-type]
        if later:
            if not inputs:
                raise ValueError(
                    f"Node '{node.name}': a loop needs an input that comes from outside of it"
                )
            inputs = [inputs[0]] * (len(inputs) + sum(not self._is_there(s) for s in sources))
        name = node.name
        op = self._operation(node, name, node.input[:], tuple(inputs), tuple(controls))
        if later:
            self.merges.append((op, node, sources))
        self.ops[name] = op
        if self.keeps_tensors and op._outputs:
            self.tensors[name] = op._outputs[0]

    def _is_there(self, source: Sequence[int | str]) -> bool:
        name = self.source_name(source)
        return name is None or name in self.ops

    def _operation(
        self,
        node: NodeDef,
        name: str,
        texts: list[str],
        inputs: tuple[Tensor, ...],
        controls: tuple[Operation, ...],
    ) -> Operation:
        kind = node.op
        full = self._full_name(name) if self.renames else name
        forms = self.forms.get(kind)
        if forms is None:
            if self.is_call(kind):
                assert self.call is not None
                return self.call(self, node, inputs, controls, full)
            forms = self.forms[kind] = NodeForms(lookup(kind))
            if forms.opdef.role in ("switch", "merge", "enter"):
                self.has_structure = True
        try:
            key = forms.key(node, name, texts)
            form = forms.known.get(key)
            if form is None:
                form = forms.add(key, self._attrs(forms.opdef, node), node)
            if tuple(map(_DTYPE, inputs)) != form.types or form.is_checked:
                form.check(inputs)
            if self.is_plain:
                op = add_plain_op(self.graph, form, inputs, full, controls)
            else:
                op = self._added(form, inputs, full, controls)
        except (ValueError, TypeError) as error:
            raise ValueError(f"Node '{name}' ({kind}): {error}") from None
        op._frames = self.frames
        if form.device:
            op._device = _merge_devices(op._device, form.device)
        self.made.append(op)
        return op

    def _full_name(self, name: str) -> str:
        full = f"{self.prefix}/{name}" if self.prefix else name
        return self.graph._unique(full) if self.unique else full

    def _added(
        self,
        form: NodeForm,
        inputs: tuple[Tensor, ...],
        name: str,
        controls: tuple[Operation, ...],
    ) -> Operation:
        opdef = form.opdef
        if self.entry and _has_effects(opdef):
            controls = (*controls, *self.entry)
        return self.graph._add_op(opdef, inputs, form.attrs, name, controls, -1)

    def _attrs(self, opdef: OpDef, node: NodeDef) -> dict[str, Any]:
        attrs = opdef.defaults.copy()
        known = opdef.attrs
        types = self.types.get(opdef)
        if types is None:
            types = self.types[opdef] = _type_attrs(opdef)
        messages = node.attr
        is_complete = True
        for name in messages:
            message = messages[name]
            numbers = types.get(name)
            if numbers is not None:  # the commonest; what is not a type gives 0, which is none
                dtype = numbers.get(message.type)
                if dtype is not None:
                    attrs[name] = dtype
                    continue
            spec = known.get(name)
            if spec is None:
                self._extra_attr(opdef, node, name, message, attrs)
                is_complete = False
                continue
            if self.attr_values and message.placeholder:
                message = self._substituted(message, node)
            try:
                value = decode(message, spec.kind)
                if spec.kind == "func":
                    value = self.function_value(value, node)
            except ValueError as error:
                raise ValueError(f"attribute '{name}': {error}") from None
            self._check_limits(spec, value)
            attrs[name] = value
        if len(attrs) < len(known) or not is_complete:
            _fill_defaults(opdef, attrs)
        if opdef is CONST and attrs["value"].dtype != attrs["dtype"].np_dtype:
            raise ValueError(
                f"the value is {attrs['value'].dtype}, declared is {attrs['dtype'].name}"
            )
        return attrs

    def _check_limits(self, spec: Attr, value: Any) -> None:
        """Types, least values and strings that TensorFlow 1.15's registry allows.

        A later TensorFlow, which the graph may be from, allows more of them.
        """
        items = value if type(value) is tuple else (value,)
        if spec.allowed is not None:
            for dtype in items:
                if dtype not in spec.allowed and not self._is_later_type(dtype, spec.allowed):
                    raise ValueError(
                        f"attribute '{spec.name}' does not allow the type {dtype.name}"
                    )
        if (spec.least is None and spec.strings is None) or self._has_later_types():
            return
        if spec.least is not None and (len(items) if spec.kind != "int" else value) < spec.least:
            what = "Value" if spec.kind == "int" else "Length"
            number = value if spec.kind == "int" else len(items)
            raise ValueError(
                f"{what} for attr '{spec.name}' of {number} must be at least minimum {spec.least}"
            )
        allowed = spec.strings
        if allowed is None:
            return
        for text in items:
            if text not in allowed:
                raise ValueError(
                    f"Value for attr '{spec.name}' of \"{text}\" is not in the list of allowed "
                    "values: " + ", ".join(f'"{s}"' for s in allowed)
                )

    def _substituted(self, message: Any, node: NodeDef) -> Any:
        found = self.attr_values.get(message.placeholder)
        if found is None:
            raise ValueError(f"attribute placeholder '{message.placeholder}' has no value")
        return found

    def _extra_attr(
        self, opdef: OpDef, node: NodeDef, name: str, message: Any, attrs: dict[str, Any]
    ) -> None:
        if name[:1] == "_":
            if name == "_class":
                attrs[name] = [self.colocation(v, node) for v in message.list.s]
            elif name == "_output_shapes":
                self.known_shapes.append((node.name, message))
            else:
                attrs[name] = decode_any(message)
            return
        later = _later_attrs().get(opdef.name, {})
        if name not in later:
            raise ValueError(
                f"NodeDef mentions attr '{name}' not in Op<{opdef.name}>. The graph was "
                "written by a later TensorFlow: write it "
                "with strip_default_attrs, or pass producer_op_list."
            )
        value = decode_any(message)
        plain = getattr(value, "_enum", list(value) if isinstance(value, tuple) else value)
        if later[name] == "kept":
            attrs[name] = value
        elif later[name] != "*" and later[name] != plain:
            raise ValueError(
                f"attribute '{name}' = {plain!r} came after TensorFlow 1.15; Headrace has "
                f"{opdef.name} with {later[name]!r} only"
            )

    def colocation(self, group: bytes, node: NodeDef) -> bytes:
        """The group of a node, with the prefix that names have here."""
        if not self.prefix or not group.startswith(b"loc:@"):
            return group
        return b"loc:@" + self.prefix.encode() + b"/" + group[5:]

    # loops ----------------------------------------------------------------------------------------
    def _close_loops(self) -> None:
        """Connect each loop's Merge with its NextIteration."""
        for op, node, sources in self.merges:
            inputs = []
            for source in sources:
                try:
                    found = self.resolve(source, node)
                except KeyError:
                    raise ValueError(f"Node '{node.name}': its input is not there") from None
                if type(found) is not Operation:
                    inputs.append(found)
            for t in inputs:
                if t._dtype._base is not op._outputs[0]._dtype._base:  # type: ignore[union-attr]
                    raise ValueError(
                        f"Node '{node.name}': the loop variable changes its type from "
                        f"{op._outputs[0]._dtype.name}"
                    )
            op._inputs = tuple(inputs)  # type: ignore[arg-type]

    def _settle_loop_shapes(self) -> None:
        """A loop variable has the shape that holds in every iteration.

        Start with the first, widen until nothing changes.
        """
        for _ in range(8):
            changed = False
            for op, _, _ in self.merges:
                out = op._outputs[0]
                shape = out._shape
                for t in op._inputs[1:]:
                    shape = shapes.generalize(shape, t._shape)
                if shape != out._shape:
                    out._shape = shape
                    changed = True
            if not changed:
                return
            _infer_again(self.made, {op for op, _, _ in self.merges})
        for op, _, _ in self.merges:
            op._outputs[0]._shape = None
        _infer_again(self.made, {op for op, _, _ in self.merges})


def _infer_again(ops: Sequence[Operation], fixed: set[Operation]) -> None:
    """Static shapes and values anew, from inputs whose shapes have become wider."""
    for op in ops:
        if op in fixed or not op._inputs:
            continue
        found = op._opdef.shape(Inference(op))
        for t, shape in zip(op._outputs, found):
            t._shape = shape
            t._static = UNSET


def _type_attrs(opdef: OpDef) -> dict[str, dict[int, DType]]:
    """For each attribute of an op that holds one type: the types allowed, by their numbers."""
    return {
        attr.name: dtypes_by_number(attr.allowed)
        for attr in opdef.attrs.values()
        if attr.kind == "type"
    }


def _has_effects(opdef: OpDef) -> bool:
    traits = opdef.traits
    return bool(traits.reads or traits.writes or (traits.stateful and not traits.random))


def _kinds(nodes: Sequence[Any]) -> dict[str, str]:
    """Node name -> op type."""
    return {node.name: node.op for node in nodes}


def _fill_defaults(opdef: OpDef, attrs: dict[str, Any]) -> None:
    for attr in opdef.attrs.values():
        if attr.name not in attrs:
            if not attr.has_default:
                raise ValueError(f"NodeDef missing attr '{attr.name}' from Op<{opdef.name}>")
            attrs[attr.name] = attr.default
