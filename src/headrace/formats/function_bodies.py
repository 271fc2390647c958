"""A function's body: its nodes, imported into a graph as operations.

Inputs in a body name an output argument (``node:product:0``); :class:`BodyImporter` finds the flat
output behind it. function_calls.py imports one body for each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.dtypes import DType, as_dtype
from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor
from headrace.formats.attr_values import FunctionName
from headrace.formats.graphdef_nodes import NodeImporter

if TYPE_CHECKING:
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    from headrace.data.functions.user_functions import DataFunction
    from headrace.formats.function_calls import FunctionLibrary

__all__ = ["CALLS", "CASES", "FUNCTIONAL", "IFS", "WHILES", "BodyImporter", "Results"]


Results = tuple[list[Tensor], list[Operation]]


#: Ops that call functions: by name, one of two, one of many, in a loop.
CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])
IFS = frozenset(["If", "StatelessIf"])
CASES = frozenset(["Case", "StatelessCase"])
WHILES = frozenset(["While", "StatelessWhile"])
FUNCTIONAL = CALLS | IFS | CASES | WHILES


class BodyImporter(NodeImporter):
    """The nodes of a function's body, with inputs like ``node:product:0``."""

    def __init__(
        self,
        graph: Graph,
        library: FunctionLibrary,
        function: Any,
        arguments: Sequence[Tensor],
        attrs: dict[str, Any],
    ) -> None:
        super().__init__(graph, library.call, library.is_call)
        self.library = library
        self.function = function
        self.attr_values = attrs
        self.unique = True
        self.kinds = {n.name: n for n in function.node_def}
        self.arguments = self._bound(arguments)
        self.offsets: dict[str, dict[str, tuple[int, int]]] = {}

    def function_value(self, function: FunctionName, node: NodeDef) -> DataFunction:
        return self.library.data_function(function, node)

    def _bound(self, arguments: Sequence[Tensor]) -> dict[str, list[Tensor]]:
        """The tensors of each argument."""
        out: dict[str, list[Tensor]] = {}
        rest = list(arguments)
        name = self.function.signature.name
        for arg in self.function.signature.input_arg:
            n = 1
            if arg.number_attr or arg.type_list_attr:
                value = self.attr_values.get(arg.number_attr or arg.type_list_attr)
                if value is None:
                    raise ValueError(
                        f"Function '{name}': the length of argument '{arg.name}' is not given"
                    )
                n = value.i if arg.number_attr else len(value.list.type)
            if n < 0 or n > len(rest):
                raise ValueError(
                    f"Function '{name}' is called with {len(arguments)} arguments, "
                    f"'{arg.name}' is missing"
                )
            out[arg.name], rest = rest[:n], rest[n:]
            want = _argument_type(arg)
            for t in out[arg.name]:
                if want is not None and t._dtype._base is not want:
                    raise ValueError(
                        f"Function '{name}': argument '{arg.name}' is {want.name}, "
                        f"{t.name} is {t._dtype._base.name}"
                    )
        if rest:
            raise ValueError(f"Function '{name}' takes fewer than {len(arguments)} arguments")
        return out

    def sources(self, node: NodeDef) -> list[str]:
        return list(node.input)

    def source_name(self, source: str) -> str | None:
        name = source[1:] if source[:1] == "^" else source.partition(":")[0]
        return None if name in self.arguments and name not in self.kinds else name

    def resolve(self, source: str, node: NodeDef) -> Tensor | Operation:
        if source[:1] == "^":
            name = source[1:]
            if name in self.kinds:
                return self.ops[name]
            return self.arguments[name][0]._op
        return self.tensor(source)

    def tensor(self, source: str) -> Tensor:
        parts = source.split(":")
        name = parts[0]
        try:
            if name in self.arguments and name not in self.kinds:
                return self.arguments[name][int(parts[1]) if len(parts) > 1 else 0]
            op = self.ops[name]
            if len(parts) == 1:
                return op._outputs[0]
            if len(parts) == 2:
                return op._outputs[int(parts[1])]
            start, n = self._outputs(name, op)[parts[1]]
            index = int(parts[2])
            if not 0 <= index < n:
                raise IndexError(index)
            return op._outputs[start + index]
        except (IndexError, ValueError):
            raise ValueError(
                f"Function '{self.function.signature.name}': there is no output '{source}'"
            ) from None

    def _outputs(self, name: str, op: Operation) -> dict[str, tuple[int, int]]:
        """(first, how many) of a node's flat outputs, by output argument."""
        known = self.offsets.get(name)
        if known is None:
            node = self.kinds[name]
            if self.is_call(node.op):
                known = self._call_outputs(node, op)
            else:
                known, at = {}, 0
                for arg in op._opdef.outputs:
                    n = 1
                    if arg.number_attr:
                        n = op._attrs[arg.number_attr]
                    elif arg.type_list_attr:
                        n = len(op._attrs[arg.type_list_attr])
                    known[arg.name] = (at, n)
                    at += n
            self.offsets[name] = known
        return known

    def _call_outputs(self, node: NodeDef, op: Operation) -> dict[str, tuple[int, int]]:
        if node.op in FUNCTIONAL:
            return {"output": (0, len(op._outputs))}
        args = self.library.get(node.op).signature.output_arg
        return {a.name: (i, 1) for i, a in enumerate(args)}

    def results(self) -> Results:
        function = self.function
        found = []
        for arg in function.signature.output_arg:
            if arg.name not in function.ret:
                raise ValueError(f"Function '{function.signature.name}' has no result '{arg.name}'")
            try:
                found.append(self.tensor(function.ret[arg.name]))
            except KeyError:
                raise ValueError(
                    f"Function '{function.signature.name}': there is no output "
                    f"'{function.ret[arg.name]}'"
                ) from None
        return found, self._effects()

    def _effects(self) -> list[Operation]:
        listed = [self.ops[n] for n in self.function.control_ret.values() if n in self.ops]
        if listed or self.function.signature.control_output:
            return listed
        # functions of old TensorFlows: everything with an effect happens
        return [op for op in self.made if op._opdef.traits.writes or _acts(op)]


def _acts(op: Operation) -> bool:
    return op.type in ("Print", "PrintV2", "Assert") or op.type.endswith(
        ("Write", "Close", "Enqueue")
    )


def _argument_type(arg: Any) -> DType | None:
    return as_dtype(arg.type)._base if arg.type else None
