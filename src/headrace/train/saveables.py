"""What a saver saves.

For every variable (or part of one) a name, the tensor to write, and how to give it a read value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from headrace.core.build import apply_op
from headrace.core.dtypes import DType
from headrace.core.scopes import device
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.basic import identity
from headrace.ops.state.lookup_tables import TableSaveable
from headrace.ops.state.ref_state import assign
from headrace.ops.state.resource_state import assign_variable_op
from headrace.variables.partitioned_variable import PartitionedVariable
from headrace.variables.resource_variable import ResourceVariable
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation

__all__ = [
    "ReferenceVariableSaveable",
    "ResourceVariableSaveable",
    "SaveSpec",
    "SaveableObject",
    "op_list_to_dict",
    "saveable_objects_for_op",
    "validate_and_slice_inputs",
]


class SaveSpec:
    """One tensor of a checkpoint.

    ``tensor`` (or a function that makes it), its place in a larger one, and its name.
    """

    def __init__(
        self,
        tensor: Any,
        slice_spec: str,
        name: str,
        dtype: DType | None = None,
        device: object = None,
    ) -> None:
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        if callable(tensor) and not isinstance(tensor, (Tensor, Variable)):
            if dtype is None or device is None:
                raise AssertionError(
                    "When passing a callable `tensor` to a SaveSpec, an explicit dtype "
                    "and device must be provided."
                )
            self.dtype, self.device = dtype, device
        else:
            self.dtype, self.device = tensor.dtype, tensor.device

    @property
    def tensor(self) -> Any:
        made = callable(self._tensor) and not isinstance(self._tensor, (Tensor, Variable))
        return self._tensor() if made else self._tensor


class SaveableObject:
    """Base of what savers save and restore; see the two kinds for variables below."""

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = specs
        self.name = name

    @property
    def device(self) -> Any:
        return self.specs[0].device

    @property
    def optional_restore(self) -> bool:
        """Whether a checkpoint without it is complete."""
        return False

    def restore(self, restored_tensors: Any, restored_shapes: object) -> Any:
        """The operation that gives ``op`` the values read.

        ``restored_shapes`` is None or what to reshape them to.
        """
        raise ValueError("Calling an abstract method.")


class ReferenceVariableSaveable(SaveableObject):
    """A variable of the reference kind."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        super().__init__(var, [SaveSpec(var, slice_spec, name, dtype=var.dtype)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = reshape(value, restored_shapes[0])
        known = self.op.get_shape().is_fully_defined()
        return assign(_reference(self.op), value, validate_shape=restored_shapes is None and known)


