"""map_fn, scan, foldl, foldr: Python functions over the first axis, as loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.control.while_loops import while_loop

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, InitializerLike, TensorLike

__all__ = ["foldl", "foldr", "map_fn", "scan"]


def _rows(tensors: list[Tensor], folding: bool = False) -> tuple[Any, int | None]:
    """The common length of the first axis: a number if it is known, else a tensor."""
    for t in tensors:
        if t._shape is not None and not t._shape:
            text = "elems must be a 1+ dimensional Tensor, not a scalar"
            raise IndexError(text) if folding else ValueError(text)
        if t._shape and t._shape[0] is not None:
            return t._shape[0], t._shape[0]
    count_more(tensors[0]._op.graph, 1)  # TF slices the shape with three constants
    return apply_op("GatherV2", apply_op("Shape", tensors[0], out_type=dtypes.int32), 0, 0), None


def _spread(
    elems: Tensor | Sequence[Tensor] | Mapping[str, Any], n: int | Tensor
) -> tuple[list[Tensor], list[TensorArray]]:
    flat = [convert_to_tensor(e, name="elem") for e in nest.flatten(elems)]
    size = _rows(flat)[0] if n is None else n
    arrays = [TensorArray(t.dtype.base_dtype, size=size, infer_shape=True).unstack(t) for t in flat]
    return flat, arrays


def _loop(
    test: Callable[..., Any],
    body: Callable[..., Any],
    start: list[Any],
    rows: int | None,
    **options: Any,
) -> Any:
    """A while loop.

    TF gives it a maximum number of iterations, for which it has a counter of its own.
    """
    graph = get_default_graph()
    if graph._is_eager:
        return while_loop(test, body, start)
    count_more(graph, 4 if rows is None else 6)

    def counted(*variables: object) -> Any:
        count_more(graph, 5)
        result = body(*variables)
        count_more(graph, 2)
        return result

    return while_loop(test, counted, start, **options)


def _pack(like: object, flat: list[Any]) -> Any:
    return nest.pack_sequence_as(like, flat) if nest.is_sequence(like) else flat[0]


def map_fn(
    fn: Callable[[Any], Any],
    elems: object,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``fn`` applied to each row of ``elems``, the results stacked along a new first axis.

    ``elems`` may be a structure of tensors with equal first dimensions; ``fn`` gets the same
    structure of rows. Say ``dtype`` if the result has another type or structure than ``elems``. It
    is a loop: an operation on whole tensors is faster where there is one.

    Elements are taken one after the other: ``parallel_iterations`` and ``swap_memory`` have no
    effect; ``back_prop=False`` takes no gradient through the loop. Elements may be ragged; so may
    results be whose ``dtype`` is a ``RaggedTensorSpec`` of one row's result.

        tf.map_fn(lambda row: tf.reduce_sum(row), x)            # like reduce_sum(x, 1)
        tf.map_fn(lambda r: (r, -r), x, dtype=(tf.float32, tf.float32))
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    flat_in = nest.flatten(elems)
    if any(hasattr(x, "ragged_rank") for x in (*flat_in, *nest.flatten(dtype))):
        from headrace.ops.ragged.ragged_map import map_ragged

        return map_ragged(
            fn,
            elems,
            dtype,
            infer_shape,
            name,
            back_prop=back_prop,
            swap_memory=swap_memory,
            parallel_iterations=parallel_iterations or 10,
        )
    with name_scope(name, "map", flat_in):
        tensors = [convert_to_tensor(e, name="elem") for e in flat_in]
        n, known = _rows(tensors)
        _, arrays = _spread(_pack(elems, tensors), n)
        out_like = elems if dtype is None else dtype
        types = [t.dtype.base_dtype for t in tensors] if dtype is None else nest.flatten(dtype)
        results = [TensorArray(dtypes.as_dtype(t), size=n, infer_shape=infer_shape) for t in types]

        def body(i: Tensor, outs: list[TensorArray]) -> Any:
            value = fn(_pack(elems, [a.read(i) for a in arrays]))
            nest.assert_same_structure(out_like, value)
            values = nest.flatten(value)
            return apply_op("AddV2", i, 1), [o.write(i, v) for o, v in zip(outs, values)]

        _, done = _loop(
            lambda i, _: apply_op("Less", i, n),
            body,
            [constant(0), results],
            known,
            back_prop=back_prop,
            parallel_iterations=parallel_iterations or 10,
            swap_memory=swap_memory,
        )
        stacked = [_with_rows(a.stack(), known) for a in done]
        return _pack(out_like, stacked)


def _with_rows(tensor: Tensor, rows: int | None) -> Tensor:
    if tensor._shape is not None and rows is not None and not tensor._op.graph._is_eager:
        tensor.set_shape((rows, *tensor._shape[1:]))
    return tensor


def _fold(
    fn: Callable[..., Any],
    elems: object,
    initializer: InitializerLike | None,
    name: str | None,
    default: str,
    back: bool,
    options: dict[str, Any],
) -> Any:
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, default, nest.flatten(elems)):
        tensors = [convert_to_tensor(e, name="elem") for e in nest.flatten(elems)]
        n, known = _rows(tensors, folding=True)
        _, arrays = _spread(_pack(elems, tensors), n)
        first = apply_op("Sub", n, 1) if back else constant(0)
        step = -1 if back else 1
        if initializer is None:
            start = _pack(elems, [a.read(first) for a in arrays])
            first = apply_op("AddV2", first, step)
            count_more(tensors[0]._op.graph, -3 if back and known is not None else -1)
        else:
            start = initializer
            start = _pack(start, [convert_to_tensor(s) for s in nest.flatten(start)])

        def body(i: Tensor, so_far: TensorLike) -> tuple[Tensor, Tensor]:
            value = fn(so_far, _pack(elems, [a.read(i) for a in arrays]))
            return apply_op("AddV2", i, step), value

        def test(i: Tensor, _: TensorLike) -> Tensor:
            return apply_op("GreaterEqual", i, 0) if back else apply_op("Less", i, n)

        _, result = _loop(test, body, [first, start], known, **options)
        return result


def foldl(
    fn: Callable[..., Any],
    elems: TensorLike,
    initializer: TensorLike | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The elements of the first dimension reduced from the left: ``fn(fn(fn(init, e0), e1), e2)``.

    Without ``initializer`` the first element begins. ``elems`` may be a structure of tensors.

    Elements are taken one after the other: ``parallel_iterations`` and ``swap_memory`` have no
    effect; ``back_prop=False`` takes no gradient through the loop.
    """
    options = {"parallel_iterations": parallel_iterations, "back_prop": back_prop}
    return _fold(fn, elems, initializer, name, "foldl", False, options)


