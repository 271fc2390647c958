"""Adding an operation through its definition: ``apply(MATMUL, a, b, transpose_a=True)``.

Inputs are converted (a plain number takes the type of the tensors beside it and becomes a constant
named after the argument, ``Add/y``), type attributes are inferred and checked, defaults filled in.

What comes back depends on the op's outputs: a Tensor, a tuple of tensors, a list for a list output,
or the Operation (None in eager mode) if there is no output. A caller knows its op, so it says which
by the name it calls: ``apply`` for one tensor, ``apply_many``, ``apply_list``, ``apply_operation``,
and ``apply_any`` where the op is not known in advance. They are one function at run time; a test
compares every call with the op's definition.
"""

from __future__ import annotations

import collections
import functools
import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert as conversion
from headrace.core import dtypes, op_limits, shapes, stacks
from headrace.core.dtypes import DType, as_dtype
from headrace.core.graph import Graph, get_default_graph
from headrace.core.opdef import Arg, Attr, OpDef, lookup
from headrace.core.stacks import default_graphs
from headrace.core.tensor import Operation, Tensor

__all__ = [
    "apply",
    "apply_any",
    "apply_list",
    "apply_many",
    "apply_named",
    "apply_op",
    "apply_operation",
    "create_op",
    "named_result",
]


def apply_op(op_type: str, *inputs: object, name: str | None = None, **attrs: object) -> Tensor:
    """``apply`` by the op's registered name, for an op with one output."""
    return apply(lookup(op_type), *inputs, name=name, **attrs)


def named_result(tensor: Tensor, scope: str) -> Tensor:
    """``tensor`` under the name of the scope it was made in, where TensorFlow's last operation has
    that name.
    """
    if get_default_graph()._is_eager or not scope or tensor._op.name == scope[:-1]:
        return tensor
    tensor._op.graph._uncounted -= 1  # TensorFlow needs no operation more for the name
    return apply_op("Identity", tensor, name=scope)


@functools.cache
def _result_class(opdef: OpDef) -> type:
    return collections.namedtuple(opdef.name, [arg.name for arg in opdef.outputs])


def apply_named(opdef: OpDef, *inputs: object, name: str | None = None, **attrs: object) -> Any:
    """``apply_many`` for the ops of several outputs that users call themselves.

    The outputs by their names, as a named tuple of the op's own class.
    """
    return _result_class(opdef)(*apply_many(opdef, *inputs, name=name, **attrs))


def apply_any(opdef: OpDef, *inputs: Any, name: str | None = None, **attrs: object) -> Any:
    """Add one operation to the graph of its inputs (or the default graph) and return its
    outputs.
    """
    items = default_graphs.items
    graph = items[-1] if items else get_default_graph()
    if graph._is_eager:
        return graph._execute(opdef, inputs, name, attrs)
    if opdef.simple and len(inputs) == len(opdef.inputs):
        for value in inputs:
            if type(value) is not Tensor or value._op.graph is not graph:
                break
        else:
            op = _apply_to_tensors(graph, opdef, inputs, name, attrs)
            outputs = op._outputs
            if len(outputs) == 1:
                return outputs[0]
            return outputs if outputs else op
    other = _graph_of(inputs, graph)
    if other is not graph:
        with default_graphs.entered(other):
            return outputs_of(_apply(other, opdef, inputs, name, attrs))
    return outputs_of(_apply(graph, opdef, inputs, name, attrs))


if TYPE_CHECKING:

    def apply(opdef: OpDef, *inputs: object, name: str | None = None, **attrs: object) -> Tensor:
        """``apply_any`` of an op with one output."""

    def apply_many(
        opdef: OpDef, *inputs: object, name: str | None = None, **attrs: object
    ) -> tuple[Tensor, ...]:
        """``apply_any`` of an op with several outputs."""

    def apply_list(
        opdef: OpDef, *inputs: object, name: str | None = None, **attrs: object
    ) -> list[Tensor]:
        """``apply_any`` of an op whose output is a list."""

    def apply_operation(
        opdef: OpDef, *inputs: object, name: str | None = None, **attrs: object
    ) -> Operation | Any:
        """``apply_any`` of an op without outputs; None in eager mode, which has no operations."""

else:
    apply = apply_many = apply_list = apply_operation = apply_any


