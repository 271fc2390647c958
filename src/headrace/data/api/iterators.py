"""Iterators: TF 1's, which are ops of a graph, and TF 2's, which are Python iterators.

iterator = tf.data.make_initializable_iterator(dataset)        # graphs
x = iterator.get_next()
sess.run(iterator.initializer); sess.run(x)

for x in dataset: ...                                          # eager
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, nest
from headrace.core.build import apply_list, apply_many, apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.opdef import lookup
from headrace.core.scopes import control_dependencies
from headrace.core.specs import SparseTensorSpec, TensorSpec, register_type_spec
from headrace.data.api import structure
from headrace.data.api.element_spec import ElementSpec
from headrace.data.api.optional import Optional
from headrace.data.functions.user_functions import restart_random_ops
from headrace.data.runtime.iteration import MEASURE, IteratorResource
from headrace.data.runtime.stages import Context
from headrace.eager.eager_tensor import Handle, wrap
from headrace.ops.sparse.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Array, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Operation, Tensor
    from headrace.data.api.dataset import DatasetSpec, DatasetV2
    from headrace.data.api.mapped import Mapped

__all__ = ["IteratorBase", "IteratorSpec", "IteratorV1", "OwnedIterator", "numpy_elements"]

#: More calls of ``get_next`` than this suggest that it is called in a loop by mistake.
MANY_CALLS = 32


def described(spec: object) -> dict[str, Any]:
    return {
        "output_types": structure.component_types(spec),
        "output_shapes": structure.component_shapes(spec),
    }


class IteratorBase:
    """Base class of iterators over datasets, for ``isinstance`` and type hints."""

    _iterator_resource: Any
    _element_spec: Any

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    @property
    def output_types(self) -> Any:
        return structure.types_of(self._element_spec)

    @property
    def output_shapes(self) -> Any:
        return structure.shapes_of(self._element_spec)

    @property
    def output_classes(self) -> Any:
        return structure.classes_of(self._element_spec)

    @property
    def _graph_anchor(self) -> Any:
        return self._iterator_resource

    def get_next_as_optional(self, name: str | None = None) -> Optional:
        """The next element, or none at the end."""
        spec = self._element_spec
        variant = apply_op(
            "IteratorGetNextAsOptional", self._iterator_resource, **described(spec), name=name
        )
        return Optional(variant, spec)


class IteratorV1(IteratorBase):
    """``tf.data.Iterator`` in a graph: one ``get_next`` op gives the next element in every run.

    Made by ``Dataset.make_one_shot_iterator``, ``make_initializable_iterator`` or
    ``Iterator.from_structure``; the constructor is for handles that exist already. At the end a run
    raises OutOfRangeError.

        element = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
    """

    def __init__(
        self,
        iterator_resource: object,
        initializer: object,
        output_types: object,
        output_shapes: Any,
        output_classes: Any,
        element_spec: object = None,
    ) -> None:
        self._iterator_resource = iterator_resource
        self._initializer = initializer
        if element_spec is None:
            element_spec = structure.convert_legacy(output_types, output_shapes, output_classes)
        self._element_spec = element_spec
        self._string_handle = apply_op("IteratorToStringHandle", iterator_resource)
        self._get_next_calls = 0
        get_default_graph().add_to_collection("iterators", iterator_resource)

    @classmethod
    def _of(cls, resource: Tensor, initializer: Operation | None, spec: object) -> IteratorV1:
        return cls(resource, initializer, None, None, None, spec)

    @staticmethod
    def from_structure(
        output_types: object,
        output_shapes: TensorLike | None = None,
        shared_name: str | None = None,
        output_classes: object = None,
    ) -> IteratorV1:
        """An iterator for any dataset of this structure: ``make_initializer`` says which."""
        spec = structure.convert_legacy(output_types, output_shapes, output_classes)
        return IteratorV1._of(new_resource(spec, shared_name), None, spec)

    @staticmethod
    def from_string_handle(
        string_handle: TensorLike,
        output_types: DType,
        output_shapes: object = None,
        output_classes: object = None,
    ) -> IteratorV1:
        """The iterator that a string (``sess.run(iterator.string_handle())``) names, known only
        when it is run.
        """
        spec = structure.convert_legacy(output_types, output_shapes, output_classes)
        handle = convert_to_tensor(string_handle, dtypes.string, name="string_handle")
        resource = apply_op("IteratorFromStringHandleV2", handle, **described(spec))
        return IteratorV1._of(resource, None, spec)

    @property
    def initializer(self) -> Any:
        """The op that starts the iterator (again)."""
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def make_initializer(self, dataset: DatasetV2, name: str | None = None) -> Operation:
        """An op that lets the iterator go through ``dataset``."""
        self._check(dataset)
        return apply_operation(
            lookup("MakeIterator"),
            dataset._prepared()._variant_tensor,
            self._iterator_resource,
            name=name,
        )

    def _check(self, dataset: Mapped) -> None:
        theirs, ours = dataset.element_spec, self._element_spec
        try:
            nest.assert_same_structure(ours, theirs)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"Expected output types {self.output_types!r} but got dataset with output types "
                f"{structure.types_of(theirs)!r}: {error}"
            ) from None
        for mine, its in zip(nest.flatten(ours), nest.flatten(theirs)):
            if type(mine) is not type(its) or getattr(mine, "dtype", 0) != getattr(its, "dtype", 0):
                raise TypeError(
                    f"Expected output types {self.output_types!r} but got dataset with "
                    "output types "
                    f"{structure.types_of(theirs)!r}."
                )
            if hasattr(mine, "shape") and not mine.shape.is_compatible_with(its.shape):
                raise TypeError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but "
                    "got dataset with output shapes "
                    f"{structure.shapes_of(theirs)!r}."
                )

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors."""
        self._get_next_calls += 1
        if self._get_next_calls > MANY_CALLS:
            warnings.warn(
                "An unusually high number of `Iterator.get_next()` calls was detected. "
                "This often indicates that "
                "`Iterator.get_next()` is being called inside a training loop, which will "
                "cause gradual slowdown and "
                "eventual resource exhaustion. If this is the case, restructure your code to call "
                "`next_element = iterator.get_next()` once outside the loop, and use "
                "`next_element` as the input to some "
                "computation that is invoked inside the loop.",
                stacklevel=2,
            )
        spec = self._element_spec
        found = apply_list(
            lookup("IteratorGetNext"), self._iterator_resource, **described(spec), name=name
        )
        return structure.from_components(spec, found)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A string tensor that names this iterator in its session."""
        if name is None:
            return self._string_handle
        return apply_op("IteratorToStringHandle", self._iterator_resource, name=name)


def new_resource(spec: object, shared_name: str | None) -> Tensor:
    return apply_op("IteratorV2", container="", shared_name=shared_name or "", **described(spec))


class OwnedIterator(IteratorBase):
    """``iter(dataset)``: at once in eager mode, as ops in a function."""

    _is_dataset_iterator = True

    def __init__(
        self, dataset: Any = None, components: object = None, element_spec: TensorSpec | None = None
    ) -> None:
        if dataset is None:
            self._iterator_resource, self._element_spec = components, element_spec
        else:
            self._begin(dataset)
        held = self._iterator_resource
        self._running: IteratorResource | None = held._static if isinstance(held, Handle) else None
        if self._running is not None:
            self._make = _maker(self._element_spec)

    def _begin(self, dataset: Any) -> None:
        spec = self._element_spec = dataset.element_spec
        dataset = dataset._prepared()
        if get_default_graph()._is_eager:
            types, shapes = structure.component_types(spec), structure.component_shapes(spec)
            running = IteratorResource("iterator", types, shapes)
            stage = dataset._stage()
            restart_random_ops(stage)
            running.make(stage, Context(dataset._own_seeds, MEASURE[0]))
            self._iterator_resource = Handle(running)
            return
        handle, _ = apply_many(lookup("AnonymousIteratorV2"), **described(spec))
        made = apply_operation(lookup("MakeIterator"), dataset._variant_tensor, handle)
        with control_dependencies([made]):
            self._iterator_resource = apply_op("Identity", handle)

    @property
    def _type_spec(self) -> IteratorSpec:
        return IteratorSpec(self._element_spec)

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> Any:
        running = self._running
        if running is None or not get_default_graph()._is_eager:
            return self.get_next()
        return self._make(running.next_shared())

    next = __next__

    def get_next(self, name: str | None = None) -> Any:
        """The next element; OutOfRangeError at the end."""
        if self._running is not None and get_default_graph()._is_eager:
            try:
                return self._make(self._running.next_shared())
            except StopIteration:
                raise errors.OutOfRangeError(None, None, "End of sequence") from None
        spec = self._element_spec
        found = apply_list(
            lookup("IteratorGetNext"), self._iterator_resource, **described(spec), name=name
        )
        return structure.from_components(spec, found)

    def get_next_as_optional(self, name: str | None = None) -> Optional:
        return super().get_next_as_optional(name)


class IteratorSpec(ElementSpec):
    """Of an iterator that is an argument of a function."""

    value_type = OwnedIterator

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), dtypes.resource),)

    def to_components(self, value: IteratorBase) -> list[Any]:
        return [value._iterator_resource]

    def from_components(self, tensors: Sequence[TensorLike]) -> OwnedIterator:
        return OwnedIterator(components=tensors[0], element_spec=self._element_spec)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        return self in (spec_or_value, getattr(spec_or_value, "_type_spec", None))


register_type_spec(OwnedIterator, lambda value: value._type_spec)


def _maker(spec: object) -> Callable[[Any], Any]:
    """Elements of arrays as structures of eager tensors."""
    if isinstance(spec, TensorSpec) and spec.dtype._kind != "r":
        dtype = spec.dtype
        return lambda element: wrap(element[0], dtype)
    types = structure.component_types(spec)
    if (
        type(spec) is tuple
        and all(isinstance(s, TensorSpec) for s in spec)
        and _without_references(types)
    ):
        return lambda element: tuple([wrap(a, t) for a, t in zip(element, types)])

    leaves = nest.flatten(spec)
    makers = [m for leaf in leaves if (m := _leaf_maker(leaf)) is not None]
    if len(makers) == len(leaves):
        return lambda element: nest.pack_sequence_as(spec, [m(a) for m, a in zip(makers, element)])

    def make(element: Sequence[Any]) -> Any:
        tensors = [
            Handle(a, dtype=t) if t._kind == "r" else wrap(a, t) for a, t in zip(element, types)
        ]
        return structure.from_components(spec, tensors)

    return make


def _leaf_maker(leaf: DatasetSpec | SparseTensorSpec | TensorSpec) -> Callable[[Any], Any] | None:
    """For a leaf that travels as one component."""
    if not isinstance(leaf, (TensorSpec, SparseTensorSpec)):
        return None
    dtype = leaf.dtype
    if isinstance(leaf, TensorSpec):
        return None if dtype._kind == "r" else lambda array: wrap(array, dtype)

    def sparse(parts: Array) -> Any:
        if parts.shape != (3,):  # a batch of sparse tensors, which are joined
            return structure.from_components(leaf, [Handle(parts, dtype=dtypes.variant)])
        indices, values, dense_shape = parts
        return SparseTensor(
            wrap(indices, dtypes.int64), wrap(values, dtype), wrap(dense_shape, dtypes.int64)
        )

    return sparse


def _without_references(types: list[Any]) -> bool:
    return all(t._kind != "r" for t in types)


def numpy_elements(dataset: DatasetV2) -> Iterator[Any]:
    """The elements of an eager dataset as arrays."""
    spec = dataset.element_spec
    running = IteratorResource("iterator")
    dataset = dataset._prepared()
    running.make(dataset._stage(), Context(dataset._own_seeds, MEASURE[0]))
    while True:
        try:
            element = running.get_next()
        except errors.OutOfRangeError:
            if running.ended:
                return
            raise
        yield nest.pack_sequence_as(spec, [_value(a) for a in element])


def _value(array: np.generic | Array) -> bytes | np.generic | Array:
    return array[()] if isinstance(array, np.ndarray) and not array.ndim else array
