"""The store behind ``get_variable``: variables of a graph by full name, made once, shared on
demand.

The store knows nothing of scopes; it is given full names and settled arguments. Reuse is False
(must be new), True (must exist), or AUTO_REUSE / None (either).
"""

from __future__ import annotations

import enum
import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import convert as conversion
from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.dtypes import DType
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import init_scope
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.tensor import Tensor
from headrace.variables.partitioned_variable import PartitionedVariable, PartitionInfo
from headrace.variables.variable import (
    VariableAggregation,
    VariableSynchronization,
    checked_distribution,
    create_variable,
)
from headrace.variables.variable_slices import SaveSliceInfo

if TYPE_CHECKING:
    from headrace.core.annotations import (
        ConstraintLike,
        DeviceLike,
        DTypeLike,
        InitializerLike,
        Partitioner,
        RegularizerLike,
        ReuseLike,
        ShapeLike,
        TensorLike,
    )
    from headrace.variables.initializers import GlorotUniform, Zeros
    from headrace.variables.variable import Variable

__all__ = ["AUTO_REUSE", "ReuseMode", "VariableStore"]


class ReuseMode(enum.Enum):
    """What ``reuse`` may be beside True, False and None."""

    AUTO_REUSE = 1


#: Make the variable if it does not exist, share it if it does.
AUTO_REUSE = ReuseMode.AUTO_REUSE


class _Request(NamedTuple):
    """The arguments of one ``get_variable``, under the full name."""

    name: str
    shape: Any
    dtype: Any
    initializer: Any
    regularizer: Any
    reuse: Any
    trainable: bool | None
    collections: Any
    caching_device: Any
    validate_shape: bool
    use_resource: bool | None
    constraint: Any
    synchronization: Any
    aggregation: Any


