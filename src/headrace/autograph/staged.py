"""What is staged, and the checks that branches and loops over tensors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.autograph.undefined import NO_RETURN, Undefined
from headrace.core import dtypes, nest, shapes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.func_graph import FuncGraph
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.shapes import TensorShape
    from headrace.core.stacks import Entered

__all__ = [
    "as_value",
    "check_branch",
    "check_branches",
    "check_loop_variables",
    "check_one_branch_value",
    "condition",
    "is_staged",
    "scratch_graph",
]

_HANDLES = (dtypes.resource, dtypes.variant)
_PLAIN = (bool, int, float, str, np.ndarray, np.generic)


def is_staged(value: object) -> bool:
    """Whether a value is a tensor of a graph, known only when the graph runs.

    (Eager tensors are Python values.)
    """
    return isinstance(value, Tensor) and not getattr(value, "_is_eager", False)


def as_value(value: Any) -> Tensor:
    """A variable's value in the place of the variable; everything else as it is."""
    return convert_to_tensor(value) if isinstance(value, Variable) else value


def condition(value: Tensor, what: str) -> Tensor:
    """A staged condition as a boolean scalar; ValueError if it cannot be one."""
    hint = "to check for None, use `is not None`"
    if value._dtype._base is not dtypes.bool:
        raise ValueError(
            f"condition of {what} expected to be `tf.bool` scalar, got {value}; to use as "
            "boolean Tensor, use "
            f"`tf.cast`; {hint}"
        )
    if value._shape == ():
        return value
    if value._shape is not None and any(d is not None and d > 1 for d in value._shape):
        raise ValueError(
            f"condition of {what} expected to be `tf.bool` scalar, got {value}; {hint}"
        )
    return apply_op("Reshape", value, constant([], dtypes.int32))


class _Scratch(FuncGraph):
    """A graph to try something in; it is thrown away."""

    def __init__(self) -> None:
        outer = get_default_graph()
        super().__init__("scratch", outer)
        # what the try makes must not be found again
        self._collections = {k: list(v) for k, v in outer._collections.items()}

    def capture(self, outside: Tensor, name: str | None = None) -> Tensor:
        known = None
        if (
            is_staged(outside)
            and outside._op.graph is not self
            and outside._dtype._base not in _HANDLES
        ):
            known = static_value(outside)
        if known is None:
            return super().capture(outside, name)
        context, self._context = self._context, None
        try:
            return constant(known, outside._dtype._base)
        finally:
            self._context = context


def scratch_graph() -> Entered:
    """``with scratch_graph():`` what is added to the graph is forgotten afterwards."""
    return _Scratch().as_default()


# branches ---------------------------------------------------------------------------------------


def check_branch(values: Sequence[Any], names: Sequence[str], branch: str) -> None:
    for name, value in zip(names, values):
        if isinstance(value, Undefined):
            raise ValueError(f"'{name}' must also be initialized in the {branch} branch")


def check_branches(main: Sequence[Any], other: Sequence[Any], names: Sequence[str]) -> None:
    for name, a, b in zip(names, main, other):
        try:
            nest.assert_same_structure(a, b)
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"'{name}' must have the same nested structure in the main and else "
                f"branches:\n\n{error}"
            ) from error
        for one, two in zip(nest.flatten(a), nest.flatten(b)):
            check_one_branch_value(name, one, two)


def check_one_branch_value(name: str, main: TensorLike, other: TensorLike) -> None:
    for value, branch in ((main, "main"), (other, "else")):
        if value is None or value is NO_RETURN:
            raise ValueError(f"'{name}' is None at the end of the {branch} branch.")
    one, two = _dtype(main), _dtype(other)
    if one is not None and two is not None and one is not two:
        raise TypeError(
            f"'{name}' has dtype {one.name} in the main branch, but dtype {two.name} in "
            "the else branch"
        )


def _dtype(value: TensorLike) -> Any:
    if isinstance(value, Tensor):
        return value._dtype._base
    if isinstance(value, Variable):
        return value.dtype.base_dtype
    if isinstance(value, _PLAIN):
        return _of_plain(value)._dtype._base
    return None


def _of_plain(value: TensorLike) -> Tensor:
    with _Scratch().as_default():
        return convert_to_tensor(value)


# loops ------------------------------------------------------------------------------------------


def check_loop_variables(
    before: Sequence[Any],
    after: Sequence[Any],
    names: Sequence[str],
    invariants: Sequence[Any],
    check_shapes: bool = True,
) -> None:
    """The variables at the start of a staged iteration against those at its end."""
    for name, start, end, invariant in zip(names, before, after, invariants):
        try:
            nest.assert_same_structure(start, end)
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"'{name}' does not have the same nested structure after one iteration.\n\n{error}"
            ) from error
        single = invariant is not None and not nest.is_nested(start)
        for one, two in zip(nest.flatten(start), nest.flatten(end)):
            _check_loop_variable(name, one, two, check_shapes, invariant if single else None)


def _check_loop_variable(
    name: str, start: TensorLike, end: TensorLike, check_shapes: bool, invariant: TensorShape | None
) -> None:
    if end is None:
        raise ValueError(f"'{name}' is None at the end of the iteration.")
    one, two = _dtype(start), _dtype(end)
    if one is None or two is None:
        return
    if one is not two:
        raise TypeError(
            f"'{name}' has dtype {one.name} before the loop, but dtype {two.name} after "
            "one iteration"
        )
    if not check_shapes:
        return
    first, last = _shape(start), _shape(end)
    if invariant is not None:
        if not _is_special_case(last, shapes.to_plain(invariant)):
            raise ValueError(
                f"'{name}' has shape {shapes.from_plain(last)} after one iteration, which "
                "does not conform with the "
                f"shape invariant {shapes.from_plain(shapes.to_plain(invariant))}."
            )
    elif not _is_special_case(last, first):
        raise ValueError(
            f"'{name}' has shape {shapes.from_plain(first)} before the loop, but shape "
            f"{shapes.from_plain(last)} after "
            "one iteration. Use tf.autograph.experimental.set_loop_options to set shape invariants."
        )


def _shape(value: TensorLike) -> Any:
    if isinstance(value, Tensor):
        return value._shape
    return shapes.to_plain(np.shape(value)) if isinstance(value, _PLAIN) else None


def _is_special_case(shape: Any, general: Any) -> bool:
    if general is None:
        return True
    if shape is None or len(shape) != len(general):
        return False
    return all(g is None or g == s for s, g in zip(shape, general))
