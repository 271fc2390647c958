"""``tf.contrib.rnn``."""

from headrace.api.hosting import hosted_getattr
from headrace.layers.rnn.basic_cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell
from headrace.layers.rnn.bidirectional import (
    stack_bidirectional_dynamic_rnn,
    stack_bidirectional_rnn,
    static_bidirectional_rnn,
)
from headrace.layers.rnn.block_cells import (
    GRUBlockCell,
    GRUBlockCellV2,
    LSTMBlockCell,
    LSTMBlockFusedCell,
)
from headrace.layers.rnn.cell_base import LayerRNNCell, LSTMStateTuple, RNNCell
from headrace.layers.rnn.cell_wrappers import (
    DeviceWrapper,
    DropoutWrapper,
    MultiRNNCell,
    ResidualWrapper,
)
from headrace.layers.rnn.contrib_cells import (
    IndRNNCell,
    IndyGRUCell,
    IndyLSTMCell,
    IntersectionRNNCell,
    LayerNormBasicLSTMCell,
    NASCell,
    UGRNNCell,
)
from headrace.layers.rnn.dynamic_rnn import transpose_batch_time
from headrace.layers.rnn.projection_wrappers import (
    AttentionCellWrapper,
    EmbeddingWrapper,
    HighwayWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)
from headrace.layers.rnn.special_cells import (
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
    PhasedLSTMCell,
)
from headrace.layers.rnn.static_rnn import static_rnn, static_state_saving_rnn

__all__ = [
    "AttentionCellWrapper", "BasicLSTMCell", "BasicRNNCell", "Conv1DLSTMCell", "Conv2DLSTMCell",
    "Conv3DLSTMCell", "ConvLSTMCell", "DeviceWrapper", "DropoutWrapper", "EmbeddingWrapper",
    "GRUBlockCell", "GRUBlockCellV2", "GRUCell", "HighwayWrapper", "IndRNNCell", "IndyGRUCell",
    "IndyLSTMCell", "InputProjectionWrapper", "IntersectionRNNCell", "LSTMBlockCell",
    "LSTMBlockFusedCell", "LSTMCell", "LSTMStateTuple", "LayerNormBasicLSTMCell", "LayerRNNCell",
    "MultiRNNCell", "NASCell", "OutputProjectionWrapper", "PhasedLSTMCell", "RNNCell",
    "ResidualWrapper", "UGRNNCell", "stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn",
    "static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn", "transpose_batch_time",
]  # fmt: skip

__getattr__ = hosted_getattr("contrib.rnn", __name__, [])
