"""Variables: what ``tf.Variable`` makes, and what both kinds of variable have in common.

``Variable(...)`` is a factory: it passes its arguments through the creators of
``variable_creator_scope`` to the default one, which makes a :class:`RefVariable` (TF 1's default)
or, with ``use_resource=True``, a :class:`ResourceVariable`. Variables compare by identity, stand
for their value in expressions and are listed in the graph's collections.

    >>> v = Variable([1.0, 2.0], name="v")
    >>> v * 2.0  # reads v/read
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from headrace.core import stacks
from headrace.core.annotations import DeviceLike, DTypeLike, ShapeLike, TensorLike
from headrace.core.build import apply_op
from headrace.core.convert import register_tensor_conversion_function, register_tensor_like
from headrace.core.dtypes import DType
from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import _outside_functions, init_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Operation, Reference, SupportsOperators, Tensor
from headrace.variables.variable_slices import SaveSliceInfo as _SliceInfo
from headrace.variables.variable_slices import sliced_variable

if TYPE_CHECKING:
    from headrace.core.annotations import ConstraintLike
    from headrace.session.session import BaseSession, Session

__all__ = ["Variable", "VariableAggregation", "VariableSynchronization", "default_variable_creator"]


class VariableSynchronization(enum.Enum):
    """When the copies of a distributed variable are brought together.

    ``AUTO``, ``NONE``, ``ON_WRITE`` or ``ON_READ``. Headrace has one replica: ``ON_READ`` makes a
    variable that is not trained, and otherwise the value changes nothing.
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How the copies of a distributed variable are brought together.

    ``NONE`` (an error if needed), ``SUM``, ``MEAN`` or ``ONLY_FIRST_REPLICA``. Headrace has one
    replica: the value is kept with the variable and changes nothing.
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3

    def __hash__(self) -> int:
        return hash(self.value)


def checked_distribution(
    synchronization: VariableSynchronization | None,
    aggregation: VariableAggregation | None,
    trainable: bool | None,
    name: str | None,
) -> tuple[VariableSynchronization, VariableAggregation, bool]:
    """The three arguments with their defaults.

    A variable that is summed on reading is not trained.
    """
    try:
        aggregation = VariableAggregation(
            VariableAggregation.NONE if aggregation is None else aggregation
        )
    except ValueError:
        raise ValueError(
            f"Invalid variable aggregation mode: {aggregation} for variable: {name}"
        ) from None
    try:
        synchronization = VariableSynchronization(
            VariableSynchronization.AUTO if synchronization is None else synchronization
        )
    except ValueError:
        raise ValueError(
            f"Invalid variable synchronization mode: {synchronization} for variable: {name}"
        ) from None
    if trainable is None:
        trainable = synchronization is not VariableSynchronization.ON_READ
    return synchronization, aggregation, trainable


# making one -------------------------------------------------------------------------------------


def default_variable_creator(next_creator: object = None, **kwargs: Any) -> Any:
    """The innermost creator: chooses the kind of variable."""
    from headrace.variables.ref_variable import RefVariable
    from headrace.variables.resource_variable import ResourceVariable
    from headrace.variables.variable_scope import get_variable_scope, resource_variables_enabled

    assert next_creator is None
    use_resource = kwargs.pop("use_resource", None)
    graph = get_default_graph()
    if graph._is_eager:
        return graph._variable(kwargs)
    if graph._is_function:
        return _lifted(graph, use_resource, kwargs)
    if use_resource is None:
        use_resource = get_variable_scope().use_resource
    if use_resource is None:
        use_resource = resource_variables_enabled()
    return ResourceVariable(**kwargs) if use_resource else RefVariable(**kwargs)


def _lifted(graph: Any, use_resource: bool | None, kwargs: dict[str, Any]) -> Any:
    """A variable that a function makes stands outside of it."""
    if graph.variable_maker is not None:
        return graph.variable_maker(kwargs)
    with init_scope():
        return default_variable_creator(None, use_resource=use_resource is not False, **kwargs)


def _creators(graph: Graph) -> list[Callable[..., Any]]:
    return graph._variable_creators


