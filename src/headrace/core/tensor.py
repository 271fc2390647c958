"""Operation and Tensor: the nodes and edges that a user holds.

Both compare by identity, as in TF 1.15. Attributes of an operation are plain Python values under
TensorFlow's names: types are DType, shapes plain tuples, tensors NumPy arrays, strings ``str``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import shapes, stacks, trace
from headrace.core.dtypes import DType
from headrace.core.shapes import Shape, TensorShape
from headrace.errors import OperatorNotAllowedInGraphError

if TYPE_CHECKING:
    from headrace.core.annotations import FeedDict, ShapeLike, TensorLike
    from headrace.core.contexts import CondBase
    from headrace.core.graph import Graph
    from headrace.core.opdef import OpDef
    from headrace.session.session import BaseSession

__all__ = ["Operation", "Reference", "SupportsOperators", "Tensor"]


class SupportsOperators:
    """Python's operators between tensors, for type checkers.

    ops/math/operators.py puts the functions on Tensor; variables pass on their value.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # of eager tensors; those of a graph have no value
        def numpy(self) -> Any: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __index__(self) -> int: ...
        def __add__(self, other: TensorLike) -> Tensor: ...
        def __radd__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __floordiv__(self, other: TensorLike) -> Tensor: ...
        def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
        def __mod__(self, other: TensorLike) -> Tensor: ...
        def __rmod__(self, other: TensorLike) -> Tensor: ...
        def __pow__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __rmatmul__(self, other: TensorLike) -> Tensor: ...
        def __and__(self, other: TensorLike) -> Tensor: ...
        def __rand__(self, other: TensorLike) -> Tensor: ...
        def __or__(self, other: TensorLike) -> Tensor: ...
        def __ror__(self, other: TensorLike) -> Tensor: ...
        def __xor__(self, other: TensorLike) -> Tensor: ...
        def __rxor__(self, other: TensorLike) -> Tensor: ...
        def __lt__(self, other: TensorLike) -> Tensor: ...
        def __le__(self, other: TensorLike) -> Tensor: ...
        def __gt__(self, other: TensorLike) -> Tensor: ...
        def __ge__(self, other: TensorLike) -> Tensor: ...
        def __getitem__(self, item: object) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...


def _refuse_assignment(value: object, name: str | None = None) -> Any:
    raise ValueError("Sliced assignment is only supported for variables")


class _SliceAssign:
    """Slices have ``assign``, which is for variables' slices alone; other tensors have none.

    (A ``__getattr__`` of the class would make all its fields slower.)
    """

    def __get__(self, tensor: Tensor | None, owner: type) -> Any:
        if tensor is not None and tensor._op.type == "StridedSlice":
            return _refuse_assignment
        raise AttributeError(f"{owner.__name__!r} object has no attribute 'assign'")


