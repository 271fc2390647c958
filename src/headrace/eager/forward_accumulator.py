"""``tf.autodiff.ForwardAccumulator``: directional derivatives, carried along with the computation.

Every operation whose inputs have a tangent gives its outputs theirs, from the op's own gradient
function: the gradient is linear in the gradients of the outputs, and the derivative of that linear
map is the Jacobian-vector product.

    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
        y = x * x
    acc.jvp(y)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.gradients import UnconnectedGradients
from headrace.core import nest
from headrace.core.convert import convert_to_tensor
from headrace.eager.eager_context import eager_mode
from headrace.eager.eager_tensor import EagerTensor, wrap
from headrace.eager.tape import GradientTape, _add_input_grads, _shape_of
from headrace.eager.tape_record import ACTIVE, TAPES, Record

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = ["ForwardAccumulator"]


class ForwardAccumulator:
    """Computes Jacobian-vector products while the operations are computed."""

    _watch_accessed_variables = False

    def __init__(self, primals: object, tangents: object) -> None:
        self._tangents: dict[int, tuple[Any, Any]] = {}
        self._recording = False
        nest.assert_same_structure(primals, tangents)
        for primal, tangent in zip(nest.flatten(primals), nest.flatten(tangents)):
            place = getattr(primal, "handle", primal)
            value = convert_to_tensor(tangent, primal.dtype)
            if tuple(value.shape.as_list()) != _shape_of(primal):
                raise ValueError(
                    f"Expected primal and tangent shapes to match, got {primal.shape} and "
                    f"{value.shape}"
                )
            self._tangents[id(place)] = (place, value)

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        TAPES.items = [*TAPES.items, self]
        ACTIVE[0] += 1
        self._recording = True
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            TAPES.items = [t for t in TAPES.items if t is not self]
            ACTIVE[0] -= 1
            self._recording = False

    def _wants(self, inputs: Tensor) -> bool:
        return any(id(t) in self._tangents for t in inputs)

    def _watch_variable(self, variable: Variable) -> None:
        return

    def _watch_outputs(self, outputs: Tensor) -> None:
        return

    def _add(self, record: Record) -> None:
        """The tangents of an operation's outputs, by differentiating its gradient."""
        outside = [t for t in TAPES.items if t is not self]
        inner, TAPES.items = TAPES.items, outside
        try:
            with eager_mode():
                found = _pushed(record, self._tangents)
        finally:
            TAPES.items = inner
        for out, tangent in zip(record._outputs, found):
            if tangent is not None:
                self._tangents[id(out)] = (out, tangent)

    def jvp(
        self,
        primals: TensorLike,
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
    ) -> Any:
        """The derivatives of ``primals`` in the direction of the tangents.

        None where there is none.
        """
        mode = UnconnectedGradients(unconnected_gradients)

        def one(primal: Tensor) -> Any:
            found = self._tangents.get(id(getattr(primal, "handle", primal)))
            if found is not None:
                return found[1]
            if mode is UnconnectedGradients.ZERO:
                return wrap(np.zeros(_shape_of(primal), primal.dtype.np_dtype), primal.dtype)
            return None

        return nest.map_structure(one, primals)


def _pushed(record: Record, tangents: dict[int, tuple[Any, Any]]) -> list[Any]:
    """J t of one operation, as d/dw of (J' w) . t."""
    weights = [
        wrap(np.zeros(o._shape, o._dtype.np_dtype), o._dtype)
        if isinstance(o, EagerTensor) and o._dtype._kind in "fc"
        else None
        for o in record._outputs
    ]
    with GradientTape() as tape:
        tape.watch([w for w in weights if w is not None])
        grads: dict[int, list[Any]] = {}
        skip = frozenset(i for i, t in enumerate(record._inputs) if id(t) not in tangents)
        _add_input_grads(grads, record, skip, weights)
    pairs = [(as_dense_under(tape, g[0]), tangents[key][1]) for key, g in grads.items()]
    live = [w for w in weights if w is not None]
    found = iter(
        tape.gradient([g for g, _ in pairs], live, [t for _, t in pairs])
        if pairs
        else [None] * len(live)
    )
    return [None if w is None else next(found) for w in weights]


def as_dense_under(tape: GradientTape, grad: Tensor | IndexedSlices) -> Tensor:
    with tape:
        return as_dense(grad)
