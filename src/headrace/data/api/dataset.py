"""``tf.data.Dataset``.

A dataset is the variant tensor of a dataset op with the structure of its elements. Transformations
add an op and return a new dataset; nothing runs before an iterator asks. ``DatasetV2`` is
TensorFlow 2's class; ``DatasetV1`` (dataset_v1.py) adds the iterators of graphs and TensorFlow 1's
names.

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(10000).batch(128).prefetch(1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from headrace.autograph.loop_operators import FOR_HANDLERS
from headrace.autograph.py_builtins import BUILTIN_HANDLERS
from headrace.core import dtypes, nest
from headrace.core.build import apply_list, apply_op
from headrace.core.graph import get_default_graph
from headrace.core.opdef import lookup
from headrace.core.shapes import TensorShape
from headrace.core.specs import TensorSpec, TypeSpec, register_type_spec
from headrace.core.tensor import Tensor
from headrace.data.api import structure
from headrace.data.api.creation import Creation
from headrace.data.api.mapped import Mapped
from headrace.data.api.options import Options
from headrace.data.api.transformed import Transformed
from headrace.data.functions import user_functions as functions
from headrace.data.ops import dataset_ops as ops
from headrace.data.ops import file_dataset_ops as ops_files
from headrace.data.ops import function_dataset_ops as ops_functions
from headrace.data.ops import iterator_ops as ops_iterators
from headrace.data.ops import later_dataset_ops as ops_later
from headrace.data.runtime.stages import INFINITE, UNKNOWN, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.data.api.iterators import OwnedIterator

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "DatasetSpec", "DatasetV2"]

# (importing them defines the ops)
_OPS = (functions, ops, ops_files, ops_functions, ops_iterators, ops_later)

AUTOTUNE = -1
INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN


class DatasetV2(Creation, Transformed, Mapped):
    """A sequence of elements (structures of tensors) that is made as it is read.

    Sources (``from_tensor_slices``, ``range``, files) are followed by transformations (``map``,
    ``shuffle``, ``batch``, ``repeat``), each of which gives a new dataset. Eagerly a ``for`` loop
    reads it.
    """

    def __init__(
        self,
        variant_tensor: Any,
        element_spec: Any = None,
        inputs: tuple[Any, ...] = (),
        options: Options | None = None,
    ) -> None:
        self._variant_tensor = variant_tensor
        self._spec = element_spec
        self._parts = inputs
        merged = Options()
        for dataset in inputs:
            merged = merged.merge(dataset._options)
        self._options: Options = merged if options is None else merged.merge(options)

    #: Whether an OutOfRangeError in a mapped function is an error: in TF 1 it ends the data.
    _keeps_cardinality = True
    #: Whether every iterator shuffles as the first one did.
    _own_seeds = False

    # what it is ---------------------------------------------------------------------------------
    @property
    def element_spec(self) -> Any:
        """The structure of the elements, as specs."""
        return self._spec

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    @property
    def _graph_anchor(self) -> Tensor | None:
        return self._variant_tensor

    def options(self) -> Options:
        return self._options

    def _inputs(self) -> list[Any]:
        return list(self._parts)

    def _new(self, variant: Tensor, spec: object, *others: object) -> Self:
        """A dataset made of this one."""
        return self._of_base(variant, spec, (self, *others))

    def _unary(self, op: str, *inputs: object, spec: object = None, **attrs: Any) -> Self:
        """A dataset by an op that takes this one first."""
        spec = self.element_spec if spec is None else spec
        variant = apply_op(op, self._variant_tensor, *inputs, **_described(spec), **attrs)
        return self._new(variant, spec)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.strip('_')} element_spec={self.element_spec}>"

    def __bool__(self) -> bool:
        return True

    # how many -----------------------------------------------------------------------------------
    def cardinality(self, name: str | None = None) -> Tensor:
        """A tensor: the number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return apply_op("DatasetCardinality", self._variant_tensor, name=name)

    def __len__(self) -> int:
        if not get_default_graph()._is_eager:
            raise TypeError(
                "`tf.data.Dataset` only supports `len` in eager mode. Use "
                "`tf.data.Dataset.cardinality()` instead."
            )
        n = int(self._stage().cardinality())
        if n == INFINITE:
            raise TypeError("The dataset is infinite.")
        if n == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return n

    # going through it ---------------------------------------------------------------------------
    def _stage(self) -> Stage:
        """The stage, where values are at hand."""
        return ops.stage_of(self._variant_tensor._static)

    def _prepared(self) -> Self:
        """The dataset with its options applied, as an iterator goes through it."""
        dataset = self
        threads = self._options.threads()
        if threads:
            dataset = dataset._unary("PrivateThreadPoolDataset", threads)
        changes = self._changes()
        return dataset._unary("OptimizeDataset", changes) if changes else dataset

    def _changes(self) -> list[str]:
        """The names of what is changed in the pipeline before it runs."""
        return ["make_sloppy"] if self._options.ordered() is False else []

    def __iter__(self) -> OwnedIterator:
        from headrace.data.api.iterators import OwnedIterator

        graph = get_default_graph()
        if not graph._is_eager and not graph._is_function:
            raise RuntimeError(
                "dataset.__iter__() is only supported when eager execution is enabled. In "
                "a graph, use "
                "tf.compat.v1.data.make_one_shot_iterator(dataset)."
            )
        return OwnedIterator(self)

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as NumPy arrays."""
        from headrace.data.api.iterators import numpy_elements

        if not get_default_graph()._is_eager:
            raise RuntimeError(
                "`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode."
            )
        for leaf in nest.flatten(self.element_spec):
            if not isinstance(leaf, TensorSpec):
                raise TypeError(
                    "`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets "
                    "that produce values of type "
                    f"{leaf.value_type}"
                )
        return numpy_elements(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The one element of the dataset; an error if it has none or more."""
        spec = self.element_spec
        found = apply_list(
            lookup("DatasetToSingleElement"), self._variant_tensor, **_described(spec), name=name
        )
        return structure.from_components(spec, found)

    def reduce(
        self, initial_state: object, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """``reduce_func(state, element)`` for all elements; returns the last state."""
        from headrace.data.api.reducing import reduce

        return reduce(self, initial_state, reduce_func, name)

    def save(
        self,
        path: str,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: object = None,
    ) -> Any:
        """Write all elements to a directory, in a form of Headrace's own (in a graph: the operation
        that does).

        ``shard_func(element)`` gives the number of the file that an element goes to; without it
        there is one.
        """
        from headrace.data.api.saving import save

        return save(self, path, compression, shard_func, checkpoint_args)

    @classmethod
    def load(
        cls,
        path: str,
        element_spec: object = None,
        compression: str | None = None,
        reader_func: Callable[..., Any] | None = None,
        wait: bool = False,
    ) -> Any:
        """The dataset that ``save`` wrote.

        ``reader_func`` makes it of a dataset of datasets, one for each file.
        """
        from headrace.data.api.saving import load

        return load(cls, path, element_spec, compression, reader_func, wait)

    def snapshot(
        self,
        path: str,
        compression: str = "AUTO",
        reader_func: Callable[..., Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """The dataset.

        What its first complete pass gives is kept in a directory, and read from there afterwards.
        """
        from headrace.data.api.saving import snapshot

        return snapshot(self, path, compression, reader_func, shard_func)

    def ragged_batch(self, *args: Any, **kwargs: Any) -> Any:
        from headrace.data.api.data_experimental import dense_to_ragged_batch

        return dense_to_ragged_batch(*args, **kwargs)

    # others ---------------------------------------------------------------------------------------
    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """``transformation_func(dataset)``."""
        made = transformation_func(self)
        if not isinstance(made, DatasetV2):
            raise TypeError(
                f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(made)}."
            )
        return made

    def with_options(self, options: Options, name: str | None = None) -> Self:
        """The dataset with settings of its own."""
        return self._of_base(self._variant_tensor, self.element_spec, (self,), options)


def _described(spec: object) -> dict[str, Any]:
    """The attributes that dataset ops have for the structure of their elements."""
    return {
        "output_types": structure.component_types(spec),
        "output_shapes": structure.component_shapes(spec),
    }


class NestedDatasets:
    """A batch of datasets: a value of a dataset's elements that only ``unbatch`` takes apart."""

    def __init__(self, variant_tensor: Tensor, element_spec: Any, dataset_shape: TensorShape):
        self._variant_tensor = variant_tensor
        self._element_spec = element_spec
        self._dataset_shape = dataset_shape

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self._element_spec, self._dataset_shape)


class DatasetSpec(TypeSpec):
    """Of a dataset with elements of a given structure."""

    value_type = DatasetV2

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec
        self._dataset_shape = TensorShape(dataset_shape)

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    def _key(self) -> tuple[Any, ...]:
        spec = self._element_spec
        shape = str(self._dataset_shape)
        return (shape, str(nest.map_structure(lambda _: 0, spec)), *nest.flatten(spec))

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec(self._dataset_shape, dtypes.variant),)

    def _batch(self, size: int | None) -> DatasetSpec:
        shape = TensorShape([size]).concatenate(self._dataset_shape)
        return DatasetSpec(self._element_spec, shape)

    def _legacy(self) -> tuple[DatasetSpec, DatasetSpec]:
        return self, self

    def _unbatch(self) -> DatasetSpec:
        if self._dataset_shape.rank == 0:
            raise ValueError("Slicing dataset elements is not supported for rank 0.")
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])

    def _stacked(self, datasets: list[Any]) -> NestedDatasets:
        """A list of datasets as one value."""
        for other in datasets[1:]:
            if other._type_spec != self:
                raise TypeError(
                    "The datasets of a list must have elements of one structure, got "
                    f"{self} and {other._type_spec}"
                )
        variants = apply_op("Pack", [d._variant_tensor for d in datasets])
        return NestedDatasets(variants, self._element_spec, TensorShape([len(datasets)]))

    def to_components(self, value: Any) -> list[Any]:
        return [value._variant_tensor]

    def from_components(self, tensors: Sequence[Tensor]) -> Any:
        if self._dataset_shape.rank == 0:
            return DatasetV2._base(tensors[0], self._element_spec)
        return NestedDatasets(tensors[0], self._element_spec, self._dataset_shape)

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        return cls(value.element_spec)

    def is_subtype_of(self, other: object) -> bool:
        return bool(self == other)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else spec_or_value._type_spec
        return isinstance(other, DatasetSpec)

    def most_specific_common_supertype(self, others: Any) -> Any:
        return self if all(o == self for o in others) else None

    def __repr__(self) -> str:
        return f"DatasetSpec({self._element_spec!r}, {self._dataset_shape!r})"