class VariableStore:
    """Variables by name."""

    #: Eager variables live as long as the program holds them; only tfe.EagerVariableStore keeps
    #: them, and shares them always.
    keeps_eager = False

    def __init__(self) -> None:
        self._vars: dict[str, Any] = {}
        self._partitioned_vars: dict[str, PartitionedVariable] = {}

    def get_variable(
        self,
        name: str,
        shape: ShapeLike | None = None,
        dtype: DTypeLike = dtypes.float32,
        initializer: object = None,
        regularizer: object = None,
        reuse: object = None,
        trainable: bool | None = None,
        collections: TensorLike | None = None,
        caching_device: Any = None,
        partitioner: object = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: object = None,
        constraint: Any = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """An existing variable, or a new one; by way of ``custom_getter`` if there is one."""
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        synchronization, aggregation, trainable = checked_distribution(
            synchronization, aggregation, trainable, name
        )
        given = {
            "name": name,
            "shape": shape,
            "dtype": dtypes.as_dtype(dtype).base_dtype,
            "initializer": initializer,
            "regularizer": regularizer,
            "reuse": reuse,
            "trainable": trainable,
            "collections": collections,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "validate_shape": validate_shape,
            "use_resource": use_resource,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        if custom_getter is None:
            return self._true_getter(constraint=constraint, **given)
        if _accepts(custom_getter, "constraint"):
            given["constraint"] = constraint
        return custom_getter(getter=self._true_getter, **given)

    def _true_getter(
        self,
        name: str,
        shape: ShapeLike | None = None,
        dtype: DTypeLike = dtypes.float32,
        initializer: InitializerLike | None = None,
        regularizer: RegularizerLike | None = None,
        reuse: ReuseLike = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        caching_device: DeviceLike | None = None,
        partitioner: Partitioner | None = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: ConstraintLike | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """What a custom getter is given to call, with TF's parameters in TF's order."""
        request = _Request(
            name,
            shape,
            dtypes.as_dtype(dtype),
            initializer,
            regularizer,
            reuse,
            trainable,
            collections,
            caching_device,
            validate_shape,
            use_resource,
            constraint,
            synchronization,
            aggregation,
        )
        is_scalar = isinstance(shape, Sequence) and not shape
        if partitioner is not None and not is_scalar:
            if not callable(partitioner):
                raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
            with get_default_graph().name_scope(None):
                return self._partitioned(request, partitioner)
        if reuse is True and partitioner is None and name in self._partitioned_vars:
            return self._partitioned(request, None)
        if f"{name}/part_0" in self._vars:
            raise ValueError(
                "No partitioner was provided, but a partitioned version of the variable was found: "
                f"{name}/part_0. Perhaps a variable of the same name was already created "
                "with partitioning?"
            )
        return self._single(request)

    def _get_partitioned_variable(
        self, name: str, partitioner: object, **options: Any
    ) -> PartitionedVariable:
        """For ``create_partitioned_variables``, which goes past getters."""
        options["dtype"] = dtypes.as_dtype(options["dtype"]).base_dtype
        return self._partitioned(_Request(name=name, **options), partitioner)

    # one variable -------------------------------------------------------------------------------
    def _single(self, request: _Request, partition_info: PartitionInfo | None = None) -> Any:
        name, initializer = request.name, request.initializer
        from_value = initializer is not None and not callable(initializer)
        if request.shape is not None and from_value:
            raise ValueError("If initializer is a constant, do not specify shape.")
        shape = as_shape(request.shape)
        keep = self.keeps_eager or not get_default_graph()._is_eager
        if not keep and request.reuse is True:
            raise RuntimeError(
                "When eager execution is enabled variable reuse is only supported when an "
                "EagerVariableStore is "
                "active. See the documentation on EagerVariableStore for example usage."
            )
        if keep and name in self._vars:
            return self._shared(request, shape)
        if request.reuse is True and not self.keeps_eager:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with "
                "tf.get_variable(). Did you mean to set "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
        if initializer is None:
            initializer = default_initializer(name, request.dtype)
        initial_value, dtype = initializer, None
        if not from_value:
            initial_value, dtype = _initial_value(request, initializer, shape, partition_info)
        variable = create_variable(
            initial_value=initial_value,
            name=name,
            trainable=request.trainable,
            collections=request.collections,
            caching_device=request.caching_device,
            dtype=dtype,
            validate_shape=request.validate_shape,
            constraint=request.constraint,
            use_resource=request.use_resource,
            synchronization=request.synchronization,
            aggregation=request.aggregation,
        )
        if keep:
            self._vars[name] = variable
        if self.keeps_eager and get_default_graph()._is_eager:
            _add_to_collections(variable, request)
        if request.regularizer:
            _regularize(variable, name, request.regularizer)
        return variable

    def _shared(self, request: _Request, shape: TensorShape) -> Any:
        name = request.name
        found = self._vars[name]
        if request.reuse is False and not self.keeps_eager:
            raise ValueError(_already_exists(name, found))
        if not shape.is_compatible_with(found.get_shape()):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {shape} and found "
                f"shape {found.get_shape()}."
            )
        if not request.dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype "
                f"{request.dtype.name} and found dtype "
                f"{found.dtype.name}."
            )
        return found

    # a partitioned one --------------------------------------------------------------------------
    def _partitioned(self, request: _Request, partitioner: object) -> PartitionedVariable:
        name = request.name
        if name in self._vars:
            raise ValueError(
                "A partitioner was provided, but an unpartitioned version of the variable "
                "was found: "
                f"{name}.  Perhaps a variable of the same name was already created "
                "without partitioning?"
            )
        shape = as_shape(request.shape)
        if isinstance(request.initializer, Tensor):
            shape = shape.merge_with(request.initializer.get_shape())
        partitions = None
        if not request.reuse or partitioner:
            partitions = _checked_partitions(partitioner, shape, request.dtype)
        if name in self._partitioned_vars:
            return self._shared_partitioned(request, shape, partitions)
        if request.reuse is True or partitions is None:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with "
                "tf.get_variable(). Did you mean "
                "to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
            )
        axis, count = next(((i, n) for i, n in enumerate(partitions) if n > 1), (0, 1))
        self._check_shards(name, count)
        shards = [
            self._shard(request, shape, i, offset, part)
            for i, (offset, part) in enumerate(_slices(shape.as_list(), count, axis))
        ]
        made = PartitionedVariable(name, shape, shards[0].dtype.base_dtype, shards, partitions)
        if self.keeps_eager or not get_default_graph()._is_eager:
            self._partitioned_vars[name] = made
        return made

    def _shared_partitioned(
        self, request: _Request, shape: TensorShape, partitions: object
    ) -> PartitionedVariable:
        name = request.name
        if request.reuse is False:
            raise ValueError(
                f"Partitioned variable with name {name} already exists. Did you mean to "
                "set reuse=True or "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
        found = self._partitioned_vars[name]
        have = found._get_partitions()
        prefix = f"Trying to reuse partitioned variable {name}, but specified"
        if not shape.is_compatible_with(found.get_shape()):
            raise ValueError(f"{prefix} shape {shape} and found shape {found.get_shape()}.")
        if not request.dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"{prefix} dtype {request.dtype.name} and found dtype {found.dtype.name}."
            )
        if partitions is not None and have != partitions:
            raise ValueError(f"{prefix} partitions {partitions} and found partitions {have}.")
        return found

    def _check_shards(self, name: str, count: int) -> None:
        if f"{name}/part_0" not in self._vars:
            return
        prefix = (
            "Partitioner returned a different partitioning than what was already found.  "
            "Partitioner returned "
            f"{count} shards, and shard {name}/part_0 was found, but"
        )
        if f"{name}/part_{count - 1}" not in self._vars:
            raise ValueError(f"{prefix} {name}/part_{count - 1} was not.")
        if f"{name}/part_{count}" in self._vars:
            raise ValueError(f"{prefix} so was the extra shard {name}/part_{count}.")

    def _shard(
        self, request: _Request, shape: TensorShape, i: int, offset: list[int], part: list[int]
    ) -> Any:
        full_name = f"{request.name}/part_{i}"
        graph = get_default_graph()
        initializer = request.initializer
        shard_shape: list[int] | None = part
        dtype = request.dtype
        with graph.name_scope(full_name + "/PartitionedInitializer"):
            if initializer is None:
                initializer = default_initializer(request.name, dtype)
            elif not callable(initializer):
                if not isinstance(initializer, Tensor):
                    initializer = conversion.convert(initializer, dtype)
                initializer = apply_op("Slice", initializer, offset, part)
                dtype, shard_shape = initializer.dtype.base_dtype, None
        info = PartitionInfo(full_shape=shape.as_list(), var_offset=offset)
        options = {**request._asdict(), "name": full_name, "shape": shard_shape, "dtype": dtype}
        options["initializer"] = initializer
        with graph.name_scope(None):
            variable = self._single(_Request(**options), info)
        variable._set_save_slice_info(SaveSliceInfo(request.name, shape.as_list(), offset, part))
        return variable