def _apply_to_tensors(
    graph: Graph, opdef: OpDef, inputs: tuple[Tensor, ...], name: str | None, given: dict[str, Any]
) -> Operation:
    """The commonest case, every input a tensor of this graph.

    Nothing to convert, only types to check, and those only once.
    """
    full_name = graph._full_name(name) if name else graph.unique_name(opdef.node_name)
    if given or not 0 < len(inputs) <= 2 or opdef.has_refs:
        return _apply_checked(graph, opdef, inputs, full_name, given)
    types = inputs[0]._dtype if len(inputs) == 1 else (inputs[0]._dtype, inputs[1]._dtype)
    attrs = opdef.checked.get(types)
    if attrs is None:
        attrs = _checked_attrs(opdef, inputs, given)
        if op_limits.are_enforced():
            opdef.checked[types] = attrs
    return graph._add_op(opdef, inputs, attrs, full_name, depth=4)


def _apply_checked(
    graph: Graph, opdef: OpDef, inputs: tuple[Tensor, ...], full_name: str, given: dict[str, Any]
) -> Operation:
    attrs = _checked_attrs(opdef, inputs, given)
    if opdef.has_refs:
        _colocate_with_refs(inputs, attrs)
        return _placed_with_refs(graph._add_op(opdef, inputs, attrs, full_name, depth=5))
    return graph._add_op(opdef, inputs, attrs, full_name, depth=5)


def _checked_attrs(
    opdef: OpDef, inputs: tuple[Tensor, ...], given: dict[str, Any]
) -> dict[str, Any]:
    """All attributes of an operation; its inputs have the types that they ask for."""
    attrs = opdef.defaults.copy()
    for key, value in given.items():
        if key in opdef.inferred:
            attrs[key] = _attr_value(opdef, key, value)
    seen: dict[str, DType] = {}
    for arg, tensor in zip(opdef.inputs, inputs):
        base = tensor._dtype._base
        attr = arg.type_attr
        want = arg.dtype if not attr else seen.get(attr) or (attrs[attr] if attr in given else None)
        if want is None:
            _check_allowed(opdef.attrs[attr], arg, base)
            seen[attr] = attrs[attr] = base
        elif base is not want:
            raise _type_error(opdef, arg, base, want, attrs)
        if arg.is_ref and not tensor._dtype._is_ref:
            raise _not_mutable(opdef, arg)
    for key, value in given.items():
        if key not in opdef.inferred and (value is not None or key in opdef.attrs):
            attrs[key] = _attr_value(opdef, key, value)
    if len(attrs) != len(opdef.attrs):
        _check_complete(opdef, attrs)
    return attrs


def _colocate_with_refs(inputs: Sequence[Tensor], attrs: dict[str, Any]) -> None:
    """An operation on a variable's reference belongs where the variable is."""
    groups = {g for t in inputs if t._dtype._is_ref for g in t._op.colocation_groups()}
    attrs["_class"] = sorted(groups.union(attrs.get("_class", ())))


def _placed_with_refs(op: Operation) -> Operation:
    """An operation on a variable's reference is on its device, whatever ``tf.device`` says."""
    op._device = next((t._op._device for t in op._inputs if t._dtype._is_ref), "")
    return op


def _check_complete(opdef: OpDef, attrs: dict[str, Any]) -> None:
    for attr in opdef.attrs.values():
        if attr.name not in attrs:
            if not attr.has_default:
                raise TypeError(f"{opdef.name}: attribute '{attr.name}' is missing")
            attrs[attr.name] = attr.default


def _not_mutable(opdef: OpDef, arg: Arg) -> TypeError:
    return TypeError(
        f"'{opdef.name}' Op requires that input '{arg.name}' be a mutable tensor (e.g.: a "
        "tf.Variable)"
    )


def outputs_of(op: Operation) -> Any:
    outputs = op._outputs
    opdef = op._opdef
    if opdef.simple:
        if len(outputs) == 1:
            return outputs[0]
        return outputs if outputs else op
    return _grouped(op)


def _grouped(op: Operation) -> Any:
    """Outputs by argument.

    List arguments give lists. A stateful operation without outputs gives itself, as in TF.
    """
    if not op._outputs and op._opdef.traits.stateful:
        return op
    parts: list[Any] = []
    at = 0
    for arg in op._opdef.outputs:
        if not arg.is_list:
            parts.append(op._outputs[at])
            at += 1
            continue
        n = op._attrs[arg.number_attr] if arg.number_attr else len(op._attrs[arg.type_list_attr])
        parts.append(list(op._outputs[at : at + n]))
        at += n
    if len(parts) == 1:
        return parts[0]
    return tuple(parts) if parts else op