def _loop(*args: Any) -> None:
    from headrace.data.functions.dataset_loops import dataset_for

    dataset_for(*args)


def _loops(value: object) -> bool:
    return isinstance(value, DatasetV2) or getattr(value, "_is_dataset_iterator", False)


DatasetV2._base = DatasetV2
FOR_HANDLERS.append((_loops, _loop))


def _is_dataset(value: object) -> bool:
    return isinstance(value, DatasetV2)


def _all_datasets(*datasets: Any) -> Any:
    if not all(map(_is_dataset, datasets)):
        raise TypeError("zip() in a tf.function takes datasets only, or none")
    return datasets[0].zip(datasets)


#: Python's own functions on datasets, in code that AutoGraph converts.
BUILTIN_HANDLERS["enumerate"].append((_is_dataset, lambda ds, start=0: ds.enumerate(start)))
BUILTIN_HANDLERS["zip"].append((_is_dataset, _all_datasets))
BUILTIN_HANDLERS["map"].append((_is_dataset, lambda function, ds: ds.map(function)))
BUILTIN_HANDLERS["filter"].append((_is_dataset, lambda function, ds: ds.filter(function)))
BUILTIN_HANDLERS["len"].append((_is_dataset, lambda ds: ds.cardinality()))
register_type_spec(DatasetV2, DatasetSpec.from_value)
