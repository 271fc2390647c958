"""``GatherTree``: the sequences of a beam search, read backward through parents.

>>> gather_tree(step_ids, parent_ids, max_sequence_lengths, end_token)
# ids are (time, batch, beam)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["GATHER_TREE", "gather_tree"]


def _shape(c: infer.Inference) -> list[shapes.Shape]:
    return [shapes.merge(c.shape(0), c.shape(1))]


def _kernel(
    xp: ArrayNamespace,
    step_ids: Array,
    parent_ids: Array,
    max_sequence_lengths: Array,
    end_token: Array,
) -> Array:
    """Each beam is followed from its row's last step to the first.

    Past an end token come end tokens alone.
    """
    step_ids, parent_ids = np.asarray(step_ids), np.asarray(parent_ids)
    if step_ids.ndim != 3 or step_ids.shape != parent_ids.shape:
        raise errors.InvalidArgumentError(
            None,
            None,
            "step_ids must be a 3-tensor of parent_ids' shape, saw shapes: "
            f"{step_ids.shape} and {parent_ids.shape}",
        )
    time, batch, beam = step_ids.shape
    lengths = np.minimum(np.asarray(max_sequence_lengths), time)
    result = np.full_like(step_ids, end_token)
    rows = np.arange(batch)
    parents = np.tile(np.arange(beam), (batch, 1))
    for level in range(time - 1, -1, -1):
        live = (lengths > level)[:, None]
        if ((parents < 0) | (parents >= beam))[np.broadcast_to(live, parents.shape)].any():
            raise errors.InvalidArgumentError(
                None, None, f"Saw invalid parent id at time {level} of beams {beam}"
            )
        safe = np.where(live, parents, 0)
        ids = step_ids[level][rows[:, None], safe]
        result[level] = np.where(live, ids, end_token)
        parents = np.where(live, parent_ids[level][rows[:, None], safe], parents)
    ended = np.cumsum(result == end_token, axis=0) > 0
    result[ended] = end_token
    return result


GATHER_TREE = define(
    "GatherTree",
    "step_ids: int32, parent_ids: int32, max_sequence_lengths: int32, end_token: int32 -> "
    "beams: int32",
    shape=_shape,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def gather_tree(
    step_ids: TensorLike,
    parent_ids: TensorLike,
    max_sequence_lengths: TensorLike,
    end_token: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Full sequences (time, batch, beam) from the ids and parents of each step of a beam search.

    ``step_ids`` and ``parent_ids`` are int32 [time, batch, beam], ``max_sequence_lengths`` [batch].
    What comes after the first ``end_token`` of a sequence becomes ``end_token``.
    """
    return apply(GATHER_TREE, step_ids, parent_ids, max_sequence_lengths, end_token, name=name)