def _graph_of(inputs: Sequence[Any], default: Graph) -> Graph:
    """The graph of the inputs.

    ValueError if they are of different graphs. A function captures what is not its own.
    """
    if default._is_function:
        return default
    first: Tensor | None = None
    for value in inputs:
        if type(value) is Tensor:
            items: Sequence[Any] = (value,)
        elif type(value) in (list, tuple):
            items = value
        else:
            items = (value,)
        for item in items:
            if type(item) is not Tensor:
                item = getattr(item, "_graph_anchor", None)
                if item is None:
                    continue
            if first is None:
                first = item
            elif item._op.graph is not first._op.graph:
                raise ValueError(f"{item} must be from the same graph as {first}.")
    return default if first is None else first._op.graph


def _apply(
    graph: Graph, opdef: OpDef, inputs: Sequence[Any], name: str | None, given: dict[str, Any]
) -> Operation:
    if len(inputs) != len(opdef.inputs):
        raise TypeError(f"{opdef.name} takes {len(opdef.inputs)} inputs, {len(inputs)} were given")
    full_name = graph._full_name(name) if name else graph.unique_name(opdef.node_name)
    attrs: dict[str, Any] = {}
    for key, value in given.items():
        if key in opdef.inferred and value is not None:
            attrs[key] = _attr_value(opdef, key, value)
    flat: list[Tensor] = []
    for arg, value in zip(opdef.inputs, inputs):
        if arg.is_list:
            flat.extend(_convert_list(opdef, arg, value, attrs, full_name))
        else:
            flat.append(_convert_one(opdef, arg, value, attrs, full_name))
    for key, value in given.items():
        if key not in opdef.inferred and (value is not None or key in opdef.attrs):
            attrs[key] = _attr_value(opdef, key, value)
    _check_complete(opdef, attrs)
    if opdef.has_refs:
        _colocate_with_refs(flat, attrs)
        return _placed_with_refs(graph._add_op(opdef, tuple(flat), attrs, full_name, depth=4))
    return graph._add_op(opdef, tuple(flat), attrs, full_name, depth=4)


def _convert_one(
    opdef: OpDef, arg: Arg, value: object, attrs: dict[str, Any], full_name: str
) -> Tensor:
    want = arg.dtype
    if want is None:
        want = attrs.get(arg.type_attr)
    if type(value) is Tensor:
        tensor = value
    else:
        preferred = None
        if want is None:
            attr = opdef.attrs[arg.type_attr]
            if attr.has_default:
                preferred = attr.default
        try:
            tensor = conversion.convert(
                value,
                want,
                arg.name,
                preferred,
                as_ref=arg.is_ref,
                full_name=f"{full_name}/{arg.name}",
            )
        except TypeError:
            # a value that cannot have the wanted type is told as TensorFlow tells it: by the type
            # it would have alone
            if (
                want is None
                or arg.dtype is not None
                or not isinstance(value, (bool, int, float, complex, str, bytes))
            ):
                raise
            alone = conversion.make_ndarray(value, None)
            have = dtypes.FROM_NUMPY.get(alone.dtype, dtypes.string)
            raise _type_error(opdef, arg, have, want, attrs) from None
        except ValueError as error:
            if want is None or value is None or isinstance(value, (int, float, list, tuple)):
                raise
            raise _mismatch(opdef, arg, value, want) from error
    base = tensor._dtype._base
    if want is None:
        _check_allowed(opdef.attrs[arg.type_attr], arg, base)
        attrs[arg.type_attr] = base
    elif base is not want:
        raise _type_error(opdef, arg, base, want, attrs)
    if arg.is_ref and not tensor._dtype._is_ref:
        raise _not_mutable(opdef, arg)
    return tensor


def _mismatch(opdef: OpDef, arg: Arg, value: object, want: DType) -> TypeError:
    have = getattr(value, "dtype", None)
    have_name = as_dtype(have).base_dtype.name if have is not None else type(value).__name__
    return TypeError(
        f"Input '{arg.name}' of '{opdef.name}' Op has type {have_name} that does not "
        f"match expected type of {want.name}."
    )