def foldr(
    fn: Callable[..., Any],
    elems: object,
    initializer: float | Tensor | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Like ``foldl`` from the last element to the first: ``fn(so_far, element)`` for each.

    Without ``initializer`` the last element is the first value.

    Elements are taken one after the other: ``parallel_iterations`` and ``swap_memory`` have no
    effect; ``back_prop=False`` takes no gradient through the loop.
    """
    options = {"parallel_iterations": parallel_iterations, "back_prop": back_prop}
    return _fold(fn, elems, initializer, name, "foldr", True, options)


def _array_for(element: Tensor, size: Tensor, infer_shape: bool) -> TensorArray:
    """An empty TensorArray for elements like this one."""
    return TensorArray(
        element.dtype.base_dtype,
        size=size,
        infer_shape=infer_shape,
        element_shape=element.shape if infer_shape else None,
    )


def scan(
    fn: Callable[[Any, Any], Any],
    elems: TensorLike,
    initializer: TensorLike | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All the intermediate values of ``foldl``, stacked: ``fn(so_far, element)`` for each row.

    Without ``initializer`` the first row is the first value, and the result. The result has the
    structure and types of ``initializer``; ``reverse`` begins with the last row.

    Elements are taken one after the other: ``parallel_iterations`` and ``swap_memory`` have no
    effect; ``back_prop=False`` takes no gradient through the loop.

        tf.scan(lambda total, x: total + x, np.array([1, 2, 3]))  # [1, 3, 6]
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, "scan", nest.flatten(elems)):
        tensors = [convert_to_tensor(e, name="elem") for e in nest.flatten(elems)]
        n, known = _rows(tensors, folding=True)
        _, arrays = _spread(_pack(elems, tensors), n)
        first = apply_op("Sub", n, 1) if reverse else constant(0)
        step = -1 if reverse else 1
        begin = first
        if initializer is None:
            start = _pack(elems, [a.read(first) for a in arrays])
            first = apply_op("AddV2", first, step)
        else:
            start = _pack(initializer, [convert_to_tensor(i) for i in nest.flatten(initializer)])
        flat_start = nest.flatten(start)
        results = [_array_for(t, n, infer_shape) for t in flat_start]
        if initializer is None:
            results = [r.write(begin, t) for r, t in zip(results, flat_start)]

        def body(
            i: Tensor, so_far: TensorLike, outs: list[TensorArray]
        ) -> tuple[Tensor, Tensor | tuple[Tensor, Tensor], list[TensorArray]]:
            value = fn(so_far, _pack(elems, [a.read(i) for a in arrays]))
            nest.assert_same_structure(start, value)
            return (
                apply_op("AddV2", i, step),
                value,
                [o.write(i, v) for o, v in zip(outs, nest.flatten(value))],
            )

        def test(i: Tensor, *_: Tensor | Sequence[Tensor | TensorArray]) -> Tensor:
            return apply_op("GreaterEqual", i, 0) if reverse else apply_op("Less", i, n)

        _, _, done = _loop(
            test,
            body,
            [first, start, results],
            known,
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
        )
        return _pack(start, [_with_rows(a.stack(), known) for a in done])