# helpers ----------------------------------------------------------------------------------------


def _accepts(function: Callable[..., Any], parameter: str) -> bool:
    """Whether a callable can be given a keyword argument of this name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return parameter in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _needs_no_arguments(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return all(
        p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
    )


def default_initializer(name: str, dtype: DType) -> GlorotUniform | Zeros:
    """Glorot uniform for floats, zeros for everything else that has a zero."""
    from headrace.variables import initializers

    if dtype.is_floating:
        return initializers.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_bool or dtype is dtypes.string:
        return initializers.zeros_initializer()
    raise ValueError(f"An initializer for variable {name} of {dtype.base_dtype} is required")


def _initial_value(
    request: _Request, initializer: Any, shape: TensorShape, partition_info: PartitionInfo | None
) -> tuple[Callable[[], Any], DType | None]:
    """A function without arguments that makes the initial value, and the type if it is settled."""
    with init_scope():
        if inspect.isclass(initializer):
            initializer = initializer()
    if shape.is_fully_defined():
        options: dict[str, Any] = {"dtype": request.dtype}
        if _accepts(initializer, "partition_info"):
            options["partition_info"] = partition_info
        return lambda: initializer(shape.as_list(), **options), request.dtype.base_dtype
    if _needs_no_arguments(initializer):
        return initializer, None
    raise ValueError(
        "The initializer passed is not valid. It should be a callable with no arguments "
        "and the shape should not be "
        "provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined. "
        f"(Variable {request.name}, shape {shape}.)"
    )


def _already_exists(name: str, variable: Variable) -> str:
    message = (
        f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
        "reuse=tf.AUTO_REUSE in "
        "VarScope?"
    )
    frames = variable.op.traceback[::-1][:5]
    return f"{message} Originally defined at:\n\n{''.join(traceback.format_list(frames))}"


def _add_to_collections(variable: Variable, request: _Request) -> None:
    """What graphs do for each variable: eager variables of a store are in collections too."""
    graph = get_default_graph()
    graph.add_to_collections(request.collections or [GraphKeys.GLOBAL_VARIABLES], variable)
    if variable.trainable:
        graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, variable)


def _regularize(variable: Variable, name: str, regularizer: Callable[[Any], Any]) -> None:
    graph = get_default_graph()
    with graph.colocate_with(variable), graph.name_scope(name + "/Regularizer/"), init_scope():
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _checked_partitions(partitioner: Any, shape: TensorShape, dtype: DType) -> Sequence[int]:
    """The partitioner's answer: a count for each axis, at most one of them above 1."""
    if not shape.is_fully_defined():
        raise ValueError(
            f"Shape of a new partitioned variable must be fully defined, but instead was {shape}."
        )
    if shape.ndims == 0:
        raise ValueError(f"A partitioned Variable must have rank at least 1, shape: {shape}")
    counts = partitioner(shape=shape, dtype=dtype)
    if not isinstance(counts, Sequence):
        raise ValueError(f"Partitioner must return a sequence, but saw: {counts}")
    complaint = _partition_complaint(counts, shape)
    if complaint:
        raise ValueError(complaint)
    return counts


def _partition_complaint(counts: Sequence[int], shape: TensorShape) -> str | None:
    """What is wrong with the counts of shards along the axes of a shape, if anything."""
    if len(counts) != shape.ndims:
        return (
            "Partitioner returned a partition list that does not match the Variable's "
            f"rank: {counts} vs. {shape}"
        )
    if min(counts) < 1:
        return f"Partitioner returned zero partitions for some axes: {counts}"
    if len([count for count in counts if count > 1]) > 1:
        return (
            f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {counts}"
        )
    return None


def _slices(full_shape: list[Any], count: int, axis: int) -> Iterator[tuple[list[int], list[int]]]:
    """(offset, shape) of each shard; the first shards take what is left over."""
    length, rest = divmod(full_shape[axis], count)
    start = 0
    for i in range(count):
        size = length + (i < rest)
        offset = [start if d == axis else 0 for d in range(len(full_shape))]
        if start >= full_shape[axis] > 0:
            raise ValueError(
                f"Expected 0 <= offset < shape but found offset={start}, "
                f"shape={full_shape[axis]} for var_offset={offset}, full_shape={full_shape}"
            )
        yield offset, [size if d == axis else n for d, n in enumerate(full_shape)]
        start += size


class EagerStore(VariableStore):
    """A store that shares variables while eager execution is on.

    That of a template, or of an EagerVariableStore.
    """

    keeps_eager = True