def _type_error(
    opdef: OpDef, arg: Arg, have: DType, want: DType, attrs: dict[str, Any]
) -> TypeError:
    first = next(
        (a.name for a in opdef.inputs if a.type_attr and a.type_attr == arg.type_attr),
        None,
    )
    if arg.type_attr and first is not None and first != arg.name:
        return TypeError(
            f"Input '{arg.name}' of '{opdef.name}' Op has type {have.name} that does not "
            f"match type {want.name} of "
            f"argument '{first}'. Convert one of them with tf.cast."
        )
    return TypeError(
        f"Input '{arg.name}' of '{opdef.name}' Op has type {have.name} that does not "
        "match expected type of "
        f"{want.name}. Convert it with tf.cast."
    )


def _check_allowed(attr: Attr, arg: Arg, dtype: DType) -> None:
    if attr.allowed is not None and dtype not in attr.allowed and op_limits.are_enforced():
        names = ", ".join(sorted(d.name for d in attr.allowed))
        raise TypeError(
            f"Value passed to parameter '{arg.name}' has DataType {dtype.name} not in "
            f"list of allowed values: {names}"
        )


def _convert_list(
    opdef: OpDef, arg: Arg, values: Sequence[Any], attrs: dict[str, Any], full_name: str
) -> list[Tensor]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"Expected list for '{arg.name}' argument to '{opdef.name}' Op, not {values!r}."
        )
    if arg.type_list_attr:
        want_types = attrs.get(arg.type_list_attr)
        tensors = []
        for i, value in enumerate(values):
            want = want_types[i] if want_types else None
            tensors.append(conversion.convert(value, want, full_name=f"{full_name}/{arg.name}_{i}"))
        types = tuple(t._dtype._base for t in tensors)
        attr = opdef.attrs[arg.type_list_attr]
        if attr.least is not None and len(types) < attr.least:
            raise ValueError(_too_short(opdef, arg, len(types), attr.least))
        for each in types:
            _check_allowed(attr, arg, each)
        attrs[arg.type_list_attr] = types
        return tensors
    dtype = arg.dtype if arg.dtype is not None else attrs.get(arg.type_attr)
    if dtype is None:
        dtype = _common_dtype(values)
    try:
        tensors = [
            conversion.convert(v, dtype, as_ref=arg.is_ref, full_name=f"{full_name}/{arg.name}_{i}")
            if type(v) is not Tensor
            else v
            for i, v in enumerate(values)
        ]
    except ValueError as error:  # a TypeError in TensorFlow, whatever is wrong with an element
        raise TypeError(
            f"Tensors in list passed to '{arg.name}' of '{opdef.name}' Op cannot all be converted: "
            f"{error}"
        ) from error
    for t in tensors:
        base = t._dtype._base
        if dtype is None:
            dtype = base
        elif base is not dtype._base:
            kinds = ", ".join(t._dtype._base.name for t in tensors)
            raise TypeError(
                f"Tensors in list passed to '{arg.name}' of '{opdef.name}' Op have types "
                f"[{kinds}] that don't all match."
            )
    if arg.type_attr and dtype is not None:
        _check_allowed(opdef.attrs[arg.type_attr], arg, dtype._base)
        attrs.setdefault(arg.type_attr, dtype._base)
    number = opdef.attrs[arg.number_attr]
    if number.least is not None and len(tensors) < number.least:
        raise ValueError(_too_short(opdef, arg, len(tensors), number.least))
    if attrs.setdefault(number.name, len(tensors)) != len(tensors):
        raise ValueError(
            f"List argument '{arg.name}' to '{opdef.name}' Op with length {len(tensors)} "
            "must match length "
            f"{attrs[number.name]} of the list before it."
        )
    return tensors


def _too_short(opdef: OpDef, arg: Arg, length: int, least: int) -> str:
    return (
        f"List argument '{arg.name}' to '{opdef.name}' Op with length {length} shorter than "
        f"minimum length {least}."
    )


def _common_dtype(values: Sequence[Any]) -> DType | None:
    for v in values:
        if type(v) is Tensor:
            return v._dtype._base
        anchor: Tensor | None = getattr(v, "_graph_anchor", None)
        if anchor is not None:
            return anchor._dtype._base
    return None


