"""Losses of a graph: ``tf.losses`` collects what it makes, and a program adds it up.

>>> total = get_total_loss()          # of all losses and regularizers so far
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "add_loss",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
]

_LOSSES = GraphKeys.LOSSES


def add_loss(loss: TensorLike, loss_collection: str = _LOSSES) -> None:
    """Add a loss to a collection, for ``get_total_loss``."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = _LOSSES) -> list[Any]:
    """The losses of a collection, of a scope if one is given."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The regularization losses of the graph, of a scope if one is given."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """The sum of the regularization losses; 0.0 without any."""
    losses = get_regularization_losses(scope)
    if losses:
        return apply_op("AddN", losses, name=name)
    return convert_to_tensor(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of the graph's losses and, unless switched off, its regularization losses."""
    losses = get_losses(scope=scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope=scope)
    if not losses:
        raise ValueError(
            "inputs must be a list of at least one Tensor/IndexedSlices with the same "
            "dtype and shape"
        )
    return apply_op("AddN", losses, name=name)