@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Variables made inside go through ``variable_creator(next_creator, **kwargs)``."""
    stack = _creators(get_default_graph())
    stack.append(variable_creator)
    try:
        yield
    finally:
        stack.pop()


def create_variable(
    initial_value: object = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    validate_shape: bool = True,
    caching_device: DeviceLike | None = None,
    name: str | None = None,
    variable_def: object = None,
    dtype: DTypeLike | None = None,
    expected_shape: object = None,
    import_scope: str | None = None,
    constraint: ConstraintLike | None = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
    shape: ShapeLike | None = None,
) -> Any:
    """What ``Variable(...)`` does."""
    kwargs = dict(locals())
    creator: Callable[..., Any] = default_variable_creator
    graph = get_default_graph()
    around = _creators(_outside_functions(graph)) if graph._is_function else []
    for outer in [*around, *_creators(graph)]:
        creator = _chained(outer, creator)
    return creator(**kwargs)


def _chained(outer: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **kwargs: outer(inner, **kwargs)


def _home() -> Graph:
    """Where a variable that is made here stands: outside of functions."""
    graph = get_default_graph()
    return _outside_functions(graph) if graph._is_function else graph


class _VariableFactory(type):
    """``Variable(...)`` makes one of its subclasses, which are made as any class is."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Variable:
            return create_variable(*args, **kwargs)
        if "_made_eagerly" in cls.__dict__ and _home()._is_eager:
            init = inspect.signature(cls.__dict__["__init__"])
            bound = init.bind(None, *args, **kwargs).arguments
            return _home()._variable({k: v for k, v in bound.items() if k != "self"})
        return super().__call__(*args, **kwargs)