def _attr_value(opdef: OpDef, name: str, value: Any) -> Any:
    """An attribute in its stored form, with TensorFlow's checks.

    None means the default where there is one.
    """
    attr = opdef.attrs.get(name)
    if attr is None:
        return value
    if value is None and attr.has_default:
        return attr.default
    kind = attr.kind
    if kind.startswith("list("):
        if not isinstance(value, (list, tuple)):
            raise TypeError(
                f"Expected list for '{name}' argument to '{opdef.name}' Op, not {value!r}."
            )
        convert = _ATTR_KINDS.get(kind[5:-1])
        value = tuple(value) if convert is None else tuple([convert(v, name) for v in value])
        _check_least(opdef, attr, len(value), f"passed list of length {len(value)}")
        items = value
    else:
        convert = _ATTR_KINDS.get(kind)
        value = value if convert is None else convert(value, name)
        if kind == "int":
            _check_least(opdef, attr, value, f"passed {value}")
        items = (value,)
    if attr.allowed is not None:
        for dtype in items:
            _check_attr_type(attr, dtype)
    if attr.strings is not None:
        for text in items:
            _check_attr_string(opdef, attr, text)
    return value


def _check_least(opdef: OpDef, attr: Attr, number: int, passed: str) -> None:
    if attr.least is not None and number < attr.least:
        raise ValueError(
            f"Attr '{attr.name}' of '{opdef.name}' Op {passed} less than minimum {attr.least}."
        )


def _check_attr_type(attr: Attr, dtype: DType) -> None:
    if attr.allowed is not None and dtype not in attr.allowed:
        names = ", ".join(sorted(d.name for d in attr.allowed))
        raise TypeError(
            f"Value passed to parameter '{attr.name}' has DataType {dtype.name} not in "
            f"list of allowed values: {names}"
        )


def _check_attr_string(opdef: OpDef, attr: Attr, text: str) -> None:
    if attr.strings is not None and text not in attr.strings:
        names = '", "'.join(attr.strings)
        raise ValueError(
            f"Attr '{attr.name}' of '{opdef.name}' Op passed string '{text}' not in: \"{names}\"."
        )


def _make_type(value: object, name: str) -> DType:
    if value is None:  # NumPy takes it for float64
        raise TypeError(f"Expected DataType for argument '{name}' not None.")
    return as_dtype(value).base_dtype


def _make_int(value: int, name: str) -> int:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"Expected int for argument '{name}' not {value!r}.")
    try:
        return int(value)
    except (TypeError, ValueError):
        raise TypeError(f"Expected int for argument '{name}' not {value!r}.") from None


def _make_float(value: float, name: str) -> float:
    if not isinstance(value, (numbers.Real, np.integer, np.floating)):
        raise TypeError(f"Expected float for argument '{name}' not {value!r}.")
    return float(value)


def _make_bool(value: bool, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"Expected bool for argument '{name}' not {value!r}.")
    return value


def _make_str(value: str, name: str) -> str:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"Expected string for argument '{name}' not {value!r}.")
    if isinstance(value, bytes):  # (a serialized message may be any bytes)
        return value.decode(errors="surrogateescape")
    return value


#: Kind of an attribute → its conversion: (value, attribute name) → stored form.
_ATTR_KINDS: dict[str, Callable[[Any, str], Any]] = {
    "type": _make_type,
    "shape": lambda value, name: shapes.to_plain(value),
    "int": _make_int,
    "float": _make_float,
    "bool": _make_bool,
    "str": _make_str,
}


def _decoded(opdef: OpDef, name: str, value: Any) -> Any:
    """An attribute's value; TensorFlow's own code gives them as AttrValue messages."""
    attr = opdef.attrs.get(name)
    if attr is None or stacks.attr_decoder is None or not hasattr(value, "WhichOneof"):
        return value
    if value.DESCRIPTOR.name != "AttrValue":
        return value
    return stacks.attr_decoder(value, attr.kind)


def create_op(
    graph: Graph, op_type: str, inputs: Sequence[Tensor], name: str | None, attrs: dict[str, Any]
) -> Operation:
    """An operation from flat input tensors and attributes, as in a NodeDef."""
    opdef = lookup(op_type)
    known = {k: _attr_value(opdef, k, _decoded(opdef, k, v)) for k, v in attrs.items()}
    grouped: list[Any] = []
    at = 0
    for arg in opdef.inputs:
        if not arg.is_list:
            grouped.append(inputs[at])
            at += 1
            continue
        if arg.number_attr:
            n = known.get(arg.number_attr, len(inputs) - at)
        else:
            n = len(known[arg.type_list_attr]) if arg.type_list_attr in known else len(inputs) - at
        grouped.append(list(inputs[at : at + n]))
        at += n
    with default_graphs.entered(graph):
        return _apply(graph, opdef, grouped, name, known)
