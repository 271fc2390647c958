"""What functions of tensors do with ragged ones: ``x + 1``, ``tf.reduce_sum(x, 1)``, ``tf.concat``.

Element-wise functions act on the flat values. A dense operand is broadcast: over inner dimensions,
as one value for each row, or it has the shape of the ragged one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, shape
from headrace.ops.array.gathering import gather
from headrace.ops.control.assertions import assert_equal
from headrace.ops.ragged.ragged_factories import map_flat_values
from headrace.ops.ragged.ragged_getitem import gather_rows
from headrace.ops.ragged.ragged_reductions import reduce_ragged
from headrace.ops.ragged.ragged_tensor import (
    _OWN,
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
)
from headrace.ops.ragged.ragged_value import RaggedTensorValue

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, TensorLike


__all__ = ["answer", "concat_ragged", "elementwise", "gather_ragged"]

Arguments = dict[str, Any]


def answer(kind: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The result of a dispatched function with a ragged argument."""
    args = [_symbolic(a) for a in args]
    bound = inspect.signature(function).bind(*args, **{k: _symbolic(v) for k, v in kwargs.items()})
    bound.apply_defaults()
    given = bound.arguments
    family, _, what = kind.partition(":")
    if family == "unary":
        first = next(iter(given))
        rest = {k: v for k, v in given.items() if k != first}
        return map_flat_values(function, given[first], **rest)
    if family == "binary":
        x, y = list(given)[:2]
        rest = {k: v for k, v in given.items() if k not in (x, y)}
        return elementwise(lambda a, b: function(a, b, **rest), given[x], given[y])
    if family == "reduce":
        return _reduced(what, given)
    if family == "segment":
        from headrace.ops.ragged import ragged_answers

        return ragged_answers.segments_ragged(what, given)
    return _ANSWERS[family](given)


def _symbolic(value: Any) -> Any:
    """Ragged arrays, also in a list, as ragged tensors; anything else as it is."""
    if isinstance(value, RaggedTensorValue):
        return convert_to_tensor_or_ragged_tensor(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, RaggedTensorValue) for v in value):
        return [_symbolic(v) for v in value]
    return value


def _reduced(what: str, given: Arguments) -> Any:
    axis = given.get("axis")
    axis = given.get("reduction_indices") if axis is None else axis
    keep = bool(given.get("keepdims") or given.get("keep_dims"))
    first = next(iter(given))
    return reduce_ragged(what, given[first], axis, keep, given.get("name"))


# element by element -----------------------------------------------------------------------------


