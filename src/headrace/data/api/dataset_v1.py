"""``tf.data.Dataset`` of TensorFlow 1: iterators of graphs, and the older names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from headrace.core import dtypes, nest
from headrace.core.build import apply_op, apply_operation
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import get_default_graph
from headrace.core.opdef import lookup
from headrace.core.tensor import Operation, Tensor
from headrace.data.api import structure
from headrace.data.api.dataset import DatasetV2
from headrace.data.api.iterators import IteratorV1, OwnedIterator, described, new_resource
from headrace.data.api.options import Options
from headrace.data.functions.user_functions import DataFunction
from headrace.functions.tracing import TracedFunction

if TYPE_CHECKING:
    from headrace.data.api.iterators import IteratorBase

__all__ = [
    "DatasetV1",
    "get_legacy_output_classes",
    "get_legacy_output_shapes",
    "get_legacy_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]


class DatasetV1(DatasetV2):
    """A sequence of elements with TF 1's methods: iterators for sessions come from it.

        dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1000).batch(32)
        x, y = dataset.make_one_shot_iterator().get_next()

    At the end a run that reads ``x`` raises ``tf.errors.OutOfRangeError``.
    """

    _own_seeds = True
    _keeps_cardinality = False

    def with_options(self, options: Options, name: str | None = None) -> Self:
        """The dataset with settings of its own; a setting cannot be changed again."""
        if isinstance(options, Options):
            self.options().merge(options, strict=True)
        return super().with_options(options, name)

    @property
    def output_types(self) -> Any:
        return structure.types_of(self.element_spec)

    @property
    def output_shapes(self) -> Any:
        return structure.shapes_of(self.element_spec)

    @property
    def output_classes(self) -> Any:
        return structure.classes_of(self.element_spec)

    def __repr__(self) -> str:
        shapes = nest.map_structure(str, self.output_shapes)
        types = nest.map_structure(repr, self.output_types)
        return f"<DatasetV1Adapter shapes: {shapes}, types: {types}>".replace("'", "")

    def _changes(self) -> list[str]:
        names = super()._changes()
        if self._options.fuses_shuffle():
            names = [
                "map_and_batch_fusion",
                "noop_elimination",
                "shuffle_and_repeat_fusion",
                *names,
            ]
        return names

    def _prepared(self) -> Self:
        made = super()._prepared()
        return made._unary("ModelDataset")

    # iterators ----------------------------------------------------------------------------------
    def make_one_shot_iterator(self) -> IteratorV1 | OwnedIterator:
        """An iterator that needs no initializer.

        The dataset must not depend on placeholders or variables.
        """
        if get_default_graph()._is_eager:
            return OwnedIterator(self)
        graph = FuncGraph("make_dataset", get_default_graph())
        try:
            with graph.as_default():
                inside = self._base(
                    _copied(self._variant_tensor, graph), self.element_spec, (self,)
                )
                graph.finish([inside._prepared()._variant_tensor])
        except ValueError as error:
            raise ValueError(
                "Failed to create a one-shot iterator for a dataset. "
                "`Dataset.make_one_shot_iterator()` does not support "
                "datasets that capture stateful objects, such as a `Variable` or "
                "`LookupTable`. In these cases, use "
                f"`Dataset.make_initializable_iterator()`. (Original error: {error})"
            ) from None
        factory = DataFunction(TracedFunction(graph, ((), {}), graph.outputs), None, None)
        spec = self.element_spec
        resource = apply_op("OneShotIterator", dataset_factory=factory, **described(spec))
        return IteratorV1._of(resource, None, spec)

    def make_initializable_iterator(self, shared_name: str | None = None) -> IteratorV1:
        """An iterator that starts when its ``initializer`` is run."""
        if get_default_graph()._is_eager:
            raise RuntimeError(
                "dataset.make_initializable_iterator is not supported when eager "
                "execution is enabled. Use "
                "`for element in dataset` instead."
            )
        prepared = self._prepared()
        spec = self.element_spec
        resource = new_resource(spec, shared_name)
        initializer = apply_operation(lookup("MakeIterator"), prepared._variant_tensor, resource)
        return IteratorV1._of(resource, initializer, spec)

    # older names --------------------------------------------------------------------------------
    def map_with_legacy_function(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: object = None,
        deterministic: bool | None = None,
    ) -> Self:
        return self._map(map_func, num_parallel_calls, deterministic, False)

    def flat_map_with_legacy_function(self, map_func: Any) -> Self:
        return self.flat_map(map_func)

    def filter_with_legacy_function(self, predicate: Any) -> Self:
        return self.filter(predicate)


DatasetV1._base = DatasetV1


def _copied(tensor: Tensor, graph: FuncGraph) -> Tensor:
    """The tensor made again in ``graph`` with everything that it depends on."""
    made: dict[Operation, Operation] = {}
    stack: list[tuple[Operation, bool]] = [(tensor._op, False)]
    while stack:
        op, ready = stack.pop()
        if op in made:
            continue
        if not ready:
            _check_copy(op)
            stack.append((op, True))
            stack.extend((t._op, False) for t in op._inputs)
            continue
        inputs = tuple(made[t._op]._outputs[t._value_index] for t in op._inputs)
        made[op] = graph._add_op(op._opdef, inputs, dict(op._attrs), graph._unique(op.name))
    return made[tensor._op]._outputs[tensor._value_index]


def _check_copy(op: Operation) -> None:
    if op.type.startswith("Placeholder"):
        raise ValueError(f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value.")
    for value in op._attrs.values():
        if isinstance(value, DataFunction):
            _check_function(value)
    makes_dataset = any(t._dtype is dtypes.variant for t in op._outputs)
    traits = op._opdef.traits
    stateful = (traits.stateful or traits.role == "variable") and not traits.repeatable
    if stateful and not makes_dataset:
        raise ValueError(
            f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value."
        )


def _check_function(function: DataFunction) -> None:
    """A mapped function that reads a variable of the graph around it."""
    for op in function.traced.graph._ops:
        if op.type in ("VariableV2", "Variable", "VarHandleOp"):
            raise ValueError(
                f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value."
            )
        for value in op._attrs.values():
            if isinstance(value, DataFunction):
                _check_function(value)


def make_one_shot_iterator(dataset: object) -> Any:
    """``dataset.make_one_shot_iterator()`` for datasets of either version."""
    return as_v1(dataset).make_one_shot_iterator()


def make_initializable_iterator(dataset: object, shared_name: str | None = None) -> IteratorV1:
    """``dataset.make_initializable_iterator()`` for datasets of either version."""
    return as_v1(dataset).make_initializable_iterator(shared_name)


def as_v1(dataset: Any) -> DatasetV1:
    if isinstance(dataset, DatasetV1):
        return dataset
    return DatasetV1(dataset._variant_tensor, dataset.element_spec, (dataset,))


def get_legacy_output_types(dataset_or_iterator: IteratorBase) -> Any:
    """The types of a dataset's or iterator's elements, in their structure."""
    return structure.types_of(dataset_or_iterator.element_spec)


def get_legacy_output_shapes(dataset_or_iterator: Any) -> Any:
    """The static shapes of a dataset's or iterator's elements, in their structure."""
    return structure.shapes_of(dataset_or_iterator.element_spec)


def get_legacy_output_classes(dataset_or_iterator: Any) -> Any:
    """The classes of an element's parts: Tensor, SparseTensor, Dataset."""
    return structure.classes_of(dataset_or_iterator.element_spec)
