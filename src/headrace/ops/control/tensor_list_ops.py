"""Tensor lists: what the loops of TF 2 keep the values of their iterations in.

A list is a value (of type ``variant``) like any other: an operation that changes one gives a new
list, and the elements that stay are shared. Elements are copied where they come in and go out, so
that nobody can write to them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.dtypes import DType, string
from headrace.core.infer import Inference
from headrace.core.opdef import NO_GRADIENT_YET, NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shape_fns import scalar
from headrace.core.shapes import Shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["TensorList"]

#: A list that declares more elements than this is refused: the number may come from a file.
MAX_ELEMENTS = 1 << 28


class TensorList:
    """Elements (None where nothing was set yet) of one type, with what is known of their shape."""

    __slots__ = ("dtype", "element_shape", "elements", "limit")

    def __init__(self, elements: list[Any], dtype: DType, shape: Shape, limit: int = -1) -> None:
        self.elements = elements
        self.dtype = dtype
        self.element_shape = shape
        self.limit = limit

    def having(self, elements: list[Any]) -> TensorList:
        return TensorList(elements, self.dtype, self.element_shape, self.limit)

    @property
    def zeros_like(self) -> TensorList:
        """A list of as many zeros."""
        made = [
            None if e is None else e.zeros_like if isinstance(e, TensorList) else np.zeros_like(e)
            for e in self.elements
        ]
        return self.having(made)

    def __add__(self, other: TensorList) -> TensorList:
        """The sums of the elements; one that was never set counts as zero."""
        if not isinstance(other, TensorList) or len(other.elements) != len(self.elements):
            raise _invalid("Trying to add two lists of tensors of different lengths")
        pairs = zip(self.elements, other.elements)
        return self.having([a if b is None else b if a is None else a + b for a, b in pairs])

    def zeros(self, wanted: Shape) -> np.ndarray[Any, Any]:
        """What an element is that was never set; its shape must be known by then."""
        shape = _narrowed(self.element_shape, wanted)
        if shape is None or None in shape:
            for e in self.elements:
                if e is not None:
                    shape = _narrowed(shape, e.shape)
        if shape is None or None in shape:
            raise _invalid(
                "Trying to read an uninitialized element of a tensor list whose "
                "element_shape is not fully defined"
            )
        kind = self.dtype
        return np.full(shape, b"", object) if kind is string else np.zeros(shape, kind.np_dtype)


def _copied_element(value: TensorLike) -> Array | TensorList:
    """An element that nobody else can write to.

    (An element may be a list itself, which nobody can.)
    """
    return value if isinstance(value, TensorList) else np.array(value)


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def _narrowed(a: Shape, b: Shape) -> Shape:
    try:
        return shapes.merge(a, b)
    except ValueError:
        raise _invalid(
            f"Tried to use a list whose elements have the shape {shapes.show(a)} as one "
            f"of {shapes.show(b)}"
        ) from None


def _shape(value: Array) -> Shape:
    """An ``element_shape`` argument: -1 alone is unknown."""
    array = np.asarray(value)
    if array.ndim == 0:
        if int(array) != -1:
            raise _invalid(
                "The only valid scalar shape tensor is the fully unknown shape specified "
                f"as -1, not {int(array)}"
            )
        return None
    return tuple(None if d < 0 else int(d) for d in array.tolist())


def _index(handle: TensorList, index: int | Array | np.generic) -> int:
    i = int(index)
    if not 0 <= i < len(handle.elements):
        raise _invalid(
            f"Trying to access element {i} in a list with {len(handle.elements)} elements."
        )
    return i


def _size(number: int | Array | np.generic) -> int:
    n = int(number)
    if not 0 <= n <= MAX_ELEMENTS:
        raise _invalid(f"The num_elements to reserve must be a non negative number, but got {n}")
    return n


# kernels ------------------------------------------------------------------------------------------


def _empty(
    xp: ArrayNamespace, element_shape: Array, max_num_elements: Array, *, element_dtype: DType
) -> TensorList:
    return TensorList([], element_dtype, _shape(element_shape), int(max_num_elements))


def _reserve(
    xp: ArrayNamespace, element_shape: Array, num_elements: Array, *, element_dtype: DType
) -> TensorList:
    return TensorList([None] * _size(num_elements), element_dtype, _shape(element_shape))


def _from_tensor(
    xp: ArrayNamespace, tensor: Array, element_shape: Array, *, element_dtype: DType
) -> TensorList:
    array = np.array(tensor)
    if array.ndim == 0:
        raise _invalid("Tensor must be at least a vector, but saw shape: []")
    shape = _narrowed(_shape(element_shape), array.shape[1:])
    return TensorList(list(array), element_dtype, shape)


def _push(xp: ArrayNamespace, handle: TensorList, tensor: Any) -> TensorList:
    if 0 <= handle.limit <= len(handle.elements):
        raise _invalid(
            f"Tried to push item into a full list list size: {len(handle.elements)} "
            f"max_num_elements: {handle.limit}"
        )
    _narrowed(handle.element_shape, np.shape(tensor))
    return handle.having([*handle.elements, _copied_element(tensor)])


def _pop(xp: ArrayNamespace, handle: TensorList, element_shape: Array) -> tuple[TensorList, Any]:
    if not handle.elements:
        raise _invalid("Trying to pop from an empty list.")
    last = handle.elements[-1]
    value = handle.zeros(_shape(element_shape)) if last is None else _copied_element(last)
    return handle.having(handle.elements[:-1]), value


def _get(xp: ArrayNamespace, handle: TensorList, index: Array, element_shape: Array) -> Any:
    found = handle.elements[_index(handle, index)]
    return handle.zeros(_shape(element_shape)) if found is None else _copied_element(found)


def _set(
    xp: ArrayNamespace, handle: TensorList, index: Array, item: Array, *, node: KernelNode
) -> TensorList:
    _narrowed(handle.element_shape, np.shape(item))
    elements = list(handle.elements)
    # an attribute of TF 2, whose arrays in loops grow
    if node.attrs.get("resize_if_index_out_of_bounds") and int(index) >= len(elements):
        elements += [None] * (_size(int(index) + 1) - len(elements))
        handle = handle.having(elements)
    elements[_index(handle, index)] = _copied_element(item)
    return handle.having(elements)


def _stacked(handle: TensorList, elements: Sequence[Any], shape: Shape) -> Array:
    if not elements:
        known = _narrowed(handle.element_shape, shape)
        if known is None or None in known:
            raise _invalid(
                "Tried to stack elements of an empty list with non-fully-defined element_shape"
            )
        return np.zeros((0, *known), handle.dtype.np_dtype)
    values = [handle.zeros(shape) if e is None else e for e in elements]
    if len({v.shape for v in values}) > 1:
        raise _invalid("Tried to stack list which only contains tensors of different shapes")
    return np.stack(values)


def _stack(
    xp: ArrayNamespace, handle: TensorList, element_shape: Array, *, num_elements: int
) -> Array:
    if num_elements >= 0 and num_elements != len(handle.elements):
        raise _invalid(
            f"Operation expected a list with {num_elements} elements but got a list with "
            f"{len(handle.elements)} elements."
        )
    return _stacked(handle, handle.elements, _shape(element_shape))


def _gather(
    xp: ArrayNamespace, handle: TensorList, indices: Array, element_shape: Array
) -> np.ndarray[Any, Any]:
    found = [handle.elements[_index(handle, i)] for i in np.asarray(indices).reshape(-1)]
    return _stacked(handle, found, _shape(element_shape))


def _scatter(
    xp: ArrayNamespace,
    tensor: TensorLike,
    indices: TensorLike,
    element_shape: Any,
    num_elements: Any = -1,
    *,
    element_dtype: DType,
) -> TensorList:
    places = np.asarray(indices).reshape(-1).tolist()
    wanted = int(num_elements)
    size = _size(wanted if wanted >= 0 else max(places, default=-1) + 1)
    out = TensorList([None] * size, element_dtype, _shape(element_shape))
    for place, row in zip(places, np.array(tensor)):
        out.elements[_index(out, place)] = row
    return out


def _scatter_into(
    xp: ArrayNamespace, handle: TensorList, tensor: Array, indices: Array
) -> TensorList:
    places = np.asarray(indices).reshape(-1).tolist()
    elements = list(handle.elements)
    size = max([*places, len(elements) - 1]) + 1
    elements += [None] * (_size(size) - len(elements))
    out = handle.having(elements)
    for place, row in zip(places, np.array(tensor)):
        out.elements[_index(out, place)] = row
    return out


def _length(xp: ArrayNamespace, handle: TensorList) -> Array:
    return np.asarray(len(handle.elements), np.int32)


def _resize(xp: ArrayNamespace, handle: TensorList, size: Array) -> TensorList:
    n = _size(size)
    return handle.having([*handle.elements[:n], *[None] * (n - len(handle.elements))])


def _element_shape(xp: ArrayNamespace, handle: TensorList, *, shape_type: DType) -> Array:
    if handle.element_shape is None:
        return np.asarray(-1, shape_type.np_dtype)
    return np.asarray([-1 if d is None else d for d in handle.element_shape], shape_type.np_dtype)


def _concat(
    xp: ArrayNamespace, handle: TensorList, element_shape: Array, leading_dims: Array
) -> tuple[Any, Any]:
    shape = _shape(element_shape)
    dims = np.asarray(leading_dims).tolist()
    parts = []
    for i, e in enumerate(handle.elements):
        if e is None:
            if i >= len(dims) or shape is None or None in shape[1:]:
                raise _invalid(
                    "Concating lists with uninitialized elements needs their leading_dims"
                )
            e = np.zeros((dims[i], *shape[1:]), handle.dtype.np_dtype)
        parts.append(e)
    lengths = np.asarray([len(p) for p in parts], np.int64)
    if not parts:
        if shape is None or None in shape[1:]:
            raise _invalid(
                "All except the first dimension must be fully defined when concating an "
                "empty tensor list"
            )
        return np.zeros((0, *shape[1:]), handle.dtype.np_dtype), lengths
    return np.concatenate(parts), lengths


def _split(
    xp: ArrayNamespace, tensor: Array, element_shape: Array, lengths: Array, *, element_dtype: DType
) -> TensorList:
    sizes = np.asarray(lengths).tolist()
    array = np.array(tensor)
    if sum(sizes) != len(array) or any(n < 0 for n in sizes):
        raise _invalid("Invalid value in lengths: they must add up to the tensor's first dimension")
    cuts = np.cumsum([0, *sizes])
    return TensorList(
        [array[a:b] for a, b in itertools.pairwise(cuts)], element_dtype, _shape(element_shape)
    )


# shapes -------------------------------------------------------------------------------------------


def _item_shape(at: int, extra: int = 0) -> Callable[..., Any]:
    """The shape that the ``element_shape`` argument declares.

    ``extra`` dimensions of unknown size in front.
    """

    def rule(c: Inference) -> list[Shape]:
        shape = _declared(c, at)
        return [None if shape is None else (*[None] * extra, *shape)]

    return rule


def _declared(c: Inference, at: int) -> Shape:
    value = c.value(at)
    if value is not None and np.asarray(value).ndim == 0:
        return None
    return c.shape_value(at)


def _stack_shape(c: Inference) -> list[Shape]:
    shape, n = _declared(c, 1), c.attr("num_elements")
    return [None if shape is None else (n if n >= 0 else None, *shape)]


def _gather_shape(c: Inference) -> list[Shape]:
    shape, indices = _declared(c, 2), c.shape(1)
    n = None if indices is None or len(indices) != 1 else indices[0]
    return [None if shape is None else (n, *shape)]


def _concat_shape(c: Inference) -> list[Shape]:
    shape = _declared(c, 1)
    return [None if shape is None or not shape else (None, *shape[1:]), (None,)]


_LIST: dict[str, Any] = {"grad": NO_GRADIENT_YET, "host_only": True}
_MADE = "element_shape: shape_type"
_TYPES = "element_dtype: type, shape_type: type(index)"
_OF = "element_dtype: type"

define(
    "EmptyTensorList",
    f"{_MADE}, max_num_elements: int32 -> handle: variant; {_TYPES}",
    shape=scalar,
    kernel=_empty,
    **_LIST,
)
define(
    "TensorListReserve",
    f"{_MADE}, num_elements: int32 -> handle: variant; {_TYPES}",
    shape=scalar,
    kernel=_reserve,
    **_LIST,
)
define(
    "TensorListFromTensor",
    f"tensor: element_dtype, {_MADE} -> output_handle: variant; {_TYPES}",
    shape=scalar,
    kernel=_from_tensor,
    **_LIST,
)
define(
    "TensorListPushBack",
    f"input_handle: variant, tensor: element_dtype -> output_handle: variant; {_OF}",
    shape=scalar,
    kernel=_push,
    **_LIST,
)
define(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: "
    f"element_dtype; {_OF}",
    shape=lambda c: [(), _declared(c, 1)],
    kernel=_pop,
    **_LIST,
)
define(
    "TensorListGetItem",
    f"input_handle: variant, index: int32, element_shape: int32 -> item: element_dtype; {_OF}",
    shape=_item_shape(2),
    kernel=_get,
    **_LIST,
)
define(
    "TensorListSetItem",
    f"input_handle: variant, index: int32, item: element_dtype -> output_handle: variant; {_OF}",
    shape=scalar,
    kernel=_set,
    **_LIST,
)
define(
    "TensorListStack",
    f"input_handle: variant, element_shape: int32 -> tensor: element_dtype; {_OF}, "
    "num_elements: int=-1",
    shape=_stack_shape,
    kernel=_stack,
    **_LIST,
)
define(
    "TensorListGather",
    f"input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype; {_OF}",
    shape=_gather_shape,
    kernel=_gather,
    **_LIST,
)
define(
    "TensorListScatter",
    f"tensor: element_dtype, indices: int32, {_MADE} -> output_handle: variant; {_TYPES}",
    shape=scalar,
    kernel=_scatter,
    **_LIST,
)
define(
    "TensorListScatterV2",
    f"tensor: element_dtype, indices: int32, {_MADE}, num_elements: int32 -> "
    f"output_handle: variant; {_TYPES}",
    shape=scalar,
    kernel=_scatter,
    **_LIST,
)
define(
    "TensorListScatterIntoExistingList",
    "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: "
    f"variant; {_OF}",
    shape=scalar,
    kernel=_scatter_into,
    **_LIST,
)
define(
    "TensorListLength",
    "input_handle: variant -> length: int32",
    shape=scalar,
    kernel=_length,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
define(
    "TensorListResize",
    "input_handle: variant, size: int32 -> output_handle: variant",
    shape=scalar,
    kernel=_resize,
    **_LIST,
)
define(
    "TensorListElementShape",
    "input_handle: variant -> element_shape: shape_type; shape_type: type(index)",
    shape=lambda c: [None],
    kernel=_element_shape,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
define(
    "TensorListConcatV2",
    f"input_handle: variant, {_MADE}, leading_dims: int64 -> tensor: element_dtype, "
    f"lengths: int64; {_TYPES}",
    shape=_concat_shape,
    kernel=_concat,
    **_LIST,
)
define(
    "TensorListSplit",
    f"tensor: element_dtype, {_MADE}, lengths: int64 -> output_handle: variant; {_TYPES}",
    shape=scalar,
    kernel=_split,
    **_LIST,
)