class ResourceVariableSaveable(SaveableObject):
    """A variable behind a handle; ``var`` is the variable or a tensor that reads it."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        self._var_device = var.device
        self._var_shape = var.shape
        tensor: Any = var
        if isinstance(var, Tensor):
            self.handle_op = var.op.inputs[0]
        elif isinstance(var, ResourceVariable):
            self.handle_op = var.handle
            tensor = _reader(var)
        else:
            raise ValueError(
                f"Saveable is neither a resource variable nor a read operation. Got: {var!r}"
            )
        super().__init__(var, [SaveSpec(tensor, slice_spec, name, var.dtype, var.device)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Operation:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = reshape(value, restored_shapes[0])
        with device(self._var_device):
            value = identity(value)
            self._var_shape.assert_is_compatible_with(value.shape)
            if value.shape.is_fully_defined() or not self._var_shape.is_fully_defined():
                return assign_variable_op(self.handle_op, value)
            value.set_shape(self._var_shape)
            return assign_variable_op(self.handle_op, value)


def _reader(variable: Variable) -> Callable[[], Tensor]:
    def read() -> Tensor:
        with device(variable.device):
            value = variable.read_value()
            with device("/device:CPU:0"):
                return identity(value)

    return read


def _reference(value: TensorLike) -> Any:
    return value._ref() if isinstance(value, Variable) else value


def _as_tensor(value: Any, message: str) -> Tensor:
    """The tensor by which a variable in a graph is saved: its reference, or the read of a
    handle.
    """
    if isinstance(value, ResourceVariable):
        found: Any = value._graph_element
    elif isinstance(value, Variable):
        found = value._ref()
    else:
        found = value
    if not (isinstance(found, Tensor) and _is_variable(found.op)):
        raise TypeError(f"{message}: {value}")
    return found


def _is_variable(op: Operation) -> bool:
    """Whether an operation is a variable, or reads one."""
    return op._opdef.role in ("variable", "handle", "read")


def _saveable_kind(
    op: Operation,
) -> type[ReferenceVariableSaveable] | type[ResourceVariableSaveable]:
    is_ref = op._opdef.role == "variable"
    return ReferenceVariableSaveable if is_ref else ResourceVariableSaveable


def is_saveable(value: object) -> TypeGuard[SaveableObject]:
    """Whether it says itself what is saved of it and how that is restored."""
    return isinstance(value, (SaveableObject, TableSaveable))


def saveable_objects_for_op(op: Operation, name: str) -> Iterator[SaveableObject]:
    """The saveables that together save a variable, a tensor that reads one, a list of parts or a
    partitioned variable.
    """
    if not isinstance(name, str):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to trackable "
            f"operations. Name is not a string: {name}"
        )
    if is_saveable(op):
        yield op
    elif isinstance(op, (list, tuple, PartitionedVariable)):
        yield from _parts(list(op), name)
    elif isinstance(op, ResourceVariable) and not getattr(op, "_in_graph_mode", True):
        yield ResourceVariableSaveable(op, "", name)
    elif hasattr(op, "_gather_saveables_for_checkpoint") and not isinstance(op, Variable):
        for attr, factory in op._gather_saveables_for_checkpoint().items():
            full_name = name if attr == "VARIABLE_VALUE" else f"{name}_{attr}"
            made = factory(full_name) if callable(factory) else factory
            yield from saveable_objects_for_op(made, made.name)
    else:
        tensor = _as_tensor(
            op,
            "names_to_saveables must be a dict mapping string names to Tensors/Variables. "
            "Not a variable",
        )
        kind = _saveable_kind(tensor.op)
        yield kind(tensor, "", name)


def _parts(parts: Sequence[Any], name: str) -> Iterator[SaveableObject]:
    whole = None
    for part in parts:
        if not isinstance(part, Variable):
            raise ValueError(f"Slices must all be Variables: {part}")
        info = part._get_save_slice_info()
        if info is None:
            raise ValueError(f"Slices must all be slices: {part}")
        if whole is not None and whole != info.full_name:
            raise ValueError(
                f"Slices must all be from the same tensor: {whole} != {info.full_name}"
            )
        whole = info.full_name
        kind = _saveable_kind(part.op)
        yield kind(part, info.spec, name)


def op_list_to_dict(op_list: object, convert_variable_to_tensor: bool = True) -> dict[str, Any]:
    """Variables by the name under which they are saved; parts of one variable as a list."""
    if not isinstance(op_list, (list, tuple, set)):
        raise TypeError(f"Variables to save should be passed in a dict or a list: {op_list}")
    found: dict[str, Any] = {}
    for var in sorted(op_list, key=lambda v: v.name):
        info = var._get_save_slice_info() if isinstance(var, Variable) else None
        if is_saveable(var):
            found[var.name] = var
        elif isinstance(var, PartitionedVariable):
            _add_new(found, var.name, var)
        elif info is not None:
            listed = found.setdefault(str(info.full_name), [])
            if not isinstance(listed, list):
                raise ValueError(
                    f"Mixing slices and non-slices with the same name: {info.full_name}"
                )
            listed.append(var)
        elif hasattr(var, "_gather_saveables_for_checkpoint") and not isinstance(var, Variable):
            factories = var._gather_saveables_for_checkpoint().values()
            found.update(op_list_to_dict([f() if callable(f) else f for f in factories]))
        elif isinstance(var, ResourceVariable) and not getattr(var, "_in_graph_mode", True):
            if found.setdefault(var._handle_name, var) is not var:
                raise ValueError(
                    "Two different ResourceVariable objects with the same shared_name "
                    f"'{var._handle_name}' were passed to the "
                    "Saver. Give them names of their own, or pass a dict of names."
                )
        else:
            tensor = _as_tensor(var, "Variable to save is not a Variable")
            op = tensor.op.inputs[0].op if tensor.op.type == "ReadVariableOp" else tensor.op
            _add_new(found, op.name, tensor if convert_variable_to_tensor else var)
    return found


def _add_new(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found:
        raise ValueError(f"At least two variables have the same name: {name}")
    found[name] = value


def validate_and_slice_inputs(names_to_saveables: object) -> list[SaveableObject]:
    """The saveables of a list or dict of variables, sorted by name."""
    if not isinstance(names_to_saveables, Mapping):
        names_to_saveables = op_list_to_dict(names_to_saveables)
    saveables: list[SaveableObject] = []
    seen: set[int] = set()
    for name, op in sorted(names_to_saveables.items(), key=lambda item: str(item[0])):
        for saveable in saveable_objects_for_op(op, name):
            if id(saveable.op) in seen:
                raise ValueError(
                    f"The same saveable will be restored with two names: {saveable.name}"
                )
            seen.add(id(saveable.op))
            saveables.append(saveable)
    return saveables


def dynamic_shape(tensor: Tensor) -> Any:
    """The static shape of a tensor where it is known, else the operation that tells it."""
    shape = tensor.get_shape()
    return shape if shape.is_fully_defined() else apply_op("Shape", tensor)
