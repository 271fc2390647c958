"""What nodes of one type with the same attributes have in common, read once for all of them.

A graph of 5,000 nodes has some 50 different sets of attributes. Those are told by the bytes that a
NodeDef has behind its name, type and inputs: equal bytes, equal attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.device_names import _canonical_device
from headrace.core.dtypes import DType
from headrace.core.infer import output_dtypes
from headrace.core.opdef import Arg, OpDef
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

__all__ = ["NodeForm", "NodeForms"]

#: An op with more outputs than this is refused: a small file may ask for billions.
MAX_OUTPUTS = 1 << 16
#: Lengths of names up to this are written in at most two bytes (protobuf's varint).
MAX_LENGTH = (1 << 14) - 1


class NodeForm:
    """Definition, attributes, device and types of inputs of nodes."""

    __slots__ = ("attrs", "device", "is_checked", "opdef", "result", "types")

    def __init__(self, opdef: OpDef, attrs: dict[str, Any], device: str) -> None:
        self.opdef = opdef
        self.attrs = attrs
        self.device = device
        self.types = tuple(dtype for arg in opdef.inputs for dtype in _types(arg, attrs))
        single = opdef.single
        is_plain = single is not None and not single.is_ref
        self.result = output_dtypes(opdef, attrs)[0] if is_plain else None
        #: Whether there is more to check than that the inputs have just these types.
        self.is_checked = not opdef.simple or any(arg.is_ref for arg in opdef.inputs)

    def check(self, inputs: tuple[Tensor, ...]) -> None:
        """Refuse a wrong number of inputs, wrong types, and too many outputs."""
        types, opdef = self.types, self.opdef
        if len(types) != len(inputs):
            raise ValueError(f"it takes {len(types)} inputs, {len(inputs)} are given")
        for t, want in zip(inputs, types):
            if t._dtype._base is not want:
                raise ValueError(
                    f"Input {t.name} has type {t._dtype._base.name}, "
                    f"incompatible with expected {want.name}"
                )
        if opdef.simple:
            for arg, t in zip(opdef.inputs, inputs):
                if arg.is_ref and not t._dtype._is_ref:
                    raise ValueError(
                        f"input '{arg.name}' must be a variable's reference, {t.name} is not"
                    )
            return
        for arg in opdef.outputs:
            if arg.number_attr and not 0 <= self.attrs[arg.number_attr] <= MAX_OUTPUTS:
                raise ValueError(f"{self.attrs[arg.number_attr]} outputs '{arg.name}'")


class NodeForms:
    """The forms of nodes of one type that were met in a file, by the bytes of their attributes."""

    __slots__ = ("is_shared", "known", "length", "opdef")

    def __init__(self, opdef: OpDef) -> None:
        self.opdef = opdef
        self.known: dict[bytes, NodeForm] = {}
        self.length = 4 + len(opdef.name)  # of tags and lengths of name and type, and of the type
        #: Large values and functions are read for each node.
        kinds = {attr.kind.removeprefix("list(").rstrip(")") for attr in opdef.attrs.values()}
        self.is_shared = kinds.isdisjoint(("tensor", "func"))

    def key(self, node: NodeDef, name: str, inputs: list[str]) -> bytes:
        """Device and attributes of a node as bytes, which come last in its message.

        Empty where the form is not shared or the length of what comes before them is not plain.
        """
        if not self.is_shared:
            return b""
        text = "".join((name, *inputs))
        before = self.length + len(text) + 2 * len(inputs)
        if before > 127:  # some of the lengths may take two bytes
            lengths = [len(self.opdef.name), len(name), *map(len, inputs)]
            if max(lengths) > MAX_LENGTH:
                return b""
            before += sum(n > 127 for n in lengths)
        if not text.isascii() or not name:
            return b""
        message: bytes = node.SerializeToString()
        return message[before:]

    def add(self, key: bytes, attrs: dict[str, Any], node: NodeDef) -> NodeForm:
        """The form of a node with these attributes, kept unless some are the node's own."""
        form = NodeForm(self.opdef, attrs, _canonical_device(node.device))
        if key and not any(attr[:1] == "_" for attr in node.attr):
            self.known[key] = form
        return form


def _types(arg: Arg, attrs: dict[str, Any]) -> Sequence[DType]:
    """The types of the tensors of one argument."""
    if arg.type_list_attr:
        types: Sequence[DType] = attrs[arg.type_list_attr]
        return types
    dtype: DType = attrs[arg.type_attr] if arg.dtype is None else arg.dtype
    n = 1 if not arg.number_attr else attrs[arg.number_attr]
    if not 0 <= n <= MAX_OUTPUTS:
        raise ValueError(f"{n} inputs '{arg.name}'")
    return [dtype] * n
