"""Where datasets come from: tensors, ranges, generators, files by pattern, other datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.seeds import count_more, get_seed
from headrace.core.specs import SparseTensorSpec, TensorSpec
from headrace.core.tensor import Tensor
from headrace.data.api import structure
from headrace.data.api.generators import ElementConverter, PythonFunction, generator_start
from headrace.ops.ragged.ragged_spec import RaggedTensorSpec

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType

__all__ = ["Creation", "seed_pair"]

_MAX_INT64 = 2**63 - 1


def seed_pair(seed: TensorLike | None) -> tuple[Any, Any]:
    """The two seeds of an op: numbers, or tensors where ``seed`` is fed."""
    if isinstance(seed, Tensor):
        known = static_value(seed)
        if known is None:
            return _fed_seeds(seed)
        seed = int(known)
    first, second = get_seed(seed)
    graph = get_default_graph()
    if second is not None and not graph._is_eager:
        count_more(graph, 7)  # TF looks at the seeds with ops
    return first or 0, second or 0


def _fed_seeds(seed: Tensor) -> tuple[Any, Any]:
    """As for a number, but (0, 0), which would mean any seeds, is replaced when it runs."""
    first, _ = get_seed(0)
    graph_seed = first or 0
    second = convert_to_tensor(seed, dtypes.int64)
    if graph_seed == 0:
        zero = apply_op("Equal", second, _int64(0, "seed"))
        second = apply_op("Select", zero, _int64(2**31 - 1, "seed2"), second)
    return graph_seed, second


class Creation:
    """Constructors of datasets."""

    #: The class whose instances transformations make.
    _base: ClassVar[Any]

    @classmethod
    def _of_base(cls, *args: object) -> Self:
        """An instance of ``_base``; type checkers see the class of the dataset it is made from."""
        made: Self = cls._base(*args)
        return made

    @classmethod
    def from_tensors(cls, tensors: object, name: str | None = None) -> Self:
        """One element: ``tensors``."""
        value = structure.normalize(tensors)
        spec = structure.spec_of(value)
        shapes = structure.component_shapes(spec)
        parts = structure.to_components(spec, value)
        return cls._of_base(apply_op("TensorDataset", parts, output_shapes=shapes, name=name), spec)

    @classmethod
    def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Self:
        """The rows of ``tensors``."""
        value = structure.normalize(tensors)
        whole = structure.spec_of(value)
        leaves = nest.flatten(whole)
        if not leaves:
            raise ValueError("Invalid `tensors`. `tensors` must not be empty.")
        _check_rows(leaves)
        spec = structure.unbatched(whole)
        parts = structure.to_row_components(whole, value)
        shapes = structure.component_shapes(spec)
        return cls._of_base(
            apply_op("TensorSliceDataset", parts, output_shapes=shapes, name=name), spec
        )

    @classmethod
    def from_sparse_tensor_slices(cls, sparse_tensor: Any) -> Self:
        """(indices, values, shape) of each row of a sparse tensor."""
        rank = sparse_tensor.shape.rank
        inner = None if rank is None else rank - 1
        spec = (
            TensorSpec([None, inner], dtypes.int64),
            TensorSpec([None], sparse_tensor.dtype),
            TensorSpec([inner], dtypes.int64),
        )
        parts = sparse_tensor.indices, sparse_tensor.values, sparse_tensor.dense_shape
        return cls._of_base(apply_op("SparseTensorSliceDataset", *parts), spec)

    @classmethod
    def range(cls, *args: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Self:
        """``range(stop)``, ``range(start, stop)`` or ``range(start, stop, step)``."""
        if not 1 <= len(args) <= 3:
            raise ValueError("range() takes one, two or three numbers")
        bounds = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        spec = TensorSpec((), output_type)
        variant = apply_op(
            "RangeDataset",
            *[_int64(b, n) for b, n in zip(bounds, ("start", "stop", "step"))],
            output_types=[spec.dtype],
            output_shapes=[()],
            name=name,
        )
        return cls._of_base(variant, spec)

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: object = None,
        output_shapes: Sequence[Any] | None = None,
        args: Sequence[TensorLike] | None = None,
        output_signature: object = None,
        name: str | None = None,
    ) -> Self:
        """What a Python function's iterator yields; each pass calls the function again."""
        if not callable(generator):
            raise TypeError("`generator` must be callable.")
        if output_types is None and output_signature is None:
            raise TypeError("Either `output_types` or `output_signature` must be specified.")
        if output_signature is not None and output_types is not None:
            raise TypeError("`output_types` can not be used together with `output_signature`")
        if output_signature is not None:
            spec = structure.tuples(output_signature)
        else:
            spec = structure.convert_legacy(output_types, output_shapes)
        given = tuple(convert_to_tensor(a, name="args") for a in args) if args else ()
        variant = apply_op(
            "GeneratorDataset",
            list(given),
            [],
            [],
            init_func=PythonFunction(generator_start(generator)),
            next_func=PythonFunction(ElementConverter(spec)),
            finalize_func=None,
            name=name,
            output_types=structure.component_types(spec),
            output_shapes=structure.component_shapes(spec),
        )
        return cls._of_base(variant, spec)

    @classmethod
    def zip(cls, *args: object, datasets: object = None, name: str | None = None) -> Self:
        """Elements of several datasets side by side, in the structure that the datasets are given
        in.
        """
        from headrace.data.api.dataset import DatasetV2

        if datasets is None:
            if not args:
                raise TypeError("Must pass at least one dataset to `zip`.")
            datasets = args[0] if len(args) == 1 else args
        flat: list[Any] = [datasets] if isinstance(datasets, list) else nest.flatten(datasets)
        for dataset in flat:
            if isinstance(dataset, list):
                raise TypeError(
                    "The argument to `Dataset.zip()` must be a nested structure of "
                    "`Dataset` objects. Nested structures "
                    "do not support Python lists; please use a tuple instead."
                )
            if not isinstance(dataset, DatasetV2):
                raise TypeError(
                    "The argument to `Dataset.zip()` must be a nested structure of "
                    f"`Dataset` objects. Got {type(dataset)}."
                )
        spec = nest.map_structure(lambda d: d.element_spec, datasets)
        variant = apply_op(
            "ZipDataset",
            [d._variant_tensor for d in flat],
            name=name,
            output_types=structure.component_types(spec),
            output_shapes=structure.component_shapes(spec),
        )
        return cls._of_base(variant, spec, tuple(flat))

    @classmethod
    def list_files(
        cls,
        file_pattern: TensorLike,
        shuffle: bool | None = None,
        seed: TensorLike | None = None,
        name: str | None = None,
    ) -> Any:
        """The names of the files that fit a pattern, in random order unless ``shuffle`` is
        False.
        """
        from headrace.data.api.list_files import matching_names

        names = matching_names(file_pattern)
        dataset = cls._base(
            apply_op("TensorSliceDataset", [names], output_shapes=[()]),
            TensorSpec((), dtypes.string),
        )
        if shuffle is None or shuffle:
            size = apply_op("Maximum", apply_op("Size", names, out_type=dtypes.int64), 1)
            dataset = dataset.shuffle(size, seed=seed)
        return dataset

    @classmethod
    def random(
        cls,
        seed: Any = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Random int64 numbers below 2**32, without end."""
        spec = TensorSpec((), dtypes.int64)
        first, second = seed_pair(seed)
        variant = apply_op(
            "_RerandomDataset" if rerandomize_each_iteration else "RandomDataset",
            first,
            second,
            output_types=[dtypes.int64],
            output_shapes=[()],
            name=name,
        )
        return cls._of_base(variant, spec)

    @classmethod
    def counter(
        cls,
        start: int = 0,
        step: int = 1,
        dtype: DType = dtypes.int64,
        name: str | None = None,
    ) -> Any:
        """Numbers from ``start`` on, without end."""
        up = static_value(convert_to_tensor(step))
        end = -_MAX_INT64 if up is not None and int(up) < 0 else _MAX_INT64
        wanted = dtypes.as_dtype(dtype)
        numbers: Any = cls.range(start, end, step)
        if wanted is dtypes.int64:
            return numbers
        return numbers.map(lambda n: apply_op("Cast", n, DstT=wanted))

    @classmethod
    def choose_from_datasets(
        cls, datasets: Sequence[Any], choice_dataset: object, stop_on_empty_dataset: bool = True
    ) -> Any:
        """Elements of ``datasets`` in the order that the numbers of ``choice_dataset`` give."""
        from headrace.data.api.dataset_sampling import choose_from_datasets

        return choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Sequence[Any],
        weights: TensorLike | None = None,
        seed: TensorLike | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Any:
        """Elements of ``datasets`` drawn at random."""
        from headrace.data.api.dataset_sampling import sample_from_datasets

        return sample_from_datasets(
            datasets, weights, seed, stop_on_empty_dataset, rerandomize_each_iteration
        )


def _int64(value: TensorLike, name: str) -> Tensor:
    return convert_to_tensor(value, dtypes.int64, name=name)


def _check_rows(leaves: list[Any]) -> None:
    """The lengths that are known must agree."""
    first: tuple[int, int] | None = None
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (TensorSpec, SparseTensorSpec, RaggedTensorSpec)):
            shape = leaf.shape
        elif hasattr(leaf, "_unbatch"):
            shape = leaf.component_specs[0].shape
        else:
            raise TypeError(f"Elements of type {leaf!r} cannot be sliced.")
        if shape.rank is None:
            continue
        if shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        length = shape.as_list()[0]
        if length is None:
            continue
        if first is not None and first[1] != length:
            raise ValueError(f"Dimensions {first[1]} and {length} are not compatible")
        first = first or (i, length)
