"""``==`` between tensors: by value (TF 2), or by identity (TF 1, and what Python does without this
module).

By value holds for eager tensors and variables and for tensors of function graphs. Tensors stay
usable as keys inside Headrace: eager ones refuse to be hashed, as TensorFlow's do, symbolic ones
are hashed by identity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from headrace.core.build import apply_op
from headrace.core.graph import get_default_graph
from headrace.core.tensor import Tensor
from headrace.eager.eager_context import enabled
from headrace.eager.eager_tensor import EagerTensor, wrap
from headrace.eager.eager_variables import EagerVariable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["disable", "enable", "is_enabled"]

_state = [False]


def _by_value(x: TensorLike) -> bool:
    graph = get_default_graph()
    return graph._is_eager or (graph._is_function and enabled())


def _compare(op_type: str, x: TensorLike, y: TensorLike) -> Tensor:
    if isinstance(x, EagerVariable):
        x = x.value()
    if isinstance(x, EagerTensor) and get_default_graph()._is_eager:
        return _eager(op_type, x, y)
    return apply_op(op_type, x, y, incompatible_shape_error=False)


def _eager(op_type: str, x: EagerTensor, y: TensorLike) -> Tensor:
    from headrace.core import dtypes
    from headrace.eager.execute import to_tensor

    if not isinstance(y, EagerTensor):
        y = to_tensor(y, x._dtype) if not isinstance(y, Tensor) else y
    try:
        np.broadcast_shapes(x._static.shape, y._static.shape)
    except ValueError:
        return wrap(np.bool_(op_type == "NotEqual"), dtypes.bool)
    return apply_op(op_type, x, y)


def _equal(self: Any, other: Any) -> Any:
    if other is None:
        return False
    return _compare("Equal", self, other) if _by_value(self) else self is other


def _not_equal(self: Any, other: Any) -> Any:
    if other is None:
        return True
    return _compare("NotEqual", self, other) if _by_value(self) else self is not other


def _unhashable(self: object) -> NoReturn:
    if isinstance(self, EagerVariable):
        raise TypeError(
            f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})"
        )
    raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")


def is_enabled() -> bool:
    return _state[0]


def _ragged_equal(self: Any, other: Any) -> Any:
    if other is None:
        return False
    return _elementwise("equal", self, other) if _by_value(self) else self is other


def _ragged_not_equal(self: Any, other: Any) -> Any:
    if other is None:
        return True
    return _elementwise("not_equal", self, other) if _by_value(self) else self is not other


def _elementwise(name: str, x: Any, y: Any) -> Any:
    from headrace.ops.math import comparison
    from headrace.ops.ragged.ragged_dispatch import elementwise

    return elementwise(getattr(comparison, name), x, y)


def enable() -> None:
    """Compare by value from now on."""
    from headrace.ops.ragged.ragged_tensor import RaggedTensor

    _state[0] = True
    for name, method in (("__eq__", _ragged_equal), ("__ne__", _ragged_not_equal)):
        setattr(RaggedTensor, name, method)
    for kind in (Tensor, EagerVariable):
        kind.__eq__ = _equal  # type: ignore[method-assign]
        kind.__ne__ = _not_equal  # type: ignore[method-assign]
    for unhashable in (EagerTensor, EagerVariable):
        unhashable.__hash__ = _unhashable  # type: ignore[method-assign]


def disable() -> None:
    """Compare by identity again."""
    if not _state[0]:
        return
    from headrace.ops.ragged.ragged_tensor import RaggedTensor

    _state[0] = False
    for kind in (RaggedTensor, Tensor, EagerVariable):
        del kind.__eq__
        del kind.__ne__
    for unhashable in (EagerTensor, EagerVariable):
        del unhashable.__hash__
