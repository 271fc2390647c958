"""The graph: append-only, named, per-thread defaults, TF 1.15's scopes and collections.

``Graph._add_op`` is the one place where an operation comes to be: it applies the current
control-flow context, control dependencies, device, colocation and gradient overrides, infers dtypes
and shapes and remembers the user's line.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from headrace.core import stacks, trace
from headrace.core.contexts import frame_of
from headrace.core.graph_scopes import GraphScopes
from headrace.core.infer import infer_shapes
from headrace.core.loop_frames import _check_frame
from headrace.core.opdef import OpDef
from headrace.core.tensor import Operation, Tensor
from headrace.runtime.fork_locks import held_at_fork

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.stacks import Entered

__all__ = ["Graph", "get_default_graph", "has_default_graph", "reset_default_graph"]


class Graph(GraphScopes):
    """A dataflow graph: operations that each have a name, inputs, outputs and attributes.

    Operations are only ever added. ``with graph.as_default():`` makes new ones go there, otherwise
    they go to the global default graph (``tf.get_default_graph()``). ``get_tensor_by_name("x:0")``,
    ``get_operations()`` and ``as_graph_def()`` look at it; a ``tf.Session(graph=graph)`` runs it.
    """

    #: Holds operations of a GraphDef that a TensorFlow after 1.15 wrote: its ops take more types.
    _has_later_types = False
    _is_function = False  # the body of a function (core/func_graph.py)
    _effects: Any = None  # the order of its effects (core/effects.py)
    _calls: Any = None  # which operations are bodies of calls (core/call_records.py)
    _backward_passes: Any = None  # what tf.gradients recorded (autodiff/backward_record.py)
    #: Traces of tf.functions that belong to this graph, if there are some (functions/function.py).
    _function_traces: WeakKeyDictionary[Any, dict[Any, Any]] | None = None
    _imported = False  # has operations of a GraphDef
    _imported_passes: Any = None  # backward passes among them (autodiff/imported_passes.py)
    _is_eager = (
        False  # not a graph at all: operations are computed at once (eager/eager_context.py)
    )

    def __init__(self) -> None:
        super().__init__()
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._devices: set[str] = set()  # that operations were put on
        self._collections: dict[Any, list[Any]] = {}
        self._finalized = False
        self._seed: int | None = None
        self._uncounted = 0  # operations that TF would have made more (see seeds.count_as)
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        self._reordered = False  # inputs of operations may be younger than these
        self._version = 0  # grows with every op and with every change of an existing op
        self._changes = 0  # grows only when something that was there already is changed
        self._consumer_index: dict[Tensor, list[Operation]] = {}
        self._indexed = 0
        self._plans: Any = None  # the session layer keeps its plan cache here
        self._py_funcs: list[Any] = []
        #: What tf.gradients looked at, as TensorFlow caches it (autodiff/op_counts.py).
        self._gradient_shapes_seen: set[tuple[str, object]] = set()
        self._random_ops = 0  # of a function that have its seed (core/seeds.py)
        #: The first handle of each variable, and of how many operations (core/inline.py).
        self._handle_index: tuple[dict[tuple[str, str], Tensor], int] = ({}, 0)
        self._variable_creators: list[Callable[..., Any]] = []
        #: Switch and Merge operations that the program made itself, and what lies between them.
        self._flat_flow: list[Operation] = []
        self._flat_placed: dict[Operation, None] = {}

    # building -----------------------------------------------------------------------------------
    def _add_op(
        self,
        opdef: OpDef,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        name: str,
        control_inputs: tuple[Operation, ...] | None = None,
        depth: int = 2,
    ) -> Operation:
        """Append an operation under its final (already unique) name.

        (``depth`` -1: the caller says where it was made.)
        """
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        if self._is_function:
            inputs = self._captured_inputs(inputs)
        scopes = self._scopes.here
        context = scopes.context
        for t in inputs:
            inner = t._op._context
            if inner is not None and inner is not context:
                _check_frame(t, inner, context, opdef, name)
        if context is not None:
            inputs = context.capture_inputs(opdef, inputs)
        op = Operation.__new__(Operation)
        op.graph = self
        op.name = name
        op.type = opdef.name
        op._opdef = opdef
        op._inputs = inputs
        op._attrs = attrs
        op._context = context
        op._device = ""
        op._frames = trace.capture(depth) if depth >= 0 else ()
        if control_inputs is not None:
            op._control_inputs = control_inputs and _without_direct(control_inputs, inputs)
        elif scopes.control_ops:
            op._control_inputs = self._needed_controls(op)
        else:
            op._control_inputs = ()
        if context is not None:
            op._control_inputs = context.control_inputs_for(op, op._control_inputs)
        if scopes.attrs or scopes.container or scopes.colocation_stack or scopes.gradient_overrides:
            self._add_scope_attrs(op, scopes)
        op._outputs = infer_shapes(op)
        if scopes.device_stack and not opdef.has_refs:  # device functions may look at the outputs
            op._device = self._current_device(op)
            self._devices.add(op._device)
        if scopes.colocation_stack:
            self._colocate(op)
        with self._lock:
            op._id = len(self._ops)
            self._ops.append(op)
            self._by_name[name] = op
            self._version += 1
        if context is not None:
            context.op_added(op)
        return op

    # what an eager context does instead (eager/eager_context.py)
    def _execute(
        self, opdef: OpDef, inputs: tuple[Any, ...], name: str | None, given: dict[str, Any]
    ) -> Any:
        raise NotImplementedError

    def _multiply(self, a: object, b: object) -> Tensor | None:
        raise NotImplementedError

    def _constant(self, array: object, dtype: DTypeLike) -> Tensor:
        raise NotImplementedError

    def _variable(self, kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _derivative(
        self, build: object, inputs: Sequence[Tensor], weights: Sequence[Any]
    ) -> list[Any]:
        """Gradients of what ``build(copies of inputs)`` gives, weighted, with respect to the
        inputs.
        """
        raise NotImplementedError

    def _custom_gradient(self, f: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _op_seeds(self, op_seed: object) -> tuple[int | None, int | None]:
        raise NotImplementedError

    def _captured_inputs(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return inputs

    def _bump(self) -> None:
        with self._lock:
            self._version += 1
            self._changes += 1

    def _inputs_changed(self) -> None:
        """An operation got another input: it may have been made later than the operation."""
        with self._lock:
            self._reordered = True
            self._consumer_index.clear()
            self._indexed = 0
        self._bump()

    def _close_loop(self, merge: Operation, enter: Tensor, following: Tensor) -> None:
        """Connect a loop's Merge with its NextIteration: not while the graph is being written."""
        with self._lock:
            merge._inputs = (enter, following)

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        dtypes: object = None,
        input_types: object = None,
        name: str | None = None,
        attrs: dict[str, Any] | None = None,
        op_def: object = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """TF 1.15's low-level entry: an operation from its type, input tensors and attributes."""
        from headrace.core.build import create_op

        return create_op(self, op_type, inputs, name, attrs or {})

    # contexts -----------------------------------------------------------------------------------
    def switch_to_thread_local(self) -> None:
        """TF 1.15 keeps the scopes of each thread apart from here on; Headrace always does."""

    def as_default(self) -> Entered:
        return stacks.default_graphs.entered(self)

    # looking things up --------------------------------------------------------------------------
    def as_graph_element(
        self, obj: object, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        if type(obj) is not Tensor:
            convert = getattr(obj, "_as_graph_element", None)
            if convert is not None:
                obj = convert()
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation)
        wanted = " or ".join(
            w for w, a in (("Tensor", allow_tensor), ("Operation", allow_operation)) if a
        )
        if isinstance(obj, Tensor) and allow_tensor:
            if obj._op.graph._is_eager:
                raise ValueError(
                    f"{obj!r} is an eager tensor: it belongs to no graph and has its "
                    "value already, use .numpy()"
                )
            if obj.graph is not self:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj.name} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    def _element_by_name(
        self, name: str, allow_tensor: bool, allow_operation: bool
    ) -> Operation | Tensor:
        if ":" in name and allow_tensor:
            op_name, _, index = name.rpartition(":")
            if not index.isdigit():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. "
                    'Tensor names must be of the form "<op_name>:<output_index>".'
                )
            op = self._by_name.get(op_name)
            if op is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The "
                    f"operation, {op_name!r}, does not "
                    f"exist in the graph.{self._similar_names(op_name)}"
                )
            if int(index) >= len(op._outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The "
                    f"operation, {op_name!r}, exists "
                    f"but only has {len(op._outputs)} outputs."
                )
            return op._outputs[int(index)]
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        if not allow_operation:
            if name in self._by_name:
                raise ValueError(
                    f"The name {name!r} refers to an Operation, not a Tensor. Tensor "
                    "names must be of the form "
                    '"<op_name>:<output_index>".'
                )
            raise ValueError(
                f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. "
                "Tensor names must be of the "
                'form "<op_name>:<output_index>".'
            )
        if name not in self._by_name:
            near = self._similar_names(name)
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.{near}")
        return self._by_name[name]

    def _similar_names(self, name: str) -> str:
        import difflib

        near = difflib.get_close_matches(name, list(self._by_name)[:20000], 3)
        return f" Near: {', '.join(map(repr, near))}." if near else ""

    @property
    def graph_def_versions(self) -> Any:
        """The version numbers (a VersionDef) that the graph's GraphDef has."""
        return self.as_graph_def(from_version=len(self._ops)).versions

    def get_operations(self) -> list[Operation]:
        return list(self._ops)

    def get_operation_by_name(self, name: str) -> Operation:
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        found: Operation = self.as_graph_element(name, allow_tensor=False, allow_operation=True)
        return found

    def get_tensor_by_name(self, name: str) -> Tensor:
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        found: Tensor = self.as_graph_element(name, allow_tensor=True, allow_operation=False)
        return found

    def _consumers_of(self, tensor: Tensor) -> list[Operation]:
        with self._lock:
            index = self._consumer_index
            for op in self._ops[self._indexed :]:
                for t in dict.fromkeys(op._inputs):
                    index.setdefault(t, []).append(op)
            self._indexed = len(self._ops)
            return list(index.get(tensor, ()))

    # feeding and fetching -----------------------------------------------------------------------
    def prevent_feeding(self, tensor: Tensor) -> None:
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        return tensor not in self._unfeedable and frame_of(tensor._op._context) is None

    def prevent_fetching(self, op: Operation) -> None:
        self._unfetchable.add(op)

    def is_fetchable(self, tensor_or_op: Operation | Tensor) -> bool:
        op = tensor_or_op._op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._unfetchable and frame_of(op._context) is None

    # collections --------------------------------------------------------------------------------
    @property
    def collections(self) -> list[Any]:
        return list(self._collections)

    def add_to_collection(self, name: object, value: object) -> None:
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        names = (names,) if isinstance(names, str) else dict.fromkeys(names)
        for name in names:
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: TensorLike) -> list[Any]:
        return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        items = self._collections.get(name, [])
        if scope is None:
            return list(items)
        pattern = re.compile(scope)
        return [i for i in items if hasattr(i, "name") and pattern.match(i.name)]

    def get_all_collection_keys(self) -> list[Any]:
        return [k for k in self._collections if isinstance(k, str)]

    def clear_collection(self, name: object) -> None:
        self._collections.pop(name, None)

    # the rest -----------------------------------------------------------------------------------
    @property
    def version(self) -> int:
        """The number of operations: ``as_graph_def(from_version=…)`` gives those that came
        after.
        """
        return len(self._ops)

    @property
    def seed(self) -> int | None:
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    @property
    def building_function(self) -> bool:
        """Whether this is the body of a function that is being traced."""
        return self._is_function

    @property
    def _building_function(self) -> bool:
        return self._is_function

    @_building_function.setter
    def _building_function(self, value: bool) -> None:
        self._is_function = value

    @property
    def finalized(self) -> bool:
        return self._finalized

    def finalize(self) -> None:
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The graph as a GraphDef message.

        ``add_shapes`` writes static shapes into ``_output_shapes`` attributes.
        """
        if stacks.graph_def_encoder is None:
            raise ImportError("GraphDef messages need headrace.formats, which is not loaded")
        return stacks.graph_def_encoder(self, from_version, add_shapes)


def _without_direct(
    controls: tuple[Operation, ...], inputs: tuple[Tensor, ...]
) -> tuple[Operation, ...]:
    """Control inputs that are not inputs too."""
    direct = {t._op for t in inputs}
    return tuple(c for c in controls if c not in direct)


_global_default: Graph | None = None
_global_lock = held_at_fork(threading.Lock())


def get_default_graph() -> Graph:
    """The graph that ops are added to when nothing else says which."""
    items: list[Graph] = stacks.default_graphs.items
    if items:
        return items[-1]
    global _global_default
    if _global_default is None:
        with _global_lock:
            if _global_default is None:
                _global_default = Graph()
    return _global_default


def has_default_graph() -> bool:
    return bool(stacks.default_graphs.items)


def root_graph() -> Graph | None:
    """What ops are added to outside of every ``with graph.as_default()``, if there is one yet."""
    return _global_default


def set_root_graph(graph: Graph | None) -> None:
    """Eager execution stands in the place of the global default graph; None takes it away again."""
    global _global_default
    _global_default = graph


def reset_default_graph() -> None:
    """Forget the global default graph; the next op starts a new one."""
    global _global_default
    if stacks.eager_graph is not None:  # eager code has its collections in the default graph
        stacks.eager_graph._collections.clear()
        for forget in stacks.forgetters:
            forget(stacks.eager_graph)
    if _global_default is not None and _global_default._is_eager:
        return
    if stacks.default_graphs.items:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a "
            "cleared graph, exit the nesting "
            "and create a new graph."
        )
    _global_default = Graph()