def elementwise(op: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``op`` of two operands of which one is ragged at least."""
    model = x if isinstance(x, RaggedTensor) else y
    both = [_operand(v, model) for v in (x, y)]
    x, y = both
    if isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor):
        return _of_two_ragged(op, x, y)
    if isinstance(x, RaggedTensor):
        return _with_dense(lambda flat, other: op(flat, other), x, y)
    return _with_dense(lambda flat, other: op(other, flat), y, x)


def _of_two_ragged(op: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """The one of lower rank gets outer dimensions of size 1; where one is ragged and the other is
    not, the dense values are broadcast within equal rows.
    """
    x_rank, y_rank = x.shape.ndims, y.shape.ndims
    if x_rank is None or y_rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    from headrace.ops.ragged.ragged_shaping import expand_ragged

    for _ in range(y_rank - x_rank):
        x = expand_ragged(x, 0)
    for _ in range(x_rank - y_rank):
        y = expand_ragged(y, 0)
    if x.ragged_rank == y.ragged_rank:
        return map_flat_values(op, x, y)
    splits = [apply_op("Cast", t.row_splits, DstT=dtypes.int64) for t in (x, y)]
    check = assert_equal(*splits, message="Inputs do not have the same rows")
    with control_dependencies([] if check is None else [check]):
        x = x.with_flat_values(apply_op("Identity", x.flat_values))
    return x.with_values(elementwise(op, x.values, y.values))


def _operand(value: TensorLike, model: RaggedTensor) -> Any:
    if isinstance(value, (RaggedTensor, Tensor)) or hasattr(value, "_as_graph_element"):
        return value
    return convert_to_tensor_or_ragged_tensor(value, model.dtype.base_dtype)


def _with_dense(op: Callable[[Any, Any], Any], ragged: RaggedTensor, dense: object) -> RaggedTensor:
    other = convert_to_tensor(dense)
    rank, inner = other.shape.ndims, (ragged.flat_values.shape.ndims or 1) - 1
    if rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    levels = ragged.ragged_rank
    if rank <= inner:
        return ragged.with_flat_values(op(ragged.flat_values, other))
    if rank > levels + 1 + inner:
        raise ValueError(f"a tensor of rank {rank} is not broadcast to {ragged!r}")
    while other.shape.ndims != levels + 1 + inner:
        other = apply_op("ExpandDims", other, const(0))
    sizes = other.shape.as_list()
    if all(s == 1 for s in sizes[1 : levels + 1]):
        return ragged.with_flat_values(op(ragged.flat_values, _of_rows(ragged, other)))
    kind = ragged.row_splits.dtype.base_dtype
    same = RaggedTensor.from_tensor(other, ragged_rank=levels, row_splits_dtype=kind)
    return map_flat_values(op, ragged, same)  # type: ignore[no-any-return]


def _of_rows(ragged: RaggedTensor, other: Tensor) -> Tensor:
    """For each flat value what belongs to its outermost row."""
    levels = ragged.ragged_rank
    flat = apply_op("Squeeze", other, squeeze_dims=list(range(1, levels + 1)))
    if other.shape.as_list()[0] == 1:
        return flat
    rows = ragged.value_rowids()
    for level in ragged._levels()[1:]:
        rows = gather(rows, level.value_rowids())
    return gather(flat, rows)


# joining and picking ----------------------------------------------------------------------------


def _axis_of(axis: AxisLike, ragged: RaggedTensor) -> int:
    rank = ragged.shape.ndims
    if not isinstance(axis, int):
        raise TypeError("axis must be an int")
    if axis < 0 and rank is None:
        raise ValueError("axis may only be negative if the rank is statically known.")
    return axis + rank if axis < 0 and rank is not None else axis


def concat_ragged(values: Any, axis: Any, name: str | None = None) -> Any:
    """Ragged tensors one after the other along `axis`; dense ones are taken by their rows."""
    given = [convert_to_tensor_or_ragged_tensor(v) for v in values]
    model = next(v for v in given if isinstance(v, RaggedTensor))
    with name_scope(name, "RaggedConcat", [*given]):
        return _concat(given, _axis_of(axis, model))


def _concat(given: list[Any], axis: int) -> Any:
    model = next((v for v in given if isinstance(v, RaggedTensor)), None)
    if model is None:
        return apply_op("ConcatV2", given, const(axis))
    rows = [
        v if isinstance(v, RaggedTensor)
        else RaggedTensor.from_tensor(v, ragged_rank=model.ragged_rank)
        for v in given
    ]  # fmt: skip
    if axis == 0:
        return _one_below_the_other(rows)
    if axis == 1:
        return _one_beside_the_other(rows)
    splits = rows[0].row_splits
    return RaggedTensor(_concat([r.values for r in rows], axis - 1), splits, _OWN)


def _one_below_the_other(rows: list[RaggedTensor]) -> RaggedTensor:
    lengths = apply_op("ConcatV2", [r.row_lengths() for r in rows], const(0))
    return RaggedTensor.from_row_lengths(
        _concat([r.values for r in rows], 0), lengths, validate=False
    )


def _one_beside_the_other(rows: list[RaggedTensor]) -> RaggedTensor:
    """Row i of every tensor, joined."""
    count, kind = rows[0].nrows(), rows[0].row_splits.dtype.base_dtype
    numbers = apply_op("Range", const(0, kind), count * len(rows), const(1, kind))
    size = apply_op("Pack", [const(len(rows), kind), count])
    order = apply_op(
        "Reshape",
        apply_op("Transpose", apply_op("Reshape", numbers, size), const([1, 0])),
        const([-1]),
    )
    mixed = gather_rows(_one_below_the_other(rows), order)
    lengths = apply_op("AddN", [r.row_lengths() for r in rows])
    return RaggedTensor.from_row_lengths(mixed.values, lengths, validate=False)


def gather_ragged(params: TensorLike, indices: TensorLike, name: str | None = None) -> Any:
    """Rows of `params` by the numbers in `indices`; either may be ragged."""
    with name_scope(name, "RaggedGather", [params, indices]):
        places = convert_to_tensor_or_ragged_tensor(indices)
        if isinstance(places, RaggedTensor):
            return places.with_values(gather_ragged(params, places.values))
        if not isinstance(params, RaggedTensor):
            return gather(params, places)
        rank = places.shape.ndims
        if rank is None:
            raise ValueError("indices.shape.ndims must be known statically")
        kind = params.row_splits.dtype.base_dtype
        if places.dtype.base_dtype is not kind:
            places = apply_op("Cast", places, DstT=kind)
        if rank == 0:
            return params[places]
        flat = gather_rows(params, apply_op("Reshape", places, const([-1])))
        return _shaped(flat, shape(places, out_type=kind), rank)


def _shaped(flat: RaggedTensor, dims: Tensor, rank: int) -> RaggedTensor:
    """Rows put into even rows, as many levels as the indices have more than one dimension."""
    made, kind = flat, dims.dtype.base_dtype
    for level in reversed(range(rank - 1)):
        outer = apply_op("Prod", dims[: level + 1], const([0]), keep_dims=False)
        starts = apply_op("Range", const(0, kind), outer + 1, const(1, kind))
        made = RaggedTensor(made, starts * dims[level + 1], _OWN)
    return made


def _gathered(given: Arguments) -> Any:
    axis = given.get("axis")
    if given.get("batch_dims") or axis not in (None, 0):
        raise ValueError("Only axis=0 without batch_dims is supported for `RaggedTensor` gather")
    return gather_ragged(given["params"], given["indices"], given.get("name"))


def _size(given: Arguments) -> Tensor:
    kind = given.get("out_type") or dtypes.int32
    return apply_op("Size", given["input"].flat_values, out_type=kind, name=given.get("name"))


def _rank(given: Arguments) -> Tensor:
    ragged = given["input"]
    count: Tensor = apply_op("Rank", ragged.flat_values) + ragged.ragged_rank
    return count


def _answered(name: str) -> Callable[[Arguments], Any]:
    """A function of ragged_answers.py, which imports this module."""

    def call(given: Arguments) -> Any:
        from headrace.ops.ragged import ragged_answers

        return getattr(ragged_answers, name)(given)

    return call


def _shaping(name: str, *arguments: str) -> Callable[[Arguments], Any]:
    """A function of ragged_shaping.py, which imports this module, and what it is called with."""

    def call(given: Arguments) -> Any:
        from headrace.ops.ragged import ragged_shaping

        return getattr(ragged_shaping, name)(*(given[a] for a in arguments), given.get("name"))

    return call


def _expanded(given: Arguments) -> Any:
    axis = given["dim"] if given.get("axis") is None else given["axis"]
    return _shaping("expand_ragged", "input", "axis")({**given, "axis": axis})


def _added(given: Arguments) -> Any:
    def total(*flat: Any) -> Tensor:
        return apply_op("AddN", list(flat))

    return map_flat_values(total, *given["inputs"])


def _strings_joined(given: Arguments) -> Any:
    def joined(*flat: Any) -> Tensor:
        return apply_op("StringJoin", list(flat), separator=given["separator"])

    return map_flat_values(joined, *given["inputs"])


def _where_broadcast(given: Arguments) -> Any:
    """TF 2's ``where`` has no rows to choose by a vector of conditions: shapes broadcast."""
    if not isinstance(given["condition"], RaggedTensor):
        raise ValueError(
            "tf.where of ragged tensors takes a ragged condition of their shape, not "
            f"{given['condition']}. tf.compat.v1.where chooses whole rows by a vector."
        )
    return _shaping("where_ragged", "condition", "x", "y")(given)


_ANSWERS: dict[str, Callable[[Arguments], Any]] = {
    "concat": lambda given: concat_ragged(given["values"], given["axis"], given.get("name")),
    "gather": _gathered,
    "size": _size,
    "rank": _rank,
    "add_n": _added,
    "expand_dims": _expanded,
    "gather_nd": _shaping("gather_nd_ragged", "params", "indices"),
    "boolean_mask": _shaping("boolean_mask", "tensor", "mask"),
    "stack": _shaping("stack", "values", "axis"),
    "tile": _shaping("tile_ragged", "input", "multiples"),
    "where": _shaping("where_ragged", "condition", "x", "y"),
    "where_v2": _where_broadcast,
    "string_join": _strings_joined,
    **{
        kind: _answered(f"{kind}_ragged")
        for kind in (
            "batch_gather",
            "dynamic_partition",
            "one_hot",
            "reduce_join",
            "softmax",
            "squeeze",
        )
    },
}


# operators --------------------------------------------------------------------------------------


def _install_operators() -> None:
    """Give RaggedTensor the operators that TensorFlow gives it; ``==`` compares identity."""
    from headrace.ops.math import binary, comparison, unary

    both: dict[str, Callable[..., Any]] = {
        "add": binary.add, "sub": binary.subtract, "mul": binary.multiply,
        "truediv": binary.truediv, "floordiv": binary.floordiv, "mod": binary.floormod,
        "pow": binary.pow, "and": comparison.logical_and, "or": comparison.logical_or,
        "xor": comparison.logical_xor,
    }  # fmt: skip
    for short, function in both.items():
        setattr(RaggedTensor, f"__{short}__", _forward(function))
        setattr(RaggedTensor, f"__r{short}__", _backward(function))
    for short, function in {
        "lt": comparison.less, "le": comparison.less_equal, "gt": comparison.greater,
        "ge": comparison.greater_equal,
    }.items():  # fmt: skip
        setattr(RaggedTensor, f"__{short}__", _forward(function))
    for short, function in {
        "neg": unary.negative, "abs": unary.abs, "invert": comparison.logical_not,
    }.items():  # fmt: skip
        setattr(RaggedTensor, f"__{short}__", _alone(function))


def _forward(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: elementwise(function, x, y)


def _backward(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda y, x: elementwise(function, x, y)


def _alone(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: map_flat_values(function, x)


_install_operators()
