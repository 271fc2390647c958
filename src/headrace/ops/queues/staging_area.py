"""``tf.contrib.staging.StagingArea``: a buffer between two parts of a pipelined program.

>>> area = StagingArea([tf.float32], shapes=[[2]], capacity=2)
>>> put, (value,) = area.put([x]), area.get()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply, apply_list, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.graph import get_default_graph
from headrace.core.scopes import colocate_with, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import identity, no_op
from headrace.ops.queues import staging_ops

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["StagingArea"]


class StagingArea:
    """Tuples of tensors of ``dtypes`` (dictionaries if ``names`` are given) that runs put and get.

    ``put`` waits while ``capacity`` tuples or ``memory_limit`` bytes are inside (0: no limit),
    ``get`` while nothing is. Areas with the same ``shared_name`` are one.
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if shared_name is not None and not isinstance(shared_name, str):
            raise ValueError("shared_name must be a string")
        self._name = shared_name or get_default_graph().unique_name(type(self).__name__)
        self._dtypes = [as_dtype(t) for t in dtypes]
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(dtypes):
                raise ValueError(f"StagingArea {what} must be the same length as dtypes")
        self._shapes = [TensorShape(s) for s in shapes or [None] * len(dtypes)]
        self._names = list(names) if names is not None else None
        self._capacity, self._memory_limit = capacity, memory_limit
        with name_scope(f"{self._name}_root"):
            self._coloc_op = no_op()

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtypes(self) -> list[DType]:
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def memory_limit(self) -> int:
        return self._memory_limit

    def _in_order(self, values: Any) -> tuple[list[Any], list[int]]:
        """The values of a tuple or dictionary, and which component each is."""
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(values).issubset(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging area. Dictionary: "
                    f"({sorted(values)}), Queue: ({sorted(self._names)})"
                )
            places = [i for i, n in enumerate(self._names) if n in values]
            return [values[self._names[i]] for i in places], places
        if self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        return list(values), list(range(len(values)))

    def _checked(self, values: object) -> list[Tensor]:
        given, places = self._in_order(values)
        if len(given) > len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs '{len(given)}' vs '{len(self._dtypes)}'")
        tensors = []
        for value, i in zip(given, places):
            if value.dtype != self._dtypes[i]:
                raise ValueError(f"Datatypes do not match. '{value.dtype}' != '{self._dtypes[i]}'")
            value.get_shape().assert_is_compatible_with(self._shapes[i])
            tensors.append(convert_to_tensor(value, self._dtypes[i], name=f"component_{i}"))
        return tensors

    def _attrs(self, name: str | None, verb: str) -> dict[str, Any]:
        return {
            "shared_name": self._name,
            "capacity": self._capacity,
            "memory_limit": self._memory_limit,
            "name": name or f"{self._name}_{verb}",
        }

    def put(self, values: object, name: str | None = None) -> Operation:
        """Add a tuple (a tensor, a list or, with names, a dictionary)."""
        if not isinstance(values, (list, tuple, dict)):
            values = [values]
        inside = list(values.values() if isinstance(values, dict) else values)
        with name_scope(name, f"{self._name}_put", inside) as scope:
            tensors = self._checked(values)
            with colocate_with(self._coloc_op):
                return apply_operation(
                    staging_ops.STAGE, tensors, **{**self._attrs(None, ""), "name": scope}
                )

    def _returned(self, outputs: list[Tensor]) -> dict[str, Tensor] | list[Tensor]:
        if no_op().device != self._coloc_op.device:
            outputs = [identity(t) for t in outputs]
        for output, shape in zip(outputs, self._shapes):
            output.set_shape(shape)
        return dict(zip(self._names, outputs)) if self._names else outputs

    def get(self, name: str | None = None) -> Any:
        """Take the oldest tuple: a list of tensors, or a dictionary."""
        with colocate_with(self._coloc_op):
            outputs = apply_list(
                staging_ops.UNSTAGE, dtypes=self._dtypes, **self._attrs(name, "get")
            )
        return self._returned(outputs)

    def peek(self, index: TensorLike, name: str | None = None) -> Any:
        """The tuple at ``index``, which stays inside."""
        with colocate_with(self._coloc_op):
            outputs = apply_list(
                staging_ops.STAGE_PEEK, index, dtypes=self._dtypes, **self._attrs(name, "peek")
            )
        return self._returned(outputs)

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples are inside."""
        return apply(staging_ops.STAGE_SIZE, dtypes=self._dtypes, **self._attrs(name, "size"))

    def clear(self, name: str | None = None) -> Operation:
        """Drop all tuples."""
        return apply_operation(
            staging_ops.STAGE_CLEAR, dtypes=self._dtypes, **self._attrs(name, "clear")
        )
