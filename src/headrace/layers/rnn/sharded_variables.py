"""Variables in several pieces, as the older LSTM cells of ``tf.contrib.rnn`` keep them.

``W`` with three shards is the variables ``W_0``, ``W_1``, ``W_2``, joined along their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.layers import layer_ops as ops
from headrace.variables.variable_scope import get_variable, get_variable_scope

if TYPE_CHECKING:
    from headrace.core.dtypes import DType

__all__ = ["concatenated_variable"]


def concatenated_variable(name: str, shape: list[int], dtype: DType, num_shards: int) -> Any:
    """The variables ``name_0`` … as one tensor of ``shape``, made once for a scope."""
    shards = _shards(name, shape, dtype, num_shards)
    if len(shards) == 1:
        return shards[0]
    wanted = f"{get_variable_scope().name}/{name}/concat:0"
    graph = get_default_graph()
    for known in graph.get_collection(GraphKeys.CONCATENATED_VARIABLES):
        if known.name == wanted:
            return known
    joined = ops.concat(shards, 0, name=f"{name}/concat")
    graph.add_to_collection(GraphKeys.CONCATENATED_VARIABLES, joined)
    return joined


def _shards(name: str, shape: list[int], dtype: DType, num_shards: int) -> list[Any]:
    rows, *rest = shape
    if num_shards > rows:
        raise ValueError(f"Too many shards: shape={shape}, num_shards={num_shards}")
    size, larger = divmod(rows, num_shards)
    return [
        get_variable(f"{name}_{i}", [size + (i < larger), *rest], dtype=dtype)
        for i in range(num_shards)
    ]
