"""The Assert operation and ``tf.Assert``; what ``tf.assert_*`` make of it is in ``assertions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, shape_fns
from headrace.core.build import apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.infer import constant_value
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import invalid
from headrace.ops.io.printing import summarize_value

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["Assert", "called", "described"]


def _assert_kernel(xp: ArrayNamespace, condition: Array, *data: Array, summarize: int) -> None:
    if not condition:
        parts = " ".join(f"[{summarize_value(d, summarize)}]" for d in data)
        raise invalid(f"assertion failed: {parts}")


ASSERT = define(
    "Assert",
    "condition: bool, data: *T ->; summarize: int=3",
    shape=shape_fns.no_outputs,
    kernel=_assert_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    repeatable=True,
)


def Assert(
    condition: TensorLike, data: Any, summarize: int | None = None, name: str | None = None
) -> Operation:
    """Fails with ``data`` in the message if ``condition`` is false when it runs.

    ``data`` is a list of tensors and strings, ``summarize`` how many elements of each the message
    has (3 by default). In a graph the result is an operation that has to run: put it before what it
    guards with ``tf.control_dependencies``.

        x = tf.constant([1.0, 2.0])
        with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0), [x])]):
            tf.log(x)
    """
    attrs = {} if summarize is None else {"summarize": summarize}
    if get_default_graph()._is_eager:
        return apply_operation(ASSERT, condition, list(data), name=name, **attrs)
    with name_scope(name, "Assert", [condition, data]) as scope:
        given = [convert_to_tensor(d) for d in data]
        plain = all(d._dtype._base in (dtypes.string, dtypes.int32) for d in given)
        # TF puts the op in a branch unless its data are all in host memory
        last = "Assert/" if plain else "AssertGuard/Merge/"
        made: Operation = apply_operation(ASSERT, condition, given, name=scope + last, **attrs)
    values = made._inputs[1:]
    count_more(made.graph, sum(not isinstance(d, Tensor) for d in data))
    if any(v._dtype._base not in (dtypes.string, dtypes.int32) for v in values):
        # TF puts the op in a branch, and its inputs through Switches
        outside = {made._inputs[0], *(d for d in data if isinstance(d, Tensor))}
        count_more(made.graph, 8 + len(outside))
    return made


def called(tensor: Tensor) -> str:
    """How a message refers to a tensor: an eager one has no name."""
    return str(getattr(tensor, "name", f"shape={tensor.shape} dtype={tensor.dtype.name}"))


def described(value: TensorLike) -> str:
    """How a message shows a value: a constant as it is, another tensor by its name."""
    if isinstance(value, Tensor):
        known = constant_value(value)
        return str(value.name if known is None else known)
    return str(value)
