"""Inner names of ``tensorflow.python.ops.rnn_cell_impl``, ``rnn`` and ``core_rnn_cell`` that
programs import.
"""

from headrace.api.v1.tensor_util import constant_value_as_shape
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers.rnn.cell_base import (
    BIAS as _BIAS_VARIABLE_NAME,
)
from headrace.layers.rnn.cell_base import (
    WEIGHTS as _WEIGHTS_VARIABLE_NAME,
)
from headrace.layers.rnn.cell_base import (
    LayerRNNCell,
    assert_like_rnncell,
)
from headrace.layers.rnn.cell_base import (
    concat_shapes as _concat,
)
from headrace.layers.rnn.cell_base import (
    like_rnncell as _like_rnncell,
)
from headrace.layers.rnn.cell_base import (
    zero_state_tensors as _zero_state_tensors,
)
from headrace.layers.rnn.dynamic_rnn import (
    best_effort_batch_size as _best_effort_input_batch_size,
)
from headrace.layers.rnn.dynamic_rnn import transpose_batch_time as _transpose_batch_time
from headrace.layers.rnn.linear_map import Linear as _Linear
from headrace.layers.rnn.linear_map import linear as _linear
from headrace.layers.rnn.rnn_step import infer_state_dtype as _infer_state_dtype
from headrace.layers.rnn.rnn_step import rnn_step as _rnn_step
from headrace.layers.rnn.static_rnn import reverse_seq as _reverse_seq

__all__ = [
    "_BIAS_VARIABLE_NAME", "_WEIGHTS_VARIABLE_NAME", "LayerRNNCell", "_Linear",
    "_best_effort_input_batch_size", "_concat", "_infer_state_dtype", "_like_rnncell", "_linear",
    "_maybe_tensor_shape_from_tensor", "_reverse_seq", "_rnn_step", "_transpose_batch_time",
    "_zero_state_tensors",
    "assert_like_rnncell",
]  # fmt: skip


def _maybe_tensor_shape_from_tensor(shape: Tensor | TensorShape) -> Tensor | TensorShape:
    """What is known of a shape that is a tensor; a shape stays as it is."""
    return constant_value_as_shape(shape) if isinstance(shape, Tensor) else shape