class Tensor(SupportsOperators):
    """One output of an operation: a value that a run computes.

    ``shape`` and ``dtype`` are what is known while the graph is built. Python's operators make new
    operations; ``x[1:, 0]`` slices. ``x.eval(feed)`` is ``session.run(x, feed)`` with the default
    session.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_dtype",
        "_name",
        "_op",
        "_shape",
        "_static",
        "_value_index",
    )

    __array_priority__ = 100
    OVERLOADABLE_OPERATORS = {
        "__add__",
        "__radd__",
        "__sub__",
        "__rsub__",
        "__mul__",
        "__rmul__",
        "__div__",
        "__rdiv__",
        "__truediv__",
        "__rtruediv__",
        "__floordiv__",
        "__rfloordiv__",
        "__mod__",
        "__rmod__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__and__",
        "__rand__",
        "__or__",
        "__ror__",
        "__xor__",
        "__rxor__",
        "__getitem__",
        "__pow__",
        "__rpow__",
        "__invert__",
        "__neg__",
        "__abs__",
        "__matmul__",
        "__rmatmul__",
    }

    def __init__(self, op: Operation, value_index: int, dtype: DType, shape: Shape = None) -> None:
        self._op = op
        self._value_index = value_index
        self._dtype = dtype
        self._shape = shape
        self._name: str | None = None
        self._static: Any = stacks.UNSET

    @property
    def op(self) -> Operation:
        return self._op

    @property
    def graph(self) -> Graph:
        return self._op.graph

    @property
    def name(self) -> str:
        name = self._name
        if name is None:
            name = self._name = f"{self._op.name}:{self._value_index}"
        return name

    @property
    def value_index(self) -> int:
        return self._value_index

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def device(self) -> str:
        return self._op.device

    @property
    def shape(self) -> TensorShape:
        return shapes.from_plain(self._shape)

    def get_shape(self) -> TensorShape:
        return shapes.from_plain(self._shape)

    def set_shape(self, shape: ShapeLike | None) -> None:
        """Add knowledge about the static shape."""
        plain = shapes.to_plain(shape)
        try:
            self._shape = shapes.merge(self._shape, plain)
        except ValueError:
            raise ValueError(
                f"Tensor {self.name} has shape {self.shape}, which is not compatible with "
                f"{shapes.from_plain(plain)}"
            ) from None
        self._op.graph._bump()

    def _rank(self) -> int | None:
        return None if self._shape is None else len(self._shape)

    def _shape_as_list(self) -> list[int | None] | None:
        return None if self._shape is None else list(self._shape)

    def _shape_tuple(self) -> Shape:
        return self._shape

    def consumers(self) -> list[Operation]:
        """The operations that take the tensor, each as often as it takes it."""
        found = self._op.graph._consumers_of(self)
        return [op for op in found for t in op._inputs if t is self]

    def eval(self, feed_dict: FeedDict | None = None, session: BaseSession | None = None) -> Any:
        return stacks.session_for(session, self._op.graph, "evaluate a tensor using `eval()`").run(
            self, feed_dict
        )

    def ref(self) -> Reference:
        """Something hashable that stands for the tensor."""
        return Reference(self)

    experimental_ref = ref

    def _as_node_def_input(self) -> str:
        return self._op.name if self._value_index == 0 else self.name

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self._dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self._shape is None else f", shape={self.shape}"
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype.name}{device})'

    def __bool__(self) -> bool:
        raise OperatorNotAllowedInGraphError(
            "using a `tf.Tensor` as a Python `bool` is not allowed in Graph execution. "
            "Use Eager execution or decorate this "
            "function with @tf.function. Use `if t is not None:` instead of `if t:` to test "
            "if a tensor is defined, and use TensorFlow ops such as tf.cond to execute "
            "subgraphs conditioned on the "
            "value of a tensor."
        )

    if not TYPE_CHECKING:
        assign = _SliceAssign()

    def __iter__(self) -> Any:
        raise OperatorNotAllowedInGraphError(
            "iterating over `tf.Tensor` is not allowed in Graph execution. Use Eager "
            "execution or decorate this function "
            "with @tf.function. Tensor objects are only iterable when eager execution is "
            "enabled. To iterate over this tensor use "
            "tf.map_fn, or tf.unstack if its first dimension is known."
        )

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for symbolic Tensors. ({self.name}) Please call "
            "`x.shape` rather than `len(x)` for "
            "shape information, or tf.shape(x)[0] for what is known when it runs."
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array. Its value "
            "is what sess.run or .eval "
            "gives; np.array([a, b]) of tensors is tf.stack([a, b]), and a NumPy function "
            "of a tensor is tf.py_func."
        )

    @staticmethod
    def _override_operator(operator: str, func: Callable[..., Any]) -> None:
        setattr(Tensor, operator, func)


class Reference:
    """A tensor or variable as a key of dictionaries: equal only to references to the same
    object.
    """

    __slots__ = ("__weakref__", "_wrapped")

    def __init__(self, wrapped: object) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._wrapped is other._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


class Operation:
    """A node of a graph: ``name``, ``type``, ``inputs``, ``outputs``, ``control_inputs``.

    Operations are made by functions such as ``tf.matmul`` and looked up with
    ``graph.get_operation_by_name``. Fetching one runs it and gives None.
    """

    #: Inputs whose gradient is not wanted: known on tapes (eager/tape_record.py), not in graphs,
    #: where planning drops them.
    _skip: frozenset[int] = frozenset()
    #: Of a Merge: what chooses its input, and whether the value for false comes second.
    _cond_pred: Tensor | None = None
    _merge_swapped: bool = False
    #: Of a Switch: the branch that it is the way into (None: it belongs to a loop).
    _cond_context: CondBase | None = None
    #: What its state is kept under, where that is not its name.
    _state_key: str = ""
    #: TensorFlow has reshapes around it: they count where seeds are derived from numbers of ops.
    _reshaped_in_tf: bool = False

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_attrs",
        "_context",
        "_control_inputs",
        "_device",
        "_frames",
        "_id",
        "_inputs",
        "_opdef",
        "_outputs",
        "graph",
        "name",
        "type",
    )

    graph: Graph
    name: str
    type: str
    #: Never changed, only replaced: operations with equal attributes may share them.
    _attrs: dict[str, Any]
    _context: Any
    _control_inputs: tuple[Operation, ...]
    _device: str
    _frames: trace.Frames
    _id: int
    _inputs: tuple[Tensor, ...]
    _opdef: OpDef
    _outputs: tuple[Tensor, ...]

    @property
    def _role(self) -> str:
        """The role of its op; what stands for an operation in eager mode has one, too."""
        return self._opdef.role

    @property
    def op_def(self) -> Any:
        """The OpDef message of its type: ``op.op_def.input_arg``, ``output_arg``, ``attr``."""
        return stacks.op_def_of(self._opdef)

    @property
    def inputs(self) -> list[Tensor]:
        call = None if self.type is self._opdef.name else stacks.call_of(self)
        return list(self._inputs if call is None else call.inputs)

    @property
    def outputs(self) -> list[Tensor]:
        call = None if self.type is self._opdef.name else stacks.call_of(self)
        return list(self._outputs if call is None else self._outputs[: call.outputs])

    @property
    def control_inputs(self) -> list[Operation]:
        return list(self._control_inputs)

    @property
    def device(self) -> str:
        return self._device

    def _set_device(self, device: object) -> None:
        self._device = stacks.device_string(device)
        self.graph._devices.add(self._device)

    def values(self) -> tuple[Tensor, ...]:
        return self._outputs

    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """Where the user made this operation: (file, line, function, text), innermost last."""
        return trace.describe(self._frames)

    @property
    def traceback_with_start_lines(self) -> list[tuple[str, int, str, str, int]]:
        """As :attr:`traceback`, each with the first line of its function."""
        return trace.describe_with_start_lines(self._frames)

    @property
    def node_def(self) -> Any:
        return stacks.node_def_of(self)

    def get_attr(self, name: str) -> Any:
        if name not in self._attrs:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        value = self._attrs[name]
        if isinstance(value, str):
            return value.encode()
        attr = self._opdef.attrs.get(name)
        if attr is None:
            return value
        if attr.kind in ("tensor", "shape", "func") and stacks.attr_encoder is not None:
            return stacks.attr_encoder(self, name)
        if attr.kind == "list(str)":
            return [v.encode() if isinstance(v, str) else v for v in value]
        return list(value) if attr.kind.startswith("list") else value

    def _set_attr(self, name: str, value: object) -> None:
        self._attrs = {**self._attrs, name: value}
        self.graph._bump()

    def _add_control_inputs(self, ops: Sequence[Operation]) -> None:
        self._control_inputs = tuple(dict.fromkeys((*self._control_inputs, *ops)))
        self.graph._bump()

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _remove_all_control_inputs(self) -> None:
        self._control_inputs = ()
        self.graph._bump()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Take another tensor for input ``index`` (``tf.contrib.graph_editor``)."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"tensor must be a Tensor: {tensor}")
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor} must be from the same graph as {self!r}.")
        if not 0 <= index < len(self._inputs):
            raise errors.OutOfRangeError(
                None,
                None,
                f"Cannot update edge. Input index [{index}] is greater than the number of total "
                f"inputs [{len(self._inputs)}].",
            )
        before = self._inputs[index]
        if tensor.dtype.base_dtype != before.dtype.base_dtype:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Input {index} of node {self.name} was passed {tensor.dtype.name} from "
                f"{tensor.name} incompatible with expected {before.dtype.name}.",
            )
        if not before.shape.is_compatible_with(tensor.shape):
            raise errors.InvalidArgumentError(
                None,
                None,
                "Cannot update edge, incompatible shapes: "
                f"{shapes.show(tensor._shape)} and {shapes.show(before._shape)}.",
            )
        inputs = list(self._inputs)
        inputs[index] = tensor
        self._inputs = tuple(inputs)
        self.graph._inputs_changed()

    def _get_control_flow_context(self) -> Any:
        return self._context

    def colocation_groups(self) -> list[bytes]:
        classes = self._attrs.get("_class")
        if classes:
            return [c for c in classes if c.startswith(b"loc:@")]
        return [b"loc:@" + self.name.encode()]

    def run(self, feed_dict: FeedDict | None = None, session: object = None) -> None:
        stacks.session_for(session, self.graph, "execute an operation using `run()`").run(
            self, feed_dict
        )

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        try:
            return str(self.node_def)
        except ImportError:
            return repr(self)
