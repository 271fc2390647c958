"""What is in force where an operation is made: name scopes, devices, control dependencies and more.

:class:`GraphScopes` is the part of :class:`~headrace.core.graph.Graph` that programs enter with
``with``. What a block sets holds for the thread that entered it (thread_scopes.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from headrace.core import stacks
from headrace.core.device_names import _canonical_device, _merge_devices
from headrace.core.scope_blocks import (
    VALID_OP_NAME,
    Colocation,
    ControlDependencies,
    ControlScope,
    NameScope,
)
from headrace.core.tensor import Operation
from headrace.core.thread_scopes import OpenScopes, ThreadScopes, thread_scope

if TYPE_CHECKING:
    pass

__all__ = ["GraphScopes"]


class GraphScopes:
    """The scopes of a graph, and what they say of a new operation's name, device and inputs."""

    # the scopes that the calling thread has entered
    # the scopes that the calling thread has entered
    _name_stack: str = thread_scope("name_stack")
    _control_stack: list[ControlDependencies] = thread_scope("control_stack")
    _control_ops: tuple[Operation, ...] = thread_scope("control_ops")
    _device_stack: list[Any] = thread_scope("device_stack")
    _colocation_stack: list[Operation] = thread_scope("colocation_stack")
    _gradient_overrides: dict[str, str] = thread_scope("gradient_overrides")
    _scope_attrs: dict[str, Any] = thread_scope("attrs")
    _container: str = thread_scope("container")
    _context: Any = thread_scope("context")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._names_in_use: dict[str, int] = {}
        self._scopes = ThreadScopes()

    def as_graph_element(
        self, obj: object, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        raise NotImplementedError

    # names --------------------------------------------------------------------------------------
    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        stack = self._scopes.here.name_stack
        return self._unique(f"{stack}/{name}" if stack else name, mark_as_used)

    def _unique(self, name: str, mark_as_used: bool = True) -> str:
        """Make a full name unique, TF's way.

        ``x``, ``x_1``, ``x_2``; case does not distinguish names.
        """
        with self._lock:
            used = self._names_in_use
            key = name.lower()
            i = used.get(key, 0)
            if i == 0:
                if mark_as_used:
                    used[key] = 1
                return name
            while (candidate := f"{key}_{i}") in used:
                i += 1
            if mark_as_used:
                used[candidate] = 1
                used[key] = i + 1
            return f"{name}_{i}"

    def _full_name(self, name: str) -> str:
        """The final name of an op called ``name`` here.

        A trailing slash says that the name is final already.
        """
        if name[-1:] == "/":
            return name[:-1]
        try:
            valid = VALID_OP_NAME.match(name)
        except TypeError:  # bytes
            name = name.decode() if isinstance(name, bytes) else str(name)
            valid = VALID_OP_NAME.match(name)
        if not valid:
            raise ValueError(f"'{name}' is not a valid node name")
        stack = self._scopes.here.name_stack
        return self._unique(f"{stack}/{name}" if stack else name)

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        return NameScope(self, name)

    def get_name_scope(self) -> str:
        return self._name_stack

    # blocks -------------------------------------------------------------------------------------
    def control_dependencies(self, control_inputs: object) -> AbstractContextManager[None]:
        return ControlScope(self, control_inputs)

    @contextmanager
    def device(self, device_name_or_function: object) -> Iterator[None]:
        if isinstance(device_name_or_function, str):
            device_name_or_function = stacks.device_string(device_name_or_function)
        entry = [device_name_or_function]  # (a list: its identity shows whether exits are nested)
        self._device_stack.append(entry)
        try:
            yield
        finally:
            if self._device_stack[-1] is not entry:
                raise RuntimeError("Exiting device scope without proper scope nesting")
            self._device_stack.pop()

    @contextmanager
    def _devices_of(self, device_stack: list[Any]) -> Iterator[None]:
        """With the device scopes of another graph in place of its own."""
        old, self._device_stack = self._device_stack, device_stack
        try:
            yield
        finally:
            self._device_stack = old

    def colocate_with(
        self, op: object, ignore_existing: bool = False
    ) -> AbstractContextManager[None]:
        return Colocation(self, op, ignore_existing)

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        if not isinstance(op_type_map, dict):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        for key, value in op_type_map.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        old = self._gradient_overrides
        self._gradient_overrides = {**old, **op_type_map}
        try:
            yield
        finally:
            self._gradient_overrides = old

    @contextmanager
    def _kernel_label_map(self, op_to_kernel_label_map: dict[str, str]) -> Iterator[None]:
        yield  # labels choose between TensorFlow's own kernels; there is nothing to choose here

    @contextmanager
    def _attribute_scope(self, attrs: dict[str, Any]) -> Iterator[None]:
        """Operations made inside have these attributes; None takes one of an outer block away."""
        old = self._scope_attrs
        self._scope_attrs = {k: v for k, v in {**old, **attrs}.items() if v is not None}
        try:
            yield
        finally:
            self._scope_attrs = old

    def _attr_scope(self, attr_map: dict[str, Any]) -> Any:
        """TensorFlow's form of :meth:`_attribute_scope`: the values are AttrValue messages."""
        if not isinstance(attr_map, dict):
            raise TypeError("attr_map must be a dictionary mapping strings to AttrValue messages")
        for name, value in attr_map.items():
            if not isinstance(name, str) or not (value is None or hasattr(value, "WhichOneof")):
                raise TypeError(
                    "attr_map must be a dictionary mapping strings to AttrValue messages or None, "
                    f"but has {name!r}: {value!r}"
                )
        plain = {k: None if v is None else _plain_attr(v) for k, v in attr_map.items()}
        return self._attribute_scope(plain)

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        old = self._container
        self._container = container_name
        try:
            yield container_name
        finally:
            self._container = old

    def _get_control_flow_context(self) -> Any:
        return self._context

    def _set_control_flow_context(self, context: object) -> None:
        self._context = context

    # what they say of a new operation -----------------------------------------------------------
    def _needed_controls(self, op: Operation) -> tuple[Operation, ...]:
        """Control inputs of a new operation: those of the blocks around it, except where one of its
        inputs was made in the same block and so waits already.
        """
        direct = {t._op for t in op._inputs}
        needed: dict[Operation, None] = {}
        implied: set[Operation] = set()
        for block in self._control_stack:
            if block.clear:
                needed.clear()
                implied.clear()
            elif block.seen.isdisjoint(direct):
                needed.update(dict.fromkeys(block.ops))
            else:
                implied.update(block.ops)
            block.seen.add(op)
        controls = self._control_ops
        rest = [c for c in controls if c not in needed and c not in implied]
        return tuple(c for c in (*needed, *rest) if c in controls and c not in direct)

    def _add_scope_attrs(self, op: Operation, scopes: OpenScopes) -> None:
        """The attributes that the blocks around a new operation give it."""
        opdef, attrs = op._opdef, {**op._attrs, **scopes.attrs}
        if scopes.container and "container" in opdef.attrs and not attrs.get("container"):
            attrs["container"] = scopes.container
        if opdef.name in scopes.gradient_overrides:
            attrs["_gradient_op_type"] = scopes.gradient_overrides[opdef.name]
        op._attrs = attrs
        if scopes.colocation_stack:
            self._colocate(op)

    def _current_device(self, op: Operation) -> str:
        """From the innermost scope outwards: inner scopes hold, a function sees what they say."""
        device = ""
        for (entry,) in reversed(self._device_stack):
            if entry is None:
                break
            if callable(entry):
                op._device = device
                found = entry(op)
                if found is None:
                    raise TypeError("Expected binary or unicode string, got None")
                device = stacks.device_string(found)
                if isinstance(found, str):
                    device = found  # as it is spelled
            else:
                device = _canonical_device(_merge_devices(stacks.device_string(entry), device))
        return device

    def _colocate(self, op: Operation) -> None:
        groups: set[bytes] = set()
        for other in self._colocation_stack:
            groups.update(other.colocation_groups())
            op._device = other._device
        op._attrs = {**op._attrs, "_class": sorted(groups)}


def _plain_attr(message: Any) -> Any:
    """The value inside an AttrValue where it is a Python value, else the message."""
    field = message.WhichOneof("value")
    return getattr(message, field) if field in ("b", "i", "f", "s") else message