class Variable(SupportsOperators, metaclass=_VariableFactory):
    """A value that lives in a session from one run to the next."""

    __array_priority__ = 100
    SaveSliceInfo = _SliceInfo

    _trainable: bool
    _constraint: Callable[[Tensor], Any] | None
    _synchronization: VariableSynchronization
    _aggregation: VariableAggregation
    _initial_value: Tensor | None
    _initializer_op: Any
    _caching_device: Any = None
    _save_slice_info: _SliceInfo | None = None
    _in_graph_mode = True

    if TYPE_CHECKING:  # both kinds of variables have them
        _snapshot: Tensor

        @property
        def handle(self) -> Tensor: ...

        def assign_add(
            self,
            delta: TensorLike,
            use_locking: bool = False,
            name: str | None = None,
            read_value: bool = True,
        ) -> Any: ...

        def assign_sub(
            self,
            delta: TensorLike,
            use_locking: bool = False,
            name: str | None = None,
            read_value: bool = True,
        ) -> Any: ...

    if TYPE_CHECKING:  # create_variable has the same parameters

        def __init__(
            self,
            initial_value: TensorLike | Callable[[], TensorLike] | None = None,
            trainable: bool | None = None,
            collections: Sequence[str] | None = None,
            validate_shape: bool = True,
            caching_device: DeviceLike = None,
            name: str | None = None,
            variable_def: object = None,
            dtype: DTypeLike | None = None,
            expected_shape: ShapeLike | None = None,
            import_scope: str | None = None,
            constraint: Callable[[Tensor], Any] | None = None,
            use_resource: bool | None = None,
            synchronization: VariableSynchronization = VariableSynchronization.AUTO,
            aggregation: VariableAggregation = VariableAggregation.NONE,
            shape: ShapeLike | None = None,
        ) -> None: ...

    # what the two kinds define ------------------------------------------------------------------
    def value(self) -> Tensor:
        """The last read of the variable (a cached one, where there is one)."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """A new read, ordered by the control dependencies in force."""
        raise NotImplementedError

    def _ref(self) -> Tensor:
        raise NotImplementedError

    def _as_graph_element(self) -> Tensor:
        raise NotImplementedError

    def assign(
        self, value: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        raise NotImplementedError

    def _scatter(self, op_type: str, indices: Any, updates: Any, name: str | None) -> Any:
        raise NotImplementedError

    _scatter_prefix: ClassVar[str] = ""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    @property
    def op(self) -> Operation:
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        raise NotImplementedError

    # shared -------------------------------------------------------------------------------------
    @property
    def _graph_anchor(self) -> Tensor:
        """A tensor that has the variable's graph and type: core looks at it without converting."""
        return self._as_graph_element()

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Tensor], Any] | None:
        """The projection that optimizers apply after an update."""
        return self._constraint

    @property
    def initializer(self) -> Any:
        """The operation that gives the variable its initial value."""
        return self._initializer_op

    @property
    def initial_value(self) -> Tensor | None:
        """The tensor that the initialiser assigns."""
        return self._initial_value

    @property
    def _shared_name(self) -> str:
        return self.name.partition(":")[0]

    def get_shape(self) -> TensorShape:
        return self.shape

    def ref(self) -> Reference:
        """Something hashable that stands for the variable."""
        return Reference(self)

    experimental_ref = ref

    def initialized_value(self) -> Tensor:
        """The variable's value, or its initial value while it has none."""
        from headrace.ops.control.control_flow import cond
        from headrace.ops.state.ref_state import is_variable_initialized

        if self.initial_value is None:
            raise ValueError(
                f"The initial value of variable {self.name} is not known: it was restored from a "
                "VariableDef that does not name it."
            )

        def initial() -> Tensor:
            # what the initialiser assigns, which does not read variables that may be uninitialised
            assigned: Tensor = self._initializer_op.inputs[1]
            return assigned

        with init_scope():
            return cond(is_variable_initialized(self), self.read_value, initial)

    def eval(self, session: BaseSession | None = None) -> Any:
        """The value in a session (the default one)."""
        return self._as_graph_element().eval(session=session)

    def load(self, value: TensorLike, session: Session | None = None) -> None:
        """Give the variable a value in a session without adding to the graph."""
        if self._initializer_op is None:
            raise ValueError(f"Variable {self.name} has no initializer to load a value through")
        session = session if session is not None else stacks.default_sessions.get()
        if session is None:
            raise ValueError(
                "Either session argument should be provided or default session should be "
                "established. "
                "Use `with sess.as_default()` or `v.load(value, sess)`."
            )
        session.run(self._initializer_op, {self._initializer_op.inputs[1]: value})

    def _set_save_slice_info(self, save_slice_info: _SliceInfo | None) -> None:
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self) -> _SliceInfo | None:
        return self._save_slice_info

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A VariableDef message, or None if the variable is outside ``export_scope``."""
        from headrace.variables.variable_proto import variable_to_proto

        return variable_to_proto(self, export_scope)

    @staticmethod
    def from_proto(variable_def: object, import_scope: str | None = None) -> Variable:
        """The variable that a VariableDef names in the default graph."""
        from headrace.variables.variable_proto import variable_from_proto

        return variable_from_proto(variable_def, import_scope)

    # scatters -----------------------------------------------------------------------------------
    def _scatter_rows(
        self, how: str, sparse_delta: IndexedSlices | Sequence[float], name: str | None
    ) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise ValueError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        return self._scatter(
            self._scatter_prefix + how, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_sub(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter_rows("ScatterSub", sparse_delta, name)

    def scatter_add(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter_rows("ScatterAdd", sparse_delta, name)

    def scatter_max(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter_rows("ScatterMax", sparse_delta, name)

    def scatter_min(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter_rows("ScatterMin", sparse_delta, name)

    def scatter_mul(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter_rows("ScatterMul", sparse_delta, name)

    def scatter_div(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter_rows("ScatterDiv", sparse_delta, name)

    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        return self._scatter_rows("ScatterUpdate", sparse_delta, name)

    def scatter_nd_sub(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        return self._scatter(self._scatter_prefix + "ScatterNdSub", indices, updates, name)

    def scatter_nd_add(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        return self._scatter(self._scatter_prefix + "ScatterNdAdd", indices, updates, name)

    def scatter_nd_update(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        return self._scatter(self._scatter_prefix + "ScatterNdUpdate", indices, updates, name)

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        from headrace.ops.state.ref_scatter import batch_scatter_update

        return batch_scatter_update(
            self, sparse_delta.indices, sparse_delta.values, use_locking, name
        )

    # Python -------------------------------------------------------------------------------------
    def __getitem__(self, key: object) -> Tensor:
        return sliced_variable(self, key)

    def __iter__(self) -> NoReturn:
        raise TypeError("'Variable' object is not iterable.")

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    @classmethod
    def _OverloadAllOperators(cls) -> None:
        """Every operator of Tensor, on the variable's value."""
        for operator in Tensor.OVERLOADABLE_OPERATORS - {"__getitem__"}:
            cls._OverloadOperator(operator)

    @classmethod
    def _OverloadOperator(cls, operator: str) -> None:
        def run(self: Variable, *args: Any, **kwargs: Any) -> Any:
            return getattr(Tensor, operator)(self.value(), *args, **kwargs)

        functools.update_wrapper(run, getattr(Tensor, operator))
        setattr(cls, operator, run)


Variable._OverloadAllOperators()


def checked_collections(collections: object, trainable: bool) -> list[Any]:
    """The collections that a new variable goes into."""
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, (list, tuple, set)):
        raise ValueError(
            "collections argument to Variable constructor must be a list, tuple, or set. "
            f"Got {collections} of type {type(collections)}"
        )
    found = list(collections)
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in found:
        found.append(GraphKeys.TRAINABLE_VARIABLES)
    return found


def gather_rows(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    return apply_op("GatherV2", params, indices, 0, name=name)


def _convert(
    value: Variable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and dtype._base is not value.dtype._base:
        if dtype.name == "resource" and hasattr(value, "handle"):
            return value.handle
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable "
            f"of type '{value.dtype.name}'"
        )
    return value._ref() if as_ref else value.value()


register_tensor_conversion_function(Variable, _convert, 100)
register_tensor_like(Variable)
